#include <algorithm>
#include <array>
#include <cstring>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/board.hpp>

namespace tranship {
namespace {

enum class Doing : int { running, waiting, finished, failed };

/// Text in atomic words: a reader that overtakes a writer sees mixed text, never an invalid access. Release and acquire
/// on each word, for the seqlock around it.
template <std::size_t bytes>
class AtomicText {
 public:
  void store(std::string_view text) noexcept {
    std::array<char, bytes> padded{};
    std::copy_n(text.data(), std::min(text.size(), bytes - 1), padded.data());
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::uint64_t word;
      std::memcpy(&word, padded.data() + 8 * i, 8);
      words_[i].store(word, std::memory_order_release);
    }
  }
  std::string load() const {
    std::array<char, bytes> padded;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t word = words_[i].load(std::memory_order_acquire);
      std::memcpy(padded.data() + 8 * i, &word, 8);
    }
    return std::string(padded.data(), strnlen(padded.data(), bytes));
  }

 private:
  static_assert(bytes % 8 == 0);
  std::array<std::atomic<std::uint64_t>, bytes / 8> words_{};
};

}  // namespace

struct alignas(64) Board::Slot {
  // Odd while the wait below is being written. Each field is stored with release and loaded with acquire: a reader that
  // has seen a new field therefore also sees the odd version, and reads again. No fence is needed.
  std::atomic<std::uint64_t> version = 0;
  std::atomic<Doing> doing = Doing::running;
  std::atomic<std::int64_t> since_ns = 0;
  std::atomic<Rank> flag_rank = -1;
  std::atomic<int> flag_index = -1;
  std::atomic<std::uint64_t> wanted = 0;
  std::atomic<std::uint64_t> seen = 0;
  AtomicText<48> label;
  AtomicText<1008> failure;
};

Board::Board(int ranks) : ranks_(ranks), slots_(new Slot[static_cast<std::size_t>(ranks)]) {}
Board::~Board() = default;

void Board::post_wait(Rank rank, const WaitNote& note, std::int64_t since_ns) noexcept {
  Slot& slot = slots_[rank];
  const std::uint64_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  slot.since_ns.store(since_ns, std::memory_order_release);
  slot.flag_rank.store(note.flag_rank, std::memory_order_release);
  slot.flag_index.store(note.flag_index, std::memory_order_release);
  slot.wanted.store(note.wanted, std::memory_order_release);
  slot.seen.store(note.seen, std::memory_order_release);
  slot.label.store(note.label);
  slot.doing.store(Doing::waiting, std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

void Board::post_running(Rank rank) noexcept {
  slots_[rank].doing.store(Doing::running, std::memory_order_release);
}

void Board::post_finished(Rank rank) noexcept {
  slots_[rank].doing.store(Doing::finished, std::memory_order_release);
}

void Board::post_failed(Rank rank, std::string_view message) noexcept {
  slots_[rank].failure.store(message);
  slots_[rank].doing.store(Doing::failed, std::memory_order_release);
  Rank none = -1;
  first_failed_.compare_exchange_strong(none, rank, std::memory_order_acq_rel);
}

bool Board::finished(Rank rank) const noexcept {
  return slots_[rank].doing.load(std::memory_order_acquire) == Doing::finished;
}

std::string Board::failure_of(Rank rank) const {
  return slots_[rank].failure.load();
}

std::string Board::line(Rank rank) const {
  const Slot& slot = slots_[rank];
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::uint64_t version = slot.version.load(std::memory_order_acquire);
    const Doing doing = slot.doing.load(std::memory_order_acquire);
    if (doing == Doing::running) return "running";
    if (doing == Doing::finished) return "finished";
    if (doing == Doing::failed) return "failed: " + failure_of(rank);
    const std::int64_t since_ns = slot.since_ns.load(std::memory_order_acquire);
    const Rank flag_rank = slot.flag_rank.load(std::memory_order_acquire);
    const int flag_index = slot.flag_index.load(std::memory_order_acquire);
    const std::uint64_t wanted = slot.wanted.load(std::memory_order_acquire);
    const std::uint64_t seen = slot.seen.load(std::memory_order_acquire);
    const std::string label = slot.label.load();
    if (version % 2 != 0 || slot.version.load(std::memory_order_relaxed) != version) {
      RealSync::yield();
      continue;
    }
    const double waited_seconds = static_cast<double>(now_ns() - since_ns) * 1e-9;
    if (flag_index < 0) return fmt::format("waiting for {} for {:.3g} s", label, waited_seconds);
    return fmt::format("waiting for {} (rank {}, flag {} >= {}, sees {}) for {:.3g} s", label, flag_rank, flag_index,
                       wanted, seen, waited_seconds);
  }
  return "waiting";  // a writer that died in the middle leaves the version odd for good
}

}  // namespace tranship
