#pragma once

#include <cstdint>

#include "property_tests/draw.hpp"
#include "property_tests/generators.hpp"

namespace attest {

/// The steps of generate(), in the order they run; each sees what the earlier ones drew. Not for
/// use elsewhere.

/// What the batch is, before its lengths.
struct BatchPlan {
  Mode mode = Mode::decode;
  bool tree = false;     ///< target_verify with draft trees of one size
  bool uniform = false;  ///< every request has the same number of new tokens
};

/// A mode this signature serves, with its special forms.
BatchPlan draw_plan(Draw& draw, const GeneratorOptions& options);

/// Heads, sizes, dtypes and features of a real model, scaled down in heads.
Model draw_model(Draw& draw, const GeneratorOptions& options, const BatchPlan& plan);

/// Page size alone: the lengths aim at page edges, so it comes before them.
std::int64_t draw_page_size(Draw& draw, const GeneratorOptions& options);

/// Requests, topk, draft step, server argument, context length.
/// \pre problem.model and problem.pool.page_size are drawn.
void draw_requests(Draw& draw, const GeneratorOptions& options, const BatchPlan& plan,
                   Problem& problem);

/// Number of pages, strides, placement, evicted pages. The block table is never the identity, so a
/// kernel that ignores it cannot pass.
void draw_pool(Draw& draw, const GeneratorOptions& options, Problem& problem);

}  // namespace attest
