#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <tuple>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/lower/move_bundle.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/run/exchange.hpp>
#include <tranship/run/exchange_agreement.hpp>
#include <tranship/run/exchange_courier.hpp>
#include <tranship/run/exchange_schedule.hpp>
#include <tranship/run/exchange_slots.hpp>

namespace tranship {
namespace {

/// Whether what is lowered for one of them serves the other, too.
bool is_alike(const SlotAddress& a, const SlotAddress& b) {
  return a.dims == b.dims && a.part_stride_bytes == b.part_stride_bytes && a.parts_together == b.parts_together &&
         std::equal(a.strides_bytes, a.strides_bytes + a.dims, b.strides_bytes) &&
         std::equal(a.local_extents, a.local_extents + a.dims, b.local_extents);
}

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

}  // namespace

struct Exchange::State {
  World& world;
  const TransferPlan plan;
  const ExchangeSlots slots;
  const Schedule schedule;
  const CallSite where;

  std::vector<std::size_t> first_card;  // by slot: where those of its arrays begin
  std::size_t cards_per_rank = 0;
  std::shared_ptr<void> cards_memory, arrivals_memory, inbox;  // that peers reach
  std::span<ArrayCard> cards;                                  // this rank's
  std::vector<ArrayCard> all_cards;                            // by rank, where the peers' cannot be reached
  std::span<Arrival> arrivals;                                 // of receives
  std::vector<std::byte*> outbox;                              // of each staged send: where its bytes go
  Journey journey;
  MoveBundle fills_before;
  MoveBundle fills_after;
  Message own;                    // from this rank to itself
  std::vector<Message> receives;  // by source, ascending
  std::vector<Message> sends;     // by target, ascending

  Index bytes_in = 0;  // of one exchange, from this rank to itself included
  Index traffic = 0;   // the same, of all ranks together
  CopyMethod way;

  std::vector<Measured> measured;

  bool in_flight = false;
  bool own_moved = false;
  int polls_left = 0;                       // of test(), until the world is looked at
  const Message* lost = nullptr;            // the first message whose peer has left
  Deadline reason_due = Deadline::never();  // when its peer should have said why
  int exceptions_before = std::uncaught_exceptions();

  State(World& w, TransferPlan p, ExchangeSlots s, ExchangeOptions options, CallSite site)
      : world(w),
        plan(std::move(p)),
        slots(std::move(s)),
        schedule(options.schedule),
        where(site),
        journey{.world = w, .only_targets_move = accumulates(plan.kind)} {
    for (const auto& arrays : slots) {
      first_card.push_back(cards_per_rank);
      cards_per_rank += arrays.size();
    }
  }
  /// After this no peer touches this rank's memory any more, and none waits for it for ever.
  ~State() {
    const Leaving why = std::uncaught_exceptions() > exceptions_before ? Leaving::failing : Leaving::done;
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages)
        if (m.courier) m.courier->leave(journey, m, why);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Rank rank() const { return world.rank(); }
  ElementType type_of(int slot) const { return plan.slots[std::size_t(slot)].type; }
  int arrays_of(int slot) const { return int(slots[std::size_t(slot)].size()); }

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

  /// Collective. What fails on one rank must fail on all before any rank makes the next collective call.
  void set_up() {
    const std::vector<Vote> votes = agree(tried([&] {
      if (plan.rank != rank())
        throw_error(ErrorCode::invalid_use, "the plan of rank {} is run by rank {}", plan.rank, rank());
      check_plan(plan).value();
      check_slots(plan, slots, world.size());
      list_messages();
    }));
    check_layouts(world, votes, plan, slots, where);
    Index words_per_rank = Journey::first_message_word, received = 0, sent = 0;
    for (const Vote& vote : votes) {
      traffic = checked_add(traffic, vote.bytes);
      words_per_rank = std::max(words_per_rank, Journey::first_message_word + vote.receives);
      received += vote.receives;
      sent += vote.sends;
    }
    way = copy_method(traffic);
    journey.words = world.shared_flags(int(words_per_rank), "exchange", where);
    const auto posts_needed = [](const Vote& vote) { return vote.needs_posts; };
    if (std::any_of(votes.begin(), votes.end(), posts_needed)) {
      all_cards.resize(cards_per_rank * std::size_t(world.size()));
      world.all_gather(cards.data(), cards.size_bytes(), all_cards.data(), where);
      make_posts(votes);
    }
    const std::vector<Vote> lowered = agree(tried([&] {
      find_cards(votes);
      if (!journey.posts) open_words(votes);
      lower();
      open_inbox();
    }));
    const auto has_staged = [](const Vote& vote) { return vote.has_staged; };
    if (journey.posts || std::any_of(lowered.begin(), lowered.end(), has_staged))
      agree(tried([&] {
        if (journey.posts) {
          open_posts();
          choose_couriers();
        } else
          find_inboxes(votes);
        lower_staged();
      }));
    // Every send has found its arrival, so equal numbers say that every arrival has its send.
    if (received != sent)
      throw_error(ErrorCode::mismatch, "the plans of all ranks together receive {} messages and send {} (rank {})",
                  received, sent, rank());
  }

  std::vector<Vote> agree(const Result<void>& so_far) {
    const Vote mine{.code = so_far.ok() ? 0 : int(so_far.error().code()),
                    .kind = plan.kind,
                    .schedule = schedule,
                    .arrays = int(cards_per_rank),
                    .layouts = fingerprint_of(plan, slots),
                    .receives = Index(receives.size()),
                    .sends = Index(sends.size()),
                    .bytes = bytes_in,
                    .arrivals = arrivals.data(),
                    .cards = cards.data(),
                    .needs_posts = needs_posts(),
                    .has_staged = any_message(true),
                    .inbox_lines = inbox_lines()};
    return tranship::agree(world, mine, so_far, where);
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
    std::map<Rank, Message> in, out;
    own = {.source = rank(), .target = rank(), .peer = rank()};
    for_each_receive([&](const auto& t, int from, int to) {
      const Index bytes = count(t, from, to, t.peer == rank() ? own : in[t.peer]);
      bytes_in = checked_add(bytes_in, bytes);
    });
    for_each_send([&](const auto& t, int from, int to) { count(t, from, to, out[t.peer]); });
    arrivals_memory = local_memory(in.size() * sizeof(Arrival));
    arrivals = {static_cast<Arrival*>(arrivals_memory.get()), in.size()};
    for (auto& [peer, message] : in) {
      arrivals[receives.size()] = {.source = peer, .bytes = message.bytes};
      receives.push_back(std::move(message));
      receives.back().source = receives.back().peer = peer;
      receives.back().target = rank();
    }
    for (auto& [peer, message] : out) {
      sends.push_back(std::move(message));
      sends.back().target = sends.back().peer = peer;
      sends.back().source = rank();
    }
    cards_memory = local_memory(cards_per_rank * sizeof(ArrayCard));
    cards = {static_cast<ArrayCard*>(cards_memory.get()), cards_per_rank};
    own.cards = cards.data();
    std::size_t i = 0;
    for (const auto& arrays : slots)
      for (const ExchangeArray& array : arrays)
        cards[i++] = {address_of(array.view), !array.view.data || world.is_exposed(array.view.data)};
  }
  /// Adds a transfer to the message that it is part of; gives its bytes.
  Index count(const auto& t, int from, int to, Message& message) const {
    const Index each = staged_bytes(t, type_of(to)), bytes = checked_multiply(each, arrays_of(to));
    Strand strand = strand_of(from, to);
    const auto at = std::lower_bound(message.strands.begin(), message.strands.end(), strand);
    if (at == message.strands.end() || strand < *at) {
      strand.bytes = each;
      message.strands.insert(at, strand);
    } else {
      at->bytes = checked_add(at->bytes, each);
    }
    message.bytes = checked_add(message.bytes, bytes);
    return bytes;
  }
  Strand strand_of(int from, int to) const {
    if (arrays_of(to) == 1) return {};
    return {.source_slot = from, .target_slot = to, .arrays = arrays_of(to)};
  }
  std::shared_ptr<void> local_memory(std::size_t bytes) const {
    if (bytes == 0) return nullptr;
    std::shared_ptr<void> memory = world.local_memory(bytes);
    if (!memory)
      throw_error(ErrorCode::no_memory, "rank {} cannot get {} bytes of memory that its peers reach", rank(), bytes);
    return memory;
  }

  /// What the peers' arrays look like, and where they lie.
  void find_cards(const std::vector<Vote>& votes) {
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) {
        m.cards = journey.posts ? &all_cards[std::size_t(m.peer) * cards_per_rank]
                                : static_cast<const ArrayCard*>(reached(m.peer, votes[std::size_t(m.peer)].cards));
        m.is_exposed = is_exposed(m.cards);
      }
  }

  /// Collective.
  void make_posts(const std::vector<Vote>& votes) {
    Index lines = 0, sends_max = 0;
    journey.posts.emplace();
    for (const Vote& vote : votes) {
      journey.posts->receives_max = std::max(journey.posts->receives_max, vote.receives);
      sends_max = std::max(sends_max, vote.sends);
      lines = std::max(lines, vote.inbox_lines);
    }
    journey.posts->inbox = world.allocate<Line>(lines, where);
    journey.posts->incoming = world.allocate<Posts::Card>(journey.posts->receives_max, where);
    journey.posts->outgoing = world.allocate<Posts::Card>(sends_max, where);
    journey.posts->signals =
        world.allocate<std::uint64_t>((journey.posts->receives_max + sends_max) * Posts::words_per_signal, where);
    Index line = 0;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      journey.posts->incoming[Index(i)] = {receives[i].peer, receives[i].bytes, line};
      line += lines_of(receives[i].bytes);
    }
    for (std::size_t i = 0; i < sends.size(); ++i)
      journey.posts->outgoing[Index(i)] = {sends[i].peer, sends[i].bytes, 0};
    world.barrier(where);
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
      m.signal_there = journey.posts->receives_max + find(m, journey.posts->outgoing).first;
      m.inbox_line = journey.posts->incoming[Index(i)].inbox_line;
    }
    Index lines = 0;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      Message& m = sends[i];
      m.signal_here = journey.posts->receives_max + Index(i);
      std::tie(m.signal_there, m.inbox_line) = find(m, journey.posts->incoming);
      m.outbox_line = lines;
      lines += lines_of(m.bytes);
    }
    journey.outbox_lines.resize(std::size_t(lines));
    for (const Message& m : sends) outbox.push_back(journey.outbox_lines[std::size_t(m.outbox_line)].bytes);
  }

  /// What the target of a message expects of this rank. Throws `mismatch` when that is not what is sent.
  const Arrival* arrival_of(const Message& m, const std::vector<Vote>& votes) const {
    const Vote& theirs = votes[std::size_t(m.peer)];
    const auto* list = static_cast<const Arrival*>(reached(m.peer, theirs.arrivals));
    const auto* end = list + theirs.receives;
    const auto* arrival = std::lower_bound(list, end, rank(), [](const Arrival& a, Rank r) { return a.source < r; });
    const Index expected = arrival != end && arrival->source == rank() ? arrival->bytes : 0;
    if (expected != m.bytes)
      throw_error(ErrorCode::mismatch, "rank {} sends {} bytes to rank {}, which expects {}: their plans differ",
                  rank(), m.bytes, m.peer, expected);
    return arrival;
  }

  /// Finds the word of every message.
  void open_words(const std::vector<Vote>& votes) {
    for (std::size_t i = 0; i < receives.size(); ++i)
      receives[i].word = &journey.words.at(rank(), Journey::first_message_word + int(i));
    for (Message& m : sends) {
      const auto* list = static_cast<const Arrival*>(reached(m.peer, votes[std::size_t(m.peer)].arrivals));
      m.word = &journey.words.at(m.peer, Journey::first_message_word + int(arrival_of(m, votes) - list));
    }
  }

  /// Finds the buffer of every message that is sent and staged, at its receiver.
  void find_inboxes(const std::vector<Vote>& votes) {
    outbox.resize(sends.size());
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const Message& m = sends[i];
      const Arrival* arrival = arrival_of(m, votes);
      if (m.staged != (arrival->staging != nullptr))
        throw_error(ErrorCode::mismatch,
                    "rank {} sends {} bytes to rank {} {}, which expects them {}: their plans differ", rank(), m.bytes,
                    m.peer, m.staged ? "staged" : "directly", m.staged ? "directly" : "staged");
      if (m.staged) outbox[i] = static_cast<std::byte*>(reached(m.peer, arrival->staging));
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
  /// This rank's arrays, or those of a message's peer; without data where they are not reached.
  SlotAddress address(const Message& m, Rank r, int slot, int array) const {
    const ArrayCard* all = r == rank() ? cards.data() : m.cards;
    SlotAddress out = all[first_card[std::size_t(slot)] + std::size_t(array)].address;
    if (r != rank()) out.data = m.is_exposed ? static_cast<std::byte*>(reached(r, out.data)) : nullptr;
    return out;
  }
  bool is_exposed(const ArrayCard* all) const {
    return std::all_of(all, all + cards_per_rank, [](const ArrayCard& card) { return card.is_exposed; });
  }

  using Moves = std::vector<LoweredMove>;

  /// The moves of one message, strand by strand.
  struct Lowering {
    struct One {
      Moves moves;
      std::vector<MoveShift> shifts;
      std::byte* staging = nullptr;  // of the first array: where the bytes that are lowered next go
    };
    std::vector<One> strands;
  };
  static Lowering lowering_of(const Message& m, std::byte* staging = nullptr) {
    Lowering out;
    for (const Strand& strand : m.strands) {
      out.strands.push_back({.moves = {}, .shifts = {}, .staging = staging});
      if (staging) staging += strand.bytes * strand.arrays;
    }
    return out;
  }

  /// Appends the moves of a transfer: once for all arrays that lie alike on both sides, else for each of them.
  void lower_one(const auto& t, int from, int to, const Message& m, Hop hop, Lowering& lowering) const {
    const Strand key = strand_of(from, to);
    const auto at = std::lower_bound(m.strands.begin(), m.strands.end(), key);
    const Strand& strand = *at;
    Lowering::One& out = lowering.strands[std::size_t(at - m.strands.begin())];
    const SlotAddress source = address(m, m.source, from, 0), target = address(m, m.target, to, 0);
    if (out.shifts.empty()) out.shifts = shifts_of(strand, m, hop, source, target);
    const int each = int(out.shifts.size()) == strand.arrays ? 1 : strand.arrays;
    std::byte* const begin = out.staging;
    for (int k = 0; k < each; ++k) {
      std::byte* staging = begin ? begin + k * strand.bytes : nullptr;
      if (k == 0)
        append_moves(t, type_of(to), source, target, hop, staging, out.moves);
      else
        append_moves(t, type_of(to), address(m, m.source, from, k), address(m, m.target, to, k), hop, staging,
                     out.moves);
      if (k == 0) out.staging = staging;
    }
  }
  /// The shift of each array of a strand from the first one; empty where they do not lie alike.
  std::vector<MoveShift> shifts_of(const Strand& strand, const Message& m, Hop hop, const SlotAddress& source,
                                   const SlotAddress& target) const {
    std::vector<MoveShift> out = {{}};
    for (int k = 1; k < strand.arrays; ++k) {
      const SlotAddress from = address(m, m.source, strand.source_slot, k);
      const SlotAddress to = address(m, m.target, strand.target_slot, k);
      if (!is_alike(from, source) || !is_alike(to, target)) return {{}};
      const std::ptrdiff_t in_buffer = k * strand.bytes;
      out.push_back({hop == Hop::unpack ? in_buffer : from.data - source.data,
                     hop == Hop::pack ? in_buffer : to.data - target.data});
    }
    return out;
  }
  static void append_moves(const Transfer& t, auto&&... how) { lower_transfer(t, how...); }
  static void append_moves(const IndexedTransfer& t, auto&&... how) { lower_indexed(t, how...); }

  /// All moves, and of each message whether it is staged. Both ends of a message see the same rows and decide alike.
  void lower() {
    Lowering own_moves = lowering_of(own);
    std::vector<Lowering> received, sent;
    for (const Message& m : receives) received.push_back(lowering_of(m));
    for (const Message& m : sends) sent.push_back(lowering_of(m));
    for_each_receive([&](const auto& t, int from, int to) {
      if (t.peer == rank()) return lower_one(t, from, to, own, Hop::direct, own_moves);
      const std::size_t i = index_of(receives, t.peer);
      lower_one(t, from, to, receives[i], Hop::direct, received[i]);
    });
    for_each_send([&](const auto& t, int from, int to) {
      const std::size_t i = index_of(sends, t.peer);
      lower_one(t, from, to, sends[i], Hop::direct, sent[i]);
    });
    set_moves(own, std::move(own_moves));
    for (std::size_t i = 0; i < receives.size(); ++i) set_moves(receives[i], std::move(received[i]));
    for (std::size_t i = 0; i < sends.size(); ++i) set_moves(sends[i], std::move(sent[i]));
    const bool exposes = is_exposed(cards.data());
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages)
        m.staged = journey.posts || !exposes || !m.is_exposed || is_staged(schedule, m.moves);
    if (!journey.posts) choose_couriers();
    fills_before = lowered(plan.fills_before);
    fills_after = lowered(plan.fills_after);
  }
  /// From here on a rank that leaves says so to its peers.
  void choose_couriers() {
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages)
        m.courier = &(journey.posts ? posting_courier() : m.staged ? mailing_courier() : claiming_courier());
  }
  /// A fill may copy what an earlier one has filled.
  MoveBundle lowered(const std::vector<LocalFill>& fills) const {
    MoveBundle out(MoveOrder::given, way);
    for (std::size_t i = 0; i < fills.size();) {
      const int slot = fills[i].slot;
      const bool is_zero = fills[i].kind == LocalFillKind::zero;
      const auto array = [&](int k) { return address(own, rank(), slot, k); };
      Moves moves;
      std::vector<MoveShift> shifts = {{}};
      bool alike = true;
      for (int k = 1; k < arrays_of(slot); ++k) {
        const std::ptrdiff_t shift = array(k).data - array(0).data;
        alike &= is_alike(array(k), array(0));
        shifts.push_back({is_zero ? 0 : shift, shift});
      }
      if (!alike) shifts = {{}};
      for (; i < fills.size() && fills[i].slot == slot && (fills[i].kind == LocalFillKind::zero) == is_zero; ++i)
        for (int k = 0; k < (alike ? 1 : arrays_of(slot)); ++k) lower_fill(fills[i], type_of(slot), array(k), moves);
      out.add(std::move(moves), std::move(shifts));
    }
    return out;
  }
  /// The buffers for what arrives staged.
  void open_inbox() {
    Index lines = 0;
    for (const Message& m : receives)
      if (m.staged) lines = checked_add(lines, lines_of(m.bytes));
    if (!journey.posts) inbox = local_memory(std::size_t(lines) * sizeof(Line));
    Line* next = journey.posts ? journey.posts->inbox.local() : static_cast<Line*>(inbox.get());
    for (std::size_t i = 0; i < receives.size(); ++i)
      if (receives[i].staged) {
        arrivals[i].staging = next->bytes;
        next += lines_of(receives[i].bytes);
      }
  }

  /// Staged messages go by way of their buffers.
  void lower_staged() {
    std::vector<Lowering> received, sent;
    for (std::size_t i = 0; i < receives.size(); ++i) received.push_back(lowering_of(receives[i], arrivals[i].staging));
    for (std::size_t i = 0; i < sends.size(); ++i) sent.push_back(lowering_of(sends[i], outbox[i]));
    for_each_receive([&](const auto& t, int from, int to) {
      const std::size_t i = t.peer == rank() ? receives.size() : index_of(receives, t.peer);
      if (i < receives.size() && receives[i].staged) lower_one(t, from, to, receives[i], Hop::unpack, received[i]);
    });
    for_each_send([&](const auto& t, int from, int to) {
      const std::size_t i = index_of(sends, t.peer);
      if (sends[i].staged) lower_one(t, from, to, sends[i], Hop::pack, sent[i]);
    });
    for (std::size_t i = 0; i < receives.size(); ++i)
      if (receives[i].staged) set_moves(receives[i], std::move(received[i]));
    for (std::size_t i = 0; i < sends.size(); ++i)
      if (sends[i].staged) set_moves(sends[i], std::move(sent[i]));
  }

  MoveOrder order() const { return accumulates(plan.kind) ? MoveOrder::given : MoveOrder::any; }
  void set_moves(Message& m, Lowering lowering) const {
    m.moves = MoveBundle(order(), way);
    for (Lowering::One& one : lowering.strands) m.moves.add(std::move(one.moves), std::move(one.shifts));
  }
  static std::size_t index_of(const std::vector<Message>& messages, Rank peer) {
    const auto at =
        std::lower_bound(messages.begin(), messages.end(), peer, [](const Message& m, Rank r) { return m.peer < r; });
    return std::size_t(at - messages.begin());
  }

  // Running.

  void start() {
    if (in_flight)
      throw_error(ErrorCode::invalid_use, "exchange {} is in flight: finish it before starting {} (rank {})",
                  journey.epoch, journey.epoch + 1, rank());
    ++journey.epoch;
    in_flight = true;
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) m.done = false;
    own_moved = false;
    fills_before.run();
    enter_epoch(journey.words.at(rank(), Journey::entered_word), journey.epoch);
    world.has_acted();
    progress();
  }

  /// Moves what can be moved now. Returns true when nothing is left. What others cannot do comes first; then this rank
  /// reads what it wants, which leaves it in the caches that want it; then it helps others to read.
  bool progress() {
    bool all = true;
    for (Message& m : sends)
      if (m.staged) all &= m.done || advance(m, m.courier->send(journey, m));
    // In the order of the sources, this rank in its place among them: sums are made in one order, whichever comes
    // first.
    for (Message& m : receives) {
      if (m.source > rank()) move_own();
      if (m.done || advance(m, m.courier->take(journey, m))) continue;
      all = false;
      if (journey.only_targets_move) return false;
    }
    move_own();
    for (Message& m : sends)
      if (!m.staged) all &= m.done || advance(m, m.courier->send(journey, m));
    return all;
  }

  void move_own() {
    if (own_moved) return;
    own_moved = true;
    own.moves.run();
  }

  /// Whether the message is done.
  bool advance(Message& m, Passage passage) {
    if (passage == Passage::waiting) return false;
    if (passage != Passage::done) {
      lose(m, passage);
      return false;
    }
    world.has_acted();
    return m.done = true;
  }

  /// A peer has left before this message was done. One that fails leaves while it unwinds, and its reason is known a
  /// moment later: a rank that waits is told that, if it comes before the deadline.
  void lose(const Message& m, Passage passage) {
    if (lost) return;
    lost = &m;
    reason_due = passage == Passage::left_failing ? world.deadline() : Deadline::after_ns(0);
  }
  void check_lost() const {
    if (!lost) return;
    world.check_failed();
    if (!reason_due.passed()) return;
    Error error = make_error(ErrorCode::peer_lost,
                             "rank {} has left the exchange before its message {} -> {} of epoch {} was done (rank {})",
                             lost->peer, lost->source, lost->target, journey.epoch, rank());
    error.rank = rank();
    error.peer = lost->peer;
    throw error;
  }

  bool test(CallSite site) {
    if (!in_flight) return true;
    if (!progress()) {
      check_lost();
      poll(site);
      return false;
    }
    end_epoch();
    return true;
  }

  /// After a test that is not done, so that a loop over them ends as a wait does. What is posted is looked at by the
  /// context that posts it.
  void poll(CallSite site) {
    if (journey.posts) return;
    // A test looks at some words of every message, and each of them counts as a poll does.
    constexpr int words_per_message = 4;
    polls_left -= words_per_message * static_cast<int>(receives.size() + sends.size());
    if (polls_left > 0) return;
    WaitNote note("exchange", WaitNote::anyone, site);
    name_missing(note);
    // Exchanges that are tested in turn are told apart by where their words lie.
    note.flag_index = reinterpret_cast<const std::byte*>(&journey.words.at(rank(), Journey::entered_word)) -
                      (world.heap().place().first + std::size_t(rank()) * world.heap().place().stride_bytes);
    polls_left = world.look(note);
  }

  void finish(CallSite site) {
    if (!in_flight) return;
    WaitNote note("exchange", WaitNote::anyone, site);
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
          note.flag_index = Journey::entered_word;
          note.wanted = journey.epoch;
          note.seen = m.courier->epoch_of_peer(journey, m);
          return;
        }
  }
};

Exchange::Exchange(World& world, TransferPlan plan, const std::vector<StridedView>& slots, ExchangeOptions options,
                   CallSite where)
    : Exchange(world, std::move(plan), slots_of(slots), options, where) {}

Exchange::Exchange(World& world, TransferPlan plan, std::vector<std::vector<ExchangeArray>> slots,
                   ExchangeOptions options, CallSite where) {
  int number = 0;
  for (auto& arrays : slots)
    for (ExchangeArray& array : arrays) {
      if (array.name.empty()) array.name = fmt::format("array {}", number);
      ++number;
    }
  std::vector<Measured> measured;
  if (options.schedule == Schedule::measured) {
    options.schedule = Schedule::automatic;
    if (!accumulates(plan.kind))
      for (const Schedule schedule : schedules_to_measure()) {
        State candidate(world, plan, slots, {.schedule = schedule}, where);
        candidate.set_up();
        measured.push_back({schedule, time_ns(world, where, [&] {
                              candidate.start();
                              candidate.finish(where);
                            })});
      }
    const auto faster = [](const Measured& a, const Measured& b) { return a.ns < b.ns; };
    if (!measured.empty()) options.schedule = std::min_element(measured.begin(), measured.end(), faster)->schedule;
  }
  state_ = std::make_unique<State>(world, std::move(plan), std::move(slots), options, where);
  state_->set_up();
  state_->measured = std::move(measured);
}

Exchange::~Exchange() = default;
Exchange::Exchange(Exchange&&) noexcept = default;

void Exchange::start() {
  state_->start();
}
bool Exchange::test(CallSite where) {
  return state_->test(where);
}
void Exchange::finish(CallSite where) {
  state_->finish(where);
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
  std::string out = fmt::format("schedule: {}\n",
                                any_direct && any_staged ? "direct and staged, by message"
                                : any_staged             ? "staged (packed by the sender, unpacked by the receiver)"
                                             : "direct (straight from array to array, by the side that comes second)");
  for (const Measured& m : s.measured)
    out += fmt::format("measured: {} {:.1f} us\n", name_of(m.schedule), double(m.ns) / 1e3);
  if (s.schedule == Schedule::automatic) out += automatic_rule();
  const auto how = [](const Message& m) { return m.staged ? "staged" : "direct"; };
  const auto describe = [&](const std::string& what, const MoveBundle& moves) {
    const MoveList::Summary m = moves.summary();
    out += fmt::format("{}: {} bytes in {} moves, {} walks, contiguous runs of {} bytes and more, {} on average\n",
                       what, moves.bytes(), m.moves, m.walks, m.run_bytes_min, m.run_bytes_mean);
  };
  for (const Message& m : s.receives) describe(fmt::format("from rank {}, {}", m.peer, how(m)), m.moves);
  for (const Message& m : s.sends) describe(fmt::format("to rank {}, {}", m.peer, how(m)), m.moves);
  describe("within this rank", s.own.moves);
  out += fmt::format("stores: {} ({} bytes reach all ranks together, the caches hold {})\n", name_of(s.way.stores),
                     s.traffic, cached_bytes_max());
  out += "progress: in start(), test() and finish() of either side; nothing moves while both compute\n";
  return out;
}

}  // namespace tranship
