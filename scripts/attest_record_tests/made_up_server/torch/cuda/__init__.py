from .graphs import CUDAGraph, is_current_stream_capturing, made, memory_snapshot


def is_initialized():
    return True
