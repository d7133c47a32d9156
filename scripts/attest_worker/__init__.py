"""Kernels that live in Python packages, as backends of attest. One file per package; the table of
all of them is kernels.py. The protocol is docs/worker_protocol.md."""
