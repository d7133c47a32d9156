#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// One run of a relation: a case on the backend under test, or on its sibling of another signature
/// ("amx.decode@patch" beside "amx.extend@patch").
struct RelatedRun {
  Case c;
  RunOptions options;
};

/// Two ways to the same rows. Each side may take several runs, whose rows are put together by the
/// token they belong to.
struct Twin {
  std::vector<RelatedRun> left, right;
  std::int64_t heads = 0;  ///< compare only the first so many q heads; 0 = all
  /// Compare padded rows too, whatever a kernel may leave there, and which rows stay untouched.
  bool whole = false;
};

/// Two runs that must agree, and no reference is needed to say so (docs/numerics.md, "Relations").
struct Relation {
  std::string_view id;
  std::string_view says;
  /// Nothing where the relation says nothing about the case, as it stands or after small changes.
  std::optional<Twin> (*twin)(const Case& c, const Backend& backend);
};

/// Every relation, read top to bottom.
std::span<const Relation> all_relations();
const Relation* find_relation(std::string_view id);

/// How far a relation holds on a backend.
enum class Holds {
  exactly,       ///< to the bit
  within_bound,  ///< each side within its error bound of the reference, hence of the other
  not_held,      ///< the kernel promises nothing, with the reason
};

/// One cell of the table in relation_table.cpp.
struct Declaration {
  std::string_view relation;
  std::string_view backend;  ///< "<impl>.<signature>" without the engine
  Holds holds = Holds::exactly;
  std::string_view reason;  ///< why not exactly; empty = exactly
};

std::span<const Declaration> all_declarations();
/// nullptr where the relation does not apply to the backend.
const Declaration* declared(const Relation& relation, const Backend& backend);

/// The first difference in words, or nothing when the relation holds as declared. Runs a backend
/// that must be isolated in a worker. \throws std::runtime_error when a kernel refuses a call
std::optional<std::string> broken(const Twin& twin, Holds holds, const Backend& backend);

}  // namespace attest
