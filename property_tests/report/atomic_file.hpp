#pragma once

#include <filesystem>
#include <string_view>

namespace attest {

/// Replaces `path` by a file of exactly `text`: written beside it, synced, renamed; a reader or a
/// crash sees the old file or the new one. Missing folders are made. What is not a regular file (a
/// pipe, /dev/stdout) is written in place.
/// \throws std::system_error naming the file and the step; no part file is left behind.
void write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace attest
