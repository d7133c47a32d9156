"""Records on disk: one JSON file per distinct call, whole or not there, within a budget."""

import hashlib
import json
import os
import threading
import time
from pathlib import Path


class Budget:
    """How much may be written. A long-lived server must not fill a disk."""

    def __init__(self, files=2_000, size=256 << 20, per_second=5.0):
        self.files, self.size, self.per_second = files, size, per_second


class Writer:
    """Writes `<folder>/<name>.json` by way of a hidden temporary file and a rename, so that a
    reader (or `attest check <folder>`) sees whole records only, whatever kills the process.
    Safe from any thread; processes share the folder, and `name` decides who is first."""

    def __init__(self, folder, budget=None, clock=time.monotonic):
        self.folder, self.budget, self._clock = Path(folder), budget or Budget(), clock
        self.written = self.dropped = self.bytes = 0
        self._seen = set()
        self._tokens, self._refilled = self.budget.per_second, clock()
        self._lock = threading.Lock()

    def wants(self, name):
        """Whether a record of that name is new and within the budget and rate. Counts as asked."""
        with self._lock:
            if name in self._seen:
                return False
            if self.written >= self.budget.files or self.bytes >= self.budget.size:
                self.dropped += 1
                return False
            if not self._take_token():
                self.dropped += 1
                return False
            self._seen.add(name)
            return True

    def _take_token(self):
        """A bucket that holds one second's worth."""
        now = self._clock()
        gained = (now - self._refilled) * self.budget.per_second
        self._tokens = min(max(self.budget.per_second, 1.0), self._tokens + gained)
        self._refilled = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def write(self, name, record):
        """The path, or None where another process was first or the folder is full. Raises OSError;
        the temporary file is gone then, and the name may be tried again."""
        path = self.folder / f"{name}.json"
        if path.exists() or not self._has_room():
            return None
        text = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
        temporary = self.folder / f".{name}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, path)
        except BaseException:
            with self._lock:
                self._seen.discard(name)
            try:
                temporary.unlink()
            except OSError:
                pass
            raise
        with self._lock:
            self.written += 1
        self.charge(len(text))
        return path

    def charge(self, size):
        with self._lock:
            self.bytes += size

    def _has_room(self):
        """The budget is the folder's: eight processes of one server write to the same."""
        try:
            sizes = [entry.stat().st_size for entry in os.scandir(self.folder)]
        except FileNotFoundError:
            return True
        return len(sizes) < self.budget.files and sum(sizes) < self.budget.size

    def after_fork(self):
        self._lock = threading.Lock()

    def sweep(self, older_than=3600.0):
        """Removes what killed processes left half written."""
        for leftover in self.folder.glob(".*.tmp"):
            try:
                if time.time() - leftover.stat().st_mtime > older_than:
                    leftover.unlink()
            except OSError:
                pass


def signature(record):
    """What makes two calls distinct: kernel, site, dtypes, layouts and sizes by powers of two; not
    the values."""
    parts = [record["id"], record["path"]]
    for name, value in sorted(record["args"].items()):
        if isinstance(value, dict):
            large = value["storage_bytes"] >= 1 << 31
            bits = [extent.bit_length() for extent in value["shape"]]
            parts.append((name, value["dtype"], bits, 0 in value["strides"], large))
        elif isinstance(value, bool) or not isinstance(value, int):
            parts.append((name, value))
        else:
            parts.append((name, value.bit_length()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def file_name(record, broken):
    """Calls that break other rules are other calls."""
    rules = ".".join(sorted({f["rule"] for f in broken}))
    mark = "-broken-" + hashlib.sha256(rules.encode()).hexdigest()[:8] if broken else ""
    return f"{record['kernel']}-{record.get('mode', 'unknown')}-{signature(record)}{mark}"
