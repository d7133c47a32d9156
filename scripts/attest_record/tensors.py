"""The small tensors of a call as a safetensors file, when asked for: q, the new K and V, scales.

A KV pool is gigabytes and another user's data; what is larger than the limit is left out.
"""

import ctypes
import json
import os

from . import describe

MAX_BYTES = 32 << 20

_NAMES = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "int64": "I64",
    "int32": "I32",
    "uint8": "U8",
    "bool": "BOOL",
}


def _raw(tensor):
    """The bytes of a torch tensor, in row-major order."""
    tensor = tensor.detach().cpu().contiguous()
    size = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), size) if size else b""


def encode(tensors):
    """{name: (safetensors dtype, shape, bytes)} as the text of a .safetensors file."""
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(raw for _, _, raw in tensors.values())


def write_tensors(path, bound, writer, raw=_raw):
    """Beside the record, whole or not there. Raises OSError."""
    chosen = {}
    for name, value in bound.items():
        if not describe.is_tensor(value) or not describe.has_values(value):
            continue
        dtype = _NAMES.get(describe.dtype_name(value))
        if dtype is None or value.numel() * value.element_size() > MAX_BYTES:
            continue
        chosen[name] = (dtype, [int(extent) for extent in value.shape], raw(value))
    text = encode(chosen)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(text)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    writer.charge(len(text))
