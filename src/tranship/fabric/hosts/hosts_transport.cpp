#include "tranship/fabric/hosts/hosts_transport.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <tranship/fabric/world.hpp>

namespace tranship {

void HostsTransport::wait_for(const char* label, const Answers& answers, CallSite where) {
  std::size_t come = 0;
  try {
    world_.wait_for_answer(
        [&] {
          const auto has_come = [&] {
            while (come < answers.size() && answers[come]->is_here.load(std::memory_order_acquire)) ++come;
            return come == answers.size();
          };
          return has_come() || (engine_.progress() && has_come());
        },
        WaitNote(label, WaitNote::anyone, where));
  } catch (...) {
    engine_.drop(answers);
    throw;
  }
}

void HostsTransport::wait_until_left(const char* label, std::span<const std::shared_ptr<Wire::Lent>> lent,
                                     CallSite where) {
  const auto has_left = [](const auto& one) { return one->has_left.load(std::memory_order_acquire); };
  const auto have_left = [&] { return std::all_of(lent.begin(), lent.end(), has_left); };
  world_.wait_for_answer([&] { return have_left() || (engine_.progress() && have_left()); },
                         WaitNote(label, WaitNote::anyone, where));
}

void HostsTransport::wait_for_room(Rank peer, CallSite where) {
  if (!engine_.is_congested(peer)) return;
  world_.wait_for_answer(
      [&] {
        engine_.progress();
        return !engine_.is_congested(peer);
      },
      WaitNote("room for more transfers", peer, where));
}

void HostsTransport::put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                         Completion completion, CallSite where) {
  wait_for_room(target.peer, where);
  written_.insert(target.peer);
  std::shared_ptr<Wire::Lent> lent = engine_.put(target, block, width, source, signal);
  if (!lent) return;
  auto& leaving = lent_[target.peer];
  std::erase_if(leaving, [](const auto& one) { return one->has_left.load(std::memory_order_acquire); });
  leaving.push_back(lent);
  if (completion == Completion::blocking) wait_until_left("a put", {&lent, 1}, where);
}

void HostsTransport::get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                         CallSite where) {
  if (element_count(block) == 0) return;
  wait_for_room(source.peer, where);
  auto answer = engine_.get(target, block, width, source);
  if (completion == Completion::nonblocking) return answers_[source.peer].push_back(std::move(answer));
  wait_for("a get", {std::move(answer)}, where);
}

void HostsTransport::atomic(Remote at, int width, WordKind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
                            void* before, Completion completion, CallSite where) {
  wait_for_room(at.peer, where);
  auto answer = engine_.atomic(at, width, op, operand, compare, before);
  if (!answer)
    written_.insert(at.peer);
  else if (completion == Completion::nonblocking)
    answers_[at.peer].push_back(std::move(answer));
  else
    wait_for("an atomic", {std::move(answer)}, where);
}

void HostsTransport::quiet(std::optional<Rank> peer, CallSite where) {
  // What comes while this waits belongs to the next one.
  Answers answers;
  std::erase_if(answers_, [&](auto& of_peer) {
    if (peer && of_peer.first != *peer) return false;
    std::move(of_peer.second.begin(), of_peer.second.end(), std::back_inserter(answers));
    return true;
  });
  std::erase_if(written_, [&](Rank other) {
    if (peer && other != *peer) return false;
    answers.push_back(engine_.flush(other));
    return true;
  });
  wait_for("a quiet", answers, where);
  // What has come may be read here until it is known to have left.
  std::vector<std::shared_ptr<Wire::Lent>> leaving;
  std::erase_if(lent_, [&](auto& of_peer) {
    if (peer && of_peer.first != *peer) return false;
    std::move(of_peer.second.begin(), of_peer.second.end(), std::back_inserter(leaving));
    return true;
  });
  if (!leaving.empty()) wait_until_left("a quiet", leaving, where);
}

void HostsTransport::abandon() noexcept {
  for (const auto& [peer, answers] : answers_) engine_.drop(answers);
  answers_.clear();
  written_.clear();
}

}  // namespace tranship
