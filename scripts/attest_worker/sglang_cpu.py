"""SGLang's CPU attention operators, bound by their schemas: argument lists differ between versions."""
from .kernel import Unavailable, need, version_of
from .torch_device import TorchKernel

# Parameters of ours under other names in some versions.
ALIASES = {"k_buf_scale": None, "v_buf_scale": None}
PIP = ("build sgl-kernel's CPU variant: git clone https://github.com/sgl-project/sglang && cd "
       "sglang/sgl-kernel && cp pyproject_cpu.toml pyproject.toml && pip install .")


class SglangCpu(TorchKernel):
    written_for = "0.3.21"
    engine = "cpu"
    # bf16 products with float32 sums; P is rounded to bf16 before it meets V, scores are exp'd by a
    # polynomial of about 1e-6.
    profile = {"p_dtype": "bf16", "p_follows_q_dtype": True, "exp_relative_error": 3e-6,
               "kv_splits": 16, "z_limit": {"normal": 1.5, "recall": 1.6, "features": 1.5}}

    def __init__(self, signature, says, **features):
        self.signature = signature
        self.name = f"sglang.{signature}@cpu"
        self.says = says
        self.capabilities = {"signature": signature, "q_dtypes": ["bf16"], "kv_dtypes": ["bf16"],
                             "window": True, "sinks": True, "distinct_v_head_dim": True,
                             "index_dtype_reaches_offsets": True, **features}

    def version(self):
        return "sgl-kernel " + (version_of("sgl-kernel-cpu") or version_of("sgl-kernel")
                                or version_of("sglang-kernel") or self.written_for)

    def check(self):
        super().check()
        need("sgl_kernel", PIP)

    def load(self, device):
        super().load(device)
        import torch
        try:
            import sgl_kernel  # registers its operators
            self.package = sgl_kernel
        except (ImportError, OSError) as error:
            raise Unavailable(f"{self.version()} is installed and cannot be imported: "
                              f"{str(error).splitlines()[0]}; {PIP}") from error
        operator = getattr(torch.ops.sgl_kernel, self.signature + "_attention_cpu", None)
        if operator is None:
            raise Unavailable(f"{self.version()} is installed without {self.signature}"
                              f"_attention_cpu: {PIP}")
        self.operator = operator.default
        self.isa = torch.backends.cpu.get_cpu_capability()

    def supports(self, call):
        dims = [call.tensors[name].shape[2] for name in ("k_buffer", "v_buffer")]
        if any(dim % 32 for dim in dims):
            return f"head dimensions {dims}; the kernel takes multiples of 32"
        return None

    def run(self, call):
        self.operator(**bound(self.operator._schema, call, self.version()))
        return {"engine": f"cpu ({self.isa})"}


def bound(schema, call, version):
    """The call's arguments by the operator's parameter names; its other parameters are None where
    they may be. \\raises ValueError for a parameter that nothing here stands for, or an argument that
    the operator does not take."""
    arguments = {}
    for parameter in schema.arguments:
        name = parameter.name
        if name in call.tensors:
            arguments[name] = call.torch(name)
        elif name in call.scalars:
            arguments[name] = call.scalar(name)
        elif parameter.has_default_value():
            continue
        elif "Optional" in str(parameter.type):
            arguments[name] = None
        elif name in ALIASES:
            arguments[name] = ALIASES[name]
        else:
            raise ValueError(f"{version}: the operator wants {name}, which the call does not have")
    taken = {parameter.name for parameter in schema.arguments}
    for name in call.tensors:
        if name not in taken:
            raise ValueError(f"{version}: the operator takes no {name}")
    return arguments


KERNELS = [
    SglangCpu("extend", "SGLang's extend_attention_cpu", tree_mask=True),
    SglangCpu("decode", "SGLang's decode_attention_cpu", softcap=True),
]
