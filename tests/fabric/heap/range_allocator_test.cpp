// RangeAllocator against bytes that are marked one by one, and with very many holes.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/fabric/heap/range_allocator.hpp>

namespace tranship {
namespace {

TEST(RangeAllocator, gives_what_is_free_and_only_that) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SplitMix64 random(seed);
    const std::size_t size = 1 + random.below(300);
    const std::size_t first = random.below(2) * random.below(1 << 20);  // what lies at offset 0
    RangeAllocator ranges(size, first), twin(size, first);
    std::vector<bool> used(size, false);
    std::map<std::size_t, std::size_t> blocks;
    for (int step = 0; step < 300; ++step) {
      if (blocks.empty() || random.below(3) != 0) {
        const std::size_t bytes = 1 + random.below(40), alignment = std::size_t(1) << random.below(6);
        const auto offset = ranges.allocate(bytes, alignment);
        ASSERT_EQ(twin.allocate(bytes, alignment), offset) << "ranks that make the same calls disagree";
        bool has_room = false;
        for (std::size_t at = 0; at + bytes <= size; ++at)
          has_room |= (first + at) % alignment == 0 &&
                      std::none_of(used.begin() + long(at), used.begin() + long(at + bytes), [](bool b) { return b; });
        ASSERT_EQ(offset.has_value(), has_room) << bytes << " bytes aligned to " << alignment << ", seed " << seed;
        if (!offset) continue;
        ASSERT_EQ((first + *offset) % alignment, 0u);
        ASSERT_LE(*offset + bytes, size);
        for (std::size_t i = 0; i < bytes; ++i) {
          ASSERT_FALSE(used[*offset + i]);
          used[*offset + i] = true;
        }
        blocks[*offset] = bytes;
      } else {
        const auto block = std::next(blocks.begin(), long(random.below(blocks.size())));
        ASSERT_EQ(ranges.release(block->first), block->second);
        twin.release(block->first);
        std::fill_n(used.begin() + long(block->first), block->second, false);
        blocks.erase(block);
      }
      ASSERT_EQ(ranges.used_bytes(), std::size_t(std::count(used.begin(), used.end(), true)));
      std::size_t largest = 0, length = 0;
      for (const bool is_used : used) largest = std::max(largest, length = is_used ? 0 : length + 1);
      ASSERT_EQ(ranges.largest_free_bytes(), largest);
    }
  }
}

TEST(RangeAllocator, has_its_answer_in_a_few_steps_among_very_many_holes) {
  // 200,000 holes that are too small, and as many allocations: a walk through them would take 4e10 steps.
  constexpr std::size_t holes = 200'000;
  RangeAllocator ranges(64 * 8 * holes);
  for (std::size_t i = 0; i < 2 * holes; ++i) ASSERT_EQ(ranges.allocate(64, 64), 64 * i);
  for (std::size_t i = 0; i < holes; ++i) ranges.release(128 * i);
  for (std::size_t i = 0; i < holes; ++i) ASSERT_TRUE(ranges.allocate(128, 128));
  for (std::size_t i = 0; i < holes; ++i) ASSERT_EQ(ranges.allocate(64, 64), 128 * i);
}

}  // namespace
}  // namespace tranship
