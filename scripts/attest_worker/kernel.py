"""What an adapter provides."""
import importlib.metadata
import importlib.util


class Unavailable(Exception):
    """This machine cannot run the kernel; the text says what would help."""


class Lost(Exception):
    """The device does not answer any more: this process is of no further use."""


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def need(module, pip):
    """\\raises Unavailable with the line that installs a missing module."""
    try:
        found = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise Unavailable(f"no Python module {module}: {pip}")


def need_parameters(what, parameters, wanted, installed, written_for):
    """\\raises Unavailable naming both versions where an installed function takes other arguments."""
    missing = [name for name in wanted if name not in parameters]
    if missing:
        raise Unavailable(f"{installed} is installed, the adapter is written for {written_for}: "
                          f"{what} takes no {', '.join(missing)}")


def cuda_devices():
    """How many NVIDIA devices the driver gives this process, without importing a framework."""
    import ctypes
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return 0
    except OSError:
        return 0
    return count.value


class Kernel:
    """One backend. Subclasses set these and say how to run."""
    name = ""          # "<impl>.<signature>@<engine>"
    says = ""          # one line for attest doctor
    capabilities = {}  # what may be drawn: backends/worker/description_json.cpp lists the members
    profile = {}       # how the kernel rounds: docs/profiles.md

    def version(self):
        """Of the installed kernel, or what the adapter is written for."""
        raise NotImplementedError

    def check(self):
        """Quick, without importing the framework. \\raises Unavailable"""

    def load(self, device):
        """Imports it and touches the device. \\raises Unavailable"""

    def probe(self):
        """After an error. \\raises Lost where the device is gone."""

    def only_when_named(self):
        """Why a selector without an engine leaves this one out; empty: it does not."""
        return ""

    def devices(self):
        return 1

    def supports(self, call):
        """None, or why not; the call's tensors have no memory here."""
        return None

    def run(self, call):
        """Runs it and returns {"form": ..., "engine": ..., "counters": ..., "lints": ...}, all
        optional. RuntimeError, ValueError, AssertionError, IndexError: the kernel refused the call."""
        raise NotImplementedError

    def describe(self):
        answer = {"name": self.name, "says": self.says, "version": self.version(),
                  "devices": max(1, self.devices()), "only_when_named": self.only_when_named(),
                  "capabilities": self.capabilities, "profile": self.profile}
        try:
            self.check()
        except Unavailable as error:
            answer.update(available=False, reason=str(error))
        return answer
