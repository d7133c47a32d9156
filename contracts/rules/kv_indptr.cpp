#include "contracts/rules/kv_indptr.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/kv_pages.hpp"
#include "contracts/rules/new_slots.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

constexpr std::int64_t described = 3;  // places put into words; the rest are counted

bool offsets_recorded(const KvPages& call, Report& report) {
  return recorded(call.kv_indptr, "kv_indptr", report);
}

bool indices_recorded(const KvPages& call, Report& report) {
  return offsets_recorded(call, report) && recorded(call.kv_indices, call.indices_name, report);
}

/// Entries of kv_indices that belong to request i, clipped to the array.
std::span<const std::int64_t> indices_of(const KvPages& call, std::size_t i) {
  const auto all = static_cast<std::int64_t>(call.kv_indices.values.size());
  const std::int64_t first = std::clamp<std::int64_t>(call.kv_indptr[i], 0, all);
  const std::int64_t last = std::clamp<std::int64_t>(call.kv_indptr[i + 1], first, all);
  return std::span(call.kv_indices.values)
      .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
}

/// Tokens of request i as the kernel counts them: whole pages but the last.
std::int64_t tokens_of(const KvPages& call, std::size_t i) {
  std::int64_t pages = 0;
  if (__builtin_sub_overflow(call.kv_indptr[i + 1], call.kv_indptr[i], &pages)) return -1;
  if (call.page_size == 1 || pages <= 0) return pages;
  std::int64_t tokens = 0;
  const bool overflow = __builtin_mul_overflow(pages - 1, call.page_size, &tokens) ||
                        __builtin_add_overflow(tokens, call.kv_last_page_lens[i], &tokens);
  return overflow ? -1 : tokens;
}

void never_decreases(const KvPages& call, const Truth& truth, Report& report) {
  if (!offsets_recorded(call, report)) return;
  for (std::size_t i = 1; i <= truth.problem.requests.size(); ++i) {
    if (call.kv_indptr[i] >= call.kv_indptr[i - 1]) continue;
    report.add(entry("kv_indptr", i), std::to_string(call.kv_indptr[i]),
               std::to_string(call.kv_indptr[i - 1]) + " or more, the entry before it");
  }
}

void stays_inside(const KvPages& call, const Truth& truth, Report& report) {
  if (!offsets_recorded(call, report)) return;
  const std::int64_t entries = call.kv_indices.size(0);
  for (std::size_t i = 0; i <= truth.problem.requests.size(); ++i) {
    if (call.kv_indptr[i] >= 0 && call.kv_indptr[i] <= entries) continue;
    report.add(entry("kv_indptr", i), std::to_string(call.kv_indptr[i]),
               "in [0, " + std::to_string(entries) + "], the entries of " +
                   std::string(call.indices_name));
  }
}

void counts_this_steps_tokens(const KvPages& call, const Truth& truth, Report& report) {
  if (!offsets_recorded(call, report)) return;
  if (call.page_size > 1 && !recorded(call.kv_last_page_lens, "kv_last_page_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    const std::int64_t tokens = tokens_of(call, i);
    if (tokens == call.tokens(r) || !length_counts(r, truth.problem)) continue;
    report.add(entry("kv_indptr", i + 1) + " - " + entry("kv_indptr", i), std::to_string(tokens),
               call.new_tokens ? length_text(r) : std::to_string(r.committed) + " committed");
  }
}

void last_page_is_filled(const KvPages& call, const Truth& truth, Report& report) {
  if (!recorded(call.kv_last_page_lens, "kv_last_page_lens", report)) return;
  const std::size_t lengths = call.kv_last_page_lens.values.size();
  for (std::size_t i = 0; i < std::min(lengths, truth.problem.requests.size()); ++i) {
    const Request& r = truth.problem.requests[i];
    const std::int64_t length = call.kv_last_page_lens[i];
    if (!length_counts(r, truth.problem) || (length >= 1 && length <= call.page_size)) continue;
    report.add(entry("kv_last_page_lens", i), std::to_string(length),
               call.page_size == 1 ? "1, the tokens of a page"
                                   : "in [1, " + std::to_string(call.page_size) + "]");
  }
}

void name_existing_pages(const KvPages& call, const Truth& truth, Report& report) {
  if (!indices_recorded(call, report)) return;
  const std::int64_t pages = call.num_pages;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const std::span<const std::int64_t> ids = indices_of(call, i);
    std::int64_t outside = 0;
    for (const std::int64_t id : ids) outside |= id | (pages - 1 - id);
    if (outside >= 0) continue;
    for (std::size_t j = 0; j < ids.size(); ++j) {
      if (ids[j] >= 0 && ids[j] < pages) continue;
      report.add(entry(call.indices_name, call.kv_indptr[i] + static_cast<std::int64_t>(j)),
                 std::to_string(ids[j]), "in [0, " + std::to_string(pages) + ")");
    }
  }
}

/// Whether `ids` are the slots of the request's first tokens, page by page without branches.
bool are_slots_of(std::span<const std::int64_t> ids, const SlotMap& slots, std::size_t i) {
  if (slots.page_size == 1) return std::equal(ids.begin(), ids.end(), slots.pages[i].begin());
  const auto page_size = static_cast<std::size_t>(slots.page_size);
  std::int64_t different = 0;
  for (std::size_t first = 0; first < ids.size(); first += page_size) {
    const std::int64_t slot = slots.slot(i, static_cast<std::int64_t>(first));
    const std::size_t count = std::min(page_size, ids.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      different |= ids[first + j] ^ (slot + static_cast<std::int64_t>(j));
    }
  }
  return different == 0;
}

/// First token of the request on page j of the call that lies elsewhere, or -1.
std::int64_t misplaced_token(const KvPages& call, const Truth& truth, std::size_t i, std::int64_t j,
                             std::int64_t page) {
  const std::int64_t end =
      std::min(call.tokens(truth.problem.requests[i]), (j + 1) * call.page_size);
  // Keys no new token sees may be evicted, and nothing reads them.
  const std::int64_t first = first_visible(truth.problem.model, truth.problem.requests[i]);
  for (std::int64_t t = std::max(j * call.page_size, first); t < end; ++t) {
    const std::int64_t slot = truth.slots.slot(i, t);
    if (slot / call.page_size != page || slot % call.page_size != t % call.page_size) return t;
  }
  return -1;
}

void name_the_requests_slots(const KvPages& call, const Truth& truth, Report& report) {
  if (!indices_recorded(call, report)) return;
  std::int64_t found = 0;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (!r.live) continue;
    const std::int64_t tokens = call.tokens(r);
    const auto pages =
        static_cast<std::size_t>(tokens / call.page_size + (tokens % call.page_size > 0 ? 1 : 0));
    const std::span<const std::int64_t> all = indices_of(call, i);
    const auto ids = all.first(std::min(all.size(), pages));
    if (call.page_size == 1 && are_slots_of(ids, truth.slots, i)) continue;
    for (std::size_t j = 0; j < ids.size(); ++j) {
      const auto page = static_cast<std::int64_t>(j);
      const std::int64_t token = misplaced_token(call, truth, i, page, ids[j]);
      if (token < 0 || ++found > described) continue;
      report.add(entry(call.indices_name, call.kv_indptr[i] + page), std::to_string(ids[j]),
                 std::to_string(truth.slots.slot(i, token) / call.page_size) + ", where token " +
                     std::to_string(token) + " of request " + std::to_string(i) + " is");
    }
  }
  if (found > described) report.add_more(found - described);
}

void give_each_request_its_own_new_slots(const KvPages& call, const Truth& truth, Report& report) {
  if (!indices_recorded(call, report)) return;
  NewSlots slots(call.indices_name);
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    const std::span<const std::int64_t> ids = indices_of(call, i);
    for (std::int64_t t = r.committed; r.live && t < r.kv_len();) {
      const std::int64_t count = std::min(call.page_size - t % call.page_size, r.kv_len() - t);
      const auto j = static_cast<std::size_t>(t / call.page_size);
      if (j >= ids.size()) break;
      slots.add(i, t, ids[j], t % call.page_size, count);
      t += count;
    }
  }
  slots.report_shared(report);
}

void have_no_slack(const KvPages& call, const Truth& truth, Report& report) {
  if (!offsets_recorded(call, report)) return;
  const std::int64_t used = call.kv_indptr[truth.problem.requests.size()];
  if (call.kv_indices.size(0) <= used) return;
  report.add(std::string(call.indices_name) + ".shape[0]", std::to_string(call.kv_indices.size(0)),
             std::to_string(used) + ", the last entry of kv_indptr");
}

template <auto Check, class CallType>
void on_pages(const CallType& call, const Truth& truth, Report& report) {
  Check(kv_pages(call), truth, report);
}

constexpr Rule rules[] = {
    {.id = "kv_indptr.never_decreases",
     .says = "kv_indptr never decreases",
     .why = "a negative length makes the kernel's loop bounds nonsense",
     .source = "sgl-project/sglang#27485",
     .severity = Severity::fault,
     .mla_decode = on_pages<never_decreases, MlaDecodeCall>,
     .batch_prefill = on_pages<never_decreases, BatchPrefillCall>,
     .paged_ragged = on_pages<never_decreases, PagedRaggedCall>,
     .legacy_extend = on_pages<never_decreases, LegacyExtendCall>},
    {.id = "kv_indptr.stays_inside_kv_indices",
     .says = "kv_indptr lies in [0, len(kv_indices)]",
     .why = "entries behind the array are read as slots; the fault comes far away",
     .source = "sgl-project/sglang#27485; sgl-project/sglang#26753",
     .severity = Severity::fault,
     .mla_decode = on_pages<stays_inside, MlaDecodeCall>,
     .batch_prefill = on_pages<stays_inside, BatchPrefillCall>,
     .paged_ragged = on_pages<stays_inside, PagedRaggedCall>,
     .legacy_extend = on_pages<stays_inside, LegacyExtendCall>},
    {.id = "kv_indptr.counts_this_steps_tokens",
     .says = "kv_indptr[i + 1] - kv_indptr[i] is the committed length plus this step's tokens; "
             "legacy_extend's is the committed length alone",
     .why = "the last row stands at the last key: short by n, every row loses its n newest keys; "
            "legacy_extend sees the new tokens twice when they are counted",
     .source = "sgl-project/sglang#26512",
     .mla_decode = on_pages<counts_this_steps_tokens, MlaDecodeCall>,
     .batch_prefill = on_pages<counts_this_steps_tokens, BatchPrefillCall>,
     .paged_ragged = on_pages<counts_this_steps_tokens, PagedRaggedCall>,
     .legacy_extend = on_pages<counts_this_steps_tokens, LegacyExtendCall>},
    {.id = "kv_last_page_lens.fits_the_page",
     .says = "kv_last_page_lens[i] is the number of tokens in request i's last page",
     .why = "a sequence length in its place adds keys that were never written",
     .source = "vllm-project/vllm#31282",
     .mla_decode = on_pages<last_page_is_filled, MlaDecodeCall>,
     .paged_ragged = on_pages<last_page_is_filled, PagedRaggedCall>},
    {.id = "kv_indices.name_existing_pages",
     .says = "kv_indices (kv_page_indices) are in [0, num_pages) of the cache",
     .why = "kernels read K and V through them without a bounds check",
     .source = "sgl-project/sglang#24587",
     .severity = Severity::fault,
     .mla_decode = on_pages<name_existing_pages, MlaDecodeCall>,
     .batch_prefill = on_pages<name_existing_pages, BatchPrefillCall>,
     .paged_ragged = on_pages<name_existing_pages, PagedRaggedCall>,
     .legacy_extend = on_pages<name_existing_pages, LegacyExtendCall>},
    {.id = "kv_indices.name_the_requests_slots",
     .says = "entry t of request i is the slot of its token t",
     .why = "a shifted, stale or foreign entry silently attends to other keys",
     .source = "sgl-project/sglang#27485",
     .mla_decode = on_pages<name_the_requests_slots, MlaDecodeCall>,
     .batch_prefill = on_pages<name_the_requests_slots, BatchPrefillCall>,
     .paged_ragged = on_pages<name_the_requests_slots, PagedRaggedCall>,
     .legacy_extend = on_pages<name_the_requests_slots, LegacyExtendCall>},
    {.id = "kv_indices.give_each_request_its_own_new_slots",
     .says = "no two live requests have a new token in the same slot",
     .why = "both store there before attention runs, and one of them reads the other's key",
     .source = "sgl-project/sglang#25529",
     .mla_decode = on_pages<give_each_request_its_own_new_slots, MlaDecodeCall>,
     .batch_prefill = on_pages<give_each_request_its_own_new_slots, BatchPrefillCall>,
     .paged_ragged = on_pages<give_each_request_its_own_new_slots, PagedRaggedCall>},
    {.id = "kv_indices.have_no_slack",
     .says = "kv_indices ends with the last request's last key",
     .why = "the split heuristic takes the batch's KV length from its size",
     .source = "ROCm/aiter aiter/mla.py: total_kv = kv_indices.shape[0]",
     .severity = Severity::policy,
     .mla_decode = on_pages<have_no_slack, MlaDecodeCall>},
};

}  // namespace

std::span<const Rule> kv_indptr_rules() { return rules; }

}  // namespace attest
