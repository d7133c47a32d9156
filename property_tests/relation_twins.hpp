#pragma once

#include "property_tests/relations.hpp"

namespace attest {

// Shared by the files that make twins.

using MaybeTwin = std::optional<Twin>;

/// The case with contents that depend on nothing but the token (other recipes place their keys by
/// the rows of the batch) and slots that follow from the pool.
Case plain(const Case& c);
/// Whether the case is legal and its signature can say it.
bool lowers(const Case& c);
/// The plain case with one padded lane behind its requests, where frameworks pad.
std::optional<Case> with_padded_request(const Case& c);

// relation_steps.cpp: what verification computes for a draft is what decoding it would have.
MaybeTwin decode_steps(const Case& c, const Backend& backend);
MaybeTwin decode_steps_windowed(const Case& c, const Backend& backend);
MaybeTwin verify_equals_decode(const Case& c, const Backend& backend);
MaybeTwin verify_equals_decode_windowed(const Case& c, const Backend& backend);
MaybeTwin verify_equals_split_decode(const Case& c, const Backend& backend);

/// And what only sizes a launch changes nothing.
MaybeTwin larger_max_seqlen_k(const Case& c, const Backend& backend);

// relation_graphs.cpp: a replayed graph computes what an eager launch does.
MaybeTwin graph_replays_longer(const Case& c, const Backend& backend);
MaybeTwin graph_replays_shorter(const Case& c, const Backend& backend);
MaybeTwin graph_replays_padded(const Case& c, const Backend& backend);
MaybeTwin graph_after_eager(const Case& c, const Backend& backend);
MaybeTwin graph_lengths_inside(const Case& c, const Backend& backend);

}  // namespace attest
