"""Tensors as the captured-call format has them: layout always, values of integers, never weights."""

import array
import hashlib
from typing import NamedTuple

# Arrays of more entries than this are not recorded, and rules that need them say so.
MAX_VALUES = 262_144
# Up to this many a hash tells whether two calls had the same; beyond, hashing would stall a step.
MAX_HASHED = 1 << 20

_INTEGERS = {"int32", "int64", "uint8", "bool", "int8", "int16"}


def is_tensor(value):
    """Anything that quacks like a tensor: torch is not needed, and not imported."""
    return (
        hasattr(value, "dtype")
        and hasattr(value, "shape")
        and callable(getattr(value, "stride", None))
    )


def dtype_name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def storage_of(tensor):
    """(bytes of the whole storage, its address), or the tensor's own where torch does not tell."""
    try:
        if hasattr(tensor, "untyped_storage"):
            storage = tensor.untyped_storage()
        else:  # torch < 2.0
            storage = tensor.storage()
            storage = getattr(storage, "_untyped", lambda: storage)()
        return int(storage.nbytes()), storage.data_ptr()
    except Exception:  # a meta or functional tensor has no storage to speak of
        size = tensor.element_size() if hasattr(tensor, "element_size") else 0
        return tensor.numel() * size, id(tensor)


def has_values(tensor):
    return str(getattr(tensor, "device", "cpu")) != "meta"


def values_of(tensor):
    """The entries as (nested) lists. Waits for the device that holds them."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach()
    return tensor.tolist()


def _flat(values):
    if values and isinstance(values[0], list):
        return [entry for row in values for entry in _flat(row)]
    return values


class PoolView(NamedTuple):
    """A layer's K or V pool inside a larger tensor: `index` of its dimension `dim`, which goes, then
    heads and tokens swapped where heads come first. Shape afterwards: (pages, page, heads, dim) or
    (slots, heads, dim). No data is touched."""

    tensor: object
    dim: int = -1  # none
    index: int = 0
    heads_first: bool = False


class Describer:
    """Describes the tensors of one call; equal storages get equal labels."""

    def __init__(self, max_values=MAX_VALUES):
        self.max_values = max_values
        self._labels = {}

    def layout(self, tensor):
        size, address = storage_of(tensor)
        label = self._labels.setdefault(
            (address, size if not address else 0), f"m{len(self._labels)}"
        )
        return {
            "dtype": dtype_name(tensor),
            "shape": [int(extent) for extent in tensor.shape],
            "strides": [int(stride) for stride in tensor.stride()],
            "storage_offset": int(tensor.storage_offset()),
            "storage_bytes": size,
            "mem": label,
        }

    def pool(self, view):
        described = self.layout(view.tensor)
        if view.dim >= 0:
            described["shape"].pop(view.dim)
            described["storage_offset"] += view.index * described["strides"].pop(view.dim)
        if view.heads_first:
            for name in ("shape", "strides"):
                extents = described[name]
                extents[1], extents[2] = extents[2], extents[1]
        return described

    def tensor(self, tensor, with_values=False):
        """`with_values`: an integer array that is metadata. A float of one element keeps it too:
        it is a scale."""
        described = self.layout(tensor)
        if described["dtype"] in _INTEGERS:
            if with_values:
                self._add_values(tensor, described)
        elif tensor.numel() == 1 and has_values(tensor):
            value = float(_flat([values_of(tensor)])[0] if tensor.shape else tensor.item())
            if value == value and abs(value) != float("inf"):
                described["value"] = value
        return described

    def _add_values(self, tensor, described):
        if not has_values(tensor):
            described["sha256"] = getattr(tensor, "why_unread", "") or "not recorded: meta device"
        elif tensor.numel() <= self.max_values:
            values = values_of(tensor)
            described["values"] = values if len(tensor.shape) == 2 else _flat(values)
            if described["dtype"] == "bool":
                described["values"] = _as_integers(described["values"])
        else:
            described["sha256"] = _hash(tensor)
            tail = tensor.reshape(-1)[-64:]
            described["tail"] = [int(entry) for entry in _flat(values_of(tail))]


def _as_integers(values):
    return [_as_integers(entry) if isinstance(entry, list) else int(entry) for entry in values]


def _hash(tensor):
    """Of the entries in row-major order as little-endian int64, a piece at a time."""
    if tensor.numel() > MAX_HASHED:
        return "not computed: too many entries"
    digest = hashlib.sha256()
    flat = tensor.reshape(-1)
    for start in range(0, flat.numel(), 1 << 16):
        piece = array.array("q", values_of(flat[start : start + (1 << 16)]))
        digest.update(piece.tobytes())
    return digest.hexdigest()


def scalar(value):
    """A scalar argument as JSON has it, or None where it has no form there."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (list, tuple)):
        return [scalar(entry) for entry in value]
    return str(value)
