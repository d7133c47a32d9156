#pragma once

#include <cstddef>

namespace attest {

inline constexpr std::size_t in_flight_lines = 64;
inline constexpr std::size_t in_flight_line_bytes = 1000;
inline constexpr std::size_t mirrored_bytes = in_flight_lines * (in_flight_line_bytes + 1);

/// From now on every line of InFlight also stands at `to`, ended by a newline, zeros behind it.
/// `to` holds mirrored_bytes zeros and outlives the process's last case. For in_flight_file.cpp.
void mirror_lines(std::byte* to);

}  // namespace attest
