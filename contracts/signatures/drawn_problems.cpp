#include "contracts/signatures/drawn_problems.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {

std::int64_t in(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}

namespace {

std::int64_t draw_new_tokens(Mode mode) {
  switch (mode) {
    case Mode::decode:
    case Mode::idle:
    case Mode::draft_decode:
      return 1;
    case Mode::extend:
    case Mode::mixed:
      return in(1, 40);
    case Mode::target_verify:
    case Mode::draft_extend_v2:
      break;
  }
  return in(1, 6);
}

void draw_requests(Problem& p, bool uneven) {
  std::vector<Lengths> lengths(static_cast<std::size_t>(in(1, 5)));
  const std::int64_t width = draw_new_tokens(p.mode);
  p.requests.clear();
  for (const Lengths& unused : lengths) {
    (void)unused;
    Request r;
    r.sequence = static_cast<std::int64_t>(p.requests.size()) + 10;
    r.committed = in(0, 70);
    r.new_tokens = uneven ? draw_new_tokens(p.mode) : width;
    r.live = in(0, 4) > 0;
    if (in(0, 2) == 0) {
      r.shared_prefix = in(0, r.committed);
      r.shared_sequence = in(3, 4);
    }
    p.requests.push_back(r);
  }
}

void draw_pool(Problem& p) {
  p.pool.page_size = *rc::gen::elementOf(std::vector<std::int64_t>{1, 3, 16, 64});
  p.pool.seed = static_cast<std::uint64_t>(in(0, 1000));
  p.pool.placement =
      *rc::gen::elementOf(std::vector{Placement::permuted, Placement::sequential, Placement::high});
  fit_pool(p);
}

}  // namespace

Problem draw_problem() {
  const Mode mode = *rc::gen::elementOf(std::vector{Mode::decode, Mode::idle, Mode::extend,
                                                    Mode::mixed, Mode::target_verify,
                                                    Mode::draft_extend_v2, Mode::draft_decode});
  Problem p = sample_problem(mode, {{1, 1}});
  p.path = *rc::gen::elementOf(std::vector{Path::eager, Path::capture, Path::replay});
  p.context_len = in(0, 1) * in(1, 300);
  if (in(0, 1)) p.model.window = in(1, 40);
  p.model.sinks = in(0, 1) == 1;
  draw_requests(p, /*uneven=*/true);
  draw_pool(p);
  return p;
}

Problem draw_mla_problem() {
  const Mode mode = *rc::gen::elementOf(
      std::vector{Mode::decode, Mode::target_verify, Mode::draft_extend_v2, Mode::draft_decode});
  Problem p = sample_mla_problem(mode, {{1, 1}});
  draw_requests(p, /*uneven=*/false);
  draw_pool(p);
  return p;
}

void edit(std::vector<std::int64_t>& values) {
  if (values.empty()) return;
  const auto pick = [&] { return static_cast<std::size_t>(in(0, 1 << 20)) % values.size(); };
  std::int64_t& value = values[pick()];
  value = in(0, 1) ? value + in(-3, 3) : values[pick()];
}

std::int64_t any_number() {
  return in(0, 1) ? *rc::gen::arbitrary<std::int64_t>() : in(0, 1) * in(-3, 300) << in(0, 50);
}

void disturb(std::vector<std::int64_t>& numbers) {
  if (in(0, 2)) return;
  for (std::int64_t& number : numbers) {
    if (in(0, 2) == 0) number = any_number();
  }
  if (in(0, 5) == 0 && !numbers.empty()) numbers.pop_back();
}

void require_a_rule_for_other_keys(const Call& call, const Problem& p, const SlotMap& slots) {
  const auto differs = difference(attended(p), read(call, p, slots));
  RC_CLASSIFY(differs.has_value());
  if (differs && !check(call, {p, slots}).rejects()) RC_FAIL(*differs);
}

void expect(bool ok) { EXPECT_TRUE(ok); }

}  // namespace attest
