"""What the recorder writes down, and what it says about a call on the spot."""

import importlib
import json
import os
import unittest
import warnings
from pathlib import Path
from unittest import mock

import attest_record
from attest_record import checker, kernels

from . import toy
from .harness import run, torch

SCRIPTS = Path(__file__).resolve().parents[1]


class Install(toy.Recording):
    def test_watches_a_backend_imported_later(self):
        self.install()
        toy.Server(toy.imported()).verify()
        self.assertEqual(len(self.records()), 1)

    def test_watches_a_backend_imported_before(self):
        module = toy.imported()
        server = toy.Server(module)
        self.install()
        server.verify()
        self.assertEqual(len(self.records()), 1)

    def test_twice_wraps_once(self):
        module = toy.imported()
        session = self.install()
        self.assertIs(self.install(), session)
        toy.Server(module).verify()
        self.assertEqual((len(module.launched), session.counts["recorded"]), (1, 1))

    def test_patching_a_module_again_wraps_nothing_twice(self):
        session = self.install(live="warn")
        module = toy.imported()
        attest_record._installed.patch(module)
        toy.Server(module).verify()
        self.assertEqual(session.counts["judged"], 1)

    def test_uninstall_puts_everything_back(self):
        module = toy.imported()
        before = (module.unified_attention, module.AiterAttnBackend.forward_extend)
        self.install()
        self.assertIsNot(module.unified_attention, before[0])
        attest_record.uninstall()
        self.assertEqual((module.unified_attention, module.AiterAttnBackend.forward_extend), before)

    def test_a_reloaded_module_is_watched_once(self):
        session = self.install()
        module = importlib.reload(toy.imported())
        toy.Server(module).verify()
        self.assertEqual((session.counts["recorded"], len(module.launched)), (1, 1))

    def test_a_kernel_that_is_a_mock_is_watched(self):
        module = toy.imported()
        module.unified_attention = mock.MagicMock(return_value="of the mock")
        self.install()
        self.assertEqual(toy.Server(module).verify(), "of the mock")
        self.assertEqual(len(self.records()), 1)

    def test_keeps_the_modules_loader_useful(self):
        self.install()
        self.assertIn("class AiterAttnBackend", toy.imported().__spec__.loader.get_source(toy.NAME))


class WhatIsRecorded(toy.Recording):
    def test_attest_accepts_it_and_agrees(self):
        self.install()
        toy.Server(toy.imported()).verify()
        (record,) = self.records()
        self.assertEqual(
            record["id"], "AiterAttnBackend.forward_extend/unified_attention/target_verify"
        )
        self.assertEqual(record["truth"]["committed"], [141, 63])
        self.assertEqual(record["args"]["cu_seqlens_q"]["values"], [0, 4, 8])
        self.assertNotIn("values", record["args"]["k"])
        result = checker.find().check(json.dumps(record))
        self.assertEqual((result.code, result.findings), (0, ()))

    def test_a_signature_once_and_a_broken_one_apart(self):
        self.install(live="warn")
        server = toy.Server(toy.imported())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(5):
                server.verify()
                server.verify(short_by=4)
        self.assertEqual(
            sorted("broken" in path.name for path in self.folder.iterdir()), [False, True]
        )

    def test_the_width_comes_from_the_stored_slots(self):
        self.install()
        toy.Server(toy.imported()).verify(widths=(2, 3))
        self.assertEqual(self.records()[0]["truth"]["new_tokens"], [2, 3])

    def test_a_call_outside_a_forward_is_left_alone(self):
        module = toy.imported()
        session = self.install()
        q = torch.empty(2, 8, 128, dtype=torch.bfloat16)
        ints = torch.tensor([1, 1], dtype=torch.int64)
        module.unified_attention(
            q, q, q, q, ints, 1, ints, 1, 1.0, True, (-1, -1), ints, 0.0, None, None, None
        )
        self.assertEqual((len(module.launched), any(session.counts.values())), (1, False))

    def test_newer_arguments_that_say_nothing_are_left_out(self):
        self.install()
        toy.Server(toy.imported()).verify(brand_new=None, use_new=False)
        self.assertFalse({"brand_new", "use_new"} & set(self.records()[0]["args"]))

    def test_newer_arguments_that_mean_something_are_kept_and_not_judged(self):
        session = self.install(live="raise")
        with self.assertWarnsRegex(attest_record.AttestWarning, "not judged.*brand_new"):
            toy.Server(toy.imported()).verify(brand_new=3)
        self.assertEqual(self.records()[0]["args"]["brand_new"], 3)
        self.assertEqual(session.counts["judged"], 0)

    def test_meta_tensors_are_recorded_by_shape(self):
        self.install()
        server = toy.Server(toy.imported())
        length = torch.empty(2, dtype=torch.int64, device="meta")
        with mock.patch.object(torch, "tensor", side_effect=_meta_for(torch.int64, length)):
            server.verify()
        described = self.records()[0]["args"]["seqused_k"]
        self.assertEqual(
            (described["shape"], described["sha256"]), ([2], "not recorded: meta device")
        )

    def test_a_broken_truth_leaves_the_call(self):
        self.install()
        toy.Server(toy.imported()).verify(lost=True)
        (record,) = self.records()
        self.assertIn("no truth: out_cache_loc[1]", record["notes"][0])


def _meta_for(dtype, stand_in):
    real = torch.tensor

    def make(data, dtype_=None, **options):
        wanted = options.get("dtype", dtype_)
        return stand_in if wanted is dtype and data == [145, 67] else real(data, **options)

    return make


class Tables(unittest.TestCase):
    """Arrays too large to write: what a call can read of them is kept."""

    def arguments(self, rows, width, pool, lengths):
        table = torch.empty(rows, width, dtype=torch.int32)
        for row in pool:
            table[row, : max(lengths)] = torch.arange(
                row * 100, row * 100 + max(lengths), dtype=torch.int32
            )
        bound = {
            "req_to_token": table,
            "req_pool_indices": torch.tensor(pool, dtype=torch.int64),
            "seq_lens": torch.tensor(lengths, dtype=torch.int64),
        }
        describer = attest_record.session.describe.Describer(1000)
        return attest_record.session.record_arguments("decode_attention_cpu", bound, describer)

    def test_rows_in_use(self):
        args, notes = self.arguments(4096, 600, [4000, 7], [5, 3])
        self.assertEqual(
            args["req_to_token"]["values"], [list(range(400_000, 400_005)), list(range(700, 705))]
        )
        self.assertEqual(
            (args["req_to_token"]["shape"], args["req_pool_indices"]["values"]), ([2, 5], [0, 1])
        )
        self.assertIn("[4096, 600]", notes[0])

    def test_a_pool_row_outside_the_table_is_left_to_the_checker(self):
        args, notes = self.arguments(4096, 600, [4095], [5])
        self.assertEqual(notes, args and [notes[0]])
        bad = torch.tensor([9999], dtype=torch.int64)
        table = torch.empty(4096, 600, dtype=torch.int32)
        bound = {"req_to_token": table, "req_pool_indices": bad, "seq_lens": bad}
        describer = attest_record.session.describe.Describer(1000)
        args, notes = attest_record.session.record_arguments(
            "decode_attention_cpu", bound, describer
        )
        self.assertEqual((notes, args["req_pool_indices"]["values"]), ([], [9999]))
        self.assertNotIn("values", args["req_to_token"])

    def test_lengths_without_values_leave_the_table_whole(self):
        table = torch.empty(64, 600, dtype=torch.int32)
        lengths = torch.empty(64, dtype=torch.int64, device="meta")
        bound = {"block_table": table, "seqused_k": lengths, "k": torch.empty(9, 16, 1, 8)}
        describer = attest_record.session.describe.Describer(1000)
        args, notes = attest_record.session.record_arguments("unified_attention", bound, describer)
        self.assertEqual((notes, args["block_table"]["shape"]), ([], [64, 600]))
        self.assertIn("sha256", args["block_table"])

    def test_a_huge_array_is_never_read_whole(self):
        read, values_of = [], attest_record.session.describe.values_of

        def watched(tensor):
            read.append(tensor.numel())
            return values_of(tensor)

        with mock.patch.object(attest_record.session.describe, "values_of", watched):
            args, _ = self.arguments(1 << 13, 1 << 17, [5], [9])
        self.assertEqual(args["req_to_token"]["shape"], [1, 9])
        self.assertLess(max(read), 100)


class LiveCheck(toy.Recording):
    def test_raise_stops_the_call_before_the_launch(self):
        module = toy.imported()
        self.install(live="raise")
        with self.assertRaises(attest_record.BrokenRule) as caught:
            toy.Server(module).verify(short_by=4)
        self.assertIn(
            "seqused_k.counts_this_steps_tokens: seqused_k[0] is 141", str(caught.exception)
        )
        self.assertEqual((module.launched, len(self.records())), ([], 1))

    def test_warn_says_it_once_and_launches(self):
        module = toy.imported()
        session = self.install(live="warn")
        server = toy.Server(module)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                server.verify(short_by=4)
        self.assertEqual([w.category for w in caught], [attest_record.AttestWarning])
        self.assertEqual((len(module.launched), session.counts["judged"]), (3, 3))

    def test_warnings_made_errors_do_not_break_the_call(self):
        module = toy.imported()
        self.install(live="warn")
        with warnings.catch_warnings(), mock.patch("sys.stderr"):
            warnings.simplefilter("error")
            toy.Server(module).verify(short_by=4)
        self.assertEqual(len(module.launched), 1)

    def test_a_policy_finding_does_not_raise(self):
        self.install(live="raise")
        with self.assertWarnsRegex(attest_record.AttestWarning, "policy seqused_k.is_int64"):
            toy.Server(toy.imported()).verify(dtype=torch.int32)

    def test_the_frameworks_own_pool_finds_keys_and_values_swapped(self):
        session = self.install(live="warn")
        server = toy.Server(toy.imported())
        pool = server.world.pool
        pool.k_buffer, pool.v_buffer = [pool.k], [pool.v]
        server.verify()
        record = self.records()[0]
        self.assertEqual(record["truth"]["k_pool"]["mem"], record["args"]["k"]["mem"])
        self.assertEqual((session.counts["judged"], session.counts["findings"]), (1, 0))
        pool.k, pool.v = pool.v, pool.k  # what the backend passes; the lists stay
        with self.assertWarnsRegex(attest_record.AttestWarning, "layout.cache_is_the_pool"):
            server.verify()

    def test_the_library_and_the_binary_agree(self):
        binary = SCRIPTS.parent / "build/bin/attest"
        binary = Path(os.environ.get("ATTEST_TEST_BINARY", binary))
        if not binary.exists():
            self.skipTest(f"{binary} is not built")
        self.install()
        toy.Server(toy.imported()).verify(short_by=4)
        line = json.dumps(self.records()[0])
        one, other = checker.find().check(line), checker.Binary(binary).check(line)
        self.assertEqual((one.code, one.findings), (other.code, other.findings))
        self.assertEqual(checker.Binary(binary).check("{").code, checker.find().check("{").code)


class Binding(unittest.TestCase):
    def test_the_live_kernels_own_order_wins(self):
        def unified_attention(q, inserted, k):
            pass

        names = kernels.parameter_names(unified_attention)
        self.assertEqual(
            kernels.bind("unified_attention", (1, 2), {"k": 3}, names),
            {"q": 1, "inserted": 2, "k": 3},
        )

    def test_too_many_or_twice_is_said(self):
        with self.assertRaises(kernels.UnknownArguments):
            kernels.bind("decode_attention_cpu", range(30), {})
        with self.assertRaises(kernels.UnknownArguments):
            kernels.bind("decode_attention_cpu", (1,), {"query": 1})

    def test_a_kernel_without_a_signature_is_bound_by_the_table(self):
        self.assertIsNone(kernels.parameter_names(mock.MagicMock(spec=object())))
        self.assertIsNone(kernels.parameter_names(lambda *args: None))

    def test_a_torch_operator_tells_by_its_schema(self):
        schema = mock.Mock(arguments=[mock.Mock(), mock.Mock()])
        schema.arguments[0].name, schema.arguments[1].name = "query", "k_buffer"
        operator = mock.Mock(default=mock.Mock(_schema=schema))
        self.assertEqual(kernels.parameter_names(operator), ("query", "k_buffer"))


if __name__ == "__main__":
    run(__name__)
