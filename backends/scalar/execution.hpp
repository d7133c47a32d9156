#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/scalar/kv_view.hpp"
#include "backends/scalar/operands.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/kv_pool.hpp"

namespace attest {

/// The K and V pools of one call. V shares K's memory where both are views of one storage from
/// the same element (MLA).
struct KvPools {
  KvPools(const TensorSource& source, const TensorMeta& k, const TensorMeta& v, Stored stored);
  KvPool k_pool;
  std::optional<KvPool> v_pool;
  KvView k, v;
  std::vector<std::int64_t> written_slots;  ///< that the call stores to

  /// The views as a kernel with a mistake in its strides makes them; any other leaves them.
  void mistake_strides(const TensorMeta& k, const TensorMeta& v, Fault fault);

  /// Whether both pools have writable memory at a slot (page, where pages are tokens).
  bool can_store(std::int64_t slot) const;
  void add_damage(std::vector<std::string>& damage) const;
  /// What the pools' memory noticed and is.
  void add_account(RunResult& result) const;
};

/// K and V of one token as a kernel whose offsets wrap like that finds them (zeros for a null
/// pointer); nothing where either lies outside the readable memory.
std::optional<KeyRow> key_at(const KvPools& pools, std::int64_t page, std::int64_t in_page,
                             const WrapModel& wrap);

/// The key under the descriptor_size_in_32_bits fault: zeros past the pool's size modulo 2^32
/// elements; under any other as it is.
KeyRow cut_by_descriptor(KeyRow key, const KvPools& pools, std::int64_t page, std::int64_t in_page,
                         Fault fault);

/// Appends "<name>: <what the guard bytes show>" when there is something to say.
void add_guard_damage(const char* name, const GuardedBuffer& buffer,
                      std::vector<std::string>& damage);

/// Where the output's rows and heads lie.
enum class OutLayout {
  strided,  ///< the kernel takes the strides of dimensions 0 and 1
  dense,    ///< the kernel assumes a contiguous (rows, heads, dim)
};

/// What every signature does around the kernel: the buffers of one launch, the arguments all share,
/// and the account afterwards.
class Execution {
 public:
  Execution(const TensorSource& source, const RunOptions& options, const Mistake& mistake,
            const TensorMeta& q, const TensorMeta& out, OutLayout layout);

  /// Scale, cap and sinks of the call. \pre kv heads and dims are set (use_pools).
  void set_features(double scale, double softcap, const std::optional<TensorMeta>& sinks);
  /// Factors of one-element descale tensors; an argument that is not passed is 1.
  void set_descales(bool q, bool k, bool v);
  void use_pools(const KvPools& pools);
  /// K and V of the new tokens where they come from tensors of their own.
  void use_fresh(const KvView& k, const KvView& v);
  /// Splits the call asks for; RunOptions::kv_splits and ::form override it.
  void set_splits(std::int64_t asked);

  /// Says so when `array` gives request i rows that the tensors do not have; they are left out.
  void lint_rows_outside(const char* array, std::size_t i, std::int64_t first, std::int64_t count,
                         std::int64_t rows);

  /// Launches and collects. `kernel`: in place of attend(op, groups). \throws KernelRefusal
  RunResult run(std::span<const RowGroup> groups, const KvPools& pools,
                const std::function<void(const Operands&)>& kernel = {});

  Operands op;
  Mistake mistake;
  std::vector<std::string> lints;

 private:
  void count_bytes(std::span<const RowGroup> groups, const KvPools& pools, RunResult& result) const;

  const TensorSource& source_;
  const RunOptions& options_;
  TensorMeta out_meta_;
  GuardedBuffer q_, out_;
  std::optional<GuardedBuffer> sinks_;
  std::vector<float> lse_;
  bool v_aliases_k_ = false;
};

/// Tokens that the stale_page fault takes from the previous request in tables of single slots.
inline constexpr std::int64_t stale_slots = 16;

/// A metadata value no kernel of this size can mean, brought into a range whose sums cannot
/// overflow. Comparisons with real sizes come out as they would have.
std::int64_t saturated_count(std::int64_t value);

}  // namespace attest
