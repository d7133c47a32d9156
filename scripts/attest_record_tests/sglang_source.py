"""SGLang's real backend sources with everything around them replaced.

The two files come from a published wheel that lies in $ATTEST_SGLANG_WHEELS; nothing of them is
kept here. Modules they import are made up: any name can be imported, and what the backends really
use (index builders, forward modes, pools) is written anew below.
"""

import importlib.abc
import importlib.util
import os
import sys
import types
import zipfile
from pathlib import Path

from .harness import torch

AITER = "sglang.srt.layers.attention.aiter_backend"
AMX = "sglang.srt.layers.attention.intel_amx_backend"
FAKED = ("sglang", "aiter", "triton", "sgl_kernel")


def wheels_folder():
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attest" / "wheels"
    return Path(os.environ.get("ATTEST_SGLANG_WHEELS") or default)


def source_of(version, module):
    """The text of a module in that release, or None where its wheel is not here."""
    for wheel in sorted(wheels_folder().glob(f"sglang-{version}-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(module.replace(".", "/") + ".py").decode()
    return None


class _Anything(types.ModuleType):
    """A module in which every name is a placeholder."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, given):
        self.given = given  # {module: {name: value}}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in FAKED:
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Anything(spec.name)

    def exec_module(self, module):
        for name, value in self.given.get("*", {}).items():
            setattr(module, name, value)
        for name, value in self.given.get(module.__name__, {}).items():
            setattr(module, name, value)


class Mode:
    """A forward mode as the batch has it."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, asked):
        if not asked.startswith("is_"):
            raise AttributeError(asked)
        names = {
            "is_decode_or_idle": ("decode", "idle"),
            "is_extend": ("extend", "target_verify", "draft_extend_v2", "mixed"),
        }.get(asked, (asked[3:],))
        return lambda *_, **__: self.name in names


class _Grid:
    """kernel[grid](...) as Triton spells a launch."""

    def __init__(self, function):
        self._function = function

    def __getitem__(self, grid):
        return self._function


def _fill_page_table(slots_of, page_table, bs, page_size):
    for row in range(bs):
        slots = slots_of(row)
        for column, slot in enumerate(slots[::page_size]):
            page_table[row, column] = slot // page_size


def _scatter_req_to_token(table, pool, lengths, page_table, *_, DRAFT_NUM, PAGE_SIZE, **__):
    rows, lens = pool.tolist(), lengths.tolist()
    _fill_page_table(
        lambda i: table[rows[i], : lens[i] + DRAFT_NUM].tolist(), page_table, len(rows), PAGE_SIZE
    )


def _scatter_ragged(flat, indptr, page_table, *_, PAGE_SIZE, **__):
    ends = indptr.tolist()
    _fill_page_table(
        lambda i: flat[ends[i] : ends[i + 1]].tolist(), page_table, len(ends) - 1, PAGE_SIZE
    )


def _flat_indices(table, pool, lengths, indptr, _, out, *__, **___):
    at = 0
    for row, length in zip(pool.tolist(), lengths.tolist()):
        out[at : at + length] = table[row, :length]
        at += length


def _draft_decode_table(table, pool, lengths, topk, steps, width):
    """One row per branch: the prefix, then that branch's own slots."""
    out = torch.zeros(len(pool) * topk, width, dtype=table.dtype)
    for i, (row, length) in enumerate(zip(pool.tolist(), lengths.tolist())):
        for branch in range(topk):
            at = length + branch * steps
            out[i * topk + branch, :length] = table[row, :length]
            out[i * topk + branch, length : length + steps] = table[row, at : at + steps]
    return out


class _Environ:
    def __getattr__(self, name):
        return types.SimpleNamespace(get=lambda: True)


def load(version, module, settings, edit=None):
    """The backend module of that release, or None. `settings`: what the server was started with.
    `edit` changes the text first, to take a fix back where no release is without it."""
    text = source_of(version, module)
    if text is None:
        return None
    unload()
    everywhere = types.SimpleNamespace(
        attn_tp_size=1,
        attn_dcp_size=1,
        attn_dcp_rank=0,
        speculative_algorithm="EAGLE",
        speculative_attention_mode="prefill",
        **settings,
    )
    given = {
        "sglang.srt.layers.attention.base_attn_backend": {"AttentionBackend": object},
        "sglang.srt.runtime_context": {
            name: lambda: everywhere for name in ("get_parallel", "get_spec", "get_schedule")
        },
        "sglang.srt.utils": {
            "is_gfx95_supported": lambda: False,
            "get_bool_env_var": lambda name, default="false": name != "SGLANG_AITER_MLA_PERSIST",
        },
        "sglang.srt.environ": {"envs": _Environ()},
        "sglang.kernels.ops.quantization.fp8_kernel": {"fp8_dtype": "fp8, not used"},
        "sglang.kernels.ops.attention.utils": {
            "create_flashinfer_kv_indices_triton": _Grid(_flat_indices),
        },
        "sglang.kernels.ops.kvcache.aiter_unified_attention": {
            "scatter_req_to_token_to_page_table_kernel": _Grid(_scatter_req_to_token),
            "scatter_ragged_to_page_table_kernel": _Grid(_scatter_ragged),
        },
        "sglang.srt.configs.model_config": {"AttentionArch": types.SimpleNamespace(MLA="mla")},
        "sglang.srt.layers.radix_attention": {
            "AttentionType": types.SimpleNamespace(ENCODER_ONLY="encoder_only")
        },
        "triton": {"cdiv": lambda a, b: -(-a // b)},
        "sgl_kernel": {"build_draft_decode_metadata_cpu": _draft_decode_table},
    }
    sys.meta_path.insert(0, _Finder(given))
    sys.modules["torch"] = torch
    torch.ops.sgl_kernel = types.SimpleNamespace(
        extend_attention_cpu=_no_kernel, decode_attention_cpu=_no_kernel
    )
    made = types.ModuleType(module)
    sys.modules[module] = made
    code = compile(edit(text) if edit else text, f"<sglang {version}>", "exec")
    exec(code, vars(made))
    return made


def _no_kernel(*_, **__):
    raise RuntimeError("the kernel itself was called")


def unload():
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    for name in [name for name in sys.modules if name.partition(".")[0] in FAKED]:
        del sys.modules[name]
