"""A made-up server around a backend: layers, pools, a request table and forward batches."""

import types

from .harness import torch
from .sglang_source import Mode


class Layer:
    layer_id, scaling, logit_cap, sliding_window_size = 0, 128**-0.5, 0.0, -1
    is_cross_attention, attn_type, k_scale, v_scale = False, "decoder", None, None

    def __init__(self, q_heads=8, kv_heads=2, dim=128):
        self.tp_q_head_num, self.tp_k_head_num, self.tp_v_head_num = q_heads, kv_heads, kv_heads
        self.qk_head_dim = self.v_head_dim = self.head_dim = dim


class Pool:
    """A KV pool with shapes and no data."""

    def __init__(self, tokens, page_size, layer):
        self.size, self.page_size = tokens, page_size
        self.dtype = torch.bfloat16
        shape = (tokens + page_size, layer.tp_k_head_num, layer.qk_head_dim)
        self.k, self.v = (torch.empty(shape, dtype=self.dtype) for _ in range(2))

    def get_kv_buffer(self, layer_id):
        return self.k, self.v

    def get_key_buffer(self, layer_id):
        return self.k

    def get_value_buffer(self, layer_id):
        return self.v

    def set_kv_buffer(self, *_, **__):
        pass


class World:
    """A server with requests of the given committed lengths and room for drafts behind them."""

    def __init__(
        self, lengths, draft_tokens, page_size=16, context_len=512, tokens=8192, layer=None
    ):
        self.layer = layer or Layer()
        self.lengths, self.draft_tokens, self.page_size = list(lengths), draft_tokens, page_size
        self.pool = Pool(tokens, page_size, self.layer)
        self.table = torch.zeros(len(lengths) + 1, context_len, dtype=torch.int32)
        # Requests lie apart, in reverse, at whole pages: a mixed-up row shows.
        per_request = context_len + page_size
        for i in range(len(lengths)):
            first = (len(lengths) - i) * per_request // page_size * page_size
            self.table[i, :] = torch.arange(first, first + context_len, dtype=torch.int32)
        requests = types.SimpleNamespace(req_to_token=self.table, size=len(lengths) + 1)
        config = types.SimpleNamespace(
            dtype=torch.bfloat16,
            is_multimodal=False,
            num_attention_heads=self.layer.tp_q_head_num,
            head_dim=128,
            attention_arch="mha",
            context_len=context_len,
            v_head_dim=128,
            get_num_kv_heads=lambda _: self.layer.tp_k_head_num,
        )
        args = types.SimpleNamespace(
            page_size=page_size,
            speculative_num_draft_tokens=draft_tokens,
            speculative_num_steps=3,
            speculative_eagle_topk=1,
        )
        self.runner = types.SimpleNamespace(
            model_config=config,
            server_args=args,
            device="cpu",
            kv_cache_dtype=torch.bfloat16,
            dtype=torch.bfloat16,
            req_to_token_pool=requests,
            token_to_kv_pool=self.pool,
            sliding_window_size=None,
            decode_attention_backend_str="aiter",
            kv_index_translator=None,
            spec_algorithm=None,
            token_to_kv_pool_allocator=types.SimpleNamespace(get_kvcache=lambda: self.pool),
            ps=types.SimpleNamespace(tp_size=1, attn_tp_size=1),
        )
        self.settings = dict(
            speculative_num_draft_tokens=draft_tokens, speculative_num_steps=3, page_size=page_size
        )

    def backend(self):
        """What the truth is read from: an attention backend without a kernel."""
        args = self.runner.server_args
        return types.SimpleNamespace(
            req_to_token_pool=self.runner.req_to_token_pool,
            token_to_kv_pool=self.pool,
            max_context_len=self.runner.model_config.context_len,
            num_draft_tokens=self.draft_tokens,
            topk=args.speculative_eagle_topk,
            page_size=self.page_size,
        )

    def batch(self, mode, new_tokens, lengths=None):
        """A forward batch; seq_lens means what SGLang means by it in that mode."""
        committed = lengths or self.lengths
        slots = [
            self.table[i, length : length + new].tolist()
            for i, (length, new) in enumerate(zip(committed, new_tokens))
        ]
        own = [0 if mode == "target_verify" else new for new in new_tokens]
        totals = [length + new for length, new in zip(committed, own)]
        draft = max(new_tokens)
        ends = [sum(totals[:i]) for i in range(len(totals) + 1)]
        flat = [slot for i, total in enumerate(totals) for slot in self.table[i, :total].tolist()]
        starts = [sum(new_tokens[:i]) for i in range(len(new_tokens) + 1)]

        def ragged(*_):
            return _int32(flat), _int32(ends), _int32(starts), None

        spec = types.SimpleNamespace(
            draft_token_num=self.draft_tokens,
            custom_mask=None,
            tree_topk=1,
            topk=1,
            num_tokens_per_req=draft,
            generate_attn_arg_prefill=ragged,
        )
        return types.SimpleNamespace(
            forward_mode=Mode(mode),
            batch_size=len(committed),
            input_ids=torch.zeros(sum(new_tokens), dtype=torch.int64),
            seq_lens=torch.tensor(totals, dtype=torch.int64),
            seq_lens_cpu=torch.tensor(totals, dtype=torch.int64),
            seq_lens_sum=sum(totals),
            req_pool_indices=torch.arange(len(committed), dtype=torch.int64),
            out_cache_loc=torch.tensor([slot for own in slots for slot in own], dtype=torch.int64),
            encoder_lens=None,
            encoder_out_cache_loc=None,
            attn_attend_prefix_cache=None,
            spec_info=None if mode in ("decode", "extend") else spec,
            extend_seq_lens=_int32(new_tokens),
            extend_seq_lens_cpu=list(new_tokens),
            extend_prefix_lens=_int32(committed),
            extend_prefix_lens_cpu=list(committed),
            extend_start_loc=_int32(starts[:-1]),
            req_to_token_pool=self.runner.req_to_token_pool,
        )

    def rows(self, count):
        """(q, k, v) of so many new tokens."""
        heads = self.layer
        q = torch.empty(count, heads.tp_q_head_num * heads.qk_head_dim, dtype=torch.bfloat16)
        k, v = (
            torch.empty(count, heads.tp_k_head_num, heads.qk_head_dim, dtype=torch.bfloat16)
            for _ in range(2)
        )
        return q, k, v


def _int32(values):
    return torch.tensor(list(values), dtype=torch.int32)
