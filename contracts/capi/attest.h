/* C interface of libattest: check one captured call. Plain C, versioned, no other dependency.
 * Every function is safe to call from any thread. Strings are UTF-8. */
#ifndef ATTEST_CAPI_ATTEST_H
#define ATTEST_CAPI_ATTEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function here changes; compare with attest_abi_version() after loading. */
#define ATTEST_ABI_VERSION 1

/* ABI version of the loaded library. */
int attest_abi_version(void);

/* Checks one captured call: a JSON object as `attest check` reads it (docs/captured_calls.md),
 * `size` bytes. Returns the exit code `attest check` would give: 0 no finding rejects, 2 rejected,
 * 3 the signature or its values are not there to judge, 65 bad input, 70 internal. *report receives
 * a JSON object {"verdict", "reason", "findings": [{"rule", "severity", "where", "got",
 * "expected"}]}, or
 * {"error": ...}; free it with attest_free. "reason" is absent when the verdict is pass. report may
 * be NULL. */
int attest_check_json(const char* json, size_t size, char** report);

/* Frees a report. NULL is fine. */
void attest_free(char* report);

#ifdef __cplusplus
}
#endif

#endif /* ATTEST_CAPI_ATTEST_H */
