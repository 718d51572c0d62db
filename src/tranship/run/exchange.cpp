#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <tuple>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/claim.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/mailbox.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/run/exchange.hpp>
#include <tranship/run/move_list.hpp>

namespace tranship {
namespace {

/// What a rank tells all others of one of its slots.
struct SlotCard {
  SlotAddress address;
  std::uint64_t fingerprint = 0;
  bool is_offered = false;  // to peers that can reach it
};

/// A message that a rank expects: how much, and where the sender puts it, which is nowhere when it goes straight to the
/// array. Each rank keeps a list of them, by source, in which the senders look; the place in the list is also the place
/// of the message's word.
struct Arrival {
  Rank source = -1;
  Index bytes = 0;
  std::byte* staging = nullptr;
};

/// What a rank tells all others before they go on.
struct Vote {
  int code = 0;  // of the error that stands in this rank's way, or 0
  PlanKind kind{};
  Schedule schedule{};
  int slots = 0;
  Index receives = 0;
  Index sends = 0;
  Index bytes = 0;  // that reach this rank, its own included
  const Arrival* arrivals = nullptr;
  bool needs_posts = false;
  Index inbox_lines = 0;  // if all that it receives were staged
};

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::automatic:
      return "automatic";
    case Schedule::direct:
      return "direct";
    case Schedule::staged:
      return "staged";
    case Schedule::measured:
      break;
  }
  return "measured";
}

struct Measured {
  Schedule schedule{};
  std::int64_t ns = 0;
};

/// What goes from one rank to another in one exchange, as far as this rank is concerned.
struct Message {
  Rank source = -1;
  Rank target = -1;
  Rank peer = -1;
  Index bytes = 0;
  RealSync::Word* word = nullptr;  // none until the ranks have agreed
  bool staged = false;
  /// Where the message is posted: the signals of this rank and of the peer, and where it lies in the target's inbox and
  /// the source's outbox.
  Index signal_here = 0;
  Index signal_there = 0;
  Index inbox_line = 0;
  Index outbox_line = 0;
  /// Direct: source array to target array. Staged: to (source) or from (target) the staging buffer.
  MoveList moves;
  bool done = false;
};

/// Messages with shorter contiguous runs are staged, so that what crosses between the cores are lines full of elements
/// and not one line for every element (docs/copying.md).
constexpr Index direct_run_bytes_min = 16;
/// Smaller ones touch too few lines to be worth a second copy.
constexpr Index staged_message_bytes_min = 1024;

/// Staging buffers begin on cache lines of their own.
struct alignas(64) Line {
  std::byte bytes[64];
};
Index lines_of(Index bytes) {
  return ceil_divide(bytes, sizeof(Line));
}

/// How messages go to peers that are only messaged: packed here, put into the inbox of the target with a signal,
/// unpacked there, and the place in the inbox is given back by a signal. Signals count epochs; whoever leaves adds a
/// bit. The memory is symmetric, so a put that comes late does no harm.
struct Posts {
  struct Card {
    Rank peer = -1;
    Index bytes = 0;
    Index inbox_line = 0;
  };
  static constexpr std::uint64_t epochs = LeavingBits::failing_bit - 1;
  static constexpr Index words_per_signal = 8;  // a line of its own

  Index receives_max = 0;
  SymmetricArray<Line> inbox;
  SymmetricArray<Card> incoming, outgoing;  // by message, as the rank itself lists them
  SymmetricArray<std::uint64_t> signals;    // of what it receives, then of what it sends

  Symmetric<std::uint64_t> signal(Index message) const { return signals.slice(message * words_per_signal, 1); }

  /// What one side of a message has seen of the other.
  class Seen {
   public:
    explicit Seen(std::uint64_t word) : word_(word) {}
    std::uint64_t epoch() const { return word_ & epochs; }
    bool has_left() const { return (word_ & LeavingBits::left_bit) != 0; }
    bool left_failing() const { return (word_ & LeavingBits::failing_bit) != 0; }

   private:
    std::uint64_t word_;
  };
};

bool accumulates(PlanKind kind) {
  return kind == PlanKind::redistribution_adjoint || kind == PlanKind::halo_adjoint;
}

/// Like attempt(). A rank that is out of memory must tell the others, too.
template <class F>
Result<void> tried(F&& f) {
  try {
    f();
    return {};
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "no memory to set up an exchange");
  }
}

void check_slots(const TransferPlan& plan, const std::vector<StridedView>& slots, int world_size) {
  if (slots.size() != plan.slots.size())
    throw_error(ErrorCode::invalid_use, "the plan has {} slots, {} arrays are given (rank {})", plan.slots.size(),
                slots.size(), plan.rank);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const StridedView& view = slots[i];
    const Slot& slot = plan.slots[i];
    if (view.type != slot.type)
      throw_error(ErrorCode::mismatch, "array {} has elements {}, the plan {} (rank {})", i, name_of(view.type),
                  name_of(slot.type), plan.rank);
    if (!(view.extents == slot.local_extents))
      throw_error(ErrorCode::mismatch, "array {} has local extents [{}], the plan [{}] (rank {})", i,
                  to_string(view.extents), to_string(slot.local_extents), plan.rank);
    if (view.strides.size() != view.extents.size())
      throw_error(ErrorCode::invalid_use, "array {} has {} extents and {} strides (rank {})", i, view.extents.size(),
                  view.strides.size(), plan.rank);
    if (view.imaginary && !is_complex(view.type))
      throw_error(ErrorCode::invalid_use, "array {} of {} has an imaginary plane (rank {})", i, name_of(view.type),
                  plan.rank);
    const Index elements = checked_product(view.extents);
    if (elements > 0 && !view.data)
      throw_error(ErrorCode::invalid_use, "array {} of {} elements has no memory (rank {})", i, elements, plan.rank);
    for (std::size_t j = 0; elements > 0 && j < i; ++j)
      if (slots[j].data == view.data && checked_product(slots[j].extents) > 0)
        throw_error(ErrorCode::invalid_use, "arrays {} and {} are the same memory (rank {})", j, i, plan.rank);
  }
  auto check_peer = [&](Rank peer) {
    if (peer < 0 || peer >= world_size)
      throw_error(ErrorCode::invalid_use, "the plan needs rank {}, the world has {} (rank {})", peer, world_size,
                  plan.rank);
  };
  plan.for_each_receive([&](const Transfer& t) { check_peer(t.peer); });
  plan.for_each_send([&](const Transfer& t) { check_peer(t.peer); });
  for (const auto* lists : {&plan.indexed_receives, &plan.indexed_sends})
    for (const IndexedTransfer& list : *lists) check_peer(list.peer);
}

}  // namespace

struct Exchange::State {
  World& world;
  const TransferPlan plan;
  const std::vector<StridedView> slots;
  const Schedule schedule;

  std::vector<SlotCard> cards;                   // by rank, then slot
  std::shared_ptr<void> arrivals_memory, inbox;  // that peers reach
  std::span<Arrival> arrivals;                   // of receives
  std::vector<std::byte*> outbox;                // of each staged send: where the bytes that are lowered next go
  std::optional<Posts> posts;                    // where some ranks only message each other: then all do
  std::vector<Line> outbox_lines;                // of what is posted
  Words words;  // per rank: the epoch that it has entered, then one word for every arrival
  MoveList fills_before;
  MoveList fills_after;
  MoveList own;                   // from this rank to itself
  std::vector<Message> receives;  // by source, ascending
  std::vector<Message> sends;     // by target, ascending

  Index bytes_in = 0;  // of one exchange, from this rank to itself included
  Index traffic = 0;   // the same, of all ranks together
  HostWay way;

  std::vector<Measured> measured;

  std::uint64_t epoch = 0;
  bool in_flight = false;
  bool own_moved = false;
  const Message* lost = nullptr;            // the first message whose peer has left
  Deadline reason_due = Deadline::never();  // when its peer should have said why
  int exceptions_before = std::uncaught_exceptions();

  State(World& w, TransferPlan p, std::vector<StridedView> s, ExchangeOptions options)
      : world(w), plan(std::move(p)), slots(std::move(s)), schedule(options.schedule) {}
  /// After this no peer touches this rank's memory any more, and none waits for it for ever.
  ~State() {
    const Leaving why = std::uncaught_exceptions() > exceptions_before ? Leaving::failing : Leaving::done;
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) {
        const auto has_ended = [&] { return world.has_ended(m.peer); };
        if (posts)
          leave_post(m, why);
        else if (m.word == nullptr)
          continue;
        else if (m.staged)
          Mailbox<RealSync>(*m.word).leave(why, has_ended);
        else
          claim(m).leave(why, has_ended);
      }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static constexpr int entered_word = 0;
  static constexpr int first_message_word = 1;

  Rank rank() const { return world.rank(); }
  ElementType type_of(int slot) const { return slots[slot].type; }

  bool any_message(bool staged) const {
    const auto is = [&](const Message& m) { return m.staged == staged; };
    return std::any_of(receives.begin(), receives.end(), is) || std::any_of(sends.begin(), sends.end(), is);
  }

  // Setting up.

  /// Goes through what is received and is not empty: `f(transfer, source slot, target slot)`.
  template <class F>
  void for_each_receive(F&& f) const {
    plan.for_each_receive([&](const Transfer& t) { visit(t, t.group->source_slot, t.group->target_slot, f); });
    for (const IndexedTransfer& t : plan.indexed_receives) visit(t, t.source_slot, t.target_slot, f);
  }
  /// The same of what is sent to others.
  template <class F>
  void for_each_send(F&& f) const {
    auto to_others = [&](const auto& t, int from, int to) {
      if (t.peer != rank()) f(t, from, to);
    };
    plan.for_each_send([&](const Transfer& t) { visit(t, t.group->source_slot, t.group->target_slot, to_others); });
    for (const IndexedTransfer& t : plan.indexed_sends) visit(t, t.source_slot, t.target_slot, to_others);
  }
  template <class T, class F>
  void visit(const T& transfer, int source_slot, int target_slot, F&& f) const {
    if (staged_bytes(transfer, type_of(source_slot)) > 0) f(transfer, source_slot, target_slot);
  }

  /// Collective. What fails on one rank must fail on all before anybody makes the next collective call.
  void set_up() {
    const std::vector<Vote> votes = agree(tried([&] {
      if (plan.rank != rank())
        throw_error(ErrorCode::invalid_use, "the plan of rank {} is run by rank {}", plan.rank, rank());
      check_plan(plan).value();
      check_slots(plan, slots, world.size());
      list_messages();
    }));
    Index words_per_rank = first_message_word, received = 0, sent = 0;
    for (const Vote& vote : votes) {
      traffic = checked_add(traffic, vote.bytes);
      words_per_rank = std::max(words_per_rank, first_message_word + vote.receives);
      received += vote.receives;
      sent += vote.sends;
    }
    way = host_way(traffic);
    words = world.words(int(words_per_rank), "exchange");
    world.all_gather(&cards[std::size_t(rank()) * slots.size()], slots.size() * sizeof(SlotCard), cards.data());
    const auto posts_needed = [](const Vote& vote) { return vote.needs_posts; };
    if (std::any_of(votes.begin(), votes.end(), posts_needed)) make_posts(votes);
    agree(tried([&] {
      check_layouts();
      lower();
      open_inbox();
    }));
    agree(tried([&] {
      if (posts)
        open_posts();
      else
        open_messages(votes);
      lower_staged();
    }));
    // Every send has found its arrival, so equal numbers say that every arrival has its send.
    if (received != sent)
      throw_error(ErrorCode::mismatch, "the plans of all ranks together receive {} messages and send {} (rank {})",
                  received, sent, rank());
  }

  std::vector<Vote> agree(const Result<void>& mine) {
    std::vector<Vote> votes = world.all_gather(Vote{.code = mine.ok() ? 0 : int(mine.error().code()),
                                                    .kind = plan.kind,
                                                    .schedule = schedule,
                                                    .slots = int(slots.size()),
                                                    .receives = Index(receives.size()),
                                                    .sends = Index(sends.size()),
                                                    .bytes = bytes_in,
                                                    .arrivals = arrivals.data(),
                                                    .needs_posts = needs_posts(),
                                                    .inbox_lines = inbox_lines()});
    mine.value();
    for (Rank r = 0; r < world.size(); ++r) {
      const Vote& vote = votes[r];
      if (vote.code != 0)
        throw_error(static_cast<ErrorCode>(vote.code), "rank {} cannot take part in the exchange: {}", r,
                    text_of(static_cast<ErrorCode>(vote.code)));
      if (vote.kind != plan.kind || vote.schedule != schedule || vote.slots != int(slots.size()))
        throw_error(ErrorCode::mismatch,
                    "rank {} runs a plan of kind {} with schedule {} and {} arrays, rank {} one of kind {} with "
                    "schedule {} and {}",
                    rank(), int(plan.kind), name_of(schedule), slots.size(), r, int(vote.kind), name_of(vote.schedule),
                    vote.slots);
    }
    return votes;
  }

  /// Where transfers take their time all of them must be transfers: peers are messaged, or simulated.
  bool needs_posts() const { return !world.context().completes_at_once(); }
  Index inbox_lines() const {
    Index lines = 0;
    for (const Message& m : receives) lines = checked_add(lines, lines_of(m.bytes));
    return lines;
  }

  /// The messages with their sizes, the arrivals that others may look up, and this rank's own cards.
  void list_messages() {
    std::map<Rank, Index> in, out;
    for_each_receive([&](const auto& t, int, int target_slot) {
      const Index bytes = staged_bytes(t, type_of(target_slot));
      bytes_in = checked_add(bytes_in, bytes);
      if (t.peer != rank()) in[t.peer] = checked_add(in[t.peer], bytes);
    });
    for_each_send([&](const auto& t, int source_slot, int) {
      out[t.peer] = checked_add(out[t.peer], staged_bytes(t, type_of(source_slot)));
    });
    arrivals_memory = local_memory(in.size() * sizeof(Arrival));
    arrivals = {static_cast<Arrival*>(arrivals_memory.get()), in.size()};
    for (const auto& [peer, bytes] : in) {
      arrivals[receives.size()] = {.source = peer, .bytes = bytes};
      receives.push_back({.source = peer, .target = rank(), .peer = peer, .bytes = bytes});
    }
    for (const auto& [peer, bytes] : out)
      sends.push_back({.source = rank(), .target = peer, .peer = peer, .bytes = bytes});
    cards.resize(slots.size() * std::size_t(world.size()));
    for (std::size_t i = 0; i < slots.size(); ++i)
      cards[std::size_t(rank()) * slots.size() + i] = {address_of(slots[i]), plan.slots[i].fingerprint,
                                                       !slots[i].data || world.offers(slots[i].data)};
  }
  std::shared_ptr<void> local_memory(std::size_t bytes) const {
    if (bytes == 0) return nullptr;
    std::shared_ptr<void> memory = world.local_memory(bytes);
    if (!memory)
      throw_error(ErrorCode::no_memory, "rank {} cannot get {} bytes of memory that its peers reach", rank(), bytes);
    return memory;
  }

  void check_layouts() {
    for (Rank r = 0; r < world.size(); ++r)
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (const SlotCard& card = cards[std::size_t(r) * slots.size() + i];
            card.fingerprint != plan.slots[i].fingerprint)
          throw_error(ErrorCode::mismatch, "array {} has layout {:016x} on rank {} and {:016x} on rank {}", i,
                      plan.slots[i].fingerprint, rank(), card.fingerprint, r);
  }

  /// Collective.
  void make_posts(const std::vector<Vote>& votes) {
    Index lines = 0, sends_max = 0;
    posts.emplace();
    for (const Vote& vote : votes) {
      posts->receives_max = std::max(posts->receives_max, vote.receives);
      sends_max = std::max(sends_max, vote.sends);
      lines = std::max(lines, vote.inbox_lines);
    }
    posts->inbox = world.allocate<Line>(lines);
    posts->incoming = world.allocate<Posts::Card>(posts->receives_max);
    posts->outgoing = world.allocate<Posts::Card>(sends_max);
    posts->signals = world.allocate<std::uint64_t>((posts->receives_max + sends_max) * Posts::words_per_signal);
    Index line = 0;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      posts->incoming[Index(i)] = {receives[i].peer, receives[i].bytes, line};
      line += lines_of(receives[i].bytes);
    }
    for (std::size_t i = 0; i < sends.size(); ++i) posts->outgoing[Index(i)] = {sends[i].peer, sends[i].bytes, 0};
    world.barrier();
  }

  /// Finds every message in the list of its peer.
  void open_posts() {
    const auto find = [&](const Message& m, const SymmetricArray<Posts::Card>& list) {
      std::vector<Posts::Card> theirs(std::size_t(list.size()));
      world.context().get(theirs, Symmetric<Posts::Card>(list), m.peer);
      const auto mine = [&](const Posts::Card& card) { return card.peer == rank(); };
      const auto card = std::find_if(theirs.begin(), theirs.end(), mine);
      if (const Index bytes = card == theirs.end() ? 0 : card->bytes; bytes != m.bytes)
        throw_error(ErrorCode::mismatch,
                    "message {} -> {} has {} bytes on rank {} and {} on rank {}: their plans differ", m.source,
                    m.target, m.bytes, rank(), bytes, m.peer);
      return std::pair(Index(card - theirs.begin()), card->inbox_line);
    };
    for (std::size_t i = 0; i < receives.size(); ++i) {
      Message& m = receives[i];
      m.signal_here = Index(i);
      m.signal_there = posts->receives_max + find(m, posts->outgoing).first;
      m.inbox_line = posts->incoming[Index(i)].inbox_line;
    }
    Index lines = 0;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      Message& m = sends[i];
      m.signal_here = posts->receives_max + Index(i);
      std::tie(m.signal_there, m.inbox_line) = find(m, posts->incoming);
      m.outbox_line = lines;
      lines += lines_of(m.bytes);
    }
    outbox_lines.resize(std::size_t(lines));
    for (const Message& m : sends) outbox.push_back(outbox_lines[std::size_t(m.outbox_line)].bytes);
  }

  /// Finds every message's word and, where it is sent and staged, its buffer at the receiver.
  void open_messages(const std::vector<Vote>& votes) {
    outbox.resize(sends.size());
    for (std::size_t i = 0; i < receives.size(); ++i) receives[i].word = &words.at(rank(), first_message_word + int(i));
    for (Message& m : sends) {
      const Vote& theirs = votes[m.peer];
      const auto* list = static_cast<const Arrival*>(reached(m.peer, theirs.arrivals));
      const auto* end = list + theirs.receives;
      const auto* arrival = std::lower_bound(list, end, rank(), [](const Arrival& a, Rank r) { return a.source < r; });
      const Index expected = arrival != end && arrival->source == rank() ? arrival->bytes : 0;
      if (expected != m.bytes)
        throw_error(ErrorCode::mismatch, "rank {} sends {} bytes to rank {}, which expects {}: their plans differ",
                    rank(), m.bytes, m.peer, expected);
      if (m.staged != (arrival->staging != nullptr))
        throw_error(ErrorCode::mismatch,
                    "rank {} sends {} bytes to rank {} {}, which expects them {}: their plans differ", rank(), m.bytes,
                    m.peer, m.staged ? "staged" : "directly", m.staged ? "directly" : "staged");
      m.word = &words.at(m.peer, first_message_word + int(arrival - list));
      if (m.staged) outbox[std::size_t(&m - sends.data())] = static_cast<std::byte*>(reached(m.peer, arrival->staging));
    }
  }

  /// What lies at `address` in the memory of `peer`, as this rank addresses it.
  void* reached(Rank peer, const void* address) const {
    void* here = world.reach(peer, address);
    if (address && !here)
      throw_error(ErrorCode::unsupported, "rank {} cannot reach the memory of rank {}: exchanges need it", rank(),
                  peer);
    return here;
  }
  /// Of memory that is not reached the shape is right, and there is no data.
  SlotAddress address(Rank r, int slot) const {
    SlotAddress out = cards[std::size_t(r) * slots.size() + std::size_t(slot)].address;
    if (r != rank()) out.data = is_offered(r) ? static_cast<std::byte*>(reached(r, out.data)) : nullptr;
    return out;
  }
  bool is_offered(Rank r) const {
    const auto first = cards.begin() + std::ptrdiff_t(std::size_t(r) * slots.size());
    return std::all_of(first, first + std::ptrdiff_t(slots.size()), [](const SlotCard& c) { return c.is_offered; });
  }

  using Moves = std::vector<LoweredMove>;

  /// All moves, and of each message whether it is staged. Both ends of a message see the same rows and decide alike.
  void lower() {
    std::byte* none = nullptr;
    Moves own_moves, before, after;
    std::vector<Moves> received(receives.size()), sent(sends.size());
    for_each_receive([&](const auto& t, int from, int to) {
      Moves& moves = t.peer == rank() ? own_moves : received[index_of(receives, t.peer)];
      lower_one(t, type_of(to), address(t.peer, from), address(rank(), to), Hop::direct, none, moves);
    });
    for_each_send([&](const auto& t, int from, int to) {
      lower_one(t, type_of(from), address(rank(), from), address(t.peer, to), Hop::direct, none,
                sent[index_of(sends, t.peer)]);
    });
    for (const LocalFill& fill : plan.fills_before)
      lower_fill(fill, type_of(fill.slot), address(rank(), fill.slot), before);
    for (const LocalFill& fill : plan.fills_after)
      lower_fill(fill, type_of(fill.slot), address(rank(), fill.slot), after);

    set_moves(receives, std::move(received));
    set_moves(sends, std::move(sent));
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) m.staged = posts || !is_offered(rank()) || !is_offered(m.peer) || is_staged(m.moves);
    own = {std::move(own_moves), order(), way};
    // A fill may copy what an earlier one has filled.
    fills_before = {std::move(before), MoveOrder::given, way};
    fills_after = {std::move(after), MoveOrder::given, way};
  }
  bool is_staged(const MoveList& direct) const {
    if (schedule != Schedule::automatic) return schedule == Schedule::staged;
    if (direct.bytes() < staged_message_bytes_min) return false;
    const MoveList::Summary moves = direct.summary();
    // Lines that have left the sender's own cache come to it from as far as to the receiver.
    const Index line_bytes = moves.runs * Index(sizeof(Line));
    return moves.run_bytes_mean < direct_run_bytes_min && line_bytes <= private_cache_bytes();
  }

  /// The buffers for what arrives staged.
  void open_inbox() {
    Index lines = 0;
    for (const Message& m : receives)
      if (m.staged) lines = checked_add(lines, lines_of(m.bytes));
    if (!posts) inbox = local_memory(std::size_t(lines) * sizeof(Line));
    Line* next = posts ? posts->inbox.local() : static_cast<Line*>(inbox.get());
    for (std::size_t i = 0; i < receives.size(); ++i)
      if (receives[i].staged) {
        arrivals[i].staging = next->bytes;
        next += lines_of(receives[i].bytes);
      }
  }

  /// Staged messages go by way of their buffers.
  void lower_staged() {
    std::vector<std::byte*> from_inbox;
    for (const Arrival& arrival : arrivals) from_inbox.push_back(arrival.staging);
    std::vector<Moves> received(receives.size()), sent(sends.size());
    for_each_receive([&](const auto& t, int from, int to) {
      const std::size_t i = t.peer == rank() ? receives.size() : index_of(receives, t.peer);
      if (i < receives.size() && receives[i].staged)
        lower_one(t, type_of(to), address(t.peer, from), address(rank(), to), Hop::unpack, from_inbox[i], received[i]);
    });
    for_each_send([&](const auto& t, int from, int to) {
      const std::size_t i = index_of(sends, t.peer);
      if (sends[i].staged)
        lower_one(t, type_of(from), address(rank(), from), address(t.peer, to), Hop::pack, outbox[i], sent[i]);
    });
    set_moves(receives, std::move(received));
    set_moves(sends, std::move(sent));
  }

  MoveOrder order() const { return accumulates(plan.kind) ? MoveOrder::given : MoveOrder::any; }
  /// Messages that `lowered` says nothing of keep their moves.
  void set_moves(std::vector<Message>& messages, std::vector<Moves> lowered) const {
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (!lowered[i].empty()) messages[i].moves = {std::move(lowered[i]), order(), way};
  }
  static void lower_one(const Transfer& t, auto&&... how) { lower_transfer(t, how...); }
  static void lower_one(const IndexedTransfer& t, auto&&... how) { lower_indexed(t, how...); }
  static std::size_t index_of(const std::vector<Message>& messages, Rank peer) {
    const auto at =
        std::lower_bound(messages.begin(), messages.end(), peer, [](const Message& m, Rank r) { return m.peer < r; });
    return std::size_t(at - messages.begin());
  }

  // Running.

  void start() {
    if (in_flight)
      throw_error(ErrorCode::invalid_use, "exchange {} is in flight: finish it before starting {} (rank {})", epoch,
                  epoch + 1, rank());
    ++epoch;
    in_flight = true;
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) m.done = false;
    own_moved = false;
    fills_before.run();
    enter_epoch(words.at(rank(), entered_word), epoch);
    progress();
  }

  /// Moves what can be moved now. Returns true when nothing is left. What others cannot do comes first; then this rank
  /// reads what it wants, which leaves it in the caches that want it; then it helps others to read.
  bool progress() {
    bool all = true;
    for (Message& m : sends)
      if (m.staged) all &= m.done || (posts ? post(m) : pack(m));
    // In the order of the sources, this rank in its place among them: sums are made in one order, whoever comes first.
    const bool in_order = accumulates(plan.kind);
    for (Message& m : receives) {
      if (m.source > rank()) move_own();
      if (m.done || take(m)) continue;
      all = false;
      if (in_order) return false;
    }
    move_own();
    for (Message& m : sends)
      if (!m.staged) all &= m.done || give_direct(m);
    return all;
  }

  void move_own() {
    if (own_moved) return;
    own_moved = true;
    own.run();
  }

  /// Only the target adds, in its order.
  bool give_direct(Message& m) { return accumulates(plan.kind) ? is_done(m) : copy_direct(m); }
  bool take(Message& m) {
    if (posts) return take_post(m);
    return m.staged ? unpack(m) : copy_direct(m);
  }

  Claim<RealSync> claim(const Message& m) const {
    return {words.at(m.source, entered_word), words.at(m.target, entered_word), *m.word, m.moves.parts()};
  }

  bool is_done(Message& m) {
    const Claim<RealSync> c = claim(m);
    if (c.left_before(epoch)) lose(m, c);
    return m.done = c.done(epoch);
  }

  bool copy_direct(Message& m) {
    if (is_done(m)) return true;
    Claim<RealSync> c = claim(m);
    if (!c.ready(epoch)) return false;
    for (int part = c.try_claim(epoch); part >= 0; part = c.try_claim(epoch)) {
      m.moves.run_part(part);
      c.complete();
    }
    return m.done = c.done(epoch);
  }

  bool pack(Message& m) {
    Mailbox<RealSync> mailbox(*m.word);
    if (!mailbox.try_fill(epoch)) {
      if (mailbox.left_before(epoch)) lose(m, mailbox);
      return false;
    }
    m.moves.run();
    mailbox.filled(epoch);
    return m.done = true;
  }

  bool unpack(Message& m) {
    Mailbox<RealSync> mailbox(*m.word);
    if (!mailbox.full(epoch)) {
      if (mailbox.left_before(epoch)) lose(m, mailbox);
      return false;
    }
    m.moves.run();
    mailbox.emptied();
    return m.done = true;
  }

  Symmetric<Line> inbox_of(const Message& m) const { return posts->inbox.slice(m.inbox_line, lines_of(m.bytes)); }

  bool post(Message& m) {
    Context& rma = world.context();
    // What the receiver has read; it may be one epoch behind.
    const Posts::Seen read(rma.signal_fetch(posts->signal(m.signal_here)));
    if (read.has_left()) lose(m, read);
    if (read.has_left() || read.epoch() + 1 < epoch) return false;
    m.moves.run();
    const std::span packed(outbox_lines.data() + m.outbox_line, std::size_t(lines_of(m.bytes)));
    rma.put_signal(inbox_of(m), packed, posts->signal(m.signal_there), 1, SignalOp::add, m.peer);
    return m.done = true;
  }

  bool take_post(Message& m) {
    Context& rma = world.context();
    const Posts::Seen sent(rma.signal_fetch(posts->signal(m.signal_here)));
    if (sent.epoch() < epoch) {
      if (sent.has_left()) lose(m, sent);
      return false;
    }
    rma.reads(inbox_of(m));
    m.moves.run();
    rma.signal(posts->signal(m.signal_there), 1, SignalOp::add, m.peer);
    return m.done = true;
  }

  /// After what it has posted. Nobody is there to hear of an error.
  void leave_post(const Message& m, Leaving why) noexcept {
    try {
      world.context().fence();
      world.context().signal(posts->signal(m.signal_there), LeavingBits::bits_of(why), SignalOp::add, m.peer);
    } catch (...) {
    }
  }

  /// A peer has left before this message was done. One that fails leaves while it unwinds, and its reason is known a
  /// moment later: whoever waits is told that, if it comes before the deadline.
  template <class Protocol>
  void lose(const Message& m, const Protocol& protocol) {
    if (lost) return;
    lost = &m;
    reason_due = protocol.left_failing() ? world.deadline() : Deadline::after_ns(0);
  }
  void check_lost() const {
    if (!lost) return;
    world.check_failed();
    if (!reason_due.passed()) return;
    Error error = make_error(ErrorCode::peer_lost,
                             "rank {} has left the exchange before its message {} -> {} of epoch {} was done (rank {})",
                             lost->peer, lost->source, lost->target, epoch, rank());
    error.rank = rank();
    error.peer = lost->peer;
    throw error;
  }

  bool test() {
    if (!in_flight) return true;
    if (!progress()) {
      check_lost();
      return false;
    }
    end_epoch();
    return true;
  }

  void finish() {
    if (!in_flight) return;
    WaitNote note("exchange");
    world.wait_until(
        [&] {
          if (progress()) return true;
          check_lost();
          name_missing(note);
          return false;
        },
        note);
    end_epoch();
  }

  void end_epoch() {
    fills_after.run();
    in_flight = false;
  }

  /// Names one rank that is missing.
  void name_missing(WaitNote& note) const {
    for (const auto* messages : {&receives, &sends})
      for (const Message& m : *messages)
        if (!m.done) {
          note.raised_by = note.flag_rank = m.peer;
          note.flag_index = entered_word;
          note.wanted = epoch;
          // Of a peer that is only messaged it is known how much it has sent or read.
          note.seen = posts ? posts->signal(m.signal_here)[0] & Posts::epochs : words.load(m.peer, entered_word);
          return;
        }
  }
};

namespace {

constexpr Schedule schedules_to_measure[] = {Schedule::automatic, Schedule::direct, Schedule::staged};

/// The median time of an exchange, of the slowest rank. Collective, with one answer on all ranks.
std::int64_t time_ns(World& world, FunctionRef<void()> exchange) {
  constexpr int rounds = 7;
  std::vector<std::int64_t> times;
  for (int round = 0; round <= rounds; ++round) {
    world.barrier();
    const std::int64_t begin = now_ns();
    exchange();
    std::int64_t slowest = 0;
    for (const std::int64_t ns : world.all_gather(now_ns() - begin)) slowest = std::max(slowest, ns);
    if (round > 0) times.push_back(slowest);  // the first one finds its pages
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

}  // namespace

Exchange::Exchange(World& world, TransferPlan plan, std::vector<StridedView> slots, ExchangeOptions options) {
  std::vector<Measured> measured;
  if (options.schedule == Schedule::measured) {
    options.schedule = Schedule::automatic;
    if (!accumulates(plan.kind))
      for (const Schedule schedule : schedules_to_measure) {
        State candidate(world, plan, slots, {.schedule = schedule});
        candidate.set_up();
        measured.push_back({schedule, time_ns(world, [&] {
                              candidate.start();
                              candidate.finish();
                            })});
      }
    const auto faster = [](const Measured& a, const Measured& b) { return a.ns < b.ns; };
    if (!measured.empty()) options.schedule = std::min_element(measured.begin(), measured.end(), faster)->schedule;
  }
  state_ = std::make_unique<State>(world, std::move(plan), std::move(slots), options);
  state_->set_up();
  state_->measured = std::move(measured);
}

Exchange::~Exchange() = default;
Exchange::Exchange(Exchange&&) noexcept = default;

void Exchange::start() {
  state_->start();
}
bool Exchange::test() {
  return state_->test();
}
void Exchange::finish() {
  state_->finish();
}
Schedule Exchange::schedule() const noexcept {
  if (!state_->any_message(true)) return Schedule::direct;
  return state_->any_message(false) ? Schedule::automatic : Schedule::staged;
}
const TransferPlan& Exchange::plan() const noexcept {
  return state_->plan;
}

std::string Exchange::explain() const {
  const State& s = *state_;
  const bool any_direct = s.any_message(false), any_staged = s.any_message(true);
  std::string out =
      fmt::format("schedule: {}\n", any_direct && any_staged ? "direct and staged, by message"
                                    : any_staged             ? "staged (packed by the sender, unpacked by the receiver)"
                                                 : "direct (straight from array to array, by whoever comes second)");
  for (const Measured& m : s.measured)
    out += fmt::format("measured: {} {:.1f} us\n", name_of(m.schedule), double(m.ns) / 1e3);
  if (s.schedule == Schedule::automatic)
    out += fmt::format(
        "chosen by message: staged from {} bytes on in contiguous runs of less than {} on average, while their lines "
        "fit in a core's own cache of {}\n",
        staged_message_bytes_min, direct_run_bytes_min, private_cache_bytes());
  const auto how = [](const Message& m) { return m.staged ? "staged" : "direct"; };
  const auto describe = [&](const std::string& what, const MoveList& moves) {
    const MoveList::Summary m = moves.summary();
    out += fmt::format("{}: {} bytes in {} moves, {} walks, contiguous runs of {} bytes and more, {} on average\n",
                       what, moves.bytes(), m.moves, m.walks, m.run_bytes_min, m.run_bytes_mean);
  };
  for (const Message& m : s.receives) describe(fmt::format("from rank {}, {}", m.peer, how(m)), m.moves);
  for (const Message& m : s.sends) describe(fmt::format("to rank {}, {}", m.peer, how(m)), m.moves);
  describe("within this rank", s.own);
  out += fmt::format("stores: {} ({} bytes reach all ranks together, the caches hold {})\n", name_of(s.way.stores),
                     s.traffic, cached_bytes_max());
  out += "progress: in start(), test() and finish() of either side; nothing moves while both compute\n";
  return out;
}

}  // namespace tranship
