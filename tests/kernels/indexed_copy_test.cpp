#include <gtest/gtest.h>

#include <tranship/kernels/indexed_copy.hpp>

#include "kernels/reference.hpp"

namespace tranship {
namespace {

using reference::Bytes;
using reference::Random;

enum class Lists { neither, source, target, both };

TEST(IndexedCopy, random_lists_do_every_move_in_every_arithmetic) {
  Random random(13);
  for (int i = 0; i < 20'000; ++i) {
    const Arithmetic arithmetic = reference::numbers[i % reference::number_count];
    const int width = width_of(arithmetic);
    const ElementMap how = reference::random_move(random, arithmetic);
    const auto lists = static_cast<Lists>(reference::below(random, 4));

    IndexedBlock block;
    block.count = reference::below(random, 12);
    block.row_length = reference::below(random, 5);
    block.source_row_stride =
        block.row_length * width + (reference::below(random, 2) ? 0 : reference::below(random, 20));
    block.target_row_stride =
        block.row_length * width + (reference::below(random, 2) ? 0 : reference::below(random, 20));
    // Few rows, so that lists name the same one often.
    const int rows = static_cast<int>(block.count) + reference::below(random, 3);
    std::vector<long long> source_rows(block.count), target_rows(block.count);
    for (long long& row : source_rows) row = reference::below(random, rows);
    for (long long& row : target_rows) row = reference::below(random, rows);
    if (lists == Lists::source || lists == Lists::both) block.source_rows = source_rows.data();
    if (lists == Lists::target || lists == Lists::both) block.target_rows = target_rows.data();

    const int misalignment = reference::below(random, 16);
    const auto size_bytes = [&](long long stride) {
      return static_cast<std::size_t>(2 * reference::guard_bytes + misalignment + rows * stride);
    };
    const Bytes source = reference::random_numbers(random, size_bytes(block.source_row_stride), arithmetic);
    Bytes target = reference::random_numbers(random, size_bytes(block.target_row_stride), arithmetic);
    Bytes expected = target;
    const unsigned char* from = source.data() + reference::guard_bytes + misalignment;
    for (long long r = 0; r < block.count; ++r)
      for (long long e = 0; e < block.row_length; ++e)
        reference::apply(how, arithmetic, width,
                         from + (block.source_rows ? source_rows[r] : r) * block.source_row_stride + e * width,
                         expected.data() + reference::guard_bytes +
                             (block.target_rows ? target_rows[r] : r) * block.target_row_stride + e * width);
    move_indexed(block, how, arithmetic, width, from, target.data() + reference::guard_bytes);
    ASSERT_EQ(target, expected) << "arithmetic " << static_cast<int>(arithmetic) << " move " << static_cast<int>(how)
                                << " count " << block.count << " row length " << block.row_length;
  }
}

TEST(IndexedCopy, gather_then_scatter_is_the_identity) {
  const std::vector<double> cells{0, 1, 2, 3, 4, 5, 6, 7};
  const long long rows[] = {2, 0, 3, 1};
  std::vector<double> packed(8), back(8);
  move_indexed({.count = 4, .row_length = 2, .source_rows = rows, .source_row_stride = 16, .target_row_stride = 16},
               ElementMap::copy, Arithmetic::none, 8, cells.data(), packed.data());
  EXPECT_EQ(packed, (std::vector<double>{4, 5, 0, 1, 6, 7, 2, 3}));
  move_indexed({.count = 4, .row_length = 2, .target_rows = rows, .source_row_stride = 16, .target_row_stride = 16},
               ElementMap::copy, Arithmetic::none, 8, packed.data(), back.data());
  EXPECT_EQ(back, cells);
}

TEST(IndexedCopy, a_target_named_twice_gets_both_additions) {
  const std::vector<int> source{1, 10, 100, 1000};
  std::vector<int> target{5, 6};
  const long long rows[] = {1, 0, 1, 1};
  move_indexed({.count = 4, .target_rows = rows, .source_row_stride = 4, .target_row_stride = 4},
               ElementMap::accumulate, Arithmetic::i32, 4, source.data(), target.data());
  EXPECT_EQ(target, (std::vector<int>{15, 1107}));
}

TEST(IndexedCopy, additions_come_in_the_order_of_the_list) {
  // 2^24 + 1 + 1 is lost one by one; 1 + 1 + 2^24 is not.
  const long long rows[] = {0, 0, 0};
  const IndexedBlock block{.count = 3, .target_rows = rows, .source_row_stride = 4, .target_row_stride = 4};
  const float down[] = {0x1p24f, 1, 1};
  const float up[] = {1, 1, 0x1p24f};
  float target = 0;
  move_indexed(block, ElementMap::accumulate, Arithmetic::f32, 4, down, &target);
  EXPECT_EQ(target, 0x1p24f);
  target = 0;
  move_indexed(block, ElementMap::accumulate, Arithmetic::f32, 4, up, &target);
  EXPECT_EQ(target, 0x1p24f + 2);
}

TEST(IndexedCopy, nothing_to_move_touches_no_memory) {
  const long long rows[] = {0, 1};
  move_indexed({}, ElementMap::copy, Arithmetic::none, 8, nullptr, nullptr);
  move_indexed({.count = 2, .row_length = 0, .source_rows = rows}, ElementMap::copy, Arithmetic::none, 8, nullptr,
               nullptr);
}

}  // namespace
}  // namespace tranship
