"""A made-up graph runner: captures with dummy rows, replays for a batch whose lengths are filled in."""

import types

import torch


class DecodeCudaGraphRunner:
    def __init__(self, backend, layers):
        self.backend, self.layers = backend, layers
        self.graph = torch.cuda.CUDAGraph()

    def capture(self, batch, rows):
        """`batch` gives mode and sizes; its requests are replaced by nobody's."""
        count, tokens = batch.batch_size, int(batch.input_ids.shape[0])
        zeros = lambda size, kind: torch.zeros(size, dtype=kind)
        dummy = types.SimpleNamespace(**vars(batch))
        dummy.req_pool_indices = zeros(count, torch.int64)
        dummy.out_cache_loc = zeros(tokens, torch.int64)
        dummy.seq_lens = batch.extend_seq_lens.long()
        self.backend.init_forward_metadata(dummy)
        with torch.cuda.graph(self.graph):
            for layer in self.layers:
                self.backend.forward_extend(*rows, layer, dummy)

    def execute(self, forward_batch):
        self.backend.init_forward_metadata(forward_batch)
        lengths, forward_batch.seq_lens = forward_batch.seq_lens, None  # the runner pads it meanwhile
        try:
            self.graph.replay()
        finally:
            forward_batch.seq_lens = lengths
