#include "backends/amx/engine_lease.hpp"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

namespace attest::amx {
namespace {

const char* wish() { return std::getenv("ATTEST_AMX"); }

struct Turns {
  std::mutex mutex;
  std::condition_variable over;
  Engine engine = Engine::off;
  int launches = 0;
};

Turns& turns() {
  static Turns one;
  return one;
}

void require_native() {
  static const Support support = probe(true);
  if (!support.native()) throw EngineUnavailable(support.reason);
}

void require_emulated() {
  // Tile instructions would run on the CPU instead of trapping, and nobody would notice.
  if (has_permission()) {
    throw EngineUnavailable("this process may use the CPU's tiles, so it cannot emulate them");
  }
}

}  // namespace

const Choice& process_engine() {
  static const Choice choice = choose(wish());
  return choice;
}

std::string_view how(Engine engine) {
  switch (engine) {
    case Engine::native:
      return "tiles of the CPU";
    case Engine::patch:
      return "tiles emulated, instructions patched";
    case Engine::trap:
      return "tiles emulated, every instruction trapped";
    case Engine::off:
      break;
  }
  return "off";
}

Answer possible(Engine engine) {
  const Choice& usual = process_engine();
  if (usual.engine == engine) return {};
  if (usual.engine == Engine::off) return Answer::no(usual.reason);
  if (const char* const one = wish(); one != nullptr && *one != '\0') {
    return Answer::no("ATTEST_AMX=" + std::string(one) + " leaves only @" +
                      std::string(name(usual.engine)));
  }
  if (engine != Engine::native) return {};
  return Answer::no("no native tiles: " + probe(false).reason);
}

EngineLease::EngineLease(Engine engine) {
  if (engine == Engine::off) throw EngineUnavailable("AMX is off");
  Turns& all = turns();
  std::unique_lock lock(all.mutex);
  all.over.wait(lock, [&] { return all.launches == 0 || all.engine == engine; });
  if (all.engine != engine) {
    if (engine == Engine::native) {
      require_native();
    } else {
      require_emulated();
      install(engine);
    }
    all.engine = engine;
  }
  ++all.launches;
}

EngineLease::~EngineLease() {
  Turns& all = turns();
  const std::lock_guard lock(all.mutex);
  if (--all.launches == 0) all.over.notify_all();
}

}  // namespace attest::amx
