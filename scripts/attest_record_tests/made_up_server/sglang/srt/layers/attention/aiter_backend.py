"""A made-up backend with the call sites of SGLang's AITER backend and, where asked for, its bugs."""

import torch

LAUNCHED = []
# On a GPU an operator is part of the graph by itself.
_made = getattr(torch.cuda, "made", lambda make: make())


def unified_attention(
    q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k, softmax_scale, causal,
    window_size, block_table, softcap, q_descale, k_descale, v_descale, sinks=None,
):  # fmt: skip
    LAUNCHED.append("unified_attention")


def mha_batch_prefill_func(
    q, k, v, cu_seqlens_q, kv_indptr, kv_page_indices, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
    softmax_scale=None, logits_soft_cap=0.0, causal=False, window_size=(-1, -1), alibi_slopes=None,
    deterministic=False, return_lse=False, return_attn_probs=False,
):  # fmt: skip
    LAUNCHED.append("mha_batch_prefill_func")
    return q


class AiterAttnBackend:
    topk, use_mla = 1, False

    def __init__(self, runner, page_size, rows, bug=""):
        self.req_to_token_pool, self.token_to_kv_pool = (
            runner.req_to_token_pool,
            runner.token_to_kv_pool,
        )
        self.kv_cache_dtype, self.page_size = runner.kv_cache_dtype, page_size
        self.num_draft_tokens = runner.server_args.speculative_num_draft_tokens
        width = int(runner.req_to_token_pool.req_to_token.shape[1])
        self.max_context_len = width - page_size  # a page for the drafts at its end
        self.bug, self.longest = bug, 0
        ints = lambda *shape: torch.zeros(*shape, dtype=torch.int32)
        pages = width // page_size
        # What graphs read: filled before every launch, never replaced.
        self.offsets, self.kv_ends = ints(rows + 1), ints(rows + 1)
        self.lengths = torch.zeros(rows, dtype=torch.int64)
        self.table, self.slots = ints(rows, pages), ints(rows * self.max_context_len + 256)

    def init_forward_metadata(self, batch):
        """Fills what the kernels read; a graph keeps the scalars of its capture."""
        widths = self._widths(batch)
        rows, self.longest = len(widths), max(widths)
        ends = self._ends(widths)
        for i, end in enumerate(ends):
            self.offsets[i] = end
        new = [0] * rows if batch.forward_mode.is_draft_extend_v2() else widths
        totals = [length + own for length, own in zip(batch.seq_lens.tolist(), new)]
        requests, table = batch.req_pool_indices.tolist(), self.req_to_token_pool.req_to_token
        at = 0
        for i, (request, total) in enumerate(zip(requests, totals)):
            self.lengths[i], self.kv_ends[i + 1] = total, at + total
            self.slots[at : at + total] = table[request, :total]
            pages = -(-total // self.page_size)
            self.table[i, :pages] = table[request, : total : self.page_size] // self.page_size
            at += total

    def _widths(self, batch):
        rows = len(batch.seq_lens.tolist())
        if self.bug == "configured width":
            return [self.num_draft_tokens] * rows
        if self.bug == "rows // batch":
            return [int(batch.input_ids.shape[0]) // rows] * rows
        return batch.extend_seq_lens.tolist()

    @staticmethod
    def _ends(widths):
        return [sum(widths[:i]) for i in range(len(widths) + 1)]

    def forward_extend(self, q, k, v, layer, forward_batch):
        rows = forward_batch.batch_size
        q = q.view(-1, layer.tp_q_head_num, layer.qk_head_dim)
        pool = (-1, self.page_size, layer.tp_k_head_num, layer.qk_head_dim)
        k, v = (part.view(pool) for part in (self.token_to_kv_pool.k, self.token_to_kv_pool.v))
        offsets = self.offsets[: rows + 1]
        if self.bug == "no split-KV":
            slots = (-1, layer.tp_k_head_num, layer.qk_head_dim)
            return mha_batch_prefill_func(
                q, k.view(slots), v.view(slots), offsets, self.kv_ends[: rows + 1], self.slots, self.longest,
                self.max_context_len, causal=True, softmax_scale=layer.scaling,
            )  # fmt: skip
        if self.bug == "expanded heads":
            shape = (*k.shape[:2], layer.tp_q_head_num, k.shape[3])
            k, v = k.expand(*shape), v.expand(*shape)
        kind = torch.int32 if self.bug == "int32 lengths" else torch.int64
        used = _made(lambda: (self.lengths[:rows] + 0).to(kind))
        return unified_attention(
            q, k, v, out=q.new_empty(q.shape), cu_seqlens_q=offsets, seqused_k=used,
            max_seqlen_q=self.longest, max_seqlen_k=self.max_context_len, softmax_scale=layer.scaling,
            causal=True, window_size=(-1, -1), block_table=self.table[:rows], softcap=0.0,
            q_descale=None, k_descale=None, v_descale=None,
        )  # fmt: skip
