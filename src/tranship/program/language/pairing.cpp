#include <map>
#include <tuple>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/language/draft.hpp>

namespace tranship::language {
namespace {

struct Count {
  Index signals = 0, waits = 0;
};
/// By kind of channel, sending rank and receiving rank.
using Counts = std::map<std::tuple<ChannelKind, tranship::Rank, tranship::Rank>, Count>;

void count(const RankProgram& resources, tranship::Rank rank, const std::vector<Draft>& drafts, Counts& counts) {
  for (const Draft& draft : drafts) {
    count(resources, rank, draft.loop, counts);
    if (!signals(draft.step.kind) && !waits(draft.step.kind)) continue;
    const ChannelKind kind = draft.step.channel;
    const auto& peers = resources.peers[static_cast<std::size_t>(kind)];
    for (const std::int32_t id : draft.step.ids) {
      const tranship::Rank peer = peers[static_cast<std::size_t>(id)];
      if (signals(draft.step.kind))
        ++counts[{kind, rank, peer}].signals;
      else
        ++counts[{kind, peer, rank}].waits;
    }
  }
}

}  // namespace

// Counts like MSCCL++, over all channels of a kind between two ranks. verify() proves that each signal meets its wait
// on its own channel, in each iteration of a loop.
void check_pairing(const ProgramDraft& program) {
  Counts counts;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const BlockDraft& block : program.ranks[rank].blocks)
      count(program.header.ranks[rank], static_cast<tranship::Rank>(rank), block.steps, counts);
  for (const auto& [connection, of_it] : counts) {
    if (of_it.signals == of_it.waits) continue;
    const auto& [kind, from, to] = connection;
    throw_error(ErrorCode::invalid_use, "rank {} signals rank {} {} on {} channels, and rank {} waits for it {}", from,
                to, amount(of_it.signals, "time"), name_of(kind), to, amount(of_it.waits, "time"));
  }
}

}  // namespace tranship::language
