#include "property_tests/bench/amx_work.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

// 75 keys, so that parts and streams come out uneven.
TEST(AmxWork, ReadsEveryWordOnceWhateverTheThreadsStreamsAndPages) {
  const AmxWork plain({{70, 5}});
  const std::uint64_t sum = plain.read_pools(1, 1);
  EXPECT_NE(sum, 0U);
  for (const Pages pages : {Pages::as_allocated, Pages::huge}) {
    const AmxWork work({{70, 5}}, pages);
    for (const int threads : {1, 2, 3, 7}) {
      for (const int streams : {1, 4}) {
        EXPECT_EQ(work.read_pools(threads, streams), sum) << threads << " threads, " << streams;
      }
    }
  }
}

}  // namespace
}  // namespace attest
