#include "contracts/signatures/cpu_kernels.hpp"

#include "contracts/storage_label.hpp"

namespace attest {

std::int64_t extend_block_rows(std::int64_t max_len_extend) {
  if (max_len_extend <= 256) return 32;
  if (max_len_extend <= 1024) return 128;
  if (max_len_extend <= 4096) return 256;
  return 512;
}

std::int64_t extend_rows_computed(std::int64_t max_len_extend) {
  if (max_len_extend <= 0) return 0;
  const std::int64_t block = extend_block_rows(max_len_extend);
  return ((max_len_extend - 1) / block + 1) * block;
}

bool takes_mla_path(const DecodeCall& call) {
  const std::int64_t heads = call.k_buffer.size(1);
  const bool one_storage = same_storage(call.k_buffer.storage, call.v_buffer.storage) &&
                           call.k_buffer.storage_offset == call.v_buffer.storage_offset;
  return call.query.size(1) != heads && heads == 1 && one_storage &&
         call.k_buffer.size(2) == call.v_buffer.size(2) + 64;
}

}  // namespace attest
