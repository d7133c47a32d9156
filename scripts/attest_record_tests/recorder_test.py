"""The recorder in a framework's process: what it records, and that it never stands in the way."""

import errno
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path
from unittest import mock

import attest_record
from attest_record import checker, kernels, writer
from attest_record.session import Session, Settings

from . import toy
from .harness import run, torch

SCRIPTS = Path(__file__).resolve().parents[1]


class Recording(unittest.TestCase):
    """Each test has a toy framework and a folder of its own."""

    def setUp(self):
        self.enterContext(toy.on_disk())
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


class Install(Recording):
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


class WhatIsRecorded(Recording):
    def test_attest_accepts_it_and_agrees(self):
        self.install()
        toy.Server(toy.imported()).verify()
        (record,) = self.records()
        self.assertEqual(record["id"], "AiterAttnBackend.forward_extend/unified_attention/target_verify")
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
        self.assertEqual(sorted("broken" in path.name for path in self.folder.iterdir()), [False, True])

    def test_the_width_comes_from_the_stored_slots(self):
        self.install()
        toy.Server(toy.imported()).verify(widths=(2, 3))
        self.assertEqual(self.records()[0]["truth"]["new_tokens"], [2, 3])

    def test_a_call_outside_a_forward_has_no_truth(self):
        module = toy.imported()
        self.install()
        q = torch.empty(2, 8, 128, dtype=torch.bfloat16)
        ints = torch.tensor([1, 1], dtype=torch.int64)
        module.unified_attention(q, q, q, q, ints, 1, ints, 1, 1.0, True, (-1, -1), ints, 0.0, None, None, None)
        (record,) = self.records()
        self.assertNotIn("truth", record)
        self.assertIn("outside", record["notes"][0])

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
        self.assertEqual((described["shape"], described["sha256"]), ([2], "not recorded: meta device"))

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
            table[row, : max(lengths)] = torch.arange(row * 100, row * 100 + max(lengths), dtype=torch.int32)
        bound = {
            "req_to_token": table,
            "req_pool_indices": torch.tensor(pool, dtype=torch.int64),
            "seq_lens": torch.tensor(lengths, dtype=torch.int64),
        }
        describer = attest_record.session.describe.Describer(1000)
        return attest_record.session.record_arguments("decode_attention_cpu", bound, describer)

    def test_rows_in_use(self):
        args, notes = self.arguments(4096, 600, [4000, 7], [5, 3])
        self.assertEqual(args["req_to_token"]["values"], [list(range(400_000, 400_005)), list(range(700, 705))])
        self.assertEqual((args["req_to_token"]["shape"], args["req_pool_indices"]["values"]), ([2, 5], [0, 1]))
        self.assertIn("[4096, 600]", notes[0])

    def test_a_pool_row_outside_the_table_is_left_to_the_checker(self):
        args, notes = self.arguments(4096, 600, [4095], [5])
        self.assertEqual(notes, args and [notes[0]])
        bad = torch.tensor([9999], dtype=torch.int64)
        table = torch.empty(4096, 600, dtype=torch.int32)
        bound = {"req_to_token": table, "req_pool_indices": bad, "seq_lens": bad}
        describer = attest_record.session.describe.Describer(1000)
        args, notes = attest_record.session.record_arguments("decode_attention_cpu", bound, describer)
        self.assertEqual((notes, args["req_pool_indices"]["values"]), ([], [9999]))
        self.assertNotIn("values", args["req_to_token"])

    def test_a_huge_array_is_never_read_whole(self):
        read, values_of = [], attest_record.session.describe.values_of

        def watched(tensor):
            read.append(tensor.numel())
            return values_of(tensor)

        with mock.patch.object(attest_record.session.describe, "values_of", watched):
            args, _ = self.arguments(1 << 13, 1 << 17, [5], [9])
        self.assertEqual(args["req_to_token"]["shape"], [1, 9])
        self.assertLess(max(read), 100)


class LiveCheck(Recording):
    def test_raise_stops_the_call_before_the_launch(self):
        module = toy.imported()
        self.install(live="raise")
        with self.assertRaises(attest_record.BrokenRule) as caught:
            toy.Server(module).verify(short_by=4)
        self.assertIn("seqused_k.counts_this_steps_tokens: seqused_k[0] is 141", str(caught.exception))
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


class NothingBreaks(Recording):
    """Whatever goes wrong in the recorder, the framework's call is made and its result is its own."""

    def test_when_recording_raises(self):
        for error in (ValueError("x"), MemoryError(), RecursionError(), KeyError("y")):
            with self.subTest(error):
                module = toy.imported()
                session = self.install()
                with mock.patch.object(Session, "record_of", side_effect=error), mock.patch("sys.stderr"):
                    toy.Server(module).verify()
                self.assertEqual(session.counts["failures"], 1)
                attest_record.uninstall()

    def test_a_control_c_is_no_error_of_ours(self):
        self.install()
        with mock.patch.object(Session, "record_of", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                toy.Server(toy.imported()).verify()

    def test_when_the_folder_cannot_be_made(self):
        blocked = self.folder / "a file"
        blocked.write_text("")
        module = toy.imported()
        session = self.install(folder=str(blocked / "below"))
        with mock.patch("sys.stderr"):
            toy.Server(module).verify()
        self.assertEqual((len(module.launched), session.counts["failures"]), (1, 1))

    def test_when_the_disk_is_full(self):
        module = toy.imported()
        session = self.install()
        server = toy.Server(module)
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch.object(writer.os, "replace", side_effect=full), mock.patch("sys.stderr"):
            server.verify()
        self.assertEqual((list(self.folder.iterdir()), session.counts["failures"]), ([], 1))
        server.verify()  # there is room again: nothing was marked as written
        self.assertEqual(len(self.records()), 1)

    def test_the_kernels_exception_passes_untouched(self):
        self.install()
        boom = RuntimeError("of the kernel")
        with self.assertRaises(RuntimeError) as caught:
            toy.Server(toy.imported()).verify(explode=boom)
        self.assertIs(caught.exception, boom)
        self.assertIsNone(caught.exception.__context__)

    def test_wrong_calls_get_pythons_own_error(self):
        module = toy.imported()
        self.install()
        with mock.patch("sys.stderr"), self.assertRaisesRegex(TypeError, "unified_attention"):
            module.unified_attention(*range(40))

    def test_the_frameworks_random_numbers_are_its_own(self):
        self.install(every=3)
        random.seed(1)
        expected = random.random()
        random.seed(1)
        server = toy.Server(toy.imported())
        for _ in range(10):
            server.verify()
        self.assertEqual(random.random(), expected)

    def test_the_result_is_the_kernels_own_object(self):
        module = toy.imported()
        self.install()
        self.assertEqual(toy.Server(module).verify().shape, (8, 8, 128))


class Processes(Recording):
    def test_threads_do_not_see_each_others_step(self):
        session = self.install(live="warn", max_files=50)
        module = toy.imported()
        errors = []

        def work(seed):
            try:
                server = toy.Server(module, lengths=(100 + seed, 40 + seed))
                for _ in range(5):
                    server.verify()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, session.counts["failures"], session.counts["findings"]), ([], 0, 0))
        self.assertEqual(len(module.launched), 40)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_fork_while_another_thread_holds_the_lock(self):
        session = self.install()
        server = toy.Server(toy.imported())
        session.writer._lock.acquire()
        child = os.fork()
        if child == 0:
            try:
                server.verify()
                os._exit(0 if session.counts["recorded"] == 1 else 1)
            finally:
                os._exit(2)
        session.writer._lock.release()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(self.records()), 1)

    def test_a_process_killed_while_writing_leaves_no_half_record(self):
        program = (
            "import os, attest_record.writer as w\n"
            "w.os.replace = lambda *a: os._exit(9)\n"
            f"w.Writer({str(self.folder)!r}).write('x', {{'a': 1}})\n"
        )
        environ = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
        self.assertEqual(subprocess.run([sys.executable, "-c", program], env=environ).returncode, 9)
        left = [path.name for path in self.folder.iterdir()]
        self.assertEqual(list(self.folder.glob("*.json")), [])
        self.assertEqual([name.startswith(".x.") and name.endswith(".tmp") for name in left], [True])
        writer.Writer(self.folder).sweep(older_than=-1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def run_below(self, *arguments, source):
        script = self.folder.parent / f"{self.folder.name}.py"
        script.write_text(source)
        self.addCleanup(script.unlink)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ATTEST_REC")}
        environ["PYTHONPATH"] = str(SCRIPTS)
        command = [sys.executable, "-m", "attest_record", *arguments, "--", sys.executable, str(script)]
        return subprocess.run(command, env=environ, capture_output=True, text=True)

    def test_the_command_reaches_a_spawned_process(self):
        source = (
            "import multiprocessing, sys\n"
            "from attest_record_tests import toy\n"
            "def work():\n"
            "    with toy.on_disk(): toy.Server(toy.imported()).verify()\n"
            "if __name__ == '__main__':\n"
            "    p = multiprocessing.get_context('spawn').Process(target=work); p.start(); p.join()\n"
            "    sys.exit(p.exitcode)\n"
        )
        done = self.run_below("-o", str(self.folder), source=source)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.records()), 1, done.stderr)

    def test_the_command_says_what_is_wrong_with_it(self):
        for arguments, text in (
            (("-o", "x"), "no command"),
            (("--", "true"), "nothing to do"),
            (("-o", "x", "--every", "0", "--", "true"), "ATTEST_EVERY is 0"),
            (("-o", "x", "--every", "many", "--", "true"), "expected a number"),
        ):
            environ = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
            command = [sys.executable, "-m", "attest_record", *arguments]
            done = subprocess.run(command, env=environ, capture_output=True, text=True)
            self.assertEqual((done.returncode, text in done.stderr), (2, True), done.stderr)


class Limits(Recording):
    def test_files(self):
        session = self.install(max_files=2)
        module = toy.imported()
        for lengths in ((141,), (141, 63), (9, 9, 9, 9), (5,) * 9):
            toy.Server(module, lengths).verify(widths=(4,) * len(lengths))
        self.assertEqual((len(self.records()), session.writer.dropped > 0), (2, True))

    def test_the_folder_counts_not_the_process(self):
        (self.folder / "of another process.json").write_text("x" * 100)
        one = writer.Writer(self.folder, writer.Budget(size=50))
        self.assertIsNone(one.write("mine", {}))

    def test_rate(self):
        now = [0.0]
        one = writer.Writer(self.folder, writer.Budget(per_second=2), clock=lambda: now[0])
        self.assertEqual([one.wants(str(i)) for i in range(4)], [True, True, False, False])
        now[0] = 0.5
        self.assertEqual([one.wants(str(i)) for i in range(4, 6)], [True, False])

    def test_share_of_the_time(self):
        session = self.install(every=2, share=0.01)
        self.assertTrue(session.may_spend())
        session._spent = 5.0
        self.assertFalse(session.may_spend())
        session._started -= 1000
        self.assertTrue(session.may_spend())

    def test_one_call_in_every_n(self):
        with mock.patch.object(Session, "observe") as observe:
            session = self.install(every=10)
            server = toy.Server(toy.imported())
            for _ in range(400):
                server.verify()
        self.assertTrue(20 <= observe.call_count <= 60, observe.call_count)
        self.assertEqual(session.counts["throttled"], 0)


class Environment(unittest.TestCase):
    def test_is_read(self):
        given = {"ATTEST_RECORD": "x", "ATTEST_LIVE": "warn", "ATTEST_EVERY": "7", "ATTEST_SHARE": "0.5"}
        settings = Settings.from_environment(given)
        self.assertEqual(settings[:3] + (settings.share,), ("x", "warn", 7, 0.5))

    def test_errors_name_the_variable(self):
        for name, value in (("ATTEST_LIVE", "loud"), ("ATTEST_EVERY", "-1"), ("ATTEST_MAX_MB", "all")):
            with self.assertRaisesRegex(ValueError, name):
                Settings.from_environment({name: value})


class Checker(unittest.TestCase):
    def setUp(self):
        checker.forget()
        self.addCleanup(checker.forget)

    def test_a_library_that_is_none(self):
        for path in ("/nowhere/libattest.so", sys.executable, "libc.so.6"):
            with self.subTest(path), self.assertRaises(attest_record.Unavailable):
                checker.Library(path)

    def test_only_the_one_that_was_asked_for(self):
        with mock.patch.dict(os.environ, {"ATTEST_LIB": "/nowhere/libattest.so"}):
            with self.assertRaisesRegex(attest_record.Unavailable, "/nowhere.*ATTEST_LIB"):
                checker.find()

    def test_install_fails_before_it_changes_anything(self):
        before = list(sys.meta_path)
        with mock.patch.dict(os.environ, {"ATTEST_LIB": "/nowhere/libattest.so"}):
            with self.assertRaises(attest_record.Unavailable):
                attest_record.install(Settings(live="warn"))
        self.assertEqual(sys.meta_path, before)


class Binding(unittest.TestCase):
    def test_the_live_kernels_own_order_wins(self):
        def unified_attention(q, inserted, k):
            pass

        names = kernels.parameter_names(unified_attention)
        self.assertEqual(kernels.bind("unified_attention", (1, 2), {"k": 3}, names), {"q": 1, "inserted": 2, "k": 3})

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
