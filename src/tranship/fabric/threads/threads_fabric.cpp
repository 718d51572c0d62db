#include <algorithm>
#include <cstring>
#include <thread>

#include <time.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/threads/threads_fabric.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

ThreadsShared::ThreadsShared(int ranks)
    : size_(ranks), board_(ranks), arrivals_(new RealSync::Word[static_cast<std::size_t>(ranks)]) {
  for (auto& offers : offers_) offers = std::vector<Offer>(static_cast<std::size_t>(ranks));
}

ThreadsFabric::ThreadsFabric(ThreadsShared& shared, Rank rank)
    : Fabric(rank, shared.size_, shared.board_),
      shared_(shared),
      barrier_(shared.arrivals_.get(), shared.size_, rank),
      // A rank that has its core to itself may spin for some tens of microseconds, longer than a message takes. With
      // more ranks than cores, whoever spins keeps the one it waits for from running.
      spin_rounds_(static_cast<unsigned>(shared.size_) <= std::thread::hardware_concurrency() ? 1000 : 10) {}

PeerKind ThreadsFabric::peer_kind(Rank) const noexcept {
  return PeerKind::reachable;
}

void* ThreadsFabric::reach(Rank, const void* address) const noexcept {
  return const_cast<void*>(address);
}

void ThreadsFabric::barrier(World& world, CallSite where) {
  meet(world, WaitNote("barrier", WaitNote::anyone, where));
}

void ThreadsFabric::meet(World& world, WaitNote note) {
  barrier_.arrive();
  note.flag_index = 0;
  note.wanted = barrier_.epoch();
  world.wait_until(
      [&] {
        if (barrier_.passed()) return true;
        note.raised_by = note.flag_rank = barrier_.missing();
        note.seen = barrier_.arrivals_of(note.flag_rank);
        return false;
      },
      note);
}

const std::vector<ThreadsShared::Offer>& ThreadsFabric::offer(World& world, const void* mine, std::size_t size_bytes,
                                                              WaitNote note) {
  std::vector<ThreadsShared::Offer>& offers = shared_.offers_[offers_made_++ % 2];
  const auto* bytes = static_cast<const unsigned char*>(mine);
  offers[rank()].bytes.assign(bytes, bytes + size_bytes);
  meet(world, note);
  return offers;
}

void ThreadsFabric::all_gather(World& world, const void* mine, std::size_t size_bytes, void* all, CallSite where) {
  const auto& offers = offer(world, mine, size_bytes, WaitNote("all_gather", WaitNote::anyone, where));
  for (Rank peer = 1; peer < size(); ++peer)
    if (offers[peer].bytes.size() != offers[0].bytes.size())
      throw_error(ErrorCode::mismatch, "all_gather: rank 0 gives {} bytes, rank {} gives {} (rank {})",
                  offers[0].bytes.size(), peer, offers[peer].bytes.size(), rank());
  if (size_bytes == 0) return;
  for (Rank peer = 0; peer < size(); ++peer)
    std::memcpy(static_cast<unsigned char*>(all) + static_cast<std::size_t>(peer) * size_bytes,
                offers[peer].bytes.data(), size_bytes);
}

Words ThreadsFabric::words(World& world, int count, const char* label, CallSite where) {
  if (rank() == 0) shared_.new_words_ = std::make_shared<WordBlock>(size(), count, label);
  const auto& offers = offer(world, &count, sizeof count, WaitNote("words", WaitNote::anyone, where));
  for (Rank peer = 0; peer < size(); ++peer) {
    int theirs = 0;
    // A rank that has called all_gather instead is out of step: its size differs, or its bytes are taken for a count.
    if (offers[peer].bytes.size() != sizeof theirs)
      throw_error(ErrorCode::mismatch, "words '{}': rank {} gives {} bytes, needs {}: not all ranks made this call",
                  label, peer, offers[peer].bytes.size(), sizeof theirs);
    std::memcpy(&theirs, offers[peer].bytes.data(), sizeof theirs);
    if (theirs != count)
      throw_error(ErrorCode::mismatch, "words '{}': rank {} asks for {} per rank, rank {} for {}", label, rank(), count,
                  peer, theirs);
  }
  Words words(shared_.new_words_);
  meet(world, WaitNote("words", WaitNote::anyone, where));
  // All ranks hold it now; the world keeps none, so that the last handle frees the words.
  if (rank() == 0) shared_.new_words_.reset();
  return words;
}

void ThreadsFabric::idle(int round) noexcept {
  // Yielding beats a futex by far when many ranks share a core and all soon go on. Sleep only when that has not helped
  // for long: then somebody computes, and yielding would take half his core.
  constexpr int yields = 200;
  constexpr std::int64_t sleep_ns_min = 20'000, sleep_ns_max = 1'000'000;
  if (round < yields) return RealSync::yield();
  const int doublings = std::min((round - yields) / 4, 6);
  const timespec nap = {0, static_cast<long>(std::min(sleep_ns_min << doublings, sleep_ns_max))};
  nanosleep(&nap, nullptr);
}

}  // namespace tranship
