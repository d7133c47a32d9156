"""The stub's manners, the allow list, and tensors in records."""

import datetime
import json
import tempfile
import types
import unittest
from pathlib import Path

import attest_record
from attest_record import describe, tensors

from . import toy
from .harness import run, torch

POLICY = {
    "rule": "seqused_k.is_int64",
    "severity": "policy",
    "where": "w",
    "got": "g",
    "expected": "e",
}
WRONG = {**POLICY, "rule": "seqused_k.counts_this_steps_tokens", "severity": "wrong"}
SITE = "AiterAttnBackend.forward_extend/unified_attention/draft_extend_v2"


class AllowList(unittest.TestCase):
    def of(self, today="2026-06-01", **changes):
        entry = {
            "rule": "seqused_k.*",
            "site": "Aiter*/draft_extend_v2",
            "until": "2026-06-30",
            "why": "pool is small",
        }
        day = datetime.date.fromisoformat(today)
        return attest_record.AllowList([{**entry, **changes}], today=lambda: day)

    def test_covers_a_finding_at_its_site(self):
        self.assertEqual(self.of().split(SITE, [POLICY]), ([], [POLICY]))
        self.assertEqual(self.of().split("other/site/decode", [POLICY]), ([POLICY], []))

    def test_ends_after_its_day_and_says_so(self):
        self.assertEqual(self.of(today="2026-06-30").split(SITE, [POLICY])[0], [])
        (finding,), allowed = self.of(today="2026-07-01").split(SITE, [POLICY])
        self.assertEqual(
            (finding["expected"], allowed), ("e (allowed until 2026-06-30: pool is small)", [])
        )

    def test_a_wrong_call_cannot_be_allowed(self):
        self.assertEqual(self.of().split(SITE, [WRONG]), ([WRONG], []))

    def test_entries_that_do_not_read_are_named(self):
        for changes in ({"until": "soon"}, {"why": ""}, {"extra": "x"}, {"rule": 7}):
            with self.subTest(changes), self.assertRaisesRegex(
                attest_record.BadAllowList, "entry 0"
            ):
                self.of(**changes)

    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "allow.json")
            for text in ("{", "{}"):
                path.write_text(text)
                with self.assertRaisesRegex(attest_record.BadAllowList, "allow.json"):
                    attest_record.AllowList.load(path)
            path.write_text(json.dumps([]))
            self.assertEqual(attest_record.AllowList.load(path).entries, [])


class Stub(unittest.TestCase):
    def setUp(self):
        manager = toy.on_disk()
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.module = toy.imported()

    def test_no_kernel_is_launched_and_everything_is_put_back(self):
        before = self.module.unified_attention
        with attest_record.stub(self.module) as calls:
            self.assertIsNone(toy.Server(self.module).verify())
        self.assertEqual((len(calls), self.module.launched), (1, []))
        self.assertIs(self.module.unified_attention, before)

    def test_a_kernel_that_is_not_installed_is_no_obstacle(self):
        del self.module.unified_attention
        with attest_record.stub(self.module) as calls:
            toy.Server(self.module).verify()
        self.assertEqual(len(calls), 1)
        self.assertFalse(hasattr(self.module, "unified_attention"))

    def test_a_broken_rule_is_an_assertion_with_the_finding(self):
        with self.assertRaisesRegex(AssertionError, r"seqused_k\[0\] is 141, expected 145"):
            with attest_record.stub(self.module):
                toy.Server(self.module).verify(short_by=4)
        self.assertIs(self.module.unified_attention.__globals__["launched"], self.module.launched)

    def test_a_policy_finding_fails_when_strict_unless_allowed(self):
        def verify(**options):
            with attest_record.stub(self.module, **options) as calls:
                toy.Server(self.module).verify(dtype=torch.int32)
            return calls

        with self.assertRaisesRegex(attest_record.BrokenRule, "policy seqused_k.is_int64"):
            verify(strict=True)
        entry = {"rule": "seqused_k.is_int64", "site": "*", "until": "2999-01-01", "why": "test"}
        (call,) = verify(strict=True, allow_list=attest_record.AllowList([entry]))
        self.assertEqual([f["rule"] for f in call.allowed], ["seqused_k.is_int64"])

    def test_what_cannot_be_judged_fails(self):
        with self.assertRaisesRegex(attest_record.NotJudged, "out_cache_loc"):
            with attest_record.stub(self.module):
                toy.Server(self.module).verify(lost=True)

    def test_the_tests_own_truth_wins(self):
        with self.assertRaisesRegex(attest_record.BrokenRule, "softmax_scale"):
            with attest_record.stub(self.module, truth={"layer_scaling": 1.0}):
                toy.Server(self.module).verify()

    def test_a_backend_made_before_is_checked_too(self):
        server = toy.Server(self.module)
        with attest_record.stub(server.backend) as calls:
            server.verify()
        self.assertEqual(len(calls), 1)

    def test_a_module_that_is_no_backend_is_named(self):
        with self.assertRaisesRegex(ValueError, "json is no backend"):
            attest_record.stub(json)


class Safetensors(unittest.TestCase):
    def test_header_and_bytes(self):
        text = tensors.encode({"a": ("I32", [2], b"12345678"), "b": ("BF16", [1], b"xy")})
        size = int.from_bytes(text[:8], "little")
        header = json.loads(text[8 : 8 + size])
        self.assertEqual(size % 8, 0)
        self.assertEqual(header["b"], {"dtype": "BF16", "shape": [1], "data_offsets": [8, 10]})
        self.assertEqual(text[8 + size :], b"12345678xy")

    def test_only_small_tensors_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x.safetensors")
            bound = {
                "q": torch.empty(2, 4, dtype=torch.bfloat16),
                "k": torch.empty(1 << 25, 4, dtype=torch.bfloat16),
                "scale": 1.0,
            }
            charged = []
            writer = types.SimpleNamespace(charge=charged.append)
            tensors.write_tensors(
                path, bound, writer, raw=lambda tensor: b"\0" * (tensor.numel() * 2)
            )
            self.assertIn(b'"q"', path.read_bytes())
            self.assertNotIn(b'"k"', path.read_bytes())
            self.assertEqual(charged, [path.stat().st_size])


class Describe(unittest.TestCase):
    def test_equal_storage_has_one_label(self):
        whole = torch.zeros(4, 4, dtype=torch.int32)
        describer = describe.Describer()
        row, other = describer.layout(whole[1]), describer.layout(torch.zeros(4, dtype=torch.int32))
        self.assertEqual((row["mem"], row["storage_offset"], row["storage_bytes"]), ("m0", 4, 64))
        self.assertEqual((describer.layout(whole)["mem"], other["mem"]), ("m0", "m1"))

    def test_a_large_array_has_a_hash_and_a_tail(self):
        described = describe.Describer(max_values=10).tensor(
            torch.arange(0, 100, 1, dtype=torch.int64), True
        )
        self.assertNotIn("values", described)
        self.assertEqual((len(described["sha256"]), described["tail"][-1]), (64, 99))

    def test_a_scale_keeps_its_value_and_a_weight_none(self):
        describer = describe.Describer()
        self.assertEqual(describer.tensor(torch.tensor([0.5], dtype=torch.float32))["value"], 0.5)
        self.assertNotIn("value", describer.tensor(torch.tensor([0.5, 1.0], dtype=torch.float32)))

    def test_masks_are_integers(self):
        mask = torch.tensor([[1, 0], [1, 1]], dtype=torch.int32) == 1
        self.assertEqual(describe.Describer().tensor(mask, True)["values"], [[1, 0], [1, 1]])

    def test_scalars_that_json_lacks(self):
        self.assertEqual(describe.scalar(float("inf")), "inf")
        self.assertEqual(describe.scalar((1, None, 2.5)), [1, None, 2.5])


if __name__ == "__main__":
    run(__name__)
