"""What every adapter over torch shares: the package, the device, and whether it still answers."""
from .kernel import Kernel, Lost, Unavailable, cuda_devices, need, version_of

WRITTEN_FOR = "2.11.0"
PIP = f"pip install torch=={WRITTEN_FOR}"


class TorchKernel(Kernel):
    engine = "cpu"

    def version(self):
        return "torch " + (version_of("torch") or WRITTEN_FOR)

    def check(self):
        need("torch", PIP)
        if self.engine == "cuda" and cuda_devices() == 0:
            raise Unavailable("no NVIDIA device")

    def devices(self):
        return cuda_devices() if self.engine == "cuda" else 1

    @property
    def on_gpu(self):
        return self.engine in ("cuda", "rocm")

    @property
    def place(self):
        return f"cuda:{self.index}" if self.on_gpu else "cpu"

    def load(self, device):
        import torch
        self.index = device
        if not self.on_gpu:
            self.where = self.engine
            return
        if not torch.cuda.is_available():
            raise Unavailable(f"torch {torch.__version__} sees no CUDA device")
        torch.cuda.set_device(device)
        self.where = torch.cuda.get_device_name(device)
        self.probe()

    def probe(self):
        import torch
        if not self.on_gpu:
            return
        try:
            torch.cuda.synchronize()
            if torch.ones(4, device=self.place).sum().item() != 4:
                raise Lost(f"{self.place} does not add")
        except RuntimeError as error:
            raise Lost(f"{self.place}: {error}") from error

    def synchronize(self):
        if self.on_gpu:
            import torch
            torch.cuda.synchronize()
