"""Kernel launches inside GPU graphs: noted while a graph is captured, read again where it is replayed.

A capture allows no reading and a replay runs no Python, but a replay reads the memory it was captured
with: who keeps the captured metadata tensors can look afterwards at what the kernels read.
"""

import contextlib
import copy
import random
import sys
import threading
import weakref
from typing import NamedTuple

from . import describe
from .kernels import KERNELS
from .work_plans import LISTS

OWN_MEMORY = "not recorded: made inside the graph, which had not run yet"


class _Storage(NamedTuple):
    size: int
    address: int

    def nbytes(self):
        return self.size

    def data_ptr(self):
        return self.address


class Frozen:
    """A tensor's layout without its memory. A graph's activations share memory as they die: one that
    is kept alive would make the graph larger."""

    device = "meta"  # no values

    def __init__(self, tensor, why_unread=""):
        self.dtype, self.shape = tensor.dtype, tuple(int(extent) for extent in tensor.shape)
        self._strides = tuple(int(stride) for stride in tensor.stride())
        self._offset, self._size = int(tensor.storage_offset()), int(tensor.element_size())
        self._storage = _Storage(*describe.storage_of(tensor))
        self.why_unread = why_unread

    def stride(self, dim=None):
        return self._strides if dim is None else self._strides[dim]

    def storage_offset(self):
        return self._offset

    def untyped_storage(self):
        return self._storage

    def element_size(self):
        return self._size

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count


class Launch(NamedTuple):
    """What a graph does with a kernel: arguments by name, and who called (a session's Step)."""

    kernel_name: str
    bound: dict
    step: object


def _kept(kernel_name, bound):
    """Metadata and scales as they are, everything else by its layout."""
    arrays = (*KERNELS[kernel_name].arrays, *LISTS)
    return {
        name: Frozen(value)
        if describe.is_tensor(value) and name not in arrays and value.numel() != 1
        else value
        for name, value in bound.items()
    }


def _kind(kernel_name, bound, step):
    """Equal for launches that say the same of other layers. Where memory lies is left out: each layer
    may make its metadata anew."""
    parts = [kernel_name, step.site, id(step.owner)]
    for name, value in sorted(bound.items()):
        if describe.is_tensor(value):
            size, _ = describe.storage_of(value)
            layout = tuple(int(extent) for extent in (*value.shape, *value.stride()))
            parts.append((name, str(value.dtype), layout, size))
        else:
            parts.append((name, repr(value)))
    return repr(parts)


def _memory_of(graph):
    """Whether an address is in the graph's own memory, as a function. What is there was made by the
    graph and has no value until it ran. Where torch does not tell, everything may be."""
    try:
        pool = tuple(graph.pool())
        ranges = [
            (segment["address"], segment["address"] + segment["total_size"])
            for segment in sys.modules["torch"].cuda.memory_snapshot()
            if tuple(segment["segment_pool_id"]) == pool
        ]
    except Exception:
        return lambda address: True
    return lambda address: any(first <= address < end for first, end in ranges)


def _without_own_memory(bound, is_own):
    return {
        name: Frozen(value, OWN_MEMORY)
        if describe.is_tensor(value)
        and describe.has_values(value)
        and is_own(describe.storage_of(value)[1])
        else value
        for name, value in bound.items()
    }


class _Captured:
    """The launches of a graph; the first of those that say the same."""

    def __init__(self):
        self.launches, self.kinds, self.replays = [], set(), 0

    def add(self, launch, kind):
        if kind not in self.kinds:
            self.kinds.add(kind)
            self.launches.append(launch)


class Graphs:
    """The graphs of a process. `observe`: (launch, path, batch) -> None, may raise BrokenRule."""

    def __init__(self, settings, observe, may_spend, gap):
        self._every, self._observe = settings.every, observe
        self._may_spend, self._gap = may_spend, gap
        self._graphs = weakref.WeakKeyDictionary()
        self._local, self._lock = threading.local(), threading.Lock()
        self._random = random.Random(0x6EAF)
        self._calls = self._due = 0
        self.capturing = 0  # threads that capture a graph
        self.captured = self.replayed = 0  # graphs with launches that are watched; replays of them

    def note(self, kernel_name, bound, step):
        """Whether this thread captures a graph; its launch is then kept."""
        captured = getattr(self._local, "captured", None)
        if captured is None:
            return False
        kind = _kind(kernel_name, bound, step)
        captured.add(Launch(kernel_name, _kept(kernel_name, bound), step), kind)
        return True

    def is_capturing(self):
        return getattr(self._local, "captured", None) is not None

    def capture_begin(self, begin):
        def watched(graph, *args, **kwargs):
            result = begin(graph, *args, **kwargs)
            self._local.captured = _Captured()
            with self._lock:
                self.capturing += 1
            return result

        return watched

    def capture_end(self, end):
        def watched(graph, *args, **kwargs):
            captured = getattr(self._local, "captured", None)
            self._local.captured = None
            if captured is not None:
                with self._lock:
                    self.capturing -= 1
            result = end(graph, *args, **kwargs)
            if captured is not None and captured.launches:
                self._ended(graph, captured)
            return result

        return watched

    def _ended(self, graph, captured):
        try:
            self._graphs[graph] = captured
        except TypeError:  # a class of graphs that nobody can hold weakly
            return
        self.captured += 1
        is_own = _memory_of(graph)
        for launch in captured.launches:
            bound = _without_own_memory(launch.bound, is_own)
            self._observe(launch._replace(bound=bound), "capture", None)

    def replay(self, replay):
        """After the launch, since a graph also makes metadata itself."""

        def watched(graph, *args, **kwargs):
            result = replay(graph, *args, **kwargs)
            captured = self._kept(graph)
            if captured is not None:
                self.replayed += 1
                for launch in self._sampled(captured):
                    self._observe(launch, "replay", getattr(self._local, "batch", None))
            return result

        return watched

    def _kept(self, graph):
        try:
            return self._graphs.get(graph)
        except TypeError:
            return None

    def _sampled(self, captured):
        """All launches of a graph's first replay; then one launch in `every` on average."""
        captured.replays += 1
        self._calls += len(captured.launches)
        if captured.replays > 1 and self._calls <= self._due:
            return ()
        self._due = self._calls + self._gap() - 1
        if not self._may_spend():
            return ()
        if captured.replays == 1 or self._every == 1:
            return captured.launches
        return (self._random.choice(captured.launches),)

    def with_batch(self, run):
        """Around a method that replays graphs for a forward batch, its first argument."""

        def watched(runner, *args, **kwargs):
            batch = args[0] if args else kwargs.get("forward_batch")
            with self._serving(batch if self._graphs else None):
                return run(runner, *args, **kwargs)

        return watched

    @contextlib.contextmanager
    def _serving(self, batch):
        before = getattr(self._local, "batch", None)
        try:
            # Runners put padded tensors into the batch while they work.
            self._local.batch = copy.copy(batch)
        except Exception:
            self._local.batch = None
        try:
            yield
        finally:
            self._local.batch = before

    def unseen(self):
        """What to say where graphs are replayed by other means than those that are watched."""
        if self.captured == 0 or self.replayed > 0:
            return ""
        return (
            f"captured graphs: {self.captured}; none was seen to be replayed by "
            "torch.cuda.CUDAGraph.replay, so what they did is not watched"
        )

    def after_fork(self):
        self._lock, self.capturing = threading.Lock(), int(self.is_capturing())
