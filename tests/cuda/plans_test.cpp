// Random plans on cards against the host, bit for bit: what a rank packs, unpacks, moves within itself and fills, by
// lists that are prepared once and run on several sets of arrays. Software cards also count the kernels of each list.
// Without a card the tests are skipped.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <support/random_plans.hpp>

#include <tranship/cuda/kernels.hpp>
#include <tranship/cuda/software/software_card.hpp>
#include <tranship/lower/block_moves.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "memory/device_kinds.hpp"

namespace tranship::test::card_plans_test {
namespace {
using Bytes = std::vector<std::byte>;

Deadline in_time() {
  return Deadline::after_seconds(30);
}

/// Row-major.
SlotLayout dense_layout(Slot slot) {
  SlotLayout out;
  out.dims = int(slot.local_extents.size());
  const Index part = size_bytes(part_of(slot.type));
  Index stride = size_bytes(slot.type);
  for (int d = out.dims - 1; d >= 0; --d) {
    out.local_extents[d] = slot.local_extents[std::size_t(d)];
    out.strides_bytes[d] = stride;
    stride *= out.local_extents[d];
  }
  if (is_complex(slot.type)) out.part_stride_bytes = part;
  return out;
}
/// The layout of a peer, whose extents the plan of this rank does not say: the staging buffer is the same for all.
SlotLayout layout_of_peer(Slot slot) {
  slot.local_extents = Indices::filled(slot.local_extents.size(), 1000);
  return dense_layout(slot);
}
Index bytes_of(const Slot& slot) {
  Index out = size_bytes(slot.type);
  for (const Index extent : slot.local_extents) out *= extent;
  return out;
}

/// The moves of one hop of a plan.
struct Hops {
  std::vector<LoweredMove> moves;
  MoveOrder order = MoveOrder::any;
};

bool combines(const std::vector<LoweredMove>& moves) {
  for (const LoweredMove& one : moves)
    if (one.move != ElementMap::copy && one.move != ElementMap::negate) return true;
  return false;
}

/// Everything that a rank does for a plan, in an order that is allowed.
class LoweredPlan {
 public:
  explicit LoweredPlan(const TransferPlan& plan) : plan_(plan) {
    for (const LocalFill& fill : plan.fills_before) add_fill(fill);
    add_transfers(Hop::pack);
    add_transfers(Hop::direct);
    add_transfers(Hop::unpack);
    for (const LocalFill& fill : plan.fills_after) add_fill(fill);
  }
  const std::vector<Hops>& hops() const { return hops_; }
  Index staging_bytes() const { return staging_bytes_; }
  /// From and to peers, and within the rank.
  Index transfers() const { return transfers_; }

 private:
  void add_fill(const LocalFill& fill) {
    Hops hops;
    const Slot& slot = plan_.slots[std::size_t(fill.slot)];
    lower_fill(fill, slot.type, dense_layout(slot), hops.moves);
    add(std::move(hops), Hop::direct);
  }
  /// Transfers to and from peers go by the staging buffer.
  void add_transfers(Hop hop) {
    Hops hops;
    const auto add_one = [&](const auto& t, int from, int to, auto lower) {
      const Slot &source = plan_.slots[std::size_t(from)], &target = plan_.slots[std::size_t(to)];
      lower(t, source.type, hop == Hop::unpack ? layout_of_peer(source) : dense_layout(source),
            hop == Hop::pack ? layout_of_peer(target) : dense_layout(target), hops.moves);
      ++transfers_;
    };
    const auto visit = [&](const auto& t, Rank peer, int from, int to, auto lower) {
      if ((peer == plan_.rank) == (hop == Hop::direct)) add_one(t, from, to, lower);
    };
    const auto group = [&](const Transfer& t) {
      visit(t, t.peer, t.group->source_slot, t.group->target_slot, lower_transfer);
    };
    const auto listed = [&](const IndexedTransfer& t) {
      visit(t, t.peer, t.source_slot, t.target_slot, lower_indexed);
    };
    if (hop == Hop::pack) {
      plan_.for_each_send(group);
      for (const IndexedTransfer& t : plan_.indexed_sends) listed(t);
    } else {
      plan_.for_each_receive(group);
      for (const IndexedTransfer& t : plan_.indexed_receives) listed(t);
    }
    add(std::move(hops), hop);
  }
  void add(Hops hops, Hop hop) {
    if (hops.moves.empty()) return;
    staging_bytes_ = std::max(staging_bytes_, route(hops.moves, hop));
    hops.order = combines(hops.moves) ? MoveOrder::given : MoveOrder::any;
    hops_.push_back(std::move(hops));
  }

  const TransferPlan& plan_;
  std::vector<Hops> hops_;
  Index staging_bytes_ = 0;
  Index transfers_ = 0;
};

/// The memories of a plan by number: its slots, the staging buffer and the constants.
struct Memories {
  explicit Memories(const TransferPlan& plan, Index staging_bytes, Random& random) {
    for (const Slot& slot : plan.slots) add(bytes_of(slot), random);
    add(staging_bytes, random);
    all.emplace_back(constants().begin(), constants().end());
  }
  void add(Index bytes, Random& random) {
    Bytes& one = all.emplace_back(std::size_t(bytes));
    for (std::byte& byte : one) byte = std::byte(random.bits());
  }
  unsigned number(int slot) const {
    return unsigned(slot == staging_slot     ? all.size() - 2
                    : slot == constants_slot ? all.size() - 1
                                             : std::size_t(slot));
  }
  std::vector<Bytes> all;
};

/// All launches of kernels of the back-end by the first card, which must be a software card.
std::int64_t kernels_launched() {
  std::int64_t out = 0;
  for (const char* name : {"tranship_move_lean", "tranship_move_deep", "tranship_move_tiled", "tranship_fill",
#define TRANSHIP_MAP_NAME(name) "tranship_map_" #name,
                           TRANSHIP_CARD_NUMBERS(TRANSHIP_MAP_NAME)
#undef TRANSHIP_MAP_NAME
       })
    out += cuda::software::counts_of(0, name).launches;
  return out;
}

/// Returns true if elements of all rows of a move are aligned, in bases that are.
bool is_aligned(const BlockMove& one) {
  long long all = one.source_offset | one.target_offset;
  for (int d = 0; d < one.block.dims; ++d) all |= one.block.source_strides[d] | one.block.target_strides[d];
  return all % one.width == 0;
}

/// A list takes one kernel for each type of numbers that it computes with, and the first of them also copies. None:
/// the host computes with some, which lie in messages of several types where they are not aligned.
std::optional<std::int64_t> kernels_of(const std::vector<BlockMove>& list) {
  std::set<Arithmetic> types;
  for (const BlockMove& one : list) {
    if (one.map == ElementMap::copy) continue;
    if (!is_aligned(one)) return {};
    types.insert(one.arithmetic);
  }
  return std::max<std::int64_t>(1, std::int64_t(types.size()));
}

class CardPlans : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
    devices.emplace(DevicesOptions{.kinds = {CudaDevices{.cards = {0}}}});
    stream = devices->make_stream(Device::cuda(0));
  }
  Driver& driver() { return devices->driver(devices->memory_of(Device::cuda(0))); }

  /// Runs a plan on the card and on the host with the same bytes. Returns what differs.
  std::string compare(const TransferPlan& plan, Random& random) {
    const LoweredPlan lowered(plan);
    Memories host(plan, lowered.staging_bytes(), random);
    // In one turn, the bases are at other multiples than those for which the lists were prepared.
    const std::vector<int> alignments(host.all.size(), 16);
    std::vector<std::shared_ptr<const PreparedMoves>> ready;
    std::vector<std::optional<std::int64_t>> kernels;
    for (const Hops& hops : lowered.hops())
      for (const auto& list :
           block_moves(hops.moves, hops.order, [&](MoveSide, int slot) { return host.number(slot); })) {
        ready.push_back(stream->prepare(list, alignments));
        kernels.push_back(kernels_of(list));
        ++(kernels.back() ? counted : not_counted);
        has_several_types |= kernels.back() > 1;
      }
    for (int turn = 0; turn < 2; ++turn) {
      const long long shift = turn == 0 ? 0 : 8;
      std::vector<std::byte*> bases;
      std::vector<std::pair<std::byte*, std::size_t>> allocated;
      for (const Bytes& one : host.all) {
        const std::size_t size = one.size() + 32;
        allocated.emplace_back(static_cast<std::byte*>(driver().allocate(size)), size);
        bases.push_back(allocated.back().first + shift);
        stream->copy(row_of(Index(one.size()), 1), 1, one.data(), bases.back());
      }
      finish(stream->event(), in_time());  // the host's bytes change below
      if (const std::string wrong = run(ready, kernels, bases); !wrong.empty()) return wrong;
      for (const Hops& hops : lowered.hops())
        for (const LoweredMove& one : hops.moves)
          one.run(CopyMethod(), host.all[host.number(one.source.slot)].data(),
                  host.all[host.number(one.target.slot)].data());
      std::string out;
      for (std::size_t i = 0; i < host.all.size(); ++i) {
        Bytes back(host.all[i].size());
        stream->copy(row_of(Index(back.size()), 1), 1, bases[i], back.data());
        finish(stream->event(), in_time());
        if (back != host.all[i]) out += fmt::format("memory {} of {} differs in turn {}; ", i, back.size(), turn);
      }
      for (const auto& [memory, size] : allocated) driver().deallocate(memory, size);
      if (!out.empty()) return out;
    }
    return {};
  }

  /// Runs lists, and counts what each takes. A real card counts calls alone.
  std::string run(const std::vector<std::shared_ptr<const PreparedMoves>>& ready,
                  const std::vector<std::optional<std::int64_t>>& kernels, const std::vector<std::byte*>& bases) {
    const auto count = [&] {
      if (!are_software_cards()) return driver().counts().launches;
      finish(stream->event(), in_time());
      return kernels_launched();
    };
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const std::int64_t before = count();
      stream->move_list(ready[i], bases);
      const std::int64_t launches = count() - before, wanted = are_software_cards() ? kernels[i].value_or(0) : 1;
      if (kernels[i] && launches != wanted)
        return fmt::format("list {} of {} took {} launches, not {}", i, ready.size(), launches, wanted);
    }
    return {};
  }

  std::optional<Devices> devices;
  std::unique_ptr<Stream> stream;
  // Of the lists that were run:
  Index counted = 0, not_counted = 0;
  bool has_several_types = false;  ///< one of them
};

/// A plan with many transfers in most cases, and now and then any plan.
TransferPlan plan_with_transfers(Random& random) {
  const Index least = random.one_in(12) ? 0 : random.between(1, 12);
  TransferPlan plan = random_plan(random);
  while (LoweredPlan(plan).transfers() < least) plan = random_plan(random);
  return plan;
}

/// Gives the arrays of a plan types that its maps and combinations allow, and negates some of what is copied. The
/// fields of a halo, which are not moved to each other, have types of their own.
void choose_types(TransferPlan& plan, Random& random) {
  constexpr int types = int(ElementType::c128) + 1;
  const bool is_halo = plan.kind == PlanKind::halo || plan.kind == PlanKind::halo_adjoint;
  TransferPlan out = plan;
  std::vector<bool> negates;
  for (Slot& slot : out.slots) {
    slot.type = is_halo || &slot == out.slots.data() ? ElementType(random.below(types)) : out.slots[0].type;
    if (part_of(slot.type) == ElementType::f128) return;  // a card does not compute with it
    negates.push_back(random.one_in(2) && can_map(ElementMap::negate, slot.type));
  }
  bool is_possible = true;
  const auto look = [&](ElementMap& map, int slot) {
    if (map == ElementMap::copy && negates[std::size_t(slot)] && random.one_in(2)) map = ElementMap::negate;
    is_possible &= can_map(map, out.slots[std::size_t(slot)].type);
  };
  for (auto* groups : {&out.receives, &out.sends})
    for (TransferGroup& one : *groups) look(one.map, one.source_slot);
  for (auto* lists : {&out.indexed_receives, &out.indexed_sends})
    for (IndexedTransfer& one : *lists) look(one.map, one.source_slot);
  for (auto* fills : {&out.fills_before, &out.fills_after})
    for (const LocalFill& one : *fills)
      is_possible &=
          one.kind == LocalFillKind::replicate || can_map(map_of(one.combine), out.slots[std::size_t(one.slot)].type);
  if (is_possible) plan = std::move(out);
}

TEST_F(CardPlans, move_what_the_host_moves) {
  std::vector<Index> transfers;
  // 500 of the 2000 cases of ./do ci, and 20,000 of the 10,000 of ./do ci long.
  EXPECT_EQ(first_fault(long_tests() ? 2 : 0.25,
                        [&](std::uint64_t seed) {
                          Random random(seed);
                          TransferPlan plan = plan_with_transfers(random);
                          choose_types(plan, random);
                          transfers.push_back(LoweredPlan(plan).transfers());
                          return compare(plan, random);
                        }),
            "");
  if (HasFailure() || transfers.size() < 100) return;
  std::sort(transfers.begin(), transfers.end());
  EXPECT_GT(transfers[transfers.size() / 10], 0) << "plans without a transfer show little";
  EXPECT_GE(transfers[transfers.size() / 2], 5);
  EXPECT_GT(counted, 20 * not_counted);
  EXPECT_TRUE(has_several_types);
}

}  // namespace
}  // namespace tranship::test::card_plans_test
