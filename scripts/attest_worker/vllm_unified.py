"""vLLM's Triton unified_attention, with the split-KV buffers that its attention backend passes."""
from .kernel import Unavailable, need, version_of
from .triton_unified import PAGES, TritonUnified

SEGMENTS = 16  # as vLLM's backend sets num_par_softmax_segments


class VllmUnified(TritonUnified):
    package = "vllm"
    written_for = "0.33.0"
    def __init__(self, engine):
        self.engine = engine
        self.name = f"vllm.unified@{engine}"
        self.says = "vLLM's Triton unified_attention " + (
            "on an NVIDIA GPU" if engine == "cuda" else "in Triton's interpreter, on any CPU")

        self.capabilities = {"signature": "unified", "q_dtypes": self.halves(),
                             "kv_dtypes": self.halves(), "window": True, "softcap": True,
                             "sinks": True, "forms": True, "page_sizes": PAGES}

    def only_when_named(self):
        if self.engine == "interpreter":
            return "@cuda is where the kernel runs; the interpreter is slow"
        return ""

    def version(self):
        return "vllm " + (version_of("vllm") or self.written_for)

    def check(self):
        need("vllm", f"pip install vllm=={self.written_for}")
        super().check()

    def import_function(self):
        from vllm.v1.attention.ops.triton_unified_attention import unified_attention
        return unified_attention

    def load(self, device):
        super().load(device)
        import inspect
        if "num_par_softmax_segments" not in inspect.signature(self.function).parameters:
            raise Unavailable(f"{self.version()} is installed, the adapter is written for "
                              f"{self.written_for}: unified_attention takes no "
                              "num_par_softmax_segments")

    def arguments(self, call):
        import torch
        self.used = call.options.get("form") or "auto"
        if self.used == "2d":
            return {}
        rows, heads, dim = call.tensors["q"].shape
        padded = 1 << (dim - 1).bit_length()
        # Scratch that nobody fills, as torch.empty leaves it, made NaN: what is read but was not
        # written shows.
        scratch = [torch.full(shape, float("nan"), dtype=torch.float32, device=self.place)
                   for shape in ((rows, heads, SEGMENTS, padded), (rows, heads, SEGMENTS),
                                 (rows, heads, SEGMENTS))]
        return {"seq_threshold_3D": 128 if self.used == "auto" else 1 << 30,
                "num_par_softmax_segments": SEGMENTS, "softmax_segm_output": scratch[0],
                "softmax_segm_max": scratch[1], "softmax_segm_expsum": scratch[2]}

    def form(self):
        return self.used


KERNELS = [VllmUnified("cuda"), VllmUnified("interpreter")]
