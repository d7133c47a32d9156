#include "backends/faulty/faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "backends/registry.hpp"
#include "backends/scalar/scalar_cases.hpp"

namespace attest {
namespace {

/// A pool whose pages in use lie at its end: past 2^32 elements, so past 4 and 8 GiB in bf16.
ScalarCase large_pool(Signature signature) {
  ScalarCase c{.name = "LargePool", .signature = signature};
  for (const ScalarCase& small : scalar_cases()) {
    const bool plain = small.name == (signature == Signature::mla_decode ? "Verify" : "Plain");
    if (small.signature == signature && plain) c.problem = small.problem;
  }
  Pool& pool = c.problem.pool;
  const Model& m = c.problem.model;
  pool.placement = Placement::high;
  pool.num_pages = (std::int64_t{1} << 32) / (pool.page_size * m.num_kv_heads * m.head_dim) + 64;
  return c;
}

ScalarCase plain(Signature signature) {
  for (const ScalarCase& c : scalar_cases()) {
    const bool wanted = c.name == (signature == Signature::mla_decode ? "Verify" : "Plain");
    if (c.signature == signature && wanted) return c;
  }
  throw std::logic_error("no plain case");
}

/// A window shorter than the new tokens, pages of 32, K and V of different strides, room between
/// heads, more drafts than a byte has bits, a scale that is no power of two.
std::vector<ScalarCase> cases_of_places(Signature signature) {
  std::vector<ScalarCase> list(6, plain(signature));
  list[0].problem.model.window = 3;
  list[1].problem.pool.page_size = 32;
  list[2].problem.model.head_dim = 128;
  list[5].problem.model.softmax_scale = 0.11;
  Pool& roomy = list[3].problem.pool;
  const Model& m = list[3].problem.model;
  roomy.k.head = m.head_dim + 16;
  roomy.k.slot = roomy.k.head * m.num_kv_heads;
  roomy.k.page = roomy.k.slot * roomy.page_size;
  roomy.v = roomy.k;
  Problem& drafts = list[4].problem;
  if (drafts.mode != Mode::target_verify) return list;
  drafts.topk = 2;
  drafts.num_draft_tokens = 10;
  for (Request& r : drafts.requests) {
    r.new_tokens = 10;
    r.tree_parent = {-1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  }
  return list;
}

/// Pages of one token out of order, prompts of which one has more than 16 tokens, trees whose
/// branches differ in depth, V narrower than K and yet of two blocks of 64.
std::vector<ScalarCase> cases_of_batches(Signature signature) {
  std::vector<ScalarCase> list(4, plain(signature));
  list[0].problem.pool.page_size = 1;
  list[0].problem.pool.num_pages = 1024;
  list[3].problem.model.head_dim = 192;
  list[3].problem.model.v_head_dim = 128;
  if (list[0].problem.mode != Mode::target_verify) return list;
  Problem& prompts = list[1].problem;
  prompts.mode = Mode::extend;
  prompts.num_draft_tokens.reset();
  prompts.requests[0].new_tokens = 37;
  for (Request& r : list[2].problem.requests) {
    r.new_tokens = 5;
    r.tree_parent = {-1, 0, 0, 1, 2};
  }
  list[2].problem.topk = 2;
  list[2].problem.num_draft_tokens = 5;
  return list;
}

/// Whether the signature can be called with the case at all.
bool is_served(const ScalarCase& c, const TensorSource& source) {
  return std::holds_alternative<Call>(lower(c.signature, c.problem, source.slots()));
}

/// What one fault alone needs: groups that are no power of two, a shorter request that has one
/// block more in its window than the longest, more than 16,384 keys.
std::vector<ScalarCase> special_cases(Signature signature) {
  ScalarCase odd = plain(signature);
  if (!odd.problem.model.mla) odd.problem.model.num_q_heads = 3 * odd.problem.model.num_kv_heads;
  ScalarCase windowed = plain(signature);
  windowed.problem.requests.resize(2);
  windowed.problem.requests[0].committed = 128 - windowed.problem.requests[0].new_tokens;
  windowed.problem.requests[1].committed = 100 - windowed.problem.requests[1].new_tokens;
  if (!windowed.problem.model.mla) windowed.problem.model.window = 64;
  ScalarCase longer = plain(signature);
  longer.problem.requests.resize(1);
  longer.problem.requests[0].committed = 16'500;
  longer.problem.pool.num_pages = 17'000;
  longer.recipe = Recipe::recall;
  std::vector<ScalarCase> list = {odd, windowed, longer};
  if (!odd.problem.model.mla) {
    for (const ScalarCase& c : cases_of_places(signature)) list.push_back(c);
    for (const ScalarCase& c : cases_of_batches(signature)) list.push_back(c);
  }
  return list;
}

/// The call as a caller may write it that one fault needs: a table without room behind the last
/// row, offsets in int64.
Call unusual(Call call) {
  if (auto* const c = std::get_if<MlaDecodeCall>(&call)) c->kv_indptr.meta.dtype = Dtype::int64;
  auto* const c = std::get_if<UnifiedCall>(&call);
  if (c == nullptr) return call;
  const std::int64_t longest =
      *std::max_element(c->seqused_k.values.begin(), c->seqused_k.values.end());
  const std::int64_t width = (longest + c->k.size(1) - 1) / c->k.size(1);
  IntArray table = int_array(c->block_table.meta.dtype, {});
  table.meta = contiguous(table.meta.dtype, {c->block_table.size(0), width});
  for (std::int64_t row = 0; row < c->block_table.size(0); ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      table.values.push_back(
          c->block_table.values[static_cast<std::size_t>(row * c->block_table.size(1) + column)]);
    }
  }
  c->block_table = std::move(table);
  return call;
}

/// The call with its lengths and tables in 32 bits, which a correct lowering does not use here.
Call narrow(Call call) {
  if (auto* const c = std::get_if<UnifiedCall>(&call)) c->seqused_k.meta.dtype = Dtype::int32;
  if (auto* const c = std::get_if<ExtendCall>(&call)) c->req_to_token.meta.dtype = Dtype::int32;
  return call;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// How the faulty kernel gives itself away, or an empty string.
std::string evidence(const Backend& honest, const Backend& faulty, const Call& call,
                     const TensorSource& source) {
  const RunResult right = honest.run(call, source, {});
  EXPECT_FALSE(right.raised) << right.raised.value_or("");
  EXPECT_TRUE(right.damage.empty()) << right.damage.front();
  const RunResult wrong = faulty.run(call, source, {});
  if (wrong.raised) return "raised";
  if (!wrong.damage.empty()) return "damage";
  if (wrong.out.untouched != right.out.untouched) return "untouched";
  if (!same_bits(wrong.out.values, right.out.values)) return "values";
  return wrong.out.lse == right.out.lse ? "" : "lse";
}

class Faulty : public testing::TestWithParam<std::string> {
 protected:
  const Backend& faulty() const { return *select_backends(GetParam()).front(); }
  Signature signature() const { return faulty().capabilities().signature; }
  const Backend& honest() const {
    return *select_backends("scalar." + std::string(name(signature()))).front();
  }
};

TEST_P(Faulty, DiffersFromTheHonestKernelOnSomeCase) {
  std::vector<ScalarCase> cases = scalar_cases();
  for (const ScalarCase& c : special_cases(signature())) cases.push_back(c);
  for (const Poison poison : {Poison::nan, Poison::loud}) {
    for (const ScalarCase& c : cases) {
      if (c.signature != signature()) continue;
      const TensorSource source(c.problem, c.recipe, 11, {.poison = poison});
      if (!is_served(c, source)) continue;
      const Call call = call_of(c, source);
      if (!evidence(honest(), faulty(), call, source).empty()) return;
      if (!evidence(honest(), faulty(), unusual(call), source).empty()) return;
    }
  }
  const ScalarCase c = large_pool(signature());
  const TensorSource source(c.problem, c.recipe, 11);
  EXPECT_NE(evidence(honest(), faulty(), narrow(call_of(c, source)), source), "")
      << "the fault changes nothing on any case of its signature";
}

std::vector<std::string> runnable_faults() {
  std::vector<std::string> list;
  for (const ScalarBackend& backend : faulty_backends()) {
    if (!backend.capabilities().isolate) list.emplace_back(backend.name());
  }
  return list;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string text = info.param.substr(std::strlen("faulty-"));
  text.resize(text.find('@'));
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}
INSTANTIATE_TEST_SUITE_P(Faults, Faulty, testing::ValuesIn(runnable_faults()), test_name);

TEST(Faults, HaveARowEachInTheDocumentation) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/backends.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const KernelFault& fault : all_kernel_faults()) {
    const std::string row = "| `" + std::string(fault.id) + "` | " + std::string(fault.says) + " |";
    EXPECT_TRUE(text.find(row) != std::string::npos)
        << "docs/backends.md has no row that begins with\n"
        << row;
  }
}

TEST(Faults, AreListedOnceWithASourceAndASentence) {
  std::set<std::string_view> ids;
  std::set<Fault> faults;
  for (const KernelFault& fault : all_kernel_faults()) {
    EXPECT_TRUE(ids.insert(fault.id).second) << fault.id;
    EXPECT_TRUE(faults.insert(fault.fault).second) << fault.id;
    EXPECT_FALSE(fault.says.empty() || fault.shows.empty() || fault.source.empty()) << fault.id;
    EXPECT_FALSE(fault.signatures.empty()) << fault.id;
    EXPECT_EQ(find_kernel_fault(fault.id), &fault);
  }
  EXPECT_EQ(find_kernel_fault("none"), nullptr);
}

// Offsets that wrap in int32 only do so when the array is int32: the published workaround.
TEST(Faults, OfTheLengthsDtypeVanishWithInt64) {
  const ScalarCase c = large_pool(Signature::unified);
  const TensorSource source(c.problem, c.recipe, 12);
  const Call wide = call_of(c, source);
  for (const char* id : {"byte_offset_in_seqused_dtype", "element_offset_in_seqused_dtype"}) {
    const std::string name = "faulty-" + std::string(id) + ".unified@cpu";
    const Backend& faulty = *select_backends(name).front();
    const Backend& honest = *select_backends("scalar.unified").front();
    EXPECT_EQ(evidence(honest, faulty, wide, source), "") << id;
    EXPECT_EQ(evidence(honest, faulty, narrow(wide), source), "values") << id;
    EXPECT_TRUE(faulty.capabilities().length_dtype_reaches_offsets);
  }
}

TEST(FaultsDeathTest, CrashKillsTheProcess) {
  const ScalarCase c = scalar_cases().front();
  const TensorSource source(c.problem, c.recipe, 1);
  const Call call = call_of(c, source);
  EXPECT_DEATH(select_backends("faulty-crash.unified").front()->run(call, source, {}), "");
}

}  // namespace
}  // namespace attest
