#include "memory/tensor_source.hpp"

#include <algorithm>
#include <utility>

#include "memory/counter_hash.hpp"
#include "memory/fill.hpp"
#include "memory/normal_table.hpp"

namespace attest {
namespace {

std::uint64_t content_hash(std::uint64_t seed, Stream stream, const ContentKey& key,
                           std::int64_t head) {
  return chain(chain(chain(stream_key(seed, stream), key.sequence), key.position), head);
}

std::vector<std::int64_t> first_rows(const Problem& problem) {
  std::vector<std::int64_t> first = {0};
  for (const Request& r : problem.requests) first.push_back(first.back() + r.new_tokens);
  return first;
}

}  // namespace

TensorSource::TensorSource(Problem problem, Recipe recipe, std::uint64_t seed, PoisonPlan poison)
    : problem_(std::move(problem)),
      slots_(make_slot_map(problem_)),
      recipe_(recipe),
      seed_(seed),
      poison_(poison),
      plan_(plan_recipe(problem_, slots_, recipe, seed)),
      plant_at_(plan_.plants),
      first_row_(first_rows(problem_)) {}

std::optional<ContentKey> TensorSource::token_of_row(std::int64_t row) const {
  if (row < 0 || row >= first_row_.back()) return std::nullopt;
  const auto after = std::upper_bound(first_row_.begin(), first_row_.end(), row);
  const auto i = static_cast<std::size_t>(after - first_row_.begin()) - 1;
  const Request& request = problem_.requests[i];
  return content_of(request, request.committed + row - first_row_[i]);
}

void TensorSource::write_q(std::int64_t row, std::int64_t head, const RowOut& out) const {
  const Dtype dtype = problem_.model.q_dtype;
  const std::optional<ContentKey> token = token_of_row(row);
  if (!token) {
    return write_normal(out, dtype, content_hash(seed_, Stream::padding, {-1, row}, head));
  }
  if (recipe_ == Recipe::recall) {
    return write_signs(out, dtype, content_hash(seed_, Stream::pattern, *token, head),
                       plan_.row_amplitude[static_cast<std::size_t>(row)]);
  }
  const std::uint64_t hash = content_hash(seed_, Stream::q, *token, head);
  if (plan_.q_values != Distribution::normal) return write_values(out, dtype, hash, plan_.q_values);
  write_normal(out, dtype, hash, plan_.q_exponent);
  if (plan_.q_shift != 0) write_element(out, dtype, problem_.model.head_dim - 1, plan_.q_shift);
  if (recipe_ == Recipe::needle) {
    const std::int64_t kv_head = head / (problem_.model.num_q_heads / problem_.model.num_kv_heads);
    write_signs(out, dtype, chain(stream_key(seed_, Stream::direction), kv_head),
                plan_.row_amplitude[static_cast<std::size_t>(row)], plan_.aligned_from);
  }
}

void TensorSource::write_planted_k(const Plant& plant, const RowOut& out) const {
  const Dtype dtype = problem_.model.kv_dtype;
  const float amplitude = plant.decoy ? plan_.decoy_amplitude : plan_.key_amplitude;
  if (recipe_ == Recipe::needle) {
    write_normal(out, dtype, content_hash(seed_, Stream::k, plant.key, plant.kv_head));
    return write_signs(out, dtype, chain(stream_key(seed_, Stream::direction), plant.kv_head),
                       amplitude, plan_.aligned_from);
  }
  const ContentKey owner = token_of_row(plant.row).value_or(plant.key);
  if (recipe_ == Recipe::recall) {
    return write_signs(out, dtype, content_hash(seed_, Stream::pattern, owner, plant.q_head),
                       amplitude);
  }
  write_signs_of_normal(out, dtype, content_hash(seed_, Stream::q, owner, plant.q_head), amplitude);
}

void TensorSource::write_k(const ContentKey& key, std::int64_t kv_head, const RowOut& out) const {
  const std::int64_t at = plant_at_.find(plan_.plants, key, kv_head);
  if (at >= 0) return write_planted_k(plan_.plants[static_cast<std::size_t>(at)], out);
  write_values(out, problem_.model.kv_dtype, content_hash(seed_, Stream::k, key, kv_head),
               plan_.kv_values);
  if (plan_.k_shift == 0) return;
  // In MLA past what is V.
  write_element(out, problem_.model.kv_dtype, problem_.model.head_dim - 1, plan_.k_shift);
}

void TensorSource::write_v(const ContentKey& key, std::int64_t kv_head, const RowOut& out) const {
  if (problem_.model.mla) return write_k(key, kv_head, out);
  const Dtype dtype = problem_.model.kv_dtype;
  if (plant_at_.find(plan_.plants, key, kv_head) >= 0) {
    return write_signs(out, dtype, content_hash(seed_, Stream::code, key, kv_head),
                       plan_.code_amplitude);
  }
  write_values(out, dtype, content_hash(seed_, Stream::v, key, kv_head), plan_.kv_values);
}

void TensorSource::q_row(std::int64_t row, std::int64_t head, std::span<std::byte> out) const {
  write_q(row, head, row_of_bits(out, problem_.model.q_dtype, problem_.model.head_dim, "q_row"));
}
void TensorSource::k_row(ContentKey key, std::int64_t kv_head, std::span<std::byte> out) const {
  write_k(key, kv_head,
          row_of_bits(out, problem_.model.kv_dtype, problem_.model.head_dim, "k_row"));
}
void TensorSource::v_row(ContentKey key, std::int64_t kv_head, std::span<std::byte> out) const {
  write_v(key, kv_head,
          row_of_bits(out, problem_.model.kv_dtype, problem_.model.v_head_dim, "v_row"));
}
void TensorSource::q_row(std::int64_t row, std::int64_t head, std::span<double> out) const {
  write_q(row, head, row_of_doubles(out, problem_.model.head_dim, "q_row"));
}
void TensorSource::k_row(ContentKey key, std::int64_t kv_head, std::span<double> out) const {
  write_k(key, kv_head, row_of_doubles(out, problem_.model.head_dim, "k_row"));
}
void TensorSource::v_row(ContentKey key, std::int64_t kv_head, std::span<double> out) const {
  write_v(key, kv_head, row_of_doubles(out, problem_.model.v_head_dim, "v_row"));
}

float TensorSource::sink(std::int64_t head) const {
  if (!problem_.model.sinks) return 0;
  const std::uint64_t key = chain(stream_key(seed_, Stream::sink), head);
  const double around_zero = normal_table(Dtype::f32).values[normal_index(key, 0)];
  const auto value = static_cast<float>(plan_.sink_centre + around_zero);
  return decode(problem_.model.q_dtype, encode(problem_.model.q_dtype, value));
}

}  // namespace attest
