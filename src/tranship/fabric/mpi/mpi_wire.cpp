#include "tranship/fabric/mpi/mpi_wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/mpi/keep_for_ever.hpp>
#include <tranship/fabric/mpi/mpi_library.hpp>

namespace tranship {

namespace {

constexpr int short_tag = 1, first_body_tag = 2;

}  // namespace

/// The beginning of every short message. Behind it come the head, and the body or a part of it, unless that comes
/// apart.
struct MpiWire::Frame {
  enum class Kind : std::uint16_t {
    whole,
    head,   ///< of a body that comes apart
    first,  ///< of several that carry one body
    next,   ///< of these
    credit,
    parting
  } kind = Kind::whole;
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
  std::vector<std::byte> bytes;  ///< the short message, or what comes before the body
  std::size_t head_bytes = 0;
  int tag = 0;
  std::uint64_t body_bytes = 0;
  std::size_t taken_bytes = 0;  ///< of short messages
  // For a body that is not in the short message:
  std::byte* at = nullptr;
  std::byte* later_at = nullptr;  ///< where it goes when all before it has been received
  bool has_to_wait = false;       ///< for all before it, until when nothing is received
  std::vector<std::byte> own = {};
  std::vector<MpiHandle> pieces = {};  ///< that have not come
  std::uint64_t missing_bytes = 0;     ///< of short messages that are to come

  std::span<const std::byte> head() const { return std::span(bytes).subspan(sizeof(Frame), head_bytes); }
  std::span<const std::byte> body() const {
    if (at != nullptr) return {at, static_cast<std::size_t>(body_bytes)};
    return std::span(bytes).subspan(sizeof(Frame) + head_bytes);
  }
  void append(std::span<const std::byte> part) {
    TRANSHIP_ASSERT(part.size() <= missing_bytes);
    std::copy(part.begin(), part.end(), at + (body_bytes - missing_bytes));
    missing_bytes -= part.size();
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
    if (!has_ended(receive.request)) keep_for_ever(std::move(receive.bytes));
  // The last first: what comes meanwhile for the first of a tag would meet the second.
  for (auto& [rank, peer] : peers_)
    for (auto message = peer->held.rbegin(); message != peer->held.rend(); ++message)
      if (std::count_if(message->pieces.rbegin(), message->pieces.rend(), has_ended) < std::ssize(message->pieces))
        keep_for_ever(std::move(message->own));
  for (Leaving& one : leaving_) keep_for_ever(std::move(one.kept));
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
  const auto push = [&](Outgoing message) {
    peer.waiting_bytes += message.bytes->size() + message.body.size();
    waiting_bytes_ += message.bytes->size() + message.body.size();
    peer.waiting.push_back(std::move(message));
    ++waiting_messages_;
  };
  Frame frame{.head_bytes = std::uint16_t(head.size()), .body_bytes = body.size()};
  const std::size_t room = sizes_.short_bytes - sizeof(Frame) - head.size();
  const std::size_t more = body.size() > room ? 1 + (body.size() - room - 1) / (sizes_.short_bytes - sizeof(Frame)) : 0;
  if ((more + 1) * sizeof(Frame) + head.size() + body.size() <= std::max(sizes_.short_bytes, sizes_.window_bytes / 2)) {
    // MPI carries these without asking the receiver first. What is not told by credits is less than half of a window,
    // so all of a message fits into the other half.
    frame.kind = more > 0 ? Frame::Kind::first : Frame::Kind::whole;
    std::size_t part = std::min(room, body.size());
    push({.bytes = frame.before(head, body.first(part))});
    for (body = body.subspan(part); !body.empty(); body = body.subspan(part)) {
      part = std::min(sizes_.short_bytes - sizeof(Frame), body.size());
      push({.bytes = Frame{.kind = Frame::Kind::next}.before({}, body.first(part))});
    }
    if (lent) lent->has_left.store(true, std::memory_order_release);
  } else {
    frame.kind = Frame::Kind::head;
    frame.tag = peer.next_tag;
    peer.next_tag = peer.next_tag == highest_tag_ ? first_body_tag : peer.next_tag + 1;
    std::shared_ptr<Lent> kept = lent;
    if (!kept) {
      kept = std::make_shared<Lent>();
      kept->own.assign(body.begin(), body.end());
      body = kept->own;
    }
    push({.bytes = frame.before(head, {}), .tag = frame.tag, .body = body, .lent = std::move(kept)});
  }
  start_waiting(to, peer);
}

void MpiWire::start_waiting(Rank to, Peer& peer) {
  while (!peer.waiting.empty()) {
    Outgoing& next = peer.waiting.front();
    if (!peer.has_parted && peer.sent_bytes + next.bytes->size() > peer.received_bytes + sizes_.window_bytes) return;
    start(to, peer, next);
    peer.waiting_bytes -= next.bytes->size() + next.body.size();
    waiting_bytes_ -= next.bytes->size() + next.body.size();
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
  if (message.missing_bytes > 0) return false;
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
    Incoming message = std::move(first);
    if (message.later_at != nullptr) {
      std::copy(message.own.begin(), message.own.end(), message.later_at);
      message.at = message.later_at;
    }
    receiver.received(from, message.head(), message.body());
    peer.held.pop_front();
    consumed(from, peer, message.taken_bytes);
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
  const std::span<const std::byte> behind = bytes.subspan(sizeof frame + frame.head_bytes);
  if (frame.kind == Frame::Kind::next) {
    TRANSHIP_ASSERT(!peer.held.empty());
    Incoming& message = peer.held.back();
    message.taken_bytes += bytes.size();
    return message.append(behind);
  }
  if (frame.kind == Frame::Kind::whole && peer.held.empty()) {
    receiver.received(from, bytes.subspan(sizeof frame, frame.head_bytes), behind);
    return consumed(from, peer, bytes.size());
  }
  if (frame.kind == Frame::Kind::first) bytes = bytes.first(bytes.size() - behind.size());
  Incoming& message = peer.held.emplace_back(Incoming{.bytes = {bytes.begin(), bytes.end()},
                                                      .head_bytes = frame.head_bytes,
                                                      .tag = frame.tag,
                                                      .body_bytes = frame.body_bytes,
                                                      .taken_bytes = bytes.size()});
  if (frame.kind == Frame::Kind::whole) return;
  const Receiver::Place place = receiver.place(from, message.head(), message.body_bytes);
  const bool is_before_its_turn = place.in_order && peer.held.size() > 1;
  const bool comes_apart = frame.kind == Frame::Kind::head;
  message.at = place.at;
  if (!comes_apart && is_before_its_turn) std::swap(message.at, message.later_at);
  const bool is_in_place = message.at != nullptr;
  if (!is_in_place) {
    message.own.resize(message.body_bytes);
    message.at = message.own.data();
  }
  if (!comes_apart) {
    message.taken_bytes += behind.size();
    message.missing_bytes = message.body_bytes;
    return message.append(behind);
  }
  // Memory of the wire itself may be written before its turn. Bodies under one tag, which comes round, are received in
  // the order in which they were sent.
  const auto is_waiting_so = [&](const Incoming& one) { return one.has_to_wait && one.tag == message.tag; };
  message.has_to_wait =
      (is_in_place && is_before_its_turn) || std::any_of(peer.held.begin(), std::prev(peer.held.end()), is_waiting_so);
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
  // MPI has no wait that another thread could end. A rank that computes answers within this time, and looking so often
  // takes a hundredth of a core.
  constexpr std::int64_t nap_ns = 1'500'000;
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
