#include "tranship/fabric/seam/board.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/seam/rank_list.hpp>

namespace tranship {
namespace {

enum class Doing : int { starting, running, waiting, finished, failed };  // zeroed memory is a rank that starts

/// Text in atomic words: a reader that overtakes a writer sees mixed text, never an invalid access. Each word uses
/// release and acquire, for the seqlock around it.
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

/// `call` is a value that post_call or post_return stored.
std::string running_line(std::uint64_t call) {
  if (call == 0) return "running";
  const auto kind = static_cast<CallKind>(call >> 8 & 0xff);
  return fmt::format("running {} {} (collective call {})", (call & 1) != 0 ? "since" : "in", name_of(kind), call >> 16);
}

}  // namespace

struct alignas(64) Board::Head {
  std::atomic<Rank> first_failed_plus_1 = 0;
  std::atomic<bool> is_showing = false;  // processes of a machine may show one remote rank's wait at once
  std::atomic<int> exit_status_plus_1 = 0;
};

struct alignas(64) Board::Slot {
  // Odd while the wait below is being written. Each field is stored with release and loaded with acquire: a reader that
  // has seen a new field therefore also sees the odd version, and reads again. No fence is needed.
  std::atomic<std::uint64_t> version = 0;
  std::atomic<Doing> doing = Doing::starting;
  std::atomic<Rank> flag_rank = -1;
  std::atomic<std::int64_t> since_ns = 0;
  std::atomic<std::int64_t> flag_index = -1;
  std::atomic<Rank> raised_by = -1;
  std::atomic<int> how = 0;  // the comparison, plus 8 if numbers are signed
  std::atomic<std::uint64_t> wanted = 0;
  std::atomic<std::uint64_t> seen = 0;
  AtomicText<48> label;
  AtomicText<64> file;
  std::atomic<int> line = 0;

  alignas(64) std::atomic<std::uint64_t> call = 0;  // sequence, kind, and in the last bit whether it has returned
  std::atomic<int> failure_code = 0;
  AtomicText<1008> failure;
};

Board::Board(int ranks) : Board(ranks, ::operator new(size_bytes(ranks), std::align_val_t(64))) {
  std::memset(static_cast<void*>(head_), 0, size_bytes(ranks));
  owned_ = true;
}
Board::Board(int ranks, void* memory) noexcept
    : ranks_(ranks), shown_{.count = ranks}, head_(static_cast<Head*>(memory)) {}
Board::Board(const Board& whole, const Members& members)
    : ranks_(members.count),
      shown_(members.in(whole.shown_)),
      is_whole_(false),
      head_(whole.head_),
      here_(whole.here_),
      link_(whole.link_) {}
Board::~Board() {
  if (owned_) ::operator delete(static_cast<void*>(head_), std::align_val_t(64));
}

std::size_t Board::size_bytes(int ranks) noexcept {
  return sizeof(Head) + static_cast<std::size_t>(ranks) * sizeof(Slot);
}
Board::Slot& Board::slot(Rank rank) const noexcept {
  return reinterpret_cast<Slot*>(head_ + 1)[to_whole(rank)];
}

void Board::post_wait(Rank rank, const WaitNote& note, std::int64_t since_ns) noexcept {
  Slot& to = slot(rank);
  if (shows_end(rank)) return;
  const std::uint64_t version = to.version.load(std::memory_order_relaxed);
  to.version.store(version + 1, std::memory_order_relaxed);
  to.since_ns.store(since_ns, std::memory_order_release);
  to.flag_rank.store(to_whole(note.flag_rank), std::memory_order_release);
  to.flag_index.store(note.flag_index, std::memory_order_release);
  to.raised_by.store(to_whole(note.raised_by), std::memory_order_release);
  to.how.store(static_cast<int>(note.comparison) + (note.is_signed ? 8 : 0), std::memory_order_release);
  to.wanted.store(note.wanted, std::memory_order_release);
  to.seen.store(note.seen, std::memory_order_release);
  to.label.store(note.label);
  to.file.store(file_name(note.where));
  to.line.store(note.where.line, std::memory_order_release);
  to.doing.store(Doing::waiting, std::memory_order_release);
  to.version.store(version + 2, std::memory_order_release);
}

void Board::post_running(Rank rank) noexcept {
  if (shows_end(rank)) return;  // it unwinds its wait
  const bool is_new = !joined(rank);
  slot(rank).doing.store(Doing::running, std::memory_order_release);
  if (is_new) tell(rank);
}

void Board::post_call(Rank rank, CallKind kind, std::uint64_t sequence) noexcept {
  slot(rank).call.store(sequence << 16 | std::uint64_t(kind) << 8, std::memory_order_relaxed);
}

void Board::post_return(Rank rank) noexcept {
  Slot& to = slot(rank);
  to.call.store(to.call.load(std::memory_order_relaxed) | 1, std::memory_order_relaxed);
}

std::uint64_t Board::call_of(Rank rank) const noexcept {
  return slot(rank).call.load(std::memory_order_relaxed);
}

void Board::post_finished(Rank rank) noexcept {
  slot(rank).doing.store(Doing::finished, std::memory_order_release);
  tell(rank);
}

void Board::post_failed(Rank rank, ErrorCode code, std::string_view message) noexcept {
  if (mark_failed(rank, code, message)) tell(rank);
}

bool Board::mark_failed(Rank rank, ErrorCode code, std::string_view message) noexcept {
  Slot& to = slot(rank);
  if (to.doing.load(std::memory_order_relaxed) == Doing::failed) return false;  // the first report stands
  to.failure.store(message);
  to.failure_code.store(static_cast<int>(code), std::memory_order_release);
  to.doing.store(Doing::failed, std::memory_order_release);
  Rank none = 0;
  head_->first_failed_plus_1.compare_exchange_strong(none, to_whole(rank) + 1, std::memory_order_acq_rel);
  return true;
}

Board::Entry Board::entry_of(Rank rank) const {
  const Slot& from = slot(rank);
  Entry out;
  const auto copy = [](const std::string& text, auto& to) { text.copy(to, sizeof to - 1); };
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::uint64_t version = from.version.load(std::memory_order_acquire);
    out = {.doing = static_cast<int>(from.doing.load(std::memory_order_acquire)),
           .failure_code = from.failure_code.load(std::memory_order_acquire),
           .how = from.how.load(std::memory_order_acquire),
           .line = from.line.load(std::memory_order_acquire),
           .flag_rank = from_whole(from.flag_rank.load(std::memory_order_acquire)),
           .raised_by = from_whole(from.raised_by.load(std::memory_order_acquire)),
           .flag_index = from.flag_index.load(std::memory_order_acquire),
           .waited_ns = now_ns() - from.since_ns.load(std::memory_order_acquire),
           .wanted = from.wanted.load(std::memory_order_acquire),
           .seen = from.seen.load(std::memory_order_acquire),
           .call = from.call.load(std::memory_order_relaxed)};
    copy(from.label.load(), out.label);
    copy(from.file.load(), out.file);
    // A writer that died in the middle leaves the version odd for good. Only waits are written under the version.
    out.is_torn = version % 2 != 0 || from.version.load(std::memory_order_relaxed) != version;
    if (!out.is_torn || static_cast<Doing>(out.doing) != Doing::waiting) break;
    RealSync::yield();
  }
  copy(from.failure.load(), out.failure);
  out.exit_status_plus_1 = head_->exit_status_plus_1.load(std::memory_order_acquire);
  return out;
}

/// The note points into the entry.
WaitNote Board::note_of(const Entry& entry) {
  WaitNote note(entry.label, entry.raised_by, {entry.file, entry.line});
  note.flag_rank = entry.flag_rank;
  note.flag_index = entry.flag_index;
  note.comparison = static_cast<Comparison>(entry.how % 8);
  note.is_signed = entry.how >= 8;
  note.wanted = entry.wanted;
  note.seen = entry.seen;
  return note;
}

bool Board::Entry::has_failed() const noexcept {
  return static_cast<Doing>(doing) == Doing::failed;
}

bool Board::Entry::has_ended() const noexcept {
  return has_failed() || static_cast<Doing>(doing) == Doing::finished;
}

void Board::show(Rank rank, const Entry& entry) noexcept {
  if (entry.exit_status_plus_1 != 0) post_exit_status(entry.exit_status_plus_1);
  if (shows_end(rank)) return;
  slot(rank).call.store(entry.call, std::memory_order_relaxed);
  switch (static_cast<Doing>(entry.doing)) {
    case Doing::starting:
      return;
    case Doing::running:
      return post_running(rank);
    case Doing::finished:
      return slot(rank).doing.store(Doing::finished, std::memory_order_release);
    case Doing::failed:
      return void(mark_failed(rank, static_cast<ErrorCode>(entry.failure_code), entry.failure));
    case Doing::waiting:
      break;
  }
  if (head_->is_showing.exchange(true, std::memory_order_acquire)) return;  // another process shows it
  post_wait(rank, note_of(entry), now_ns() - entry.waited_ns);
  head_->is_showing.store(false, std::memory_order_release);
}

int Board::post_exit_status(int status_plus_1) noexcept {
  int first = 0;
  const bool is_first =
      head_->exit_status_plus_1.compare_exchange_strong(first, status_plus_1, std::memory_order_acq_rel);
  return is_first ? status_plus_1 : first;
}
void Board::post_exit(Rank rank, int status) noexcept {
  const int first = post_exit_status((status & 0xff) + 1) - 1;
  std::array<char, 80> text{};
  fmt::format_to_n(text.data(), text.size() - 1, "it has ended all ranks by global_exit({})", first);
  post_failed(rank, ErrorCode::user_exception, text.data());
}
std::optional<int> Board::exit_status() const noexcept {
  const int status = head_->exit_status_plus_1.load(std::memory_order_acquire);
  return status == 0 ? std::nullopt : std::optional(status - 1);
}
void Board::pass_exit_on() const noexcept {
  if (!link_) return;
  // The rank that posted the status posts its failure next, unless it is killed in between.
  const Deadline deadline = Deadline::after_ns(1'000'000'000);
  while (!has_failed() && !deadline.passed()) RealSync::yield();
  if (const Rank told = head_->first_failed_plus_1.load(std::memory_order_acquire) - 1; told >= 0)
    link_->tell_at_end(told);
}

bool Board::finished(Rank rank) const noexcept {
  if (slot(rank).doing.load(std::memory_order_acquire) != Doing::finished) return false;
  const Rank whole = to_whole(rank);
  return is_here(whole) || link_->has_heard_end(whole);
}
bool Board::joined(Rank rank) const noexcept {
  return slot(rank).doing.load(std::memory_order_acquire) != Doing::starting;
}
bool Board::ended(Rank rank) const noexcept {
  return finished(rank) || slot(rank).doing.load(std::memory_order_acquire) == Doing::failed;
}
bool Board::shows_end(Rank rank) const noexcept {
  const Doing doing = slot(rank).doing.load(std::memory_order_acquire);
  return doing == Doing::finished || doing == Doing::failed;
}
bool Board::has_failed() const noexcept {
  return head_->first_failed_plus_1.load(std::memory_order_acquire) != 0;
}
Rank Board::first_failed() const noexcept {
  return from_whole(head_->first_failed_plus_1.load(std::memory_order_acquire) - 1);
}
std::string Board::first_failure() const {
  if (const Rank rank = first_failed(); rank >= 0) return fmt::format("rank {} failed: {}", rank, failure_of(rank));
  const Rank rank = head_->first_failed_plus_1.load(std::memory_order_acquire) - 1;
  return fmt::format("rank {} of the whole world failed: {}", rank,
                     reinterpret_cast<const Slot*>(head_ + 1)[rank].failure.load());
}
ErrorCode Board::failure_code_of(Rank rank) const noexcept {
  return static_cast<ErrorCode>(slot(rank).failure_code.load(std::memory_order_acquire));
}
std::string Board::failure_of(Rank rank) const {
  return slot(rank).failure.load();
}

std::string Board::line(Rank rank) const {
  ask(rank);
  const Entry entry = entry_of(rank);
  switch (static_cast<Doing>(entry.doing)) {
    case Doing::starting:
      return "starting";
    case Doing::running:
      return running_line(entry.call);
    case Doing::finished:
      return "finished";
    case Doing::failed:
      return "failed: " + std::string(entry.failure);
    case Doing::waiting:
      break;
  }
  if (entry.is_torn) return "waiting";
  const WaitNote note = note_of(entry);
  return fmt::format("waiting for {} for {:.3g} s (from {})", to_string(note),
                     static_cast<double>(entry.waited_ns) * 1e-9, short_name(note.where));
}

std::string Board::lines_of_others(Rank rank, Rank first) const {
  RankList list;
  const auto add = [&](Rank peer) { list.add(peer, [&] { return line(peer); }); };
  if (first >= 0 && first < ranks_ && first != rank) add(first);
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (peer != rank && peer != first) add(peer);
  return list.text();
}

Rank Board::awaited_by(Rank rank) const noexcept {
  ask(rank);
  const Slot& from = slot(rank);
  if (from.doing.load(std::memory_order_acquire) != Doing::waiting) return -1;
  return from_whole(from.raised_by.load(std::memory_order_acquire));
}

std::string Board::circle_from(Rank rank) const {
  // Following as many steps as there are ranks leads into the circle, if there is one.
  Rank at = rank;
  for (int step = 0; step < ranks_ && at >= 0; ++step) at = awaited_by(at);
  if (at < 0) return "";
  std::string text = fmt::format("{}", at);
  Rank next = at;
  for (int step = 0; step < ranks_; ++step) {
    next = awaited_by(next);
    if (next < 0) return "";  // it has gone on meanwhile
    text += fmt::format(" waits on {}", next);
    if (next == at) return text;
  }
  return "";
}

}  // namespace tranship
