#!/usr/bin/env python3
"""Runs kernels of Python packages for attest: the other end of docs/worker_protocol.md.

Usage: attest_worker.py [KERNEL] SHARED SOCKET   (started by attest; the last two are descriptors)
       attest_worker.py                          (lists the kernels and what is missing here)
"""
import mmap
import os
import socket
import sys
import threading
import traceback

from attest_worker import frames
from attest_worker.call import Call
from attest_worker.kernel import Lost, Unavailable
from attest_worker.kernels import all_kernels, kernel_named

PROTOCOL = 1
ALIVE_SECONDS = 1.0
# What a kernel says when it does not want a call; anything else is a failure of machine or adapter.
REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, NotImplementedError)


class Voice:
    """Says what the process is doing while it is busy, so that a hang has a place."""

    def __init__(self, sock):
        self.sock = sock
        self.lock = threading.Lock()
        self.doing = None
        threading.Thread(target=self._speak, daemon=True).start()

    def _speak(self):
        pause = threading.Event()
        while not pause.wait(ALIVE_SECONDS):
            self.say()

    def say(self):
        with self.lock:
            if self.doing:
                try:
                    frames.write_message(self.sock, {"alive": self.doing})
                except OSError:
                    return

    def now(self, doing):
        self.doing = doing
        self.say()

    def reply(self, message):
        with self.lock:
            self.doing = None
            frames.write_message(self.sock, message)


class Worker:
    def __init__(self, name, shared, sock):
        self.kernel = kernel_named(name) if name else None
        self.shared = shared
        self.memory = None
        self.loaded = None
        self.voice = Voice(sock)

    def answer(self, request):
        version = request.get("attest")
        if version != PROTOCOL:
            return {"error": f"the harness speaks version {version} of the worker protocol, "
                             f"attest_worker.py version {PROTOCOL}"}
        ask = request.get("ask")
        if ask == "describe":
            return {"backends": [kernel.describe() for kernel in all_kernels()]}
        if ask == "hello":
            return self.hello(request["device"])
        if ask == "supports":
            why = self.kernel.supports(Call(request["call"]))
            return {"yes": why is None, "reason": why or ""}
        if ask == "run":
            return self.run(request)
        return {"error": f'nobody knows how to "{ask}"'}

    def hello(self, device):
        description = self.kernel.describe()
        if description.get("available", True):
            try:
                self.load(device)
            except (Unavailable, Lost, ImportError, OSError) as error:
                description.update(available=False, reason=f"{self.kernel.name}: {error}")
        return description

    def load(self, device):
        if self.loaded != device:
            self.voice.now("importing and touching the device")
            self.kernel.load(device)
            self.loaded = device

    def run(self, request):
        self.load(request["options"]["device"])
        if self.memory is None or len(self.memory) < request["shared_bytes"]:
            self.memory = mmap.mmap(self.shared, request["shared_bytes"])
        call = Call(request["call"], self.memory, request["options"])
        self.voice.now(f"running case {request['case']}")
        try:
            result = self.kernel.run(call)
        except REFUSALS as error:
            return self.refused(error)
        except MemoryError as error:
            return {"engine": "", "failed": f"out of memory: {error}"}
        return {"engine": "", **result}

    def refused(self, error):
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        try:
            self.kernel.probe()
        except Lost as lost:
            return {"engine": "", "lost": f"{text}; {lost}"}
        return {"engine": "", "raised": text}


def serve(name, shared, sock):
    worker = Worker(name, shared, sock)
    while True:
        request = frames.read_message(sock)
        if request is None:
            return 0
        worker.voice.doing = "reading the request"
        try:
            reply = worker.answer(request)
        except Exception as error:  # an adapter's own mistake: told, with its place on stderr
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"}
        worker.voice.reply({"attest": PROTOCOL, **reply})


def list_kernels():
    for kernel in all_kernels():
        description = kernel.describe()
        print(f"{kernel.name}: " + (description.get("reason") or description["version"]))
    return 0


def main():
    if len(sys.argv) == 1:
        return list_kernels()
    name = sys.argv[1] if len(sys.argv) == 4 else ""
    shared, sock = int(sys.argv[-2]), socket.socket(fileno=int(sys.argv[-1]))
    try:
        return serve(name, shared, sock)
    except (frames.FrameError, BrokenPipeError, ConnectionResetError) as error:
        print(f"attest_worker.py: {error}", file=sys.stderr)
        return 70


if __name__ == "__main__":
    sys.exit(main())
