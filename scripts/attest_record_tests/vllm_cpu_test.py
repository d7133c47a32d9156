"""vLLM's CPU attention, watched in a made-up vLLM with its module names, classes and call sites."""

import contextlib
import importlib
import json
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import attest_record
from attest_record import checker
from attest_record.session import Settings

from .harness import run, torch

OPS = """
launched = []

def cpu_attention_with_kv_cache(query, key_cache, value_cache, output, query_start_loc, seq_lens, scale, causal,
                                alibi_slopes, sliding_window, block_table, softcap, scheduler_metadata, s_aux,
                                dynamic_causal=None, k_scale=1.0, v_scale=1.0, kv_cache_dtype="auto"):
    launched.append(sliding_window)
"""

# How the two published generations split the cache and say the window.
CPU_ATTN = """
from vllm import _custom_ops as ops

class CPUAttentionBackendImpl:
    num_heads, num_kv_heads, head_size, scale, logits_soft_cap = 4, 2, 64, 0.125, 0
    kv_cache_dtype, sinks, alibi_slopes = "auto", None, None

    def __init__(self, window, later):
        self.later = later
        self.sliding_window = (window or -1) if later else ((window - 1, 0) if window else (-1, -1))

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output=None):
        if self.later:
            pages, heads, page, _ = kv_cache.shape
            both = kv_cache.view(pages, heads, 2 * page, -1)
            key_cache, value_cache = both[:, :, :page], both[:, :, page:]
        else:
            key_cache, value_cache = kv_cache[0], kv_cache[1]
        ops.cpu_attention_with_kv_cache(
            query=query, key_cache=key_cache, value_cache=value_cache, output=output,
            query_start_loc=attn_metadata.query_start_loc, seq_lens=attn_metadata.seq_lens,
            scale=self.scale, causal=True, alibi_slopes=self.alibi_slopes,
            sliding_window=self.sliding_window, block_table=attn_metadata.block_table,
            softcap=self.logits_soft_cap, scheduler_metadata=attn_metadata.scheduler_metadata,
            s_aux=self.sinks)
        return output
"""

RUNNER = """
class GPUModelRunner:
    def execute_model(self, scheduled, step):
        return step()
"""

MODULES = {
    "vllm._custom_ops": OPS,
    "vllm.v1.attention.backends.cpu_attn": CPU_ATTN,
    "vllm.v1.worker.gpu_model_runner": RUNNER,
}


@contextlib.contextmanager
def on_disk():
    with tempfile.TemporaryDirectory() as root:
        for name, source in MODULES.items():
            path = Path(root, *name.split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        sys.path.insert(0, root)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(root)
            for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
                del sys.modules[name]


def ints(values, dtype=None):
    return torch.tensor(values, dtype=dtype or torch.int32)


class CpuAttention(unittest.TestCase):
    def setUp(self):
        for manager in (on_disk(), tempfile.TemporaryDirectory()):
            self.folder = Path(manager.__enter__() or ".")
            self.addCleanup(manager.__exit__, None, None, None)
        self.addCleanup(attest_record.uninstall)
        os.environ["ATTEST_QUIET"] = "1"
        attest_record.install(
            Settings(folder=str(self.folder), every=1, per_second=1e6, share=1.0)
        )

    def record(self, later, window=None, lengths=(38, 4), dtype=None):
        """The one record of a step with three and one new tokens over 35 and 3 committed ones."""
        backends = importlib.import_module("vllm.v1.attention.backends.cpu_attn")
        runner = importlib.import_module("vllm.v1.worker.gpu_model_runner").GPUModelRunner()
        rows = ints([[4, 5, 0, 0], [7, 0, 0, 0]])
        table = types.SimpleNamespace(get_numpy_array=lambda: rows)
        runner.max_model_len = 128
        runner.input_batch = types.SimpleNamespace(
            req_ids=["a", "b"],
            num_reqs=2,
            num_computed_tokens_cpu=ints([35, 3]),
            block_table=types.SimpleNamespace(block_tables=[table]),
        )
        scheduled = types.SimpleNamespace(
            num_scheduled_tokens={"a": 3, "b": 1}, scheduled_spec_decode_tokens={"a": [1, 2]}
        )
        metadata = types.SimpleNamespace(
            query_start_loc=ints([0, 3, 4]),
            seq_lens=ints(list(lengths), dtype),
            block_table=rows,
            scheduler_metadata=torch.empty(64, dtype=torch.uint8),
        )
        shape = (12, 2, 32, 128) if later else (2, 12, 2, 32, 64)
        cache = torch.empty(*shape, dtype=torch.bfloat16)
        q = torch.empty(4, 4, 64, dtype=torch.bfloat16)
        out = torch.empty(4, 4, 64, dtype=torch.bfloat16)
        backend = backends.CPUAttentionBackendImpl(window, later)
        runner.execute_model(
            scheduled, lambda: backend.forward(None, q, None, None, cache, metadata, out)
        )
        (path,) = self.folder.glob("*.json")
        record = json.loads(path.read_text())
        path.unlink()
        attest_record.uninstall()
        attest_record.install(
            Settings(folder=str(self.folder), every=1, per_second=1e6, share=1.0)
        )
        return record

    def findings(self, record):
        result = checker.find().check(json.dumps(record))
        return result.code, [finding["rule"] for finding in result.findings]

    def test_a_right_call_has_no_finding(self):
        for later in (False, True):
            for window in (None, 8):
                with self.subTest(later=later, window=window):
                    record = self.record(later, window)
                    self.assertEqual(record["args"]["sliding_window"], window or -1)
                    self.assertEqual(record["args"]["key_cache"]["shape"], [12, 2, 32, 64])
                    self.assertEqual(record["truth"]["page_size"], 32)
                    self.assertEqual(self.findings(record), (0, []))

    def test_factors_in_tensors_are_numbers(self):
        one, half = (torch.tensor([value], dtype=torch.float32) for value in (1.0, 0.5))
        bound = {"k_scale": one, "v_scale": half, "causal": True}
        describer = attest_record.session.describe.Describer()
        kernel = "cpu_attention_with_kv_cache"
        args, _ = attest_record.session.record_arguments(kernel, bound, describer)
        self.assertEqual((args.get("k_scale"), args["v_scale"]), (None, 0.5))

    def test_an_encoders_layer_has_no_truth(self):
        backends = importlib.import_module("vllm.v1.attention.backends.cpu_attn")
        with mock.patch.object(
            backends.CPUAttentionBackendImpl, "attn_type", "encoder_decoder", create=True
        ):
            record = self.record(True)
        self.assertNotIn("truth", record)
        self.assertIn("no truth: an encoder's layer", record["notes"][0])
        result = checker.find().check(json.dumps(record))
        self.assertEqual((result.code, result.reason), (3, record["notes"][0]))

    def test_committed_lengths_in_place_of_the_total_are_rejected(self):
        code, rules = self.findings(self.record(True, lengths=(35, 3)))
        self.assertEqual((code, rules), (2, ["seqused_k.counts_this_steps_tokens"] * 2))

    def test_int64_lengths_are_rejected(self):
        code, rules = self.findings(self.record(False, dtype=torch.int64))
        self.assertEqual((code, rules), (2, ["dtypes.index_arrays_are_int32"]))


if __name__ == "__main__":
    run(__name__)
