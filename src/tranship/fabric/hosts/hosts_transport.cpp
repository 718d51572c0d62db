#include "tranship/fabric/hosts/hosts_transport.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <tranship/fabric/world.hpp>

namespace tranship {

namespace {

/// Takes what belongs to one peer, or to all.
template <class T>
std::vector<T> taken(std::map<Rank, std::vector<T>>& of_peers, std::optional<Rank> peer) {
  std::vector<T> out;
  std::erase_if(of_peers, [&](auto& of_peer) {
    if (peer && of_peer.first != *peer) return false;
    std::move(of_peer.second.begin(), of_peer.second.end(), std::back_inserter(out));
    return true;
  });
  return out;
}

bool has_left(const std::shared_ptr<Wire::Lent>& lent) {
  return lent->has_left.load(std::memory_order_acquire);
}

}  // namespace

void HostsTransport::wait_until(FunctionRef<bool()> is_so, const WaitNote& note) {
  world_.wait_for_answer([&] { return is_so() || (engine_.progress() && is_so()); }, note);
}

void HostsTransport::wait_for(const char* label, const Answers& answers, CallSite where) {
  std::size_t come = 0;
  const auto has_come = [&] {
    while (come < answers.size() && answers[come]->is_here.load(std::memory_order_acquire)) ++come;
    return come == answers.size();
  };
  try {
    wait_until(has_come, WaitNote(label, WaitNote::anyone, where));
  } catch (...) {
    engine_.drop(answers);
    throw;
  }
}

void HostsTransport::wait_for_room(Rank peer, CallSite where) {
  wait_until([&] { return !engine_.is_congested(peer); }, WaitNote("room for more transfers", peer, where));
}

std::shared_ptr<Wire::Lent> HostsTransport::start_put(Remote target, const CopyBlock& block, int width,
                                                      const void* source, const Signal* signal,
                                                      const std::shared_ptr<const void>& owner, CallSite where) {
  wait_for_room(target.peer, where);
  written_.insert(target.peer);
  std::shared_ptr<Wire::Lent> lent = engine_.put(target, block, width, source, signal, owner);
  if (!lent || has_left(lent)) return nullptr;
  auto& leaving = lent_[target.peer];
  std::erase_if(leaving, has_left);
  leaving.push_back(lent);
  return lent;
}

void HostsTransport::put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                         Completion completion, CallSite where) {
  const auto lent = start_put(target, block, width, source, signal, nullptr, where);
  if (lent && completion == Completion::blocking)
    wait_until([&] { return has_left(lent); }, WaitNote("a put", WaitNote::anyone, where));
}

Transport::Departure HostsTransport::put_departing(Remote target, std::span<const std::byte> source,
                                                   const std::shared_ptr<const void>& owner, const Signal& signal,
                                                   CallSite where) {
  const auto lent = start_put(target, row_of(source.size(), 1), 1, source.data(), &signal, owner, where);
  return lent ? Departure(lent, &lent->has_left) : nullptr;
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
  // Operations that start while this waits belong to the next quiet.
  Answers answers = taken(answers_, peer);
  std::erase_if(written_, [&](Rank other) {
    if (peer && other != *peer) return false;
    answers.push_back(engine_.flush(other));
    return true;
  });
  wait_for("a quiet", answers, where);
  // This rank may read data that has arrived until the wire says that it has left.
  const std::vector<std::shared_ptr<Wire::Lent>> leaving = taken(lent_, peer);
  wait_until([&] { return std::all_of(leaving.begin(), leaving.end(), has_left); },
             WaitNote("a quiet", WaitNote::anyone, where));
}

void HostsTransport::abandon() noexcept {
  for (const auto& [peer, answers] : answers_) engine_.drop(answers);
  answers_.clear();
  written_.clear();
}

}  // namespace tranship
