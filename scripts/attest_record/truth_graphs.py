"""What the scheduler meant by a call inside a GPU graph: by the rows that the graph was captured
with, and by those that it is replayed for."""

from .truth import (
    NoTruth,
    Rows,
    integers,
    mode_of,
    of_rows,
    pool_of,
    refuse_what_lengths_do_not_tell,
    sglang_truth,
    topk_of,
)


def sglang_capture_truth(backend, layer, batch):
    """The same where a graph is captured: its rows are nobody's, and say how many there are and how
    wide."""
    refuse_what_lengths_do_not_tell(backend, layer)
    mode = mode_of(batch, backend)
    rows = _dummy_rows(mode, backend, batch)
    count = len(rows.committed)
    truth = of_rows(rows, backend, layer, [False] * count)
    truth.update(pool_of(backend, layer, batch)[1])
    nobody = [None] * count
    truth.update({name: nobody for name in ("req_to_token_runs", "swa_slot_runs") if name in truth})
    return mode, truth


def sglang_replay_truth(backend, layer, batch, capture_batch):
    """The same of a replay: the batch's rows, then those that pad it to the captured ones."""
    if batch is None:
        raise NoTruth("the graph was replayed outside a graph runner that is watched")
    mode, truth = sglang_truth(backend, layer, batch)
    widths = _dummy_rows(mode, backend, capture_batch).new_tokens
    rows, raw = len(widths), len(truth["live"])
    if raw > rows:
        raise NoTruth(f"{raw} rows are replayed by a graph of {rows}")
    padding = rows - raw
    truth["new_tokens"] += widths[raw:]
    truth["live"] += [False] * padding
    for name in ("committed", "base_committed"):
        if name in truth:
            truth[name] += [0] * padding
    for name in ("req_to_token_runs", "swa_slot_runs"):
        if name in truth:
            truth[name] += [None] * padding
    return mode, truth


def _dummy_rows(mode, backend, batch):
    count = int(batch.batch_size)
    lengths = integers(batch.seq_lens)[:count]
    if mode == "draft_decode":
        step, topk = backend.attest_draft_step, backend.attest_draft_topk
        base = [length for length in lengths for _ in range(topk)]
        return Rows([length + step for length in base], [1] * len(base), topk, step, base)
    if mode in ("decode", "idle"):
        return Rows([max(0, length - 1) for length in lengths], [1] * count)
    total = int(batch.input_ids.shape[0])
    widths = _own_widths(batch, count, total)
    if count == 0 or (total % count and not widths):
        raise NoTruth(f"{total} tokens in the {count} rows of a graph")
    widths = widths or [total // count] * count
    own = [0] * count if mode == "target_verify" else widths
    committed = [max(0, length - width) for length, width in zip(lengths, own)]
    return Rows(committed, widths, topk_of(backend, batch))


def _own_widths(batch, count, total):
    """Where the dummy batch has a width for each of its rows."""
    widths = getattr(batch, "extend_seq_lens", None)
    widths = integers(widths) if widths is not None else []
    return widths if len(widths) == count and sum(widths) == total else None
