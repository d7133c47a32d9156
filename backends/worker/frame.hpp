#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace attest {

/// A peer that does not speak the protocol, or went away in the middle of a frame.
class FrameError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One message on a stream socket: 16 bytes of header, then the payload. All integers are little
/// endian. Bytes 0..3 "ATST", 4..7 the version of the framing, 8..15 the payload's length.
inline constexpr std::size_t frame_header_bytes = 16;
inline constexpr std::uint32_t frame_version = 1;
/// Longest payload that is sent or accepted: no length field makes us allocate more.
inline constexpr std::uint64_t max_frame_bytes = std::uint64_t{256} << 20;

/// Header of a payload of `length` bytes.
std::string frame_header(std::uint64_t length);

/// Length from the 16 bytes of a header. \throws FrameError for another magic, another version or a
/// length above max_frame_bytes, each with the value found.
std::uint64_t frame_length(std::string_view header);

/// The child's side, blocking.
/// Next payload, or nothing when the peer closed the socket between frames. \throws FrameError
std::optional<std::string> read_frame(int fd);
/// Writes a whole frame. A peer that is gone is an error, never SIGPIPE. \throws FrameError
void write_frame(int fd, std::string_view payload);

}  // namespace attest
