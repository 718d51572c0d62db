#include <gtest/gtest.h>

#include <tranship/kernels/copy_block.hpp>

#include "kernels/reference.hpp"

namespace tranship {
namespace {

struct Dimension {
  long long extent;
  long long source_stride;
  long long target_stride;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

void PrintTo(const Dimension& d, std::ostream* out) {
  *out << fmt::format("{{{}, {}, {}}}", d.extent, d.source_stride, d.target_stride);
}

CopyBlock block_of(const std::vector<Dimension>& dimensions) {
  CopyBlock block;
  for (const Dimension& d : dimensions) {
    block.extents[block.dims] = d.extent;
    block.source_strides[block.dims] = d.source_stride;
    block.target_strides[block.dims++] = d.target_stride;
  }
  return block;
}

std::vector<Dimension> dimensions_of(const CopyBlock& block) {
  std::vector<Dimension> dimensions;
  for (int d = 0; d < block.dims; ++d)
    dimensions.push_back({block.extents[d], block.source_strides[d], block.target_strides[d]});
  return dimensions;
}

std::vector<Dimension> canonical(const std::vector<Dimension>& dimensions, int width) {
  CopyBlock block = block_of(dimensions);
  canonicalise(block, width);
  return dimensions_of(block);
}

using Dimensions = std::vector<Dimension>;

TEST(Block, counts_elements) {
  EXPECT_EQ(element_count(CopyBlock{}), 1);
  EXPECT_EQ(element_count(block_of({{3, 8, 8}, {5, 0, -8}})), 15);
  EXPECT_EQ(element_count(block_of({{3, 8, 8}, {0, 8, 8}})), 0);
}

TEST(Block, dense_sides_follow_the_given_order) {
  const CopyBlock block = block_of({{3, 8, 100}, {5, -24, 20}, {2, 0, 10}});
  EXPECT_EQ(dimensions_of(with_dense_target(block, 4)), (Dimensions{{3, 8, 40}, {5, -24, 8}, {2, 0, 4}}));
  EXPECT_EQ(dimensions_of(with_dense_source(block, 4)), (Dimensions{{3, 40, 100}, {5, 8, 20}, {2, 4, 10}}));
}

TEST(Block, canonical_form_drops_extents_of_one) {
  EXPECT_EQ(canonical({{1, 7, 9}, {3, 16, 16}, {1, 0, 0}}, 8), (Dimensions{{3, 16, 16}}));
  EXPECT_EQ(canonical({{1, 7, 9}, {1, 0, 0}}, 8), Dimensions{});
}

TEST(Block, canonical_form_of_an_empty_block_is_one_empty_dimension) {
  EXPECT_EQ(canonical({{4, 8, 8}, {0, 16, 16}, {3, 1, 1}}, 8), (Dimensions{{0, 0, 0}}));
}

TEST(Block, canonical_form_fuses_what_lines_up_on_both_sides) {
  EXPECT_EQ(canonical({{2, 120, 120}, {3, 40, 40}, {5, 8, 8}}, 8), (Dimensions{{30, 8, 8}}));
  EXPECT_EQ(canonical({{2, -120, 120}, {3, -40, 40}, {5, -8, 8}}, 8), (Dimensions{{30, -8, 8}}));
  EXPECT_EQ(canonical({{2, 128, 120}, {3, 40, 40}, {5, 8, 8}}, 8), (Dimensions{{2, 128, 120}, {15, 8, 8}}));
  EXPECT_EQ(canonical({{2, 120, 128}, {3, 40, 40}, {5, 8, 8}}, 8), (Dimensions{{2, 120, 128}, {15, 8, 8}}));
  EXPECT_EQ(canonical({{2, 0, 120}, {3, 0, 40}}, 8), (Dimensions{{6, 0, 40}}));
}

TEST(Block, canonical_form_puts_the_smallest_target_stride_last) {
  EXPECT_EQ(canonical({{5, 24, 8}, {3, 8, -40}}, 8), (Dimensions{{3, 8, -40}, {5, 24, 8}}));
  // Column-major to column-major: only the order hid that it is one row.
  EXPECT_EQ(canonical({{5, 8, 8}, {3, 40, 40}, {2, 120, 120}}, 8), (Dimensions{{30, 8, 8}}));
}

TEST(Block, canonical_form_keeps_the_order_of_additions) {
  // Sums: dimensions of target stride zero go inside and keep their order, whatever their source strides.
  EXPECT_EQ(canonical({{2, 8, 0}, {3, 200, 0}, {5, 16, 8}}, 8), (Dimensions{{5, 16, 8}, {2, 8, 0}, {3, 200, 0}}));
  // Windows that overlap: elements 0, 2 | 1, 3 | 2, 4. Sorted, the two additions to element 2 would change places.
  const Dimensions windows{{3, 16, 8}, {2, 8, 16}};
  EXPECT_EQ(canonical(windows, 8), windows);
  // The same strides without overlap may be sorted.
  EXPECT_EQ(canonical({{2, 32, 8}, {2, 8, 16}}, 8), (Dimensions{{2, 8, 16}, {2, 32, 8}}));
  // Elements that overlap in part are no better than elements that coincide.
  const Dimensions partial{{2, 8, 4}, {2, 16, 8}};
  EXPECT_EQ(canonical(partial, 8), partial);
}

TEST(Block, canonical_form_holds_all_dimensions) {
  CopyBlock block;
  block.dims = block_dims_max;
  for (int d = 0; d < block_dims_max; ++d) {
    block.extents[d] = 2;
    block.source_strides[d] = 3LL << (2 * d);
    block.target_strides[d] = 8LL << (2 * d);
  }
  canonicalise(block, 8);
  ASSERT_EQ(block.dims, block_dims_max);
  for (int d = 0; d < block_dims_max; ++d) EXPECT_EQ(block.target_strides[d], 8LL << (2 * (block_dims_max - 1 - d)));
}

TEST(Block, canonical_form_is_canonical_and_counts_the_same) {
  reference::Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const int width = reference::widths[i % 5];
    const CopyBlock block = reference::random_block(random, width, reference::Targets::any);
    CopyBlock once = block;
    canonicalise(once, width);
    ASSERT_EQ(element_count(once), element_count(block)) << reference::describe(block);
    CopyBlock twice = once;
    canonicalise(twice, width);
    ASSERT_EQ(dimensions_of(twice), dimensions_of(once)) << reference::describe(block);
  }
}

}  // namespace
}  // namespace tranship
