/* An attention kernel as a plugin of attest: a shared library that exports the four functions
 * below. Plain C, no other dependency. `attest run --backend ./libmine.so` judges it: the library
 * is loaded in a process of its own, so that whatever it does is the verdict of one case.
 * docs/plugins.md. */
#ifndef ATTEST_PLUGIN_H
#define ATTEST_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): C names. */

/* Raised when anything here changes. A plugin of another version is refused. */
#define ATTEST_PLUGIN_ABI 1

typedef enum attest_dtype {
  ATTEST_F32 = 0,
  ATTEST_F16 = 1,
  ATTEST_BF16 = 2,
  ATTEST_FP8_E4M3FN = 3,
  ATTEST_FP8_E4M3FNUZ = 4,
  ATTEST_INT32 = 5,
  ATTEST_INT64 = 6,
  ATTEST_UINT8 = 7,
  ATTEST_BOOL = 8
} attest_dtype;

/* One tensor argument under the kernel's parameter name. Strides count elements. Memory outside the
 * view holds guards and poison: a read of it shows in the numbers, a write is found. Only "out" (or
 * "output", "o", "o_extend") and scratch may be written, and pools where the call stores. */
typedef struct attest_tensor {
  const char* name;
  attest_dtype dtype;
  int32_t dims;
  const int64_t* shape;
  const int64_t* strides;
  void* data; /* element 0; NULL in attest_plugin_supports() */
} attest_tensor;

/* One scalar argument. Numbers, truth values (0, 1) and sizes stand in both fields. */
typedef struct attest_scalar {
  const char* name;
  double number;
  int64_t integer;
  const char* text; /* NULL where it is no text */
} attest_scalar;

/* The call as the framework would make it; the parameters are those of its signature
 * (docs/contracts.md). What is None there is absent here. A pair (window_size) is two scalars,
 * "window_size.0" and "window_size.1". */
typedef struct attest_call {
  const char* signature; /* "unified", "extend", ... */
  const attest_tensor* tensors;
  size_t tensor_count;
  const attest_scalar* scalars;
  size_t scalar_count;
  const char* form;  /* "2d", "3d" or "": the kernel chooses */
  int64_t kv_splits; /* 0: the kernel chooses */
} attest_call;

enum attest_result {
  ATTEST_OK = 0,
  ATTEST_NO = 1,    /* does not support the call, or refuses it with an error of its own */
  ATTEST_FAILED = 2 /* the machine failed: no memory, a device error */
};

/* ATTEST_PLUGIN_ABI. Called first; nothing else is where it differs. */
int attest_plugin_abi(void);

/* A JSON object: "name" ("mine.unified@cpu"), "version", "says", "capabilities" (what cases may be
 * drawn), "profile" (how the kernel rounds), and "available": false with a "reason" where this
 * machine cannot run it. docs/plugins.md lists the members. Lives as long as the library. */
const char* attest_plugin_describe(void);

/* Whether the kernel takes a call of these shapes: ATTEST_OK, or ATTEST_NO with the reason in
 * `why`, `why_size` bytes with the final 0. */
int attest_plugin_supports(const attest_call* call, char* why, size_t why_size);

/* Runs the kernel; the output is there when it returns. ATTEST_NO: the kernel refused the call. */
int attest_plugin_run(const attest_call* call, char* why, size_t why_size);

/* For plugins: an argument by name, or NULL. */
static inline const attest_tensor* attest_tensor_named(const attest_call* call, const char* name) {
  for (size_t i = 0; i < call->tensor_count; ++i) {
    if (strcmp(call->tensors[i].name, name) == 0) return &call->tensors[i];
  }
  return NULL;
}
static inline const attest_scalar* attest_scalar_named(const attest_call* call, const char* name) {
  for (size_t i = 0; i < call->scalar_count; ++i) {
    if (strcmp(call->scalars[i].name, name) == 0) return &call->scalars[i];
  }
  return NULL;
}

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* ATTEST_PLUGIN_H */
