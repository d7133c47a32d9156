"""A made-up SGLang with one backend, on disk, so that the import hooks have something to meet."""

import contextlib
import importlib
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import attest_record
from attest_record.session import Settings

from .harness import torch
from .sglang_world import World

NAME = "sglang.srt.layers.attention.aiter_backend"

SOURCE = """
launched = []

def unified_attention(q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k, softmax_scale,
                      causal, window_size, block_table, softcap, q_descale, k_descale, v_descale,
                      sinks=None, **newer):
    launched.append(newer)
    if newer.get("explode"):
        raise newer["explode"]
    return out

class AiterAttnBackend:
    num_draft_tokens, topk, use_mla = 4, 1, False
    short_by = 0

    def __init__(self, runner, page_size=16):
        self.req_to_token_pool = runner.req_to_token_pool
        self.token_to_kv_pool = runner.token_to_kv_pool
        self.kv_cache_dtype = runner.kv_cache_dtype
        self.max_context_len = 496
        self.page_size = page_size

    def forward_extend(self, q, k, v, layer, forward_batch, metadata, **newer):
        cu, used, table, width = metadata
        shape = (-1, layer.tp_q_head_num, layer.qk_head_dim)
        pool = (-1, self.page_size, layer.tp_k_head_num, layer.qk_head_dim)
        # Half of it by position, half by name, as callers do.
        return unified_attention(
            q.view(shape), self.token_to_kv_pool.k.view(pool), self.token_to_kv_pool.v.view(pool),
            out=q.new_empty(q.shape).view(shape), cu_seqlens_q=cu, seqused_k=used, max_seqlen_q=width,
            max_seqlen_k=table.shape[1] * self.page_size, softmax_scale=layer.scaling, causal=True, window_size=(-1, -1),
            block_table=table, softcap=layer.logit_cap, q_descale=None, k_descale=None,
            v_descale=None, **newer)
"""


@contextlib.contextmanager
def on_disk(source=SOURCE):
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, *NAME.split(".")[:-1])
        folder.mkdir(parents=True)
        (folder / "aiter_backend.py").write_text(source)
        sys.path.insert(0, root)
        importlib.invalidate_caches()
        try:
            yield Path(root)
        finally:
            sys.path.remove(root)
            for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
                del sys.modules[name]


class Server:
    """Makes verify calls of the toy backend, right ones unless asked."""

    def __init__(self, module, lengths=(141, 63)):
        self.world = World(lengths, draft_tokens=4, context_len=512)
        self.backend = module.AiterAttnBackend(self.world.runner)

    def verify(self, short_by=0, dtype=None, widths=(4, 4), lost=False, **newer):
        here = self.world
        batch = here.batch("target_verify", list(widths))
        if lost:
            batch.out_cache_loc[1] = 9999
        ends = [sum(widths[:i]) for i in range(len(widths) + 1)]
        used = [length + width - short_by for length, width in zip(here.lengths, widths)]
        table = [[slot // 16 for slot in here.table[i, ::16].tolist()] for i in range(len(widths))]
        metadata = (
            torch.tensor(ends, dtype=torch.int32),
            torch.tensor(used, dtype=dtype or torch.int64),
            torch.tensor(table, dtype=torch.int32),
            max(widths),
        )
        rows = here.rows(sum(widths))
        return self.backend.forward_extend(*rows, here.layer, batch, metadata=metadata, **newer)


def imported():
    return importlib.import_module(NAME)


class Recording(unittest.TestCase):
    """Each test has a toy framework and a folder of its own."""

    def setUp(self):
        self.enterContext(on_disk())
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.addCleanup(attest_record.uninstall)
        os.environ["ATTEST_QUIET"] = "1"

    def enterContext(self, manager):  # unittest has it from Python 3.11 on
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def install(self, **settings):
        settings = {"folder": str(self.folder), "every": 1, "per_second": 1e6, **settings}
        return attest_record.install(Settings(**settings))

    def records(self):
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]
