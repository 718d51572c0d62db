#include "tranship/array/leased_exchange.hpp"

#include <algorithm>
#include <utility>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Returns the cause that the ledger records for copies between memories that a plan makes.
std::optional<Cause> cause_of(PlanKind kind) {
  if (kind == PlanKind::halo || kind == PlanKind::halo_adjoint) return Cause::halo;
  return std::nullopt;
}

}  // namespace

std::vector<std::vector<ExchangeArray>> exchanged(const std::vector<std::vector<LeasedArray>>& slots) {
  std::vector<std::vector<ExchangeArray>> out;
  for (const auto& arrays : slots) {
    auto& views = out.emplace_back();
    for (const LeasedArray& one : arrays)
      views.push_back({.view = one.array->host_view(),
                       .name = one.name,
                       .spec = one.array->shared_spec(),
                       .label = one.array->name(),
                       .record = one.array->record()});
  }
  return out;
}

ExchangeLeases::ExchangeLeases(const std::vector<std::vector<LeasedArray>>& slots, const TransferPlan& plan)
    : plan_(plan) {
  for (std::size_t s = 0; s < slots.size(); ++s)
    for (const LeasedArray& one : slots[s]) members_.emplace_back(*this, *one.array, s);
}

bool ExchangeLeases::start_may_wait() const noexcept {
  return std::any_of(members_.begin(), members_.end(), [](const Member& one) { return one.array.has_buffer(); });
}

void ExchangeLeases::open(std::vector<Lease>& out, Buffer& buffer, const Region& region, Intent intent,
                          const void* host) const {
  if (region.empty()) return;
  const Access access{.stream = nullptr, .device = Device::host(), .cause = cause_of(plan_.kind), .region = region};
  out.push_back(intent == Intent::read    ? buffer.read(access, since_)
                : intent == Intent::write ? buffer.write(access, since_)
                                          : buffer.read_write(access, since_));
  if (out.back().view().data != host)
    throw_error(ErrorCode::invalid_use,
                "array '{}': its copy on the host is not where it was when the exchange of {} was planned",
                buffer.name(), to_string(since_));
}

void ExchangeLeases::open_all() {
  auto written = members_.begin();
  try {
    // Leases to read and to combine come first: if one is refused, closing the others changes no cell.
    for (Member& one : members_) {
      if (!one.array.has_buffer()) continue;
      const void* const host = one.array.host_view().data;
      open(one.leases, one.array.buffer(), one.cells().read, Intent::read, host);
      open(one.leases, one.array.buffer(), one.cells().combined, Intent::read_write, host);
    }
    for (; written != members_.end(); ++written)
      if (written->array.has_buffer())
        open(written->leases, written->array.buffer(), written->cells().written, Intent::write,
             written->array.host_view().data);
  } catch (...) {
    for (Member& one : members_) one.leases.clear();
    while (written != members_.begin()) {
      --written;
      if (written->array.has_buffer()) invalidate(written->array, written->cells().written);
    }
    throw;
  }
}

void ExchangeLeases::starting(CallSite where) {
  since_ = where;
  if (start_may_wait()) open_all();
  for (Member& one : members_) one.begin();
}

void ExchangeLeases::end_all() noexcept {
  for (Member& one : members_) {
    one.leases.clear();
    one.end();
  }
}

void ExchangeLeases::not_started() noexcept {
  end_all();
  if (touched_.empty()) return;
  for (const Member& one : members_) invalidate(one.array, touched_[one.slot].written);
}

void ExchangeLeases::completed(CallSite) {
  end_all();
}

void ExchangeLeases::withdrawn() noexcept {
  const bool any = std::any_of(members_.begin(), members_.end(), [](const Member& one) { return !one.leases.empty(); });
  end_all();
  if (!any) return;
  for (const Member& one : members_) invalidate(one.array, touched_[one.slot].written | touched_[one.slot].combined);
}

// An array in flight.

void ExchangeLeases::Member::begin() noexcept {
  array.in_flight().splice(array.in_flight().end(), place_);
}

void ExchangeLeases::Member::end() noexcept {
  std::list<InFlight*>& all = array.in_flight();
  if (place_.empty()) place_.splice(place_.begin(), all, std::find(all.begin(), all.end(), this));
}

const TouchedCells& ExchangeLeases::Member::cells() {
  if (exchange_.touched_.empty()) exchange_.touched_ = touched_cells(exchange_.plan_);
  return exchange_.touched_[slot];
}

std::vector<Lease> ExchangeLeases::Member::leases_in(Buffer& buffer) {
  const void* const host = array.host_view().data;
  std::vector<Lease> out;
  exchange_.open(out, buffer, cells().read, Intent::read, host);
  exchange_.open(out, buffer, cells().combined, Intent::read_write, host);
  exchange_.open(out, buffer, cells().written, Intent::write, host);
  return out;
}

void ExchangeLeases::invalidate(Coherence& array, const Region& region) const noexcept {
  try {
    if (array.has_buffer()) array.buffer().invalidate(region, since_);
  } catch (const Error&) {
    // Another lease has been opened since. It sees the cells that have arrived.
  }
}

LeasedExchange::LeasedExchange(World& world, TransferPlan plan, const std::vector<std::vector<LeasedArray>>& slots,
                               ExchangeOptions options, CallSite where)
    : ExchangeCalls(world, std::move(plan), exchanged(slots), options, where) {
  set_observer(std::make_unique<ExchangeLeases>(slots, this->plan()));
}

}  // namespace tranship
