// The second batch of faults that were written after the oracles and the hypotheses were fixed, by
// somebody who had read neither: the softmax, the factors, the merge of the splits.

#include "backends/faulty/faults.hpp"

namespace attest {

std::vector<KernelFault> second_softmax_faults() {
  using enum Signature;
  return {
      {"cap_times_the_score",
       Fault::cap_times_the_score,
       "the score is multiplied with the tanh of its ratio to the cap, instead of the cap",
       "a softcap",
       "unslothai/unsloth-zoo#593",
       {extend, batch_prefill, vllm_cpu}},
      {"half_not_rescaled",
       Fault::half_not_rescaled,
       "a new maximum rescales the first half of the output",
       "more than 64 keys, and values of more than 64 elements",
       "modelled: one of two warp groups that does not get the factor",
       {unified, decode, mla_decode}},
      {"sum_in_bf16",
       Fault::sum_in_bf16,
       "the softmax sum is rounded to bf16 after each tile",
       "every call",
       "modelled: a sum in the type of the probabilities",
       {decode, batch_prefill, vllm_cpu}},
      {"v_descale_inverted",
       Fault::v_descale_inverted,
       "V is divided by its factor",
       "a v_descale other than 1",
       "modelled: one of two conventions of a factor",
       {unified, mla_decode, batch_prefill, paged_ragged}},
      {"sink_not_shifted",
       Fault::sink_not_shifted,
       "the sink's exponential is not taken relative to the maximum",
       "sinks, and a maximum other than 0",
       "modelled on fla-org/flash-linear-attention#831: a sink that is merged behind the loop",
       {unified, extend, decode}},
      {"split_maxima_in_bf16",
       Fault::split_maxima_in_bf16,
       "splits are weighed by maxima that are stored in bf16",
       "more than 64 keys, and splits whose maxima differ",
       "modelled: partial results in the output's type",
       {unified, decode, paged_ragged}},
  };
}

}  // namespace attest
