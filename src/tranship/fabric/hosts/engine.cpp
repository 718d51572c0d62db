#include "tranship/fabric/hosts/engine.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/atomic.hpp>
#include <tranship/fabric/hosts/server.hpp>
#include <tranship/kernels/word.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship {

namespace {

enum class Op : std::uint8_t { put, get, atomic, flush, answer, meeting, told, asked, shown };

// How long what a rank does is waited for before it is left out of a message.
constexpr std::int64_t ask_ns = 20'000'000;
constexpr std::int64_t linger_ns = 60'000'000'000;
constexpr std::int64_t leave_ns = 1'000'000'000;
constexpr std::size_t waiting_bytes_max = std::size_t(4) << 20;

bool is_dense(const long long* strides, const CopyBlock& block, int width) {
  long long next = width;
  for (int d = block.dims - 1; d >= 0; --d) {
    if (block.extents[d] > 1 && strides[d] != next) return false;
    next *= block.extents[d];
  }
  return true;
}

/// Bytes side by side are a word where they can be, which a rank may be looking at.
void store(const CopyBlock& block, int width, std::span<const std::byte> from, std::byte* to) {
  const auto word = [&]<class W>(W value) {
    std::memcpy(&value, from.data(), sizeof value);
    detail::store_word(reinterpret_cast<W*>(to), value);
  };
  if (from.empty()) return;
  const bool is_word =
      reinterpret_cast<std::uintptr_t>(to) % from.size() == 0 && is_dense(block.target_strides, block, width);
  if (is_word && from.size() == 8) return word(std::uint64_t());
  if (is_word && from.size() == 4) return word(std::uint32_t());
  if (is_word && from.size() == 2) return word(std::uint16_t());
  copy_on_host(with_dense_source(block, width), width, from.data(), to);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

/// The head of every message. A CopyBlock follows if the elements do not lie side by side, and then
/// the body.
struct HostsEngine::Head {
  Op op{};
  std::uint8_t how = 0;  ///< SignalOp of a put, AtomicOp of an atomic
  std::uint8_t width = 1;
  bool has_block = false;
  bool has_signal = false;
  bool is_ordered = false;   ///< a put that comes after those before
  std::int32_t slot = 0;     ///< of a meeting; of a board the rank
  std::uint64_t id = 0;      ///< under which the answer is awaited, 0 for none; number of a meeting
  std::uint64_t offset = 0;  ///< in the heap
  std::uint64_t count = 0;   ///< elements, where there is no block
  std::uint64_t signal_offset = 0;
  std::uint64_t value = 0;
  std::uint64_t compare = 0;
};

HostsEngine::HostsEngine(Wire& wire, Board& board, Rank rank, const Members& here, std::byte* heap, Serving serving)
    : wire_(wire),
      lent_bytes_min_(wire.lent_bytes_min()),
      board_(board),
      rank_(rank),
      here_(here),
      heap_(heap),
      heard_ends_(std::size_t(board.ranks())) {
  static_assert(sizeof(Head) <= Wire::head_bytes_max);
  board_.connect(here_, *this);
  if (serving == Serving::by_caller) return;
  HostsServer::here().add(*this);
  has_thread_ = true;
}

HostsEngine::~HostsEngine() {
  close();
}

void HostsEngine::close() noexcept {
  if (is_closed_) return;
  // Others may still read what this rank has left in its heap.
  const Deadline deadline = Deadline::after_ns(linger_ns);
  const auto has_ended = [&] {
    const std::lock_guard lock(mutex_);
    progress_locked();
    return end_locked();
  };
  while (!has_ended() && !deadline.passed()) wire_.wait(1'000'000);
  if (has_thread_) HostsServer::here().remove(*this);
  const std::lock_guard lock(mutex_);
  if (!is_over()) part_locked();
  is_closed_ = true;
}

bool HostsEngine::end_locked() noexcept {
  const auto is_quiet = [&] { return is_broken_ || (wire_.is_idle() && all_have_ended()); };
  if (is_over()) return true;
  if (!is_quiet()) return false;
  part_locked();
  if (!is_quiet()) return false;
  is_over_.store(true, std::memory_order_release);
  return true;
}

void HostsEngine::part_locked() noexcept {
  if (has_parted_ || is_broken_ || board_.has_failed()) return;
  has_parted_ = true;
  is_broken_ = !attempt([&] { wire_.part(); });
}

bool HostsEngine::all_have_ended() const noexcept {
  for (Rank peer = 0; peer < board_.ranks(); ++peer)
    if (here_.member_of(peer) < 0 && !board_.ended(peer)) return false;
  return true;
}

bool HostsEngine::serve_one() {
  const std::lock_guard lock(mutex_);
  const bool any = progress_locked();
  return !(is_lingering_.load(std::memory_order_acquire) && end_locked()) && any;
}

bool HostsEngine::progress() {
  looks_.store(looks() + 1, std::memory_order_relaxed);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && progress_locked();
}

void HostsEngine::check_open() const {
  if (is_closed_)
    throw_error(ErrorCode::invalid_use,
                "rank {} can no longer reach the ranks of other machines: the transport of its messages has been "
                "closed (was MPI_Finalize called?)",
                rank_);
}

bool HostsEngine::progress_locked() {
  if (is_broken_ || is_closed_) return false;
  try {
    const bool any = wire_.progress(*this);
    if (any) arrivals_.store(arrivals() + 1, std::memory_order_relaxed);
    waiting_bytes_.store(wire_.waiting_bytes(), std::memory_order_relaxed);
    return any;
  } catch (const Error& error) {
    // A thread may have noticed that serves this rank: the rank itself cannot go on.
    is_broken_ = true;
    board_.post_failed(rank_, error.code(), error.message());
    return false;
  }
}

void HostsEngine::send(Rank peer, const Head& head, std::span<const std::byte> body,
                       const std::shared_ptr<Wire::Lent>& lent) {
  const std::lock_guard lock(mutex_);
  send_locked(peer, head, body, lent);
}

void HostsEngine::send_locked(Rank peer, const Head& head, std::span<const std::byte> body,
                              const std::shared_ptr<Wire::Lent>& lent) {
  check_open();
  try {
    wire_.send(peer, bytes_of(head), body, lent);
    waiting_bytes_.store(wire_.waiting_bytes(), std::memory_order_relaxed);
  } catch (const Error&) {
    is_broken_ = true;  // a message may have left in part
    throw;
  }
}

std::shared_ptr<Awaited> HostsEngine::request(Rank peer, Head& head, std::shared_ptr<Awaited> awaited,
                                              std::span<const std::byte> body) {
  const std::lock_guard lock(mutex_);
  head.id = next_id_++;
  awaited_.emplace(head.id, awaited);
  send_locked(peer, head, body);
  return awaited;
}

std::shared_ptr<Wire::Lent> HostsEngine::put(Transport::Remote target, const CopyBlock& block, int width,
                                             const void* source, const Transport::Signal* signal,
                                             const std::shared_ptr<const void>& owner) {
  Head head{.op = Op::put,
            .width = std::uint8_t(width),
            .has_block = !is_dense(block.target_strides, block, width),
            .has_signal = signal != nullptr,
            .is_ordered = ordered_.erase(target.peer) > 0,
            .offset = target.offset_bytes,
            .count = std::uint64_t(element_count(block))};
  if (signal) {
    head.how = std::uint8_t(signal->op);
    head.signal_offset = signal->offset_bytes;
    head.value = signal->value;
  }
  const std::size_t bytes = std::size_t(head.count) * std::size_t(width);
  const bool is_long = bytes >= lent_bytes_min_;
  const std::span in_place(static_cast<const std::byte*>(source), bytes);
  if (!head.has_block && is_dense(block.source_strides, block, width)) {
    auto lent = is_long ? std::make_shared<Wire::Lent>() : nullptr;
    if (lent) lent->owner = owner;
    send(target.peer, head, in_place, lent);
    return lent;
  }
  // The elements one after the other, and what places them before these.
  auto packed = std::make_shared<Wire::Lent>();
  packed->own = packed_on_host(block, width, source);
  if (head.has_block) {
    const auto first = bytes_of(block);
    packed->own.insert(packed->own.begin(), first.begin(), first.end());
  }
  send(target.peer, head, packed->own, is_long ? packed : nullptr);
  return nullptr;
}

std::shared_ptr<Awaited> HostsEngine::get(void* target, const CopyBlock& block, int width, Transport::Remote source) {
  auto awaited = std::make_shared<Awaited>();
  awaited->target = target;
  awaited->block = with_dense_source(block, width);
  awaited->width = width;
  Head head{.op = Op::get,
            .width = std::uint8_t(width),
            .has_block = !is_dense(block.source_strides, block, width),
            .offset = source.offset_bytes,
            .count = std::uint64_t(element_count(block))};
  return request(source.peer, head, std::move(awaited),
                 head.has_block ? bytes_of(block) : std::span<const std::byte>());
}

std::shared_ptr<Awaited> HostsEngine::atomic(Transport::Remote at, int width, AtomicOp op, std::uint64_t operand,
                                             std::uint64_t compare, void* before) {
  Head head{.op = Op::atomic,
            .how = std::uint8_t(op),
            .width = std::uint8_t(width),
            .offset = at.offset_bytes,
            .value = operand,
            .compare = compare};
  if (before == nullptr) {
    send(at.peer, head);
    return nullptr;
  }
  auto awaited = std::make_shared<Awaited>();
  awaited->target = before;
  awaited->width = width;
  awaited->block = row_of(1, width);
  return request(at.peer, head, std::move(awaited));
}

void HostsEngine::order(Rank peer) {
  ordered_.insert(peer);
}

bool HostsEngine::is_congested(Rank peer) {
  if (waiting_bytes_.load(std::memory_order_relaxed) <= waiting_bytes_max) return false;
  const std::lock_guard lock(mutex_);
  return !is_closed_ && wire_.waiting_bytes(peer) > waiting_bytes_max;
}

std::shared_ptr<Awaited> HostsEngine::flush(Rank peer) {
  Head head{.op = Op::flush};
  return request(peer, head, std::make_shared<Awaited>());
}

void HostsEngine::bring(Rank peer, Key meeting, std::span<const std::byte> bytes) {
  send(peer, {.op = Op::meeting, .slot = meeting.slot, .id = meeting.number}, bytes);
}

std::optional<std::vector<std::byte>> HostsEngine::take(Rank peer, Key meeting) {
  progress();
  const std::lock_guard lock(mutex_);
  check_open();
  const auto found = brought_.find({meeting.slot, meeting.number, peer});
  if (found == brought_.end()) return std::nullopt;
  std::vector<std::byte> out = std::move(found->second);
  brought_.erase(found);
  return out;
}

Wire::Receiver::Place HostsEngine::place(Rank, std::span<const std::byte> bytes, std::size_t body_bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  // A get may be given up while its answer comes, and its target with it: the wire keeps that until it is here.
  if (head.has_block || head.op != Op::put) return {};
  TRANSHIP_ASSERT(body_bytes == head.count * head.width);
  return {.at = heap_ + head.offset, .in_order = head.is_ordered};
}

void HostsEngine::received(Rank from, std::span<const std::byte> bytes, std::span<const std::byte> body) {
  Head head;
  TRANSHIP_ASSERT(bytes.size() == sizeof head);
  std::memcpy(&head, bytes.data(), sizeof head);
  CopyBlock block = row_of(static_cast<long long>(head.count), head.width);
  if (head.has_block) {
    std::memcpy(&block, body.data(), sizeof block);
    body = body.subspan(sizeof block);
  }
  std::byte* const at = heap_ + head.offset;
  switch (head.op) {
    case Op::put:
      if (body.data() != at) store(block, head.width, body, at);
      if (head.has_signal)
        detail::raise_word(reinterpret_cast<std::uint64_t*>(heap_ + head.signal_offset), head.value,
                           static_cast<SignalOp>(head.how));
      return;
    case Op::get:
      return answer_get(from, head, block);
    case Op::atomic: {
      std::uint64_t before = 0;
      apply_atomic(at, head.width, static_cast<AtomicOp>(head.how), &head.value, &head.compare,
                   head.id != 0 ? &before : nullptr);
      if (head.id == 0) return;
      return wire_.send(from, bytes_of(Head{.op = Op::answer, .id = head.id}), bytes_of(before).first(head.width));
    }
    case Op::flush:
      return wire_.send(from, bytes_of(Head{.op = Op::answer, .id = head.id}), {});
    case Op::answer:
      return answered(head, body);
    case Op::meeting:
      brought_.insert_or_assign({head.slot, head.id, from}, std::vector<std::byte>(body.begin(), body.end()));
      return;
    case Op::asked:
      return wire_.send(from, bytes_of(Head{.op = Op::shown, .slot = rank_}), bytes_of(board_.entry_of(rank_)));
    case Op::told:
    case Op::shown: {
      Board::Entry entry;
      TRANSHIP_ASSERT(body.size() == sizeof entry);
      std::memcpy(&entry, body.data(), sizeof entry);
      // This machine knows better what its own ranks do, but not always first that one of them is gone.
      if (here_.member_of(head.slot) < 0 || entry.has_failed()) board_.show(head.slot, entry);
      if (head.slot == from && entry.has_ended()) heard_ends_[std::size_t(from)].store(true, std::memory_order_release);
      if (head.op == Op::shown) shown_.fetch_add(1, std::memory_order_release);
      return;
    }
  }
}

void HostsEngine::answer_get(Rank from, const Head& head, const CopyBlock& block) {
  const Head answer{.op = Op::answer, .id = head.id};
  const std::byte* const at = heap_ + head.offset;
  const std::size_t bytes = std::size_t(element_count(block)) * head.width;
  if (bytes >= lent_bytes_min_) {
    auto lent = std::make_shared<Wire::Lent>();
    if (is_dense(block.source_strides, block, head.width))
      return wire_.send(from, bytes_of(answer), std::span(at, bytes), lent);  // the heap outlives the engine
    lent->own = packed_on_host(block, head.width, at);
    return wire_.send(from, bytes_of(answer), lent->own, lent);
  }
  // Words that others store are read as such.
  const bool is_word = bytes == head.width && reinterpret_cast<std::uintptr_t>(at) % head.width == 0;
  if (is_word && (head.width == 4 || head.width == 8)) {
    const std::uint64_t value = head.width == 8 ? detail::load_word(reinterpret_cast<const std::uint64_t*>(at))
                                                : detail::load_word(reinterpret_cast<const std::uint32_t*>(at));
    return wire_.send(from, bytes_of(answer), bytes_of(value).first(head.width));
  }
  wire_.send(from, bytes_of(answer), packed_on_host(block, head.width, at));
}

void HostsEngine::answered(const Head& head, std::span<const std::byte> body) {
  const auto found = awaited_.find(head.id);
  if (found == awaited_.end()) return;
  Awaited& awaited = *found->second;
  if (awaited.target != nullptr && !body.empty())
    copy_on_host(awaited.block, awaited.width, body.data(), awaited.target);
  awaited.is_here.store(true, std::memory_order_release);
  awaited_.erase(found);
}

void HostsEngine::drop(std::span<const std::shared_ptr<Awaited>> awaited) noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& each : awaited) each->target = nullptr;
}

void HostsEngine::lost(Rank peer) {
  if (board_.ended(peer)) return;
  // Each machine notices for itself: of a rank that is not here, the board tells no other one.
  board_.post_failed(peer, ErrorCode::peer_lost,
                     fmt::format("rank {} cannot be reached from rank {} any more", peer, rank_));
}

void HostsEngine::notify(Rank peer, const Head& head, std::span<const std::byte> body) noexcept {
  const std::lock_guard lock(mutex_);
  static_cast<void>(attempt([&] { send_locked(peer, head, body); }));
}

void HostsEngine::send_end(Rank rank) noexcept {
  const Board::Entry entry = board_.entry_of(rank);
  for (Rank peer = 0; peer < board_.ranks(); ++peer)
    if (here_.member_of(peer) < 0) notify(peer, {.op = Op::told, .slot = rank}, bytes_of(entry));
}

void HostsEngine::tell(Rank rank) noexcept {
  // A failure that others have caused shows after theirs.
  const Rank first = board_.first_failed();
  if (first >= 0 && first != rank) send_end(first);
  send_end(rank);
  progress();
}

void HostsEngine::tell_at_end(Rank rank) noexcept {
  send_end(rank);
  const Deadline deadline = Deadline::after_ns(leave_ns);
  const auto has_left = [&] {
    const std::lock_guard lock(mutex_);
    progress_locked();
    return is_closed_ || wire_.is_idle();
  };
  while (!has_left() && !deadline.passed()) wire_.wait(100'000);
}

void HostsEngine::ask(Rank rank) noexcept {
  if (board_.ended(rank)) return;
  const std::uint64_t before = shown_.load(std::memory_order_acquire);
  notify(rank, {.op = Op::asked}, {});
  const Deadline deadline = Deadline::after_ns(ask_ns);
  while (shown_.load(std::memory_order_acquire) == before && !deadline.passed())
    if (!progress()) wire_.wait(100'000);
}

}  // namespace tranship
