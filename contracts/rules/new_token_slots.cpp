#include "contracts/rules/new_token_slots.hpp"

#include <algorithm>
#include <string>

namespace attest {
namespace {

/// Consecutive slots of consecutive tokens of one request.
struct Held {
  std::int64_t first, end;  ///< slots
  std::size_t request;
  std::int64_t token;  ///< in slot `first`
  bool fresh;          ///< stored by this step
};

/// Only listed slots can collide: a placement hands each out once.
std::vector<Held> held_slots(const Problem& p) {
  std::vector<Held> held;
  for (std::size_t i = 0; i < p.pool.slots.size(); ++i) {
    const Request& r = p.requests[i];
    std::int64_t token = 0;
    for (const SlotRun& run : p.pool.slots[i]) {
      const std::int64_t old = std::clamp<std::int64_t>(r.committed - token, 0, run.count);
      const std::int64_t middle = run.first + old, end = run.first + run.count;
      if (r.live && run.first >= 0 && old > 0) {
        held.push_back({run.first, middle, i, token, /*fresh=*/false});
      }
      if (r.live && run.first >= 0 && old < run.count) {
        held.push_back({middle, end, i, token + old, /*fresh=*/true});
      }
      token += run.count;
    }
  }
  std::ranges::sort(held, {}, &Held::first);
  return held;
}

std::string words(const Held& held, std::int64_t slot) {
  return std::string(held.fresh ? "new token " : "token ") +
         std::to_string(held.token + slot - held.first) + " of request " +
         std::to_string(held.request);
}

void report_shared(const Held* before, const Held& held, Report& report) {
  if (before == nullptr || held.first >= before->end) return;
  const Held& fresh = held.fresh ? held : *before;
  const Held& other = held.fresh ? *before : held;
  report.add("slot " + std::to_string(held.first), words(other, held.first) + "'s",
             "a slot nobody holds, it is given to " + words(fresh, held.first));
}

void further(const Held& held, const Held*& reach) {
  if (reach == nullptr || held.end > reach->end) reach = &held;
}

template <class CallType>
void have_slots_of_their_own(const CallType&, const Truth& truth, Report& report) {
  const std::vector<Held> all = held_slots(truth.problem);
  const Held* reach = nullptr;        // of those before, the one that ends last
  const Held* fresh_reach = nullptr;  // the same of new tokens
  for (const Held& held : all) {
    report_shared(held.fresh ? reach : fresh_reach, held, report);
    further(held, reach);
    if (held.fresh) further(held, fresh_reach);
  }
}

constexpr Rule rules[] = {
    {.id = "new_tokens.have_slots_of_their_own",
     .says = "the scheduler gives each new token of a live request a slot that holds nothing else",
     .why = "the step stores there first: whoever else has the slot then attends to a stranger's "
            "key, and no kernel can be right",
     .source = "sgl-project/sglang#25529",
     .unified = have_slots_of_their_own<UnifiedCall>,
     .extend = have_slots_of_their_own<ExtendCall>,
     .decode = have_slots_of_their_own<DecodeCall>,
     .mla_decode = have_slots_of_their_own<MlaDecodeCall>,
     .batch_prefill = have_slots_of_their_own<BatchPrefillCall>,
     .paged_ragged = have_slots_of_their_own<PagedRaggedCall>,
     .legacy_extend = have_slots_of_their_own<LegacyExtendCall>,
     .vllm_cpu = have_slots_of_their_own<VllmCpuCall>},
};

}  // namespace

std::span<const Rule> new_token_slots_rules() { return rules; }

}  // namespace attest
