"""A call as the harness sent it. Tensors are views of the shared memory; nothing is filled here."""

ELEMENT_BYTES = {
    "f32": 4, "f16": 2, "bf16": 2, "fp8_e4m3fn": 1, "fp8_e4m3fnuz": 1,
    "int32": 4, "int64": 8, "uint8": 1, "bool": 1,
}
NUMPY = {
    "f32": "<f4", "f16": "<f2", "bf16": "<u2", "fp8_e4m3fn": "u1", "fp8_e4m3fnuz": "u1",
    "int32": "<i4", "int64": "<i8", "uint8": "u1", "bool": "?",
}
TORCH = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e4m3fnuz": "float8_e4m3fnuz", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "bool": "bool",
}


class Tensor:
    """Shape, strides (in elements) and dtype of one argument, and where it lies."""

    def __init__(self, description):
        self.dtype = description["dtype"]
        self.shape = tuple(description["shape"])
        self.strides = tuple(description["strides"])
        self.role = description["role"]
        self.at = description.get("at")
        self.first = description.get("first")
        self.end = description.get("end")

    @property
    def element_bytes(self):
        return ELEMENT_BYTES[self.dtype]


class Call:
    """Arguments by the kernel's own parameter names; an absent one is None."""

    def __init__(self, description, memory=None, options=None):
        self.signature = description["signature"]
        self.tensors = {name: Tensor(one) for name, one in description["tensors"].items()}
        self.scalars = description["scalars"]
        self.options = options or {}
        self._memory = memory
        self._on_device = {}

    def scalar(self, name, otherwise=None):
        return self.scalars.get(name, otherwise)

    def numpy(self, name):
        """The argument as a numpy view (bf16 and fp8 as bits), or None where it is absent."""
        import numpy
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        strides = [s * tensor.element_bytes for s in tensor.strides]
        return numpy.ndarray(tensor.shape, NUMPY[tensor.dtype], self._memory, tensor.at, strides)

    def torch(self, name, device="cpu"):
        """The same as a torch tensor; on another device a copy that finish() brings back."""
        import torch
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        stretch = torch.frombuffer(self._memory, dtype=torch.uint8, offset=tensor.first,
                                   count=tensor.end - tensor.first)
        if device != "cpu":
            # K and V of one pool are one stretch of memory; its copy is one too.
            key = (tensor.first, tensor.end)
            if key not in self._on_device:
                self._on_device[key] = (stretch, stretch.to(device))
            stretch = self._on_device[key][1]
        typed = stretch.view(getattr(torch, TORCH[tensor.dtype]))
        offset = (tensor.at - tensor.first) // tensor.element_bytes
        return torch.as_strided(typed, tensor.shape, tensor.strides, offset)

    def finish(self):
        """Copies back whatever was copied, inputs too: the harness looks for what was changed."""
        for here, there in self._on_device.values():
            here.copy_(there)
