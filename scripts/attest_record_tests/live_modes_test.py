"""The live check of a process that calls the kernels the way SGLang does: the four opening bugs, each
eagerly, in a graph's capture and in its replay; and their fixed forms, of which nothing is said."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .harness import run, torch

HERE = Path(__file__).resolve().parent

UNIFIED = "AiterAttnBackend.forward_extend/unified_attention"
PREFILL = "AiterAttnBackend.forward_extend/mha_batch_prefill_func"
AMX = "IntelAMXAttnBackend"

# bug: (site, rule, severity)
BUGS = {
    "configured width": (
        f"{UNIFIED}/target_verify",
        "query_offsets.end_at_the_last_row",
        "fault",
    ),
    "rows // batch": (
        f"{UNIFIED}/target_verify",
        "query_offsets.follow_the_real_lengths",
        "wrong",
    ),
    "int32 lengths": (
        f"{UNIFIED}/draft_extend_v2",
        "seqused_k.is_int64_past_2_gib",
        "wrong",
    ),
    "expanded heads": (f"{UNIFIED}/target_verify", "heads.are_not_expanded", "slow"),
    "no split-KV": (
        f"{PREFILL}/draft_extend_v2",
        "launch.splits_a_long_context",
        "slow",
    ),
    "short prefix, verify": (
        f"{AMX}.forward_extend/extend_attention_cpu/target_verify",
        "seq_lens.leaves_the_committed_prefix",
        "wrong",
    ),
    "short prefix, draft decode": (
        f"{AMX}.forward_decode/decode_attention_cpu/draft_decode",
        "seq_lens.counts_committed_and_new_tokens",
        "wrong",
    ),
}
MODES = ("eager", "capture", "replay")


REAL = os.environ.get("ATTEST_TEST_TORCH") == "real"


def serve(live, folder):
    """(reports, standard error) of the whole process."""
    search = [str(HERE / "made_up_server"), str(HERE.parent)]
    if not REAL:
        search.insert(0, str(HERE / "made_up_torch"))
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(search),
        "ATTEST_PER_SECOND": "1000000",
    }
    command = [sys.executable, "-m", "attest_record", "--live", live, "--every", "1", "-o", folder]
    command += ["--", sys.executable, "-m", "attest_record_tests.serving_process"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=240)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@unittest.skipIf(REAL and not torch.cuda.is_available(), "ATTEST_TEST_TORCH=real: no GPU, no graphs")
class OpeningBugs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served, cls.errors, cls.records = {}, {}, {}
        for live in ("warn", "raise"):
            with tempfile.TemporaryDirectory() as folder:
                cls.served[live], cls.errors[live] = serve(live, folder)
                paths = sorted(Path(folder).glob("*.json"))
                cls.records[live] = [json.loads(path.read_text()) for path in paths]

    def reports(self, live, bug, form, mode):
        return self.served[live]["reports"][bug][form][mode]

    def test_every_bug_is_reported_in_every_mode(self):
        for bug, (site, rule, severity) in BUGS.items():
            for mode in MODES:
                for live in ("warn", "raise"):
                    with self.subTest(bug=bug, mode=mode, live=live):
                        reports = self.reports(live, bug, "broken", mode)
                        said = [(kind, text) for kind, text in reports if rule in text]
                        self.assertTrue(said, reports)
                        kind, text = said[0]
                        rejects = severity in ("wrong", "fault")
                        self.assertEqual(
                            kind,
                            "BrokenRule" if live == "raise" and rejects else "AttestWarning",
                        )
                        in_graph = "unified" in site or "prefill" in site
                        place = site + (f" ({mode})" if in_graph and mode != "eager" else "")
                        self.assertIn(place + ": ", text)
                        self.assertIn(f"{severity} {rule}: ", text)

    def test_nothing_is_said_of_the_fixed_forms(self):
        for bug in BUGS:
            for live in ("warn", "raise"):
                for mode, reports in self.served[live]["reports"][bug]["fixed"].items():
                    with self.subTest(bug=bug, mode=mode, live=live):
                        self.assertEqual(reports, [])

    def test_every_mode_is_recorded(self):
        for live in ("warn", "raise"):
            paths = {record["path"] for record in self.records[live]}
            self.assertEqual(paths, set(MODES))
            self.assertNotIn("was not", self.errors[live])

    def test_a_capture_holds_no_values_of_what_its_graph_makes(self):
        captures = [
            record["args"]["seqused_k"]
            for record in self.records["warn"]
            if record["path"] == "capture" and record["kernel"] == "unified_attention"
        ]
        self.assertTrue(captures)
        for lengths in captures:
            self.assertNotIn("values", lengths)
            self.assertIn("made inside the graph", lengths["sha256"])

    def test_a_replay_holds_what_its_graph_made(self):
        lengths = {
            tuple(record["args"]["seqused_k"]["values"])
            for record in self.records["warn"]
            if record["path"] == "replay" and record["kernel"] == "unified_attention"
        }
        self.assertIn((145, 67), lengths)


if __name__ == "__main__":
    run(__name__)
