#pragma once

#include <filesystem>
#include <string_view>

namespace attest {

/// Replaces `path` by a file of exactly `text`: written beside it, synced, renamed; a reader or a
/// crash sees the old file or the new one. A symbolic link stays and what it points to is replaced.
/// What is not a regular file (a pipe) is written in place, and an open descriptor of a process
/// (/dev/stdout, /proc/self/fd/1) continued. Missing folders are not made: a mistyped path is an
/// error.
/// \throws std::system_error naming the file and the step; no part file is left behind.
void write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace attest
