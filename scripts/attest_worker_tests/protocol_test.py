"""attest_worker.py from the harness's side, on the standard library alone."""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(SCRIPTS, "attest_worker.py")


class Worker:
    """A started attest_worker.py with one end of its socket."""

    def __init__(self, name=None, environment=None):
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(60)
        self.memory = tempfile.TemporaryFile()
        words = [sys.executable, SCRIPT, *([name] if name else []),
                 str(self.memory.fileno()), str(theirs.fileno())]
        self.process = subprocess.Popen(
            words, pass_fds=[self.memory.fileno(), theirs.fileno()], stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})})
        theirs.close()

    def send(self, payload, magic=b"ATST", version=1):
        self.ours.sendall(struct.pack("<4sIQ", magic, version, len(payload)) + payload)

    def receive(self):
        header = self.ours.recv(16, socket.MSG_WAITALL)
        magic, version, length = struct.unpack("<4sIQ", header)
        assert (magic, version) == (b"ATST", 1)
        return json.loads(self.ours.recv(length, socket.MSG_WAITALL))

    def ask(self, **request):
        self.send(json.dumps({"attest": 1, **request}).encode())
        reply = self.receive()
        while "alive" in reply:
            reply = self.receive()
        return reply

    def end(self):
        self.ours.close()
        _, errors = self.process.communicate(timeout=60)
        self.memory.close()
        return self.process.returncode, errors.decode()


class Protocol(unittest.TestCase):
    def started(self, *arguments):
        worker = Worker(*arguments)
        self.addCleanup(worker.end)
        return worker

    def test_describes_every_kernel_with_what_is_missing(self):
        replies = self.started().ask(ask="describe")["backends"]
        names = [one["name"] for one in replies]
        self.assertEqual(len(names), len(set(names)))
        for wanted in ("numpy.unified@cpu", "torch.sdpa-math@cpu", "vllm.unified@cuda",
                       "aiter.unified@rocm", "sglang.extend@cpu", "sglang.decode@cpu"):
            self.assertIn(wanted, names)
        for one in replies:
            self.assertIn("signature", one["capabilities"])
            self.assertTrue(one["version"], one["name"])
            if not one.get("available", True):
                self.assertTrue(one["reason"], one["name"])

    def test_names_the_pip_line_of_a_missing_package(self):
        # An interpreter that looks nowhere but into the standard library.
        script = ("import sys; sys.path = [p for p in sys.path if 'packages' not in p];"
                  f"sys.path.insert(0, {SCRIPTS!r});"
                  "from attest_worker.kernels import kernel_named;"
                  "[print(kernel_named(n).describe()['reason']) for n in"
                  " ('numpy.unified@cpu', 'torch.sdpa-math@cpu', 'vllm.unified@cuda')]")
        said = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True,
                              check=True).stdout.splitlines()
        self.assertEqual(said[0], "no Python module numpy: apt-get install python3-numpy, or "
                                  "pip install numpy")
        self.assertEqual(said[1], "no Python module torch: pip install torch==2.11.0")
        self.assertTrue(said[2].startswith("no Python module vllm: pip install vllm=="))

    def test_refuses_another_protocol_version_with_both(self):
        worker = self.started("numpy.unified@cpu")
        self.assertEqual(worker.ask(attest=2, ask="hello", device=0)["error"],
                         "the harness speaks version 2 of the worker protocol, attest_worker.py "
                         "version 1")

    def test_says_that_it_does_not_know_a_question(self):
        self.assertIn("nobody knows how to", self.started("numpy.unified@cpu").ask(ask="x")["error"])

    def test_ends_when_the_harness_is_gone(self):
        self.assertEqual(Worker("numpy.unified@cpu").end(), (0, ""))

    def test_ends_over_a_frame_that_is_none(self):
        for broken in ({"magic": b"HTTP"}, {"version": 9}):
            worker = Worker("numpy.unified@cpu")
            worker.send(b"{}", **broken)
            try:
                self.assertEqual(worker.ours.recv(1), b"")
            except ConnectionResetError:
                pass  # it left the rest of the frame unread
            code, errors = worker.end()
            self.assertEqual(code, 70)
            self.assertIn("attest_worker.py: frame", errors)

    def test_tells_a_mistake_of_an_adapter_and_goes_on(self):
        worker = self.started("numpy.unified@cpu")
        self.assertIn("KeyError", worker.ask(ask="supports")["error"])
        self.assertIn("nobody knows", worker.ask(ask="x")["error"])


class Speaks(unittest.TestCase):
    def test_every_second_while_a_kernel_runs(self):
        sys.path.insert(0, SCRIPTS)
        import importlib.util
        spec = importlib.util.spec_from_file_location("worker_script", SCRIPT)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        ours, theirs = socket.socketpair()
        ours.settimeout(30)
        voice = script.Voice(theirs)
        voice.now("running case 3")
        heard = b""
        while heard.count(b'{"alive": "running case 3"}') < 2:
            heard += ours.recv(4096)
        voice.reply({"attest": 1})
        while b'{"attest": 1}' not in heard:
            heard += ours.recv(4096)
        ours.settimeout(1.5)
        with self.assertRaises(socket.timeout):
            ours.recv(1)  # nothing after the reply


if __name__ == "__main__":
    unittest.main()
