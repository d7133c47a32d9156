"""The work lists of AITER's persistent MLA kernel: recorded with what they were made for."""

import json
import sys
import warnings

import attest_record
from attest_record import checker

from . import toy
from .harness import run, torch
from .sglang_world import Layer, World

SOURCE = """
import torch_of_the_test as torch

def get_mla_metadata_info_v1(batch_size, max_seqlen_qo, num_head_qo, q_dtype, kv_dtype, is_sparse=False,
                             fast_mode=True, num_kv_splits=32, intra_batch_mode=False):
    return ((2, None), (3, None), ((batch_size + 2, 8), None), (batch_size + 1, None),
            ((batch_size, 2), None), (4, None))

fills = True

def get_mla_metadata_v1(seqlens_qo_indptr, seqlens_kv_indptr, kv_last_page_lens, num_heads_per_head_k, num_heads_k,
                        is_causal, work_metadata_ptrs, work_info_set, work_indptr, reduce_indptr,
                        reduce_final_map, reduce_partial_map, page_size=1, kv_granularity=16, max_seqlen_qo=-1,
                        uni_seqlen_qo=-1, fast_mode=True, topk=-1, max_split_per_batch=-1,
                        intra_batch_mode=False, dtype_q=None, dtype_kv=None):
    if not fills:
        return
    works, indptr, final_map = work_info_set, work_indptr, reduce_final_map
    ends = seqlens_kv_indptr.tolist()
    batch = len(ends) - 1
    for i in range(batch):
        row = [i, -1, i * max_seqlen_qo, (i + 1) * max_seqlen_qo, ends[i], ends[i + 1], 0, 0]
        for j, value in enumerate(row):
            works[i, j] = value
        final_map[i, 0], final_map[i, 1] = row[2], row[3]
    indptr[0], indptr[1], indptr[2] = 0, 1, batch
    for i in range(batch + 1):
        reduce_indptr[i] = 0

def mla_decode_fwd(q, kv_buffer, o, qo_indptr, kv_indptr, kv_indices, kv_last_page_lens, max_seqlen_q,
                   page_size=1, nhead_kv=1, sm_scale=None, logit_cap=0.0, num_kv_splits=None,
                   num_kv_splits_indptr=None, work_meta_data=None, work_indptr=None, work_info_set=None,
                   reduce_indptr=None, reduce_final_map=None, reduce_partial_map=None, q_scale=None,
                   kv_scale=None):
    return o

class AiterAttnBackend:
    num_draft_tokens, topk, use_mla = 4, 1, True
    planned_rows = None

    def __init__(self, runner):
        self.req_to_token_pool = runner.req_to_token_pool
        self.token_to_kv_pool = runner.token_to_kv_pool
        self.kv_cache_dtype = runner.kv_cache_dtype
        self.max_context_len = 496
        self.page_size = 1

    def forward_extend(self, q, k, v, layer, forward_batch, metadata, **newer):
        qo, kv, indices, last, width = metadata
        batch = len(last.tolist())
        sizes = get_mla_metadata_info_v1(batch, width, 16, torch.bfloat16, torch.bfloat16)
        ints = lambda shape: torch.zeros(*shape, dtype=torch.int32)
        works = dict(work_indptr=ints((3,)), work_info_set=ints(sizes[2][0]), reduce_indptr=ints((batch + 1,)),
                     reduce_final_map=ints((batch, 2)), reduce_partial_map=ints((4,)))
        get_mla_metadata_v1(qo, kv, last, 16, 1, False, None, works["work_info_set"], works["work_indptr"],
                            works["reduce_indptr"], works["reduce_final_map"], works["reduce_partial_map"],
                            max_seqlen_qo=self.planned_rows or width, dtype_q=torch.bfloat16, dtype_kv=torch.bfloat16)
        pool = self.token_to_kv_pool.k
        return mla_decode_fwd(q, pool.view(-1, 1, 1, 576), q.new_empty((q.shape[0], 16, 512)), qo, kv, indices, last,
                              width, sm_scale=layer.scaling, work_meta_data=ints((2,)), **works)
"""


def latent_layer():
    layer = Layer(q_heads=16, kv_heads=1, dim=576)
    layer.v_head_dim, layer.scaling = 512, 0.07216878364870322
    return layer


class WorkPlans(toy.Recording):
    planned_rows = None

    def setUp(self):
        sys.modules["torch_of_the_test"] = torch
        self.addCleanup(sys.modules.pop, "torch_of_the_test", None)
        super().setUp()
        self.enterContext(toy.on_disk(SOURCE))

    def verify(self, module, lengths=(40, 9), width=4):
        here = World(lengths, draft_tokens=width, page_size=1, layer=latent_layer())
        backend = module.AiterAttnBackend(here.runner)
        backend.planned_rows = self.planned_rows
        batch = here.batch("target_verify", [width] * len(lengths))
        ends = [0]
        slots = []
        for i, length in enumerate(lengths):
            slots += here.table[i, : length + width].tolist()
            ends.append(len(slots))
        ints = lambda values: torch.tensor(values, dtype=torch.int32)
        rows = torch.empty(width * len(lengths), 16, 576, dtype=torch.bfloat16)
        metadata = (
            ints([width * i for i in range(len(lengths) + 1)]),
            ints(ends),
            ints(slots),
            ints([1] * len(lengths)),
            width,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            backend.forward_extend(rows, rows, rows, here.layer, batch, metadata)

    def findings(self):
        (record,) = self.records()
        result = checker.find().check(json.dumps(record))
        return record, {finding["rule"] for finding in result.findings}

    def test_lists_are_recorded_with_their_plan_and_accepted(self):
        self.install()
        self.verify(toy.imported())
        record, rules = self.findings()
        self.assertEqual(record["work_plan"]["metadata"]["max_seqlen_qo"], 4)
        self.assertEqual(record["work_plan"]["info"]["num_heads"], 16)
        self.assertEqual(record["work_plan"]["metadata"]["max_splits"], -1)
        self.assertEqual(record["args"]["work_info_set"]["values"][1][:6], [1, -1, 4, 8, 44, 57])
        self.assertEqual(rules, set())

    def test_lists_planned_for_one_row_are_found(self):
        self.planned_rows = 1
        self.install()
        self.verify(toy.imported())
        _, rules = self.findings()
        self.assertIn("work_plan.is_the_launchs", rules)
        self.assertIn("work_info.covers_every_key_once", rules)

    def test_a_planner_that_fills_nothing_is_not_judged(self):
        self.install()
        module = toy.imported()
        module.fills = False
        self.verify(module)
        record, rules = self.findings()
        self.assertNotIn("work_plan", record)
        self.assertIn("taken for unfilled", " ".join(record["notes"]))
        self.assertEqual(rules, {"persistent.is_off"})

    def test_uninstall_leaves_the_planner_alone(self):
        module = toy.imported()
        before = module.get_mla_metadata_v1
        self.install()
        self.assertIsNot(module.get_mla_metadata_v1, before)
        attest_record.uninstall()
        self.assertIs(module.get_mla_metadata_v1, before)


if __name__ == "__main__":
    run(__name__)
