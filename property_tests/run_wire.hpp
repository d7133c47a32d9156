#pragma once

#include <string>
#include <string_view>

#include "backends/backend.hpp"
#include "contracts/call.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// One launch as bytes between the judge and a worker. A request is one JSON object; a reply is the
/// length of a JSON object (8 bytes, little endian), the object, and the output's arrays as raw
/// little-endian float32 and bytes, so that every NaN keeps its payload.
struct RunRequest {
  std::string backend;  ///< full name
  Problem problem;
  Recipe recipe = Recipe::normal;
  std::uint64_t seed = 1;
  PoisonPlan poison;
  Call call;
  RunOptions options;
};

std::string encode_request(std::string_view backend, const Call& call, const TensorSource& source,
                           const RunOptions& options);
/// \throws BackendError for text that is not such a request.
RunRequest decode_request(std::string_view bytes);

std::string encode_result(const RunResult& result);
/// A reply that carries what the backend threw instead of a result.
std::string encode_error(std::string_view what);
/// A reply that says what the worker ran out of: the errno and where.
std::string encode_shortage(int error, std::string_view place);
/// A reply that says why no memory of the worker could hold a pool.
std::string encode_no_pool(std::string_view what);
/// \throws BackendError with the text of encode_error, ResourceError of encode_shortage,
/// PoolUnavailable of encode_no_pool; BackendError for bytes that are not such a reply.
RunResult decode_result(std::string_view bytes);

}  // namespace attest
