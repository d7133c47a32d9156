// A kernel of one's own under attest's judge, outside the tree. docs/your_kernel.md walks through
// it. `my_kernel bug` runs it with a causal mask one key too long.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "memory/host_tensors.hpp"
#include "memory/kv_pool.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

using namespace attest;

namespace {

/// The kernel: paged attention over one layer, bf16 in, float sums, one row and head at a time.
struct Kernel {
  const UnifiedCall& call;
  const std::byte *q, *k, *v;
  std::byte* out;
  std::int64_t extra_key;

  static float load(const std::byte* base, std::int64_t element) {
    return decode(Dtype::bf16, reinterpret_cast<const std::uint16_t*>(base)[element]);
  }

  std::int64_t element(const TensorMeta& pool, std::size_t request, std::int64_t token,
                       std::int64_t head) const {
    const std::int64_t page_size = pool.size(1);
    const std::int64_t page =
        call.block_table.at(request, static_cast<std::size_t>(token / page_size));
    return page * pool.stride(0) + token % page_size * pool.stride(1) + head * pool.stride(2);
  }

  void row(std::size_t request, std::int64_t row, std::int64_t head, std::int64_t keys) const {
    const std::int64_t kv_head = head / (call.q.size(1) / call.k.size(2));
    const std::int64_t q_at = row * call.q.stride(0) + head * call.q.stride(1);
    std::vector<float> weight(static_cast<std::size_t>(keys));
    for (std::int64_t t = 0; t < keys; ++t) {
      const std::int64_t k_at = element(call.k, request, t, kv_head);
      float sum = 0;
      for (std::int64_t d = 0; d < call.q.size(2); ++d)
        sum += load(q, q_at + d) * load(k, k_at + d);
      weight[static_cast<std::size_t>(t)] = sum * static_cast<float>(call.softmax_scale);
    }
    const float top = *std::max_element(weight.begin(), weight.end());
    float total = 0;
    for (float& w : weight) total += w = std::exp(w - top);
    std::vector<float> sums(static_cast<std::size_t>(call.out.size(2)));
    for (std::int64_t t = 0; t < keys; ++t) {
      const std::int64_t v_at = element(call.v, request, t, kv_head);
      for (std::size_t d = 0; d < sums.size(); ++d) {
        sums[d] +=
            weight[static_cast<std::size_t>(t)] * load(v, v_at + static_cast<std::int64_t>(d));
      }
    }
    const std::int64_t out_at = row * call.out.stride(0) + head * call.out.stride(1);
    for (std::size_t d = 0; d < sums.size(); ++d) {
      reinterpret_cast<std::uint16_t*>(out)[out_at + static_cast<std::int64_t>(d)] =
          static_cast<std::uint16_t>(encode(Dtype::bf16, sums[d] / total));
    }
  }

  void run() const {
    for (std::size_t i = 0; i + 1 < call.cu_seqlens_q.values.size(); ++i) {
      const std::int64_t first = call.cu_seqlens_q[i];
      const std::int64_t rows = call.cu_seqlens_q[i + 1] - first;
      for (std::int64_t r = 0; r < rows; ++r) {
        // Causal, bottom right: the last row sees every key.
        const std::int64_t keys = call.seqused_k[i] - rows + r + 1 + (r + 1 < rows ? extra_key : 0);
        for (std::int64_t head = 0; head < call.q.size(1); ++head) row(i, first + r, head, keys);
      }
    }
  }
};

/// What attest must know about it: its name, what it can do, how it rounds, how to run it.
class MyKernel : public Backend {
 public:
  explicit MyKernel(bool bug) : extra_key_(bug ? 1 : 0) {
    can_.signature = Signature::unified;  // only cases of these features are drawn
    can_.window = can_.softcap = can_.sinks = can_.distinct_v_head_dim = false;
    rounds_.implementation = "mine.unified";
    rounds_.p_dtype = Dtype::f32;  // weights are not rounded before they meet V
  }
  std::string_view name() const override { return "mine.unified@cpu"; }
  std::string_view says() const override { return "the example of docs/your_kernel.md"; }
  const Capabilities& capabilities() const override { return can_; }
  const NumericsProfile& profile() const override { return rounds_; }
  Answer available() const override { return {}; }
  Answer supports(const Call& call) const override {
    const auto* unified = std::get_if<UnifiedCall>(&call);
    if (!unified) return Answer::no("only unified calls");
    if (unified->k.stride(3) != 1 || unified->v.stride(3) != 1) return Answer::no("rows not dense");
    return {};
  }
  RunResult run(const Call& any, const TensorSource& source,
                const RunOptions& options) const override {
    const auto& call = std::get<UnifiedCall>(any);
    // The tensors of the case, poison around them. A kernel of a device copies them from here.
    const GuardedBuffer q = make_q(source, call.q);
    const KvPool k(source, PoolHalf::k, call.k, Stored::committed_and_new);
    const KvPool v(source, PoolHalf::v, call.v, Stored::committed_and_new);
    const GuardedBuffer out = make_output(call.out, options.sentinel);
    Kernel{call, q.data(), k.base(), v.base(), out.data(), extra_key_}.run();
    RunResult result;
    result.out = read_output(out, call.out, options.sentinel);
    result.engine = "cpu";
    for (const auto& damage :
         {q.damage(), k.damage({}), v.damage({}), output_damage(out, call.out, options.sentinel)}) {
      if (damage) result.damage.push_back(*damage);
    }
    return result;
  }

 private:
  Capabilities can_;
  NumericsProfile rounds_;
  std::int64_t extra_key_;
};

}  // namespace

int main(int argc, char** argv) {
  const MyKernel kernel(argc > 1 && std::string_view(argv[1]) == "bug");
  int failures = 0;
  for (std::uint64_t index = 0; index < 40; ++index) {
    const Case c = generate(
        1, index,
        {.signature = Signature::unified, .capabilities = &kernel.capabilities(), .max_kv = 128});
    const Judgement judged = judge(c, kernel);
    if (judged.verdict == Verdict::pass) continue;
    ++failures;
    std::cout << "case " << index << ": " << attest::name(judged.verdict) << " by " << judged.reason
              << "\n  " << judged.diagnosis << "\n";
  }
  std::cout << failures << " of 40 cases failed\n";
  return failures == 0 ? 0 : 1;
}
