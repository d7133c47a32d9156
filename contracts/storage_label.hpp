#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace attest {

/// What a storage's label says where it is a number: "0x7f10" and "0X7F10" in hexadecimal, "32528"
/// in decimal, as torch's data_ptr() prints. Nothing for other words and past 64 bits.
std::optional<std::uint64_t> number_of_label(std::string_view label);

/// Whether the label is an address, which means the same in every call; other labels name the
/// storages of one call. A decimal number is one from 4096 on: below, nothing is ever mapped.
bool is_address(std::string_view label);

/// Whether two labels of one call name one storage: equal texts, or numbers. Empty is unknown.
bool same_storage(std::string_view a, std::string_view b);

}  // namespace attest
