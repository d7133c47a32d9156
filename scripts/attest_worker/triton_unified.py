"""What the Triton unified attention kernels of vLLM and AITER share: one calling convention."""
import inspect
import os

from .kernel import Unavailable, need, need_parameters
from .torch_device import TorchKernel

# Passed by name: an installed version that lacks one takes another call than the one judged.
PARAMETERS = ("q", "k", "v", "out", "cu_seqlens_q", "max_seqlen_q", "seqused_k", "max_seqlen_k",
              "softmax_scale", "causal", "window_size", "block_table", "softcap", "q_descale",
              "k_descale", "v_descale", "sinks")

PAGES = [16, 32, 64, 128]


class TritonUnified(TorchKernel):
    package = ""      # as pip knows it
    written_for = ""  # version of it
    # Exp is exp2 of the hardware; P meets V in V's dtype, the sum is of unrounded P, the maximum
    # starts at the sink.
    profile = {"p_dtype": "bf16", "p_follows_q_dtype": True, "exp_relative_error": 2e-6,
               "maximum_starts_at_sink": True,
               "kv_splits": 128, "z_limit": {"normal": 1.5, "recall": 1.6, "features": 1.5}}

    def halves(self):
        """What q, K and V may be. Triton's interpreter takes the bits of bf16 for integers in a
        product (3.6.0), so it gets f16."""
        return ["f16"] if self.engine == "interpreter" else ["bf16", "f16"]

    def import_function(self):
        """The kernel's host function. \\raises ImportError, Unavailable"""
        raise NotImplementedError

    def arguments(self, call):
        """Arguments beside those of the call itself."""
        return {}

    def form(self):
        """Which form the last launch took, where the host function tells."""
        return ""

    def check(self):
        super().check()
        need("triton", "pip install triton")

    def load(self, device):
        if self.engine == "interpreter":
            # The same source, each program run as Python over numpy: slow, on any machine.
            os.environ["TRITON_INTERPRET"] = "1"
        super().load(device)
        try:
            self.function = self.import_function()
        except ImportError as error:
            raise Unavailable(f"{self.package} cannot be imported: {error}") from error
        need_parameters(f"{self.package}'s unified_attention",
                        inspect.signature(self.function).parameters, PARAMETERS,
                        self.version(), f"{self.package} {self.written_for}")

    def supports(self, call):
        if call.tensors["q"].dtype != call.tensors["k"].dtype:
            return "q and K of one dtype only"
        for name in ("q_descale", "k_descale", "v_descale"):
            if name in call.tensors:
                return f"no {name} without fp8"
        if call.tensors["k"].shape[1] not in PAGES:
            return f"pages of {call.tensors['k'].shape[1]} tokens, takes {PAGES}"
        return None

    def run(self, call):
        tensors = {name: call.torch(name, self.place) for name in PARAMETERS
                   if name in call.tensors}
        scalars = {name: call.scalar(name) for name in
                   ("max_seqlen_q", "max_seqlen_k", "softmax_scale", "causal", "softcap")}
        absent = {name: None for name in PARAMETERS if name not in tensors and name not in scalars}
        absent["window_size"] = tuple(call.scalar("window_size"))
        import torch
        with torch.no_grad():
            self.function(**tensors, **scalars, **absent, **self.arguments(call))
        self.synchronize()
        call.finish()
        return {"form": self.form(), "engine": self.where}
