#include "backends/worker/call_image.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "contracts/byte_overlap.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/returned_output.hpp"
#include "contracts/storage_label.hpp"
#include "memory/host_tensors.hpp"
#include "memory/pool_memory.hpp"
#include "memory/tensor_layout.hpp"

namespace attest {
namespace {

/// Every tensor starts on a page of its own: base addresses are as aligned as a framework's.
constexpr std::size_t page = 4096;
constexpr auto guard = static_cast<std::int64_t>(GuardedBuffer::guard_bytes);
/// Between the elements of a strided array: as an index it is outside every pool.
constexpr std::byte gap{0x7f};

std::size_t spanned_bytes(const TensorMeta& meta) {
  return static_cast<std::size_t>(spanned_elements(meta)) * size_bytes(meta.dtype);
}

/// The values at their strides, in the array's dtype. Little endian, as this program's workers are.
GuardedBuffer make_array(const IntArray& array) {
  GuardedBuffer buffer(spanned_bytes(array.meta), gap);
  const std::size_t width = size_bytes(array.meta.dtype);
  std::vector<std::int64_t> at(array.meta.shape.size(), 0);
  if (buffer.size() > 0) {
    for (const std::int64_t value : array.values) {
      std::int64_t element = 0;
      for (std::size_t d = 0; d < at.size(); ++d) element += at[d] * array.meta.stride(d);
      std::memcpy(buffer.data() + static_cast<std::size_t>(element) * width, &value, width);
      for (std::size_t d = at.size(); d-- > 0;) {
        if (++at[d] < array.meta.shape[d]) break;
        at[d] = 0;
      }
    }
  }
  buffer.seal();
  return buffer;
}

GuardedBuffer make_factor(const TensorMeta& meta, std::optional<double> factor) {
  GuardedBuffer buffer(spanned_bytes(meta), gap);
  const auto value = static_cast<float>(factor.value_or(1));
  for (std::size_t at = 0; at + sizeof value <= buffer.size(); at += sizeof value) {
    std::memcpy(buffer.data() + at, &value, sizeof value);
  }
  buffer.seal();
  return buffer;
}

bool is_v(std::string_view key) { return key.starts_with("v"); }

bool shares_memory(const TensorMeta& a, const TensorMeta& b) {
  return same_storage(a.storage, b.storage) && a.storage_offset == b.storage_offset;
}

}  // namespace

/// The harness's copy of one tensor and where it goes.
struct CallImage::Part {
  std::string name;
  TensorMeta meta;
  ArgumentRole role = ArgumentRole::input;
  std::variant<GuardedBuffer, KvPool> memory;
  std::size_t at = 0;  ///< of the first byte, guards and margins included

  std::span<std::byte> bytes() const {
    if (const auto* buffer = std::get_if<GuardedBuffer>(&memory)) {
      return {buffer->data() - guard, buffer->size() + 2 * GuardedBuffer::guard_bytes};
    }
    const auto& pool = std::get<KvPool>(memory);
    const PoolBytes all = pool.contents().front();
    return {pool.base() + all.offset, all.bytes.size()};
  }
  std::int64_t before() const {
    const auto* pool = std::get_if<KvPool>(&memory);
    return pool ? -pool->contents().front().offset : guard;
  }
};

/// Makes the tensors of one call, one by one.
class CallImage::Builder {
 public:
  /// \param heads_first  the caches of the call have heads before tokens
  Builder(CallImage& image, const TensorSource& source, Stored stored, bool heads_first)
      : image_(image), source_(source), stored_(stored), heads_first_(heads_first) {}

  void operator()(std::string_view key, const TensorMeta& meta) {
    const ArgumentRole role = tensor(key).role;
    if (role != ArgumentRole::pool) return add(key, meta, buffer_of(key, meta, role));
    if (const Part* other = twin(meta)) return put(*other, tensor(key));
    KvPool pool(source_, is_v(key) ? PoolHalf::v : PoolHalf::k,
                heads_first_ ? swap_heads_and_tokens(meta) : meta, stored_);
    if (pool.sparse()) throw std::invalid_argument(std::string(key) + " is sparse memory");
    add(key, meta, std::move(pool));
  }
  void operator()(std::string_view key, const IntArray& array) {
    add(key, array.meta, make_array(array));
  }
  template <class T>
  void operator()(std::string_view key, const std::optional<T>& value) {
    if (value) (*this)(key, *value);
  }
  template <class T>
  void operator()(std::string_view /*key*/, const T& /*value*/) {}

 private:
  GuardedBuffer buffer_of(std::string_view key, const TensorMeta& meta, ArgumentRole role) const {
    if (role == ArgumentRole::output) return make_output(meta, image_.sentinel_);
    if (role == ArgumentRole::scratch) return GuardedBuffer(spanned_bytes(meta), std::byte{0xff});
    if (key == "sinks" || key == "sink_ptr" || key == "s_aux") return make_sinks(source_, meta);
    if (key == "k_extend" || key == "key") return make_new_kv(source_, meta, false);
    if (key == "v_extend" || key == "value") return make_new_kv(source_, meta, true);
    const Model& model = source_.problem().model;
    if (key == "q_descale" || key == "q_scale") return make_factor(meta, model.q_descale);
    if (key == "k_descale" || key == "k_scale" || key == "kv_scale")
      return make_factor(meta, model.k_descale);
    if (key == "v_descale" || key == "v_scale") return make_factor(meta, model.v_descale);
    if (key == "qq_bias") throw std::invalid_argument("qq_bias has no contents");
    return make_q(source_, meta);
  }

  const Part* twin(const TensorMeta& meta) const {
    for (const Part& part : image_.parts_) {
      const bool pool = part.role == ArgumentRole::pool;
      if (pool && shares_memory(part.meta, meta)) return &part;  // MLA: V lies in K's rows
    }
    return nullptr;
  }

  TensorArgument& tensor(std::string_view key) const {
    const auto found = std::find_if(image_.arguments_.begin(), image_.arguments_.end(),
                                    [&](const Argument& a) { return a.name == key; });
    return std::get<TensorArgument>(found->value);
  }

  void add(std::string_view key, const TensorMeta& meta,
           std::variant<GuardedBuffer, KvPool> memory) {
    TensorArgument& argument = tensor(key);
    image_.parts_.push_back(
        {std::string(key), meta, argument.role, std::move(memory), image_.bytes_});
    const Part& part = image_.parts_.back();
    image_.bytes_ += (part.bytes().size() + page - 1) / page * page;
    put(part, argument);
  }

  static void put(const Part& part, TensorArgument& argument) {
    argument.first = static_cast<std::int64_t>(part.at);
    argument.end = argument.first + static_cast<std::int64_t>(part.bytes().size());
    argument.at = argument.first + part.before();
  }

  CallImage& image_;
  const TensorSource& source_;
  Stored stored_;
  bool heads_first_;
};

CallImage::CallImage(const Call& call, const TensorSource& source, int sentinel)
    : arguments_(arguments_of(call)), sentinel_(sentinel) {
  const auto* decode = std::get_if<DecodeCall>(&call);
  if (decode && decode->key && decode->value) written_slots_ = decode->loc.values;
  Builder build(*this, source, decode ? Stored::committed : Stored::committed_and_new,
                std::holds_alternative<VllmCpuCall>(call));
  std::visit(
      [&](const auto& c) {
        using CallType = std::decay_t<decltype(c)>;
        std::apply([&](const auto&... fields) { (build(fields.key, c.*fields.member), ...); },
                   call_fields<CallType>);
      },
      call);
  if (const auto out = returned_output(call)) build("out", *out);
}

CallImage::~CallImage() = default;

Answer CallImage::supports(const Call& call) {
  for (const Argument& argument : arguments_of(call)) {
    const auto* tensor = std::get_if<TensorArgument>(&argument.value);
    if (!tensor) continue;
    if (argument.name == "qq_bias") return Answer::no("qq_bias has no contents");
    const bool large = static_cast<std::int64_t>(spanned_bytes(tensor->meta)) > largest_dense_pool;
    if (tensor->role == ArgumentRole::pool && large && large_pool_wanted() != LargePool::dense) {
      return Answer::no(argument.name + " spans " + std::to_string(spanned_bytes(tensor->meta)) +
                        " bytes; sparse memory does not travel to another process "
                        "(ATTEST_KV_MEMORY=dense makes it plain)");
    }
  }
  return {};
}

void CallImage::write(std::span<std::byte> to) const {
  for (const Part& part : parts_) {
    const auto from = part.bytes();
    std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(part.at));
  }
}

void CallImage::collect(std::span<const std::byte> from, RunResult& result) {
  for (const Part& part : parts_) {
    const auto mine = part.bytes();
    const auto theirs = from.subspan(part.at, mine.size());
    const bool same = std::equal(mine.begin(), mine.end(), theirs.begin());
    if (same && part.role != ArgumentRole::output) continue;
    std::copy(theirs.begin(), theirs.end(), mine.begin());
    std::optional<std::string> damage;
    if (const auto* pool = std::get_if<KvPool>(&part.memory)) {
      damage = pool->damage(written_slots_);
    } else {
      const auto& buffer = std::get<GuardedBuffer>(part.memory);
      const bool output = part.role == ArgumentRole::output;
      if (output) result.out = read_output(buffer, part.meta, sentinel_);
      damage = output ? output_damage(buffer, part.meta, sentinel_) : buffer.damage();
    }
    if (damage) result.damage.push_back(part.name + ": " + *damage);
  }
}

}  // namespace attest
