#include <numeric>

#include <tranship/file/part_reader.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/run/lowering.hpp>

namespace tranship {
namespace {

std::vector<Rank> consecutive(Rank first, Index count) {
  std::vector<Rank> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// Of all replicas the first, each of its parts on the rank that is the part's ordinal in `d`.
Distribution first_copy(const Distribution& d) {
  if (!d.replicated()) return d.on_ranks(consecutive(0, d.grid().size()));
  Indices parts = d.grid().extents();
  std::vector<Partition> partitions;
  for (int axis = 0; axis < d.dims(); ++axis) {
    if (d.axis(axis).replicated()) parts[axis] = 1;
    partitions.push_back(d.axis(axis).partition());
  }
  GridOptions options;
  const Grid grid(parts);
  for (Index i = 0; i < grid.size(); ++i)
    options.ranks.push_back(static_cast<Rank>(d.grid().ordinal_of(Place{grid.place_at(i).coordinates, 0})));
  return Distribution(d.extents(), Grid(parts, options), std::move(partitions), d.memory());
}

}  // namespace

PartReader::PartReader(const StoredParts& source, const ArraySpec& wanted)
    : source_(source), from_{source.spec.type, first_copy(source.spec.distribution)}, to_(wanted) {
  check_fits(source.spec, wanted);
  // Ranks beyond those of the source: a plan then has nothing to send.
  const auto first = static_cast<Rank>(source.parts.size());
  to_.distribution = to_.distribution.on_ranks(consecutive(first, to_.distribution.grid().size()));
}

void PartReader::read(Index ordinal, const StridedView& target, FunctionRef<void(Index bytes)> moved) const {
  const TransferPlan plan = plan_redistribution(from_, to_, static_cast<Rank>(source_.parts.size() + ordinal));
  const ElementType type = to_.type;
  const SlotAddress to = address_of(target);
  const auto from = [&](Rank part) { return address_of(source_.parts[part].file.view()); };
  std::byte* no_staging = nullptr;
  std::vector<LoweredMove> moves;
  const auto run = [&] {
    for (const LoweredMove& move : moves) {
      move.run(host_way(move.bytes()));
      moved(move.bytes());
    }
    moves.clear();
  };
  plan.for_each_receive([&](const Transfer& transfer) {
    lower_transfer(transfer, type, from(transfer.peer), to, Hop::direct, no_staging, moves);
    run();
  });
  for (const IndexedTransfer& transfer : plan.indexed_receives) {
    lower_indexed(transfer, type, from(transfer.peer), to, Hop::direct, no_staging, moves);
    run();
  }
  // Fills copy cells that have arrived, so they come last.
  for (const LocalFill& fill : plan.fills_after) lower_fill(fill, type, to, moves);
  for (const LoweredMove& move : moves) move.run(host_way(move.bytes()));
}

}  // namespace tranship
