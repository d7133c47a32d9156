#include "property_tests/report/names_in_words.hpp"

#include <array>

namespace attest {
namespace {

constexpr std::array words = {
    // launch_pair.cpp
    NameInWords{"oracle", "poison",
                "two runs that differ in bytes no kernel may read, and in what the output held "
                "before, give equal bits"},
    NameInWords{"oracle", "damage", "the kernel writes nowhere but into its output and scratch"},
    // diagnose.cpp
    NameInWords{"diagnosis", "metadata",
                "the kernel computed what the call says, and the call is not what the step means",
                "the code that builds the argument it names, not the kernel"},
    NameInWords{"diagnosis", "unwritten_row", "a row that must have a value was never written",
                "the grid over rows and heads, early returns, and the bound of the store"},
    NameInWords{"diagnosis", "wrapped_offset", "an offset lost its upper bits, at 2^31 or 2^32",
                "the type of every product before the address, `page * stride` first: 64 bits"},
    NameInWords{"diagnosis", "zeros_past_2_gib",
                "rows whose keys lie past 2^31 bytes are zero, the others are right",
                "the size in a buffer's descriptor, and offsets of 32 bits"},
    NameInWords{"diagnosis", "stray_read",
                "the output holds, or follows, what lies in bytes that no kernel may read",
                "the bound of the loop over keys, the tail of the last page, and V of masked keys"},
    NameInWords{"diagnosis", "unexplained",
                "no mistake that attest knows computes this output: it may be two at once, or new"},
    // The words between the names of a diagnosis.
    NameInWords{
        "word of a diagnosis", "the same here",
        "these mistakes would give the same numbers on the rows that were looked at; another "
        "case may tell which one it is"},
    NameInWords{
        "word of a diagnosis", "next",
        "the mistake that fits second best: its numbers differ, and are within the bound too"},
    NameInWords{
        "word of a diagnosis", "within",
        "\"within 0.15 of the bound\": the farthest element is off by 0.15 of what rounding "
        "may do to it, when the mistake is taken as what was meant; at most 1"},
    NameInWords{"word of a diagnosis", "explains N rows",
                "as many rows, wrong and right ones, hold what a kernel with this mistake writes"},
    NameInWords{
        "word of a report", "bound",
        "how far an element may be off by rounding alone, from the kernel's declared profile "
        "and the row's own numbers; expected +- bound passes (docs/numerics.md)"},
    NameInWords{"word of a report", "x the limit",
                "the measure over what passes: 1 is the limit, whatever the oracle"},
    // Modes (docs/words.md)
    NameInWords{"feature", "decode", "the mode: one new token a request"},
    NameInWords{"feature", "idle", "the mode: padding only"},
    NameInWords{"feature", "extend", "the mode: prompts, whole or in chunks"},
    NameInWords{"feature", "mixed", "the mode: prompts beside decoding requests"},
    NameInWords{"feature", "target_verify", "the mode: the target model scores drafts"},
    NameInWords{"feature", "draft_extend_v2",
                "the mode: the draft model catches up on accepted tokens"},
    NameInWords{"feature", "draft_decode",
                "the mode: the draft model proposes, one step and branch at a time"},
    // Paths (contracts/problem.hpp)
    NameInWords{"path", "eager",
                "the kernels of the step are launched one by one, without a graph"},
    NameInWords{"path", "capture",
                "the call is made while a graph is captured, for dummy rows that stand for real "
                "ones"},
    NameInWords{"path", "replay",
                "a captured graph runs again, over tensors refilled for this step"},
    // Heads, pages, types
    NameInWords{"feature", "mha", "as many kv heads as q heads"},
    NameInWords{"feature", "gqa", "several q heads share a kv head"},
    NameInWords{"feature", "mqa", "all q heads share one kv head"},
    NameInWords{"feature", "mla",
                "multi-head latent attention: V is the beginning of K's row, one kv head"},
    NameInWords{"feature", "page N", "the pool's page size in tokens"},
    NameInWords{"feature", "DTYPE kv", "the type of the K and V pools"},
    // Recipes (docs/data.md)
    NameInWords{"recipe", "normal", "q, K, V and sinks are N(0, 1)"},
    NameInWords{"recipe", "recall", "every row and head owns one key, whose value is a code word"},
    NameInWords{"recipe", "needle", "keys at the places that break get a tenth of the weight each"},
    NameInWords{"recipe", "features", "window edges, sinks and caps decide the numbers"},
    NameInWords{"recipe", "shifted", "normal, all logits moved by +-100, +-200 or +-300"},
    NameInWords{"recipe", "normal_20", "N(0, 1), q times 20, as some suites have; nothing planted"},
    NameInWords{"recipe", "uniform", "all on (-1, 1); nothing planted"},
    NameInWords{"recipe", "positive", "all on (0, 1); nothing planted"},
    NameInWords{"recipe", "small_int", "integers of -4 .. 4; nothing planted"},
    NameInWords{"recipe", "sparse_int", "small_int, three of four are 0; nothing planted"},
    // attest check
    NameInWords{"outcome of a check", "ok", "every rule that applies was evaluated, none rejects"},
    NameInWords{"outcome of a check", "wrong", "a rule of severity wrong or fault fired"},
    NameInWords{"outcome of a check", "not recorded",
                "nothing rejects, but a rule needed values that were recorded as a hash"},
    NameInWords{"outcome of a check", "unsupported",
                "a signature that this version does not know, or no truth beside the call"},
    NameInWords{"label", "agree", "rejected where the label names an argument, not where it is ok"},
    NameInWords{"label", "disagree", "the other way round"},
    NameInWords{"label", "unsure", "the label only doubts (unsure:, perf:)"},
    NameInWords{"label", "perf",
                "perf: in front of a label: slow or wasteful, not wrong; held against nobody"},
    NameInWords{"column", "doubtful label",
                "calls whose label only doubts (unsure:, perf:): not held against anybody"},
    NameInWords{"column", "doubtful", "the same as doubtful label, in tables and records"},
    NameInWords{"label", "not judged", "no label, or the call was not judged"},
    // attest mutants
    NameInWords{"outcome of a mutant", "killed",
                "an oracle, a rule or a relation refused it, and took the kernel without it"},
    NameInWords{"outcome of a mutant", "survived", "nothing refused it, in the cases allowed"},
    NameInWords{"outcome of a mutant", "equivalent", "it computes what it should, with the reason"},
    NameInWords{"outcome of a mutant", "elsewhere", "a test of its own shows it; not run here"},
    NameInWords{"outcome of a mutant", "not run", "this machine cannot run its kernel"},
    NameInWords{"outcome of a mutant", "false failure",
                "a case that the kernel without the mistake fails too: the harness is wrong, and "
                "the kill does not count"},
    NameInWords{"line of a report", "before",
                "the mutants written before the oracles and hypotheses were fixed"},
    NameInWords{"line of a report", "later",
                "the mutants written after the oracles and hypotheses were fixed"},
    NameInWords{"line of a report", "later 1", "of these the first batch (--later=first)"},
    NameInWords{"line of a report", "later 2", "of these the second batch (--later=second)"},
    // What shows a mutant, and where it sits (attest mutants --list)
    NameInWords{"class of a mutant", "numeric", "the output of one call shows it"},
    NameInWords{"class of a mutant", "trace", "the output of the second of two steps shows it"},
    NameInWords{"class of a mutant", "rule-only",
                "only the call shows it: no output that a kernel here computes is wrong"},
    NameInWords{"class of a mutant", "relation", "two runs that must agree show it"},
    NameInWords{"class of a mutant", "cost", "right numbers, slow"},
    NameInWords{"class of a mutant", "outside", "nothing that an attention call could say"},
    NameInWords{"site of a mutant", "metadata", "the arguments that a framework builds"},
    NameInWords{"site of a mutant", "launcher", "the host code that picks grid, tiles and splits"},
    NameInWords{"site of a mutant", "wrapper",
                "the host code that turns arguments into those of the kernel"},
    NameInWords{"site of a mutant", "kernel mathematics", "what the kernel computes"},
    NameInWords{"site of a mutant", "kernel address", "where the kernel reads and writes"},
    NameInWords{"site of a mutant", "reduction", "where the parts of split keys are merged"},
    NameInWords{"site of a mutant", "graph", "what a captured graph keeps between two replays"},
    NameInWords{"site of a mutant", "process", "the build or the machine around the kernel"},
    // Columns of attest mutants --class metadata (docs/metadata_mutants.md)
    NameInWords{"column", "noted", "changed calls that a policy rule names and none rejects"},
    NameInWords{"column", "launched", "changed calls whose numbers could have failed"},
    NameInWords{"column", "missed", "numbers wrong, and no rule rejects the call"},
    NameInWords{"column", "needless", "a rule rejects the call, and the numbers are right"},
    // Columns of attest run
    NameInWords{"column", "found", "failures of earlier runs, judged before any new case"},
    NameInWords{"column", "known", "failures that --known lists"},
    NameInWords{
        "column", "error/bound",
        "the largest error of an element, in bounds of it: 1 is the limit (docs/numerics.md)"},
    NameInWords{"column", "z/limit",
                "the largest error of a row as a whole, in limits of it: 1 is the limit "
                "(docs/numerics.md)"},
    // Lines of attest run and replay
    NameInWords{"line of a report", "coverage",
                "what share of a backend's cases had each feature, the most frequent first"},
    NameInWords{"line of a report", "problem", "the case in words (docs/words.md)"},
    NameInWords{"line of a report", "ran on", "the engine that was really used, and its form"},
    NameInWords{"line of a report", "sampled", "which rows were compared, where not all were"},
    NameInWords{"line of a report", "expected", "what the fixture promises, and what came instead"},
    NameInWords{"line of a report", "reason", "the verdict in a sentence"},
    NameInWords{"line of a report", "lint", "what the backend reports beside its result"},
    NameInWords{"line of a report", "diagnosis",
                "the known mistake that explains the wrong output, and how well"},
    NameInWords{"line of a report", "shrunk",
                "a smaller case with the same verdict by the same oracle or rule, and how many "
                "trials and steps led to it; that one is saved"},
    NameInWords{"line of a report", "saved", "the fixture that replays the failure"},
    NameInWords{"line of a report", "again", "the line that judges the case again"},
    // Rules modes
    NameInWords{"rules mode", "enforce", "a call that breaks a rule is not launched"},
    NameInWords{"rules mode", "report", "broken rules are listed, and the kernel runs"},
    NameInWords{"rules mode", "off", "no rule is looked at"},
    NameInWords{"rules mode", "enforced",
                "of a fixture: its verdict with --rules=enforce, where a broken rule rejects"},
    NameInWords{
        "rules mode", "reported",
        "of a fixture: its verdict with --rules=report, where the kernel runs all the same"},
    // Engines (docs/backends.md, docs/amx.md, docs/hip.md)
    NameInWords{"engine", "cpu", "code for the CPU that it runs on, nothing emulated"},
    NameInWords{"engine", "native", "the CPU's own AMX tiles"},
    NameInWords{"engine", "patch",
                "AMX code on any CPU: each tile instruction is replaced, when first met, by a call "
                "of the emulator"},
    NameInWords{"engine", "trap",
                "AMX code on any CPU: each tile instruction raises SIGILL and is emulated then"},
    NameInWords{"engine", "host", "HIP code on the CPU, a fiber for each thread of a block"},
    NameInWords{"engine", "cuda",
                "an NVIDIA GPU: HIP code through nvcc, or the kernel of a Python package"},
    NameInWords{"engine", "rocm",
                "an AMD GPU: HIP code through hipcc, or the kernel of a Python package"},
    NameInWords{"engine", "rocjitsu", "HIP code through hipcc, under AMD's CPU emulator"},
    // Forms of a launch
    NameInWords{"line of a report", "form",
                "how the kernel was launched: 2d, 3d, split N, work lists"},
    NameInWords{"form", "2d", "each row's keys are walked once"},
    NameInWords{"form", "3d", "the keys are split, and a second kernel merges the parts"},
    NameInWords{"form", "split N", "the keys were split into N parts"},
    NameInWords{"form", "work lists", "each part of a row's keys is an entry of the call's lists"},
    NameInWords{"evidence", "real",
                "a fixture whose call was made, or whose bug was seen, outside"},
    NameInWords{"evidence", "modelled",
                "a fixture of a mistake as we wrote it down: nobody reported these numbers"},
    // Poison (docs/data.md)
    NameInWords{"region", "before the pool", "in front of the pool: a wrapped, negative offset"},
    NameInWords{"region", "unreferenced page",
                "a page that no request holds, or bytes between rows"},
    NameInWords{"region", "past kv_len", "the rest of a request's last page"},
    NameInWords{"region", "token not stored yet", "a new token's slot before it is stored"},
    NameInWords{"region", "behind the pool", "past the pool's last byte"},
    // Counters of the run record
    NameInWords{"counter", "kv_bytes", "bytes of K and V that the launch asks for"},
    NameInWords{"counter", "kv_bytes_minimum", "the same if every key were loaded once a kv head"},
    NameInWords{"counter", "launches", "kernels launched: 2 with a reduction over splits"},
    NameInWords{"counter", "tile_loads", "AMX tiles loaded"},
    NameInWords{"counter", "tile_dots", "AMX tile products"},
    NameInWords{"counter", "tile_bytes", "bytes of the AMX tiles loaded"},
    // Signatures (docs/contracts.md)
    NameInWords{"signature", "unified",
                "AITER's unified_attention, and vLLM's Triton kernel of that name: paged K and V"},
    NameInWords{"signature", "extend", "SGLang's CPU kernel extend_attention_cpu"},
    NameInWords{"signature", "decode", "SGLang's CPU kernel decode_attention_cpu"},
    NameInWords{"signature", "mla_decode", "AITER's mla_decode_fwd: latent attention"},
    NameInWords{"signature", "batch_prefill",
                "AITER's mha_batch_prefill_func over a pool of one token a page"},
    NameInWords{"signature", "paged_ragged", "AITER's paged_attention_ragged: one row a request"},
    NameInWords{"signature", "legacy_extend",
                "SGLang's Triton extend_attention_fwd: new K and V apart from the pool"},
    NameInWords{"signature", "vllm_cpu", "vLLM's cpu_attention_with_kv_cache"},
};

}  // namespace

std::span<const NameInWords> names_in_words() { return words; }

}  // namespace attest
