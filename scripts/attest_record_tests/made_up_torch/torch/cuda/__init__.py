from .graphs import CUDAGraph, graph, is_current_stream_capturing, made, memory_snapshot


def is_initialized():
    return True
