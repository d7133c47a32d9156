"""The contract test, on SGLang's real backends: releases before a fix fail the right rule, releases
after it pass."""

import unittest

import attest_record

from . import sglang_source as source
from .harness import run, torch
from .sglang_source import AITER, AMX
from .sglang_world import Layer, World


def _versions(*versions):
    """Skips with a reason where the wheels are not here."""
    absent = [version for version in versions if source.source_of(version, AITER) is None]
    return unittest.skipIf(
        absent,
        f"sglang {', '.join(absent)} not in {source.wheels_folder()} (scripts/setup.sh --framework-tests)",
    )


def _rules(error):
    return {
        finding["rule"] for finding in error.findings if finding["severity"] in ("wrong", "fault")
    }


def fill_as_a_graph(backend, nobody, batch):
    """Metadata as a graph has it: made while rows of nobody are captured, then refilled."""
    fill = backend.get_cuda_graph_seq_len_fill_value()
    nobody.seq_lens = torch.tensor([fill] * nobody.batch_size, dtype=torch.int64)
    nobody.req_pool_indices = torch.zeros(nobody.batch_size, dtype=torch.int64)
    for in_capture, filled in ((True, nobody), (False, batch)):
        backend.init_forward_metadata_out_graph(filled, in_capture)
        if hasattr(backend, "init_forward_metadata_in_graph"):
            backend.init_forward_metadata_in_graph(filled)


class _Case(unittest.TestCase):
    def tearDown(self):
        source.unload()

    def assert_breaks(self, rule, drive):
        with self.assertRaises(attest_record.BrokenRule) as caught:
            drive()
        self.assertIn(rule, _rules(caught.exception))
        self.assertIn(rule, str(caught.exception))
        return caught.exception


class AmxPrefix(_Case):
    """sgl-project/sglang#36430: seq_lens re-read after the drafts were added."""

    def verify(self, version):
        here = World([141, 63], draft_tokens=4, page_size=1)
        module = source.load(version, AMX, here.settings)
        with attest_record.stub(module) as calls:
            backend = module.IntelAMXAttnBackend(here.runner)
            batch = here.batch("target_verify", [4, 4])
            backend.init_forward_metadata(batch)
            backend.forward_extend(*here.rows(8), here.layer, batch)
        return calls

    def draft(self, version):
        here = World([141, 63], draft_tokens=4, page_size=1)
        module = source.load(version, AMX, here.settings)
        with attest_record.stub(module) as calls:
            multi = module.IntelAMXMultiStepDraftBackend(here.runner, 1, 3)
            for step, backend in enumerate(multi.attn_backends):
                batch = here.batch("decode", [1, 1], [141 + step, 63 + step])
                batch.seq_lens = torch.tensor([141, 63], dtype=torch.int64)
                multi.init_forward_metadata(batch)
                backend.forward_decode(*here.rows(2), here.layer, batch)
        return calls

    @_versions("0.5.16", "0.5.18")
    def test_verify_loses_the_newest_keys_before_the_fix(self):
        for version in ("0.5.16", "0.5.18"):
            with self.subTest(version):
                self.assert_breaks(
                    "seq_lens.leaves_the_committed_prefix", lambda: self.verify(version)
                )

    @_versions("0.5.19")
    def test_verify_is_right_after_the_fix(self):
        (call,) = self.verify("0.5.19")
        self.assertEqual((call.code, call.record["truth"]["committed"]), (0, [141, 63]))

    @_versions("0.5.16", "0.5.18")
    def test_draft_decode_loses_the_drafts_before_the_fix(self):
        for version in ("0.5.16", "0.5.18"):
            with self.subTest(version):
                self.assert_breaks(
                    "seq_lens.counts_committed_and_new_tokens", lambda: self.draft(version)
                )

    @_versions("0.5.19")
    def test_draft_decode_is_right_after_the_fix(self):
        self.assertEqual([call.code for call in self.draft("0.5.19")], [0, 0])


class VerifyRowEqualsDecode(_Case):
    """Parity of the two AMX sites: verify row t reads what decode at S + t + 1 reads."""

    def both(self, version):
        here = World([141, 63], draft_tokens=4, page_size=1)
        module = source.load(version, AMX, here.settings)
        check = _Silent()
        with attest_record.stub(module, check=check) as calls:
            backend = module.IntelAMXAttnBackend(here.runner)
            batch = here.batch("target_verify", [4, 4])
            backend.init_forward_metadata(batch)
            backend.forward_extend(*here.rows(8), here.layer, batch)
            for t in range(4):
                batch = here.batch("decode", [1, 1], [141 + t, 63 + t])
                backend.init_forward_metadata(batch)
                backend.forward_decode(*here.rows(2), here.layer, batch)
        verify, *decodes = (call.record for call in calls)
        return attest_record.parity_differences(verify, decodes)

    @_versions("0.5.19")
    def test_holds_after_the_fix(self):
        self.assertEqual(self.both("0.5.19"), [])

    @_versions("0.5.18")
    def test_fails_in_every_row_before_the_fix(self):
        differences = self.both("0.5.18")
        self.assertEqual(len(differences), 8)
        self.assertIn(
            "request 0 row 0: verify reads 138 keys, decode at 142 tokens reads 142", differences[0]
        )


class _Silent:
    """A checker that passes everything: parity is a property of its own."""

    def check(self, line):
        return attest_record.Result(0)


class AiterVerifyWidth(_Case):
    """sgl-project/sglang#31221: the start-up draft count in the place of the real one."""

    def verify(self, version, widths, configured=4):
        here = World([141, 63], draft_tokens=configured)
        module = source.load(version, AITER, here.settings)
        with attest_record.stub(module) as calls:
            backend = module.AiterAttnBackend(here.runner)
            batch = here.batch("target_verify", widths)
            backend.init_forward_metadata(batch)
            backend.forward_extend(*here.rows(sum(widths)), here.layer, batch)
        return calls

    @_versions("0.5.16")
    def test_a_shorter_draft_breaks_the_lengths_before_the_fix(self):
        self.assert_breaks(
            "seqused_k.counts_this_steps_tokens", lambda: self.verify("0.5.16", [2, 2])
        )

    @_versions("0.5.18", "0.5.20")
    def test_a_shorter_draft_is_right_after_the_fix(self):
        for version in ("0.5.18", "0.5.20"):
            with self.subTest(version):
                (call,) = self.verify(version, [2, 2])
                self.assertEqual(call.code, 0)

    @_versions("0.5.19")
    def test_one_release_between_has_it_again(self):
        # sgl-project/sglang#34647: eager verify with lengths of the configured width.
        self.assert_breaks(
            "seqused_k.counts_this_steps_tokens", lambda: self.verify("0.5.19", [2, 2])
        )

    @_versions("0.5.16", "0.5.19")
    def test_the_configured_width_is_right_in_all_of_them(self):
        for version in ("0.5.16", "0.5.19"):
            with self.subTest(version):
                self.assertEqual([call.code for call in self.verify(version, [4, 4])], [0])

    @_versions("0.5.18", "0.5.20")
    def test_uneven_widths_break_the_fix_too(self):
        # rows // batch is 3: left open by #31221.
        for version in ("0.5.18", "0.5.20"):
            with self.subTest(version):
                self.assert_breaks(
                    "query_offsets.follow_the_real_lengths", lambda: self.verify(version, [2, 4])
                )


class AiterVerifyWidthInAGraph(_Case):
    """The same in the metadata of a graph: captured with rows of nobody, refilled for the batch."""

    def verify(self, version, width, configured=4):
        here = World([141, 63], draft_tokens=configured)
        module = source.load(version, AITER, here.settings)
        with attest_record.stub(module) as calls:
            backend = module.AiterAttnBackend(here.runner)
            backend.init_cuda_graph_state(2, 2 * width)
            batch = here.batch("target_verify", [width, width])
            fill_as_a_graph(backend, here.batch("target_verify", [width, width]), batch)
            backend.forward_extend(*here.rows(2 * width), here.layer, batch)
        return calls

    @_versions("0.5.16", "0.5.19")
    def test_a_shorter_draft_breaks_the_lengths_before_the_fix(self):
        for version in ("0.5.16", "0.5.19"):
            with self.subTest(version):
                self.assert_breaks(
                    "seqused_k.counts_this_steps_tokens", lambda: self.verify(version, 2)
                )

    @_versions("0.5.18", "0.5.20")
    def test_a_shorter_draft_is_right_after_the_fix(self):
        for version in ("0.5.18", "0.5.20"):
            with self.subTest(version):
                self.assertEqual([call.code for call in self.verify(version, 2)], [0])

    @_versions("0.5.16", "0.5.19")
    def test_the_configured_width_is_right_in_all_of_them(self):
        for version in ("0.5.16", "0.5.19"):
            with self.subTest(version):
                self.assertEqual([call.code for call in self.verify(version, 4)], [0])


class AiterLengthDtype(_Case):
    """sgl-project/sglang#36541: int32 lengths over 2 GiB of K. No release was without the fix, so it
    is taken back in the text of the first release that has the route."""

    def draft_extend(self, edit=None, tokens=8_500_000, strict=False, graph=False):
        # 256 B of K a token: 2 GiB lie between 8,380,416 and 8,404,992 tokens.
        here = World([141, 63], draft_tokens=4, tokens=tokens, layer=Layer(kv_heads=1))
        module = source.load("0.5.19", AITER, here.settings, edit)
        with attest_record.stub(module, strict=strict) as calls:
            backend = module.AiterAttnBackend(here.runner)
            batch = here.batch("draft_extend_v2", [4, 4])
            if graph:
                backend.init_cuda_graph_state(2, 8)
                fill_as_a_graph(backend, here.batch("draft_extend_v2", [4, 4]), batch)
            else:
                backend.init_forward_metadata(batch)
                # It reads offsets that a prompt before it left; the fault is not these.
                backend.forward_metadata.qo_indptr = torch.tensor([0, 4, 8], dtype=torch.int32)
            backend.forward_extend(*here.rows(8), here.layer, batch)
        return calls

    @staticmethod
    def take_the_fix_back(text):
        before, found, after = text.partition(
            "seqused_k = (kv_indptr[1 : bs + 1] - kv_indptr[:bs])"
        )
        assert found, "the line of the fix moved"
        return before + found + after.replace("int64", "int32", 1)

    @_versions("0.5.19")
    def test_int32_breaks_past_2_gib(self):
        for graph in (False, True):
            with self.subTest(graph=graph):
                self.assert_breaks(
                    "seqused_k.is_int64_past_2_gib",
                    lambda: self.draft_extend(self.take_the_fix_back, graph=graph),
                )

    @_versions("0.5.19")
    def test_int32_below_is_a_policy_finding(self):
        with self.assertWarnsRegex(attest_record.AttestWarning, "seqused_k.is_int64"):
            self.draft_extend(self.take_the_fix_back, tokens=8192)

    @_versions("0.5.19")
    def test_int64_is_right(self):
        for graph in (False, True):
            with self.subTest(graph=graph):
                self.assertEqual([call.code for call in self.draft_extend(graph=graph)], [0])


if __name__ == "__main__":
    run(__name__)
