#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/algorithms/mesh.hpp>

namespace tranship {
namespace {

using namespace algorithms_detail;

struct Entry {
  Algorithm what;
  Program (*make)(const AlgorithmOptions&);
};

constexpr Entry entries[] = {
    {{"allreduce/all_pairs", "allreduce", "each rank combines one part and writes it to all; long messages in one node",
      false, false, true},
     all_reduce_all_pairs},
    {{"allreduce/ring", "allreduce", "parts travel around; long messages between ranks that hear few others", false,
      false, true},
     all_reduce_ring},
    {{"allreduce/halving_doubling", "allreduce", "halves are exchanged at halved distances; many ranks", false, false,
      true},
     all_reduce_halving_doubling},
    {{"allreduce/hierarchical", "allreduce", "within nodes, between them over ports, within nodes again", false, true,
      true},
     all_reduce_hierarchical},
    {{"allreduce/packets", "allreduce", "everyone sends everything to everyone; the shortest messages", true, false,
      true},
     all_reduce_packets},
    {{"allreduce/two_phase_packets", "allreduce", "all_pairs in packets; short messages", true, false, true},
     all_reduce_two_phase_packets},
    {{"allreduce/copies", "allreduce", "each rank reads a copy of every input; up to some KiB in one node", false,
      false, true},
     all_reduce_copies},
    {{"allreduce/reading", "allreduce", "each rank reads every input; two ranks, up to a MiB", false, false, false},
     all_reduce_reading},
    {{"allgather/copies", "allgather", "each rank reads copies of the inputs; up to some KiB in one node", false, false,
      true},
     all_gather_copies},
    {{"allgather/reading", "allgather", "each rank reads the inputs; long messages in one node", false, false, true},
     all_gather_reading},
    {{"reducescatter/copies", "reducescatter", "each rank reads copies of the inputs; up to some KiB in one node",
      false, false, true},
     reduce_scatter_copies},
    {{"alltoall/copies", "alltoall", "each rank reads copies of the inputs; up to some KiB in one node", false, false,
      true},
     all_to_all_copies},
    {{"alltoall/reading", "alltoall", "each rank reads the inputs; long messages in one node", false, false, false},
     all_to_all_reading},
    {{"allgather/all_pairs", "allgather", "each rank writes its input to all; long messages in one node", false, false,
      true},
     all_gather_all_pairs},
    {{"allgather/ring", "allgather", "parts travel around", false, false, true}, all_gather_ring},
    {{"allgather/packets", "allgather", "short messages", true, false, true}, all_gather_packets},
    {{"reducescatter/all_pairs", "reducescatter", "each rank reads its part of all inputs; long messages in one node",
      false, false, true},
     reduce_scatter_all_pairs},
    {{"reducescatter/ring", "reducescatter", "parts travel around", false, false, true}, reduce_scatter_ring},
    {{"reducescatter/packets", "reducescatter", "short messages", true, false, true}, reduce_scatter_packets},
    {{"alltoall/all_pairs", "alltoall", "each rank writes its parts to all; long messages in one node", false, false,
      false},
     all_to_all_all_pairs},
    {{"alltoall/packets", "alltoall", "short messages, and input and output may be the same", true, false, true},
     all_to_all_packets},
    {{"broadcast/all_pairs", "broadcast", "all read from the root; long messages in one node", false, false, true},
     broadcast_all_pairs},
    {{"broadcast/tree", "broadcast", "a binomial tree; many ranks", false, false, true}, broadcast_tree},
    {{"broadcast/packets", "broadcast", "short messages", true, false, true}, broadcast_packets},
    {{"reduce/all_pairs", "reduce", "the root reads from all; few ranks", false, false, true}, reduce_all_pairs},
    {{"reduce/tree", "reduce", "a binomial tree; many ranks", false, false, true}, reduce_tree},
};

std::string names_like(std::string_view name) {
  const std::string_view collective = name.substr(0, name.find('/'));
  const bool is_known = std::any_of(std::begin(entries), std::end(entries),
                                    [&](const Entry& entry) { return entry.what.collective == collective; });
  std::string out;
  for (const Entry& entry : entries) {
    if (is_known && entry.what.collective != collective) continue;
    if (!out.empty()) out += ", ";
    out += entry.what.name;
  }
  return out;
}

}  // namespace

const std::vector<Algorithm>& algorithms() {
  static const auto& all = *[] {
    auto* const out = new std::vector<Algorithm>;
    for (const Entry& entry : entries) out->push_back(entry.what);
    return out;
  }();
  return all;
}

Program make_program(std::string_view name, const AlgorithmOptions& options) {
  const Entry* const entry =
      std::find_if(std::begin(entries), std::end(entries), [&](const Entry& one) { return one.what.name == name; });
  if (entry == std::end(entries))
    throw_error(ErrorCode::invalid_use, "there is no algorithm \"{}\"; there are {}", name, names_like(name));
  constexpr Rank ranks_max = 1024;  // each talks to all others: a million channels
  if (options.ranks < 1 || options.ranks > ranks_max)
    throw_error(ErrorCode::invalid_use, "{} is not defined for {}: 1 to {} are possible", name,
                amount(options.ranks, "rank"), ranks_max);
  if (options.root < 0 || options.root >= options.ranks)
    throw_error(ErrorCode::invalid_use, "root {} does not exist: there {} {}", options.root,
                plural(options.ranks, "is", "are"), amount(options.ranks, "rank"));
  if (options.in_place && !entry->what.can_be_in_place)
    throw_error(ErrorCode::invalid_use, "{} cannot be done in place", name);
  if (options.ranks_per_node != 0 && !entry->what.has_nodes)
    throw_error(ErrorCode::invalid_use, "{} cannot be divided into nodes of {}; allreduce/hierarchical can", name,
                amount(options.ranks_per_node, "rank"));
  AlgorithmOptions all = options;
  if (entry->what.has_nodes) {
    if (all.ranks_per_node == 0) all.ranks_per_node = all.ranks;
    if (all.ranks_per_node < 1 || all.ranks % all.ranks_per_node != 0)
      throw_error(ErrorCode::invalid_use, "{} cannot be divided into nodes of {}", amount(all.ranks, "rank"),
                  all.ranks_per_node);
  }
  return entry->make(all);
}

}  // namespace tranship
