#include "reference/key_stream.hpp"

#include <algorithm>
#include <utility>

namespace attest {
namespace {

bool before(const KeyRun& a, const KeyRun& b) {
  return a.sequence != b.sequence ? a.sequence < b.sequence : a.first < b.first;
}

/// Runs of one row, split so that no key stands twice within a layer.
using Layers = std::vector<std::vector<KeyRun>>;

bool fits_after(const std::vector<KeyRun>& layer, const KeyRun& run) {
  if (layer.empty()) return true;
  const KeyRun& last = layer.back();
  return last.sequence != run.sequence || last.first + last.count <= run.first;
}

Layers layers_of(const std::vector<KeyRun>& sorted) {
  Layers layers;
  for (const KeyRun& run : sorted) {
    auto layer = std::find_if(layers.begin(), layers.end(),
                              [&](const std::vector<KeyRun>& l) { return fits_after(l, run); });
    if (layer == layers.end()) layer = layers.insert(layers.end(), std::vector<KeyRun>{});
    layer->push_back(run);
  }
  return layers;
}

/// Merges overlapping and touching runs.
std::vector<KeyRun> union_of(std::vector<KeyRun> runs) {
  std::sort(runs.begin(), runs.end(), before);
  std::vector<KeyRun> merged;
  for (const KeyRun& run : runs) {
    if (!merged.empty() && merged.back().sequence == run.sequence &&
        merged.back().first + merged.back().count >= run.first) {
      KeyRun& last = merged.back();
      last.count = std::max(last.first + last.count, run.first + run.count) - last.first;
    } else {
      merged.push_back(run);
    }
  }
  return merged;
}

/// Where `run`, a part of one run of `layer`, lies in the stream.
StreamInterval locate(std::span<const StreamRun> layer, const KeyRun& run) {
  const auto after = std::upper_bound(
      layer.begin(), layer.end(), run,
      [](const KeyRun& key, const StreamRun& entry) { return before(key, entry.keys); });
  const StreamRun& holder = *(after - 1);
  const std::int64_t begin = holder.offset + (run.first - holder.keys.first);
  return {begin, begin + run.count};
}

void join_touching(std::vector<StreamInterval>& intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<StreamInterval> joined;
  for (const StreamInterval& interval : intervals) {
    if (!joined.empty() && joined.back().end == interval.begin) {
      joined.back().end = interval.end;
    } else {
      joined.push_back(interval);
    }
  }
  intervals = std::move(joined);
}

}  // namespace

KeyStream make_key_stream(const Attended& meaning, std::span<const std::int64_t> rows) {
  KeyStream stream;
  std::vector<Layers> layers_of_row;
  std::size_t deepest = 0;
  for (const std::int64_t r : rows) {
    std::vector<KeyRun> known = meaning.rows[static_cast<std::size_t>(r)].keys;
    const auto dropped =
        std::erase_if(known, [](const KeyRun& run) { return run.sequence == unknown_sequence; });
    std::erase_if(known, [](const KeyRun& run) { return run.count <= 0; });
    std::sort(known.begin(), known.end(), before);
    stream.sees_unknown.push_back(dropped > 0 ? 1 : 0);
    deepest = std::max(deepest, layers_of_row.emplace_back(layers_of(known)).size());
  }
  stream.visible.resize(rows.size());
  for (std::size_t depth = 0; depth < deepest; ++depth) {
    std::vector<KeyRun> all;
    for (const Layers& layers : layers_of_row) {
      if (depth < layers.size()) all.insert(all.end(), layers[depth].begin(), layers[depth].end());
    }
    const std::size_t first_run = stream.runs.size();
    for (const KeyRun& run : union_of(std::move(all))) {
      stream.runs.push_back({run, stream.length});
      stream.length += run.count;
    }
    const std::span<const StreamRun> layer = std::span(stream.runs).subspan(first_run);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (depth >= layers_of_row[i].size()) continue;
      for (const KeyRun& run : layers_of_row[i][depth]) {
        stream.visible[i].push_back(locate(layer, run));
      }
    }
  }
  for (std::vector<StreamInterval>& intervals : stream.visible) join_touching(intervals);
  return stream;
}

}  // namespace attest
