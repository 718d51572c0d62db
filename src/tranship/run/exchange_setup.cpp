#include "tranship/run/exchange_setup.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/run/exchange_lowering.hpp>

namespace tranship {
namespace {

constexpr const char* purpose = "set up an exchange";

}  // namespace

ExchangeSetup::ExchangeSetup(World& world, TransferPlan plan, ExchangeSlots slots, ExchangeOptions options,
                             CallSite where)
    : terms_{.world = world, .plan = std::move(plan), .slots = std::move(slots), .options = options, .where = where},
      messages_(terms_) {}

void ExchangeSetup::run() {
  World& world = terms_.world;
  ExchangeLinks& links = messages_.links;
  const Result<void> listed = tried(purpose, [&] {
    check_terms();
    messages_.list(terms_);
  });
  const ExchangeTotals all = agree(world, totals(), terms_.plan, terms_.slots, listed, terms_.where);
  messages_.traffic = all.bytes;
  messages_.way = copy_method(messages_.traffic);
  messages_.way.long_rows = LongRows::vectors;  // most of what is read was written by a peer and is in its cache
  const Index words = ExchangeLinks::first_message_word + links.words_per_message() * all.reached_receives_max;
  links.words = world.shared_flags(int(words), "exchange", terms_.where);
  links.notices->publish(world, messages_.cards, {.size_bytes = all.notices_bytes_max, .entries = all.entries_max},
                         terms_.where);
  const Result<void> ready = tried(purpose, [&] {
    find_notices();
    open_words();
    lower_messages(terms_, messages_);
    open_inbox();
  });
  if (agree_on_any(world, messages_.any(true), ready, terms_.where)) {
    const Result<void> bound = tried(purpose, [&] {
      choose_protocols(messages_, Travel::posted);
      find_inboxes();
      bind_staged_messages(terms_, messages_);
    });
    agree_on_any(world, false, bound, terms_.where);
  }
  // Every send has found its receive, so equal numbers mean that every receive has its send.
  if (all.receives != all.sends)
    throw_error(ErrorCode::mismatch, "the plans of all ranks together receive {} and send {} (rank {})",
                amount(all.receives, "message"), all.sends, terms_.rank());
}

void ExchangeSetup::check_terms() const {
  const TransferPlan& plan = terms_.plan;
  const Rank rank = terms_.rank();
  if (plan.rank != rank)
    throw_error(ErrorCode::invalid_use, "the plan belongs to rank {}, but rank {} runs it", plan.rank, rank);
  check_plan(plan).value();
  check_slots(plan, terms_.slots, terms_.world.size(), terms_.options.sources);
  if (terms_.is_snapshot()) {
    if (terms_.accumulates())
      throw_error(ErrorCode::unsupported, "a plan of kind {} adds to cells, so it takes no snapshot (rank {})",
                  name_of(plan.kind), rank);
    if (terms_.are_apart())
      throw_error(ErrorCode::invalid_use, "an exchange in halves takes no snapshot (rank {})", rank);
    if (terms_.options.schedule == Schedule::direct)
      throw_error(ErrorCode::invalid_use,
                  "an exchange with a snapshot is staged: schedule direct is not possible (rank {})", rank);
  }
  if (terms_.are_apart() && plan.kind != PlanKind::redistribution)
    throw_error(ErrorCode::invalid_use, "a plan of kind {} runs as a whole, not in halves (rank {})",
                name_of(plan.kind), rank);
}

ExchangeTotals ExchangeSetup::totals() const {
  const Rank rank = terms_.rank();
  const std::uint64_t records = fingerprint_of_records(terms_.slots);
  const ExchangeKind kind{.plan = terms_.plan.kind,
                          .schedule = terms_.options.schedule,
                          .sources = terms_.options.sources,
                          .arrays = int(terms_.arrays())};
  ExchangeTotals out{.kind = Alike<ExchangeKind>::of(rank, kind),
                     .layouts = Alike<std::uint64_t>::of(rank, fingerprint_of(terms_.plan, terms_.slots)),
                     .records = records == 0 ? Alike<std::uint64_t>{} : Alike<std::uint64_t>::of(rank, records),
                     .receives = Index(messages_.receives.size()),
                     .sends = Index(messages_.sends.size()),
                     .bytes = messages_.bytes_in};
  for (const Message& m : messages_.receives) out.reached_receives_max += m.is_posted ? 0 : 1;
  if (const auto& notices = messages_.links.notices) {
    out.entries_max = notices->entries();
    out.notices_bytes_max = notices->size_bytes();
  }
  return out;
}

/// Looks up the layouts and addresses of the peers' arrays, and what the peers expect of this rank.
void ExchangeSetup::find_notices() {
  const Notices& notices = *messages_.links.notices;
  const Rank rank = terms_.rank();
  messages_.found.reserve(messages_.receives.size() + messages_.sends.size());
  messages_.for_each_peer([&](Rank peer, Message* receive, Message* send) {
    const Notices::Found& theirs = messages_.found.emplace_back(notices.find(peer));
    const Notices::Entry& mine = notices.entry(peer);
    for (Message* m : {receive, send}) {
      if (!m) continue;
      m->cards = theirs.cards.data();
      m->is_exposed = !m->is_posted && messages_.is_exposed(m->cards);
      if (!m->is_posted) continue;
      const bool sends = m == send;
      m->signal_here = mine.signal + (sends ? sizeof(Line) : 0);
      m->signal_there = theirs.entry.signal + (sends ? 0 : sizeof(Line));
      m->reply_here = mine.signal;
      m->inbox_at = sends ? theirs.entry.inbox : mine.inbox;
    }
    if (send && theirs.entry.bytes_in != send->bytes)
      throw_error(ErrorCode::mismatch, "rank {} sends {} to rank {}, which expects {}: their plans differ", rank,
                  amount(send->bytes, "byte"), peer, theirs.entry.bytes_in);
    if (receive && receive->is_posted && theirs.entry.bytes_out != receive->bytes)
      throw_error(ErrorCode::mismatch, "rank {} expects {} of rank {}, which sends {}: their plans differ", rank,
                  amount(receive->bytes, "byte"), peer, theirs.entry.bytes_out);
  });
}

/// Finds the words of every message that is not posted.
void ExchangeSetup::open_words() {
  const ExchangeLinks& links = messages_.links;
  const auto open = [&](Message& m, int number) {
    const int first = ExchangeLinks::first_message_word + number * links.words_per_message();
    for (int buffer = 0; buffer < m.buffers; ++buffer) m.words[buffer] = &links.words.at(m.target, first + buffer);
    m.staging_word = &links.words.at(m.target, first + links.buffers);
  };
  std::size_t place = 0;
  messages_.for_each_peer([&](Rank peer, Message* receive, Message* send) {
    const Notices::Found& theirs = messages_.found[place++];
    if (receive && !receive->is_posted) open(*receive, links.notices->entry(peer).receive);
    if (send && !send->is_posted) open(*send, theirs.entry.receive);
  });
}

/// Makes the buffers of staged receives.
void ExchangeSetup::open_inbox() {
  Index lines = 0;
  for (const Message& m : messages_.receives)
    if (m.is_staged && !m.is_posted) lines = checked_add(lines, m.buffers * lines_of(m.bytes));
  messages_.inbox = reachable_memory(terms_.world, std::size_t(lines) * sizeof(Line));
  Line* next = static_cast<Line*>(messages_.inbox.get());
  for (Message& m : messages_.receives) {
    if (m.is_posted) {
      m.staging = messages_.links.notices->inbox(m.inbox_at, lines_of(m.bytes)).local()->bytes;
    } else if (m.is_staged) {
      m.staging = next->bytes;
      m.staging_word->store_release(reinterpret_cast<std::uintptr_t>(m.staging));
      next += m.buffers * lines_of(m.bytes);
    }
  }
}

/// Finds the buffer of every staged send: at its target, or in the outbox of this rank when it is posted.
void ExchangeSetup::find_inboxes() {
  Index lines = 0;
  for (Message& m : messages_.sends) {
    m.outbox_line = lines;
    if (m.is_posted) lines += lines_of(m.bytes);
  }
  messages_.links.outbox_lines->resize(std::size_t(lines));
  for (Message& m : messages_.sends) {
    if (m.is_posted) {
      m.staging = (*messages_.links.outbox_lines)[std::size_t(m.outbox_line)].bytes;
      continue;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): atomic addresses are numbers.
    const auto* staging = reinterpret_cast<const void*>(m.staging_word->load_acquire());
    if (m.is_staged != (staging != nullptr))
      throw_error(ErrorCode::mismatch, "rank {} sends {} to rank {} {}, which expects them {}: their plans differ",
                  terms_.rank(), amount(m.bytes, "byte"), m.peer, m.is_staged ? "staged" : "directly",
                  m.is_staged ? "directly" : "staged");
    if (m.is_staged) m.staging = static_cast<std::byte*>(reached(terms_.world, m.peer, staging));
  }
}

void ExchangeSetup::bind(std::span<const StridedView> views) {
  const Rank rank = terms_.rank();
  if (views.size() != terms_.arrays())
    throw_error(ErrorCode::invalid_use, "{} for an exchange of {}: give as many as were planned (rank {})",
                amount(views.size(), "array"), terms_.arrays(), rank);
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
