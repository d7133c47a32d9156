"""Records and checks calls: what happens to one of them between the framework and the kernel."""

import contextlib
import json
import random
import sys
import threading
import time
import warnings
from typing import NamedTuple

from . import allow, checker, describe
from .capture import record_arguments
from .kernels import UnknownArguments, bind, parameter_names
from .graphs import Graphs
from .settings import Settings
from .truth import NoTruth, sglang_truth
from .truth_graphs import sglang_capture_truth, sglang_replay_truth
from .work_plans import LISTS, WorkPlans, unfilled
from .writer import Budget, Writer, file_name


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

    truth_of: () -> (mode, truth). captured: the same, of the rows that a graph is captured with.
    replayed: the same of a replay, from its forward batch or None. All raise NoTruth. owner: the
    backend."""

    site: str
    truth_of: object
    captured: object
    replayed: object
    owner: object = None


def sglang_step(site, backend, layer, batch):
    return Step(
        site,
        lambda: sglang_truth(backend, layer, batch),
        lambda: sglang_capture_truth(backend, layer, batch),
        lambda now: sglang_replay_truth(backend, layer, now, batch),
        backend,
    )


class Session:
    """All there is between install() and uninstall(). Its methods run in any thread."""

    def __init__(self, settings, check=None):
        self.settings = settings
        self.checker = check or _checker_for(settings)
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
        self.graphs = Graphs(settings, self.observe_graph, self.may_spend, self.gap)

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
            if self.graphs.is_capturing():
                bound = self._bound(kernel_name, kernel, args, kwargs)
                self.graphs.note(kernel_name, bound, self.step)
            elif _stream_is_capturing():
                self._warn_once(f"{self.step.site}/{kernel_name}: {_UNSEEN_CAPTURE}")
            else:
                self._judge(*self.record_of(kernel_name, kernel, args, kwargs, self.step))
        except BrokenRule:
            raise
        except Exception as error:  # the framework's call matters more than this record
            self._tell(kernel_name, error)
        finally:
            self._spent += time.monotonic() - began

    def observe_graph(self, launch, path, batch):
        """A launch inside a graph, when its capture has ended or after a replay, of `batch` where that
        is known. Raises as observe() does."""
        began = time.monotonic()
        try:
            step, replayed = launch.step, launch.step.replayed
            truth_of = step.captured if path == "capture" else lambda: replayed(batch)
            step = step._replace(truth_of=truth_of)
            self._judge(*self._record(launch.kernel_name, launch.bound, step, path))
        except BrokenRule:
            raise
        except Exception as error:
            self._tell(launch.kernel_name, error)
        finally:
            self._spent += time.monotonic() - began

    def _judge(self, record, bound):
        broken, result = [], None
        if self.checker is not None:
            try:
                result = self.checker.check(json.dumps(record, allow_nan=False))
                broken = self._counted(record, result)
            except checker.Unavailable as error:  # the record is worth keeping all the same
                self._tell(record["kernel"], error, "checked")
        self._write(record, broken, bound)
        if broken:
            self._report(record, broken)
        elif result is not None and not result.judged and record["path"] != "capture":
            self._warn_once(f"{_site(record)}: not judged: {result.reason}")

    def record_of(self, kernel_name, kernel, args, kwargs, step):
        """(the captured call, its arguments by name). Raises UnknownArguments."""
        return self._record(kernel_name, self._bound(kernel_name, kernel, args, kwargs), step)

    def _bound(self, kernel_name, kernel, args, kwargs):
        names = self._names.get(kernel_name)
        if names is None or names[0] is not kernel:
            self._names[kernel_name] = names = (kernel, parameter_names(kernel))
        return bind(kernel_name, args, kwargs, names[1])

    def _record(self, kernel_name, bound, step, path="eager"):
        describer = describe.Describer()
        plan = self.work_plans.of(bound)
        lists = LISTS if plan else ()
        arguments, notes = record_arguments(kernel_name, bound, describer, lists)
        record = {"id": "", "kernel": kernel_name, "path": path, "args": arguments}
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
        text = f"{_site(record)}: " + "; ".join(checker.sentence(f) for f in rejecting or findings)
        if rejecting and self.settings.live == "raise":
            raise BrokenRule(text, findings, record)
        self._warn_once(text, key=(_site(record), tuple(sorted({f["rule"] for f in findings}))))

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

    def _tell(self, kernel_name, error, done="recorded"):
        self.counts["failures"] += 1
        if self._told < 5:
            self._told += 1
            kind = (
                ""
                if isinstance(error, (UnknownArguments, OSError, checker.Unavailable))
                else f"{type(error).__name__}: "
            )
            print(
                f"attest: a call of {kernel_name} was not {done}: {kind}{error}", file=sys.stderr
            )

    def after_fork(self):
        """Another thread may have held a lock when the process forked, and is not there now."""
        self._lock, self.sampling = threading.Lock(), int(self.step is not None)
        self.graphs.after_fork()
        if self.writer:
            self.writer.after_fork()


_UNSEEN_CAPTURE = (
    "a graph is captured otherwise than by torch.cuda.CUDAGraph: its calls are not watched"
)


def _checker_for(settings):
    """None: nothing is to be checked, or nothing can be and the records are worth having alone."""
    if settings.live == "off":
        return None
    try:
        return checker.find()
    except checker.Unavailable as error:
        if settings.live == "raise" or not settings.folder:
            raise
        print(
            f"attest: calls are recorded in {settings.folder} and NOT checked: {error}",
            file=sys.stderr,
        )
        return None


def _site(record):
    return record["id"] + ("" if record["path"] == "eager" else f" ({record['path']})")


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
