#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <tranship/lower/move_bundle.hpp>

#include "support/error_of.hpp"

namespace tranship {
namespace {

using test::error_of;
using Random = std::mt19937_64;

Index below(Random& random, Index bound) {
  return Index(random() % std::uint64_t(bound));
}

/// One combination of runs, from slot 3 to slot 5.
TransferGroup group_of(std::vector<std::vector<Run>> tables, std::vector<int> source_dims,
                       ElementMap map = ElementMap::copy) {
  TransferGroup out{.source_slot = 3, .target_slot = 5, .map = map, .source_dims = std::move(source_dims)};
  for (int k = 0; k < int(tables.size()); ++k) {
    out.target_dims.push_back(k);
    out.axes.push_back({{0, std::move(tables[std::size_t(k)])}});
  }
  return out;
}

std::vector<LoweredMove> lowered(const TransferGroup& group, ElementType type, const SlotLayout& source,
                                 const SlotLayout& target) {
  std::vector<LoweredMove> moves;
  lower_transfer({&group, 0, Indices::filled(int(group.axes.size()), 0)}, type, source, target, moves);
  return moves;
}
std::vector<LoweredMove> routed(std::vector<LoweredMove> moves, Hop hop, Index staging_bytes = 0) {
  route(moves, hop, staging_bytes);
  return moves;
}

/// The strides of a block whose dimensions are written as {extent, source stride, target stride}.
std::vector<std::vector<long long>> loops_of(const LoweredMove& move) {
  std::vector<std::vector<long long>> out;
  for (int d = 0; d < move.block.dims; ++d)
    out.push_back({move.block.extents[d], move.block.source_strides[d], move.block.target_strides[d]});
  return out;
}
using Loops = std::vector<std::vector<long long>>;

constexpr MovePlace staging(Index offset_bytes) {
  return {staging_slot, offset_bytes};
}

TEST(Lowering, a_direct_move_goes_from_place_to_place) {
  // Rows 2 and 3, columns 1, 2, 3 and 6, 7, 8 of 10 columns, to the beginning of an array of 8 columns.
  const TransferGroup group =
      group_of({{{.source = 2, .target = 0, .length = 2}},
                {{.source = 1, .target = 0, .length = 3, .count = 2, .source_pitch = 5, .target_pitch = 3}}},
               {0, 1});
  const SlotLayout from = layout_of({.type = ElementType::f64, .extents = {4, 10}, .strides = {10, 1}});
  SlotLayout to = layout_of({.type = ElementType::f64, .extents = {2, 8}, .strides = {8, 1}});
  to.offset_bytes = 1000;
  const std::vector<LoweredMove> moves = routed(lowered(group, ElementType::f64, from, to), Hop::direct);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].source, (MovePlace{3, 8 * 21}));
  EXPECT_EQ(moves[0].target, (MovePlace{5, 1000}));
  EXPECT_EQ(moves[0].width, 8);
  EXPECT_EQ(moves[0].move, ElementMap::copy);
  EXPECT_EQ(loops_of(moves[0]), (Loops{{2, 80, 64}, {2, 40, 24}, {3, 8, 8}}));
  EXPECT_EQ(run_bytes(moves[0]), 24);
  EXPECT_FALSE(moves[0].packs());
}

TEST(Lowering, what_is_packed_lies_densely_from_the_byte_that_route_is_given) {
  // A transpose of 2 x 3 elements, and one row after it.
  const TransferGroup group =
      group_of({{{.source = 0, .target = 0, .length = 3}, {.source = 3, .target = 4, .length = 1}},
                {{.source = 0, .target = 0, .length = 2}}},
               {1, 0}, ElementMap::accumulate);
  const SlotLayout from = layout_of({.type = ElementType::f32, .extents = {2, 5}, .strides = {5, 1}});
  const SlotLayout to = layout_of({.type = ElementType::f32, .extents = {5, 2}, .strides = {2, 1}});
  const std::vector<LoweredMove> as_lowered = lowered(group, ElementType::f32, from, to);

  std::vector<LoweredMove> packed = as_lowered;
  EXPECT_EQ(route(packed, Hop::pack, 40), 40 + 4 * 8);
  ASSERT_EQ(packed.size(), 2u);
  EXPECT_EQ(packed[0].source, (MovePlace{3, 0}));
  EXPECT_EQ(packed[0].target, staging(40));
  EXPECT_EQ(packed[0].move, ElementMap::copy) << "what is packed is combined where it arrives";
  EXPECT_EQ(packed[0].arithmetic, Arithmetic::none);
  EXPECT_EQ(loops_of(packed[0]), (Loops{{3, 4, 8}, {2, 20, 4}}));
  EXPECT_EQ(packed[1].source, (MovePlace{3, 12}));
  EXPECT_EQ(packed[1].target, staging(40 + 24));
  EXPECT_TRUE(packed[1].packs());

  std::vector<LoweredMove> unpacked = as_lowered;
  EXPECT_EQ(route(unpacked, Hop::unpack, 40), 40 + 4 * 8);
  EXPECT_EQ(unpacked[0].source, staging(40));
  EXPECT_EQ(unpacked[0].target, (MovePlace{5, 0}));
  EXPECT_EQ(unpacked[0].move, ElementMap::accumulate);
  EXPECT_EQ(unpacked[0].arithmetic, Arithmetic::f32);
  EXPECT_EQ(loops_of(unpacked[0]), (Loops{{6, 4, 4}}));
  EXPECT_EQ(unpacked[1].source, staging(40 + 24));
  EXPECT_EQ(unpacked[1].target, (MovePlace{5, 32}));

  std::vector<LoweredMove> direct = as_lowered;
  EXPECT_EQ(route(direct, Hop::direct, 40), 40) << "nothing is staged";
}

TEST(Lowering, negative_strides_begin_behind_what_they_reach) {
  const TransferGroup group = group_of({{{.source = 1, .target = 3, .length = 3, .target_step = -1}}}, {0});
  const SlotLayout from = layout_of({.type = ElementType::i16, .extents = {6}, .strides = {-4}});
  const SlotLayout to = layout_of({.type = ElementType::i16, .extents = {6}, .strides = {1}});
  const std::vector<LoweredMove> moves = routed(lowered(group, ElementType::i16, from, to), Hop::direct);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].source, (MovePlace{3, -8}));
  EXPECT_EQ(moves[0].target, (MovePlace{5, 6}));
  EXPECT_EQ(loops_of(moves[0]), (Loops{{3, -8, -2}}));
}

TEST(Lowering, both_parts_of_split_numbers_move) {
  std::vector<float> real(4), imaginary(4), together(8);
  const SlotLayout split = layout_of(
      {.data = real.data(), .type = ElementType::c64, .extents = {4}, .strides = {1}, .imaginary = imaginary.data()});
  const SlotLayout whole = layout_of({.type = ElementType::c64, .extents = {4}, .strides = {1}});
  const Index apart = reinterpret_cast<std::byte*>(imaginary.data()) - reinterpret_cast<std::byte*>(real.data());
  EXPECT_EQ(split.part_stride_bytes, apart);
  EXPECT_FALSE(split.parts_together);
  EXPECT_EQ(whole.part_stride_bytes, 4);

  const TransferGroup group = group_of({{{.source = 1, .target = 0, .length = 3}}}, {0});
  const std::vector<LoweredMove> direct = routed(lowered(group, ElementType::c64, split, whole), Hop::direct);
  ASSERT_EQ(direct.size(), 1u);
  EXPECT_EQ(direct[0].width, 4);
  EXPECT_EQ(direct[0].source, (MovePlace{3, 4}));
  EXPECT_EQ(direct[0].target, (MovePlace{5, 0}));
  EXPECT_EQ(loops_of(direct[0]), (Loops{{3, 4, 8}, {2, apart, 4}}));
  const std::vector<LoweredMove> packed = routed(lowered(group, ElementType::c64, split, whole), Hop::pack);
  EXPECT_EQ(loops_of(packed[0]), (Loops{{3, 4, 8}, {2, apart, 4}})) << "the parts of an element lie side by side";

  const IndexedTransfer list{.source_slot = 3, .target_slot = 5, .source_cells = {3, 1}, .target_cells = {0, 1}};
  std::vector<LoweredMove> indexed;
  lower_indexed(list, ElementType::c64, split, whole, indexed);
  ASSERT_EQ(indexed.size(), 2u) << "one for each part";
  EXPECT_EQ(indexed[1].source, (MovePlace{3, apart}));
  EXPECT_EQ(indexed[1].target, (MovePlace{5, 4}));
  EXPECT_EQ(*indexed[1].source_rows, (std::vector<long long>{12, 4}));
  EXPECT_EQ(*indexed[1].target_rows, (std::vector<long long>{0, 8}));
  EXPECT_EQ(route(indexed, Hop::unpack, 100), 100 + 16);
  EXPECT_EQ(indexed[1].source, staging(108)) << "two planes";
  EXPECT_EQ(indexed[1].source_rows, nullptr);
  EXPECT_EQ(indexed[1].indexed.source_row_stride, 4);
}

TEST(Lowering, offsets_stay_right_up_to_the_largest_and_farther_ones_are_refused) {
  const Index huge = (Index(1) << 61) - 1;
  const SlotLayout far = layout_of({.type = ElementType::u8, .extents = {3}, .strides = {huge}});
  const SlotLayout near = layout_of({.type = ElementType::u8, .extents = {3}, .strides = {1}});
  const TransferGroup last = group_of({{{.source = 2, .target = 0, .length = 1}}}, {0});
  EXPECT_EQ(routed(lowered(last, ElementType::u8, far, near), Hop::direct)[0].source, (MovePlace{3, 2 * huge}));
  const TransferGroup all = group_of({{{.source = 0, .target = 0, .length = 3}}}, {0});
  const LoweredMove move = routed(lowered(all, ElementType::u8, far, near), Hop::direct)[0];
  EXPECT_EQ(loops_of(move), (Loops{{3, huge, 1}}));
  // A run of one repeat may name any pitch.
  const TransferGroup once = group_of({{{.source = 1, .target = 0, .length = 1, .source_pitch = huge}}}, {0});
  EXPECT_EQ(routed(lowered(once, ElementType::u8, far, near), Hop::direct)[0].source, (MovePlace{3, huge}));

  const Index too_far = Index(1) << 61;
  EXPECT_EQ(error_of([&] { (void)layout_of({.type = ElementType::u8, .extents = {3}, .strides = {too_far}}); }),
            "overflow: elements of extents [3] with strides [2305843009213693952] lie up to 4611686018427387904 bytes "
            "apart; the limit is 4611686018427387903");
  EXPECT_NE(error_of([&] {
              (void)layout_of({.type = ElementType::u8, .extents = {2, 2}, .strides = {too_far, -too_far}});
            }),
            "");
  EXPECT_NE(error_of([&] { (void)layout_of({.type = ElementType::f64, .extents = {2}, .strides = {too_far}}); }), "");
  EXPECT_NE(error_of([&] {
              const Index lowest = std::numeric_limits<Index>::min();
              (void)layout_of({.type = ElementType::u8, .extents = {2}, .strides = {lowest}});
            }),
            "");
  EXPECT_EQ(error_of([&] {
              (void)layout_of({.type = ElementType::u8, .extents = {0, 9}, .strides = {1, too_far}});
            }),
            "")
      << "no elements, no distance";
}

TEST(Lowering, fills_read_constants) {
  double lowest;
  const LocalFill fill{.kind = LocalFillKind::zero,
                       .combine = Combine::minimum,
                       .slot = 2,
                       .axes = {{{.source = 1, .target = 1, .length = 2}}}};
  const SlotLayout layout = layout_of({.type = ElementType::f64, .extents = {4}, .strides = {1}});
  std::vector<LoweredMove> moves;
  lower_fill(fill, ElementType::f64, layout, moves);
  route(moves, Hop::direct);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].source.slot, constants_slot);
  EXPECT_EQ(moves[0].target, (MovePlace{2, 8}));
  EXPECT_EQ(loops_of(moves[0]), (Loops{{2, 0, 8}}));
  ASSERT_LE(std::size_t(moves[0].source.offset_bytes) + sizeof(lowest), constants().size());
  std::memcpy(&lowest, constants().data() + moves[0].source.offset_bytes, sizeof(lowest));
  EXPECT_EQ(lowest, std::numeric_limits<double>::infinity());
}

/// An array of complex numbers in memory of its own, in a random layout.
class Field {
 public:
  Field(Random& random, Indices extents) : extents_(extents) {
    Indices order;
    for (int d = 0; d < extents.size(); ++d) order.push_back(d);
    std::shuffle(order.begin(), order.end(), random);
    Index size = 1 + below(random, 2);
    strides_ = Indices::filled(extents.size(), 0);
    for (const Index d : order) {
      strides_[int(d)] = size;
      size *= extents[int(d)] + below(random, 3);
    }
    is_split_ = below(random, 2) == 0;
    memory_.resize(std::size_t(2 * size + 10));
    for (int d = 0; d < extents.size(); ++d)
      if (below(random, 3) == 0) {
        first_ += strides_[d] * (extents[d] - 1);
        strides_[d] = -strides_[d];
      }
    imaginary_ = is_split_ ? size + 5 : 1;
  }
  StridedView view() {
    float* const data = memory_.data() + at_real(first_);
    return {.data = data,
            .type = ElementType::c64,
            .extents = extents_,
            .strides = strides_,
            .imaginary = is_split_ ? data + imaginary_ : nullptr};
  }
  std::byte* base() { return reinterpret_cast<std::byte*>(memory_.data() + at_real(first_)); }
  std::vector<float>& memory() { return memory_; }
  float& part(const Indices& at, int part) {
    Index offset = first_;
    for (int d = 0; d < at.size(); ++d) offset += at[d] * strides_[d];
    return memory_[std::size_t(at_real(offset) + part * imaginary_)];
  }

 private:
  Index at_real(Index element) const { return is_split_ ? element : 2 * element; }

  Indices extents_, strides_;
  std::vector<float> memory_;
  bool is_split_ = false;
  Index imaginary_ = 1, first_ = 0;
};

Run random_run(Random& random, Index source, Index target) {
  Run run{.length = 1 + below(random, 3), .count = 1 + below(random, 2)};
  while (run.cells() > std::min(source, target)) run = {.length = 1 + below(random, 2), .count = 1};
  run.source_pitch = run.target_pitch = run.length;
  run.source = below(random, source - run.cells() + 1);
  run.target = below(random, target - run.cells() + 1);
  if (run.count == 1 && below(random, 2)) {
    run.source += run.length - 1;
    run.source_step = -1;
  }
  return run;
}

TEST(Lowering, staged_and_direct_moves_of_several_arrays_agree_with_a_loop_over_the_cells) {
  Random random(4);
  for (int turn = 0; turn < 500; ++turn) {
    const Indices from_extents{4 + below(random, 3), 3 + below(random, 3)};
    const Indices to_extents{3 + below(random, 4), 3 + below(random, 3)};
    const bool turned = below(random, 2) != 0;
    const ElementMap map = below(random, 2) ? ElementMap::copy : ElementMap::accumulate_negated;
    const tranship::Run rows = random_run(random, from_extents[turned ? 1 : 0], to_extents[0]);
    const tranship::Run columns = random_run(random, from_extents[turned ? 0 : 1], to_extents[1]);
    const TransferGroup group = group_of({{rows}, {columns}}, turned ? std::vector{1, 0} : std::vector{0, 1}, map);

    const Random layouts = random;
    std::vector<Field> from, expected;
    for (int k = 0; k < 2; ++k) {
      Random same = layouts;  // the arrays lie alike
      from.emplace_back(same, from_extents);
      expected.emplace_back(same, to_extents);
      random = same;
      for (float& value : from.back().memory()) value = float(below(random, 1000));
      for (float& value : expected.back().memory()) value = float(below(random, 1000));
    }
    std::vector<Field> direct = expected, staged = expected;
    for (int k = 0; k < 2; ++k)
      for_each_coordinate({rows.count, rows.length, columns.count, columns.length}, [&](const Indices& at) {
        const Index r = rows.source + at[0] * rows.source_pitch + at[1] * rows.source_step;
        const Index c = columns.source + at[2] * columns.source_pitch + at[3] * columns.source_step;
        const Indices to{rows.target + at[0] * rows.target_pitch + at[1],
                         columns.target + at[2] * columns.target_pitch + at[3]};
        for (int part = 0; part < 2; ++part) {
          const float value = from[std::size_t(k)].part(turned ? Indices{c, r} : Indices{r, c}, part);
          float& target = expected[std::size_t(k)].part(to, part);
          target = map == ElementMap::copy ? value : target - value;
        }
      });

    const std::vector<LoweredMove> moves =
        lowered(group, ElementType::c64, layout_of(from[0].view()), layout_of(expected[0].view()));
    const Index each = rows.cells() * columns.cells() * 8;
    const auto bundle_of = [&](Hop hop) {
      MoveBundle out(MoveOrder::given, copy_method(0));
      out.add(routed(moves, hop), {.count = 2, .staging_pitch_bytes = each});
      EXPECT_EQ(out.bytes(), 2 * each);
      return out;
    };
    std::vector<std::byte> buffer(std::size_t(2 * each));
    const auto run = [&](Hop hop, std::vector<Field>& to) {
      MoveBundle bundle = bundle_of(hop);
      bundle.bind([&](MoveSide side, int slot, int array) {
        if (slot == staging_slot) return buffer.data();
        EXPECT_EQ(slot, side == MoveSide::source ? 3 : 5);
        return (side == MoveSide::source ? from : to)[std::size_t(array)].base();
      });
      bundle.run();
    };
    run(Hop::direct, direct);
    run(Hop::pack, staged);
    run(Hop::unpack, staged);
    for (std::size_t k = 0; k < 2; ++k) {
      ASSERT_EQ(direct[k].memory(), expected[k].memory()) << "direct, turn " << turn << " array " << k;
      ASSERT_EQ(staged[k].memory(), expected[k].memory()) << "staged, turn " << turn << " array " << k;
    }
  }
}

// A lattice of rows, cut into parts that are made in any order, and of pairs that lie apart in the source.
TEST(Lowering, lattices_are_moved_stretch_by_stretch) {
  for (const Index other : {Index(1), Index(2)}) {
    const RunLattice lattice{{3, 97, 3 * 97, 97, 700}, {1, 101, 2 * 101, 104, 1000}, -40};
    const SlotLayout from = other == 1
                                ? layout_of({.type = ElementType::f64, .extents = {70'000}, .strides = {1}})
                                : layout_of({.type = ElementType::f64, .extents = {70'000, 2}, .strides = {1, 70'001}});
    const SlotLayout to =
        layout_of(other == 1 ? StridedView{.type = ElementType::f64, .extents = {104'010}, .strides = {1}}
                             : StridedView{.type = ElementType::f64, .extents = {104'010, 2}, .strides = {2, 1}});
    TransferGroup group = group_of({{}}, {0});
    group.axes[0][0].lattices = {lattice};
    if (other == 2) {
      group.source_dims = group.target_dims = {0, 1};
      group.axes.push_back({{0, {{.length = 2}}, {}}});
    }
    std::vector<double> source(140'010), expected(208'100, -1.0);
    std::iota(source.begin(), source.end(), 0.0);
    lattice.for_each_run([&](const tranship::Run& run) {
      for (Index k = 0; k < run.count; ++k)
        for (Index i = 0; i < run.length; ++i)
          for (Index j = 0; j < other; ++j)
            expected[std::size_t((run.target + k * run.target_pitch + i) * other + j)] =
                source[std::size_t(run.source + k * run.source_pitch + i + j * 70'001)];
    });
    const std::vector<LoweredMove> moves = lowered(group, ElementType::f64, from, to);
    ASSERT_EQ(moves.size(), 1u);
    const Index bytes = lattice.cells() * other * 8;
    EXPECT_EQ(moves[0].bytes(), bytes);
    std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
    const auto run = [&](Hop hop, std::vector<double>& target, bool in_parts) {
      MoveBundle bundle(MoveOrder::any, copy_method(0));
      bundle.add(routed(moves, hop));
      EXPECT_EQ(bundle.bytes(), bytes);
      bundle.bind([&](MoveSide side, int slot, int) {
        return slot == staging_slot
                   ? buffer.data()
                   : reinterpret_cast<std::byte*>(side == MoveSide::source ? source.data() : target.data());
      });
      if (!in_parts) return bundle.run();
      EXPECT_EQ(bundle.parts(), 1 + (other == 2));
      for (int part = bundle.parts() - 1; part >= 0; --part) bundle.run_part(part);
    };
    std::vector<double> direct(expected.size(), -1.0), cut = direct, staged = direct;
    run(Hop::direct, direct, false);
    EXPECT_TRUE(direct == expected) << other;
    run(Hop::direct, cut, true);
    EXPECT_TRUE(cut == expected) << other;
    run(Hop::pack, staged, false);
    run(Hop::unpack, staged, false);
    EXPECT_TRUE(staged == expected) << other;
  }
}

}  // namespace
}  // namespace tranship
