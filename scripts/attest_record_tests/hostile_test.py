"""Whatever happens to the recorder, it never stands in the framework's way, nor fills its disk."""

import errno
import io
import os
import random
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

import attest_record
from attest_record import checker, writer
from attest_record.session import Session, Settings

from . import toy
from .harness import run

SCRIPTS = Path(__file__).resolve().parents[1]


class NothingBreaks(toy.Recording):
    """Whatever goes wrong in the recorder, the framework's call is made and its result is its own."""

    def test_when_recording_raises(self):
        for error in (ValueError("x"), MemoryError(), RecursionError(), KeyError("y")):
            with self.subTest(error):
                module = toy.imported()
                session = self.install()
                with mock.patch.object(Session, "record_of", side_effect=error), mock.patch(
                    "sys.stderr"
                ):
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


class Processes(toy.Recording):
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
        self.assertEqual(
            (errors, session.counts["failures"], session.counts["findings"]), ([], 0, 0)
        )
        self.assertEqual(len(module.launched), 40)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_fork_while_another_thread_holds_the_lock(self):
        session = self.install()
        server = toy.Server(toy.imported())
        session.writer._lock.acquire()
        session._lock.acquire()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a lock that nobody holds any more would be waited for in vain
            try:
                server.verify()
                os._exit(0 if session.counts["recorded"] == 1 else 1)
            finally:
                os._exit(2)
        session._lock.release()
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
        self.assertEqual(
            [name.startswith(".x.") and name.endswith(".tmp") for name in left], [True]
        )
        writer.Writer(self.folder).sweep(older_than=-1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def run_below(self, *arguments, source):
        script = self.folder.parent / f"{self.folder.name}.py"
        script.write_text(source)
        self.addCleanup(script.unlink)
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("ATTEST_REC")
        }
        environ["PYTHONPATH"] = str(SCRIPTS)
        command = [
            sys.executable,
            "-m",
            "attest_record",
            *arguments,
            "--",
            sys.executable,
            str(script),
        ]
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
            (("-o", "/dev/null", "--", "true"), "-o /dev/null: "),
            (("-o", "/proc/attest", "--", "true"), "-o /proc/attest: "),
        ):
            environ = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
            command = [sys.executable, "-m", "attest_record", *arguments]
            done = subprocess.run(command, env=environ, capture_output=True, text=True)
            self.assertEqual((done.returncode, text in done.stderr), (2, True), done.stderr)


class Limits(toy.Recording):
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


class WithoutAChecker(toy.Recording):
    """Whoever asks for records and a live check has the records, and is told that none is checked."""

    def setUp(self):
        super().setUp()
        checker.forget()
        self.addCleanup(checker.forget)
        missing = {"ATTEST_BIN": "/nowhere/attest", "ATTEST_LIB": ""}
        self.enterContext(mock.patch.dict(os.environ, missing))

    def test_calls_are_recorded_and_it_is_said(self):
        with mock.patch("sys.stderr", io.StringIO()) as said:
            session = self.install(live="warn")
            toy.Server(toy.imported()).verify(short_by=4)
        self.assertEqual((len(self.records()), session.counts["judged"]), (1, 0))
        self.assertRegex(said.getvalue(), "recorded in .* and NOT checked: .*/nowhere/attest")

    def test_raise_does_not_start(self):
        with self.assertRaises(attest_record.Unavailable):
            self.install(live="raise")

    def test_one_that_goes_away_later_is_named_and_the_call_recorded(self):
        class Gone:
            def check(self, line):
                raise attest_record.Unavailable("attest: gone")

        with mock.patch.object(checker, "find", Gone), mock.patch(
            "sys.stderr", io.StringIO()
        ) as said:
            self.install(live="warn")
            toy.Server(toy.imported()).verify()
        self.assertEqual(len(self.records()), 1)
        self.assertIn("a call of unified_attention was not checked: attest: gone", said.getvalue())


class Environment(unittest.TestCase):
    def test_is_read(self):
        given = {
            "ATTEST_RECORD": "x",
            "ATTEST_LIVE": "warn",
            "ATTEST_EVERY": "7",
            "ATTEST_SHARE": "0.5",
        }
        settings = Settings.from_environment(given)
        self.assertEqual(settings[:3] + (settings.share,), ("x", "warn", 7, 0.5))

    def test_errors_name_the_variable(self):
        for name, value in (
            ("ATTEST_LIVE", "loud"),
            ("ATTEST_EVERY", "-1"),
            ("ATTEST_MAX_MB", "all"),
            ("ATTEST_PER_SECOND", "nan"),
            ("ATTEST_SHARE", "inf"),
        ):
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

    def test_a_library_of_another_version(self):
        other = mock.Mock(attest_abi_version=lambda: 2)
        with mock.patch.object(checker.ctypes, "CDLL", return_value=other):
            with self.assertRaisesRegex(attest_record.Unavailable, "ABI version 2"):
                checker.Library("libattest.so.2")

    def test_only_the_one_that_was_asked_for(self):
        with mock.patch.dict(os.environ, {"ATTEST_LIB": "/nowhere/libattest.so"}):
            with self.assertRaisesRegex(attest_record.Unavailable, "/nowhere.*ATTEST_LIB"):
                checker.find()

    def test_a_program_that_is_not_there(self):
        for path in ("/nowhere/attest", "/etc/passwd"):
            with mock.patch.dict(os.environ, {"ATTEST_BIN": path, "ATTEST_LIB": ""}):
                with self.assertRaisesRegex(attest_record.Unavailable, f"{path}.*can be run"):
                    checker.find()

    def test_install_fails_before_it_changes_anything(self):
        before = list(sys.meta_path)
        with mock.patch.dict(os.environ, {"ATTEST_LIB": "/nowhere/libattest.so"}):
            with self.assertRaises(attest_record.Unavailable):
                attest_record.install(Settings(live="warn"))
        self.assertEqual(sys.meta_path, before)


if __name__ == "__main__":
    run(__name__)
