// Cutting parts into blocks and rounds: every cell once, never more than fits, and how much is read.
#include <map>

#include <gtest/gtest.h>

#include <tranship/file/engine/block_plan.hpp>
#include <tranship/file/format/manifest.hpp>
#include <tranship/layout/text.hpp>

#include "support/random_layouts.hpp"

namespace tranship {
namespace {

constexpr Index mib = Index(1) << 20;

/// Stored parts in memory alone, as a plan wants them.
StoredParts parts_of(const ArraySpec& spec, StoredOrder order = {}) {
  StoredParts out{.spec = spec, .files = std::make_shared<FileSet>(FileAccess::read_only)};
  for (const Rank rank : spec.distribution.grid().ranks())
    out.parts.push_back({.order = order, .extents = spec.distribution.local_extents(rank)});
  return out;
}

std::string plan_fault(const BlockPlan& plan, Index memory_bytes) {
  const StoredParts& wanted = *plan.job().wanted;
  const Index block_bytes_max = std::max<Index>(size_bytes(wanted.spec.type), memory_bytes / 32);
  std::vector<std::vector<int>> taken;
  for (Index part = 0; part < Index(wanted.parts.size()); ++part) {
    std::map<std::vector<Index>, int> seen;
    for (Index n = 0; n < plan.block_count(part); ++n) {
      const Box box = plan.box(part, n);
      if (box.empty() || plan.block_bytes(part, n) > block_bytes_max) return "a block of another size";
      for_each_coordinate(box.extents(), [&](const Indices& at) {
        std::vector<Index> cell;
        for (int d = 0; d < at.size(); ++d) cell.push_back(box.lower[d] + at[d]);
        ++seen[cell];
      });
    }
    if (Index(seen.size()) != checked_product(wanted.parts[part].extents)) return "a cell in no block";
    for (const auto& [cell, times] : seen)
      if (times != 1) return "a cell in several blocks";
    taken.emplace_back(static_cast<std::size_t>(plan.block_count(part)), 0);
  }
  for (Index round = 0; round < plan.round_count(); ++round) {
    plan.for_each_block(round, [&](Index part, Index number) { ++taken[part][number]; });
    if (!plan.gathers()) continue;
    Index end = 0;
    for (const BlockPlan::SlabBox& box : plan.slab(round)) {
      if (box.offset_bytes != end) return "a gap in a slab";
      end += box.box.count() * size_bytes(wanted.spec.type);
    }
    if (end > plan.slab_bytes_max() || end > memory_bytes / 2) return "a slab that is too large";
  }
  for (const auto& part : taken)
    for (const int times : part)
      if (times != 1) return "a block in several rounds, or in none";
  return "";
}

TEST(BlockPlan, CutsEveryCellOnceInBlocksThatFit) {
  EXPECT_EQ(
      test::first_fault(
          0.2,
          [](std::uint64_t seed) -> std::string {
            test::Random random(seed);
            const Indices extents = test::random_extents(random, int(random.between(1, 4)));
            const auto order = [&] { return random.one_in(2) ? NpyOrder::c : NpyOrder::fortran; };
            const StoredParts from = parts_of({ElementType::u8, test::random_distribution(random, extents)}, order()),
                              to = parts_of({ElementType::u8, test::random_distribution(random, extents)}, order());
            const Index memory_bytes = Index(1) << random.between(5, 12);
            return plan_fault(*plan_blocks({&from, &to}, memory_bytes), memory_bytes);
          }),
      "");
}

/// What a plan reads of a source, as a multiple of its bytes.
double read_ratio(const char* from, const char* to, Index memory_bytes) {
  const ArraySpec a = parse_layout(from), b = parse_layout(to);
  const StoredParts source = parts_of(a, stored_order(a)), wanted = parts_of(b, stored_order(b));
  return double(plan_blocks({&source, &wanted}, memory_bytes)->bytes_read()) /
         double(checked_product(a.distribution.extents()) * size_bytes(a.type));
}

TEST(BlockPlan, ReadsTheSourceAtMostTwice) {
  const char* const rows = "f64[8192,16384] @ 1x1 : whole, whole";  // 1 GiB
  for (const char* to :
       {"f64[8192,16384] @ 1x4 : whole, block", "f64[8192,16384] @ 1x256 : whole, block",
        "f64[8192,16384] @ 1x4096 : whole, block", "f64[8192,16384] @ 64x64 : block, block",
        "f64[8192,16384] @ 4x4 : cyclic(3), cyclic(5)", "f64[8192,16384] @ 1x64 : whole, block | order(1,0)",
        "f64[8192,16384] @ 8x8 : block+overlap(1,1,toroidal), block+overlap(2,2,toroidal)"})
    for (const Index memory_bytes : {16 * mib, 64 * mib, 256 * mib, 1024 * mib}) {
      SCOPED_TRACE(::testing::Message() << to << " with " << memory_bytes / mib << " MiB");
      EXPECT_LE(read_ratio(rows, to, memory_bytes), 2.0);
      EXPECT_LE(read_ratio(to, rows, memory_bytes), 2.0);
    }
}

/// NumPy says of what lies in both orders that it is C's.
TEST(BlockPlan, PartsThatLieInAnyOrderSayNothingOfTheOthers) {
  StoredParts from = parts_of(parse_layout("f64[4,100000] @ 3x1 : block(high), whole"), NpyOrder::fortran);
  ASSERT_EQ(from.parts[0].extents, (Indices{1, 100000}));
  from.parts[0].order = NpyOrder::c;
  EXPECT_EQ(from.order(), StoredOrder(NpyOrder::fortran));
  const StoredParts to = parts_of(parse_layout("f64[4,100000] @ 1x1 : whole, whole"));
  EXPECT_TRUE(plan_blocks({&from, &to}, 4 * mib)->gathers());
}

TEST(BlockPlan, OverlapBeyondEdgesIsInTheBlocksOfWhatLiesBesideIt) {
  const StoredParts from = parts_of(parse_layout("f16[100,5,5] @ 1x1x1 : whole, whole, whole"));
  for (const char* to : {"f16[100,5,5] @ 1x1x1 : whole, whole+overlap(1,3,toroidal), whole+overlap(1,1,zero)",
                         "f16[100,5,5] @ 1x1x1 : whole+overlap(2,2,replicate), whole+overlap(9,9,toroidal), whole"}) {
    const StoredParts wanted = parts_of(parse_layout(to));
    EXPECT_EQ(plan_blocks({&from, &wanted}, 4 * mib)->block_count(0), 1) << to;
  }
}

TEST(Stretches, AreTheBytesOfABoxInTheOrderOfTheFile) {
  EXPECT_EQ(test::first_fault(0.1,
                              [](std::uint64_t seed) -> std::string {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                if (checked_product(extents) == 0) return "";
                                Box box{extents, extents};
                                for (int d = 0; d < extents.size(); ++d) {
                                  box.lower[d] = random.below(extents[d]);
                                  box.upper[d] = random.between(box.lower[d] + 1, extents[d]);
                                }
                                const StoredPart part{.offset_bytes = 100,
                                                      .order = random.one_in(2) ? NpyOrder::c : NpyOrder::fortran,
                                                      .extents = extents};
                                const Indices strides = view_of(part, ElementType::u8, nullptr).strides;
                                std::vector<Index> expected, found;
                                for_each_coordinate(box.extents(), [&](const Indices& at) {
                                  Index offset = 0;
                                  for (int d = 0; d < at.size(); ++d) offset += (box.lower[d] + at[d]) * strides[d];
                                  for (int byte = 0; byte < 4; ++byte) expected.push_back(100 + offset * 4 + byte);
                                });
                                std::sort(expected.begin(), expected.end());
                                Index in_box = 0, end = 0;
                                bool joined = true;
                                for_each_stretch(part, 4, box, [&](Index offset, Index at, Index bytes) {
                                  joined = joined && at == in_box && offset >= end;
                                  in_box += bytes;
                                  end = offset + bytes;
                                  for (Index i = 0; i < bytes; ++i) found.push_back(offset + i);
                                });
                                return joined && found == expected ? "" : "other stretches";
                              }),
            "");
}

}  // namespace
}  // namespace tranship
