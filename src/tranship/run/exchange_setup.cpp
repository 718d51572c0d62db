#include "tranship/run/exchange_setup.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/run/exchange_lowering.hpp>
#include <tranship/run/exchange_posts.hpp>

namespace tranship {
namespace {

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

ExchangeSetup::ExchangeSetup(World& world, TransferPlan plan, ExchangeSlots slots, ExchangeOptions options,
                             CallSite where)
    : terms_{.world = world, .plan = std::move(plan), .slots = std::move(slots), .options = options, .where = where},
      messages_(terms_) {}

void ExchangeSetup::run() {
  World& world = terms_.world;
  ExchangeLinks& links = messages_.links;
  const std::vector<Vote> votes = agree(tried([&] {
    check_terms();
    messages_.list(terms_);
  }));
  check_layouts(world, votes, terms_.plan, terms_.slots, terms_.where);
  Index words_per_rank = ExchangeLinks::first_message_word, received = 0, sent = 0;
  for (const Vote& vote : votes) {
    messages_.traffic = checked_add(messages_.traffic, vote.bytes);
    words_per_rank = std::max(words_per_rank, ExchangeLinks::first_message_word + links.buffers * vote.receives);
    received += vote.receives;
    sent += vote.sends;
  }
  messages_.way = copy_method(messages_.traffic);
  messages_.way.long_rows = LongRows::vectors;  // what is read was mostly written by a peer, and is in its cache
  links.words = world.shared_flags(int(words_per_rank), "exchange", terms_.where);
  if (std::any_of(votes.begin(), votes.end(), [](const Vote& vote) { return vote.posts(); })) {
    messages_.all_cards.resize(messages_.cards.size() * std::size_t(world.size()));
    world.all_gather(messages_.cards.data(), messages_.cards.size_bytes(), messages_.all_cards.data(), terms_.where);
    make_posts(votes, messages_, terms_.where);
  }
  const std::vector<Vote> lowered = agree(tried([&] {
    find_cards(votes);
    open_words(votes);
    lower_messages(terms_, messages_);
    open_inbox();
  }));
  const auto has_staged = [](const Vote& vote) { return vote.has_staged; };
  if (links.posts || std::any_of(lowered.begin(), lowered.end(), has_staged))
    agree(tried([&] {
      if (links.posts) {
        open_posts(messages_);
        choose_protocols(messages_, Travel::posted);
      }
      find_inboxes(votes);
      bind_staged_messages(terms_, messages_);
    }));
  // Every send has found its arrival, so equal numbers say that every arrival has its send.
  if (received != sent)
    throw_error(ErrorCode::mismatch, "the plans of all ranks together receive {} and send {} (rank {})",
                amount(received, "message"), sent, terms_.rank());
}

void ExchangeSetup::check_terms() const {
  const TransferPlan& plan = terms_.plan;
  const Rank rank = terms_.rank();
  if (plan.rank != rank) throw_error(ErrorCode::invalid_use, "the plan of rank {} is run by rank {}", plan.rank, rank);
  check_plan(plan).value();
  check_slots(plan, terms_.slots, terms_.world.size(), terms_.options.sources);
  if (terms_.is_snapshot()) {
    if (terms_.accumulates())
      throw_error(ErrorCode::unsupported, "a plan of kind {} adds to cells, so it takes no snapshot (rank {})",
                  name_of(plan.kind), rank);
    if (terms_.are_apart())
      throw_error(ErrorCode::invalid_use, "an exchange in halves takes no snapshot (rank {})", rank);
    if (terms_.options.schedule == Schedule::direct)
      throw_error(ErrorCode::invalid_use, "what is sent from a snapshot is staged, not direct (rank {})", rank);
  }
  if (terms_.are_apart() && plan.kind != PlanKind::redistribution)
    throw_error(ErrorCode::invalid_use, "a plan of kind {} runs as a whole, not in halves (rank {})",
                name_of(plan.kind), rank);
}

std::vector<Vote> ExchangeSetup::agree(const Result<void>& so_far) const {
  const auto is_posted = [](const Message& m) { return m.is_posted; };
  const std::vector<Message>&receives = messages_.receives, &sends = messages_.sends;
  const Vote mine{.code = so_far.ok() ? 0 : int(so_far.error().code()),
                  .kind = terms_.plan.kind,
                  .schedule = terms_.options.schedule,
                  .sources = terms_.options.sources,
                  .arrays = int(terms_.arrays()),
                  .layouts = fingerprint_of(terms_.plan, terms_.slots),
                  .records = fingerprint_of_records(terms_.slots),
                  .receives = Index(receives.size()),
                  .sends = Index(sends.size()),
                  .bytes = messages_.bytes_in,
                  .arrivals = messages_.arrivals.data(),
                  .cards = messages_.cards.data(),
                  .has_staged = messages_.any(true),
                  .posted_receives = std::count_if(receives.begin(), receives.end(), is_posted),
                  .posted_sends = std::count_if(sends.begin(), sends.end(), is_posted),
                  .inbox_lines = posted_lines(messages_)};
  return tranship::agree(terms_.world, mine, so_far, terms_.where);
}

/// The layouts and places of the peers' arrays.
void ExchangeSetup::find_cards(const std::vector<Vote>& votes) {
  const std::size_t count = messages_.cards.size();
  for (auto* list : {&messages_.receives, &messages_.sends})
    for (Message& m : *list) {
      m.cards = m.is_posted
                    ? &messages_.all_cards[std::size_t(m.peer) * count]
                    : static_cast<const ArrayCard*>(reached(terms_.world, m.peer, votes[std::size_t(m.peer)].cards));
      m.is_exposed = !m.is_posted && messages_.is_exposed(m.cards);
      if (!terms_.is_snapshot()) continue;
      m.cards_kept.assign(m.cards, m.cards + count);
      m.cards = m.cards_kept.data();
    }
}

/// The entry for this rank in the list of the target of a message. Throws `mismatch` when it expects another size.
const Arrival* ExchangeSetup::arrival_of(const Message& m, const std::vector<Vote>& votes) const {
  const Rank rank = terms_.rank();
  const Vote& theirs = votes[std::size_t(m.peer)];
  const auto* list = static_cast<const Arrival*>(reached(terms_.world, m.peer, theirs.arrivals));
  const auto* end = list + theirs.receives;
  const auto* arrival = std::lower_bound(list, end, rank, [](const Arrival& a, Rank r) { return a.source < r; });
  const Index expected = arrival != end && arrival->source == rank ? arrival->bytes : 0;
  if (expected != m.bytes)
    throw_error(ErrorCode::mismatch, "rank {} sends {} bytes to rank {}, which expects {}: their plans differ", rank,
                m.bytes, m.peer, expected);
  return arrival;
}

/// Finds the words of every message that is not posted.
void ExchangeSetup::open_words(const std::vector<Vote>& votes) {
  const ExchangeLinks& links = messages_.links;
  const auto open = [&](Message& m, std::ptrdiff_t number) {
    for (int buffer = 0; buffer < links.buffers; ++buffer)
      m.words[buffer] =
          &links.words.at(m.target, ExchangeLinks::first_message_word + int(number) * links.buffers + buffer);
  };
  for (std::size_t i = 0; i < messages_.receives.size(); ++i)
    if (!messages_.receives[i].is_posted) open(messages_.receives[i], std::ptrdiff_t(i));
  for (Message& m : messages_.sends) {
    if (m.is_posted) continue;
    const auto* list = static_cast<const Arrival*>(reached(terms_.world, m.peer, votes[std::size_t(m.peer)].arrivals));
    open(m, arrival_of(m, votes) - list);
  }
}

/// Makes the buffers of staged receives.
void ExchangeSetup::open_inbox() {
  const int buffers = messages_.links.buffers;
  Index lines = 0;
  for (const Message& m : messages_.receives)
    if (m.is_staged && !m.is_posted) lines = checked_add(lines, buffers * lines_of(m.bytes));
  messages_.inbox = reachable_memory(terms_.world, std::size_t(lines) * sizeof(Line));
  Line* next = static_cast<Line*>(messages_.inbox.get());
  for (std::size_t i = 0; i < messages_.receives.size(); ++i) {
    Message& m = messages_.receives[i];
    if (m.is_posted) {
      m.staging = messages_.links.posts->inbox.local()[m.inbox_line].bytes;
    } else if (m.is_staged) {
      m.staging = next->bytes;
      next += buffers * lines_of(m.bytes);
    }
    messages_.arrivals[i].staging = m.staging;
  }
}

/// Finds the buffer of every staged send: at its target, or here where it is posted.
void ExchangeSetup::find_inboxes(const std::vector<Vote>& votes) {
  for (Message& m : messages_.sends) {
    if (m.is_posted) {
      m.staging = messages_.links.outbox_lines[std::size_t(m.outbox_line)].bytes;
      continue;
    }
    const Arrival* arrival = arrival_of(m, votes);
    if (m.is_staged != (arrival->staging != nullptr))
      throw_error(ErrorCode::mismatch,
                  "rank {} sends {} bytes to rank {} {}, which expects them {}: their plans differ", terms_.rank(),
                  m.bytes, m.peer, m.is_staged ? "staged" : "directly", m.is_staged ? "directly" : "staged");
    if (m.is_staged) m.staging = static_cast<std::byte*>(reached(terms_.world, m.peer, arrival->staging));
  }
}

void ExchangeSetup::bind(std::span<const StridedView> views) {
  const Rank rank = terms_.rank();
  if (views.size() != terms_.arrays())
    throw_error(ErrorCode::invalid_use, "{} for an exchange of {} (rank {})", amount(views.size(), "array"),
                terms_.arrays(), rank);
  const auto swap_views = [&](std::vector<StridedView>& with) {
    std::size_t i = 0;
    for (auto& arrays : terms_.slots)
      for (ExchangeArray& array : arrays) std::swap(array.view, with[i++]);
  };
  std::vector<StridedView> before(views.begin(), views.end());
  swap_views(before);
  bool is_alike = true;
  try {
    check_arrays(terms_.plan, terms_.slots);
    std::size_t i = 0;
    for (const auto& arrays : terms_.slots)
      for (const ExchangeArray& array : arrays) {
        const SlotLayout layout = layout_of(array.view);
        const SlotLayout& known = messages_.cards[i++].layout;
        is_alike &= layout == known;
        if (layout.parts_together != known.parts_together)
          throw_error(ErrorCode::mismatch, "the complex numbers of {} are {} parts, and were {} parts (rank {})",
                      array.name, layout.parts_together ? "together with their" : "apart from their",
                      known.parts_together ? "together with their" : "apart from their", rank);
      }
  } catch (...) {
    swap_views(before);
    throw;
  }
  messages_.fill_cards(terms_);
  if (is_alike)
    bind_own_moves(terms_, messages_);
  else
    lower_messages(terms_, messages_);
  bind_staged_messages(terms_, messages_);
}

}  // namespace tranship
