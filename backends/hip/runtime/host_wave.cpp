#include "backends/hip/runtime/host_wave.hpp"

#include "backends/hip/runtime/host_block.hpp"

namespace attest::hip::host {
namespace {

struct VoteRecord {
  int predicate = 0;
  Votes votes;
};

void count_votes(const WaveGroup& group) {
  Votes votes;
  for (int i = 0; i < group.lanes; ++i) {
    const auto* record = static_cast<const VoteRecord*>(group.records[i]);
    if (record == nullptr) continue;
    votes.present |= std::uint64_t{1} << i;
    if (record->predicate != 0) votes.yes |= std::uint64_t{1} << i;
  }
  for (int i = 0; i < group.lanes; ++i) {
    if (group.records[i] != nullptr) static_cast<VoteRecord*>(group.records[i])->votes = votes;
  }
}

struct ShuffleRecord {
  Shuffle kind = Shuffle::from;
  int operand = 0;
  int width = 0;
  std::uint64_t bits = 0;
  std::uint64_t result = 0;
};

/// The lane that `lane` reads, as HIP and CUDA define it: outside the segment of `width` lanes,
/// itself; __shfl wraps inside the segment.
int source_lane(const ShuffleRecord& record, int lane) {
  const int first = lane & ~(record.width - 1);
  const int past = first + record.width;
  int source = lane;
  switch (record.kind) {
    case Shuffle::from:
      return first + (record.operand & (record.width - 1));
    case Shuffle::exclusive_or:
      source = lane ^ record.operand;
      return source >= past ? lane : source;
    case Shuffle::down:
      source = lane + record.operand;
      return source >= past ? lane : source;
    case Shuffle::up:
      source = lane - record.operand;
      return source < first ? lane : source;
  }
  return lane;
}

void exchange(const WaveGroup& group) {
  for (int i = 0; i < group.lanes; ++i) {
    auto* record = static_cast<ShuffleRecord*>(group.records[i]);
    if (record == nullptr) continue;
    const int source = source_lane(*record, i);
    if (source >= group.lanes || group.records[source] == nullptr) {
      group.fail_reading_inactive(i, source);
    }
    record->result = static_cast<const ShuffleRecord*>(group.records[source])->bits;
  }
}

constexpr const char* shuffle_names[] = {"__shfl", "__shfl_xor", "__shfl_down", "__shfl_up"};

}  // namespace

void WaveGroup::fail_reading_inactive(int lane, int other) const {
  BlockRunner::current().fail_reading_inactive(lane, other);
}

void join_wave(const char* name, WaveWork work, void* record, std::source_location site) {
  BlockRunner::current().join_wave(name, work, record, site);
}

void wait_at_barrier(std::source_location site) { BlockRunner::current().wait_at_barrier(site); }

Votes vote(const char* name, int predicate, std::source_location site) {
  VoteRecord record{predicate, {}};
  BlockRunner::current().join_wave(name, count_votes, &record, site);
  return record.votes;
}

std::uint64_t shuffle_bits(Shuffle kind, std::uint64_t bits, int operand, int width,
                           std::source_location site) {
  const int segment = width == 0 ? static_cast<int>(current_thread.wave_size) : width;
  ShuffleRecord record{kind, operand, segment, bits, 0};
  BlockRunner::current().join_wave(shuffle_names[static_cast<std::size_t>(kind)], exchange, &record,
                                   site);
  return record.result;
}

}  // namespace attest::hip::host
