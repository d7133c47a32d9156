"""A checker in the kernel's place: a backend's unit test needs no GPU and no kernel package."""

import importlib
import json
import sys
import types
import warnings
from typing import NamedTuple

from . import allow, checker
from .frameworks import TARGETS
from .hooks import Hooks, numbering
from .kernels import KERNELS
from .session import AttestWarning, BrokenRule, NotJudged, Session, Settings

_ABSENT = object()


class Call(NamedTuple):
    """A kernel call that was checked. record: the captured call; code, findings: the verdict."""

    record: dict
    code: int
    findings: tuple
    allowed: tuple


def _target_of(module):
    if module.__name__ in TARGETS:
        return TARGETS[module.__name__]
    last = module.__name__.rpartition(".")[2]
    for name, target in TARGETS.items():
        if name.rpartition(".")[2] == last:
            return target
    raise ValueError(
        f"{module.__name__} is no backend that attest_record knows: {', '.join(TARGETS)}"
    )


class Stub(Hooks):
    """with stub(module) as calls: every kernel the module's backends call is checked instead.

    A broken rule raises BrokenRule (an AssertionError) at the call, with the finding as its text.
    Findings that do not reject are warnings, or errors with strict=True; an allow list covers
    them. A call that cannot be judged raises NotJudged, since a test that checked nothing must not
    pass; judge_all=False records it alone.

    truth: what the test itself knows, laid over what the batch says: committed, new_tokens, ...
    """

    def __init__(
        self, target, truth=None, strict=False, allow_list=None, judge_all=True, check=None
    ):
        self._module = (
            target if isinstance(target, types.ModuleType) else sys.modules[type(target).__module__]
        )
        self._target = _target_of(self._module)
        self._truth, self._strict, self._judge_all = dict(truth or {}), strict, judge_all
        if isinstance(allow_list, (str, bytes)) or hasattr(allow_list, "__fspath__"):
            allow_list = allow.AllowList.load(allow_list)
        settings = Settings(live="raise", every=1)
        super().__init__(Session(settings, check or checker.find()))
        self.session.allowed = allow_list or allow.AllowList()
        self.calls = []

    def __enter__(self):
        for name, kernel_name in self._target.functions.items():
            before = vars(self._module).get(name, _ABSENT)
            setattr(
                self._module, name, self.kernel(kernel_name, None if before is _ABSENT else before)
            )
            self._replaced.append((self._module, name, before))
        for name in self._target.classes:
            if hasattr(self._module, name):
                self._patch_backend(getattr(self._module, name), self._target)
        for name in self._target.multi_step:
            if hasattr(self._module, name):
                self._replace(getattr(self._module, name), "__init__", numbering)
        return self.calls

    def __exit__(self, *_):
        while self._replaced:
            owner, name, before = self._replaced.pop()
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def kernel(self, kernel_name, kernel):
        def checked(*args, **kwargs):
            record, bound = self.session.record_of(
                kernel_name, kernel, args, kwargs, self.session.step
            )
            if self._truth and "truth" in record:
                record["truth"] = {**record["truth"], **self._truth}
            self._judge(record)
            return _result(kernel_name, bound)

        return checked

    def _judge(self, record):
        result = self.session.checker.check(json.dumps(record, allow_nan=False))
        counted, allowed = self.session.allowed.split(record["id"], result.findings)
        self.calls.append(Call(record, result.code, tuple(counted), tuple(allowed)))
        if not result.judged and self._judge_all:
            notes = "; ".join(record.get("notes", ()))
            raise NotJudged(f"{record['id']}: {result.reason or 'not judged'} {notes}".rstrip())
        rejecting = [f for f in counted if f["severity"] in ("wrong", "fault")]
        shown = rejecting or counted
        text = f"{record['id']}: " + "\n".join(checker.sentence(finding) for finding in shown)
        if rejecting or (counted and self._strict):
            raise BrokenRule(text, counted, record)
        if counted:
            warnings.warn(text, AttestWarning, stacklevel=3)


def _result(kernel_name, bound):
    """What the kernel gives back: nothing, or a tensor of the output's shape with unset values."""
    if KERNELS[kernel_name].output:
        return None
    q, v = bound["q"], bound["v"]
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def stub(target, **options):
    """Stub(target, ...); target is a backend's module, its name, or a backend."""
    if isinstance(target, str):
        target = importlib.import_module(target)
    return Stub(target, **options)
