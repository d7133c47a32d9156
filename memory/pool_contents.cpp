#include "memory/pool_contents.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace attest {
namespace {

void require_dim(std::int64_t got, std::int64_t expected, const char* what) {
  if (got == expected) return;
  throw std::invalid_argument(std::string(what) + ": the view has " + std::to_string(got) +
                              " elements per head, the model " + std::to_string(expected));
}

}  // namespace

PoolContents::PoolContents(const TensorSource& source, PoolHalf half, const TensorMeta& meta,
                           Stored stored)
    : source_(&source),
      half_(half),
      layout_(pool_layout(meta, source.problem().pool.page_size,
                          half == PoolHalf::k ? "K pool" : "V pool")),
      content_heads_(source.problem().model.num_kv_heads) {
  const Model& model = source.problem().model;
  require_dim(layout_.dim, half == PoolHalf::k ? model.head_dim : model.v_head_dim,
              half == PoolHalf::k ? "K pool" : "V pool");
  const std::vector<Request>& requests = source.problem().requests;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].live) add_request(i, stored);
  }
  // Padded rows read (and decode kernels write) real slots, usually slot 0: ordinary finite values
  // there, after all live requests, whose contents win.
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].live) add_request(i, Stored::committed_and_new);
  }
  const std::int64_t unit_slots = layout_.unit_slots;
  for (std::size_t r = 0; r < runs_.size(); ++r) runs_[r].order = r;
  std::sort(runs_.begin(), runs_.end(), [unit_slots](const Run& a, const Run& b) {
    return std::pair(a.slot / unit_slots, a.order) < std::pair(b.slot / unit_slots, b.order);
  });
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const std::int64_t unit = runs_[r].slot / unit_slots;
    if (!units_.empty() && units_.back() == unit) continue;
    units_.push_back(unit);
    first_run_.push_back(r);
  }
  first_run_.push_back(runs_.size());
}

void PoolContents::add_request(std::size_t i, Stored stored) {
  const Request& request = source_->problem().requests[i];
  const SlotMap& map = source_->slots();
  for (std::int64_t t = 0; t < request.kv_len();) {
    // A run ends with its page, and where the content or its being stored changes.
    std::int64_t end = std::min((t / map.page_size + 1) * map.page_size, request.kv_len());
    for (const std::int64_t border : {request.shared_prefix, request.committed}) {
      if (t < border) end = std::min(end, border);
    }
    const bool in_pool = t < request.committed || stored == Stored::committed_and_new;
    add_run({map.slot(i, t), end - t, content_of(request, t), 1, in_pool});
    t = end;
  }
  const std::vector<std::int64_t>& encoder = map.encoder_slots[i];
  for (std::size_t j = 0; j < encoder.size(); ++j) {
    add_run({encoder[j], 1, {request.sequence, -1 - static_cast<std::int64_t>(j)}, -1, true});
  }
}

/// Splits at unit borders; slots outside the view (a call may claim a smaller pool than there is)
/// are left out.
void PoolContents::add_run(Run run) {
  while (run.count > 0 && run.slot >= 0 && run.slot < layout_.slots) {
    const std::int64_t unit = run.slot / layout_.unit_slots;
    Run part = run;
    part.count = std::min(run.count, layout_.unit_end_slot(unit) - run.slot);
    runs_.push_back(part);
    run.slot += part.count;
    run.count -= part.count;
    run.first.position += part.step * part.count;
  }
}

bool PoolContents::rows_fill_units() const {
  const std::int64_t dense_slot = layout_.heads * layout_.dim;
  const bool one_page = layout_.page_slots == 1;
  return (layout_.heads <= 1 || layout_.head_stride == layout_.dim) &&
         (one_page ? layout_.page_stride : layout_.slot_stride) == dense_slot &&
         (one_page || layout_.page_stride == layout_.page_slots * dense_slot);
}

void PoolContents::render(std::size_t index, std::span<std::byte> out) const {
  const std::int64_t unit = units_[index];
  const std::int64_t begin = layout_.unit_begin(unit);
  const std::int64_t first_slot = unit * layout_.unit_slots;
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout_.dtype));
  const auto row_of = [&](std::int64_t slot) {
    return out.data() + (layout_.offset(slot) * bytes - begin);
  };
  if (!rows_fill_units()) {
    fill_poison(out, layout_.dtype, source_->poison().poison, Region::unreferenced);
  }
  std::vector<bool> done(static_cast<std::size_t>(layout_.unit_end_slot(unit) - first_slot));
  // Requests that share a page agree on what both hold; where they do not, the first one counts, as
  // in contents_by_slot().
  for (std::size_t r = first_run_[index]; r < first_run_[index + 1]; ++r) {
    const Run& run = runs_[r];
    for (std::int64_t j = 0; j < run.count; ++j) {
      auto seen = done[static_cast<std::size_t>(run.slot + j - first_slot)];
      if (seen) continue;
      seen = true;
      const ContentKey key = {run.first.sequence, run.first.position + j * run.step};
      if (run.stored) {
        write_slot(key, row_of(run.slot + j));
      } else {
        poison_slot(Region::not_stored, row_of(run.slot + j));
      }
    }
  }
  for (std::size_t s = 0; s < done.size(); ++s) {
    if (!done[s])
      poison_slot(Region::past_kv_len, row_of(first_slot + static_cast<std::int64_t>(s)));
  }
}

void PoolContents::write_slot(const ContentKey& key, std::byte* row) const {
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout_.dtype));
  const auto length = static_cast<std::size_t>(layout_.row_bytes());
  const std::int64_t copies = std::max<std::int64_t>(1, layout_.heads / content_heads_);
  for (std::int64_t head = 0; head < layout_.heads; ++head) {
    const std::span<std::byte> out(row + head * layout_.head_stride * bytes, length);
    const std::int64_t kv_head = std::min(head / copies, content_heads_ - 1);
    half_ == PoolHalf::k ? source_->k_row(key, kv_head, out) : source_->v_row(key, kv_head, out);
  }
}

void PoolContents::poison_slot(Region region, std::byte* row) const {
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout_.dtype));
  const PoisonPlan& plan = source_->poison();
  const Poison of_v = plan.nan_in_v_tail ? plan.poison : Poison::loud;
  const Model& model = source_->problem().model;
  // In MLA the head of a K row is read as V.
  const std::int64_t v_elements =
      half_ == PoolHalf::v ? layout_.dim : (model.mla ? model.v_head_dim : 0);
  const auto v_bytes = static_cast<std::size_t>(v_elements * bytes);
  for (std::int64_t head = 0; head < layout_.heads; ++head) {
    const std::span<std::byte> out(row + head * layout_.head_stride * bytes,
                                   static_cast<std::size_t>(layout_.row_bytes()));
    fill_poison(out.first(v_bytes), layout_.dtype, of_v, region);
    fill_poison(out.subspan(v_bytes), layout_.dtype, plan.poison, region);
  }
}

std::string PoolContents::place(std::int64_t byte) const {
  const auto bytes = static_cast<std::int64_t>(size_bytes(layout_.dtype));
  if (byte < 0) return "in front of the pool";
  if (byte >= layout_.span_bytes()) return "behind the pool";
  std::int64_t unit = layout_.units() - 1;
  if (layout_.units() > 1) unit = std::min(unit, byte / (layout_.unit_begin(1)));
  for (std::int64_t slot = unit * layout_.unit_slots; slot < layout_.unit_end_slot(unit); ++slot) {
    for (std::int64_t head = 0; head < layout_.heads; ++head) {
      const std::int64_t at = byte - (layout_.offset(slot) + head * layout_.head_stride) * bytes;
      if (at < 0 || at >= layout_.row_bytes()) continue;
      return "slot " + std::to_string(slot) + " head " + std::to_string(head) + " element " +
             std::to_string(at / bytes);
    }
  }
  return "between rows of page " + std::to_string(unit);
}

}  // namespace attest
