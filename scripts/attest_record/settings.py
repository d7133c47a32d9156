"""What a user asks of the recorder, from the environment or from code."""

import math
import os
from typing import NamedTuple


class Settings(NamedTuple):
    folder: str = ""  # where records go; empty: nowhere
    live: str = "off"  # off, warn, raise
    every: int = 1000  # one call in so many, on average
    allow: str = ""  # an allow list
    tensors: bool = False  # q, new K and V, and whatever else is small, as safetensors
    share: float = 0.005  # of the wall time, the most that recording may take
    max_files: int = 2_000
    max_mb: int = 256
    per_second: float = 5.0

    @classmethod
    def from_environment(cls, environ=os.environ):
        """ATTEST_RECORD, ATTEST_LIVE, ATTEST_EVERY, ... Raises ValueError naming the variable."""
        live = environ.get("ATTEST_LIVE", "off") or "off"
        if live not in ("off", "warn", "raise"):
            raise ValueError(f"ATTEST_LIVE is {live!r}, expected off, warn or raise")
        values = {
            "folder": environ.get("ATTEST_RECORD", ""),
            "live": live,
            "allow": environ.get("ATTEST_ALLOW", ""),
        }
        values["tensors"] = environ.get("ATTEST_TENSORS", "") not in ("", "0")
        numbers = (
            ("every", int),
            ("share", float),
            ("max_files", int),
            ("max_mb", int),
            ("per_second", float),
        )
        for name, kind in numbers:
            text = environ.get("ATTEST_" + name.upper(), "")
            if not text:
                continue
            try:
                values[name] = kind(text)
            except ValueError:
                raise ValueError(f"ATTEST_{name.upper()} is {text!r}, expected a number") from None
            if not (math.isfinite(values[name]) and values[name] > 0):
                raise ValueError(f"ATTEST_{name.upper()} is {text}, expected more than 0")
        return cls(**values)
