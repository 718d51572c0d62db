#include "tranship/fabric/mpi/mpi_wire.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/mpi/mpi_library.hpp>

namespace tranship {

namespace {

constexpr int short_tag = 1, first_body_tag = 2;

/// Memory that MPI may still read or write when a wire goes stays for ever, where checkers of leaks find it.
template <class Memory>
void keep_for_ever(Memory& memory) noexcept {
  struct Kept {
    Memory memory;
    const Kept* before = nullptr;
  };
  static std::atomic<const Kept*> last = nullptr;
  if (auto* const kept = new (std::nothrow) Kept{.memory = std::move(memory)}) kept->before = last.exchange(kept);
}

}  // namespace

/// What every short message begins with. Behind it come the head, and the body, if it comes at once.
struct MpiWire::Frame {
  enum class Kind : std::uint16_t { whole, head, credit, parting } kind = Kind::whole;
  std::uint16_t head_bytes = 0;
  std::int32_t tag = 0;          ///< of the body
  std::uint64_t body_bytes = 0;  ///< of a credit: bytes that have been received

  using Bytes = std::shared_ptr<std::vector<std::byte>>;
  Bytes before(std::span<const std::byte> head, std::span<const std::byte> body) const {
    auto out = std::make_shared<std::vector<std::byte>>();
    out->reserve(sizeof *this + head.size() + body.size());
    for (const auto part : {std::as_bytes(std::span(this, 1)), head, body})
      out->insert(out->end(), part.begin(), part.end());
    return out;
  }
};

struct MpiWire::Outgoing {
  Frame::Bytes bytes;  ///< the short message
  int tag = 0;
  std::span<const std::byte> body = {};  ///< where it comes apart
  std::shared_ptr<Lent> lent = {};
};

struct MpiWire::Incoming {
  std::vector<std::byte> bytes;  ///< the short message
  std::size_t head_bytes = 0;
  int tag = 0;
  std::uint64_t body_bytes = 0;
  // Of a body that comes apart.
  std::byte* at = nullptr;
  bool has_to_wait = false;  ///< for all before it, until when nothing is received
  std::vector<std::byte> own = {};
  std::vector<MpiHandle> pieces = {};  ///< that have not come

  std::span<const std::byte> head() const { return std::span(bytes).subspan(sizeof(Frame), head_bytes); }
  std::span<const std::byte> body() const {
    if (at != nullptr) return {at, static_cast<std::size_t>(body_bytes)};
    return std::span(bytes).subspan(sizeof(Frame) + head_bytes);
  }
};

struct MpiWire::Peer {
  // To it.
  std::uint64_t sent_bytes = 0;      ///< of short messages
  std::uint64_t received_bytes = 0;  ///< of these, as it has said
  std::deque<Outgoing> waiting;
  std::size_t waiting_bytes = 0;
  int next_tag = first_body_tag;
  // From it.
  std::deque<Incoming> held;
  std::uint64_t taken_bytes = 0;
  std::uint64_t told_bytes = 0;
  bool has_parted = false;      ///< it takes all, whatever the window, and sends nothing more
  bool is_parted_from = false;  ///< has been told so by this rank
};

MpiWire::MpiWire(const MpiModule& mpi, MpiHandle comm, const Sizes& sizes) : mpi_(mpi), comm_(comm), sizes_(sizes) {
  static_assert(sizeof(Frame) + head_bytes_max <= Sizes::short_bytes_min);
  check_mpi(mpi_, mpi_.highest_tag(comm_, &highest_tag_), "ask for the highest tag");
  try {
    while (std::ssize(receives_) < sizes_.receives) {
      receives_.push_back({.bytes = std::vector<std::byte>(sizes_.short_bytes)});
      post_receive(receives_.size() - 1);
    }
  } catch (...) {
    withdraw_all();
    throw;
  }
}

MpiWire::~MpiWire() {
  if (mpi_.state() == MpiModule::State::running) withdraw_all();
}

void MpiWire::withdraw_all() noexcept {
  const auto has_ended = [this](MpiHandle& receive) {
    bool is_complete = false;
    return mpi_.withdraw(&receive) == 0 && mpi_.test(&receive, &is_complete, nullptr) == 0 && is_complete;
  };
  for (Receive& receive : receives_)
    if (!has_ended(receive.request)) keep_for_ever(receive.bytes);
  for (auto& [rank, peer] : peers_)
    for (Incoming& message : peer->held)
      if (std::count_if(message.pieces.begin(), message.pieces.end(), has_ended) < std::ssize(message.pieces))
        keep_for_ever(message.own);
  for (Leaving& one : leaving_) keep_for_ever(one.kept);
}

MpiWire::Peer& MpiWire::peer(Rank rank) {
  std::unique_ptr<Peer>& at = peers_[rank];
  if (!at) at = std::make_unique<Peer>();
  return *at;
}

void MpiWire::post_receive(std::size_t at) {
  Receive& receive = receives_[at];
  check_mpi(mpi_,
            mpi_.receive(receive.bytes.data(), int(receive.bytes.size()), MpiModule::any_source, short_tag, comm_,
                         &receive.request),
            "receive");
}

void MpiWire::post(Rank to, int tag, const void* data, std::size_t size_bytes, std::shared_ptr<const void> kept) {
  Leaving leaving{.kept = std::move(kept)};
  check_mpi(mpi_, mpi_.send(data, int(size_bytes), to, tag, comm_, &leaving.request), "send");
  leaving_.push_back(std::move(leaving));
}

void MpiWire::start(Rank to, Peer& peer, Outgoing& message) {
  peer.sent_bytes += message.bytes->size();
  post(to, short_tag, message.bytes->data(), message.bytes->size(), message.bytes);
  if (message.body.empty()) return;
  // Its pieces may leave in any order, and each of them holds this.
  const std::shared_ptr<const void> pieces(message.body.data(), [lent = message.lent](const void*) {
    lent->has_left.store(true, std::memory_order_release);
  });
  for (std::size_t at = 0; at < message.body.size(); at += sizes_.piece_bytes) {
    const std::size_t bytes = std::min(sizes_.piece_bytes, message.body.size() - at);
    post(to, message.tag, message.body.data() + at, bytes, pieces);
  }
}

void MpiWire::send(Rank to, std::span<const std::byte> head, std::span<const std::byte> body,
                   const std::shared_ptr<Lent>& lent) {
  if (has_parted_) {
    if (lent) lent->has_left.store(true, std::memory_order_release);
    return;
  }
  Peer& peer = this->peer(to);
  const bool comes_apart = sizeof(Frame) + head.size() + body.size() > sizes_.short_bytes;
  Frame frame{.kind = comes_apart ? Frame::Kind::head : Frame::Kind::whole,
              .head_bytes = std::uint16_t(head.size()),
              .body_bytes = body.size()};
  Outgoing message;
  if (comes_apart) {
    frame.tag = message.tag = peer.next_tag;
    peer.next_tag = peer.next_tag == highest_tag_ ? first_body_tag : peer.next_tag + 1;
    message.lent = lent;
    if (!lent) {
      message.lent = std::make_shared<Lent>();
      message.lent->own.assign(body.begin(), body.end());
      body = message.lent->own;
    }
    message.body = body;
  }
  message.bytes = frame.before(head, comes_apart ? std::span<const std::byte>() : body);
  if (!comes_apart && lent) lent->has_left.store(true, std::memory_order_release);
  peer.waiting_bytes += message.bytes->size() + message.body.size();
  peer.waiting.push_back(std::move(message));
  ++waiting_messages_;
  start_waiting(to, peer);
}

void MpiWire::start_waiting(Rank to, Peer& peer) {
  while (!peer.waiting.empty()) {
    Outgoing& next = peer.waiting.front();
    if (!peer.has_parted && peer.sent_bytes + next.bytes->size() > peer.received_bytes + sizes_.window_bytes) return;
    start(to, peer, next);
    peer.waiting_bytes -= next.bytes->size() + next.body.size();
    peer.waiting.pop_front();
    --waiting_messages_;
  }
  if (has_parted_) part_from(to, peer);
}

std::size_t MpiWire::waiting_bytes(Rank rank) const {
  const auto found = peers_.find(rank);
  return found == peers_.end() ? 0 : found->second->waiting_bytes;
}

void MpiWire::consumed(Rank from, Peer& peer, std::size_t size_bytes) {
  peer.taken_bytes += size_bytes;
  if (peer.is_parted_from || peer.taken_bytes - peer.told_bytes < sizes_.window_bytes / 2) return;
  peer.told_bytes = peer.taken_bytes;
  tell(from, {.kind = Frame::Kind::credit, .body_bytes = peer.taken_bytes});
}

void MpiWire::tell(Rank to, const Frame& frame) {
  const Frame::Bytes bytes = frame.before({}, {});
  post(to, short_tag, bytes->data(), bytes->size(), bytes);
}

void MpiWire::part_from(Rank rank, Peer& peer) {
  if (peer.is_parted_from || !peer.waiting.empty()) return;
  peer.is_parted_from = true;
  tell(rank, {.kind = Frame::Kind::parting});
}

void MpiWire::part() {
  // MPI gives the number of a communicator that was freed to the next one: nothing of this one may be on its way then.
  has_parted_ = true;
  for (const auto& [rank, peer] : peers_) part_from(rank, *peer);
}

bool MpiWire::is_idle() const {
  const auto has_all = [](const auto& peer) { return peer.second->has_parted && peer.second->held.empty(); };
  return leaving_.empty() && waiting_messages_ == 0 &&
         (!has_parted_ || std::all_of(peers_.begin(), peers_.end(), has_all));
}

void MpiWire::receive_body(Rank from, Incoming& message) {
  message.has_to_wait = false;
  for (std::size_t at = 0; at < message.body_bytes; at += sizes_.piece_bytes) {
    MpiHandle& request = message.pieces.emplace_back();
    check_mpi(mpi_,
              mpi_.receive(message.at + at, int(std::min<std::size_t>(sizes_.piece_bytes, message.body_bytes - at)),
                           from, message.tag, comm_, &request),
              "receive");
  }
}

bool MpiWire::has_body(Incoming& message) {
  while (!message.pieces.empty()) {
    bool is_complete = false;
    check_mpi(mpi_, mpi_.test(&message.pieces.front(), &is_complete, nullptr), "receive");
    if (!is_complete) return false;
    message.pieces.erase(message.pieces.begin());
  }
  return true;
}

bool MpiWire::deliver(Rank from, Peer& peer, Receiver& receiver) {
  bool any = false;
  while (!peer.held.empty()) {
    Incoming& first = peer.held.front();
    if (first.has_to_wait) receive_body(from, first);
    if (!has_body(first)) break;
    const Incoming message = std::move(first);
    receiver.received(from, message.head(), message.body());
    peer.held.pop_front();
    consumed(from, peer, message.bytes.size());
    any = true;
  }
  return any;
}

void MpiWire::take(Rank from, std::span<const std::byte> bytes, Receiver& receiver) {
  Frame frame;
  TRANSHIP_ASSERT(bytes.size() >= sizeof frame);
  std::memcpy(&frame, bytes.data(), sizeof frame);
  Peer& peer = this->peer(from);
  if (frame.kind == Frame::Kind::credit) {
    peer.received_bytes = frame.body_bytes;
    return start_waiting(from, peer);
  }
  if (frame.kind == Frame::Kind::parting) {
    peer.has_parted = true;
    return start_waiting(from, peer);
  }
  const bool comes_apart = frame.kind == Frame::Kind::head;
  if (!comes_apart && peer.held.empty()) {
    receiver.received(from, bytes.subspan(sizeof frame, frame.head_bytes),
                      bytes.subspan(sizeof frame + frame.head_bytes));
    return consumed(from, peer, bytes.size());
  }
  Incoming& message = peer.held.emplace_back(Incoming{.bytes = {bytes.begin(), bytes.end()},
                                                      .head_bytes = frame.head_bytes,
                                                      .tag = frame.tag,
                                                      .body_bytes = frame.body_bytes});
  if (!comes_apart) return;
  const Receiver::Place place = receiver.place(from, message.head(), message.body_bytes);
  message.at = place.at;
  if (message.at == nullptr) {
    message.own.resize(message.body_bytes);
    message.at = message.own.data();
  }
  // What the wire itself keeps shows nowhere before its turn. Bodies under one tag, which come round, are received in
  // the order in which they were sent.
  const auto is_waiting_so = [&](const Incoming& one) { return one.has_to_wait && one.tag == message.tag; };
  message.has_to_wait = (place.at != nullptr && place.in_order && peer.held.size() > 1) ||
                        std::any_of(peer.held.begin(), std::prev(peer.held.end()), is_waiting_so);
  if (!message.has_to_wait) receive_body(from, message);
}

bool MpiWire::progress(Receiver& receiver) {
  // One receive at a time: to look for the next one costs as much as all of this, and who waits may have what it needs.
  bool any = false;
  Receive& receive = receives_[next_];
  MpiModule::Arrival arrival;
  check_mpi(mpi_, mpi_.test(&receive.request, &any, &arrival), "receive");
  if (any) {
    take(arrival.source, std::span(receive.bytes).first(static_cast<std::size_t>(arrival.size_bytes)), receiver);
    post_receive(next_);
    next_ = (next_ + 1) % receives_.size();
  }
  for (auto& [rank, peer] : peers_) any |= deliver(rank, *peer, receiver);
  std::erase_if(leaving_, [&](Leaving& one) {
    bool is_complete = false;
    check_mpi(mpi_, mpi_.test(&one.request, &is_complete, nullptr), "send");
    return is_complete;
  });
  return any;
}

void MpiWire::wait(std::int64_t at_most_ns) {
  // MPI has no wait that another thread could end. A rank that computes answers within this time.
  constexpr std::int64_t nap_ns = 200'000;
  std::unique_lock lock(nap_mutex_);
  const std::uint64_t before = wakes_;
  woken_.wait_for(lock, std::chrono::nanoseconds(std::min(at_most_ns, nap_ns)), [&] { return wakes_ != before; });
}

void MpiWire::wake() noexcept {
  {
    const std::lock_guard lock(nap_mutex_);
    ++wakes_;
  }
  woken_.notify_all();
}

}  // namespace tranship
