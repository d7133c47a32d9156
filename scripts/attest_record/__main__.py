"""python3 -m attest_record [-o FOLDER] [--live warn|raise] [--every N] -- COMMAND...

Runs a command with the recorder in every Python process below it, without touching the framework.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from .session import Settings


def why_not_a_folder(path):
    """Why no record can be written there; tried here, since later nobody would hear of it."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python3 -m attest_record", description=__doc__.splitlines()[2]
    )
    parser.add_argument(
        "-o", "--out", metavar="FOLDER", help="write one JSON file per distinct call here"
    )
    parser.add_argument("--live", choices=("off", "warn", "raise"), help="check every sampled call")
    parser.add_argument(
        "--every", metavar="N", help="sample one call in N, on average (default 1000)"
    )
    parser.add_argument("--allow", metavar="FILE", help="findings to live with, until a date")
    parser.add_argument(
        "--tensors", action="store_true", help="keep small tensors too, as safetensors"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the command")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command; it stands after --")
    if not options.out and options.live in (None, "off"):
        parser.error("nothing to do: give --out, --live or both")
    environ = dict(os.environ)
    given = {"ATTEST_LIVE": options.live, "ATTEST_EVERY": options.every}
    paths = {"ATTEST_RECORD": options.out, "ATTEST_ALLOW": options.allow}
    environ.update({name: value for name, value in given.items() if value})
    environ.update({name: os.path.abspath(path) for name, path in paths.items() if path})
    if options.tensors:
        environ["ATTEST_TENSORS"] = "1"
    try:
        Settings.from_environment(environ)
    except ValueError as error:
        parser.error(str(error))
    if options.out and (why := why_not_a_folder(environ["ATTEST_RECORD"])):
        parser.error(f"-o {options.out}: {why}")
    here = Path(__file__).resolve().parent
    search = [str(here / "site"), str(here.parent), environ.get("PYTHONPATH", "")]
    environ["PYTHONPATH"] = os.pathsep.join(path for path in search if path)
    try:
        os.execvpe(command[0], command, environ)
    except OSError as error:
        print(f"attest_record: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    return 0


if __name__ == "__main__":
    sys.exit(main())
