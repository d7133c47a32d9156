#pragma once

#include "property_tests/report/result.hpp"

namespace attest {

/// A mismatch with everything in it that a report can say, for tests of the reports.
inline CaseResult sample_mismatch() {
  CaseResult result;
  result.name = "case 42";
  result.index = 42;
  result.seed = 7;
  result.problem =
      "target_verify 2 req 32:2 D128 bf16 page 64 kv [131+4, 40+3] window 128, recipe recall";
  result.features = {"uneven", "window"};
  result.fixture = "fixtures/found/scalar.unified-cpu-seed-7-case-42.json";
  result.shrunk = "36 trials, 7 steps: target_verify 1 req 1:1 D16 bf16 page 16 kv [9+2]";
  Judgement& judgement = result.judgement;
  judgement.verdict = Verdict::mismatch;
  judgement.backend = "scalar.unified@cpu";
  judgement.engine = "cpu";
  judgement.form = "2d";
  judgement.oracles = {
      {.oracle = "rows", .passed = true, .worst = 0, .compared = 224},
      {.oracle = "hard",
       .passed = false,
       .worst = 412.5,
       .row = 5,
       .head = 2,
       .element = 17,
       .failures = 1234,
       .compared = 28672,
       .detail = "row 5 (request 1, token 1) head 2 element 17: got -0.41, expected 0.873, bound "
                 "0.0031"}};
  judgement.reason = "hard: " + judgement.oracles.back().detail;
  judgement.findings = {{.rule = "block_table.has_draft_slack",
                         .severity = Severity::policy,
                         .where = "block_table",
                         .got = "3 columns",
                         .expected = "at least 4"}};
  judgement.diagnosis = "the prefix is short by the draft count (residual 0.4 x the bound)";
  judgement.repro = "attest run --backend scalar.unified@cpu --seed 7 --case 42";
  judgement.counters = {{"kv_bytes", 34816}};
  judgement.worst_over_bound = 412.5;
  judgement.worst_z = 97.2;
  judgement.seconds = 0.25;
  return result;
}

inline CaseResult sample_pass() {
  CaseResult result;
  result.name = "case 43";
  result.index = 43;
  result.seed = 7;
  result.problem = "decode 1 req 1:1 D16 bf16 page 16 kv [9+1], recipe normal";
  result.features = {"uneven"};
  result.judgement.backend = "scalar.unified@cpu";
  result.judgement.engine = "cpu";
  result.judgement.worst_over_bound = 0.31;
  result.judgement.worst_z = 0.9;
  result.judgement.repro = "attest run --backend scalar.unified@cpu --seed 7 --case 43";
  result.judgement.seconds = 0.01;
  return result;
}

}  // namespace attest
