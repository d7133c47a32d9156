"""What the scheduler meant by a call of SGLang's backends, from the forward batch alone.

Nothing here reads the kernel's arguments: a truth taken from them could not find them wrong. The
sources are the batch's lengths, the slots of its new tokens (out_cache_loc) and the request table.
"""

from . import describe


class NoTruth(Exception):
    """What the scheduler meant cannot be told; the text says why. The call is then not judged."""


def mode_of(batch, backend):
    forward_mode = batch.forward_mode
    for mode, names in (
        ("target_verify", ("is_target_verify",)),
        ("draft_extend_v2", ("is_draft_extend_v2", "is_draft_extend")),
        ("mixed", ("is_mixed",)),
        ("idle", ("is_idle",)),
        ("decode", ("is_decode", "is_decode_or_idle")),
        ("extend", ("is_extend",)),
    ):
        for name in names:
            asked = getattr(forward_mode, name, None)
            if asked is not None and asked():
                return _decode_mode(batch, backend) if mode == "decode" else mode
    raise NoTruth(f"forward mode {forward_mode} is not known")


def _decode_mode(batch, backend):
    if getattr(backend, "attest_draft_step", None) is not None:
        return "draft_decode"
    spec = getattr(batch, "spec_info", None)
    drafting = getattr(backend, "draft_decode_metadata", None) is not None  # the AMX backend's sign
    if drafting or (spec is not None and getattr(spec, "kv_indptr", None) is not None):
        raise NoTruth(
            "a draft step of unknown number: its multi-step backend was made before install()"
        )
    return "decode"


def integers(values):
    if describe.is_tensor(values):
        if not describe.has_values(values):
            raise NoTruth("the batch's lengths are on the meta device")
        values = describe.values_of(values)
    return [int(value) for value in values]


def runs_of(slots):
    """[first slot, count] runs of a list of slots."""
    runs = []
    for slot in slots:
        if runs and slot == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([slot, 1])
    return runs


def _runs_of_rows(matrix, lengths):
    """The runs of each row's first `length` slots. A context of 100,000 tokens is a few runs: they
    are found where the slots are, and only their ends are read."""
    if not hasattr(matrix, "nonzero"):
        return [runs_of(integers(matrix[i, :length])) for i, length in enumerate(lengths)]
    breaks = matrix[:, 1:] != matrix[:, :-1] + 1
    rows = [[(0, slot)] for slot in integers(matrix[:, 0])]
    for (row, column), slot in zip(breaks.nonzero().tolist(), integers(matrix[:, 1:][breaks])):
        rows[row].append((column + 1, slot))
    runs = []
    for starts, length in zip(rows, lengths):
        starts = [start for start in starts if start[0] < length]
        ends = [start for start, _ in starts[1:]] + [length]
        runs.append([[slot, end - start] for (start, slot), end in zip(starts, ends)])
    return runs


def sglang_truth(backend, layer, batch):
    """(mode, truth) as docs/captured_calls.md has them. Raises NoTruth."""
    refuse_what_lengths_do_not_tell(backend, layer)
    mode = mode_of(batch, backend)
    rows = _rows(mode, backend, batch)
    truth = of_rows(rows, backend, layer, [True] * len(rows.committed))
    truth.update(_slots(backend, layer, batch, rows))
    return mode, truth


def of_rows(rows, backend, layer, live):
    truth = {
        "committed": rows.committed,
        "new_tokens": rows.new_tokens,
        "live": live,
        **_model(backend, layer),
        "num_draft_tokens": getattr(backend, "num_draft_tokens", None),
        "topk": rows.topk,
    }
    if rows.step is not None:
        truth["draft_step"], truth["base_committed"] = rows.step, rows.base
    return truth


def refuse_what_lengths_do_not_tell(backend, layer):
    if getattr(layer, "is_cross_attention", False):
        raise NoTruth("cross attention reads an encoder's tokens")
    attn_type = getattr(layer, "attn_type", None)
    if "encoder" in str(getattr(attn_type, "value", attn_type)).lower():
        raise NoTruth("an encoder's layer is not causal")
    for name in ("dcp_world_size", "attn_dcp_size", "dcp_size"):
        if int(getattr(backend, name, 1) or 1) > 1:
            raise NoTruth("each rank of decode context parallelism reads its share of the keys")


class Rows:
    """Lengths per kernel row; `base`, `step` and `topk` for draft decode."""

    def __init__(self, committed, new_tokens, topk=1, step=None, base=None):
        self.committed, self.new_tokens = committed, new_tokens
        self.topk, self.step, self.base = topk, step, base


def topk_of(backend, batch):
    spec = getattr(batch, "spec_info", None)
    return int(getattr(backend, "topk", None) or getattr(spec, "topk", None) or 1)


def _rows(mode, backend, batch):
    lengths = integers(batch.seq_lens)
    topk = topk_of(backend, batch)
    if mode in ("decode", "idle"):
        return Rows([length - 1 for length in lengths], [1] * len(lengths))
    if mode == "draft_decode":
        step, topk = backend.attest_draft_step, backend.attest_draft_topk
        base = [length for length in lengths for _ in range(topk)]
        return Rows([length + step for length in base], [1] * len(base), topk, step, base)
    if mode == "target_verify":
        return Rows(lengths, _verify_widths(backend, batch, lengths), topk)
    extended = getattr(batch, "extend_seq_lens", None)
    if extended is None:
        raise NoTruth(f"{mode} without extend_seq_lens")
    new_tokens = integers(extended)
    prefixes = getattr(batch, "extend_prefix_lens", None)
    if prefixes is not None and mode != "draft_extend_v2":
        return Rows(integers(prefixes), new_tokens, topk)
    return Rows([length - new for length, new in zip(lengths, new_tokens)], new_tokens, topk)


def _verify_widths(backend, batch, committed):
    """Draft tokens of each request, from where its new tokens were stored: the batch keeps no
    other per-request count, and the configured one is what goes wrong."""
    stored = getattr(batch, "out_cache_loc", None)
    if stored is None:
        total, requests = int(batch.input_ids.shape[0]), len(committed)
        if total % requests:
            raise NoTruth(f"{total} draft tokens in {requests} requests and no out_cache_loc")
        return [total // requests] * requests
    stored, table = integers(stored), _table(backend, batch)
    widths, at = [], 0
    for row, length in zip(integers(batch.req_pool_indices), committed):
        room = min(int(table.shape[1]) - length, len(stored) - at)
        owned = integers(table[row, length : length + max(room, 0)])
        width = 0
        while width < len(owned) and owned[width] == stored[at + width]:
            width += 1
        widths.append(width)
        at += width
    if at != len(stored):
        raise NoTruth(
            f"out_cache_loc[{at}] is not where the request table puts the next draft token"
        )
    return widths


def _model(backend, layer):
    window = getattr(layer, "sliding_window_size", None)
    pool = getattr(backend, "token_to_kv_pool", None)
    dtype = getattr(backend, "kv_cache_dtype", None) or getattr(pool, "dtype", None)
    page_size = getattr(backend, "page_size", None) or getattr(pool, "page_size", None) or 1
    return {
        "page_size": int(page_size),
        "context_len": int(backend.max_context_len),
        "use_mla": bool(getattr(backend, "use_mla", False)),
        "layer_id": int(getattr(layer, "layer_id", 0)),
        "layer_scaling": float(layer.scaling),
        "layer_logit_cap": float(layer.logit_cap or 0.0),
        "layer_sliding_window_size": -1 if window is None or window < 0 else int(window),
        "num_q_heads": int(layer.tp_q_head_num),
        "num_kv_heads": int(layer.tp_k_head_num),
        "qk_head_dim": int(layer.qk_head_dim),
        "v_head_dim": int(layer.v_head_dim),
        "kv_cache_dtype": "auto" if dtype is None else str(dtype).rpartition(".")[2],
    }


def _table(backend, batch):
    for owner in (batch, backend):
        pool = getattr(owner, "req_to_token_pool", None)
        if pool is not None:
            return pool.req_to_token
    if getattr(backend, "req_to_token", None) is None:
        raise NoTruth("neither the batch nor the backend has a request table")
    return backend.req_to_token


def _slots(backend, layer, batch, rows):
    """The slots of every row's tokens, and the size of the pool that the layer reads."""
    table = _table(backend, batch)
    requests = integers(batch.req_pool_indices)
    lengths = [committed + new for committed, new in zip(rows.committed, rows.new_tokens)]
    if rows.step is not None:
        requests = [request for request in requests for _ in range(rows.topk)]
    if len(requests) != len(lengths):
        raise NoTruth(f"{len(requests)} pool rows for {len(lengths)} kernel rows")
    for i, length in enumerate(lengths):
        if length > int(table.shape[1]):
            raise NoTruth(f"row {i} has {length} tokens, its table row holds {int(table.shape[1])}")
    matrix = table[requests]
    if rows.step is not None and rows.topk > 1:
        matrix = _branches(backend, matrix, rows)
    matrix = matrix[:, : max(lengths, default=0)]
    mapping, found = pool_of(backend, layer, batch)
    if mapping is not None:
        found["swa_slot_runs"] = [
            runs_of(integers(mapping[matrix[i, :length].long()]))
            for i, length in enumerate(lengths)
        ]
    return {**found, "req_to_token_runs": _runs_of_rows(matrix, lengths) if any(lengths) else []}


def pool_of(backend, layer, batch):
    """(where a windowed layer's own pool has the slots of the full one, or None, the truth about the
    pool that the layer reads; the runs of slots in it are still empty)."""
    pool = getattr(backend, "token_to_kv_pool", None) or getattr(batch, "token_to_kv_pool", None)
    if pool is None:
        raise NoTruth("neither the backend nor the batch has a KV pool")
    windowed = (
        getattr(layer, "sliding_window_size", None) is not None and layer.sliding_window_size >= 0
    )
    mapping = getattr(pool, "full_to_swa_index_mapping", None) if windowed else None
    if mapping is None:
        return None, {
            "req_to_token_runs": [],
            "pool_tokens": int(pool.size),
            **_pools(pool, layer),
        }
    own = getattr(pool, "swa_kv_pool", pool)  # it numbers its layers itself: no view of it
    return mapping, {"req_to_token_runs": [], "swa_slot_runs": [], "pool_tokens": int(own.size)}


def _pools(pool, layer):
    """The layer's own K and V pools, (slots, heads, dim) each; an MLA layer has one. Their lists are
    read, not the getters, which wait for transfers. Nothing where they are kept otherwise."""
    index = int(getattr(layer, "layer_id", 0)) - int(getattr(pool, "start_layer", None) or 0)
    found = {}
    for name, attribute in (
        ("k_pool", "k_buffer"),
        ("v_pool", "v_buffer"),
        ("k_pool", "kv_buffer"),
    ):
        buffers = getattr(pool, attribute, None)
        if not isinstance(buffers, (list, tuple)) or not 0 <= index < len(buffers):
            continue
        if describe.is_tensor(buffers[index]) and len(buffers[index].shape) == 3:
            found[name] = describe.PoolView(buffers[index])
    return found


def _branches(backend, matrix, rows):
    """Every branch's own row: the prefix, then its steps + 1 of the drafts, branch after branch."""
    if int(getattr(backend, "page_size", 1) or 1) != 1:
        raise NoTruth("several branches on pages of more than one token")
    matrix = matrix.clone()
    for i, base in enumerate(rows.base):
        first = base + (i % rows.topk) * backend.attest_draft_steps
        matrix[i, base : base + rows.step + 1] = matrix[i, first : first + rows.step + 1].clone()
    return matrix
