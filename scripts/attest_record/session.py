"""Records and checks calls: what happens to one of them between the framework and the kernel."""

import contextlib
import hashlib
import json
import math
import os
import random
import sys
import threading
import time
import warnings
from typing import NamedTuple

from . import allow, checker, describe
from .capture import record_arguments
from .kernels import UnknownArguments, bind, parameter_names
from .truth import NoTruth, sglang_truth
from .work_plans import LISTS, WorkPlans, unfilled
from .writer import Budget, Writer


class BrokenRule(AssertionError):
    """A call breaks a rule of its kernel. `findings` are dicts, `record` is the captured call."""

    def __init__(self, text, findings=(), record=None):
        super().__init__(text)
        self.findings, self.record = list(findings), record


class NotJudged(AssertionError):
    """The checker could not judge a call that a test asked it to judge."""


class AttestWarning(UserWarning):
    """A finding where findings are not errors."""


class Step(NamedTuple):
    """Who is calling: set around the backend's forward method, read where it calls the kernel.

    truth_of: () -> (mode, truth), Raises NoTruth."""

    site: str
    truth_of: object


def sglang_step(site, backend, layer, batch):
    return Step(site, lambda: sglang_truth(backend, layer, batch))


class Settings(NamedTuple):
    folder: str = ""  # where records go; empty: nowhere
    live: str = "off"  # off, warn, raise
    every: int = 1000  # one call in so many, on average
    allow: str = ""  # an allow list
    tensors: bool = False  # q, new K and V, and whatever else is small, as safetensors
    share: float = 0.005  # of the wall time, the most that recording may take
    max_files: int = 2_000
    max_mb: int = 256
    per_second: float = 5.0

    @classmethod
    def from_environment(cls, environ=os.environ):
        """ATTEST_RECORD, ATTEST_LIVE, ATTEST_EVERY, ... Raises ValueError naming the variable."""
        live = environ.get("ATTEST_LIVE", "off") or "off"
        if live not in ("off", "warn", "raise"):
            raise ValueError(f"ATTEST_LIVE is {live!r}, expected off, warn or raise")
        values = {
            "folder": environ.get("ATTEST_RECORD", ""),
            "live": live,
            "allow": environ.get("ATTEST_ALLOW", ""),
        }
        values["tensors"] = environ.get("ATTEST_TENSORS", "") not in ("", "0")
        numbers = (
            ("every", int),
            ("share", float),
            ("max_files", int),
            ("max_mb", int),
            ("per_second", float),
        )
        for name, kind in numbers:
            text = environ.get("ATTEST_" + name.upper(), "")
            if not text:
                continue
            try:
                values[name] = kind(text)
            except ValueError:
                raise ValueError(f"ATTEST_{name.upper()} is {text!r}, expected a number") from None
            if not (math.isfinite(values[name]) and values[name] > 0):
                raise ValueError(f"ATTEST_{name.upper()} is {text}, expected more than 0")
        return cls(**values)


class Session:
    """All there is between install() and uninstall(). Its methods run in any thread."""

    def __init__(self, settings, check=None):
        self.settings = settings
        self.checker = check or (checker.find() if settings.live != "off" else None)
        self.allowed = allow.AllowList.load(settings.allow) if settings.allow else allow.AllowList()
        budget = Budget(settings.max_files, settings.max_mb << 20, settings.per_second)
        self.writer = Writer(settings.folder, budget) if settings.folder else None
        self.counts = dict.fromkeys(("recorded", "judged", "findings", "failures", "throttled"), 0)
        self.local = threading.local()
        self.sampling, self._lock = 0, threading.Lock()  # forwards being sampled, in all threads
        self._names, self._told = {}, 0
        self.work_plans = WorkPlans(self._tell)
        # Its own generator: the framework's random numbers must not depend on being watched.
        self._random = random.Random(0x5EED)
        self._started, self._spent = time.monotonic(), 0.0
        self._warned = set()

    @property
    def step(self):
        return getattr(self.local, "step", None)

    @contextlib.contextmanager
    def inside(self, step):
        before = self.step
        self.local.step = step
        with self._lock:
            self.sampling += 1
        try:
            yield
        finally:
            with self._lock:
                self.sampling -= 1
            self.local.step = before

    def gap(self):
        """Calls to the next sample: random, so that no layer count is in step with it."""
        return (
            1
            if self.settings.every == 1
            else 1 + self._random.randrange(2 * self.settings.every - 1)
        )

    def may_spend(self):
        """Keeps recording below its share of the wall time, whatever a record costs; the first
        second is free, so that a short run has records too."""
        if self.settings.live == "raise" or self.settings.every == 1:
            return True
        if self._spent <= 1.0 + self.settings.share * (time.monotonic() - self._started):
            return True
        self.counts["throttled"] += 1
        return False

    def observe(self, kernel_name, kernel, args, kwargs):
        """Before the launch: a fault takes the process, not the evidence. Raises BrokenRule with
        ATTEST_LIVE=raise; nothing else leaves, whatever goes wrong in here."""
        began = time.monotonic()
        try:
            if not _stream_is_capturing():
                self._observe(kernel_name, kernel, args, kwargs)
        except BrokenRule:
            raise
        except Exception as error:  # the framework's call matters more than this record
            self._tell(kernel_name, error)
        finally:
            self._spent += time.monotonic() - began

    def _observe(self, kernel_name, kernel, args, kwargs):
        record, bound = self.record_of(kernel_name, kernel, args, kwargs, self.step)
        broken, result = [], None
        if self.checker is not None:
            try:
                result = self.checker.check(json.dumps(record, allow_nan=False))
                broken = self._counted(record, result)
            except checker.Unavailable as error:  # the record is worth keeping all the same
                self._tell(kernel_name, error)
        self._write(record, broken, bound)
        if broken:
            self._report(record, broken)
        elif result is not None and not result.judged:
            self._warn_once(f"{record['id']}: not judged: {result.reason}")

    def record_of(self, kernel_name, kernel, args, kwargs, step):
        """(the captured call, its arguments by name). Raises UnknownArguments."""
        names = self._names.get(kernel_name)
        if names is None or names[0] is not kernel:
            self._names[kernel_name] = names = (kernel, parameter_names(kernel))
        bound = bind(kernel_name, args, kwargs, names[1])
        describer = describe.Describer()
        plan = self.work_plans.of(bound)
        lists = LISTS if plan else ()
        arguments, notes = record_arguments(kernel_name, bound, describer, lists)
        record = {"id": "", "kernel": kernel_name, "path": "eager", "args": arguments}
        reason = unfilled(arguments) if plan else None
        if plan and not reason:
            record["work_plan"] = plan
        if reason:
            notes.append(reason)
        site = step.site if step else "unknown"
        if step is None:
            notes.append("no truth: the kernel was called outside a forward method that is watched")
        else:
            try:
                record["mode"], truth = step.truth_of()
                record["truth"] = {
                    name: describer.pool(value) if isinstance(value, describe.PoolView) else value
                    for name, value in truth.items()
                }
            except NoTruth as reason:
                notes.append(f"no truth: {reason}")
        record["id"] = f"{site}/{kernel_name}/{record.get('mode', 'unknown')}"
        if notes:
            record["notes"] = notes
        return record, bound

    def _counted(self, record, result):
        if result.judged:
            self.counts["judged"] += 1
        counted, _ = self.allowed.split(record["id"], result.findings)
        self.counts["findings"] += len(counted)
        return counted

    def _report(self, record, findings):
        rejecting = [f for f in findings if f["severity"] in ("wrong", "fault")]
        text = f"{record['id']}: " + "; ".join(checker.sentence(f) for f in rejecting or findings)
        if rejecting and self.settings.live == "raise":
            raise BrokenRule(text, findings, record)
        self._warn_once(text, key=(record["id"], tuple(sorted({f["rule"] for f in findings}))))

    def _warn_once(self, text, key=None):
        key = key or text
        if key in self._warned or len(self._warned) > 1000:
            return
        self._warned.add(key)
        try:
            warnings.warn("attest: " + text, AttestWarning, stacklevel=2)
        except AttestWarning:  # -W error: then say it, and go on
            print("attest: " + text, file=sys.stderr)

    def _write(self, record, broken, bound):
        if self.writer is None:
            return
        name = file_name(record, broken)
        if not self.writer.wants(name):
            return
        path = self.writer.write(name, record)
        self.counts["recorded"] += path is not None
        if self.settings.tensors and path is not None:
            from .tensors import write_tensors

            write_tensors(path.with_suffix(".safetensors"), bound, self.writer)

    def _tell(self, kernel_name, error):
        self.counts["failures"] += 1
        if self._told < 5:
            self._told += 1
            kind = (
                ""
                if isinstance(error, (UnknownArguments, OSError))
                else f"{type(error).__name__}: "
            )
            print(
                f"attest: a call of {kernel_name} was not recorded: {kind}{error}", file=sys.stderr
            )

    def after_fork(self):
        """Another thread may have held a lock when the process forked, and is not there now."""
        self._lock, self.sampling = threading.Lock(), int(self.step is not None)
        if self.writer:
            self.writer.after_fork()


def _stream_is_capturing():
    """A value cannot be read while a GPU graph is captured: that would end the capture."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        return bool(
            cuda is not None and cuda.is_initialized() and cuda.is_current_stream_capturing()
        )
    except Exception:
        return False


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
