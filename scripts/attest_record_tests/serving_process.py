"""A process that serves with the four opening bugs, one after the other, as SGLang calls its kernels:
eagerly, while a graph is captured, by replaying it. Prints what was reported, as JSON.

Run below `python3 -m attest_record --live ...` with made_up_server on PYTHONPATH, and made_up_torch, or
ATTEST_TEST_TORCH=real: then graphs are those of a GPU.
"""

import json
import os
import warnings

import torch

if os.environ.get("ATTEST_TEST_TORCH") == "real":
    torch.set_default_device("cuda")

from sglang.srt.layers.attention import aiter_backend, intel_amx_backend
from sglang.srt.model_executor.runner.decode_cuda_graph_runner import DecodeCudaGraphRunner

import attest_record

from .sglang_world import Layer, World

# bug: mode, draft tokens of each request, committed tokens, what the server was started with
AITER = {
    "configured width": ("target_verify", [2, 2], [141, 63], {}),
    "rows // batch": ("target_verify", [3, 5], [141, 63], {}),
    "int32 lengths": ("draft_extend_v2", [4, 4], [141, 63], {"tokens": 8_500_000}),
    "expanded heads": ("target_verify", [4, 4], [141, 63], {}),
    "no split-KV": ("draft_extend_v2", [4, 4], [1500, 63], {"context_len": 2048}),
}


def reports_of(act):
    """What the live check says while act() runs, each with how it was said. What it said before
    counts anew: a report is given once a process."""
    attest_record.install()._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raised = []
        try:
            act()
        except attest_record.BrokenRule as broken:
            raised = [["BrokenRule", str(broken)]]
    return raised + [[type(w.message).__name__, str(w.message)] for w in caught]


def aiter_world(bug):
    mode, widths, lengths, options = AITER[bug]
    options = {"context_len": 512, "tokens": 16384, **options}
    here = World(lengths, draft_tokens=4, layer=Layer(q_heads=8, kv_heads=1), **options)
    return here, here.batch(mode, widths), here.rows(sum(widths))


def aiter(bug, fixed):
    """{how: reports}; the graph is of two requests and two layers."""
    here, batch, rows = aiter_world(bug)
    make = lambda: aiter_backend.AiterAttnBackend(here.runner, 16, 2, "" if fixed else bug)
    eager = make()

    def run_eagerly():
        eager.init_forward_metadata(batch)
        eager.forward_extend(*rows, here.layer, batch)

    layers = [here.layer, Layer(q_heads=8, kv_heads=1)]
    runner = DecodeCudaGraphRunner(make(), layers)
    return {
        "eager": reports_of(run_eagerly),
        "capture": reports_of(lambda: runner.capture(batch, rows)),
        "replay": reports_of(lambda: runner.execute(batch)),
        "replay, other lengths": reports_of(lambda: runner.execute(_grown(here, batch))),
    }


def _grown(here, batch):
    """The next step: every request kept two tokens."""
    mode, new_tokens = batch.forward_mode.name, batch.extend_seq_lens.tolist()
    here.lengths = [length + 2 for length in here.lengths]
    return here.batch(mode, new_tokens)


def amx_verify(bug, fixed):
    here = World([141, 63], draft_tokens=4, page_size=1)
    backend = intel_amx_backend.IntelAMXAttnBackend(here.runner, 2, "" if fixed else bug)

    def verify(lengths):
        batch = here.batch("target_verify", [4] * len(lengths), lengths)
        backend.init_forward_metadata(batch)
        backend.forward_extend(*here.rows(4 * len(lengths)), here.layer, batch)

    return _on_a_cpu(verify)


def amx_draft(bug, fixed):
    here = World([141, 63], draft_tokens=4, page_size=1)
    made = intel_amx_backend.IntelAMXMultiStepDraftBackend(
        here.runner, 1, 3, "" if fixed else bug
    )

    def draft(lengths):
        for step, backend in enumerate(made.attn_backends):
            batch = here.batch("decode", [1] * len(lengths), [length + step for length in lengths])
            batch.seq_lens = torch.tensor(lengths, dtype=torch.int64)
            batch.spec_info = here.batch("target_verify", [4] * len(lengths), lengths).spec_info
            backend.init_forward_metadata(batch)
            backend.forward_decode(*here.rows(len(lengths)), here.layer, batch)

    return _on_a_cpu(draft)


def _on_a_cpu(step):
    """A CPU graph is a compiled function: its metadata is refilled in place and the kernel called from
    Python every time, while it is compiled too, then for one request nobody has."""
    return {
        "eager": reports_of(lambda: step([141, 63])),
        "capture": reports_of(lambda: step([5])),
        "replay": reports_of(lambda: step([140])),
    }


def main():
    cases = {bug: aiter for bug in AITER}
    cases.update({"short prefix, verify": amx_verify, "short prefix, draft decode": amx_draft})
    reports = {
        bug: {form: serve(bug, form == "fixed") for form in ("broken", "fixed")}
        for bug, serve in cases.items()
    }
    launched = aiter_backend.LAUNCHED + intel_amx_backend.LAUNCHED
    print(json.dumps({"reports": reports, "launched": len(launched)}))


if __name__ == "__main__":
    main()
