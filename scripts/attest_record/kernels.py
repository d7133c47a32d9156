"""The attention kernels the recorder knows: their arguments, in the order a positional call has."""

import inspect
from typing import NamedTuple


class Kernel(NamedTuple):
    """A kernel's calling convention.

    arguments: names in positional order, as the published wrapper or operator schema has them.
    arrays: the integer arguments whose values are the metadata; every other tensor is recorded by
        shape and layout alone.
    neutral: arguments that say nothing at these values and are left out of a record. A checker
        that does not know them can then still judge the call.
    output: the argument the kernel writes to, or None where it returns a new tensor.
    """

    arguments: tuple
    arrays: frozenset
    neutral: dict
    output: str = None


def _kernel(arguments, arrays, neutral=None, output=None):
    return Kernel(tuple(arguments.split()), frozenset(arrays.split()), neutral or {}, output)


# None and False are neutral for every kernel: a feature that is not used.
KERNELS = {
    # aiter/ops/triton/attention/unified_attention.py; vllm/v1/attention/ops/ has the same order.
    "unified_attention": _kernel(
        "q k v out cu_seqlens_q max_seqlen_q seqused_k max_seqlen_k softmax_scale causal "
        "window_size block_table softcap q_descale k_descale v_descale alibi_slopes output_scale "
        "qq_bias sinks",
        "cu_seqlens_q seqused_k block_table",
        # vLLM hands over scratch memory and a threshold for the split: a schedule, no meaning.
        neutral={
            name: any
            for name in (
                "seq_threshold_3D",
                "num_par_softmax_segments",
                "softmax_segm_output",
                "softmax_segm_max",
                "softmax_segm_expsum",
            )
        },
        output="out",
    ),
    # aiter/ops/mha.py
    "mha_batch_prefill_func": _kernel(
        "q k v cu_seqlens_q kv_indptr kv_page_indices max_seqlen_q max_seqlen_k dropout_p "
        "softmax_scale logits_soft_cap causal window_size alibi_slopes deterministic return_lse "
        "return_attn_probs",
        "cu_seqlens_q kv_indptr kv_page_indices kv_last_page_lens block_table seqlen_k",
        neutral={"dropout_p": (0.0,)},
    ),
    # aiter/ops/attention.py
    "paged_attention_ragged": _kernel(
        "out workspace_buffer query key_cache value_cache scale kv_indptr kv_page_indices "
        "kv_last_page_lens block_size max_num_partitions alibi_slopes kv_cache_dtype "
        "kv_cache_layout logits_soft_cap k_scale v_scale fp8_out_scale partition_size mtp",
        "kv_indptr kv_page_indices kv_last_page_lens",
        neutral={"mtp": (1,)},
        output="out",
    ),
    # aiter/mla.py
    "mla_decode_fwd": _kernel(
        "q kv_buffer o qo_indptr kv_indptr kv_indices kv_last_page_lens max_seqlen_q page_size "
        "nhead_kv sm_scale logit_cap num_kv_splits num_kv_splits_indptr work_meta_data "
        "work_indptr work_info_set reduce_indptr reduce_final_map reduce_partial_map q_scale "
        "kv_scale",
        "qo_indptr kv_indptr kv_indices kv_last_page_lens",
        neutral={"nhead_kv": (1,)},
        output="o",
    ),
    # sglang/kernels/ops/attention/extend_attention.py
    "extend_attention_fwd": _kernel(
        "q_extend k_extend v_extend o_extend k_buffer v_buffer qo_indptr kv_indptr kv_indices "
        "custom_mask is_causal mask_indptr max_len_extend k_scale v_scale sm_scale logit_cap",
        "qo_indptr kv_indptr kv_indices custom_mask mask_indptr",
        output="o_extend",
    ),
    # sgl-kernel/csrc/cpu/torch_extension_cpu.cpp
    "extend_attention_cpu": _kernel(
        "q_extend k_extend v_extend o_extend k_buffer v_buffer req_to_token req_pool_indices "
        "seq_lens extend_seq_lens extend_start_loc max_len_extend sm_scale logit_cap "
        "is_cross_attn sliding_window_size encoder_lens sinks tree_mask is_causal",
        "req_to_token req_pool_indices seq_lens extend_seq_lens extend_start_loc encoder_lens "
        "tree_mask",
        neutral={"is_causal": (True,)},
        output="o_extend",
    ),
    "decode_attention_cpu": _kernel(
        "query k_buffer v_buffer output key value loc attn_logits req_to_token req_pool_indices "
        "seq_lens sm_scale logit_cap is_cross_attn sliding_window_size encoder_lens sinks",
        "loc req_to_token req_pool_indices seq_lens encoder_lens",
        output="output",
    ),
    # vllm/_custom_ops.py
    "cpu_attention_with_kv_cache": _kernel(
        "query key_cache value_cache output query_start_loc seq_lens scale causal alibi_slopes "
        "sliding_window block_table softcap scheduler_metadata s_aux dynamic_causal k_scale v_scale "
        "kv_cache_dtype",
        "query_start_loc seq_lens block_table",
        neutral={"k_scale": (1, 1.0), "v_scale": (1, 1.0), "kv_cache_dtype": ("auto",)},
        output="output",
    ),
}

# Arguments the checker reads as "null when absent" only if they stand in the record.
OPTIONAL = {
    "unified_attention": ("q_descale", "k_descale", "v_descale", "sinks"),
    "extend_attention_cpu": ("encoder_lens", "sinks", "tree_mask"),
    "decode_attention_cpu": ("encoder_lens", "sinks"),
    "mla_decode_fwd": ("q_scale", "kv_scale", "work_meta_data"),
}


class UnknownArguments(Exception):
    """A call that has more positional arguments than the kernel is known to take."""


def parameter_names(function):
    """Positional names of a live kernel, or None where it does not tell (a builtin, a mock)."""
    schema = getattr(getattr(function, "default", None), "_schema", None)
    if schema is not None:  # torch.ops: an OpOverloadPacket
        return tuple(argument.name for argument in schema.arguments)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(p.name for p in parameters if p.kind in kinds)
    any_count = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    return None if any_count or not names else names


def bind(kernel_name, args, kwargs, names=None):
    """The call as {argument name: value}. `names` are those of the live kernel where it has any:
    a newer version may have moved or added one."""
    kernel = KERNELS[kernel_name]
    order = names or kernel.arguments
    if len(args) > len(order):
        raise UnknownArguments(
            f"{kernel_name} got {len(args)} positional arguments, {len(order)} are known"
        )
    bound = dict(zip(order, args))
    for name, value in kwargs.items():
        if name in bound:
            raise UnknownArguments(f"{kernel_name} got two values for {name}")
        bound[name] = value
    return bound


def is_neutral(kernel_name, name, value):
    """Whether an argument says nothing at this value."""
    allowed = KERNELS[kernel_name].neutral.get(name, ())
    if allowed is any:
        return True
    if hasattr(value, "dtype"):
        return False
    return value is None or value is False or value in allowed
