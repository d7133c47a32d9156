"""A live kernel call as the `args` of a captured call (docs/captured_calls.md)."""

from . import describe
from .kernels import KERNELS, OPTIONAL, is_neutral


def record_arguments(kernel_name, bound, describer, more_arrays=()):
    """(args, notes). Reads integer arrays that are metadata, and nothing else, from the device.
    more_arrays: that are metadata in this call."""
    kernel = KERNELS[kernel_name]
    args, notes = {}, []
    bound = _of_vllms_versions(kernel_name, bound)
    for name, value in bound.items():
        known = name in kernel.arguments or name in kernel.arrays
        if name in kernel.neutral and is_neutral(kernel_name, name, value):
            continue
        if not known and is_neutral(kernel_name, name, value):
            continue
        if describe.is_tensor(value):
            args[name] = describer.tensor(
                value, with_values=name in kernel.arrays or name in more_arrays
            )
        else:
            args[name] = describe.scalar(value)
    for name in OPTIONAL.get(kernel_name, ()):
        args.setdefault(name, None)
    _keep_rows_in_use(bound, args, describer, notes)
    _keep_columns_in_use(bound, args, describer, notes)
    _keep_indices_in_use(bound, args, describer, notes)
    return args, notes


def _of_vllms_versions(kernel_name, bound):
    """vLLM's CPU kernel takes the factors of an fp8 cache as numbers or as tensors of one. Its window is
    the number of keys; earlier, the largest distances to the left and to the right, as a pair or, in
    the C++ operator, apart. -1 is off in all of them."""
    if kernel_name != "cpu_attention_with_kv_cache":
        return bound
    joined = dict(bound)
    for name in ("k_scale", "v_scale"):  # a number to the checker
        scale = joined.get(name)
        if describe.is_tensor(scale) and describe.has_values(scale) and scale.numel() == 1:
            joined[name] = float(scale.item())
    if "sliding_window_left" in joined:
        left, right = joined.pop("sliding_window_left"), joined.pop("sliding_window_right", -1)
        joined["sliding_window"] = (left, right)
    window = joined.get("sliding_window")
    if isinstance(window, (tuple, list)):
        joined["sliding_window"] = window[0] + 1 if window[0] >= 0 else -1
    return joined


def _too_large(bound, args, name, describer):
    tensor = bound.get(name)
    return (
        describe.is_tensor(tensor)
        and describe.has_values(tensor)
        and tensor.numel() > describer.max_values
        and "values" not in args.get(name, {"values": ()})
    )


def _readable(bound, *names):
    """Whether the arrays that say how much of another is in use are there, with values."""
    arrays = [bound.get(name) for name in names]
    return all(describe.is_tensor(array) and describe.has_values(array) for array in arrays)


def _replace(args, name, values, shape, strides=None):
    """Puts the part of an array that a call can read in the array's place."""
    described = args[name]
    for key in ("sha256", "tail"):
        described.pop(key, None)
    described["values"], described["shape"] = values, shape
    if strides:
        described["strides"] = strides


def _keep_rows_in_use(bound, args, describer, notes):
    """req_to_token has a row for every request the server may hold; the call reads a few."""
    if not _too_large(bound, args, "req_to_token", describer):
        return
    if not _readable(bound, "req_pool_indices", "seq_lens"):
        return
    table, pool = bound["req_to_token"], describe.values_of(bound["req_pool_indices"])
    rows, width = (int(extent) for extent in table.shape)
    if not pool or any(not 0 <= row < rows for row in pool):
        return  # the checker has to see this; it will say that the table was not recorded
    used = max(describe.values_of(bound["seq_lens"]), default=0)
    kept = width if used > width or width * len(pool) <= describer.max_values else max(used, 1)
    if kept * len(pool) > describer.max_values:
        return
    values = [describe.values_of(table[row, :kept]) for row in pool]
    _replace(args, "req_to_token", values, [len(pool), kept], [kept, 1])
    args["req_pool_indices"]["values"] = list(range(len(pool)))
    notes.append(
        f"req_to_token is [{rows}, {width}]; recorded are its rows {pool}, {kept} columns, and "
        "req_pool_indices counts them"
    )


def _keep_columns_in_use(bound, args, describer, notes):
    """A block table is as wide as the longest context; the call reads up to its lengths."""
    lengths = "seqused_k" if "seqused_k" in bound else "seq_lens"
    if not _too_large(bound, args, "block_table", describer) or not _readable(bound, lengths):
        return
    table = bound["block_table"]
    rows, width = (int(extent) for extent in table.shape)
    page = int(bound["k"].shape[1] if "k" in bound else bound["key_cache"].shape[2])
    used = max(describe.values_of(bound[lengths]), default=0)
    kept = min(width, max(1, -(-used // page)))
    if kept * rows > describer.max_values:
        return
    _replace(args, "block_table", describe.values_of(table[:, :kept]), [rows, kept])
    notes.append(f"block_table is {width} wide; recorded are its first {kept} columns")


def _keep_indices_in_use(bound, args, describer, notes):
    """Ragged indices stand in a buffer for the largest batch. CK's prefill reads 128 past the end."""
    for name in ("kv_page_indices", "kv_indices"):
        if not _too_large(bound, args, name, describer) or not _readable(bound, "kv_indptr"):
            continue
        flat = bound[name]
        ends = describe.values_of(bound["kv_indptr"])
        kept = min(flat.numel(), max(ends, default=0) + 256)
        if kept > describer.max_values:
            continue
        _replace(args, name, describe.values_of(flat[:kept]), [kept])
        notes.append(f"{name} holds {flat.numel()} entries; recorded are the first {kept}")
