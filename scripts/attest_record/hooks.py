"""Puts the recorder between a framework and its kernels, as the framework's modules are imported."""

import functools
import importlib.abc
import os
import sys

from . import truth_vllm
from .frameworks import GRAPHS, REPLAYS, RUNNERS, TARGETS, WATCHED

_MARK = "_attest_wrapped"


def is_wrapped(function):
    return getattr(function, _MARK, None) is True  # a mock has every attribute


class Hooks:
    """All that was replaced, so that it can be put back."""

    def __init__(self, session):
        self.session = session
        self._replaced = []
        self._finder = _Finder(self)

    def install(self):
        sys.meta_path.insert(0, self._finder)
        for name in WATCHED:
            if name in sys.modules:
                self.patch(sys.modules[name])

    def uninstall(self):
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        while self._replaced:
            owner, name, original = self._replaced.pop()
            setattr(owner, name, original)

    def patch(self, module):
        """Wraps what is there; a version that lacks a name is no error. Patching twice is none."""
        target = TARGETS.get(module.__name__)
        if target is not None:
            for name, kernel_name in target.functions.items():
                self._replace(module, name, lambda kernel, n=kernel_name: self.kernel(n, kernel))
            for name in target.planners:
                plans = self.session.work_plans
                self._replace(module, name, lambda planner, n=name: plans.wrap(n, planner))
            for name in target.classes:
                if hasattr(module, name):
                    self._patch_backend(getattr(module, name), target)
            for name in target.multi_step:
                if hasattr(module, name):
                    self._replace(getattr(module, name), "__init__", numbering)
        if module.__name__ in RUNNERS:
            owner, method = RUNNERS[module.__name__]
            if hasattr(module, owner):
                self._replace(getattr(module, owner), method, _running)
        self._patch_graphs(module)

    def _patch_graphs(self, module):
        graphs = self.session.graphs
        owner, methods = REPLAYS.get(module.__name__, ("", ()))
        for method in methods:
            if hasattr(module, owner):
                self._replace(getattr(module, owner), method, graphs.with_batch)
        graph = getattr(module, GRAPHS.get(module.__name__, ""), None)
        for method in ("capture_begin", "capture_end", "replay") if graph is not None else ():
            self._replace(graph, method, getattr(graphs, method))

    def _replace(self, owner, name, make):
        original = vars(owner).get(name)
        if original is None or is_wrapped(original):
            return
        replacement = make(original)
        try:
            functools.update_wrapper(replacement, original)
        except Exception:  # a callable with odd attributes stays callable
            pass
        setattr(replacement, _MARK, True)
        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original))

    def _patch_backend(self, backend_class, target):
        if target.attributes:
            self._replace(backend_class, "__init__", lambda init: self._construct(init, target))
        for name in target.forwards:
            site = f"{backend_class.__name__}.{name}"
            self._replace(
                backend_class, name, lambda forward, s=site: self.forward(s, forward, target)
            )

    def _construct(self, init, target):
        """The AMX backend looks its kernels up once, when it is made."""

        def construct(backend, *args, **kwargs):
            init(backend, *args, **kwargs)
            self.watch_attributes(backend, target)

        return construct

    def watch_attributes(self, backend, target):
        for attribute, kernel_name in target.attributes.items():
            kernel = getattr(backend, attribute, None)
            if kernel is not None and not is_wrapped(kernel):
                watched = self.kernel(kernel_name, kernel)
                setattr(watched, _MARK, True)
                setattr(backend, attribute, watched)
                self._replaced.append((backend, attribute, kernel))

    def forward(self, site, forward, target):
        """Decides whether this step is sampled and says who is calling. Once in `every` calls on
        average, the first one always; threads that race here cost a sample, no more."""
        session, step_of, arguments = self.session, target.step_of, target.arguments
        graphs = session.graphs
        calls = due = 0

        def watched(backend, *args, **kwargs):
            nonlocal calls, due
            calls += 1
            capturing = graphs.capturing and graphs.is_capturing()  # no launch of it may be missed
            # The way of all calls but one in a thousand: nothing else is touched.
            if calls <= due and not capturing:
                return forward(backend, *args, **kwargs)
            if not capturing:
                due = calls + session.gap() - 1
                if not session.may_spend():
                    return forward(backend, *args, **kwargs)
            step = None
            try:
                self.watch_attributes(backend, target)  # made before install()
                step = step_of(site, backend, {**dict(zip(arguments, args)), **kwargs})
            except Exception as error:  # a signature that is not known
                session._tell(site, error)
            with session.inside(step):
                return forward(backend, *args, **kwargs)

        return watched

    def kernel(self, kernel_name, kernel):
        """Records in a sampled forward only: outside there is no truth to judge a call by."""
        session = self.session

        def watched(*args, **kwargs):
            if session.sampling and session.step is not None:
                session.observe(kernel_name, kernel, args, kwargs)
            return kernel(*args, **kwargs)

        return watched


def numbering(init):
    """Tells every backend of a multi-step one which draft step it is: the batch does not say."""

    def construct(multi, *args, **kwargs):
        init(multi, *args, **kwargs)
        number_steps(multi)

    return construct


def number_steps(multi):
    backends = getattr(multi, "attn_backends", None) or []
    for step, backend in enumerate(backends):
        backend.attest_draft_step = step
        backend.attest_draft_topk = int(getattr(multi, "topk", 1) or 1)
        backend.attest_draft_steps = int(getattr(multi, "speculative_num_steps", len(backends) + 1))


def _running(execute):
    def watched(runner, scheduled, *args, **kwargs):
        before = truth_vllm.enter(runner, scheduled)
        try:
            return execute(runner, scheduled, *args, **kwargs)
        finally:
            truth_vllm.leave(before)

    return watched


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: lets the other finders find, and patches after the module has run."""

    def __init__(self, hooks):
        self._hooks, self._busy = hooks, set()

    def find_spec(self, name, path=None, target=None):
        if name not in WATCHED or name in self._busy:
            return None
        self._busy.add(name)
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                if finder is self or find is None:
                    continue
                spec = find(name, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._hooks)
                    return spec
            return None
        finally:
            self._busy.discard(name)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, hooks):
        self._loader, self._hooks = loader, hooks

    def __getattr__(self, name):  # get_source, is_package, ...
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        try:
            self._hooks.patch(module)
        except Exception as error:  # the import must go on
            print(f"attest: {module.__name__} is not watched: {error}", file=sys.stderr)


def at_fork(session):
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=session.after_fork)
