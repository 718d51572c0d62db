#include <gtest/gtest.h>

#include <tranship/kernels/strided_copy.hpp>

#include "kernels/reference.hpp"

namespace tranship {
namespace {

using reference::Arena;
using reference::Bytes;
using reference::Random;
using reference::Targets;

struct Case {
  CopyBlock block;
  ElementMap move;
  Arithmetic arithmetic;
  int width;
};

std::string describe(const Case& c) {
  return fmt::format("move {} arithmetic {} width {}, {}", static_cast<int>(c.move), static_cast<int>(c.arithmetic),
                     c.width, reference::describe(c.block));
}

/// Moves the block as it stands and in canonical form, and expects the bytes of the reference, guards included.
void expect_like_reference(Random& random, const Case& c) {
  const Arena source = reference::arena_for(random, c.block, c.block.source_strides, c.width, c.arithmetic);
  const Arena before = reference::arena_for(random, c.block, c.block.target_strides, c.width, c.arithmetic);
  const unsigned char* from = source.bytes.data() + source.base;

  Arena expected = before;
  reference::apply(c.block, c.move, c.arithmetic, c.width, from, expected.at_base());

  Arena raw = before;
  move(c.block, c.move, c.arithmetic, c.width, from, raw.at_base());
  ASSERT_EQ(raw.bytes, expected.bytes) << describe(c);

  CopyBlock canonical = c.block;
  canonicalise(canonical, c.width);
  Arena target = before;
  move(canonical, c.move, c.arithmetic, c.width, from, target.at_base());
  ASSERT_EQ(target.bytes, expected.bytes) << "canonical, " << describe(c);
}

/// All blocks of up to two dimensions with extents to 3 and strides of -2 to 2 elements on either side.
template <class F>
void for_each_small_block(int width, F&& f) {
  constexpr int kinds = 4 * 5 * 5;
  const auto set = [&](CopyBlock& block, int d, int kind) {
    block.extents[d] = kind / 25;
    block.source_strides[d] = width * (kind / 5 % 5 - 2);
    block.target_strides[d] = width * (kind % 5 - 2);
  };
  for (int dims = 0; dims <= 2; ++dims) {
    for (int outer = 0; outer < (dims > 1 ? kinds : 1); ++outer) {
      for (int inner = 0; inner < (dims > 0 ? kinds : 1); ++inner) {
        CopyBlock block;
        block.dims = dims;
        if (dims > 1) set(block, 0, outer);
        if (dims > 0) set(block, dims - 1, inner);
        f(block);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(StridedCopy, all_small_blocks_copy) {
  Random random(2);
  for (int width : {1, 8})
    for_each_small_block(width, [&](const CopyBlock& block) {
      expect_like_reference(random, {block, ElementMap::copy, Arithmetic::none, width});
    });
}

TEST(StridedCopy, all_small_blocks_accumulate) {
  Random random(3);
  for_each_small_block(2, [&](const CopyBlock& block) {
    expect_like_reference(random, {block, ElementMap::accumulate, Arithmetic::f16, 2});
  });
}

TEST(StridedCopy, random_blocks_copy_at_every_width) {
  Random random(4);
  for (int i = 0; i < 20'000; ++i) {
    const int width = reference::widths[i % 5];
    expect_like_reference(
        random, {reference::random_block(random, width, Targets::distinct), ElementMap::copy, Arithmetic::none, width});
    if (HasFatalFailure()) return;
  }
}

TEST(StridedCopy, random_blocks_do_every_move_in_every_arithmetic) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Arithmetic arithmetic = reference::numbers[i % reference::number_count];
    const int width = width_of(arithmetic);
    expect_like_reference(random, {reference::random_block(random, width, Targets::any),
                                   reference::random_move(random, arithmetic), arithmetic, width});
    if (HasFatalFailure()) return;
  }
}

TEST(StridedCopy, long_rows_do_every_move_in_every_arithmetic) {
  Random random(6);
  for (Arithmetic arithmetic : reference::numbers)
    for (ElementMap move : reference::moves_of(arithmetic))
      for (long long count : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 255, 1000})
        for (int direction : {1, -1}) {
          CopyBlock block;
          block.dims = 1;
          block.extents[0] = count;
          block.target_strides[0] = width_of(arithmetic);
          block.source_strides[0] = direction * width_of(arithmetic);
          expect_like_reference(random, {block, move, arithmetic, width_of(arithmetic)});
          if (HasFatalFailure()) return;
        }
}

TEST(StridedCopy, copy_is_the_move_that_copies) {
  Random random(7);
  for (int width : reference::widths) {
    const CopyBlock block = reference::random_block(random, width, Targets::distinct);
    const Arena source = reference::arena_for(random, block, block.source_strides, width, Arithmetic::none);
    Arena target = reference::arena_for(random, block, block.target_strides, width, Arithmetic::none);
    Arena expected = target;
    copy(block, width, source.bytes.data() + source.base, target.at_base());
    reference::apply(block, ElementMap::copy, Arithmetic::none, width, source.bytes.data() + source.base,
                     expected.at_base());
    EXPECT_EQ(target.bytes, expected.bytes);
  }
}

TEST(StridedCopy, packing_and_unpacking_come_to_the_direct_copy) {
  Random random(8);
  for (int i = 0; i < 20'000; ++i) {
    const int width = reference::widths[i % 5];
    const CopyBlock block = reference::random_block(random, width, Targets::distinct);
    const Arena source = reference::arena_for(random, block, block.source_strides, width, Arithmetic::none);
    const unsigned char* from = source.bytes.data() + source.base;
    const Arena before = reference::arena_for(random, block, block.target_strides, width, Arithmetic::none);

    CopyBlock pack = with_dense_target(block, width);
    CopyBlock unpack = with_dense_source(block, width);
    canonicalise(pack, width);
    canonicalise(unpack, width);
    // Exactly as long as the elements: a sanitizer sees a byte too many on either side.
    Bytes packed(static_cast<std::size_t>(element_count(block) * width));
    copy(pack, width, from, packed.data());
    Arena target = before;
    copy(unpack, width, packed.data(), target.at_base());

    Arena expected = before;
    reference::apply(block, ElementMap::copy, Arithmetic::none, width, from, expected.at_base());
    ASSERT_EQ(target.bytes, expected.bytes) << reference::describe(block);
  }
}

TEST(StridedCopy, fill_writes_the_element_or_zeros_everywhere) {
  Random random(9);
  for (int i = 0; i < 5'000; ++i) {
    const int width = reference::widths[i % 5];
    const CopyBlock block = reference::random_block(random, width, Targets::distinct);
    const Bytes element = reference::random_numbers(random, width, Arithmetic::none);
    const Bytes zeros(width, 0);
    for (const Bytes* wanted : {&element, &zeros}) {
      Arena target = reference::arena_for(random, block, block.target_strides, width, Arithmetic::none);
      Arena expected = target;
      CopyBlock repeated = block;
      for (long long& stride : repeated.source_strides) stride = 0;
      reference::apply(repeated, ElementMap::copy, Arithmetic::none, width, wanted->data(), expected.at_base());
      fill(block, width, wanted == &zeros ? nullptr : element.data(), target.at_base());
      ASSERT_EQ(target.bytes, expected.bytes) << reference::describe(block);
    }
  }
}

TEST(StridedCopy, empty_blocks_touch_no_memory) {
  CopyBlock block;
  block.dims = 2;
  block.extents[0] = 3;
  copy(block, 8, nullptr, nullptr);
  fill(block, 8, nullptr, nullptr);
  canonicalise(block, 8);
  EXPECT_EQ(element_count(block), 0);
  copy(block, 8, nullptr, nullptr);
}

TEST(StridedCopyDeathTest, refuses_what_cannot_be_moved) {
  unsigned char source[16] = {};
  unsigned char target[16] = {};
  EXPECT_DEATH(copy(CopyBlock{}, 3, source, target), "");
  EXPECT_DEATH(move(CopyBlock{}, ElementMap::accumulate, Arithmetic::none, 1, source, target), "");
  EXPECT_DEATH(move(CopyBlock{}, ElementMap::negate, Arithmetic::f32, 8, source, target), "");
}

}  // namespace
}  // namespace tranship
