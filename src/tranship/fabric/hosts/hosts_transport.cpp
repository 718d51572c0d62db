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

void HostsTransport::put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
                         Completion, CallSite) {
  written_.insert(target.peer);
  engine_.put(target, block, width, source, signal);
}

void HostsTransport::get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
                         CallSite where) {
  if (element_count(block) == 0) return;
  auto answer = engine_.get(target, block, width, source);
  if (completion == Completion::nonblocking) return answers_[source.peer].push_back(std::move(answer));
  wait_for("a get", {std::move(answer)}, where);
}

void HostsTransport::atomic(Remote at, int width, WordKind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
                            void* before, Completion completion, CallSite where) {
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
}

void HostsTransport::abandon() noexcept {
  for (const auto& [peer, answers] : answers_) engine_.drop(answers);
  answers_.clear();
  written_.clear();
}

}  // namespace tranship
