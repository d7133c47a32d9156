"""Which torch the tests run on, and an exit code for "everything was skipped"."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SKIPPED = 77  # ctest: SKIP_RETURN_CODE


def load_torch():
    """The stand-in, or the real one with ATTEST_TEST_TORCH=real (never skipped silently)."""
    if os.environ.get("ATTEST_TEST_TORCH") == "real":
        import torch

        if not hasattr(torch, "compiler"):  # torch < 2.1
            import types

            torch.compiler = types.SimpleNamespace(disable=lambda function: function)
        return torch
    from . import small_torch

    return small_torch


torch = load_torch()


def run(module_name):
    """unittest.main, but a run in which every test was skipped is no success."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module_name])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == 0 or len(result.skipped) == result.testsRun:
        for _, reason in result.skipped[:1]:
            print(f"SKIPPED: {reason}")
        sys.exit(SKIPPED)
