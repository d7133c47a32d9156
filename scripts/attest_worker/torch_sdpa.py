"""PyTorch's scaled_dot_product_attention as a control: keys gathered page by page, one call per
request. Not a paged kernel, but a production one for the numbers."""
from .kernel import Unavailable
from .torch_device import PIP, WRITTEN_FOR, TorchKernel


class Sdpa(TorchKernel):
    def __init__(self, backend, engine):
        self.backend = backend
        self.engine = engine
        self.name = f"torch.sdpa-{backend}@{engine}"
        self.says = f"PyTorch's scaled_dot_product_attention, its {backend} backend"
        flash = backend == "flash"
        half = ["bf16", "f16"]
        dtypes = half if flash else half + ["f32"]
        self.capabilities = {"signature": "unified", "q_dtypes": dtypes, "kv_dtypes": dtypes,
                             "window": engine == "cpu" or not flash,
                             "distinct_v_head_dim": not flash}
        # The math backend computes in float32 throughout; flash rounds P to the inputs' dtype. Its
        # exp on CPUs is good to 20 units in the last place.
        self.profile = {
            "p_dtype": "bf16" if flash else "f32", "p_follows_q_dtype": flash,
            "exp_relative_error": 3e-6 if flash else 1e-6,
            "z_limit": {"normal": 1.5, "recall": 1.5, "features": 1.5}}

    def load(self, device):
        super().load(device)
        import torch
        try:
            from torch.nn import attention  # torch 2.3 and later
        except ImportError as error:
            raise Unavailable(f"torch {torch.__version__} is installed, the adapter is written for "
                              f"{WRITTEN_FOR}: no torch.nn.attention; {PIP}") from error
        if not hasattr(attention, "sdpa_kernel"):
            raise Unavailable(f"torch {torch.__version__} is installed, the adapter is written for "
                              f"{WRITTEN_FOR}: no torch.nn.attention.sdpa_kernel; {PIP}")

    def only_when_named(self):
        from .kernel import cuda_devices
        missing = self.engine == "cuda" and cuda_devices() == 0
        return "no NVIDIA device, and @cpu runs the same operator" if missing else ""

    def supports(self, call):
        for name in ("q_descale", "k_descale", "v_descale", "sinks"):
            if name in call.tensors:
                return f"scaled_dot_product_attention takes no {name}"
        if call.scalar("softcap", 0) > 0:
            return "scaled_dot_product_attention takes no softcap"
        if call.tensors["q"].dtype != call.tensors["k"].dtype:
            return "q and K of one dtype only"
        if self.engine == "cuda" and self.backend == "flash":
            if call.tensors["q"].shape[2] > 256 or call.tensors["q"].shape[2] % 8:
                return "flash takes head dimensions that are multiples of 8, to 256"
        return None

    def run(self, call):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        place = self.place
        q, k, v, out = (call.torch(name, place) for name in ("q", "k", "v", "out"))
        table = call.torch("block_table", place).long()
        starts = call.torch("cu_seqlens_q").tolist()
        lengths = call.torch("seqused_k").tolist()
        page = k.shape[1]
        which = SDPBackend.MATH if self.backend == "math" else SDPBackend.FLASH_ATTENTION
        with sdpa_kernel(which), torch.no_grad():
            for i, length in enumerate(lengths):
                rows = slice(starts[i], starts[i + 1])
                if rows.start == rows.stop:
                    continue
                first = first_visible(call, length, rows.stop - rows.start)
                pages = table[i, first // page:-(-length // page)]
                within = slice(first % page, length - first // page * page)
                keys, values = (x[pages].reshape(-1, *x.shape[2:])[within] for x in (k, v))
                out[rows] = self.attend(q[rows], keys, values, call)
        self.synchronize()
        call.finish()
        return {"form": self.backend, "engine": self.where}

    def attend(self, q, k, v, call):
        import torch
        group = q.shape[1] // k.shape[1]
        q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
        rows, length = q.shape[2], k.shape[2]
        if self.backend == "flash" and self.engine == "cuda":
            from torch.nn.attention.bias import causal_lower_right
            mask = causal_lower_right(rows, length)
        else:
            row = torch.arange(rows, device=q.device)[:, None] + (length - rows)
            key = torch.arange(length, device=q.device)[None, :]
            mask = key <= row
            left = call.scalar("window_size")[0]
            if left >= 0:
                mask &= row - key <= left
        attended = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=call.scalar("softmax_scale"))
        return attended.squeeze(0).transpose(0, 1)


def first_visible(call, length, rows):
    """Keys before it are visible to no row; their pages may belong to somebody else by now."""
    left = call.scalar("window_size")[0]
    return 0 if left < 0 else max(0, length - rows - left)


KERNELS = [Sdpa(backend, engine) for engine in ("cpu", "cuda") for backend in ("math", "flash")]
