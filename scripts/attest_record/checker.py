"""Asks attest about one captured call: through libattest (no process) or the attest binary."""

import ctypes
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

ABI_VERSION = 1
PASS, REJECTED, UNSUPPORTED, BAD_INPUT = 0, 2, 3, 65
_TIME_LIMIT = 30  # seconds for one call by the binary


class Unavailable(Exception):
    """Neither libattest nor the attest binary could be found or started."""


class Result(NamedTuple):
    """code: an exit code of `attest check`. findings: dicts with rule, severity, where, got,
    expected. reason: why it was rejected or not judged."""

    code: int
    findings: tuple = ()
    reason: str = ""

    @property
    def judged(self):
        return self.code in (PASS, REJECTED)


def sentence(finding):
    text = f"{finding['severity']} {finding['rule']}: {finding['where']} is {finding['got']}, expected {finding['expected']}"
    return text + (f" (and {finding['more']} more)" if finding.get("more") else "")


class Library:
    """libattest.so, ABI version 1 (contracts/capi/attest.h). Safe from any thread."""

    def __init__(self, path):
        self.path = str(path)
        try:
            self._lib = ctypes.CDLL(self.path)
            version = self._lib.attest_abi_version()
        except (OSError, AttributeError) as error:
            raise Unavailable(f"{self.path}: {error}") from None
        if version != ABI_VERSION:
            raise Unavailable(
                f"{self.path}: ABI version {version}, this recorder speaks {ABI_VERSION}"
            )
        self._lib.attest_check_json.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
        ]
        self._lib.attest_free.argtypes = [ctypes.c_void_p]
        self._lib.attest_free.restype = None

    def check(self, line):
        text = line.encode()
        report = ctypes.c_void_p()
        code = self._lib.attest_check_json(text, len(text), ctypes.byref(report))
        try:
            body = json.loads(ctypes.string_at(report.value)) if report.value else {}
        finally:
            self._lib.attest_free(report)
        return Result(
            code, tuple(body.get("findings", ())), body.get("reason") or body.get("error", "")
        )


class Binary:
    """`attest check -`: a process per call, for where the library cannot be loaded."""

    def __init__(self, path):
        self.path = str(path)
        if shutil.which(self.path) is None:
            raise Unavailable(f"{self.path}: no program that can be run")

    def check(self, line):
        command = [self.path, "check", "-", "--json"]
        try:
            done = subprocess.run(
                command, input=line + "\n", capture_output=True, text=True, timeout=_TIME_LIMIT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{self.path}: {error}") from None
        for output in done.stdout.splitlines():
            body = json.loads(output)
            if "findings" in body:
                findings = tuple(_as_the_library(finding) for finding in body["findings"])
                return Result(done.returncode, findings, body.get("reason", ""))
        return Result(done.returncode, (), done.stderr.strip()[-500:])


def _as_the_library(finding):
    """The binary writes "more": 0, the library leaves it out."""
    return {key: value for key, value in finding.items() if key != "more" or value}


def _candidates():
    root = Path(__file__).resolve().parents[2]
    if os.environ.get("ATTEST_LIB"):
        yield Library, os.environ["ATTEST_LIB"]
        return
    if os.environ.get("ATTEST_BIN"):
        yield Binary, os.environ["ATTEST_BIN"]
        return
    for library in (root / "build/lib/libattest.so", root / "lib/libattest.so"):
        if library.exists():
            yield Library, library
    yield Library, "libattest.so.1"
    for binary in (root / "build/bin/attest", shutil.which("attest")):
        if binary and Path(binary).exists():
            yield Binary, binary


_found, _lock = None, threading.Lock()


def find():
    """The first checker that works: $ATTEST_LIB or $ATTEST_BIN if set and nothing else, then the
    build tree beside this file, then the system's. Raises Unavailable, naming what was tried."""
    global _found
    with _lock:
        if _found is None:
            tried = []
            for kind, path in _candidates():
                try:
                    _found = kind(path)
                    break
                except Unavailable as error:
                    tried.append(str(error))
            else:
                raise Unavailable(
                    "no libattest and no attest binary: "
                    + "; ".join(tried or ["none found"])
                    + " (set ATTEST_LIB or ATTEST_BIN)"
                )
        return _found


def forget():
    """Looks again at the next find(); for tests and after a fork."""
    global _found, _lock
    _found, _lock = None, threading.Lock()
