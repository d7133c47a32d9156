#include "contracts/aiter_routes.hpp"

#include <array>
#include <vector>

namespace attest {
namespace {

constexpr std::array releases = {AiterRelease::v0_5_19, AiterRelease::v0_5_23, AiterRelease::later};
constexpr std::array columns = {Mode::decode, Mode::draft_decode, Mode::extend, Mode::target_verify,
                                Mode::draft_extend_v2};

constexpr AiterRoute unified = {Signature::unified, false};
constexpr AiterRoute paged_ragged = {Signature::paged_ragged, true};
constexpr AiterRoute batch_prefill = {Signature::batch_prefill, true};
constexpr AiterRoute legacy_extend = {Signature::legacy_extend, true};
constexpr AiterRoute mla_decode = {Signature::mla_decode, true};

bool is_prompt(Mode mode) { return mode == Mode::extend || mode == Mode::mixed; }

AiterRoute of_drafts(const AiterSwitches& s, AiterRelease release, bool on_unified) {
  const bool verify_is_unified = on_unified && s.unified_verify && s.topk == 1;
  const bool own_switch = release == AiterRelease::later ? s.topk <= 1 : verify_is_unified;
  if (own_switch && s.unified_draft_extend) return unified;
  // What is left runs as a prompt does.
  return on_unified && release != AiterRelease::v0_5_19 ? unified : batch_prefill;
}

std::string_view text_of(const AiterRoute& route) {
  return route.signature ? name(*route.signature) : "not described";
}

std::string_view word(bool on) { return on ? "on" : "off"; }

std::string row_of(const AiterSwitches& s, AiterRelease release) {
  std::string row = "| " + std::string(name(release)) + " | ";
  if (s.mla) {
    row += "MLA | any | any | any";
  } else {
    row += s.window_pool ? "window pool" : s.unified_attn ? "on" : "off";
    row += " | " + std::string(word(s.unified_verify)) + " | " +
           std::string(word(s.unified_draft_extend)) + " | " + (s.topk > 1 ? "> 1" : "1");
  }
  for (const Mode mode : columns) {
    row += " | " + std::string(text_of(aiter_route(s, release, mode)));
  }
  return row + " |\n";
}

std::vector<AiterSwitches> combinations() {
  std::vector<AiterSwitches> all = {{.mla = true}};
  constexpr std::array both = {true, false};
  for (const auto& [pool, attn] : {std::pair(true, false), {false, true}, {false, false}}) {
    for (const bool verify : both) {
      for (const bool draft_extend : both) {
        for (const std::int64_t topk : {std::int64_t{1}, std::int64_t{4}}) {
          all.push_back({.window_pool = pool,
                         .unified_attn = attn,
                         .unified_verify = verify,
                         .unified_draft_extend = draft_extend,
                         .topk = topk});
        }
      }
    }
  }
  return all;
}

}  // namespace

std::string_view name(AiterRelease release) {
  constexpr std::array<std::string_view, 3> names = {"0.5.19", "0.5.20 to 0.5.23", "later"};
  return names[static_cast<std::size_t>(release)];
}

AiterRoute aiter_route(const AiterSwitches& s, AiterRelease release, Mode mode) {
  if (s.mla) return is_prompt(mode) ? AiterRoute{} : mla_decode;
  const bool on_unified = s.unified_attn || s.window_pool;
  switch (mode) {
    case Mode::decode:
    case Mode::idle:
    case Mode::draft_decode:
      return on_unified ? unified : paged_ragged;
    case Mode::extend:
    case Mode::mixed:
      return on_unified && release != AiterRelease::v0_5_19 ? unified : batch_prefill;
    case Mode::target_verify:
      return on_unified && s.unified_verify && s.topk == 1 ? unified : legacy_extend;
    case Mode::draft_extend_v2:
      break;
  }
  return of_drafts(s, release, on_unified);
}

std::string aiter_routes_text() {
  std::string text =
      "| release | unified attention | unified verify | unified draft extend | topk | decode, idle "
      "| "
      "draft decode | extend, mixed | target verify | draft extend |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const AiterRelease release : releases) {
    for (const AiterSwitches& switches : combinations()) text += row_of(switches, release);
  }
  return text;
}

}  // namespace attest
