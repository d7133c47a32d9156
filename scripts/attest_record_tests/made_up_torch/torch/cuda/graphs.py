"""Graphs without a GPU, as far as a recorder can tell: while one is captured nothing can be read and
what it makes has no value; a replay computes that anew and runs no Python of whoever captured."""

import itertools

from attest_record_tests import small_torch

_OWN = 1 << 40  # where graphs make their tensors
_addresses = itertools.count(_OWN, 0x1000)
_now = None


def is_current_stream_capturing():
    return _now is not None


def memory_snapshot():
    return [
        {"address": 0, "total_size": _OWN, "segment_pool_id": (0, 0)},
        {"address": _OWN, "total_size": 1 << 30, "segment_pool_id": (0, 7)},
    ]


class CUDAGraph:
    def __init__(self):
        self.program, self.replays = [], 0

    def pool(self):
        return (0, 7)

    def capture_begin(self, pool=None, capture_error_mode="global"):
        global _now
        _now = self

    def capture_end(self):
        global _now
        _now = None

    def replay(self):
        self.replays += 1
        for tensor, make in self.program:
            tensor._write(make().flat())


class graph:  # noqa: N801: torch's name
    def __init__(self, cuda_graph):
        self.cuda_graph = cuda_graph

    def __enter__(self):
        self.cuda_graph.capture_begin()

    def __exit__(self, *_):
        self.cuda_graph.capture_end()


def made(make):
    """What an operator gives: at once, or in the graph that is captured, where it has no value yet."""
    value = make()
    if _now is None:
        return value
    tensor = small_torch.full(value.shape, -77, dtype=value.dtype)
    tensor._storage.address = next(_addresses)
    _now.program.append((tensor, make))
    return tensor


def _refusing(read):
    def reading(tensor):
        if _now is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        return read(tensor)

    return reading


for _name in ("tolist", "item"):
    setattr(small_torch.Tensor, _name, _refusing(getattr(small_torch.Tensor, _name)))
