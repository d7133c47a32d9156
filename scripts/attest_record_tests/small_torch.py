"""As much of torch as two attention backends and the recorder need, in plain Python.

CI has no torch: a CPU build is 48 MB and 177 Debian packages, minutes of installation. Storage is
sparse, so that a pool of 4 GiB costs nothing. Where torch is installed the same tests run on it
(ATTEST_TEST_TORCH=real), which is what shows that this stand-in is a faithful one.
"""

import builtins
import itertools
import operator
import types


class dtype:
    def __init__(self, name, itemsize, integer):
        self.name, self.itemsize, self.integer = name, itemsize, integer

    def __repr__(self):
        return f"torch.{self.name}"


float32, float16 = dtype("float32", 4, False), dtype("float16", 2, False)
bfloat16, float8_e4m3fn = dtype("bfloat16", 2, False), dtype("float8_e4m3fn", 1, False)
int64, int32 = dtype("int64", 8, True), dtype("int32", 4, True)
uint8, bool_ = dtype("uint8", 1, True), dtype("bool", 1, True)
globals()["bool"] = bool_

_addresses = itertools.count(0x1000, 0x1000)


class Storage:
    def __init__(self, size):
        self.size, self.entries, self.address = size, {}, next(_addresses)

    def nbytes(self):
        return self.size

    def data_ptr(self):
        return self.address


def _dense(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= builtins.max(extent, 1)
    return tuple(reversed(strides))


def _count(shape):
    total = 1
    for extent in shape:
        total *= extent
    return total


class Tensor:
    def __init__(self, storage, shape, strides, offset, kind, device="cpu"):
        self._storage, self.shape, self._strides = storage, tuple(shape), tuple(strides)
        self._offset, self.dtype, self.device = offset, kind, device

    # Layout.
    def stride(self, dim=None):
        return self._strides if dim is None else self._strides[dim]

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def storage_offset(self):
        return self._offset

    def untyped_storage(self):
        return self._storage

    def element_size(self):
        return self.dtype.itemsize

    def numel(self):
        return _count(self.shape)

    def dim(self):
        return len(self.shape)

    def detach(self):
        return self

    def __len__(self):
        return self.shape[0]

    def _places(self):
        places = [self._offset]
        for extent, stride in zip(self.shape, self._strides):
            places = [place + k * stride for place in places for k in range(extent)]
        return places

    # Values.
    def flat(self):
        if self.device == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        entries = self._storage.entries
        return [entries.get(place, 0) for place in self._places()]

    def tolist(self):
        values = self.flat()
        for extent in reversed(self.shape[1:]):
            values = [values[i : i + extent] for i in range(0, len(values), extent)]
        return values if self.shape else values[0]

    def item(self):
        (value,) = self.flat()
        return value

    def __int__(self):
        return int(self.item())

    __index__ = __int__

    def __bool__(self):
        return self.item() != 0

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def _write(self, values):
        entries = self._storage.entries
        for place, value in zip(self._places(), values):
            entries[place] = value

    # Views.
    def _view_of(self, shape, strides, offset):
        return Tensor(self._storage, shape, strides, offset, self.dtype, self.device)

    def reshape(self, *shape):
        shape = (
            list(shape[0])
            if len(shape) == 1 and isinstance(shape[0], (tuple, list))
            else list(shape)
        )
        if -1 in shape:
            known = _count(extent for extent in shape if extent != -1)
            shape[shape.index(-1)] = self.numel() // known
        if _count(shape) != self.numel():
            raise RuntimeError(f"shape {shape} is invalid for {self.numel()} entries")
        if self._strides == _dense(self.shape):
            return self._view_of(shape, _dense(shape), self._offset)
        return tensor(self.flat(), dtype=self.dtype).reshape(shape)

    view = reshape

    def expand(self, *shape):
        sizes = [old if new == -1 else new for old, new in zip(self.shape, shape)]
        strides = [
            0 if old == 1 != new else s for old, new, s in zip(self.shape, sizes, self._strides)
        ]
        return self._view_of(sizes, strides, self._offset)

    def contiguous(self):
        return self if self._strides == _dense(self.shape) else self.clone()

    def cpu(self):
        return self

    def clone(self):
        return tensor(self.flat(), dtype=self.dtype).reshape(self.shape)

    def to(self, kind=None, **_):
        if not isinstance(kind, dtype) or kind is self.dtype:
            return self
        return tensor(self.flat(), dtype=kind).reshape(self.shape)

    def long(self):
        return self.to(int64)

    def new_empty(self, shape, dtype=None, **_):
        return empty(shape, dtype=dtype or self.dtype)

    def _pick(self, key):
        """The view a tuple of ints and slices picks."""
        key = key if isinstance(key, tuple) else (key,)
        shape, strides, offset = [], [], self._offset
        for d, (extent, stride) in enumerate(zip(self.shape, self._strides)):
            part = key[d] if d < len(key) else slice(None)
            if isinstance(part, slice):
                part = slice(
                    *(
                        None if end is None else int(end)
                        for end in (part.start, part.stop, part.step)
                    )
                )
                start, stop, step = part.indices(extent)
                shape.append(len(range(start, stop, step)))
                strides.append(stride * step)
                offset += start * stride
            else:
                at = operator.index(part)
                if not -extent <= at < extent:
                    raise IndexError(
                        f"index {at} is out of bounds for dimension {d} with size {extent}"
                    )
                offset += (at % extent) * stride
        return self._view_of(shape, strides, offset)

    def __getitem__(self, key):
        many = next((k for k in (key if isinstance(key, tuple) else (key,)) if _is_list(k)), None)
        if many is None:
            return self._pick(key)
        if isinstance(many, Tensor) and many.dtype is int32:
            raise IndexError("tensors used as indices must be long, byte or bool tensors")
        rows = many.tolist() if isinstance(many, Tensor) else list(many)
        if isinstance(key, tuple):  # [:, columns]
            picked = [[self._pick((r, c)).item() for c in rows] for r in range(self.shape[0])]
        else:
            picked = [self._pick(r).tolist() for r in rows]
        return tensor(picked, dtype=self.dtype)

    def __setitem__(self, key, value):
        view = self._pick(key)
        values = value.flat() if isinstance(value, Tensor) else [value]
        view._write(values * view.numel() if len(values) == 1 else values)

    # Arithmetic.
    def _with(self, other, operation, kind=None):
        mine = self.flat()
        theirs = other.flat() if isinstance(other, Tensor) else [other] * len(mine)
        values = [operation(a, b) for a, b in zip(mine, theirs)]
        return tensor(values, dtype=kind or self.dtype).reshape(self.shape)

    def __add__(self, other):
        return self._with(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def __mul__(self, other):
        return self._with(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return self._with(other, operator.floordiv)

    def __eq__(self, other):
        return self._with(other, operator.eq, bool_)

    __hash__ = object.__hash__

    def max(self):
        return tensor(builtins.max(self.flat()), dtype=self.dtype)

    def repeat_interleave(self, times):
        return tensor([value for value in self.flat() for _ in range(times)], dtype=self.dtype)


def _is_list(key):
    return isinstance(key, list) or (isinstance(key, Tensor) and key.shape != ())


def _shape(shape):
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return tuple(operator.index(extent) for extent in shape)


def empty(*shape, dtype=float32, device="cpu"):
    shape = _shape(shape)
    return Tensor(
        Storage(_count(shape) * dtype.itemsize), shape, _dense(shape), 0, dtype, str(device)
    )


zeros = empty


def full(shape, value, dtype=int64, device="cpu"):
    made = empty(shape, dtype=dtype)
    made._write([value] * made.numel())
    return made


def ones(*shape, dtype=float32, device="cpu"):
    return full(_shape(shape), 1, dtype=dtype)


def empty_like(other, dtype=None):
    return empty(other.shape, dtype=dtype or other.dtype)


def _nested_shape(data):
    return (len(data), *(_nested_shape(data[0]) if data else ())) if isinstance(data, list) else ()


def tensor(data, dtype=None, device="cpu"):
    shape = _nested_shape(data)
    flat = data if isinstance(data, list) else [data]
    for _ in shape[1:]:
        flat = [entry for row in flat for entry in row]
    made = empty(
        shape, dtype=dtype or (float32 if any(isinstance(v, float) for v in flat) else int64)
    )
    made._write(flat)
    return made


def arange(start, end=None, step=1, dtype=int64, device="cpu"):
    start, end = (0, start) if end is None else (start, end)
    return tensor(list(range(start, end, step)), dtype=dtype)


def cumsum(values, dim=0):
    return tensor(list(itertools.accumulate(values.flat())), dtype=int64)


def all(values):
    return min(values.flat(), default=1) != 0


def max(values):  # torch has these names; this module's own code says builtins.max
    return values.max()


def finfo(kind):
    return types.SimpleNamespace(bits=kind.itemsize * 8)


compiler = types.SimpleNamespace(disable=lambda function: function)
ops = types.SimpleNamespace()
