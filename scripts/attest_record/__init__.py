"""Records attention kernel calls of SGLang and vLLM, and checks them against the kernels' rules.

    PYTHONPATH=attest/scripts python3 -m attest_record -o calls -- python3 -m sglang.launch_server ...

or, in a process: attest_record.install(). In a unit test: attest_record.stub(). Standard library
only; torch is never imported, only met. docs/recorder.md has the whole story.
"""

import atexit
import os
import sys

from .allow import AllowList, BadAllowList
from .checker import Result, Unavailable, sentence
from .hooks import Hooks, at_fork
from .parity import keys_per_row, parity_differences
from .session import AttestWarning, BrokenRule, NotJudged, Session, Settings
from .stub import stub

__all__ = [
    "AllowList",
    "AttestWarning",
    "BadAllowList",
    "BrokenRule",
    "NotJudged",
    "Result",
    "Session",
    "Settings",
    "Unavailable",
    "install",
    "keys_per_row",
    "parity_differences",
    "sentence",
    "stub",
    "uninstall",
]

_installed = None


def install(settings=None, **changes):
    """Watches the frameworks' backends from now on, those not imported yet included. Settings come
    from the environment (ATTEST_RECORD, ATTEST_LIVE, ...) unless given; a second call is ignored.
    Gives the Session. Raises ValueError, Unavailable or BadAllowList before anything is changed."""
    global _installed
    if _installed is None:
        settings = (settings or Settings.from_environment())._replace(**changes)
        session = Session(settings)
        _installed = Hooks(session)
        _installed.install()
        at_fork(session)
        if session.writer is not None:
            session.writer.sweep()
        atexit.register(_report, session, os.getpid())
    return _installed.session


def uninstall():
    """Puts everything back."""
    global _installed
    if _installed is not None:
        _installed.uninstall()
        _installed = None


def _report(session, pid):
    if os.environ.get("ATTEST_QUIET") or os.getpid() != pid:
        return
    text = ", ".join(f"{count} {name}" for name, count in session.counts.items() if count)
    for said in (text, session.graphs.unseen()):
        if said:
            print(f"attest: {said}", file=sys.stderr)
