"""Paged attention in numpy: the adapter that runs everywhere and that the protocol is tested with."""
from .kernel import Kernel, need, version_of

WRITTEN_FOR = "1.24"


def to_float(bits, dtype):
    import numpy
    if dtype == "bf16":
        return (bits.astype(numpy.uint32) << 16).view(numpy.float32)
    return bits.astype(numpy.float32)


def from_float(values, dtype):
    """Rounded to nearest, ties to even."""
    import numpy
    if dtype != "bf16":
        return values.astype({"f16": numpy.float16, "f32": numpy.float32}[dtype])
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return numpy.where(numpy.isnan(values), 0x7FC0, rounded).astype(numpy.uint16)


class NumpyUnified(Kernel):
    name = "numpy.unified@cpu"
    says = "float32 matrix products in numpy, in a Python process"
    capabilities = {
        "signature": "unified",
        "q_dtypes": ["bf16", "f16", "f32"], "kv_dtypes": ["bf16", "f16", "f32"],
        "window": True, "softcap": True, "sinks": True, "distinct_v_head_dim": True,
    }
    profile = {"p_dtype": "f32", "z_limit": {"normal": 1.5, "recall": 1.5, "features": 1.5}}

    def version(self):
        return version_of("numpy") or WRITTEN_FOR

    def check(self):
        need("numpy", "apt-get install python3-numpy, or pip install numpy")

    def supports(self, call):
        for name in ("q_descale", "k_descale", "v_descale"):
            if name in call.tensors:
                return f"no {name}"
        return None

    def run(self, call):
        import numpy
        table, starts = call.numpy("block_table"), call.numpy("cu_seqlens_q")
        lengths, out = call.numpy("seqused_k"), call.numpy("out")
        tensors = {name: (call.numpy(name), call.tensors[name].dtype) for name in ("q", "k", "v")}
        page = call.tensors["k"].shape[1]
        sinks = call.numpy("sinks")
        if sinks is not None:
            sinks = to_float(sinks, call.tensors["sinks"].dtype)
        for i, length in enumerate(lengths):
            rows = slice(int(starts[i]), int(starts[i + 1]))
            length = int(length)
            if rows.start == rows.stop:
                continue
            first = first_visible(call, length, rows.stop - rows.start)
            pages = table[i, first // page:-(-length // page)]
            if pages.size and (pages.min() < 0 or pages.max() >= len(tensors["k"][0])):
                raise IndexError(f"block_table[{i}] names a page outside the pool")
            q = to_float(tensors["q"][0][rows], tensors["q"][1])
            k, v = (to_float(tensors[name][0][pages], tensors[name][1]) for name in ("k", "v"))
            within = slice(first % page, length - first // page * page)
            k, v = (x.reshape(-1, *x.shape[2:])[within] for x in (k, v))
            attended = attend(q, k, v, call, sinks)
            out[rows] = from_float(attended, call.tensors["out"].dtype)
        return {"form": "2d", "counters": {"launches": 1}}


def first_visible(call, length, rows):
    """Keys before it are visible to no row; their pages may belong to somebody else by now."""
    left = call.scalar("window_size")[0]
    return 0 if left < 0 else max(0, length - rows - left)


def attend(q, k, v, call, sinks):
    """(rows, heads, dim) of one request; the last row sees every key."""
    import numpy
    rows, heads, _ = q.shape
    group = heads // k.shape[1]
    length = len(k)
    k, v = (numpy.repeat(x, group, axis=1).transpose(1, 0, 2) for x in (k, v))
    scores = (q.transpose(1, 0, 2) @ k.transpose(0, 2, 1)) * numpy.float32(
        call.scalar("softmax_scale"))
    if call.scalar("softcap", 0) > 0:
        cap = numpy.float32(call.scalar("softcap"))
        scores = cap * numpy.tanh(scores / cap)
    ahead = numpy.arange(length)[None, :] - (length - rows + numpy.arange(rows)[:, None])
    visible = ahead <= 0
    left = call.scalar("window_size")[0]
    if left >= 0:
        visible &= -ahead <= left
    scores = numpy.where(visible[None], scores, numpy.float32(-numpy.inf))
    top = scores.max(axis=-1, keepdims=True, initial=-numpy.inf)
    if sinks is not None:
        top = numpy.maximum(top, sinks[:, None, None])
    top = numpy.where(numpy.isinf(top), numpy.float32(0), top)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total = total + numpy.exp(sinks[:, None, None] - top)
    total = numpy.where(total == 0, numpy.float32(1), total)
    return ((weights @ v) / total).transpose(1, 0, 2)


KERNELS = [NumpyUnified()]
