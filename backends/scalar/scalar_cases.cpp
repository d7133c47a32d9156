#include "backends/scalar/scalar_cases.hpp"

#include <functional>
#include <stdexcept>

namespace attest {
namespace {

Problem verify() {
  Problem p;
  p.model.num_q_heads = 8;
  p.model.num_kv_heads = 2;
  p.model.head_dim = p.model.v_head_dim = 64;
  p.pool.page_size = 16;
  p.pool.num_pages = 64;
  p.mode = Mode::target_verify;
  p.num_draft_tokens = 5;
  // Uneven verify lengths; one request inside a page, one past two tiles, one without a prefix.
  p.requests = {{.sequence = 1, .committed = 131, .new_tokens = 4},
                {.sequence = 2, .committed = 7, .new_tokens = 2},
                {.sequence = 3, .committed = 0, .new_tokens = 3},
                {.sequence = 4, .committed = 300, .new_tokens = 5}};
  return p;
}

Problem decode_step() {
  Problem p = verify();
  p.mode = Mode::decode;
  p.num_draft_tokens.reset();
  for (Request& r : p.requests) r.new_tokens = 1;
  return p;
}

Problem mla() {
  Problem p = verify();
  p.model.num_q_heads = 16;
  p.model.num_kv_heads = 1;
  p.model.head_dim = 576;
  p.model.v_head_dim = 512;
  p.model.mla = true;
  p.model.softmax_scale = 0.07;
  p.pool.page_size = 1;
  p.pool.num_pages = 1024;
  p.num_draft_tokens = 3;
  for (Request& r : p.requests) r.new_tokens = 3;
  return p;
}

Problem with(Problem p, const std::function<void(Problem&)>& change) {
  change(p);
  return p;
}

void all_dtypes(Model& m, Dtype dtype) { m.q_dtype = m.kv_dtype = m.out_dtype = dtype; }

void fp8_kv(Model& m, Dtype dtype) {
  m.kv_dtype = dtype;
  m.k_descale = 0.5;
  m.v_descale = 2.0;
}

std::vector<ScalarCase> unified_cases() {
  constexpr Signature s = Signature::unified;
  return {
      {"Plain", s, verify()},
      {"Decode", s, decode_step()},
      {"Window", s, with(verify(), [](Problem& p) { p.model.window = 70; })},
      {"Softcap", s, with(verify(), [](Problem& p) { p.model.softcap = 5; }), Recipe::features},
      {"Sinks", s, with(verify(), [](Problem& p) { p.model.sinks = true; }), Recipe::features},
      {"Half", s, with(verify(), [](Problem& p) { all_dtypes(p.model, Dtype::f16); })},
      {"Float", s, with(verify(), [](Problem& p) { all_dtypes(p.model, Dtype::f32); })},
      {"Fp8Keys", s, with(verify(), [](Problem& p) { fp8_kv(p.model, Dtype::fp8_e4m3fn); })},
      {"Fp8Fnuz", s,
       with(verify(),
            [](Problem& p) {
              fp8_kv(p.model, Dtype::fp8_e4m3fnuz);
              p.model.q_dtype = Dtype::fp8_e4m3fnuz;
              p.model.q_descale = 0.25;
            })},
      {"NarrowV", s,
       with(verify(),
            [](Problem& p) {
              p.model.head_dim = 192;
              p.model.v_head_dim = 128;
            })},
      {"OddDim", s, with(verify(), [](Problem& p) { p.model.head_dim = p.model.v_head_dim = 80; })},
      {"Recall", s, verify(), Recipe::recall},
      {"Needle", s, verify(), Recipe::needle},
      {"SharedPrefix", s,
       with(verify(),
            [](Problem& p) {
              for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) {
                p.requests[i].shared_prefix = 64;
                p.requests[i].shared_sequence = 9;
              }
            })},
  };
}

std::vector<ScalarCase> extend_cases() {
  constexpr Signature s = Signature::extend;
  const auto tree = [](Problem& p) {
    p.topk = 2;
    p.num_draft_tokens = 5;
    for (Request& r : p.requests) r.new_tokens = 5;
    p.requests[0].tree_parent = {-1, 0, 0, 1, 2};
    p.requests[1].tree_parent = {-1, 0, 1, 1, 0};
    p.requests[2].tree_parent = {-1, 0, 0, 0, 3};
    p.requests[3].tree_parent = {-1, 0, 1, 2, 3};
  };
  const auto cross = [](Problem& p) {
    p.model.cross_attention = true;
    for (Request& r : p.requests) r.encoder_tokens = 40 + r.new_tokens;
  };
  return {
      {"Plain", s, verify()},
      {"Prefill", s,
       with(verify(),
            [](Problem& p) {
              p.mode = Mode::extend;
              p.num_draft_tokens.reset();
              p.requests[0].new_tokens = 37;
            })},
      {"Window", s, with(verify(), [](Problem& p) { p.model.window = 70; })},
      {"Softcap", s, with(verify(), [](Problem& p) { p.model.softcap = 5; }), Recipe::features},
      {"Sinks", s, with(verify(), [](Problem& p) { p.model.sinks = true; }), Recipe::features},
      {"Half", s, with(verify(), [](Problem& p) { all_dtypes(p.model, Dtype::f16); })},
      {"Tree", s, with(verify(), tree)},
      {"Encoder", s,
       with(verify(),
            [](Problem& p) {
              for (Request& r : p.requests) r.encoder_tokens = 3 + r.new_tokens;
            })},
      {"Cross", s, with(verify(), cross)},
  };
}

std::vector<ScalarCase> decode_cases() {
  constexpr Signature s = Signature::decode;
  return {
      {"Plain", s, decode_step()},
      {"Window", s, with(decode_step(), [](Problem& p) { p.model.window = 70; })},
      {"Softcap", s, with(decode_step(), [](Problem& p) { p.model.softcap = 5; }),
       Recipe::features},
      {"Sinks", s, with(decode_step(), [](Problem& p) { p.model.sinks = true; }), Recipe::features},
      {"Half", s, with(decode_step(), [](Problem& p) { all_dtypes(p.model, Dtype::f16); })},
      {"OddDim", s,
       with(decode_step(), [](Problem& p) { p.model.head_dim = p.model.v_head_dim = 80; })},
      {"OddPitch", s,
       with(decode_step(), [](Problem& p) { p.model.head_dim = p.model.v_head_dim = 46; })},
      {"Mla", s,
       with(mla(),
            [](Problem& p) {
              p.mode = Mode::decode;
              p.num_draft_tokens.reset();
              for (Request& r : p.requests) r.new_tokens = 1;
            })},
      {"Cross", s,
       with(decode_step(),
            [](Problem& p) {
              p.model.cross_attention = true;
              for (Request& r : p.requests) r.encoder_tokens = 40 + r.committed % 7;
            })},
  };
}

std::vector<ScalarCase> mla_decode_cases() {
  constexpr Signature s = Signature::mla_decode;
  return {
      {"Verify", s, mla()},
      {"Decode", s,
       with(mla(),
            [](Problem& p) {
              p.mode = Mode::decode;
              p.num_draft_tokens.reset();
              for (Request& r : p.requests) r.new_tokens = 1;
            })},
      {"Fp8", s,
       with(mla(),
            [](Problem& p) {
              p.model.q_dtype = p.model.kv_dtype = Dtype::fp8_e4m3fn;
              p.model.q_descale = 0.5;
              p.model.k_descale = p.model.v_descale = 0.25;
            })},
  };
}

/// The flat pool that lists name slots of.
std::vector<ScalarCase> batch_prefill_cases() {
  constexpr Signature s = Signature::batch_prefill;
  return {
      {"Plain", s, verify()},
      {"Window", s, with(verify(), [](Problem& p) { p.model.window = 70; })},
      {"Softcap", s, with(verify(), [](Problem& p) { p.model.softcap = 5; }), Recipe::features},
      {"Sinks", s, with(verify(), [](Problem& p) { p.model.sinks = true; }), Recipe::features},
      {"Fp8", s,
       with(verify(),
            [](Problem& p) {
              fp8_kv(p.model, Dtype::fp8_e4m3fn);
              p.model.q_dtype = Dtype::fp8_e4m3fn;
              p.model.q_descale = 0.25;
            })},
  };
}

std::vector<ScalarCase> paged_ragged_cases() {
  constexpr Signature s = Signature::paged_ragged;
  return {
      {"Plain", s, decode_step()},
      {"Softcap", s, with(decode_step(), [](Problem& p) { p.model.softcap = 5; }),
       Recipe::features},
      {"Fp8", s, with(decode_step(), [](Problem& p) { fp8_kv(p.model, Dtype::fp8_e4m3fn); })},
  };
}

std::vector<ScalarCase> legacy_extend_cases() {
  constexpr Signature s = Signature::legacy_extend;
  return {
      {"Plain", s, verify()},
      {"Window", s, with(verify(), [](Problem& p) { p.model.window = 70; })},
      {"Softcap", s, with(verify(), [](Problem& p) { p.model.softcap = 5; }), Recipe::features},
  };
}

std::vector<ScalarCase> vllm_cpu_cases() {
  constexpr Signature s = Signature::vllm_cpu;
  return {
      {"Plain", s, verify()},
      {"Decode", s, decode_step()},
      {"Window", s, with(verify(), [](Problem& p) { p.model.window = 70; })},
      {"Softcap", s, with(verify(), [](Problem& p) { p.model.softcap = 5; }), Recipe::features},
      {"Sinks", s, with(verify(), [](Problem& p) { p.model.sinks = true; }), Recipe::features},
  };
}

}  // namespace

void PrintTo(const ScalarCase& c, std::ostream* os) {  // NOLINT(readability-identifier-naming)
  *os << name(c.signature) << c.name;
}

std::vector<ScalarCase> scalar_cases() {
  std::vector<ScalarCase> list;
  for (const auto& cases :
       {unified_cases(), extend_cases(), decode_cases(), mla_decode_cases(), batch_prefill_cases(),
        paged_ragged_cases(), legacy_extend_cases(), vllm_cpu_cases()}) {
    list.insert(list.end(), cases.begin(), cases.end());
  }
  return list;
}

Call call_of(const ScalarCase& c, const TensorSource& source) {
  if (const auto error = problem_error(c.problem)) throw std::logic_error(c.name + ": " + *error);
  Lowered<Call> lowered = lower(c.signature, c.problem, source.slots());
  if (const auto* const refused = std::get_if<Unsupported>(&lowered)) {
    throw std::logic_error(c.name + ": " + refused->reason);
  }
  return std::get<Call>(std::move(lowered));
}

}  // namespace attest
