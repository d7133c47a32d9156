// Calls with one stride, offset or storage changed. What no rule rejects must compute what the
// scheduler meant all the same; what a kernel cannot show, shared memory, must be rejected.

#include <gtest/gtest.h>

#include <concepts>

#include "backends/registry.hpp"
#include "contracts/byte_overlap.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/rules.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"

namespace attest {
namespace {

struct Place {
  std::string name;
  TensorMeta* meta;
};

TensorMeta* meta_of(TensorMeta& tensor) { return &tensor; }
TensorMeta* meta_of(IntArray& array) { return &array.meta; }
template <class T>
concept Described = std::same_as<T, TensorMeta> || std::same_as<T, IntArray>;
template <Described T>
TensorMeta* meta_of(std::optional<T>& maybe) {
  return maybe ? meta_of(*maybe) : nullptr;
}
template <class T>
concept HasMeta = requires(T& member) { meta_of(member); };

/// The tensors and arrays of a call, in the order of its fields.
std::vector<Place> places_of(Call& call) {
  std::vector<Place> places;
  const auto add = [&]<class Member>(std::string_view key, Member& member) {
    if constexpr (HasMeta<Member>) {
      if (TensorMeta* meta = meta_of(member)) places.push_back({std::string(key), meta});
    }
  };
  std::visit(
      [&]<class CallType>(CallType& c) {
        std::apply([&](const auto&... field) { (add(field.key, c.*(field.member)), ...); },
                   call_fields<CallType>);
      },
      call);
  return places;
}

/// The storage ends where the view does: only the strides are at fault, if any are.
void fit_storage(TensorMeta& t) {
  t.storage_bytes =
      (t.storage_offset + spanned_elements(t)) * static_cast<std::int64_t>(size_bytes(t.dtype));
}

/// Every way to change one tensor's strides or offset that stays small.
std::vector<TensorMeta> layouts(const TensorMeta& t) {
  std::vector<TensorMeta> all;
  const auto add = [&](auto change) {
    TensorMeta changed = t;
    change(changed);
    if (changed == t) return;
    fit_storage(changed);
    all.push_back(std::move(changed));
  };
  for (std::size_t d = 0; d < t.strides.size(); ++d) {
    const std::int64_t stride = t.strides[d];
    for (const std::int64_t other : {std::int64_t{0}, std::int64_t{1}, stride + 1, 2 * stride}) {
      add([&](TensorMeta& m) { m.strides[d] = other; });
    }
    for (std::size_t e = 0; e < d; ++e) {
      add([&](TensorMeta& m) { std::swap(m.strides[d], m.strides[e]); });
    }
  }
  add([](TensorMeta& m) { m.storage_offset += 64; });
  return all;
}

class SilentMutants : public testing::TestWithParam<Signature> {
 protected:
  const Backend& backend() const {
    return *select_backends("scalar." + std::string(name(GetParam()))).front();
  }
  /// Small cases that this backend takes, each with its call.
  std::vector<Case> cases() const {
    std::vector<Case> list;
    for (std::uint64_t i = 0; list.size() < 6; ++i) {
      Case c = generate(77, i,
                        {.signature = GetParam(),
                         .capabilities = &backend().capabilities(),
                         .max_kv = 40,
                         .max_requests = 3,
                         .recipe = Recipe::normal});
      auto call = call_of(c, make_slot_map(c.problem));
      if (!std::holds_alternative<Call>(call)) continue;
      c.call = std::get<Call>(call);
      list.push_back(std::move(c));
    }
    return list;
  }
  Judgement judged(const Case& c, RulesMode rules) const {
    return judge(
        c, backend(),
        {.rules = rules, .reference_threads = 1, .both_poisons = false, .diagnose = false});
  }
};

INSTANTIATE_TEST_SUITE_P(, SilentMutants, testing::ValuesIn(generated_signatures),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(SilentMutants, OfALayoutComputeWhatTheSchedulerMeant) {
  int silent = 0, rejected = 0, shown = 0;
  for (const Case& good : cases()) {
    Call call = *good.call;
    const std::vector<Place> places = places_of(call);
    for (std::size_t at = 0; at < places.size(); ++at) {
      for (const TensorMeta& layout : layouts(*places[at].meta)) {
        Case mutant = good;
        *places_of(*mutant.call)[at].meta = layout;
        const Judgement j = judged(mutant, RulesMode::enforce);
        EXPECT_NE(j.verdict, Verdict::mismatch)
            << places[at].name << " of " << describe(good.problem) << ", " << good.origin << '\n'
            << call_to_json(*mutant.call) << '\n'
            << j.reason;
        silent += j.verdict == Verdict::pass;
        rejected += j.verdict == Verdict::rejected;
        // That the kernel does read such a layout wrongly, on a sample.
        if (j.verdict != Verdict::rejected || rejected % 16 != 0) continue;
        shown += judged(mutant, RulesMode::off).verdict == Verdict::mismatch;
      }
    }
  }
  EXPECT_GT(silent, 30);
  EXPECT_GT(rejected, 30);
  EXPECT_GT(shown, 0);
}

TEST_P(SilentMutants, OfSharedMemoryDoNotExist) {
  const auto is_read_only = [](const std::string& name) {
    return name.starts_with("q") || name.starts_with("k") || name.starts_with("v");
  };
  int tried = 0;
  for (const Case& good : cases()) {
    Call call = *good.call;
    const std::vector<Place> places = places_of(call);
    for (std::size_t j = 0; j < places.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const std::string &a = places[i].name, &b = places[j].name;
        const bool written = a.starts_with("o") || b.starts_with("o") || b == "attn_logits";
        const bool tensors = places[i].meta->shape.size() > 2 && places[j].meta->shape.size() > 2;
        const bool latent = good.problem.model.mla && a[0] != 'q' && b[0] != 'q';
        const bool inputs = is_read_only(a) && is_read_only(b) && a[0] != b[0] && !latent;
        if (!written && !(tensors && inputs)) continue;
        Case mutant = good;
        std::vector<Place> changed = places_of(*mutant.call);
        changed[i].meta->storage = changed[j].meta->storage = "shared";
        ++tried;
        EXPECT_EQ(judged(mutant, RulesMode::enforce).verdict, Verdict::rejected) << a << ", " << b;
      }
    }
  }
  EXPECT_GT(tried, 12);
}

TEST_P(SilentMutants, OfAStorageThatEndsEarlyDoNotExist) {
  for (const Case& good : cases()) {
    Call call = *good.call;
    const std::size_t count = places_of(call).size();
    for (std::size_t at = 0; at < count; ++at) {
      for (const bool moved : {false, true}) {
        Case mutant = good;
        const Place place = places_of(*mutant.call)[at];
        if (moved) place.meta->storage_offset = std::int64_t{1} << 31;
        if (!moved) place.meta->storage_bytes = 1;
        EXPECT_EQ(judged(mutant, RulesMode::enforce).verdict, Verdict::rejected) << place.name;
      }
    }
  }
}

}  // namespace
}  // namespace attest
