#include "backends/hip/graph_faults.hpp"

#include <string>

#include "backends/hip/hip_backend.hpp"
#include "backends/hip/kernels/faulty_launches.hpp"

namespace attest::hip {
namespace {

using enum GraphFault;

// One row each: id, fault, what the kernel does with it, splits, what the launcher does, source.
constexpr GraphFaultRow rows[] = {
    {"lengths_added_on_the_host", lengths_added_on_the_host, PlantedFault::none, 3,
     "lengths are a sum made on the host before the replay, an array that the graph does not know",
     "modelled on sgl-project/sglang#36541, where one of two call sites adds on the host"},
    {"maximum_of_capture", maximum_of_capture, PlantedFault::bounded_by_the_maximum, 3,
     "the kernel stops at max_seqlen_k, which is that of the capture",
     "modelled on vllm-project/vllm#32312, where the bound is of an earlier step"},
    {"partitions_of_capture", partitions_of_capture, PlantedFault::partitions_of_32_keys, 128,
     "partitions of a fixed size, as many as the capture needed", "vllm-project/vllm#53384"},
    {"window_of_capture", window_of_capture, PlantedFault::none, 3,
     "a window that covers the batch is switched off, judged by the capture",
     "modelled: a launch specialised by its lengths"},
    {"table_laid_out_by_the_batch", table_laid_out_by_the_batch, PlantedFault::none, 3,
     "the table is written for the batch's longest request and read as the capture's was",
     "vllm-project/vllm#27114: metadata for another kernel than the graph holds"},
    {"padding_lengths_stale", padding_lengths_stale, PlantedFault::none, 3,
     "padded lanes keep their lengths of the capture", "sgl-project/sglang#22958"},
    {"padding_offsets_stale", padding_offsets_stale, PlantedFault::none, 3,
     "padded lanes keep offsets that look valid and are not",
     "flashinfer-ai/flashinfer#4016: work entries behind the real ones are never set"},
    {"padding_takes_lane_0", padding_takes_lane_0, PlantedFault::none, 3,
     "the slots of padded lanes are those of lane 0", "sgl-project/sglang#25529"},
    {"workspace_given_back", workspace_given_back, PlantedFault::none, 3,
     "a larger eager call lets the workspace grow; the graph writes into the old one",
     "modelled: a workspace that is reallocated between capture and replay"},
};

}  // namespace

std::span<const GraphFaultRow> all_graph_faults() { return rows; }

std::unique_ptr<Backend> graph_fault_backend(const GraphFaultRow& row) {
  static const std::shared_ptr<const Engine> host = host_engine(32);
  KernelVariant variant;
  variant.launch = faulty_launch_on_host(row.kernel);
  variant.splits = row.splits;
  variant.graph = row.fault;
  variant.says = "our HIP kernel, but " + std::string(row.says);
  return std::make_unique<HipBackend>("faulty-graph_" + std::string(row.id), Signature::unified,
                                      host, std::move(variant));
}

}  // namespace attest::hip
