"""The stand-in as the module that servers import, with graphs as a GPU has them."""

from attest_record_tests.small_torch import *  # noqa: F403

from . import cuda
