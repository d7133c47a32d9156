#include "property_tests/case_stream.hpp"

#include <algorithm>
#include <limits>

#include "property_tests/generators.hpp"
#include "property_tests/large_kv.hpp"
#include "property_tests/long_context.hpp"

namespace attest {
namespace {

/// How a person gets this case again.
std::string origin_of(const RunPlan& plan, std::int64_t index, int device) {
  const RunPlan defaults;
  std::string text = plan.profile == Profile::generated
                         ? "--seed " + std::to_string(plan.seed)
                         : "--profile " + std::string(name(plan.profile));
  text += " --case " + std::to_string(index);
  if (plan.max_kv != defaults.max_kv) text += " --max-kv " + std::to_string(plan.max_kv);
  if (plan.max_requests != defaults.max_requests) {
    text += " --max-requests " + std::to_string(plan.max_requests);
  }
  if (plan.recipe) text += " --recipe " + std::string(name(*plan.recipe));
  if (!plan.run.form.empty()) text += " --form " + plan.run.form;
  if (plan.run.kv_splits > 0) text += " --kv-splits " + std::to_string(plan.run.kv_splits);
  if (!plan.run.graph.empty()) text += " --graph " + plan.run.graph;
  if (device != 0) text += " --device " + std::to_string(device);
  return text;
}

StreamCase cell_case(const RunPlan& plan, const Backend& backend, std::int64_t index) {
  const auto cells = large_kv_cells(backend.capabilities());
  const LargeKvCell& cell = cells[static_cast<std::size_t>(index)];
  StreamCase made{.c = case_of(cell, static_cast<std::uint64_t>(index)),
                  .name = cell.name(),
                  .features = {attest::name(cell.aim.boundary), std::string(name(cell.aim.side)),
                               std::string(name(cell.by)), std::string(name(cell.kv_dtype))},
                  .run = plan.run};
  if (made.run.form.empty()) made.run.form = cell.form;
  return made;
}

StreamCase generated_case(const RunPlan& plan, const Backend& backend, std::int64_t index) {
  const Capabilities& capabilities = backend.capabilities();
  StreamCase made{.c = generate(plan.seed, static_cast<std::uint64_t>(index),
                                {.signature = capabilities.signature,
                                 .capabilities = &capabilities,
                                 .max_kv = plan.max_kv,
                                 .max_requests = plan.max_requests,
                                 .recipe = plan.recipe}),
                  .name = "case " + std::to_string(index),
                  .features = {},
                  .run = plan.run};
  made.c.fault = plan.fault;
  made.features = features_of(made.c);
  return made;
}

StreamCase long_case(const RunPlan& plan, const Backend& backend, std::int64_t index) {
  const auto all = long_contexts(backend.capabilities());
  const LongContext& context = all[static_cast<std::size_t>(index)];
  return {.c = case_of(context, static_cast<std::uint64_t>(index)),
          .name = context.name(),
          .features = {"recall"},
          .run = plan.run};
}

/// A dense pool costs seconds: what the indices are made of, and how the keys got there, is asked
/// of sparse ones.
bool worth_dense(const LargeKvCell& cell) {
  const bool narrow = cell.table_dtype == Dtype::int32 &&
                      (cell.signature != Signature::unified || cell.length_dtype == Dtype::int32);
  return narrow && cell.by == LargeKvBy::page_ids && cell.form != "3d";
}

/// Whether the dense half of the lattice judges the cell: it is one of those, and fits.
bool fits_dense(const RunPlan& plan, const LargeKvCell& cell, std::int64_t index) {
  return worth_dense(cell) &&
         dense_bytes(case_of(cell, static_cast<std::uint64_t>(index))) <= plan.memory;
}

}  // namespace

std::int64_t stream_length(const RunPlan& plan, const Backend& backend) {
  switch (plan.profile) {
    case Profile::generated:
      break;
    case Profile::large_kv:
      return static_cast<std::int64_t>(large_kv_cells(backend.capabilities()).size());
    case Profile::long_context:
      return static_cast<std::int64_t>(long_contexts(backend.capabilities()).size());
  }
  return std::numeric_limits<std::int64_t>::max();
}

StreamCase case_at(const RunPlan& plan, const Backend& backend, std::int64_t index, int device) {
  StreamCase made = plan.profile == Profile::large_kv       ? cell_case(plan, backend, index)
                    : plan.profile == Profile::long_context ? long_case(plan, backend, index)
                                                            : generated_case(plan, backend, index);
  made.c.origin = origin_of(plan, index, device);
  return made;
}

CaseRange cases_of(const RunPlan& plan, const Backend& backend) {
  CaseRange all = cases_of(plan).before(stream_length(plan, backend));
  if (plan.memory <= 0 || plan.profile != Profile::large_kv) return all;
  const auto cells = large_kv_cells(backend.capabilities());
  std::vector<std::int64_t> fitting;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LargeKvCell& cell = cells[static_cast<std::size_t>(all[i])];
    if (fits_dense(plan, cell, all[i])) fitting.push_back(all[i]);
  }
  return CaseRange(std::move(fitting));
}

std::string left_out(const RunPlan& plan, const Backend& backend) {
  if (plan.memory <= 0 || plan.profile != Profile::large_kv) return "";
  std::int64_t count = 0;
  std::int64_t most = 0;
  std::int64_t index = 0;
  for (const LargeKvCell& cell : large_kv_cells(backend.capabilities())) {
    const std::int64_t at = index++;
    if (!worth_dense(cell) || fits_dense(plan, cell, at)) continue;
    ++count;
    most = std::max(most, dense_bytes(case_of(cell, static_cast<std::uint64_t>(at))));
  }
  if (count == 0) return "";
  return std::string(backend.name()) + ": " + std::to_string(count) +
         " dense cells left out, the largest takes " + grouped(most) + " bytes of K and V, " +
         grouped(plan.memory) + " were given";
}

std::string why_none(const RunPlan& plan, const Backend& backend) {
  const std::int64_t length = stream_length(plan, backend);
  if (length == 0) return "the profile has no case for what it claims";
  if (cases_of(plan, backend).empty()) {
    return plan.memory > 0 ? "no case of its part fits into " + std::to_string(plan.memory) +
                                 " bytes of dense K and V"
                           : "its " + std::to_string(length) + " cases are not in this part";
  }
  return "";
}

}  // namespace attest
