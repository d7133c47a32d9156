#pragma once

#include <string>

namespace attest {

/// Value of ATTEST_REQUIRE, or empty.
std::string required_engines();

/// Refuses words of ATTEST_KV_MEMORY and ATTEST_AMX that say nothing, before a kernel is blamed for
/// them or nobody reads them. \throws std::invalid_argument
void check_environment();

/// The shell words that start this program again from the current directory: as it was called, with
/// the ATTEST_AMX it was given.
std::string program_of(const char* argv0);

/// Names on standard error the cases that killed runs of this user were judging, and keeps this
/// run's where the next one finds them: in attest-<uid> of the temporary directory.
void report_killed_runs();

}  // namespace attest
