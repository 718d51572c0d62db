#include "tranship/array/leased_exchange.hpp"

#include <algorithm>
#include <utility>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Why copies between memories are made for a plan.
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
    for (const LeasedArray& one : slots[s]) arrays_.push_back({one.array, s});
}

bool ExchangeLeases::start_may_wait() const noexcept {
  return std::any_of(arrays_.begin(), arrays_.end(), [](const Member& one) { return one.array->has_buffer(); });
}

void ExchangeLeases::starting(CallSite where) {
  since_ = where;
  if (!start_may_wait()) return;
  if (touched_.empty()) touched_ = touched_cells(plan_);
  std::vector<Lease> leases;
  const auto open = [&](Coherence& array, const Region& region, auto intent) {
    if (region.empty()) return;
    leases.push_back((array.buffer().*intent)(
        {.stream = nullptr, .device = Device::host(), .cause = cause_of(plan_.kind), .region = region}, where));
    if (leases.back().view().data != array.host_view().data)
      throw_error(ErrorCode::invalid_use,
                  "array '{}': its copy on the host is not where it was when the exchange of {} was planned",
                  array.buffer().name(), to_string(where));
  };
  // What can fail without a trace comes first.
  for (const auto& [array, slot] : arrays_)
    if (array->has_buffer()) {
      open(*array, touched_[slot].read, &Buffer::read);
      open(*array, touched_[slot].combined, &Buffer::read_write);
    }
  std::size_t opened = 0;
  try {
    for (; opened < arrays_.size(); ++opened)
      if (const auto& [array, slot] = arrays_[opened]; array->has_buffer())
        open(*array, touched_[slot].written, &Buffer::write);
  } catch (...) {
    leases.clear();
    while (opened-- > 0) invalidate(*arrays_[opened].array, touched_[arrays_[opened].slot].written);
    throw;
  }
  leases_ = std::move(leases);
}

void ExchangeLeases::not_started() noexcept {
  leases_.clear();
  if (touched_.empty()) return;
  for (const Member& one : arrays_) invalidate(*one.array, touched_[one.slot].written);
}

void ExchangeLeases::completed(CallSite) {
  leases_.clear();
}

void ExchangeLeases::withdrawn() noexcept {
  if (leases_.empty()) return;
  leases_.clear();
  for (const Member& one : arrays_) invalidate(*one.array, touched_[one.slot].written | touched_[one.slot].combined);
}

void ExchangeLeases::invalidate(Coherence& array, const Region& region) const noexcept {
  try {
    if (array.has_buffer()) array.buffer().invalidate(region, since_);
  } catch (const Error&) {
    // A lease has been taken since: it sees the cells that have arrived.
  }
}

LeasedExchange::LeasedExchange(World& world, TransferPlan plan, const std::vector<std::vector<LeasedArray>>& slots,
                               ExchangeOptions options, CallSite where)
    : ExchangeCalls(world, std::move(plan), exchanged(slots), options, where) {
  set_observer(std::make_unique<ExchangeLeases>(slots, this->plan()));
}

}  // namespace tranship
