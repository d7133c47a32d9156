"""Verify row t reads what decoding the same token would read: the two sites must agree.

The property holds for every chain of drafts (topk 1), whatever the lengths: row t of request i in
target_verify attends the same keys, in the same order, as decode at length S_i + t + 1.
"""


def keys_per_row(record):
    """{(request, row): slots of the keys that the call reads for it}, of a captured call.

    Keys that a kernel takes from its own new rows stand under the slots those are stored at."""
    reader = _READERS.get(record["kernel"])
    if reader is None:
        raise ValueError(f"{record['kernel']}: no reader of its keys here")
    return dict(reader(record["args"], record["truth"]))


def parity_differences(verify, decodes):
    """Sentences, one for each row of `verify` that reads other keys than `decodes[t]` does.

    decodes[t]: the decode call in which every request has S_i + t + 1 tokens."""
    differences = []
    for (request, t), keys in sorted(keys_per_row(verify).items()):
        expected = keys_per_row(decodes[t])[(request, 0)]
        if keys == expected:
            continue
        first = next(
            (j for j, (a, b) in enumerate(zip(keys, expected)) if a != b),
            min(len(keys), len(expected)),
        )
        differences.append(
            f"request {request} row {t}: verify reads {len(keys)} keys, decode at "
            f"{len(expected)} tokens reads {len(expected)}; they part at key {first}"
        )
    return differences


def _slots_of(runs):
    return [first + k for first, count in runs for k in range(count)]


def _extend(args, truth):
    table, pool = args["req_to_token"]["values"], args["req_pool_indices"]["values"]
    for i, row in enumerate(pool):
        new = args["extend_seq_lens"]["values"][i]
        prefix = args["seq_lens"]["values"][i] - new
        own = _slots_of(truth["req_to_token_runs"][i])[truth["committed"][i] :]
        for t in range(new):
            yield (i, t), table[row][: max(prefix, 0)] + own[: t + 1]


def _decode(args, _):
    table, pool = args["req_to_token"]["values"], args["req_pool_indices"]["values"]
    for i, row in enumerate(pool):
        yield (i, 0), table[row][: args["seq_lens"]["values"][i]]


def _unified(args, _):
    page = args["k"]["shape"][1]
    starts = args["cu_seqlens_q"]["values"]
    for i, length in enumerate(args["seqused_k"]["values"]):
        pages = args["block_table"]["values"][i]
        slots = [pages[j // page] * page + j % page for j in range(min(length, len(pages) * page))]
        new = starts[i + 1] - starts[i]
        for t in range(new):
            yield (i, t), slots[: max(length - new + t + 1, 0)]


_READERS = {
    "extend_attention_cpu": _extend,
    "decode_attention_cpu": _decode,
    "unified_attention": _unified,
}
