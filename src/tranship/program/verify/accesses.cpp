#include <algorithm>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/program/verify/execution.hpp>

namespace tranship::verification {
namespace {

/// The stamp of an access to units [begin, end).
Stamp stamp_of(Stamp stamp, Index begin, Index end, const StepShape& shape) {
  constexpr std::string_view packet_letters = "PQT";
  stamp.first = begin;
  stamp.units = end - begin;
  stamp.by_packets = shape.sources.find_first_of(packet_letters) != std::string_view::npos ||
                     shape.targets.find_first_of(packet_letters) != std::string_view::npos;
  return stamp;
}

}  // namespace

Execution::Range Execution::range_of(Rank own, const Operand& operand, OperandShape shape, Rank rank, Part part,
                                     int launch) const {
  const Rank at = shape.where == Where::here ? own : rank;
  const BufferPlace& place =
      places_[static_cast<std::size_t>(at) * buffer_kinds + static_cast<std::size_t>(operand.buffer)];
  Index base = (place.first_chunk + operand.first) * cut_.units;
  if (place.memory == scratch_memory && program_.double_scratch && launch % 2 == 1)
    base += of(at).chunks[2] * cut_.units;
  return {at, place.memory, base + part.begin, base + part.end, shape.format};
}

bool Execution::have_come(const Range& range, int launch) const {
  return memories_[static_cast<std::size_t>(range.rank) * buffer_kinds + static_cast<std::size_t>(range.memory)].all(
      range.begin, range.end, [&](const Cell& cell) { return cell.packets_of == launch; });
}

bool Execution::follows(const Actor& actor, const Stamp& before, bool strongly, const Links& links) {
  if (before.timeline < 0) return true;
  const Stamp& now = actor.stamp;
  if (before.timeline == now.timeline) {
    if (before.time < actor.met || before.time == now.time) return true;
    // In both accesses each thread takes the same packets.
    if (before.by_packets && now.by_packets && before.first == now.first && before.units == now.units) return true;
  }
  if (strongly ? actor.knowledge->knows_strongly(before.timeline, before.time)
               : actor.knowledge->knows_weakly(before.timeline, before.time))
    return true;
  Index work = 0;
  const bool is_linked = leads_to(links, before, now.first - before.first, work);
  spend(work);
  return is_linked;
}

void Execution::read(const Step& step, const StepShape& shape, std::size_t source, Part part, Block& block,
                     const Actor& actor, Pieces& sum) {
  const auto read_range = [&](const Range& range) {
    if (range.memory == scratch_memory) use_scratch(range, block);
    Pieces pieces;
    std::map<const PacketWrite*, std::pair<Index, std::shared_ptr<const PacketWrite>>> packets;
    Actor reader = actor;
    reader.stamp = stamp_of(actor.stamp, range.begin, range.end, shape);
    memory_of(range.rank, range.memory).visit(range.begin, range.end, [&](Index from, Cell& cell) {
      Links links;
      if (range.format == OperandFormat::packets && cell.packets) {
        auto& [units, write] = packets[cell.packets.get()];
        units += cell.end - from;
        write = cell.packets;
        note_read(cell, reader);
        spend(static_cast<Index>(cell.reads.size()));
        links = followed(cell.writer, cell.links, range.begin - cell.writer.first);
      } else {
        check_read(range.rank, range.memory, from, cell, reader);
      }
      Value value = cell.value;
      value.displacement += range.begin;
      pieces.push_back({from - range.begin, cell.end - range.begin, value, std::move(links)});
    });
    // A block that has read all packets of a step knows that the step has run, once the threads that read them have
    // met.
    Index work = 0;
    for (const auto& [write, seen] : packets) {
      block.knowledge.learn_now(write->of_each, work);
      if (seen.first == write->units) block.knowledge.learn_later(write->of_all);
    }
    spend(work);
    combine(sum, std::move(pieces), step);
  };
  for_each_range(block.rank, step.operands[source], shape_of_source(shape, source), part, block.launch, read_range);
}

void Execution::combine(Pieces& sum, Pieces more, const Step& step) {
  if (sum.empty()) {
    sum = std::move(more);
    return;
  }
  Pieces out;
  for (auto a = sum.begin(), b = more.begin(); a != sum.end() && b != more.end();) {
    const Index begin = std::max(a->begin, b->begin), end = std::min(a->end, b->end);
    out.push_back(
        {begin, end, values_.combine(step.reduction, a->value, b->value), verification::joined(a->links, b->links)});
    if (a->end == end) ++a;
    if (b->end == end) ++b;
  }
  spend(static_cast<Index>(out.size()));
  sum = std::move(out);
}

void Execution::write(const Step& step, const StepShape& shape, std::size_t target, Part part, Block& block,
                      const Actor& actor, const Pieces& pieces) {
  const Operand& operand = step.operands[static_cast<std::size_t>(step.sources) + target];
  for_each_range(block.rank, operand, shape_of_target(shape, target), part, block.launch, [&](const Range& range) {
    if (range.memory == scratch_memory) use_scratch(range, block);
    Actor writer = actor;
    writer.stamp = stamp_of(actor.stamp, range.begin, range.end, shape);
    if (range.format == OperandFormat::packets) return write_packets(range, block, writer, pieces);
    for (const Piece& piece : pieces) {
      Value value = piece.value;
      value.displacement -= range.begin;
      Range of_piece = range;
      of_piece.begin = range.begin + piece.begin;
      of_piece.end = range.begin + piece.end;
      write_plain(of_piece, writer, value, piece.links);
    }
  });
}

void Execution::write_plain(const Range& range, const Actor& actor, Value value, const Links& links) {
  memory_of(range.rank, range.memory).visit(range.begin, range.end, [&](Index from, Cell& cell) {
    check_write(range.rank, range.memory, from, cell, actor, true, links);
    forget(cell);
    cell.writer = actor.stamp;
    cell.links = nullptr;
    cell.value = value;
    cell.packets_of = -1;
    cell.packets = nullptr;
  });
}

void Execution::write_packets(const Range& range, Block& block, const Actor& actor, const Pieces& pieces) {
  auto packets = std::make_shared<PacketWrite>();
  packets->units = range.end - range.begin;
  const bool by_proxy = actor.stamp.timeline != block.timeline;
  // Threads that took part in this step are past the earlier steps, unless one of those was larger.
  const Time known = by_proxy || block.units_max <= range.end - range.begin ? actor.stamp.time + 1 : actor.met;
  packets->of_each = {.known = host_of(block.rank).clock, .timeline = actor.stamp.timeline};
  packets->of_all = packets->of_each;
  packets->of_all.known.weak = actor.knowledge->clock().weak;
  packets->of_all.weak_time = known;
  for (const Piece& piece : pieces) {
    Value value = piece.value;
    value.displacement -= range.begin;
    memory_of(range.rank, range.memory)
        .visit(range.begin + piece.begin, range.begin + piece.end, [&](Index from, Cell& cell) {
          // Equal packets may be written again, by a multicast that includes its own rank, or by several blocks.
          if (cell.packets_of == block.launch && cell.value == value) {
            cell.twins.push_back(actor.stamp);
            ++stamps_;
            return;
          }
          if (cell.packets_of == block.launch)
            found(Finding::Kind::packets, block.rank, block.index, static_cast<Index>(block.at),
                  fmt::format("{} writes packets to {}, which {} has written in the same launch", name(actor.stamp),
                              place_text(range.rank, range.memory, from, cell.end), name(cell.writer)));
          check_write(range.rank, range.memory, from, cell, actor, cell.packets_of < 0, piece.links);
          cell.writer = actor.stamp;
          cell.links = piece.links;
          forget(cell);
          cell.value = value;
          cell.packets_of = block.launch;
          cell.packets = packets;
        });
  }
  auto& waiting = waiting_for_packets_[static_cast<std::size_t>(range.rank)];
  spend(static_cast<Index>(waiting.size()));
  std::erase_if(waiting, [&](const PacketWait& wait) {
    if (wait.range.begin >= range.end || range.begin >= wait.range.end) return false;
    queue(wait.block);
    return true;
  });
}

/// Records a read. It replaces an earlier one that it follows and that permits no more than it does.
void Execution::note_read(Cell& cell, const Actor& actor) {
  const Stamp& stamp = actor.stamp;
  const auto is_no_stricter = [&](const Stamp& read) {
    if (read.timeline != stamp.timeline) return false;
    return !stamp.by_packets || read.time < actor.met ||
           (read.by_packets && read.first == stamp.first && read.units == stamp.units);
  };
  const auto old = std::find_if(cell.reads.begin(), cell.reads.end(), is_no_stricter);
  if (old != cell.reads.end()) {
    *old = stamp;
    return;
  }
  cell.reads.push_back(stamp);
  ++stamps_;
}
/// A write comes after all earlier accesses, so they need no record any more.
void Execution::forget(Cell& cell) {
  stamps_ -= static_cast<Index>(cell.reads.size() + cell.twins.size());
  cell.reads.clear();
  cell.twins.clear();
}

// --- Order -----------------------------------------------------------------------------------------------------------

void Execution::check_read(Rank rank, int memory, Index from, Cell& cell, const Actor& actor) {
  spend(static_cast<Index>(1 + cell.twins.size() + cell.reads.size()));
  const bool is_seen =
      follows(actor, cell.writer, true) ||
      std::any_of(cell.twins.begin(), cell.twins.end(), [&](const Stamp& twin) { return follows(actor, twin, true); });
  if (!is_seen) report_race(actor, false, cell.writer, true, rank, memory, from, cell.end);
  note_read(cell, actor);
}

void Execution::check_write(Rank rank, int memory, Index from, const Cell& cell, const Actor& actor, bool strongly,
                            const Links& links) {
  spend(static_cast<Index>(1 + cell.twins.size() + cell.reads.size()));
  for (const Stamp& read : cell.reads)
    if (!follows(actor, read, false, links)) report_race(actor, true, read, false, rank, memory, from, cell.end);
  for (const Stamp& twin : cell.twins)
    if (!follows(actor, twin, strongly, links)) report_race(actor, true, twin, true, rank, memory, from, cell.end);
  if (!follows(actor, cell.writer, strongly, links))
    report_race(actor, true, cell.writer, true, rank, memory, from, cell.end);
}

/// Packets take twice the bytes, so their places differ from those of plain chunks.
void Execution::use_scratch(const Range& range, const Block& block) {
  if (range.begin == range.end) return;
  int& uses = uses_of_scratch_[static_cast<std::size_t>(range.rank)];
  uses |= range.format == OperandFormat::plain ? 1 : 2;
  if (uses == 3)
    found(Finding::Kind::packets, block.rank, block.index, static_cast<Index>(block.at),
          fmt::format("{}: the scratch of rank {} holds packets and plain data, which lie at different bytes",
                      name(block, static_cast<Index>(block.at)), range.rank));
}

}  // namespace tranship::verification
