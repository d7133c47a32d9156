#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attest {

/// `text` as one line that cannot command a terminal: control characters (C0, DEL, C1), line and
/// paragraph separators, overrides of the writing direction and bytes that are not UTF-8 become
/// "\n", "\x1b", "\u202e". Everything else stays, so it may be applied twice.
std::string printable(std::string_view text);

/// "a, b, c".
std::string joined(std::span<const std::string> words);

}  // namespace attest
