#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/seam/heap_place.hpp>

namespace tranship {
namespace {

/// What a table gives for each rank, and for numbers beside them, is what was listed.
void expect_listed(const std::vector<unsigned char*>& listed, bool is_spaced) {
  HeapPlace place;
  place.own = reinterpret_cast<std::byte*>(listed.empty() ? nullptr : listed[0]);
  place.size_bytes = 64;
  place.direct = HeapAddresses(listed);
  const int ranks = static_cast<int>(listed.size());
  const HeapTable table = place.table(ranks);
  EXPECT_EQ(table.spacing_bytes != 0, is_spaced);
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(table.heap_of(rank), listed[std::size_t(rank)]) << rank;
  for (const int wrong : {-1, ranks, ranks + 1}) EXPECT_EQ(table.heap_of(wrong), nullptr) << wrong;
}

TEST(HeapPlace, ComputesAddressesOfHeapsAtEqualDistances) {
  std::vector<unsigned char> memory(1 << 12);
  for (const int step : {64, 128, -64})
    for (const int ranks : {2, 3, 16}) {
      std::vector<unsigned char*> listed;
      for (int rank = 0; rank < ranks; ++rank) listed.push_back(memory.data() + (step < 0 ? 2048 : 0) + rank * step);
      expect_listed(listed, true);
    }
}

TEST(HeapPlace, ListsHeapsThatHaveNoAddressOrLieAnywhere) {
  std::vector<unsigned char> memory(1 << 12);
  unsigned char* const at = memory.data();
  expect_listed({}, false);
  expect_listed({at}, false);
  expect_listed({nullptr, at}, false);
  expect_listed({at, nullptr, at + 128}, false);
  expect_listed({at, at + 64, nullptr}, false);
  expect_listed({at, at + 64, at + 192}, false);
  expect_listed({at + 64, at, at + 128}, false);
  expect_listed({at, at}, false);  // of one distance, which is 0
}

}  // namespace
}  // namespace tranship
