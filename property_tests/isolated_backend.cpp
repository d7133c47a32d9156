#include "property_tests/isolated_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <new>

#include "backends/worker/frame.hpp"
#include "backends/worker/worker_process.hpp"
#include "backends/worker/worker_program.hpp"
#include "contracts/resource_error.hpp"
#include "contracts/verdict.hpp"
#include "memory/pool_memory.hpp"
#include "property_tests/run_wire.hpp"

namespace attest {
namespace {

/// This thread's worker for a command line. Workers die with the thread that started them, so they
/// belong to it.
WorkerProcess& worker_of_this_thread(const std::vector<std::string>& argv) {
  thread_local std::map<std::vector<std::string>, std::unique_ptr<WorkerProcess>> workers;
  std::unique_ptr<WorkerProcess>& worker = workers[argv];
  if (!worker) worker = std::make_unique<WorkerProcess>(argv);
  return *worker;
}

std::string in_words(const WorkerAnswer& answer) {
  return answer.last_words.empty() ? answer.how
                                   : answer.how + "; it last wrote: " + answer.last_words;
}

std::string answer_request(std::string_view bytes, std::span<const Backend* const> backends) {
  const RunRequest request = decode_request(bytes);
  const auto backend = std::find_if(backends.begin(), backends.end(),
                                    [&](const Backend* b) { return b->name() == request.backend; });
  if (backend == backends.end()) throw BackendError("worker: no backend " + request.backend);
  const TensorSource source(request.problem, request.recipe, request.seed, request.poison);
  return encode_result((*backend)->run(request.call, source, request.options));
}

}  // namespace

IsolatedBackend::IsolatedBackend(const Backend& inner, std::vector<std::string> argv,
                                 std::chrono::milliseconds limit)
    : inner_(inner), argv_(std::move(argv)), limit_(limit) {
  if (argv_.empty()) argv_ = worker_program();
}

RunResult IsolatedBackend::run(const Call& call, const TensorSource& source,
                               const RunOptions& options) const {
  WorkerProcess& worker = worker_of_this_thread(argv_);
  const std::string request = encode_request(inner_.name(), call, source, options);
  const WorkerAnswer answer = worker.ask(request, limit_);
  switch (answer.outcome) {
    case WorkerOutcome::crashed:
      throw WorkerCrashed("the kernel's process died: " + in_words(answer));
    case WorkerOutcome::hung:
      throw WorkerHung(in_words(answer));
    case WorkerOutcome::reply:
      break;
  }
  return decode_result(answer.reply);
}

int worker_main(int fd, std::span<const Backend* const> backends) try {
  while (const std::optional<std::string> request = read_frame(fd)) {
    std::string reply;
    try {
      reply = answer_request(*request, backends);
    } catch (const ResourceError& error) {
      reply = encode_shortage(error.code().value(), error.place());
    } catch (const PoolUnavailable& error) {
      reply = encode_no_pool(error.what());
    } catch (const std::bad_alloc&) {
      reply = encode_shortage(ENOMEM, "memory of a launch");
    } catch (const std::exception& error) {
      reply = encode_error(error.what());
    }
    write_frame(fd, reply);
  }
  return 0;
} catch (const FrameError& error) {
  std::fprintf(stderr, "worker: %s\n", error.what());
  return exit_internal;
}

}  // namespace attest
