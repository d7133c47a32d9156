"""Where SGLang and vLLM call the kernels: what to wrap, in which module, and who knows the truth."""

from typing import NamedTuple

from .session import sglang_step
from .truth_vllm import vllm_step
from .work_plans import PLANNERS


class Target(NamedTuple):
    """A module of a framework.

    functions: {global of the module: kernel}. attributes: {attribute of a new backend: kernel}.
    classes: its backends. forwards: their methods that call kernels. step_of: (site, backend,
    arguments by name) -> Step. arguments: of a forward method, after self.
    multi_step: classes that hold one backend per draft step. planners: globals that fill a kernel's
    work lists.
    """

    functions: dict
    attributes: dict
    classes: tuple
    forwards: tuple
    arguments: tuple
    step_of: object
    multi_step: tuple = ()
    planners: tuple = ()


def _sglang(functions, attributes, classes, multi_step, planners=()):
    return Target(
        {name: name for name in functions},
        attributes,
        classes,
        ("forward_extend", "forward_decode"),
        ("q", "k", "v", "layer", "forward_batch"),
        lambda site, backend, named: sglang_step(
            site, backend, named["layer"], named["forward_batch"]
        ),
        multi_step,
        tuple(planners),
    )


def _vllm(functions, attributes, classes):
    return Target(
        functions,
        attributes,
        classes,
        ("forward",),
        ("layer", "query", "key", "value", "kv_cache", "attn_metadata"),
        lambda site, backend, named: vllm_step(site, backend, named["kv_cache"]),
    )


TARGETS = {
    "sglang.srt.layers.attention.aiter_backend": _sglang(
        ("unified_attention", "mha_batch_prefill_func", "paged_attention_ragged", "mla_decode_fwd"),
        {"extend_attention_fwd": "extend_attention_fwd"},
        ("AiterAttnBackend",),
        ("AiterMultiStepDraftBackend",),
        PLANNERS,
    ),
    "sglang.srt.layers.attention.intel_amx_backend": _sglang(
        (),
        {
            "extend_attention_fwd": "extend_attention_cpu",
            "decode_attention_fwd": "decode_attention_cpu",
        },
        ("IntelAMXAttnBackend",),
        ("IntelAMXMultiStepDraftBackend",),
    ),
    "vllm.v1.attention.backends.triton_attn": _vllm(
        {"unified_attention": "unified_attention"}, {}, ("TritonAttentionImpl",)
    ),
    "vllm.v1.attention.backends.rocm_aiter_unified_attn": _vllm(
        {}, {"unified_attention": "unified_attention"}, ("RocmAiterUnifiedAttentionImpl",)
    ),
    "vllm.v1.attention.backends.cpu_attn": _vllm({}, {}, ("CPUAttentionBackendImpl",)),
    "vllm._custom_ops": _vllm(
        {"cpu_attention_with_kv_cache": "cpu_attention_with_kv_cache"}, {}, ()
    ),
}

# Modules whose methods hand the scheduler's own lengths to every forward below them.
RUNNERS = {"vllm.v1.worker.gpu_model_runner": ("GPUModelRunner", "execute_model")}

# Methods that replay GPU graphs for the forward batch that is their first argument.
_EXECUTE = ("execute", "replay")
REPLAYS = {
    "sglang.srt.model_executor.cuda_graph_runner": ("CudaGraphRunner", _EXECUTE),
    "sglang.srt.model_executor.runner.decode_cuda_graph_runner": (
        "DecodeCudaGraphRunner",
        _EXECUTE,
    ),
    "sglang.srt.speculative.eagle_draft_cuda_graph_runner": ("EAGLEDraftCudaGraphRunner", _EXECUTE),
    "sglang.srt.speculative.eagle_draft_extend_cuda_graph_runner": (
        "EAGLEDraftExtendCudaGraphRunner",
        _EXECUTE,
    ),
}

# The graphs themselves.
GRAPHS = {"torch.cuda.graphs": "CUDAGraph"}
WATCHED = (*TARGETS, *RUNNERS, *REPLAYS, *GRAPHS)
