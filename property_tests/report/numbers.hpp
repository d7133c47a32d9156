#pragma once

#include <cstdint>
#include <string>

namespace attest {

/// Numbers for people.

/// Three significant digits, no exponent below a million: "0.412", "85.1", "1230", "3.1e+07",
/// "nan".
std::string short_number(double value);
/// "0.41 s", "12.3 s", "3 min 05 s", "2 h 07 min".
std::string duration(double seconds);
/// "61 %"; a share below one half percent that is not zero is "<1 %".
std::string percent(double part, double whole);
/// "512 MiB", "3.2 GiB".
std::string bytes_in_words(double bytes);
/// "1 case", "7 cases".
std::string counted(std::int64_t count, const std::string& noun);

}  // namespace attest
