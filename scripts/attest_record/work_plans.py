"""What AITER's work lists were made for: seen when the framework plans, read when it launches.

A persistent MLA kernel takes its lists from get_mla_metadata_v1, which fills memory that was sized by
get_mla_metadata_info_v1. Neither call's arguments reach the kernel, and both must be the launch's.
"""

import threading

from .describe import is_tensor, storage_of
from .kernels import parameter_names

# aiter/ops/attention.py
PLANNERS = {
    "get_mla_metadata_info_v1": (
        "batch_size max_seqlen_qo num_head_qo q_dtype kv_dtype is_sparse fast_mode num_kv_splits "
        "intra_batch_mode"
    ).split(),
    "get_mla_metadata_v1": (
        "seqlens_qo_indptr seqlens_kv_indptr kv_last_page_lens num_heads_per_head_k num_heads_k "
        "is_causal work_metadata_ptrs work_info_set work_indptr reduce_indptr reduce_final_map "
        "reduce_partial_map page_size kv_granularity max_seqlen_qo uni_seqlen_qo fast_mode topk "
        "max_split_per_batch intra_batch_mode dtype_q dtype_kv"
    ).split(),
}
LISTS = ("work_indptr", "work_info_set", "reduce_indptr", "reduce_final_map", "reduce_partial_map")
MOST_PLANS = 256  # buffers that are remembered: one a captured batch size, and the eager ones


def _dtype(value):
    return None if value is None else str(value).rpartition(".")[2]


def _place(tensor):
    return storage_of(tensor)[1], int(tensor.storage_offset())


def unfilled(args):
    """Why lists that were planned look like memory nobody wrote: a stubbed planner fills nothing."""
    works = args.get("work_indptr") or {}
    ends = works.get("values")
    if not ends:
        return None  # absent, or too large to be recorded: the checker says so
    rising = all(before <= after for before, after in zip(ends, ends[1:]))
    if ends[0] == 0 and rising and ends[-1] > 0:
        return None
    return f"the planner ran and work_indptr is {ends[:4]}...: its lists are taken for unfilled"


def _plan(rows, heads, dtypes, bound):
    plan = {"max_seqlen_qo": int(rows), "num_heads": int(heads)}
    plan["dtype_q"], plan["dtype_kv"] = (_dtype(value) for value in dtypes)
    plan["fast_mode"] = bool(bound.get("fast_mode", True))
    plan["intra_batch_mode"] = bool(bound.get("intra_batch_mode", False))
    return plan


class WorkPlans:
    """The latest plan of every buffer. Its methods never raise into the framework."""

    def __init__(self, tell):
        self._tell, self._lock = tell, threading.Lock()
        self._sized, self._planned = {}, {}

    def wrap(self, name, planner):
        def watched(*args, **kwargs):
            result = planner(*args, **kwargs)
            try:
                names = parameter_names(planner) or PLANNERS[name]
                self._note(name, {**dict(zip(names, args)), **kwargs}, result)
            except Exception as error:  # the plan is made: the record lacks it
                self._tell(name, error)
            return result

        return watched

    def _note(self, name, bound, result):
        if name == "get_mla_metadata_info_v1":
            dtypes = bound.get("q_dtype"), bound.get("kv_dtype")
            plan = _plan(bound["max_seqlen_qo"], bound["num_head_qo"], dtypes, bound)
            shape = tuple(int(extent) for extent in result[2][0])
            with self._lock:
                # Two plans that give one shape cannot be told apart by their buffers.
                known = self._sized.get(shape, plan)
                self._remember(self._sized, shape, plan if known == plan else None)
            return
        heads = bound["num_heads_per_head_k"] * bound["num_heads_k"]
        dtypes = bound.get("dtype_q"), bound.get("dtype_kv")
        plan = _plan(bound.get("max_seqlen_qo", -1), heads, dtypes, bound)
        plan["max_splits"] = int(bound.get("max_split_per_batch", -1))
        with self._lock:
            self._remember(self._planned, _place(bound["work_info_set"]), plan)

    @staticmethod
    def _remember(plans, key, plan):
        plans.pop(key, None)
        plans[key] = plan
        while len(plans) > MOST_PLANS:
            del plans[next(iter(plans))]

    def of(self, bound):
        """The "work_plan" of a launch's record, or None where nobody was seen to fill its lists."""
        works = bound.get("work_info_set")
        if not is_tensor(works):
            return None
        with self._lock:
            planned = self._planned.get(_place(works))
            sized = self._sized.get(tuple(int(extent) for extent in works.shape))
        if planned is None:
            return None
        return {"info": sized, "metadata": planned}
