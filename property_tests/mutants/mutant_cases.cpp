#include "property_tests/mutants/mutant_cases.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "backends/registry.hpp"
#include "contracts/slot_map.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/step_faults.hpp"

namespace attest {
namespace {

/// Multiply-adds of one launch from which on a case takes seconds. MLA's shortest ones are longer.
double most_work(const Problem& p) {
  const double most = p.max_kv_len() > 8192 ? 2e8 : 5e8;
  return p.model.mla ? 16 * most : most;
}

double work_of(const Problem& p) {
  double pairs = 0;
  for (const Request& r : p.requests) {
    const auto keys = static_cast<double>(p.model.cross_attention ? r.encoder_tokens : r.kv_len());
    pairs += keys * static_cast<double>(r.new_tokens);
  }
  return pairs * static_cast<double>(p.model.num_q_heads * (p.model.head_dim + p.model.v_head_dim));
}

/// More keys for a request, edges of pages (16, 48, 64, 128) and of tiles of 64 where they were.
void lengthen(Request& r, std::int64_t keys, bool cross) {
  constexpr std::int64_t step = 384;
  const auto missing = [&](std::int64_t have) { return std::max<std::int64_t>(0, keys - have); };
  if (cross) r.encoder_tokens += missing(r.encoder_tokens) / step * step;
  if (!cross) r.committed += missing(r.kv_len()) / step * step;
}

/// A few more, so that a block of 128 keys ends between two of the new tokens: what a kernel does
/// once for all rows of a request is then wrong for some.
void put_an_edge_among_the_new(Request& r, std::uint64_t turn) {
  constexpr std::int64_t block = 128;
  if (r.new_tokens < 2) return;
  const auto behind =
      1 + static_cast<std::int64_t>(turn % static_cast<std::uint64_t>(r.new_tokens - 1));
  const std::int64_t past = (r.kv_len() - behind) % block;
  r.committed += (block - past) % block;
}

/// At first all requests are long; of later cases every fourth has one beside short ones. So what
/// a long context shows by itself is shown by it.
bool is_lengthened(std::uint64_t index, std::size_t request, std::size_t requests) {
  constexpr std::uint64_t long_ones_only = 24;
  return index < long_ones_only || index % 4 != 3 || request == index / 4 % requests;
}

void lengthen_some(Problem& p, std::uint64_t index, std::int64_t keys) {
  std::vector<Request*> live;
  for (Request& r : p.requests) {
    if (r.live) live.push_back(&r);
  }
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (!is_lengthened(index, i, live.size())) continue;
    lengthen(*live[i], keys, p.model.cross_attention);
    if (index % 4 == 1 && !p.model.cross_attention) {
      put_an_edge_among_the_new(*live[i], index / 4);
    }
  }
}

/// Pages that lie past 2^32 elements of one pool.
void move_far(Problem& p) {
  p.pool.slots.clear();
  p.pool.k = p.pool.v = {};
  p.pool.placement = Placement::high;
  const Model& m = p.model;
  const std::int64_t page = p.pool.page_size * m.num_kv_heads * std::min(m.head_dim, m.v_head_dim);
  const std::int64_t elements = std::int64_t{1} << 32;
  p.pool.num_pages = elements / page + 64 + pages_needed(p);
}

Recipe recipe_for(const Model& m, std::uint64_t index) {
  // A cap takes all that a shift moves to one value: there the two are worth more together.
  if (m.softcap > 0 ? index % 2 == 1 : index % 12 == 4) return Recipe::shifted;
  if (index % 3 == 1) return Recipe::normal;
  const bool features = m.window || m.softcap > 0 || m.sinks;
  if (index % 3 == 2) return features ? Recipe::features : Recipe::needle;
  return Recipe::recall;
}

void set_dtype(Model& m, std::optional<Dtype> dtype) {
  if (!dtype) return;
  for (Dtype* one : {&m.q_dtype, &m.kv_dtype, &m.out_dtype}) {
    if (!is_fp8(*one)) *one = *dtype;
  }
}

void narrow(Call& call) {
  if (auto* const c = std::get_if<UnifiedCall>(&call)) c->seqused_k.meta.dtype = Dtype::int32;
  if (auto* const c = std::get_if<ExtendCall>(&call)) c->req_to_token.meta.dtype = Dtype::int32;
  if (auto* const c = std::get_if<DecodeCall>(&call)) c->req_to_token.meta.dtype = Dtype::int32;
}

const Backend& scalar_of(Signature signature) {
  static const std::vector<const Backend*> all = select_backends("scalar");
  const auto at = std::find_if(all.begin(), all.end(), [&](const Backend* b) {
    return b->capabilities().signature == signature;
  });
  return **at;
}

/// The kernel that the faulty one was made of.
const Backend& honest_of(const Backend& faulty) {
  const BackendName name = split_backend_name(faulty.name());
  const std::string kernel = name.engine == "cpu"    ? "scalar"
                             : name.engine == "host" ? "hip"
                                                     : "amx";
  return *select_backends(kernel + "." + name.signature + "@" + name.engine).front();
}

/// The call that the case stands for; nothing where there is none.
std::optional<Call> call_made(const Case& c) {
  auto call = call_of(c, make_slot_map(c.problem));
  if (!std::holds_alternative<Call>(call)) return std::nullopt;
  return std::get<Call>(std::move(call));
}

/// The case on which the mutant is to be tried, before it has its fault.
std::optional<Case> plain_case(const Mutant& mutant, std::uint64_t index,
                               const MutantStream& stream, const Backend& backend) {
  const Preparation* const prepared = preparation_of(mutant);
  GeneratorOptions options{.signature = backend.capabilities().signature,
                           .capabilities = &backend.capabilities(),
                           .max_kv = std::min<std::int64_t>(stream.keys, 512),
                           .max_requests = stream.keys > 512 ? 3 : 4};
  const bool own_data = stream.recipe || (prepared && (prepared->problem || prepared->large_pool));
  if (own_data) options.recipe = Recipe::normal;
  auto c = case_of_length(stream.seed, index, stream.keys, options);
  if (!c) return std::nullopt;
  const bool as_drawn = !own_data && stream.keys <= 512;
  if (!as_drawn) c->recipe = recipe_for(c->problem.model, index);
  // Logits far below 0 or above: what is only drawn where contexts are long shows here as well.
  if (as_drawn && index % 12 == 4) c->recipe = Recipe::shifted;
  if (prepared && prepared->problem) prepared->problem(*c);
  if (prepared && prepared->large_pool) move_far(c->problem);
  if (stream.recipe) {
    c->recipe = *stream.recipe;
    c->poison = {.poison = Poison::ordinary, .nan_in_v_tail = true};
  }
  set_dtype(c->problem.model, stream.dtype);
  if (problem_error(c->problem)) return std::nullopt;
  return c;
}

std::optional<MutantCase> with_kernel(const Mutant& mutant, std::uint64_t index,
                                      const MutantStream& stream) {
  const Preparation* const prepared = preparation_of(mutant);
  auto plain = plain_case(mutant, index, stream, *mutant.backend);
  if (!plain) return std::nullopt;
  MutantCase made{.c = *plain,
                  .right = *plain,
                  .backend = mutant.backend,
                  .honest = &honest_of(*mutant.backend)};
  if (!prepared) return made;
  made.c.fault = prepared->fault;
  auto call = call_made(made.c);
  if (!call) return std::nullopt;
  if (!prepared->narrow_indices && !prepared->call) return made;
  if (prepared->narrow_indices) narrow(*call);
  if (prepared->call) prepared->call(*call);
  made.c.call = made.right.call = std::move(call);
  return made;
}

std::optional<MutantCase> with_metadata(const Mutant& mutant, std::uint64_t index,
                                        const MutantStream& stream) {
  constexpr std::uint64_t kinds = generated_signatures.size();
  const Backend& backend = scalar_of(generated_signatures[index % kinds]);
  MutantStream longer = stream;
  // A short context needs no split of its keys.
  if (mutant.name == "metadata:no_split_kv")
    longer.keys = std::max<std::int64_t>(stream.keys, 8192);
  MutantStream quick = longer;
  quick.recipe = stream.recipe.value_or(Recipe::normal);
  auto plain = plain_case(mutant, index / kinds, quick, backend);
  if (!plain) return std::nullopt;
  plain->fault = mutant.name.substr(mutant.name.find(':') + 1);
  if (!call_made(*plain)) return std::nullopt;  // the call cannot have the fault
  if (!stream.recipe) plain = plain_case(mutant, index / kinds, longer, backend);
  if (!plain) return std::nullopt;
  plain->fault.clear();
  MutantCase made{.c = *plain, .right = *plain, .backend = &backend, .honest = &backend};
  made.c.fault = mutant.name.substr(mutant.name.find(':') + 1);
  return made;
}

/// The step before: the same requests with other numbers of new tokens, and with draft trees.
Problem step_before(const Problem& now) {
  Problem before = now;
  for (std::size_t i = 0; i < before.requests.size(); ++i) {
    Request& r = before.requests[i];
    if (now.mode == Mode::target_verify && r.new_tokens > 1 && now.topk == 1) {
      for (std::int64_t t = 0; t < r.new_tokens; ++t) r.tree_parent.push_back(t == 0 ? -1 : 0);
      before.topk = 2;
    } else {
      r.new_tokens += 1;
      r.tree_parent.clear();
    }
  }
  before.pool.slots.clear();
  before.pool.num_pages = std::max(before.pool.num_pages, pages_needed(before) + 3);
  before.context_len = 0;
  return before;
}

std::optional<MutantCase> with_step(const Mutant& mutant, std::uint64_t index,
                                    const MutantStream& stream) {
  const StepFault& fault = *find_step_fault(mutant.name.substr(mutant.name.find(':') + 1));
  constexpr std::array kinds = {Signature::unified, Signature::extend};
  const Backend& backend = scalar_of(kinds[index % kinds.size()]);
  auto plain = plain_case(mutant, index / kinds.size(), stream, backend);
  if (!plain) return std::nullopt;
  auto call = call_made(*plain);
  Problem before = step_before(plain->problem);
  const bool graph = backend.capabilities().signature == Signature::unified;
  if (graph) {
    before = plain->problem;
    for (Request& r : before.requests) r.new_tokens += 1;
    before.pool.slots.clear();
    before.pool.num_pages = std::max(before.pool.num_pages, pages_needed(before) + 3);
    before.context_len = 0;
  }
  if (!call || problem_error(before) || !fault.apply(before, plain->problem, *call)) {
    return std::nullopt;
  }
  MutantCase made{.c = *plain, .right = *plain, .backend = &backend, .honest = &backend};
  made.c.call = std::move(call);
  return made;
}

}  // namespace

std::optional<Case> case_of_length(std::uint64_t seed, std::uint64_t index, std::int64_t keys,
                                   const GeneratorOptions& options) {
  if (keys <= 512) {
    Case c = generate(seed, index, options);
    if (work_of(c.problem) > most_work(c.problem)) return std::nullopt;
    return c;
  }
  GeneratorOptions quick = options;
  quick.recipe = Recipe::normal;  // data are chosen for the real length
  Case c = generate(seed, index, quick);
  Problem& p = c.problem;
  lengthen_some(p, index, keys);
  // Under a window a row sees little of a long context: half of the layers have none.
  if (index / 2 % 2 == 0) p.model.window.reset();
  p.pool.slots.clear();
  p.context_len = 0;
  p.pool.num_pages = std::max(p.pool.num_pages, pages_needed(p) + 5);
  if (work_of(p) > most_work(p) || problem_error(p)) return std::nullopt;
  c.recipe = recipe_for(p.model, index);
  c.sampled_rows = 8;
  c.origin.clear();
  return c;
}

std::optional<MutantCase> case_of(const Mutant& mutant, std::uint64_t index,
                                  const MutantStream& stream) {
  switch (mutant.kind) {
    case MutantKind::metadata:
      return with_metadata(mutant, index, stream);
    case MutantKind::step:
      return with_step(mutant, index, stream);
    default:
      return with_kernel(mutant, index, stream);
  }
}

}  // namespace attest
