"""What the adapters do with packages that are not here: versions, schemas, calls."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from attest_worker import aiter_unified, sglang_cpu  # noqa: E402
from attest_worker.call import Call  # noqa: E402
from attest_worker.kernel import Unavailable, need, need_parameters  # noqa: E402
from attest_worker.kernels import all_kernels, kernel_named  # noqa: E402


class Parameter:
    def __init__(self, name, kind="Tensor", default=False):
        self.name, self.type, self._default = name, kind, default

    def has_default_value(self):
        return self._default


class Schema:
    def __init__(self, *parameters):
        self.arguments = parameters


def tensor(shape=(1,), dtype="bf16", role="input"):
    return {"dtype": dtype, "shape": list(shape), "strides": [1] * len(shape), "role": role}


def call(tensors, scalars=None):
    made = Call({"signature": "decode", "tensors": {name: tensor() for name in tensors},
                 "scalars": scalars or {}})
    made.torch = lambda name: f"tensor {name}"
    return made


class Schemas(unittest.TestCase):
    def test_bind_by_name_whatever_the_order(self):
        schema = Schema(Parameter("logit_cap", "float"), Parameter("query"))
        self.assertEqual(sglang_cpu.bound(schema, call(["query"], {"logit_cap": 3.0}), "v"),
                         {"query": "tensor query", "logit_cap": 3.0})

    def test_leave_out_what_has_a_default_and_pass_none_where_it_may_be(self):
        schema = Schema(Parameter("query"), Parameter("sinks", "Optional[Tensor]"),
                        Parameter("fast", "bool", default=True))
        self.assertEqual(sglang_cpu.bound(schema, call(["query"]), "v"),
                         {"query": "tensor query", "sinks": None})

    def test_of_another_version_are_refused_by_parameter(self):
        schema = Schema(Parameter("query"), Parameter("k_scale", "float"))
        with self.assertRaisesRegex(ValueError, "sgl-kernel 9: the operator wants k_scale"):
            sglang_cpu.bound(schema, call(["query"]), "sgl-kernel 9")
        with self.assertRaisesRegex(ValueError, "takes no sinks"):
            sglang_cpu.bound(Schema(Parameter("query")), call(["query", "sinks"]), "sgl-kernel 9")


class AmdOptions(unittest.TestCase):
    def test_are_left_out_unless_the_kernel_has_them_as_arguments(self):
        class Kernel:
            def __init__(self, *arg_names):
                self.arg_names, self.got = list(arg_names), None

            def __getitem__(self, grid):
                return lambda **named: setattr(self, "got", (grid, named))

        flat, split = Kernel("q"), Kernel("q", "waves_per_eu")
        for kernel in flat, split:
            aiter_unified.WithoutAmdOptions(kernel)[(1,)](q=1, waves_per_eu=2, num_warps=4)
        self.assertEqual(flat.got, ((1,), {"q": 1, "num_warps": 4}))
        self.assertEqual(split.got, ((1,), {"q": 1, "waves_per_eu": 2, "num_warps": 4}))


class Versions(unittest.TestCase):
    def test_that_differ_are_both_named(self):
        with self.assertRaises(Unavailable) as refused:
            need_parameters("unified_attention", {"q": 0}, ("q", "sinks"), "vllm 0.9.1",
                            "vllm 0.33.0")
        self.assertEqual(str(refused.exception),
                         "vllm 0.9.1 is installed, the adapter is written for vllm 0.33.0: "
                         "unified_attention takes no sinks")

    def test_missing_module_is_named_with_its_line(self):
        with self.assertRaisesRegex(Unavailable, "no Python module no_such_thing: pip install it"):
            need("no_such_thing", "pip install it")


class Kernels(unittest.TestCase):
    def test_refuse_what_they_do_not_take(self):
        sdpa = kernel_named("torch.sdpa-math@cpu")
        tensors = {name: tensor((2, 16, 2, 64)) for name in ("q", "k", "v")}
        made = Call({"signature": "unified", "tensors": tensors, "scalars": {"softcap": 30.0}})
        self.assertIn("softcap", sdpa.supports(made))
        tensors["sinks"] = tensor()
        made = Call({"signature": "unified", "tensors": tensors, "scalars": {}})
        self.assertIn("sinks", sdpa.supports(made))

    def test_of_triton_take_pages_of_powers_of_two(self):
        vllm = kernel_named("vllm.unified@cuda")
        for page, taken in ((16, True), (48, False), (1, False), (64, True)):
            tensors = {name: tensor((2, page, 2, 64)) for name in ("q", "k", "v")}
            made = Call({"signature": "unified", "tensors": tensors, "scalars": {}})
            self.assertEqual(vllm.supports(made) is None, taken, page)

    def test_have_names_of_three_parts(self):
        for kernel in all_kernels():
            self.assertRegex(kernel.name, r"^[a-z0-9]+\.[a-z0-9_-]+@[a-z]+$")

    def test_that_nobody_knows_are_refused_with_the_known_ones(self):
        with self.assertRaisesRegex(LookupError, "numpy.unified@cpu"):
            kernel_named("nunpy.unified@cpu")


if __name__ == "__main__":
    unittest.main()
