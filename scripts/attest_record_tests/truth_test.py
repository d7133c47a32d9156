"""What the recorder takes for the truth."""

import types
import unittest

from attest_record import truth_vllm
from attest_record.describe import Describer, PoolView
from attest_record.truth import NoTruth, runs_of, sglang_truth

from .harness import run, torch
from .sglang_source import Mode
from .sglang_world import Layer, World


def _ints(values, dtype=None):
    return torch.tensor(list(values), dtype=dtype or torch.int64)


class SglangTruth(unittest.TestCase):
    def setUp(self):
        self.world = World([30, 9], draft_tokens=4, page_size=1)
        self.backend = self.world.backend()

    def of(self, batch, layer=None):
        return sglang_truth(self.backend, layer or self.world.layer, batch)

    def test_verify_counts_committed_and_new_apart(self):
        mode, truth = self.of(self.world.batch("target_verify", [2, 5]))
        self.assertEqual(
            (mode, truth["committed"], truth["new_tokens"]), ("target_verify", [30, 9], [2, 5])
        )
        self.assertEqual([sum(n for _, n in runs) for runs in truth["req_to_token_runs"]], [32, 14])

    def test_verify_without_stored_slots_divides_evenly_or_not_at_all(self):
        batch = self.world.batch("target_verify", [3, 3])
        batch.out_cache_loc = None
        self.assertEqual(self.of(batch)[1]["new_tokens"], [3, 3])
        batch.input_ids = torch.zeros(7, dtype=torch.int64)
        with self.assertRaisesRegex(NoTruth, "7 draft tokens in 2 requests"):
            self.of(batch)

    def test_decode_has_its_token_among_the_lengths(self):
        self.assertEqual(self.of(self.world.batch("decode", [1, 1]))[1]["committed"], [30, 9])

    def test_extend_takes_the_prefixes(self):
        mode, truth = self.of(self.world.batch("extend", [7, 1]))
        self.assertEqual(
            (mode, truth["committed"], truth["new_tokens"]), ("extend", [30, 9], [7, 1])
        )

    def test_draft_extend_lengths_include_the_new_tokens(self):
        mode, truth = self.of(self.world.batch("draft_extend_v2", [4, 4]))
        self.assertEqual((mode, truth["committed"]), ("draft_extend_v2", [30, 9]))

    def test_draft_decode_has_a_row_per_branch_and_that_branchs_slots(self):
        self.backend.attest_draft_step, self.backend.attest_draft_topk = 1, 2
        self.backend.attest_draft_steps = 3
        batch = self.world.batch("decode", [1, 1])
        batch.seq_lens = _ints([30, 9])
        mode, truth = self.of(batch)
        self.assertEqual(
            (mode, truth["committed"], truth["base_committed"]),
            ("draft_decode", [31, 31, 10, 10], [30, 30, 9, 9]),
        )
        first = int(self.world.table[0, 0])
        self.assertEqual(truth["req_to_token_runs"][1], [[first, 30], [first + 33, 2]])

    def test_a_draft_step_of_unknown_number_is_not_guessed(self):
        batch = self.world.batch("decode", [1, 1])
        batch.spec_info = types.SimpleNamespace(kv_indptr=_ints([0, 31, 41]), topk=1)
        with self.assertRaisesRegex(NoTruth, "draft step of unknown number"):
            self.of(batch)
        batch.spec_info = None
        self.backend.draft_decode_metadata = ("table", "lengths", "rows")
        with self.assertRaisesRegex(NoTruth, "draft step of unknown number"):
            self.of(batch)

    def test_a_windowed_layer_reads_its_own_pool(self):
        layer = Layer()
        layer.sliding_window_size = 7
        pool = self.world.pool
        pool.full_to_swa_index_mapping = torch.arange(0, 16384, 1, dtype=torch.int64) // 2
        pool.swa_kv_pool = types.SimpleNamespace(size=99)
        _, truth = self.of(self.world.batch("decode", [1, 1]), layer)
        first = int(self.world.table[1, 0])
        self.assertEqual(truth["swa_slot_runs"][1][0][0], first // 2)
        self.assertEqual(truth["pool_tokens"], 99)

    def test_pools_are_the_layers_own(self):
        pools = [torch.empty(64, 2, 8, device="meta") for _ in range(3)]
        self.world.pool.k_buffer, self.world.pool.v_buffer = pools[:2], [pools[2]] * 2
        self.world.pool.start_layer = 4
        layer = Layer()
        layer.layer_id = 5
        truth = self.of(self.world.batch("decode", [1, 1]), layer)[1]
        self.assertIs(truth["k_pool"].tensor, pools[1])
        self.assertIs(truth["v_pool"].tensor, pools[2])
        layer.layer_id = 6  # of another rank
        self.assertNotIn("k_pool", self.of(self.world.batch("decode", [1, 1]), layer)[1])

    def test_a_table_too_narrow_is_said(self):
        batch = self.world.batch("decode", [1, 1])
        batch.seq_lens = _ints([600, 9])
        with self.assertRaisesRegex(NoTruth, "row 0 has 600 tokens"):
            self.of(batch)

    def test_layers_whose_keys_the_lengths_do_not_tell_are_not_judged(self):
        batch = self.world.batch("decode", [1, 1])
        for owner, changes, text in (
            (Layer(), {"is_cross_attention": True}, "cross attention"),
            (Layer(), {"attn_type": types.SimpleNamespace(value="encoder_only")}, "not causal"),
            (self.backend, {"attn_dcp_size": 2}, "context parallelism"),
            (self.backend, {"attn_dcp_size": 1, "token_to_kv_pool": None}, "KV pool"),
        ):
            for name, value in changes.items():
                setattr(owner, name, value)
            with self.subTest(text), self.assertRaisesRegex(NoTruth, text):
                self.of(batch, owner if isinstance(owner, Layer) else None)

    def test_an_unknown_mode_is_said(self):
        batch = self.world.batch("decode", [1, 1])
        batch.forward_mode = Mode("dllm_extend")
        with self.assertRaisesRegex(NoTruth, "not known"):
            self.of(batch)

    def test_rows_of_other_lengths_and_no_rows(self):
        batch = self.world.batch("decode", [1, 1])
        self.world.table[1, 3] = 7  # a run that breaks, in the shorter row
        first, second = int(self.world.table[0, 0]), int(self.world.table[1, 0])
        runs = self.of(batch)[1]["req_to_token_runs"]
        self.assertEqual(runs, [[[first, 31]], [[second, 3], [7, 1], [second + 4, 6]]])
        batch.req_pool_indices = batch.seq_lens = _ints([])
        self.assertEqual(self.of(batch)[1]["req_to_token_runs"], [])

    def test_runs(self):
        self.assertEqual(runs_of([5, 6, 7, 2, 9, 10]), [[5, 3], [2, 1], [9, 2]])
        self.assertEqual(runs_of([]), [])


class VllmTruth(unittest.TestCase):
    def of(
        self, scheduled=None, tables=1, spec=None, cache=(2, 12, 16, 2, 64), window=(-1, -1)
    ):
        rows = _ints([[4, 5, 9, 0], [7, 0, 0, 0]])
        table = types.SimpleNamespace(get_numpy_array=lambda: rows)
        batch = types.SimpleNamespace(
            req_ids=["a", "b", None],
            num_reqs=2,
            num_computed_tokens_cpu=_ints([35, 3, 0]),
            block_table=types.SimpleNamespace(block_tables=[table] * tables),
        )
        runner = types.SimpleNamespace(input_batch=batch, max_model_len=64)
        output = types.SimpleNamespace(
            num_scheduled_tokens=scheduled or {"a": 3, "b": 1},
            scheduled_spec_decode_tokens=spec or {},
        )
        backend = types.SimpleNamespace(
            scale=0.1,
            num_heads=8,
            num_kv_heads=2,
            head_size=64,
            sliding_window=window,
            logits_soft_cap=0,
        )
        before = truth_vllm.enter(runner, output)
        try:
            return truth_vllm.vllm_truth(
                backend, torch.empty(*cache, dtype=torch.bfloat16, device="meta")
            )
        finally:
            truth_vllm.leave(before)

    def test_comes_from_the_scheduler(self):
        mode, truth = self.of(spec={"a": [1, 2]})
        self.assertEqual(
            (mode, truth["committed"], truth["new_tokens"]), ("target_verify", [35, 3], [3, 1])
        )
        self.assertEqual(truth["req_to_token_runs"], [[[64, 32], [144, 6]], [[112, 4]]])
        self.assertEqual((truth["page_size"], truth["pool_tokens"]), (16, 176))

    def test_a_window_is_a_pair_of_distances_or_a_number_of_keys(self):
        for window, distance in (
            ((-1, -1), -1), ([7, 0], 7), ((0, 0), 0), (None, -1), (-1, -1), (0, -1), (8, 7), (1, 0)
        ):
            with self.subTest(window=window):
                self.assertEqual(self.of(window=window)[1]["layer_sliding_window_size"], distance)

    def test_pools_are_the_halves_of_the_cache(self):
        describer = Describer()
        apart = self.of()[1]
        keys, values = (describer.pool(apart[name]) for name in ("k_pool", "v_pool"))
        self.assertEqual((keys["shape"], keys["strides"]), ([12, 16, 2, 64], [2048, 128, 64, 1]))
        self.assertEqual((keys["storage_offset"], values["storage_offset"]), (0, 12 * 2048))
        self.assertEqual(keys["mem"], values["mem"])
        by_page = self.of(cache=(12, 2, 16, 2, 64))[1]
        values = describer.pool(by_page["v_pool"])
        self.assertEqual((values["strides"], values["storage_offset"]), ([4096, 128, 64, 1], 2048))
        self.assertEqual((by_page["page_size"], by_page["pool_tokens"]), (16, 176))

    def test_a_pool_with_heads_first_is_shown_tokens_first(self):
        view = PoolView(torch.empty(2, 12, 3, 16, 64, device="meta"), 0, 1, heads_first=True)
        described = Describer().pool(view)
        self.assertEqual(described["shape"], [12, 16, 3, 64])
        self.assertEqual(described["strides"], [3072, 64, 1024, 1])

    def test_a_cpu_cache_with_v_behind_k(self):
        truth = self.of(cache=(12, 3, 16, 128))[1]
        keys, values = (Describer().pool(truth[name]) for name in ("k_pool", "v_pool"))
        self.assertEqual((keys["shape"], keys["strides"]), ([12, 16, 3, 64], [6144, 64, 2048, 1]))
        self.assertEqual((keys["storage_offset"], values["storage_offset"]), (0, 16 * 64))
        self.assertEqual((truth["page_size"], truth["pool_tokens"]), (16, 176))

    def test_modes(self):
        self.assertEqual(self.of({"a": 1, "b": 1})[0], "decode")
        self.assertEqual(self.of({"a": 3, "b": 1})[0], "mixed")

    def test_several_groups_are_not_guessed(self):
        with self.assertRaisesRegex(NoTruth, "several groups"):
            self.of(tables=2)

    def test_a_warm_up_has_none(self):
        with self.assertRaisesRegex(NoTruth, "no model runner"):
            truth_vllm.vllm_truth(None, None)


if __name__ == "__main__":
    run(__name__)
