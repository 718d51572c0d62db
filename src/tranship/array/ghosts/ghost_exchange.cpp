#include "tranship/array/ghosts/ghost_exchange.hpp"

#include <algorithm>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/joined.hpp>

namespace tranship {
namespace {

constexpr std::size_t planned_max = 32;

}  // namespace

GhostExchange::GhostExchange(World& world, std::vector<Coherence*> arrays, ExchangeOptions options)
    : world_(world), arrays_(std::move(arrays)), options_(options) {}

GhostExchange::~GhostExchange() {
  for (const Planned* planned : in_flight_)
    for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i]->note_stale(planned->parts[i].cells);
}

TransferPlan GhostExchange::plan_of(const std::optional<Combine>& combine, const std::vector<Part>& parts) const {
  std::vector<TransferPlan> plans;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    plans.push_back(plan_ghosts(arrays_[i]->spec(), world_.rank(), parts[i].cells, parts[i].depth));
  }
  TransferPlan plan = joined(std::move(plans));
  return combine ? adjoint(plan, *combine) : plan;
}

void GhostExchange::check_idle(const char* what, CallSite where) const {
  if (!in_flight_.empty())
    throw_error(ErrorCode::invalid_use, "{} at {}: an exchange of the same ghosts is in flight since {}", what,
                to_string(where), to_string(since_));
}

void GhostExchange::begin(std::optional<Combine> combine, std::vector<Part> parts, CallSite where) {
  auto known = std::find_if(planned_.begin(), planned_.end(),
                            [&](const Planned& p) { return p.combine == combine && p.parts == parts; });
  if (known == planned_.end()) {
    const auto unused = std::find_if(planned_.rbegin(), planned_.rend(), [&](const Planned& p) {
      return std::find(in_flight_.begin(), in_flight_.end(), &p) == in_flight_.end();
    });
    if (planned_.size() >= planned_max && unused != planned_.rend()) planned_.erase(std::prev(unused.base()));
    TransferPlan plan = plan_of(combine, parts);
    std::vector<std::vector<LeasedArray>> slots;
    for (Coherence* array : arrays_) slots.push_back({{array, fmt::format("array '{}'", array->name())}});
    planned_.push_front({combine, std::move(parts), LeasedExchange(world_, std::move(plan), slots, options_, where)});
  } else {
    planned_.splice(planned_.begin(), planned_, known);
  }
  LeasedExchange& exchange = planned_.front().exchange;
  exchange.start(where);
  in_flight_.push_back(&planned_.front());
  since_ = where;
  ++counts_.exchanges;
  const TransferPlan& plan = exchange.plan();
  plan.for_each_receive([&](const Transfer& one) { counts_.cells_received += one.cells(); });
  plan.for_each_send([&](const Transfer& one) { counts_.cells_sent += one.cells(); });
  for (const IndexedTransfer& list : plan.indexed_receives)
    counts_.cells_received += Index(list.target_cells.size()) * list.inner;
  for (const IndexedTransfer& list : plan.indexed_sends)
    counts_.cells_sent += Index(list.source_cells.size()) * list.inner;
}

void GhostExchange::begin_broadcast(const std::optional<Region>& region, Index depth, CallSite where) {
  check_idle("a broadcast", where);
  std::vector<Part> parts;
  bool any = false;
  for (Coherence* array : arrays_) {
    array->track();
    const Coherence::Scope scope = array->scope_of(region, depth);
    parts.push_back({scope.depth, array->stale(scope)});
    any |= !parts.back().cells.empty();
  }
  if (!any) return;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if (arrays_[i]->pending(parts[i].cells).size() > 0)
      throw_error(ErrorCode::invalid_use,
                  "array '{}' cannot be broadcast at {}: its ghosts hold values that the owners have not received",
                  arrays_[i]->buffer().name(), to_string(where));
  begin(std::nullopt, parts, where);
  for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i]->note_fresh(parts[i].cells, parts[i].depth);
}

void GhostExchange::begin_reduce(const std::optional<Region>& region, CallSite where) {
  check_idle("a reduction", where);
  // One exchange for each depth and combination, with all arrays that have it.
  struct Round {
    GhostState state;
    std::vector<Part> parts;
  };
  std::vector<Round> rounds;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    arrays_[i]->track();
    const Coherence::Scope scope = arrays_[i]->scope_of(region, all_depths);
    for (const Coherence::Pending& one : arrays_[i]->pending(scope.cells)) {
      auto round = std::find_if(rounds.begin(), rounds.end(),
                                [&](const Round& r) { return r.state == one.state && r.parts[i].cells.empty(); });
      if (round == rounds.end()) round = rounds.insert(rounds.end(), {one.state, std::vector<Part>(arrays_.size())});
      round->parts[i] = {one.state.pending, one.cells};
    }
  }
  for (const Round& round : rounds) {
    begin(round.state.combine, round.parts, where);
    for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i]->note_stale(round.parts[i].cells);
  }
}

void GhostExchange::settle(const Planned& done) {
  if (!done.combine) return;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    arrays_[i]->drop_ghosts(done.parts[i].cells, done.parts[i].depth, since_);
}

bool GhostExchange::test(CallSite where) {
  std::erase_if(in_flight_, [this, where](Planned* planned) {
    if (!planned->exchange.test(where)) return false;
    settle(*planned);
    return true;
  });
  return in_flight_.empty();
}

void GhostExchange::end(CallSite where) {
  while (!in_flight_.empty()) {
    in_flight_.back()->exchange.finish(where);
    settle(*in_flight_.back());
    in_flight_.pop_back();
  }
}

}  // namespace tranship
