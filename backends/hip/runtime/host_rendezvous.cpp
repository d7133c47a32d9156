#include <algorithm>
#include <cstring>
#include <string>

#include "backends/hip/runtime/host_block.hpp"

// Where lanes meet: wave operations and the block's barrier, and what is said when they do not.

namespace attest::hip::host {
namespace {

std::string text(Index index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

bool same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

bool same(const std::source_location& a, const std::source_location& b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  return a.line() == b.line() && a.column() == b.column() && same(a.file_name(), b.file_name()) &&
         same(a.function_name(), b.function_name());
}

std::string text(const std::source_location& site) {
  const std::string path = site.file_name();
  return path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(site.line());
}

}  // namespace

bool BlockRunner::do_wave_work() {
  bool any = false;
  for (Lane& lane : wave_) {
    if (lane.state != State::at_wave) continue;
    any = true;
    work_for(lane);
  }
  return any;
}

void BlockRunner::work_for(Lane& first) {
  std::size_t members = 0;
  records_.fill(nullptr);
  for (std::size_t i = 0; i < wave_.size(); ++i) {
    const Lane& lane = wave_[i];
    if (lane.state != State::at_wave || !same(lane.site, first.site)) continue;
    records_[i] = lane.record;
    ++members;
  }
  check_whole(first, members);
  first.work({records_.data(), static_cast<int>(settings_->wave_size)});
  for (std::size_t i = 0; i < wave_.size(); ++i) {
    if (records_[i] != nullptr) wave_[i].state = State::running;
  }
}

void BlockRunner::check_whole(const Lane& first, std::size_t members) const {
  if (settings_->wave_size != 32 || settings_->partial_waves) return;
  std::size_t living = 0;
  const Lane* elsewhere = nullptr;
  for (std::size_t i = 0; i < wave_.size(); ++i) {
    if (wave_[i].state == State::done) continue;
    ++living;
    if (records_[i] == nullptr) elsewhere = &wave_[i];
  }
  if (members == living) return;
  throw KernelFault(where() + ": " + thread(first) + " " + what_it_does(first) + " with " +
                    std::to_string(members) + " of the wave's " + std::to_string(living) +
                    " living lanes, but " + thread(*elsewhere) + " " + what_it_does(*elsewhere));
}

void BlockRunner::fail_reading_inactive(int lane, int other) const {
  const Lane& reader = wave_[static_cast<std::size_t>(lane)];
  std::string what = where() + ": " + thread(reader) + " " + what_it_does(reader) +
                     " and reads lane " + std::to_string(other) + ", which is not there: ";
  if (static_cast<std::size_t>(other) >= wave_.size()) {
    what += "the block ends before it";
  } else {
    const Lane& missing = wave_[static_cast<std::size_t>(other)];
    what += thread(missing) + " " + what_it_does(missing);
  }
  throw KernelFault(what);
}

bool BlockRunner::open_barrier() {
  const auto waits = [](const Lane& lane) { return lane.state == State::at_barrier; };
  const auto waiting = std::find_if(lanes_.begin(), lanes_.end(), waits);
  if (waiting == lanes_.end()) return false;
  for (const Lane& lane : lanes_) {
    const bool gone = lane.state == State::done;
    if (gone ? settings_->early_exit : same(lane.site, waiting->site)) continue;
    throw KernelFault(where() + ": " + thread(*waiting) + " " + what_it_does(*waiting) + ", but " +
                      thread(lane) + " " + what_it_does(lane));
  }
  for (Lane& lane : lanes_) {
    if (waits(lane)) lane.state = State::running;
  }
  return true;
}

std::string BlockRunner::where() const {
  return std::string(launch_->kernel) + ", block " + text(block_);
}

std::string BlockRunner::thread(const Lane& lane) { return "thread " + text(lane.index); }

std::string BlockRunner::what_it_does(const Lane& lane) {
  if (lane.state == State::done) return "has returned";
  if (lane.state == State::running) return "runs";
  return std::string("waits at ") + lane.waits_at + ", " + text(lane.site);
}

}  // namespace attest::hip::host
