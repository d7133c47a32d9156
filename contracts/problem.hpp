#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/dtype.hpp"

namespace attest {

/// What the step does, in the words of the captured calls.
enum class Mode { decode, idle, extend, mixed, target_verify, draft_extend_v2, draft_decode };

/// How the call reached the kernel.
enum class Path { eager, capture, replay };

std::string_view name(Mode mode);
std::string_view name(Path path);
std::optional<Mode> mode_from_name(std::string_view text);
std::optional<Path> path_from_name(std::string_view text);

/// One attention layer of one model, as the layer wants it (not as a call passes it).
struct Model {
  std::int64_t num_q_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_dim = 64;    ///< of q and k
  std::int64_t v_head_dim = 64;  ///< of v and out
  Dtype q_dtype = Dtype::bf16;
  Dtype kv_dtype = Dtype::bf16;
  Dtype out_dtype = Dtype::bf16;
  double softmax_scale = 0.125;
  double softcap = 0;  ///< cap * tanh(score / cap); 0 = off
  std::optional<std::int64_t>
      window;                       ///< visible keys including the query's own, >= 1; absent = off
  bool sinks = false;               ///< one extra natural-log logit per q head, value 0, not scaled
  std::optional<double> q_descale;  ///< stored value * descale = real value (fp8)
  std::optional<double> k_descale;
  std::optional<double> v_descale;
  bool mla =
      false;  ///< v is the first v_head_dim elements of k's row, one kv head (DeepSeek: 576/512)
  bool cross_attention = false;  ///< every row sees exactly its request's encoder tokens

  bool operator==(const Model&) const = default;
};

/// What the scheduler means for one row group of the batch. Draft decode has one Request per
/// branch.
struct Request {
  std::int64_t sequence = 0;  ///< content id: keys of equal (sequence, position) hold equal bytes
  std::int64_t committed =
      0;  ///< keys that exist before this step's tokens (earlier draft steps included)
  std::int64_t new_tokens = 1;  ///< query tokens of this step; position of token t = committed + t
  /// Draft tree of the new tokens: parent[t] < t, -1 for a root; token t sees the committed prefix,
  /// itself and its ancestors. Empty = a chain, i.e. causal.
  std::vector<std::int64_t> tree_parent;
  std::int64_t shared_prefix =
      0;  ///< the first tokens come from `shared_sequence` (radix cache, branches)
  std::int64_t shared_sequence = 0;  ///< read only when shared_prefix > 0
  std::int64_t encoder_tokens = 0;  ///< keys of the encoder, stored before the text in req_to_token
  bool live = true;                 ///< false: a padded or dummy row; its output means nothing

  std::int64_t kv_len() const { return committed + new_tokens; }
  bool operator==(const Request&) const = default;
};

/// Element strides and place of one K or V pool. A zero stride means dense: head_stride = head_dim,
/// slot_stride = num_kv_heads * head_dim, page_stride = page_size * slot_stride; for vllm_cpu,
/// which has heads before tokens, slot_stride = head_dim and head_stride = page_size * head_dim.
struct KvStrides {
  std::int64_t page = 0;
  std::int64_t slot = 0;
  std::int64_t head = 0;
  /// Where slot 0 begins: the label of a storage, and the element of it. Empty = unknown, and the
  /// element means nothing.
  std::string storage = {};
  std::int64_t base = 0;
  bool operator==(const KvStrides&) const = default;
};

/// `count` consecutive slots from `first`.
struct SlotRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const SlotRun&) const = default;
};

/// How logical pages become physical ones where a Problem does not list its slots.
enum class Placement {
  permuted,    ///< distinct pages drawn over the whole pool by `seed`
  sequential,  ///< 0, 1, 2, ... in request order
  high,        ///< the last pages of the pool, permuted: offsets are as large as the pool allows
};

std::string_view name(Placement placement);
std::optional<Placement> placement_from_name(std::string_view text);

/// The KV pool of one layer. Slot = page * page_size + offset in page.
struct Pool {
  std::int64_t page_size = 16;
  std::int64_t num_pages = 1;
  KvStrides k;  ///< zeros = dense
  KvStrides v;
  Placement placement = Placement::permuted;
  std::uint64_t seed = 0;  ///< of the placement
  /// Slots of tokens 0 .. kv_len-1 of each request, instead of a placement. A run of first = -1 is
  /// evicted: no key there may be visible. Either empty or one entry per request.
  std::vector<std::vector<SlotRun>> slots;

  bool operator==(const Pool&) const = default;
};

/// The truth: what the scheduler means by one attention step. A value: equal Problems, recipes and
/// seeds give equal bits. Captured calls carry it beside their arguments.
struct Problem {
  Model model;
  Pool pool;
  Mode mode = Mode::decode;
  Path path = Path::eager;
  std::vector<Request> requests;
  std::int64_t context_len = 0;  ///< tokens a request may hold; sizes tables. 0 = longest kv_len
  std::optional<std::int64_t>
      num_draft_tokens;         ///< the server argument; may differ from new_tokens
  std::int64_t topk = 1;        ///< draft branches per step; > 1 means draft trees
  std::int64_t draft_step = 0;  ///< of draft decode, from 0

  std::int64_t total_new_tokens() const;
  std::int64_t max_new_tokens() const;
  std::int64_t max_kv_len() const;
  bool operator==(const Problem&) const = default;
};

/// Where and why a Problem is not one: "requests[2].tree_parent[1] = 4, must be < 1".
/// \returns nothing when the Problem is legal: every size is in range, products fit in 63 bits, the
/// pool holds the batch, trees are topologically ordered, MLA shapes are MLA's.
std::optional<std::string> problem_error(const Problem& problem);

/// One line for people: "target_verify 2 req 32:2 D128 bf16 page 64 kv [131+4, 40+3] window 128".
std::string describe(const Problem& problem);

}  // namespace attest
