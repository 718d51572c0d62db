#include "tranship/lower/plan_program.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/lower/lowering.hpp>
#include <tranship/program/language.hpp>

namespace tranship {
namespace {

namespace lang = tranship::language;

constexpr Index stretches_max = 1 << 20;

/// Elements that are consecutive on both sides; positions count from the beginning of the buffers.
struct Stretch {
  Rank source_rank, target_rank;
  Index source, target, count;
};

class Translation {
 public:
  explicit Translation(std::span<const TransferPlan> plans) : plans_(plans) {}

  PlanProgram make() {
    check();
    place_arrays();
    gather();
    return write();
  }

 private:
  const TransferPlan& of(Rank rank) const { return plans_[static_cast<std::size_t>(rank)]; }

  void check() {
    if (plans_.empty()) throw_error(ErrorCode::invalid_use, "no plans are given; a program needs at least 1");
    bool has_slots = false;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      const TransferPlan& plan = plans_[rank];
      if (plan.rank != static_cast<Rank>(rank))
        throw_error(ErrorCode::invalid_use, "plan {} belongs to rank {}: give the plans in the order of their ranks",
                    rank, plan.rank);
      if (plan.slots.size() != plans_[0].slots.size())
        throw_error(ErrorCode::invalid_use, "the plan of rank {} has {}, that of rank 0 has {}", rank,
                    amount(plan.slots.size(), "array"), plans_[0].slots.size());
      for (const Slot& slot : plan.slots) {
        if (has_slots && size_bytes(slot.type) != size_bytes(out_.type))
          throw_error(ErrorCode::unsupported, "a program needs elements of one size, the arrays have {} and {}",
                      size_bytes(out_.type), amount(size_bytes(slot.type), "byte"));
        out_.type = slot.type;
        has_slots = true;
      }
      for (const auto& fills : {plan.fills_before, plan.fills_after})
        for (const LocalFill& fill : fills)
          if (fill.kind != LocalFillKind::replicate)
            throw_error(ErrorCode::unsupported, "plans that write zeros or combine cannot become programs (rank {})",
                        rank);
    }
    width_ = size_bytes(out_.type);
  }

  /// If any array is both read and written, the whole program works in place.
  void place_arrays() {
    const auto slots = static_cast<std::size_t>(plans_[0].slots.size());
    std::vector<bool> is_read(slots, false), is_written(slots, false);
    for (const TransferPlan& plan : plans_) {
      for (const auto& groups : {plan.sends, plan.receives})
        for (const TransferGroup& group : groups) {
          is_read[std::size_t(group.source_slot)] = true;
          is_written[std::size_t(group.target_slot)] = true;
        }
      for (const auto& lists : {plan.indexed_sends, plan.indexed_receives})
        for (const IndexedTransfer& list : lists) {
          is_read[std::size_t(list.source_slot)] = true;
          is_written[std::size_t(list.target_slot)] = true;
        }
      for (const auto& fills : {plan.fills_before, plan.fills_after})
        for (const LocalFill& fill : fills) is_read[std::size_t(fill.slot)] = is_written[std::size_t(fill.slot)] = true;
    }
    for (std::size_t slot = 0; slot < slots; ++slot) in_place_ = in_place_ || (is_read[slot] && is_written[slot]);
    for (const TransferPlan& plan : plans_) {
      std::vector<Index>& first = out_.first_elements.emplace_back();
      Index input = 0, output = 0;
      for (std::size_t slot = 0; slot < slots; ++slot) {
        Index& end = is_written[slot] || in_place_ ? output : input;
        first.push_back(end);
        end = checked_add(end, checked_product(plan.slots[slot].local_extents));
      }
      input_ = std::max(input_, input);
      output_ = std::max(output_, output);
    }
    if (in_place_) input_ = output_;
  }

  SlotLayout layout(Rank rank, int slot) const {
    const Indices& extents = of(rank).slots[static_cast<std::size_t>(slot)].local_extents;
    SlotLayout out;
    out.dims = extents.size();
    Index stride = width_;
    for (int d = extents.size() - 1; d >= 0; --d) {
      out.local_extents[d] = extents[d];
      out.strides_bytes[d] = stride;
      stride *= std::max<Index>(extents[d], 1);
    }
    out.part_stride_bytes = is_complex(out_.type) ? width_ / 2 : 0;
    return out;
  }

  void gather() {
    for (Rank rank = 0; rank < static_cast<Rank>(plans_.size()); ++rank) {
      const TransferPlan& plan = of(rank);
      plan.for_each_send([&](const Transfer& transfer) {
        require_copy(transfer.group->map);
        const int source = transfer.group->source_slot, target = transfer.group->target_slot;
        std::vector<LoweredMove> moves;
        lower_transfer(transfer, out_.type, layout(rank, source), layout(transfer.peer, target), moves);
        add(moves, {rank, source}, {transfer.peer, target}, moved_);
      });
      for (const IndexedTransfer& list : plan.indexed_sends) {
        require_copy(list.map);
        std::vector<LoweredMove> moves;
        lower_indexed(list, out_.type, layout(rank, list.source_slot), layout(list.peer, list.target_slot), moves);
        add(moves, {rank, list.source_slot}, {list.peer, list.target_slot}, moved_);
      }
      for (const LocalFill& fill : plan.fills_before) add_fill(rank, fill, before_);
      for (const LocalFill& fill : plan.fills_after) add_fill(rank, fill, after_);
    }
  }
  static void require_copy(ElementMap map) {
    if (map != ElementMap::copy)
      throw_error(ErrorCode::unsupported, "plans that combine or negate elements cannot become programs");
  }
  void add_fill(Rank rank, const LocalFill& fill, std::vector<Stretch>& out) {
    std::vector<LoweredMove> moves;
    lower_fill(fill, out_.type, layout(rank, fill.slot), moves);
    add(moves, {rank, fill.slot}, {rank, fill.slot}, out);
  }

  struct End {
    Rank rank;
    int slot;
  };
  void add(std::vector<LoweredMove>& moves, End source, End target, std::vector<Stretch>& out) {
    route(moves, Hop::direct);
    for (const LoweredMove& move : moves) {
      if (move.lattice)
        throw_error(ErrorCode::unsupported,
                    "blocks without a common factor cannot become programs: {} would need a step for each stretch",
                    amount(move.bytes(), "byte"));
      const auto one = [&](Index from_bytes, Index to_bytes, Index bytes) {
        const auto first = [&](End end) { return out_.first_elements[std::size_t(end.rank)][std::size_t(end.slot)]; };
        // The halves of complex numbers move together: layouts keep them side by side.
        const Stretch next{source.rank, target.rank, first(source) + (move.source.offset_bytes + from_bytes) / width_,
                           first(target) + (move.target.offset_bytes + to_bytes) / width_, bytes / width_};
        if (!out.empty() && out.back().source_rank == next.source_rank && out.back().target_rank == next.target_rank &&
            out.back().source + out.back().count == next.source &&
            out.back().target + out.back().count == next.target) {
          out.back().count += next.count;
          return;
        }
        if (++stretches_ > stretches_max)
          throw_error(ErrorCode::unsupported,
                      "the program would need more than {} steps, one per stretch of neighbouring elements",
                      stretches_max);
        out.push_back(next);
      };
      if (move.is_indexed)
        for (Index i = 0; i < move.indexed.count; ++i) {
          const Index from =
              (move.source_rows ? (*move.source_rows)[std::size_t(i)] : i) * move.indexed.source_row_stride;
          const Index to =
              (move.target_rows ? (*move.target_rows)[std::size_t(i)] : i) * move.indexed.target_row_stride;
          one(from, to, move.indexed.row_length * move.width);
        }
      else
        for_each_row(move.routed_block(), move.width, 0, 0, 0, one);
    }
  }
  template <class F>
  static void for_each_row(const CopyBlock& block, int width, int dim, Index from, Index to, F&& f) {
    if (dim == block.dims) return f(from, to, Index(width));
    const bool is_row =
        dim + 1 == block.dims && block.source_strides[dim] == width && block.target_strides[dim] == width;
    if (is_row) return f(from, to, block.extents[dim] * width);
    for (Index i = 0; i < block.extents[dim]; ++i)
      for_each_row(block, width, dim + 1, from + i * block.source_strides[dim], to + i * block.target_strides[dim], f);
  }

  PlanProgram write() {
    // Uses the longest chunks that divide all stretches and buffers.
    Index grain = std::gcd(input_, output_);
    for (const auto* const list : {&before_, &moved_, &after_})
      for (const Stretch& one : *list) grain = std::gcd(grain, std::gcd(std::gcd(one.source, one.target), one.count));
    grain = std::max<Index>(grain, 1);

    const auto ranks = plans_.size();
    lang::Collective what =
        lang::custom(std::vector<Index>(ranks, input_ / grain), std::vector<Index>(ranks, output_ / grain));
    what.name = "plan";
    what.in_place = in_place_;
    lang::CollectiveProgram program(in_place_ ? "halo" : "redistribution", std::move(what));
    const auto chunk = [&](const lang::Buffer& buffer, Index first, Index count) {
      return buffer[{first / grain, (first + count) / grain}];
    };
    std::map<std::pair<Rank, Rank>, lang::MemoryChannel> channels;
    std::vector<std::set<Rank>> peers(ranks);
    for (const Stretch& one : moved_) {
      if (one.source_rank == one.target_rank) continue;
      peers[std::size_t(one.source_rank)].insert(one.target_rank);
      peers[std::size_t(one.target_rank)].insert(one.source_rank);
    }
    for (Rank rank = 0; rank < static_cast<Rank>(ranks); ++rank)
      for (const Rank peer : peers[std::size_t(rank)])
        channels.try_emplace({rank, peer}, program, lang::ChannelEnds{.target = peer, .source = rank});
    const auto meet = [&](bool is_end) {
      for (Rank rank = 0; rank < static_cast<Rank>(ranks); ++rank) {
        const lang::DataSync before = is_end ? lang::DataSync::before : lang::DataSync::none;
        for (const Rank peer : peers[std::size_t(rank)])
          channels.at({rank, peer}).signal(0, {.data_sync = before, .relaxed = !is_end && before_.empty()});
        for (const Rank peer : peers[std::size_t(rank)])
          channels.at({rank, peer})
              .wait(0, {.data_sync = lang::DataSync::after, .relaxed = !is_end && before_.empty()});
      }
    };
    const auto copy_all = [&](const std::vector<Stretch>& list) {
      for (const Stretch& one : list)
        program.copy(chunk(program.output(one.target_rank), one.target, one.count),
                     chunk(program.output(one.source_rank), one.source, one.count), 0);
    };
    copy_all(before_);
    meet(false);
    // Groups equal lengths, which MSCCL++'s language joins into one step.
    std::stable_sort(moved_.begin(), moved_.end(), [](const Stretch& a, const Stretch& b) {
      return std::tuple(a.source_rank, a.target_rank, a.count) < std::tuple(b.source_rank, b.target_rank, b.count);
    });
    for (const Stretch& one : moved_) {
      const lang::Chunk source =
          chunk(in_place_ ? program.output(one.source_rank) : program.input(one.source_rank), one.source, one.count);
      const lang::Chunk target = chunk(program.output(one.target_rank), one.target, one.count);
      if (one.source_rank == one.target_rank)
        program.copy(target, source, 0);
      else
        channels.at({one.source_rank, one.target_rank}).put(target, source, 0);
    }
    meet(true);
    copy_all(after_);
    out_.program = program.lower();
    out_.elements = in_place_ ? output_ : input_;
    return std::move(out_);
  }

  std::span<const TransferPlan> plans_;
  PlanProgram out_;
  Index width_ = 1;
  bool in_place_ = false;
  Index input_ = 0, output_ = 0;
  std::vector<Stretch> before_, moved_, after_;
  Index stretches_ = 0;
};

}  // namespace

PlanProgram program_of(std::span<const TransferPlan> plans) {
  return Translation(plans).make();
}

}  // namespace tranship
