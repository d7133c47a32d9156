#pragma once

namespace attest {

// Which sanitizer this file is compiled with: g++ says so by a macro, clang and g++ from 14 on by a
// feature.
#if defined(__has_feature)
inline constexpr bool with_address_sanitizer = __has_feature(address_sanitizer);
inline constexpr bool with_thread_sanitizer = __has_feature(thread_sanitizer);
#else
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool with_address_sanitizer = true;
#else
inline constexpr bool with_address_sanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool with_thread_sanitizer = true;
#else
inline constexpr bool with_thread_sanitizer = false;
#endif
#endif

/// A sanitizer keeps terabytes of addresses for itself: no limit on them (`ulimit -v`) can be
/// tried.
inline constexpr bool needs_all_addresses = with_address_sanitizer || with_thread_sanitizer;

}  // namespace attest
