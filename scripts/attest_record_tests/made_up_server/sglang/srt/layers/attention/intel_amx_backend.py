"""A made-up backend with the call sites of SGLang's AMX backend and, where asked for, its bug."""

import torch

LAUNCHED = []


def extend_attention_cpu(*_):
    LAUNCHED.append("extend_attention_cpu")


def decode_attention_cpu(*_):
    LAUNCHED.append("decode_attention_cpu")


class IntelAMXAttnBackend:
    topk, use_mla = 1, False

    def __init__(self, runner, rows, bug=""):
        self.req_to_token_pool, self.token_to_kv_pool = (
            runner.req_to_token_pool,
            runner.token_to_kv_pool,
        )
        self.kv_cache_dtype, self.page_size = runner.kv_cache_dtype, 1
        self.num_draft_tokens = runner.server_args.speculative_num_draft_tokens
        self.max_context_len = int(runner.req_to_token_pool.req_to_token.shape[1])
        self.bug = bug
        self.lengths = torch.zeros(rows, dtype=torch.int64)
        self.extend_attention_fwd = extend_attention_cpu
        self.decode_attention_fwd = decode_attention_cpu

    def init_forward_metadata(self, batch):
        new = getattr(self, "attest_draft_step", 0) + 1
        if batch.forward_mode.is_target_verify():
            new = self.num_draft_tokens
        for i, length in enumerate(batch.seq_lens.tolist()):
            self.lengths[i] = length + new

    def _lengths(self, batch):
        return batch.seq_lens if self.bug else self.lengths[: batch.batch_size]

    def forward_extend(self, q, k, v, layer, forward_batch):
        heads = (-1, layer.tp_q_head_num, layer.qk_head_dim)
        batch, pool = forward_batch, self.token_to_kv_pool
        self.extend_attention_fwd(
            q.view(heads), k, v, q.new_empty(q.shape).view(heads), pool.k, pool.v,
            self.req_to_token_pool.req_to_token, batch.req_pool_indices, self._lengths(batch),
            batch.extend_seq_lens, batch.extend_start_loc, self.num_draft_tokens, layer.scaling, 0.0,
            False, 0, None, None, None,
        )  # fmt: skip

    def forward_decode(self, q, k, v, layer, forward_batch):
        heads = (-1, layer.tp_q_head_num, layer.qk_head_dim)
        batch, pool = forward_batch, self.token_to_kv_pool
        logits = torch.empty(
            batch.batch_size, layer.tp_q_head_num, 8, layer.v_head_dim + 1, dtype=torch.float32
        )
        self.decode_attention_fwd(
            q.view(heads), pool.k, pool.v, q.new_empty(q.shape).view(heads), k, v,
            batch.out_cache_loc, logits, self.req_to_token_pool.req_to_token,
            batch.req_pool_indices, self._lengths(batch), layer.scaling, 0.0, False, 0, None, None,
        )  # fmt: skip


class IntelAMXMultiStepDraftBackend:
    def __init__(self, runner, topk, speculative_num_steps, bug=""):
        self.topk, self.speculative_num_steps = topk, speculative_num_steps
        self.attn_backends = [
            IntelAMXAttnBackend(runner, 2, bug) for _ in range(speculative_num_steps - 1)
        ]
