#include <algorithm>

#include "property_tests/fault_edits.hpp"

namespace attest {

bool mla_verify_length_configured(const Problem& problem, const SlotMap&, Call& call) {
  auto* mla = std::get_if<MlaDecodeCall>(&call);
  if (mla == nullptr || problem.mode != Mode::target_verify) return false;
  const std::int64_t real = problem.max_new_tokens();
  const std::int64_t argument = problem.num_draft_tokens.value_or(real);
  const std::int64_t configured = argument != real ? argument : real - 1;
  if (configured < 1) return false;
  for (std::size_t i = 0; i < mla->qo_indptr.values.size(); ++i) {
    mla->qo_indptr.values[i] = static_cast<std::int64_t>(i) * configured;
  }
  mla->max_seqlen_q = configured;
  return true;
}

bool mla_kv_short_by_draft_count(const Problem& problem, const SlotMap&, Call& call) {
  auto* mla = std::get_if<MlaDecodeCall>(&call);
  if (mla == nullptr || problem.mode != Mode::target_verify || mla->page_size != 1) return false;
  // kv_indices keeps its layout per request; only the offsets shrink, as cumsum(committed) does.
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> indptr = {0};
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const std::int64_t first = mla->kv_indptr.values[i];
    const std::int64_t count = problem.requests[i].committed;
    for (std::int64_t j = 0; j < count; ++j) {
      kept.push_back(mla->kv_indices.values[static_cast<std::size_t>(first + j)]);
    }
    indptr.push_back(indptr.back() + count);
  }
  kept.resize(mla->kv_indices.values.size(), 0);
  mla->kv_indices.values = std::move(kept);
  mla->kv_indptr.values = std::move(indptr);
  return true;
}

bool mla_kv_indices_off_by_one(const Problem&, const SlotMap&, Call& call) {
  auto* mla = std::get_if<MlaDecodeCall>(&call);
  if (mla == nullptr) return false;
  std::vector<std::int64_t>& ids = mla->kv_indices.values;
  if (ids.size() < 2) return false;
  const std::vector<std::int64_t> before = ids;
  std::rotate(ids.begin(), ids.begin() + 1, ids.end());
  return ids != before;
}

bool mla_last_page_len_of_sequence(const Problem& problem, const SlotMap&, Call& call) {
  auto* mla = std::get_if<MlaDecodeCall>(&call);
  if (mla == nullptr) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const std::int64_t length = problem.requests[i].kv_len();
    changed = changed || (problem.requests[i].live && mla->kv_last_page_lens.values[i] != length);
    mla->kv_last_page_lens.values[i] = length;
  }
  return changed;
}

bool mla_page_size_of_pool(const Problem& problem, const SlotMap&, Call& call) {
  auto* mla = std::get_if<MlaDecodeCall>(&call);
  if (mla == nullptr || mla->page_size != 1 || problem.pool.page_size == 1) return false;
  mla->page_size = problem.pool.page_size;
  return true;
}

bool mla_kv_indptr_int64(const Problem&, const SlotMap&, Call& call) {
  auto* mla = std::get_if<MlaDecodeCall>(&call);
  if (mla == nullptr || mla->kv_indptr.meta.dtype == Dtype::int64) return false;
  mla->kv_indptr.meta.dtype = Dtype::int64;
  mla->kv_indptr.meta.storage_bytes *= 2;
  return true;
}

}  // namespace attest
