#include "backends/worker/frame.hpp"

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstring>

namespace attest {
namespace {

constexpr std::string_view magic = "ATST";

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

void append_little_endian(std::uint64_t value, std::size_t bytes, std::string& to) {
  for (std::size_t i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

std::string printable(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<std::uint8_t>(byte);
    text += {digits[value >> 4], digits[value & 15], ' '};
  }
  if (!text.empty()) text.pop_back();
  return text;
}

/// Fills `to`; returns the bytes read, fewer only at the end of the stream.
std::size_t read_all(int fd, char* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = recv(fd, to + done, count - done, 0);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FrameError(std::string("recv: ") + std::strerror(errno));
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw FrameError(std::string("send: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

std::string frame_header(std::uint64_t length) {
  std::string header(magic);
  append_little_endian(frame_version, 4, header);
  append_little_endian(length, 8, header);
  return header;
}

std::uint64_t frame_length(std::string_view header) {
  if (header.substr(0, 4) != magic) {
    throw FrameError("frame starts with " + printable(header.substr(0, 4)) + ", not \"" +
                     std::string(magic) + "\"");
  }
  const std::uint64_t version = little_endian(header.substr(4, 4));
  if (version != frame_version) {
    throw FrameError("frame has version " + std::to_string(version) + ", this program speaks " +
                     std::to_string(frame_version));
  }
  const std::uint64_t length = little_endian(header.substr(8, 8));
  if (length > max_frame_bytes) {
    throw FrameError("frame of " + std::to_string(length) + " bytes, the limit is " +
                     std::to_string(max_frame_bytes));
  }
  return length;
}

std::optional<std::string> read_frame(int fd) {
  char header[frame_header_bytes];
  const std::size_t got = read_all(fd, header, frame_header_bytes);
  if (got == 0) return std::nullopt;
  if (got < frame_header_bytes) throw FrameError("stream ended inside a frame's header");
  std::string payload(frame_length({header, frame_header_bytes}), '\0');
  if (read_all(fd, payload.data(), payload.size()) < payload.size()) {
    throw FrameError("stream ended inside a frame of " + std::to_string(payload.size()) + " bytes");
  }
  return payload;
}

void write_frame(int fd, std::string_view payload) {
  if (payload.size() > max_frame_bytes) {
    throw FrameError("payload of " + std::to_string(payload.size()) + " bytes, the limit is " +
                     std::to_string(max_frame_bytes));
  }
  write_all(fd, frame_header(payload.size()));
  write_all(fd, payload);
}

}  // namespace attest
