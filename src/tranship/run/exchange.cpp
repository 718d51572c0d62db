#include "tranship/run/exchange.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/lower/move_bundle.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/plan/fills.hpp>
#include <tranship/run/exchange_agreement.hpp>
#include <tranship/run/exchange_courier.hpp>
#include <tranship/run/exchange_explanation.hpp>
#include <tranship/run/exchange_log.hpp>
#include <tranship/run/exchange_schedule.hpp>
#include <tranship/run/exchange_slots.hpp>

namespace tranship {
namespace {

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

/// What a rank sends, or what it receives, in the epoch that it is in with it.
struct Half {
  std::uint64_t epoch = 0;
  bool in_flight = false;
  bool is_done = true;                      // all its messages, but for that from this rank to itself
  const Message* lost = nullptr;            // the first message whose peer has left
  bool peer_fails = false;                  // and will say why
  Deadline reason_due = Deadline::never();  // until when it should have
  bool peer_has_ended = false;              // a call has thrown for that
  bool has_left = false;                    // for good
};

}  // namespace

struct Exchange::State final : UnderWay::Item, std::enable_shared_from_this<Exchange::State> {
  World& world;
  const detail::ProcessOfRank process = {};
  const TransferPlan plan;
  ExchangeSlots slots;
  const Schedule schedule;
  const Sources sources;
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
  Message own;  // from this rank to itself
  // Of a snapshot: what this rank keeps of its own cells.
  MoveBundle own_packing;
  MoveBundle fills_packing;
  MoveBundle fills_unpacking;
  std::vector<Line> own_lines;    // the message to itself, then the sources of fills
  std::vector<Message> receives;  // by source, ascending
  std::vector<Message> sends;     // by target, ascending

  Index bytes_in = 0;  // of one exchange, from this rank to itself included
  Index traffic = 0;   // the same, of all ranks together
  CopyMethod way;

  std::vector<Measured> measured;

  Half sending, receiving;
  int polls_left = 0;  // of test(), until the world is looked at
  /// Looks at what others do, of a rank that has received all, before it copies for them: some microseconds.
  static constexpr int patience = 64;
  int vain_looks = 0;
  std::uint64_t taken = 0;      // the last epoch that the taken word of this rank has said
  std::size_t first_taken = 0;  // of the receives: the first one from behind this rank
  int exceptions_before = std::uncaught_exceptions();
  std::optional<LoggedExchange> record;  // of this run, where runs are recorded

  State(World& w, TransferPlan p, ExchangeSlots s, ExchangeOptions options, CallSite site)
      : world(w),
        plan(std::move(p)),
        slots(std::move(s)),
        schedule(options.schedule),
        sources(options.sources),
        where(site),
        journey{.world = w,
                .target_word = options.halves == Halves::apart ? Journey::apart_word : Journey::source_word,
                .only_targets_move = accumulates(plan.kind),
                .buffers = options.sources == Sources::snapshot ? 2 : 1} {
    for (const auto& arrays : slots) {
      first_card.push_back(cards_per_rank);
      cards_per_rank += arrays.size();
    }
  }
  ~State() { withdraw(); }
  /// After this no peer touches this rank's memory any more, and none waits for it for ever; nor does this rank, which
  /// may still be in move_on() (kept()).
  void withdraw() {
    if (!process.is_here()) return;  // the messages are the parent's
    leave_list();
    const Leaving why = world.is_failing_since(exceptions_before) ? Leaving::failing : Leaving::done;
    leave(receiving, receives, why);
    leave(sending, sends, why);
    if (record) (void)tried([&] { end_record({"", 0}, "ended in flight"); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Rank rank() const { return world.rank(); }
  bool is_snapshot() const { return sources == Sources::snapshot; }
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
      check_slots(plan, slots, world.size(), sources);
      if (is_snapshot()) check_snapshot();
      if (journey.are_apart() && plan.kind != PlanKind::redistribution)
        throw_error(ErrorCode::invalid_use, "a plan of kind {} runs as a whole, not in halves (rank {})",
                    name_of(plan.kind), rank());
      list_messages();
    }));
    check_layouts(world, votes, plan, slots, where);
    Index words_per_rank = Journey::first_message_word, received = 0, sent = 0;
    for (const Vote& vote : votes) {
      traffic = checked_add(traffic, vote.bytes);
      words_per_rank = std::max(words_per_rank, Journey::first_message_word + journey.buffers * vote.receives);
      received += vote.receives;
      sent += vote.sends;
    }
    way = copy_method(traffic);
    way.long_rows = LongRows::vectors;  // what is read was mostly written by a peer, and is in its cache
    journey.words = world.shared_flags(int(words_per_rank), "exchange", where);
    if (std::any_of(votes.begin(), votes.end(), [](const Vote& vote) { return vote.posts(); })) {
      all_cards.resize(cards_per_rank * std::size_t(world.size()));
      world.all_gather(cards.data(), cards.size_bytes(), all_cards.data(), where);
      make_posts(votes);
    }
    const std::vector<Vote> lowered = agree(tried([&] {
      find_cards(votes);
      open_words(votes);
      lower();
      open_inbox();
    }));
    const auto has_staged = [](const Vote& vote) { return vote.has_staged; };
    if (journey.posts || std::any_of(lowered.begin(), lowered.end(), has_staged))
      agree(tried([&] {
        if (journey.posts) {
          open_posts();
          choose_couriers(true);
        }
        find_inboxes(votes);
        bind_staged();
      }));
    // Every send has found its arrival, so equal numbers say that every arrival has its send.
    if (received != sent)
      throw_error(ErrorCode::mismatch, "the plans of all ranks together receive {} and send {} (rank {})",
                  amount(received, "message"), sent, rank());
  }

  void check_snapshot() const {
    if (accumulates(plan.kind))
      throw_error(ErrorCode::unsupported, "a plan of kind {} adds to cells, so it takes no snapshot (rank {})",
                  name_of(plan.kind), rank());
    if (journey.are_apart())
      throw_error(ErrorCode::invalid_use, "an exchange in halves takes no snapshot (rank {})", rank());
    if (schedule == Schedule::direct)
      throw_error(ErrorCode::invalid_use, "what is sent from a snapshot is staged, not direct (rank {})", rank());
  }

  std::vector<Vote> agree(const Result<void>& so_far) {
    const Vote mine{.code = so_far.ok() ? 0 : int(so_far.error().code()),
                    .kind = plan.kind,
                    .schedule = schedule,
                    .sources = sources,
                    .arrays = int(cards_per_rank),
                    .layouts = fingerprint_of(plan, slots),
                    .records = fingerprint_of_records(slots),
                    .receives = Index(receives.size()),
                    .sends = Index(sends.size()),
                    .bytes = bytes_in,
                    .arrivals = arrivals.data(),
                    .cards = cards.data(),
                    .has_staged = any_message(true),
                    .posted_receives = std::count_if(receives.begin(), receives.end(), is_posted),
                    .posted_sends = std::count_if(sends.begin(), sends.end(), is_posted),
                    .inbox_lines = posted_lines()};
    return tranship::agree(world, mine, so_far, where);
  }

  static bool is_posted(const Message& m) { return m.is_posted; }
  Index posted_lines() const {
    Index lines = 0;
    for (const Message& m : receives)
      if (m.is_posted) lines = checked_add(lines, journey.buffers * lines_of(m.bytes));
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
      if (peer < rank()) first_taken = receives.size();
    }
    for (auto& [peer, message] : out) {
      sends.push_back(std::move(message));
      sends.back().target = sends.back().peer = peer;
      sends.back().source = rank();
    }
    // Where transfers take their time all that is moved must be transfers: the peer is messaged, or simulated.
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) m.is_posted = !world.context().reaches(m.peer);
    cards_memory = local_memory(cards_per_rank * sizeof(ArrayCard));
    cards = {static_cast<ArrayCard*>(cards_memory.get()), cards_per_rank};
    own.cards = cards.data();
    fill_cards();
  }
  void fill_cards() {
    std::size_t i = 0;
    for (const auto& arrays : slots)
      for (const ExchangeArray& array : arrays)
        cards[i++] = {layout_of(array.view), static_cast<std::byte*>(array.view.data),
                      !array.view.data || world.is_exposed(array.view.data)};
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
        m.cards = m.is_posted ? &all_cards[std::size_t(m.peer) * cards_per_rank]
                              : static_cast<const ArrayCard*>(reached(m.peer, votes[std::size_t(m.peer)].cards));
        m.is_exposed = !m.is_posted && is_exposed(m.cards);
        if (!is_snapshot()) continue;
        m.cards_kept.assign(m.cards, m.cards + cards_per_rank);
        m.cards = m.cards_kept.data();
      }
  }

  /// Collective.
  void make_posts(const std::vector<Vote>& votes) {
    Index lines = 0, sends_max = 0;
    journey.posts.emplace();
    for (const Vote& vote : votes) {
      journey.posts->receives_max = std::max(journey.posts->receives_max, vote.posted_receives);
      sends_max = std::max(sends_max, vote.posted_sends);
      lines = std::max(lines, vote.inbox_lines);
    }
    journey.posts->inbox = world.allocate<Line>(lines, where);
    journey.posts->incoming = world.allocate<Posts::Card>(journey.posts->receives_max, where);
    journey.posts->outgoing = world.allocate<Posts::Card>(sends_max, where);
    journey.posts->signals =
        world.allocate<std::uint64_t>((journey.posts->receives_max + sends_max) * Posts::words_per_signal, where);
    Index line = 0, number = 0;
    for (Message& m : receives) {
      if (!m.is_posted) continue;
      m.signal_here = number++;
      m.inbox_line = line;
      journey.posts->incoming[m.signal_here] = {m.peer, m.bytes, line};
      line += journey.buffers * lines_of(m.bytes);
    }
    number = 0;
    for (Message& m : sends) {
      if (!m.is_posted) continue;
      m.signal_here = journey.posts->receives_max + number;
      journey.posts->outgoing[number++] = {m.peer, m.bytes, 0};
    }
    world.barrier(where);
  }

  /// Finds every posted message in the list of its peer.
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
    for (Message& m : receives)
      if (m.is_posted) m.signal_there = journey.posts->receives_max + find(m, journey.posts->outgoing).first;
    Index lines = 0;
    for (Message& m : sends) {
      if (!m.is_posted) continue;
      std::tie(m.signal_there, m.inbox_line) = find(m, journey.posts->incoming);
      m.outbox_line = lines;
      lines += lines_of(m.bytes);
    }
    journey.outbox_lines.resize(std::size_t(lines));
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

  /// Finds the words of every message that is not posted.
  void open_words(const std::vector<Vote>& votes) {
    const auto open = [&](Message& m, std::ptrdiff_t number) {
      for (int buffer = 0; buffer < journey.buffers; ++buffer)
        m.words[buffer] =
            &journey.words.at(m.target, Journey::first_message_word + int(number) * journey.buffers + buffer);
    };
    for (std::size_t i = 0; i < receives.size(); ++i)
      if (!receives[i].is_posted) open(receives[i], std::ptrdiff_t(i));
    for (Message& m : sends) {
      if (m.is_posted) continue;
      const auto* list = static_cast<const Arrival*>(reached(m.peer, votes[std::size_t(m.peer)].arrivals));
      open(m, arrival_of(m, votes) - list);
    }
  }

  /// Finds the buffer of every message that is sent and staged: at its receiver, or here where it is posted.
  void find_inboxes(const std::vector<Vote>& votes) {
    outbox.resize(sends.size());
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const Message& m = sends[i];
      if (m.is_posted) {
        outbox[i] = journey.outbox_lines[std::size_t(m.outbox_line)].bytes;
        continue;
      }
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
  /// One of this rank's arrays, or of those of a message's peer.
  const ArrayCard& card(const Message& m, Rank r, int slot, int array) const {
    const ArrayCard* all = r == rank() ? cards.data() : m.cards;
    return all[first_card[std::size_t(slot)] + std::size_t(array)];
  }
  const SlotLayout& layout(const Message& m, Rank r, int slot, int array) const {
    return card(m, r, slot, array).layout;
  }
  bool is_exposed(const ArrayCard* all) const {
    return std::all_of(all, all + cards_per_rank, [](const ArrayCard& card) { return card.is_exposed; });
  }

  using Moves = std::vector<LoweredMove>;

  /// The moves of one message, strand by strand: one list for all arrays of a strand where they lie alike, else one for
  /// each of them.
  using Lowering = std::vector<std::vector<Moves>>;

  void lower_one(const auto& t, int from, int to, const Message& m, Lowering& lowering) const {
    const auto at = std::lower_bound(m.strands.begin(), m.strands.end(), strand_of(from, to));
    lowering.resize(m.strands.size());
    std::vector<Moves>& lists = lowering[std::size_t(at - m.strands.begin())];
    if (lists.empty()) lists.resize(lie_alike(*at, m, from, to) ? 1 : std::size_t(at->arrays));
    for (int k = 0; k < int(lists.size()); ++k)
      append_moves(t, type_of(to), layout(m, m.source, from, k), layout(m, m.target, to, k), lists[std::size_t(k)]);
  }
  bool lie_alike(const Strand& strand, const Message& m, int from, int to) const {
    bool alike = true;
    for (int k = 1; k < strand.arrays; ++k)
      alike &= layout(m, m.source, from, k) == layout(m, m.source, from, 0) &&
               layout(m, m.target, to, k) == layout(m, m.target, to, 0);
    return alike;
  }
  static void append_moves(const Transfer& t, auto&&... how) { lower_transfer(t, how...); }
  static void append_moves(const IndexedTransfer& t, auto&&... how) { lower_indexed(t, how...); }

  /// All moves, and of each message whether it is staged. Both ends of a message see the same rows and decide alike.
  void lower() {
    Lowering own_moves;
    std::vector<Lowering> received(receives.size()), sent(sends.size());
    for_each_receive([&](const auto& t, int from, int to) {
      if (t.peer == rank()) return lower_one(t, from, to, own, own_moves);
      const std::size_t i = index_of(receives, t.peer);
      lower_one(t, from, to, receives[i], received[i]);
    });
    for_each_send([&](const auto& t, int from, int to) {
      const std::size_t i = index_of(sends, t.peer);
      lower_one(t, from, to, sends[i], sent[i]);
    });
    const bool exposes = is_exposed(cards.data());
    const auto stages = [&](const Message& m, const Lowering& direct) {
      return is_snapshot() || !exposes || !m.is_exposed || is_staged(schedule, runs_of(m, direct));
    };
    if (is_snapshot()) own_packing = moves_of(own, Lowering(own_moves), Hop::pack);
    own.moves = moves_of(own, std::move(own_moves), is_snapshot() ? Hop::unpack : Hop::direct);
    for (std::size_t i = 0; i < receives.size(); ++i) {
      receives[i].staged = stages(receives[i], received[i]);
      set_moves(receives[i], std::move(received[i]), receives[i].staged ? Hop::unpack : Hop::direct);
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      sends[i].staged = stages(sends[i], sent[i]);
      set_moves(sends[i], std::move(sent[i]), sends[i].staged ? Hop::pack : Hop::direct);
    }
    choose_couriers(false);
    fills_before = lowered(plan.fills_before, Hop::direct);
    if (is_snapshot()) {
      const FillsBySource fills = fills_by_source(plan);
      fills_packing = lowered(fills.of_kept, Hop::pack);
      fills_unpacking = lowered(fills.of_kept, Hop::unpack);
      fills_after = lowered(fills.of_written, Hop::direct);
      own_lines.resize(std::size_t(lines_of(own.bytes) + lines_of(fills_packing.bytes())));
    } else {
      fills_after = lowered(plan.fills_after, Hop::direct);
    }
    bind_within();
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages)
        if (!m.staged) bind(m.moves, m, nullptr);
  }
  /// What this rank moves alone.
  void bind_within() {
    std::byte* const staging = own_lines.empty() ? nullptr : own_lines.front().bytes;
    for (MoveBundle* moves : {&own.moves, &own_packing}) bind(*moves, own, staging);
    std::byte* const of_fills = staging ? staging + lines_of(own.bytes) * sizeof(Line) : nullptr;
    for (MoveBundle* moves : {&fills_before, &fills_after, &fills_packing, &fills_unpacking})
      bind(*moves, own, of_fills);
  }
  /// From here on a rank that leaves says so to its peers.
  void choose_couriers(bool of_posted) {
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages)
        if (m.is_posted == of_posted)
          m.courier = &(m.is_posted ? posting_courier() : m.staged ? mailing_courier() : claiming_courier());
  }
  /// A fill may copy what an earlier one has filled.
  MoveBundle lowered(const std::vector<LocalFill>& fills, Hop hop) const {
    MoveBundle out(MoveOrder::given, way);
    Index staging_bytes = 0;
    for (std::size_t i = 0; i < fills.size();) {
      const int slot = fills[i].slot, arrays = arrays_of(slot);
      const std::size_t first = i;
      while (i < fills.size() && fills[i].slot == slot) ++i;
      const std::span same_slot(fills.data() + first, i - first);
      const bool alike = lie_alike({.arrays = arrays}, own, slot, slot);
      for (int k = 0; k < (alike ? 1 : arrays); ++k) {
        Moves moves;
        for (const LocalFill& fill : same_slot) lower_fill(fill, type_of(slot), layout(own, rank(), slot, k), moves);
        const int count = alike ? arrays : 1;
        const Index each = route(moves, hop, staging_bytes) - staging_bytes;
        out.add(std::move(moves), {.first = k, .count = count, .staging_pitch_bytes = each});
        staging_bytes += count * each;
      }
    }
    return out;
  }
  /// The buffers for what arrives staged.
  void open_inbox() {
    Index lines = 0;
    for (const Message& m : receives)
      if (m.staged && !m.is_posted) lines = checked_add(lines, journey.buffers * lines_of(m.bytes));
    inbox = local_memory(std::size_t(lines) * sizeof(Line));
    Line* next = static_cast<Line*>(inbox.get());
    for (std::size_t i = 0; i < receives.size(); ++i) {
      const Message& m = receives[i];
      if (m.is_posted) {
        arrivals[i].staging = journey.posts->inbox.local()[m.inbox_line].bytes;
      } else if (m.staged) {
        arrivals[i].staging = next->bytes;
        next += journey.buffers * lines_of(m.bytes);
      }
    }
  }

  /// Staged messages go by way of their buffers, which lie at their receivers.
  void bind_staged() {
    for (std::size_t i = 0; i < receives.size(); ++i) bind_staged(receives[i], arrivals[i].staging, false);
    for (std::size_t i = 0; i < sends.size(); ++i) bind_staged(sends[i], outbox[i], sends[i].is_posted);
  }
  /// The second buffer follows the first one; an outbox has one.
  void bind_staged(Message& m, std::byte* staging, bool is_outbox) {
    if (!m.staged) return;
    bind(m.moves, m, staging);
    if (!m.packing.empty()) {
      bind(m.packing, m, journey.packed_lines.front().bytes);
      m.inbox = staging;
    }
    if (journey.buffers > 1) bind(m.other_moves, m, is_outbox ? staging : staging + lines_of(m.bytes) * sizeof(Line));
  }

  /// Moves these arrays from here on.
  void bind(std::span<const StridedView> views) {
    if (!is_snapshot())
      throw_error(
          ErrorCode::invalid_use,
          "peers read and write the arrays of an exchange, unless it takes a snapshot: they stay where they were "
          "(rank {})",
          rank());
    check_not_in_flight();
    if (views.size() != cards_per_rank)
      throw_error(ErrorCode::invalid_use, "{} for an exchange of {} (rank {})", amount(views.size(), "array"),
                  cards_per_rank, rank());
    const auto swap_views = [&](std::vector<StridedView>& with) {
      std::size_t i = 0;
      for (auto& arrays : slots)
        for (ExchangeArray& array : arrays) std::swap(array.view, with[i++]);
    };
    std::vector<StridedView> before(views.begin(), views.end());
    swap_views(before);
    bool is_alike = true;
    try {
      check_arrays(plan, slots);
      std::size_t i = 0;
      for (const auto& arrays : slots)
        for (const ExchangeArray& array : arrays) {
          const SlotLayout layout = layout_of(array.view);
          const SlotLayout& known = cards[i++].layout;
          is_alike &= layout == known;
          if (layout.parts_together != known.parts_together)
            throw_error(ErrorCode::mismatch, "the complex numbers of {} are {} parts, and were {} parts (rank {})",
                        array.name, layout.parts_together ? "together with their" : "apart from their",
                        known.parts_together ? "together with their" : "apart from their", rank());
        }
    } catch (...) {
      swap_views(before);
      throw;
    }
    fill_cards();
    if (is_alike)
      bind_within();
    else
      lower();
    bind_staged();
  }

  MoveOrder order() const { return accumulates(plan.kind) ? MoveOrder::given : MoveOrder::any; }
  ContiguousRuns runs_of(const Message& m, const Lowering& lowering) const {
    ContiguousRuns out;
    for (std::size_t s = 0; s < lowering.size(); ++s) {
      const Index arrays = lowering[s].size() == 1 ? m.strands[s].arrays : 1;
      for (const Moves& moves : lowering[s])
        for (const LoweredMove& move : moves)
          if (const Index bytes = move.bytes(); bytes > 0) {
            out.bytes += arrays * bytes;
            out.count += arrays * (bytes / run_bytes(move));
          }
    }
    return out;
  }
  void set_moves(Message& m, Lowering lowering, Hop hop) {
    m.moves = moves_of(m, std::move(lowering), hop);
    if (journey.buffers > 1) m.other_moves = m.moves;
    if (hop != Hop::pack || !is_packed_first(m)) return;
    m.packing = m.moves;
    journey.packed_lines.resize(std::max(journey.packed_lines.size(), std::size_t(lines_of(m.bytes))));
  }
  /// Whether a message that is sent staged is packed into this rank's own memory and then written to the peer's in long
  /// stores: where that is long enough, and fits into the caches of this rank's core meanwhile.
  static bool is_packed_first(const Message& m) {
    return !m.is_posted && is_long_put(m.bytes) && m.bytes <= private_cache_bytes();
  }
  MoveBundle moves_of(const Message& m, Lowering lowering, Hop hop) const {
    MoveBundle out(order(), way);
    Index staging_bytes = 0;
    for (std::size_t s = 0; s < lowering.size(); ++s) {
      const Strand& strand = m.strands[s];
      for (std::size_t k = 0; k < lowering[s].size(); ++k) {
        Moves& moves = lowering[s][k];
        route(moves, hop, staging_bytes + Index(k) * strand.bytes);
        const bool all = lowering[s].size() == 1;
        out.add(std::move(moves),
                {.first = int(k), .count = all ? strand.arrays : 1, .staging_pitch_bytes = strand.bytes});
      }
      staging_bytes += strand.arrays * strand.bytes;
    }
    return out;
  }
  /// Says where the arrays of a message lie, and its staging buffer if it has one.
  void bind(MoveBundle& moves, const Message& m, std::byte* staging) const {
    moves.bind([&](MoveSide side, int slot, int array) {
      if (slot == staging_slot) return staging;
      const Rank r = side == MoveSide::source ? m.source : m.target;
      std::byte* const data = card(m, r, slot, array).data;
      return r == rank() ? data : static_cast<std::byte*>(reached(r, data));
    });
  }
  static std::size_t index_of(const std::vector<Message>& messages, Rank peer) {
    const auto at =
        std::lower_bound(messages.begin(), messages.end(), peer, [](const Message& m, Rank r) { return m.peer < r; });
    return std::size_t(at - messages.begin());
  }

  // Running.

  bool in_flight(Side side) const {
    return (sends_of(side) && sending.in_flight) || (receives_of(side) && receiving.in_flight);
  }
  static bool sends_of(Side side) { return side != Side::receives; }
  static bool receives_of(Side side) { return side != Side::sends; }

  void check_not_in_flight(Side side = Side::both) const {
    if (!in_flight(side)) return;
    const std::uint64_t epoch = sends_of(side) && sending.in_flight ? sending.epoch : receiving.epoch;
    throw_error(ErrorCode::invalid_use, "exchange {} is in flight: finish it before starting {} (rank {})", epoch,
                epoch + 1, rank());
  }

  void start(Side side) {
    check_not_in_flight(side);
    if ((sends_of(side) && sending.has_left) || (receives_of(side) && receiving.has_left))
      throw_error(ErrorCode::invalid_use, "rank {} has left this side of the exchange", rank());
    if (is_snapshot())
      for (const auto& arrays : slots)
        for (const ExchangeArray& array : arrays) check_has_memory(array, rank());
    if (side != Side::both && !journey.are_apart())
      throw_error(ErrorCode::invalid_use, "an exchange that was not made with Halves::apart is started as a whole");
    vain_looks = 0;
    if (sends_of(side)) begin(sending, sends);
    if (receives_of(side)) begin(receiving, receives);
    if (ExchangeLog::is_open() && !journey.are_apart()) begin_record();
    if (receives_of(side)) fills_before.run();
    if (sends_of(side)) enter_epoch(journey.words.at(rank(), Journey::source_word), sending.epoch);
    if (receives_of(side) && journey.are_apart())
      enter_epoch(journey.words.at(rank(), journey.target_word), receiving.epoch);
    world.has_acted();
    if (is_snapshot())
      take_snapshot();
    else
      progress();
    stay_under_way();
    if (record) record->started_ns = now_ns();
  }
  static void begin(Half& half, std::vector<Message>& messages) {
    ++half.epoch;
    half.in_flight = true;
    for (Message& m : messages) {
      m.done = false;
      m.epoch = half.epoch;
    }
  }

  /// Packs all that this rank sends, and touches no target. A buffer of every message is free, for the last finish()
  /// has seen that the target had read it.
  void take_snapshot() {
    own_packing.run();
    fills_packing.run();
    receiving.is_done = false;
    send_all();
  }
  bool send_all() {
    bool all_sent = true;
    for (Message& m : sends) all_sent &= m.done || advance(sending, m, m.courier->send(journey, m));
    return sending.is_done = all_sent;
  }
  /// Whether all that a snapshot waits for is here, of which nothing has been moved yet.
  bool is_all_here() {
    bool all = send_all();
    for (const Message& m : receives) {
      if (m.done) continue;
      const Passage seen = m.courier->look(journey, m);
      all &= seen == Passage::done;
      if (seen != Passage::waiting && seen != Passage::done) lose(receiving, m, seen);
    }
    return all;
  }

  // While the rank waits for something else, or polls.

  bool all_messages_done() const { return sending.is_done && receiving.is_done; }
  void stay_under_way() {
    if (all_messages_done())
      leave_list();
    else
      world.under_way().join(*this);
  }
  void leave_list() noexcept { UnderWay::Item::leave(); }
  std::shared_ptr<void> kept() override { return weak_from_this().lock(); }
  void move_on(Meanwhile meanwhile) override {
    journey.has_time = meanwhile == Meanwhile::waits;
    struct Over {
      bool& has_time;
      ~Over() { has_time = false; }
    } over{journey.has_time};
    advance();
  }
  /// Targets of a snapshot are written by those calls alone that say so.
  void advance() {
    if (!is_snapshot())
      progress();
    else if (sending.in_flight)
      send_all();
    if (all_messages_done()) leave_list();
  }

  /// Moves what can be moved now. What others cannot do comes first; then this rank takes what it wants, which leaves
  /// it in the caches that want it; it copies for others once it has looked in vain for a while.
  void progress() {
    bool all_sent = true;
    receiving.is_done = true;
    if (sending.in_flight)
      for (Message& m : sends)
        if (m.staged) all_sent &= m.done || advance(sending, m, m.courier->send(journey, m));
    if (journey.only_targets_move) {
      if (receiving.in_flight) receiving.is_done = take_in_order();
    } else {
      move_own();  // which needs no peer, while others arrive
      if (receiving.in_flight) receiving.is_done = take_all();
    }
    if (receiving.is_done) {
      vain_looks = std::min(vain_looks + 1, patience);
      if (!receiving.has_left) tell_taken();
    }
    journey.copies_for_peers = journey.are_apart() || vain_looks == patience;
    if (sending.in_flight)
      for (Message& m : sends)
        if (!m.staged) all_sent &= m.done || advance(sending, m, m.courier->send(journey, m));
    sending.is_done = all_sent;
    if (has_left_own()) {
      lose_own(sending);
      lose_own(receiving);
    }
  }
  void tell_taken() {
    if (receives.empty() || taken == receiving.epoch) return;
    taken = receiving.epoch;
    journey.words.at(rank(), Journey::taken_word).store_release(taken);
  }
  /// Each rank begins behind itself, so that not all of them read from one.
  bool take_all() {
    const std::size_t count = receives.size();
    bool all = true;
    for (std::size_t i = 0; i < count; ++i) {
      Message& m = receives[first_taken + i < count ? first_taken + i : first_taken + i - count];
      all &= m.done || advance(receiving, m, m.courier->take(journey, m));
    }
    return all;
  }
  /// Sums are made in one order, whichever part comes first: that of the sources, this rank in its place among them.
  bool take_in_order() {
    for (Message& m : receives) {
      if (m.source > rank()) move_own();
      if (!m.done && !advance(receiving, m, m.courier->take(journey, m))) return false;
    }
    move_own();
    return true;
  }
  bool is_done(Side side) const {
    return (!sends_of(side) || is_done(sending)) && (!receives_of(side) || is_done(receiving));
  }
  bool is_done(const Half& half) const {
    return half.is_done && (own.bytes == 0 || own.epoch >= half.epoch || !half.in_flight);
  }

  /// When this rank is in one epoch with what it sends and with what it receives.
  void move_own() {
    const std::uint64_t both = std::min(sending.epoch, receiving.epoch);
    if (own.epoch >= both || has_left_own()) return;
    own.epoch = both;
    own.moves.run();
  }

  /// Whether the message is done.
  bool advance(Half& half, Message& m, Passage passage) {
    if (passage == Passage::waiting) return false;
    if (passage != Passage::done) {
      lose(half, m, passage);
      return false;
    }
    world.has_acted();
    if (record) m.done_ns = now_ns();
    return m.done = true;
  }

  bool has_left_own() const { return sending.has_left || receiving.has_left; }
  /// A message to itself never comes when this rank has left one side.
  void lose_own(Half& half) {
    if (half.in_flight && own.bytes > 0 && own.epoch < half.epoch) lose(half, own, Passage::left);
  }

  /// A peer has left before this message was done. One that fails leaves while it unwinds, and its reason is known a
  /// moment later: a rank that waits is told that, if it comes before the deadline.
  void lose(Half& half, const Message& m, Passage passage) {
    if (half.lost) return;
    half.lost = &m;
    half.peer_fails = passage == Passage::left_failing;
    half.reason_due = half.peer_fails ? world.deadline() : Deadline::after_ns(0);
  }
  void check_lost(Side side) {
    if (sends_of(side)) check_lost(sending);
    if (receives_of(side)) check_lost(receiving);
  }
  void check_lost(Half& half) const {
    const Message* lost = half.lost;
    if (!lost) return;
    world.check_failed();
    if (!half.reason_due.passed()) return;
    Error error = make_error(ErrorCode::peer_lost,
                             "rank {} has left the exchange before its message {} -> {} of epoch {} was done (rank {})",
                             lost->peer, lost->source, lost->target, half.epoch, rank());
    error.rank = rank();
    error.peer = lost->peer;
    half.peer_has_ended = !half.peer_fails && (&half == &sending || !was_started(*lost));
    throw error;
  }
  /// True when the source of a message that is lost had started the epoch: a frame of it is lost, too.
  bool was_started(const Message& m) const {
    return (&m == &own ? sending.epoch : journey.words.load(m.source, Journey::source_word)) >= receiving.epoch;
  }

  /// After this no peer touches this rank's memory for what it sends or receives, and none waits for it for ever.
  void leave(Half& half, std::vector<Message>& messages, Leaving why) {
    if (half.has_left) return;
    half.has_left = true;
    half.in_flight = false;
    half.is_done = true;
    for (Message& m : messages) {
      if (m.courier) m.courier->leave(journey, m, why);
      m.done = true;
    }
  }
  void leave(Side side) {
    if (sends_of(side)) leave(sending, sends, Leaving::done);
    if (receives_of(side)) leave(receiving, receives, Leaving::done);
    advance();
  }

  bool test(Side side, CallSite site) {
    if (!in_flight(side)) return true;
    return recorded(site, [&] {
      const bool may_move = !is_snapshot() || is_all_here();
      if (may_move) progress();
      if (!may_move || !is_done(side)) {
        check_lost(side);
        world.under_way().move_one(Meanwhile::polls, *this);
        poll(side, site);
        return false;
      }
      end_epoch(side);
      return true;
    });
  }

  /// After a test that is not done, so that a loop over them ends as a wait does. What is posted is polled by the
  /// context that posts it.
  void poll(Side side, CallSite site) {
    for (const auto* messages : {&receives, &sends})
      for (const Message& m : *messages)
        if (m.is_posted && !m.done) {
          (void)world.context().signal_fetch(journey.posts->signal(m.signal_here), site);
          return;
        }
    // A test looks at some words of every message, and each of them counts as a poll does.
    constexpr int words_per_message = 4;
    polls_left -= words_per_message * std::max(1, static_cast<int>(receives.size() + sends.size()));
    if (polls_left > 0) return;
    WaitNote note("exchange", WaitNote::anyone, site);
    name_missing(side, note);
    // Exchanges that are tested in turn are told apart by where their words lie.
    note.flag_index =
        reinterpret_cast<const std::byte*>(&journey.words.at(rank(), Journey::source_word)) - world.heap().place().own;
    polls_left = world.look_at_flags(note);
  }

  void finish(Side side, CallSite site) {
    if (!in_flight(side)) return;
    if (record) record->finishing_ns = now_ns();
    recorded(site, [&] {
      WaitNote note("exchange", WaitNote::anyone, site);
      Waiting waiting(*this, side);
      world.wait_until(
          [&] {
            progress();
            if (is_done(side)) return true;
            waiting.tell();
            check_lost(side);
            name_missing(side, note);
            return false;
          },
          note);
      end_epoch(side);
      return true;
    });
  }

  /// While this rank waits, its peers may leave to it what it can copy. It moves the exchange itself.
  class Waiting {
   public:
    Waiting(State& state, Side side) : state_(state), side_(side) {
      state.journey.has_time = true;
      state.leave_list();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() {
      state_.journey.has_time = false;
      state_.stay_under_way();
      // What is done is of no epoch to come.
      if (has_told_ && state_.in_flight(side_)) tell(0, 0);
    }
    void tell() {
      if (has_told_ || !state_.journey.are_apart()) return;
      has_told_ = true;
      tell(state_.sending.epoch, state_.receiving.epoch);
    }

   private:
    void tell(std::uint64_t sending, std::uint64_t receiving) const {
      if (sends_of(side_)) word(Journey::source_waits_word).store_release(sending);
      if (receives_of(side_)) word(Journey::target_waits_word).store_release(receiving);
    }
    RealSync::Word& word(int index) const { return state_.journey.words.at(state_.rank(), index); }

    State& state_;
    const Side side_;
    bool has_told_ = false;
  };

  void end_epoch(Side side) {
    if (receives_of(side) && receiving.in_flight) {
      fills_unpacking.run();
      fills_after.run();
      receiving.in_flight = false;
    }
    if (sends_of(side)) sending.in_flight = false;
    if (all_messages_done()) leave_list();
  }

  // Recording.

  void begin_record() {
    record.emplace(LoggedExchange{.rank = world.launched_rank(rank()),
                                  .kind = plan.kind,
                                  .arrays = array_names(),
                                  .epoch = sending.epoch,
                                  .made = where,
                                  .begin_ns = now_ns()});
    for (auto* messages : {&receives, &sends})
      for (Message& m : *messages) m.done_ns = 0;
  }
  /// The first few: "u, v, t".
  std::string array_names() const {
    constexpr int names_max = 4;
    std::string out;
    int count = 0;
    for (const auto& arrays : slots)
      for (const ExchangeArray& array : arrays) {
        if (count < names_max) out += (count > 0 ? ", " : "") + (array.label.empty() ? array.name : array.label);
        ++count;
      }
    return count > names_max ? fmt::format("{}, and {} more", out, count - names_max) : out;
  }
  /// What `run` leaves done, or fails with, ends the record.
  template <class Run>
  bool recorded(CallSite site, Run&& run) {
    if (!record) return run();
    try {
      const bool done = run();
      if (done) end_record(site, {});
      return done;
    } catch (const std::exception& error) {
      end_record(site, error.what());
      throw;
    } catch (...) {
      end_record(site, "interrupted");
      throw;
    }
  }
  void end_record(CallSite site, std::string failure) {
    LoggedExchange ended = *std::exchange(record, std::nullopt);
    ended.finished = site;
    ended.end_ns = now_ns();
    ended.failure = std::move(failure);
    ended.own_bytes = own.bytes;
    for (const auto* messages : {&receives, &sends})
      for (const Message& m : *messages)
        ended.messages.push_back({.source = world.launched_rank(m.source),
                                  .target = world.launched_rank(m.target),
                                  .bytes = m.bytes,
                                  .way = way_of(m),
                                  .done_ns = m.done_ns});
    ExchangeLog::add(std::move(ended));
  }

  /// Names one rank that is missing.
  void name_missing(Side side, WaitNote& note) const {
    if (receives_of(side) && name_missing(receives, Journey::source_word, note)) return;
    if (sends_of(side) && name_missing(sends, journey.target_word, note)) return;
    if (own.bytes == 0 || !journey.are_apart()) return;
    note.raised_by = note.flag_rank = rank();
    note.flag_index = receives_of(side) ? Journey::source_word : journey.target_word;
    note.wanted = own.epoch + 1;
    note.seen = own.epoch;
  }
  bool name_missing(const std::vector<Message>& messages, int word, WaitNote& note) const {
    for (const Message& m : messages) {
      if (m.done) continue;
      note.raised_by = note.flag_rank = m.peer;
      note.flag_index = word;
      note.wanted = m.epoch;
      note.seen = m.courier->epoch_of_peer(journey, m);
      return true;
    }
    return false;
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
    if (!accumulates(plan.kind) && options.sources == Sources::in_place)
      for (const Schedule schedule : schedules_to_measure()) {
        const auto candidate =
            std::make_shared<State>(world, plan, slots, ExchangeOptions{.schedule = schedule}, where);
        candidate->set_up();
        measured.push_back({schedule, time_ns(world, where, [&] {
                              candidate->start(Side::both);
                              candidate->finish(Side::both, where);
                            })});
      }
    const auto faster = [](const Measured& a, const Measured& b) { return a.ns < b.ns; };
    if (!measured.empty()) options.schedule = std::min_element(measured.begin(), measured.end(), faster)->schedule;
  }
  state_ = std::make_shared<State>(world, std::move(plan), std::move(slots), options, where);
  state_->set_up();
  state_->measured = std::move(measured);
}

Exchange::~Exchange() {
  if (state_) state_->withdraw();
}
Exchange::Exchange(Exchange&&) noexcept = default;

void Exchange::bind(std::span<const StridedView> arrays) {
  state_->bind(arrays);
}
void Exchange::start() {
  state_->process.check(state_->rank());
  state_->start(Side::both);
}
bool Exchange::test(CallSite where) {
  state_->process.check(state_->rank());
  return state_->test(Side::both, where);
}
void Exchange::finish(CallSite where) {
  state_->process.check(state_->rank());
  state_->finish(Side::both, where);
}
void Exchange::start(Side side) {
  state_->process.check(state_->rank());
  state_->start(side);
}
bool Exchange::test(Side side, CallSite where) {
  state_->process.check(state_->rank());
  return state_->test(side, where);
}
void Exchange::finish(Side side, CallSite where) {
  state_->process.check(state_->rank());
  state_->finish(side, where);
}
void Exchange::leave(Side side) {
  state_->process.check(state_->rank());
  state_->leave(side);
}
void Exchange::advance() {
  state_->process.check(state_->rank());
  state_->advance();
}
Schedule Exchange::schedule() const noexcept {
  if (!state_->any_message(true)) return Schedule::direct;
  return state_->any_message(false) ? Schedule::automatic : Schedule::staged;
}
const TransferPlan& Exchange::plan() const noexcept {
  return state_->plan;
}

bool Exchange::peer_has_ended(Side side) const noexcept {
  const State& s = *state_;
  return (s.sends_of(side) && s.sending.peer_has_ended) || (s.receives_of(side) && s.receiving.peer_has_ended);
}
std::string Exchange::explain() const {
  const State& s = *state_;
  return tranship::explain({.asked = s.schedule,
                            .sources = s.sources,
                            .measured = s.measured,
                            .receives = s.receives,
                            .sends = s.sends,
                            .own = s.own,
                            .way = s.way,
                            .traffic_bytes = s.traffic});
}

}  // namespace tranship
