"""AITER's Triton unified_attention, on ROCm as installed; on CUDA its Triton kernels and wrapper run
unmodified but for what that compiler does not know (docs/worker_protocol.md)."""
import importlib
import importlib.util
import os
import sys
import types

from .kernel import Unavailable, cuda_devices, need, version_of
from .triton_unified import PAGES, TritonUnified

MODULE = "aiter.ops.triton.attention.unified_attention"
SOURCE = "https://github.com/ROCm/aiter"
# What a launch of the AMD compiler takes and NVIDIA's does not.
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")


class AiterUnified(TritonUnified):
    package = "aiter"
    written_for = "0.1.20"

    def __init__(self, engine):
        self.engine = engine
        self.name = f"aiter.unified@{engine}"
        self.says = "AITER's Triton unified_attention " + {
            "rocm": "on an AMD GPU", "cuda": "on an NVIDIA GPU",
            "interpreter": "in Triton's interpreter, on any CPU"}[engine]

        self.capabilities = {"signature": "unified", "q_dtypes": self.halves(),
                             "kv_dtypes": self.halves(), "window": True, "softcap": True,
                             "sinks": True, "forms": True, "page_sizes": PAGES,
                             "reads_v_past_kv_len": True}

    def version(self):
        return "aiter " + (version_of("amd-aiter") or version_of("aiter-triton-source")
                           or self.written_for)

    def only_when_named(self):
        if self.engine == "interpreter":
            return "@rocm is where the kernel runs; the interpreter is slow"
        if self.engine == "cuda" and cuda_devices() == 0:
            return "no NVIDIA device; @rocm is where the kernel is meant to run"
        if self.engine == "rocm" and cuda_devices() > 0:
            return "an NVIDIA machine, where @cuda runs the same kernel"
        return ""

    def check(self):
        need("aiter", f"pip install git+{SOURCE}")
        if self.engine == "rocm":
            need("torch", "pip install torch from the ROCm index of pytorch.org")
            if not os.path.exists("/dev/kfd"):
                raise Unavailable("no AMD device: there is no /dev/kfd")
        else:
            super().check()

    def devices(self):
        return cuda_devices() if self.engine == "cuda" else 1

    def load(self, device):
        import torch
        if self.engine == "rocm" and not torch.version.hip:
            raise Unavailable(f"torch {torch.__version__} is not built for ROCm")
        super().load(device)

    def import_function(self):
        if self.engine != "rocm":
            stand_in_for_the_device(self.on_gpu)
        module = importlib.import_module(MODULE)
        if self.engine != "rocm":
            for name in ("kernel_unified_attention_2d", "kernel_unified_attention_3d",
                         "reduce_segments"):
                setattr(module, name, WithoutAmdOptions(getattr(module, name)))
        self.module = module
        self.choose = module.use_2d_kernel
        return module.unified_attention

    def arguments(self, call):
        form = call.options.get("form")
        choose = self.choose

        def chosen(*arguments, **named):
            flat = form == "2d" if form else choose(*arguments, **named)
            self.used = "2d" if flat else "3d"
            return flat

        self.module.use_2d_kernel = chosen
        return {}

    def form(self):
        return self.used


class WithoutAmdOptions:
    """A Triton kernel whose launches leave out options that NVIDIA's compiler refuses. One that the
    kernel has as an argument of its own (the 3d form's waves_per_eu) stays."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.left_out = set(AMD_ONLY) - set(kernel.arg_names)

    def __getitem__(self, grid):
        launch = self.kernel[grid]
        return lambda **named: launch(
            **{name: value for name, value in named.items() if name not in self.left_out})


def stand_in_for_the_device(on_gpu):
    """Modules that ask an AMD driver, answered as on gfx950, with this GPU's processors (the
    interpreter: with one chip's of 256), and packages whose __init__ loads AMD libraries, left
    empty."""
    import torch

    def module(name, **members):
        made = types.ModuleType(name)
        made.__dict__.update(members)
        sys.modules[name] = made
        return made

    class Arch:
        name = "gfx950"
        is_rdna = False

        def __str__(self):
            return self.name

    root = list(importlib.util.find_spec("aiter").submodule_search_locations)[0]
    for package in ("aiter", "aiter.ops", "aiter.ops.triton"):
        module(package, __path__=["/".join([root, *package.split(".")[1:]])])
    processors = torch.cuda.get_device_properties(0).multi_processor_count if on_gpu else 256
    module("aiter.ops.triton.utils._triton.arch_info", get_arch=lambda: "gfx950",
                       is_fp8_avail=lambda: True, is_fp4_avail=lambda: False,
                       get_fp8_dtypes=lambda: (torch.float8_e5m2, torch.float8_e4m3fn))
    module("aiter.ops.triton.utils.device_info", get_num_sms=lambda: processors,
           get_num_xcds=lambda: 1)
    module("aiter.ops.triton._triton_kernels.flash_attn_triton_amd.utils", get_arch=Arch)


KERNELS = [AiterUnified("rocm"), AiterUnified("cuda"), AiterUnified("interpreter")]
