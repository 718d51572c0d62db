#include "tranship/program/replay/cost.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship::replays {

CostModel::CostModel(const Program& program, const MachineModel& machine, const ReplayData& data, Index chunk_bytes,
                     Index input_bytes)
    : program_(program),
      machine_(machine),
      data_(data),
      chunk_bytes_(double(chunk_bytes)),
      launch_copies_(launch_copies_of(program)),
      touched_bytes_(bytes_touched_by_hosts(program, machine, input_bytes)) {}

double CostModel::copied_ns(Rank rank, Index chunks) const {
  return double(chunks) * chunk_bytes_ * machine_.launch_copy.ns_per_byte(touched(rank));
}
double CostModel::copy_in_ns(Rank rank) const {
  return copied_ns(rank, launch_copies_[std::size_t(rank)].input_chunks);
}
double CostModel::copy_out_ns(Rank rank) const {
  return copied_ns(rank, launch_copies_[std::size_t(rank)].output_chunks);
}

const LinkModel& CostModel::link(ChannelKind kind, Rank from, Rank to) const {
  const bool is_near = host_of(from) == host_of(to);
  if (kind == ChannelKind::port) return is_near ? machine_.port : machine_.far_port;
  if (is_near) return machine_.memory;
  if (!machine_.has_far_memory)
    throw_error(ErrorCode::unsupported,
                "\"{}\" has no memory channels between hosts: ranks {} and {} are on hosts {} and {} ({} each)",
                printable(machine_.name, name_chars_max), from, to, host_of(from), host_of(to),
                amount(machine_.ranks_per_host, "rank"));
  return machine_.far_memory;
}

Rank CostModel::rank_of(Rank own, const Operand& operand, Where where) const {
  return where == Where::peer ? of(own).remote_buffers[std::size_t(operand.via)].rank : own;
}

void CostModel::load(Rank from, Rank to, double bytes, StepCost& cost) const {
  if (from != to) cost.loads.push_back({.from = from, .to = to, .bytes = bytes});
}

/// Cost of reading one more source and combining it with the data read so far.
void CostModel::add_source(Rank own, const Operand& operand, OperandShape what, Part part, StepCost& cost) const {
  const double memory = touched(own), bytes = part.bytes();
  if (what.where == Where::here) {
    const Rate& rate = what.format == OperandFormat::plain ? machine_.reduce : machine_.reduce_packets;
    const double far_bytes = data_.bytes_of_peers(own, operand, what, part);
    cost.bandwidth_ns += (bytes - far_bytes) * rate.ns_per_byte(memory);
    cost.bandwidth_ns += far_bytes * machine_.memory.read_reduce.ns_per_byte(memory);
    return;
  }
  const auto add = [&](Rank peer) {
    if (peer == own) {
      cost.bandwidth_ns += bytes * machine_.reduce.ns_per_byte(memory);
      return;
    }
    const LinkModel& from = link(ChannelKind::memory, own, peer);
    cost.latency_ns += from.latency_ns;
    cost.bandwidth_ns += bytes * from.read_reduce.ns_per_byte(memory);
    load(peer, own, bytes, cost);
  };
  if (what.where == Where::peer) return add(rank_of(own, operand, what.where));
  for (const Rank peer : of(own).switches[std::size_t(operand.via)].ranks) add(peer);
}

/// Cost of reading the first or only source. A local source adds only the extra time for bytes in a peer's cache; the
/// target of the step includes the rest.
void CostModel::first_source(Rank own, const Step& step, const Operand& operand, OperandShape what, Part part,
                             StepCost& cost) const {
  const double memory = touched(own), bytes = part.bytes();
  if (what.where == Where::here) {
    const double more_ns = machine_.memory.get.ns_per_byte(memory) - machine_.copy.ns_per_byte(memory);
    cost.bandwidth_ns += data_.bytes_of_peers(own, operand, what, part) * std::max(0.0, more_ns);
  } else if (what.where == Where::peer) {
    const Rank peer = rank_of(own, operand, what.where);
    const LinkModel& from = link(step.channel, own, peer);
    cost.latency_ns += from.latency_ns;
    cost.bandwidth_ns += bytes * from.get.ns_per_byte(memory);
    load(peer, own, bytes, cost);
  } else if (machine_.multicast.is_present) {
    cost.latency_ns += machine_.multicast.latency_ns;
    cost.bandwidth_ns += bytes * machine_.multicast.get.ns_per_byte(memory);
    load(LinkLoad::at_switch, own, bytes, cost);
  } else {
    add_source(own, operand, what, part, cost);
  }
}

void CostModel::put(Rank own, Rank peer, const Step& step, const Operand& operand, OperandShape what,
                    OperandFormat source, Part part, StepCost& cost) const {
  const double memory = touched(own), bytes = part.bytes();
  if (peer == own) {
    const Rate& rate = what.format != OperandFormat::plain ? machine_.pack
                       : source != OperandFormat::plain    ? machine_.unpack
                                                           : machine_.copy;
    cost.bandwidth_ns += bytes * rate.ns_per_byte(memory);
    if (what.format != OperandFormat::plain || what.where != Where::here) return;
    const double more_ns = machine_.memory.take_back.ns_per_byte(memory) - machine_.copy.ns_per_byte(memory);
    cost.bandwidth_ns += data_.bytes_to_take_back(own, operand, part) * std::max(0.0, more_ns);
    return;
  }
  const ChannelKind kind = step.channel == ChannelKind::switched ? ChannelKind::memory : step.channel;
  const LinkModel& to = link(kind, own, peer);
  cost.latency_ns += to.message_ns;
  const double sent = what.format == OperandFormat::plain ? bytes : 2 * bytes;
  const Rate& rate = what.format != OperandFormat::plain         ? to.packets
                     : step.sources > 1                          ? to.reduce_put
                     : part.end - part.begin < to.long_put_bytes ? to.short_put
                                                                 : to.put;
  const double bandwidth_ns = bytes * rate.ns_per_byte(memory);
  if (to.has_proxy) {
    cost.loads.push_back({.from = own, .to = peer, .bytes = sent, .has_proxy = true, .bandwidth_ns = bandwidth_ns});
    return;
  }
  cost.bandwidth_ns += bandwidth_ns;
  load(own, peer, sent, cost);
}

/// Cost of writing one target. `source` is the format of the data read: reading it adds nothing, if it was local.
void CostModel::add_target(Rank own, const Step& step, const Operand& operand, OperandShape what, OperandFormat source,
                           Part part, StepCost& cost) const {
  if (what.where != Where::group) {
    put(own, rank_of(own, operand, what.where), step, operand, what, source, part, cost);
  } else if (machine_.multicast.is_present) {
    cost.latency_ns += machine_.multicast.latency_ns;
    const double sent = what.format == OperandFormat::plain ? part.bytes() : 2 * part.bytes();
    cost.bandwidth_ns += sent * machine_.multicast.put.ns_per_byte(touched(own));
    load(own, LinkLoad::at_switch, sent, cost);
  } else {
    for (const Rank peer : of(own).switches[std::size_t(operand.via)].ranks)
      put(own, peer, step, operand, what, source, part, cost);
  }
}

namespace {

/// Bytes that a CPU has just read are in its cache, wherever they lie, so writing them costs no more than a copy.
bool has_read(const Step& step, const Operand& target) {
  const auto begin = step.operands.begin();
  return target.via >= 0 && std::find(begin, begin + step.sources, target) != begin + step.sources;
}

}  // namespace

void CostModel::cost_of_move(Rank own, const Step& step, Part part, StepCost& out) const {
  out.latency_ns = out.bandwidth_ns = 0;
  out.loads.clear();
  const StepShape& shape = shape_of(step.kind);
  const auto sources = static_cast<std::size_t>(step.sources), targets = step.operands.size() - sources;
  for (std::size_t i = 0; i < sources; ++i) {
    const OperandShape what = shape_of_source(shape, i);
    if (i == 0 || shape.pairing == Pairing::pairs)
      first_source(own, step, step.operands[i], what, part, out);
    else
      add_source(own, step.operands[i], what, part, out);
  }
  for (std::size_t i = 0; i < targets; ++i) {
    const Operand& target = step.operands[sources + i];
    const OperandShape from = sources == 0 ? OperandShape{} : shape_of_source(shape, std::min(i, sources - 1));
    const OperandShape what = shape_of_target(shape, i);
    // A `get` reads at a peer and writes here, in one copy.
    if (from.where == Where::peer && what.where == Where::here && sources == targets) continue;
    if (in_turn() && has_read(step, target)) {
      const double places =
          what.where == Where::group ? double(of(own).switches[std::size_t(target.via)].ranks.size()) : 1;
      out.bandwidth_ns += places * part.bytes() * machine_.copy.ns_per_byte(touched(own));
      continue;
    }
    add_target(own, step, target, what, sources == 1 ? from.format : OperandFormat::plain, part, out);
  }
}

}  // namespace tranship::replays
