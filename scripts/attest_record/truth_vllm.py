"""What vLLM's scheduler meant by a call: its own output and the runner's host-side batch.

Neither is what the kernel is handed: attention metadata is built from them, on the way. Written
from vLLM's published source; not run inside vLLM yet (docs/recorder.md).
"""

import threading

from . import describe
from .truth import NoTruth, integers

_running = threading.local()


def enter(runner, scheduled):
    """Around GPUModelRunner.execute_model. Gives what to hand to leave()."""
    before = getattr(_running, "now", None)
    _running.now = (runner, scheduled)
    return before


def leave(before):
    _running.now = before


def vllm_step(site, backend, kv_cache):
    from .session import Step

    def replayed(_):
        raise NoTruth("how vLLM pads the batch that a graph is replayed with is not known here")

    truth_of = lambda: vllm_truth(backend, kv_cache)
    return Step(site, truth_of, truth_of, replayed, backend)


def vllm_truth(backend, kv_cache):
    """(mode, truth). Raises NoTruth."""
    now = getattr(_running, "now", None)
    if now is None:
        raise NoTruth("no model runner is running: a warm-up, or a runner that is not watched")
    attn_type = getattr(backend, "attn_type", None)
    if "encoder" in str(getattr(attn_type, "value", attn_type)).lower():
        raise NoTruth("an encoder's layer is not causal, or reads an encoder's tokens")
    runner, scheduled = now
    batch = runner.input_batch
    requests = list(batch.req_ids)[: batch.num_reqs]
    new_tokens = [int(scheduled.num_scheduled_tokens[request]) for request in requests]
    committed = integers(batch.num_computed_tokens_cpu[: batch.num_reqs])
    page_size, pages, pools = _cache_shape(kv_cache)
    truth = {
        "committed": committed,
        "new_tokens": new_tokens,
        "live": [True] * len(requests),
        "num_draft_tokens": None,
        "page_size": page_size,
        "context_len": int(runner.max_model_len),
        "use_mla": False,
        "layer_scaling": float(backend.scale),
        "layer_logit_cap": float(getattr(backend, "logits_soft_cap", 0) or 0.0),
        "layer_sliding_window_size": _largest_distance(getattr(backend, "sliding_window", None)),
        "num_q_heads": int(backend.num_heads),
        "num_kv_heads": int(backend.num_kv_heads),
        "qk_head_dim": int(backend.head_size),
        "v_head_dim": int(backend.head_size),
        "kv_cache_dtype": _cache_dtype(backend),
        # Block 0 is the null block.
        "pool_tokens": (pages - 1) * page_size,
        **pools,
        "req_to_token_runs": _runs(batch, committed, new_tokens, page_size),
    }
    return _mode(scheduled, new_tokens), truth


def _largest_distance(window):
    """vLLM's layers keep (window - 1, 0) and (-1, -1), or the number of keys and -1, 0 or None."""
    if isinstance(window, (tuple, list)):
        window = window[0]
    elif window is not None:
        window = window - 1 if window > 0 else -1
    return -1 if window is None or window < 0 else int(window)


def _mode(scheduled, new_tokens):
    if getattr(scheduled, "scheduled_spec_decode_tokens", None):
        return "target_verify"
    if all(new == 1 for new in new_tokens):
        return "decode"
    return "mixed" if any(new == 1 for new in new_tokens) else "extend"


def _cache_shape(kv_cache):
    """(page size, pages, K's and V's pool in it). The GPU layouts are [2, pages, page, heads, dim] or [pages, 2, page,
    heads, dim]; the CPU's is [2, pages, heads, page, dim] or, later, [pages, heads, page, 2 * dim], where a head's page
    of V lies behind its page of K."""
    shape = [int(extent) for extent in kv_cache.shape]
    if len(shape) == 4 and shape[3] % 2 == 0:
        pages, heads, page, both = shape
        apart = kv_cache.view(pages, heads, 2, page, both // 2)
        pools = {
            name: describe.PoolView(apart, 2, index, heads_first=True)
            for index, name in enumerate(("k_pool", "v_pool"))
        }
        return page, pages, pools
    if len(shape) != 5 or 2 not in shape[:2]:
        raise NoTruth(f"a KV cache of shape {shape} is not known")
    halves = 0 if shape[0] == 2 else 1
    on_cpu = str(getattr(kv_cache, "device", "")) == "cpu"
    pools = {
        name: describe.PoolView(kv_cache, halves, index, heads_first=on_cpu)
        for index, name in enumerate(("k_pool", "v_pool"))
    }
    return (shape[3] if on_cpu else shape[2]), shape[1 - halves], pools


def _cache_dtype(backend):
    text = str(getattr(backend, "kv_cache_dtype", "auto")).rpartition(".")[2]
    return "float8_e4m3" if text in ("fp8", "fp8_e4m3") else text


def _runs(batch, committed, new_tokens, page_size):
    tables = getattr(batch.block_table, "block_tables", [batch.block_table])
    if len(tables) != 1:
        raise NoTruth("several groups of KV caches: which of them the layer reads is not told")
    table = tables[0].get_numpy_array()
    runs = []
    for row, (old, new) in enumerate(zip(committed, new_tokens)):
        left, row_runs = old + new, []
        for page in integers(table[row][: -(-left // page_size)].tolist()):
            count = min(page_size, left)
            left -= count
            if row_runs and page * page_size == row_runs[-1][0] + row_runs[-1][1]:
                row_runs[-1][1] += count
            else:
                row_runs.append([page * page_size, count])
        runs.append(row_runs)
    return runs
