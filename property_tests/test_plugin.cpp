// The plugin of foreign_backend_test.cpp: the example's kernel, and the ways to misbehave. What it
// does is in ATTEST_TEST_PLUGIN, which worker processes inherit.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "backends/plugin/attest_plugin.h"

// docs/examples/my_plugin/my_plugin.c under these names.
extern "C" {
int honest_abi();
const char* honest_describe();
int honest_supports(const attest_call* call, char* why, size_t why_size);
int honest_run(const attest_call* call, char* why, size_t why_size);
}

namespace {

bool asked_to(std::string_view what) {
  const char* const word = std::getenv("ATTEST_TEST_PLUGIN");
  return word != nullptr && what == word;
}

void crash_or_hang(const char* where) {
  if (asked_to(std::string(where) + "_crashes")) {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would turn it into an exit status
    raise(SIGSEGV);
  }
  while (asked_to(std::string(where) + "_hangs")) pause();
}

/// Which launch of all processes this is, from 1: each adds a byte to ATTEST_TEST_LAUNCHES.
long launch_number() {
  const char* const file = std::getenv("ATTEST_TEST_LAUNCHES");
  const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (write(fd, ".", 1) != 1) std::abort();
  const long number = static_cast<long>(lseek(fd, 0, SEEK_END));
  close(fd);
  return number;
}

[[maybe_unused]] void fail_twice() {
  const long number = launch_number();
  if (number == 601) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (number != 1400) return;
  for (;;) pause();
}

/// Proof that code of this library ran, where ATTEST_TEST_LOADED names a file.
void leave_a_mark() {
  const char* const file = std::getenv("ATTEST_TEST_LOADED");
  if (file != nullptr) close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

struct Constructor {
  Constructor() {
    leave_a_mark();
    crash_or_hang("constructor");
  }
} constructor;

}  // namespace

extern "C" {

int attest_plugin_abi() { return asked_to("lies") ? 7 : honest_abi(); }

const char* attest_plugin_describe() {
  if (asked_to("null")) return nullptr;
  if (asked_to("no_json")) return "a kernel";
  if (asked_to("unknown_member")) {
    return R"({"name": "a.unified@cpu", "version": "1", "capabilities": {"signature": "unified",
               "q_dtypes": ["bf16"], "kv_dtypes": ["bf16"], "windows": true}})";
  }
  if (asked_to("bad_name")) return R"({"name": "mine", "version": "1"})";
  if (asked_to("bad_profile")) {
    return R"({"name": "a.unified@cpu", "version": "1", "capabilities": {"signature": "unified",
               "q_dtypes": ["bf16"], "kv_dtypes": ["bf16"]}, "profile": {"pdtype": "f32"}})";
  }
  if (asked_to("no_profile")) {
    return R"({"name": "a.unified@cpu", "version": "1", "capabilities": {"signature": "unified",
               "q_dtypes": ["bf16"], "kv_dtypes": ["bf16"]}, "profile": {"z_limit": {"x": 1}}})";
  }
  return honest_describe();
}

int attest_plugin_supports(const attest_call* call, char* why, size_t size) {
  crash_or_hang("supports");
  if (asked_to("unknown_answer")) return 99;
  if (asked_to("no")) {
    strncpy(why, "not today", size - 1);
    return ATTEST_NO;
  }
  return honest_supports(call, why, size);
}

#ifndef WITHOUT_RUN
int attest_plugin_run(const attest_call* call, char* why, size_t size) {
  crash_or_hang("run");
  if (asked_to("fails_twice")) fail_twice();
  if (asked_to("throws")) throw std::runtime_error("a kernel's own trouble");
  if (asked_to("throws_an_int")) throw 3;
  if (asked_to("exits")) _exit(3);
  if (asked_to("unknown_result")) return 42;
  if (asked_to("refuses")) {
    strncpy(why, "head_dim is odd", size - 1);
    return ATTEST_NO;
  }
  const int result = honest_run(call, why, size);
  const attest_tensor* const out = attest_tensor_named(call, "out");
  if (asked_to("writes_past_out")) {
    const int64_t end = (out->shape[0] - 1) * out->strides[0] + out->strides[0];
    static_cast<uint16_t*>(out->data)[end] = 1;
  }
  const attest_tensor* const q = attest_tensor_named(call, "q");
  if (asked_to("writes_to_q")) static_cast<uint16_t*>(q->data)[0] ^= 1;
  const attest_tensor* const k = attest_tensor_named(call, "k");
  if (asked_to("writes_before_k")) static_cast<uint16_t*>(k->data)[-1] = 1;
  return result;
}
#endif

}  // extern "C"
