"""The only list of kernels, in report order."""
from . import aiter_unified, numpy_unified, sglang_cpu, torch_sdpa, vllm_unified


def all_kernels():
    return [*numpy_unified.KERNELS, *torch_sdpa.KERNELS, *vllm_unified.KERNELS,
            *aiter_unified.KERNELS, *sglang_cpu.KERNELS]


def kernel_named(name):
    for kernel in all_kernels():
        if kernel.name == name:
            return kernel
    raise LookupError(f"no kernel is named {name}; there are: "
                      + ", ".join(kernel.name for kernel in all_kernels()))
