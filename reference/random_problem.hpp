#pragma once

#include <cstdint>

#include "memory/tensor_source.hpp"

namespace attest {

/// For tests: the `index`-th small legal Problem of a fixed stream, all features mixed: MHA, GQA
/// and MQA, odd head sizes, every dtype, descales, windows, softcap, sinks, trees, shared prefixes,
/// MLA, cross attention, padded requests, strided and permuted pools.
Problem random_problem(std::uint64_t index);

/// The tensors of random_problem(index), recipes in turn.
TensorSource random_source(std::uint64_t index);

}  // namespace attest
