#!/usr/bin/env python3
"""What the recorder costs a decode step: python3 scripts/attest_record_overhead.py [--help]

A step is one forward and one kernel call per layer. Both costs are measured in this process, on a
backend that hands over real metadata to a kernel that does nothing: what every call pays (with and
without the recorder, in alternating blocks) and what a sampled one pays. They are then set against
a step of the length given. Processor time throughout, and the least and the median of many blocks:
on a busy machine the least is the cost, the median has the neighbours' in it. With torch installed
the tensors are torch's, else the plain-Python stand-in's of the tests.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    import torch  # noqa: F401

    os.environ["ATTEST_TEST_TORCH"] = "real"
except ImportError:
    pass

import attest_record
from attest_record_tests import toy
from attest_record_tests.harness import torch
from attest_record_tests.sglang_world import World


def decode_call(batch, context, page):
    """A backend and what one decode call of it takes."""
    module = toy.imported()
    world = World(
        [context - 1 - i for i in range(batch)],
        4,
        page,
        context + page,
        tokens=(batch + 2) * (context + 4 * page),
    )
    backend = module.AiterAttnBackend(world.runner, page)
    backend.max_context_len = context
    step = world.batch("decode", [1] * batch)
    table = (world.table[:batch, ::page] // page).contiguous()
    lengths = world.batch("decode", [1] * batch).seq_lens
    metadata = (torch.arange(0, batch + 1, dtype=torch.int32), lengths, table.to(torch.int32), 1)
    rows = world.rows(batch)
    return module, lambda: backend.forward_extend(*rows, world.layer, step, metadata=metadata)


def blocks(call, count, size):
    """Microseconds per call, of so many blocks."""
    times = []
    for _ in range(count):
        began = time.process_time()
        for _ in range(size):
            call()
        times.append((time.process_time() - began) / size * 1e6)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument(
        "--step-ms", type=float, default=10.0, help="length of a step without the recorder"
    )
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--page", type=int, default=16)
    parser.add_argument("--every", type=int, default=1000)
    options = parser.parse_args()

    os.environ["ATTEST_QUIET"] = "1"
    with toy.on_disk():
        module, call = decode_call(options.batch, options.context, options.page)
        module.unified_attention = lambda *args, **kwargs: None
        owner = module.AiterAttnBackend
        bare = (module.unified_attention, owner.forward_extend)
        attest_record.install(attest_record.Settings(live="warn", every=10**9))
        wrapped = (module.unified_attention, owner.forward_extend)
        call()  # the first call is always sampled
        plain, watched = [], []
        for _ in range(40):
            for pair, times in ((bare, plain), (wrapped, watched)):
                module.unified_attention, owner.forward_extend = pair
                times += blocks(call, 1, 2000)
        attest_record.uninstall()
        session = attest_record.install(attest_record.Settings(live="warn", every=1))
        samples = blocks(call, 200, 1)
        counts = dict(session.counts)
        attest_record.uninstall()

    print(f"tensors     {torch.__name__}; checker {attest_record.checker.find().path}")
    print(
        f"call        batch {options.batch}, context {options.context}, page {options.page}; {counts['judged']} judged, {counts['findings']} findings"
    )
    print(
        f"step        {options.layers} layers, {options.step_ms:g} ms; 1 call in {options.every} sampled, recorded and checked"
    )
    for name, pick in (("least", min), ("median", statistics.median)):
        each, sample = pick(watched) - pick(plain), pick(samples) - pick(plain)
        per_step = options.layers * (each + sample / options.every)
        share = per_step / options.step_ms / 10
        print(
            f"{name:11} every call {each:.2f} us, a sampled one {sample:.0f} us: {per_step:.0f} us a step, {share:.2f} %"
        )


if __name__ == "__main__":
    main()
