#pragma once

// The HIP calls that device_implementation.hpp makes, on CUDA. HIP's own header for CUDA does not
// compile with CUDA 13; this is the small part of it that is needed.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): HIP chose these names.
namespace attest::hip::inline on_cuda {

inline constexpr std::string_view api_prefix = "cuda";
inline constexpr std::string_view engine_name = "cuda";

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipGraph_t = cudaGraph_t;
using hipGraphExec_t = cudaGraphExec_t;
using hipGraphNode_t = cudaGraphNode_t;
using hipDeviceProp_t = cudaDeviceProp;
inline constexpr hipError_t hipSuccess = cudaSuccess;
inline constexpr auto hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
inline constexpr auto hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
inline constexpr auto hipMemcpyDeviceToDevice = cudaMemcpyDeviceToDevice;
inline constexpr auto hipStreamCaptureModeThreadLocal = cudaStreamCaptureModeThreadLocal;

inline const char* hipGetErrorName(hipError_t e) { return cudaGetErrorName(e); }
inline const char* hipGetErrorString(hipError_t e) { return cudaGetErrorString(e); }
inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline hipError_t hipRuntimeGetVersion(int* v) { return cudaRuntimeGetVersion(v); }
inline hipError_t hipDriverGetVersion(int* v) { return cudaDriverGetVersion(v); }
inline hipError_t hipGetDeviceCount(int* n) { return cudaGetDeviceCount(n); }
inline hipError_t hipSetDevice(int i) { return cudaSetDevice(i); }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* p, int i) {
  return cudaGetDeviceProperties(p, i);
}
inline hipError_t hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return cudaMemGetInfo(free, total);
}
inline hipError_t hipMalloc(void** p, std::size_t bytes) { return cudaMalloc(p, bytes); }
inline hipError_t hipFree(void* p) { return cudaFree(p); }
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                 hipStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, stream);
}
inline hipError_t hipStreamCreate(hipStream_t* s) { return cudaStreamCreate(s); }
inline hipError_t hipStreamDestroy(hipStream_t s) { return cudaStreamDestroy(s); }
inline hipError_t hipStreamSynchronize(hipStream_t s) { return cudaStreamSynchronize(s); }
inline hipError_t hipEventCreate(hipEvent_t* e) { return cudaEventCreate(e); }
inline hipError_t hipEventDestroy(hipEvent_t e) { return cudaEventDestroy(e); }
inline hipError_t hipEventRecord(hipEvent_t e, hipStream_t s) { return cudaEventRecord(e, s); }
inline hipError_t hipEventSynchronize(hipEvent_t e) { return cudaEventSynchronize(e); }
inline hipError_t hipEventElapsedTime(float* ms, hipEvent_t a, hipEvent_t b) {
  return cudaEventElapsedTime(ms, a, b);
}
inline hipError_t hipStreamBeginCapture(hipStream_t s, cudaStreamCaptureMode mode) {
  return cudaStreamBeginCapture(s, mode);
}
inline hipError_t hipStreamEndCapture(hipStream_t s, hipGraph_t* graph) {
  return cudaStreamEndCapture(s, graph);
}
inline hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t*,
                                      char*, std::size_t) {
  return cudaGraphInstantiate(exec, graph, 0);
}
inline hipError_t hipGraphDestroy(hipGraph_t graph) { return cudaGraphDestroy(graph); }
inline hipError_t hipGraphExecDestroy(hipGraphExec_t exec) { return cudaGraphExecDestroy(exec); }
inline hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t s) {
  return cudaGraphLaunch(exec, s);
}

// Where the two say the same differently.
inline std::string architecture_of(const hipDeviceProp_t& properties) {
  return "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
}
inline std::size_t shared_limit_of(const hipDeviceProp_t& properties) {
  return properties.sharedMemPerBlockOptin;
}
inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}
inline constexpr std::string_view product = "CUDA";

}  // namespace attest::hip::inline on_cuda
// NOLINTEND(readability-identifier-naming)
