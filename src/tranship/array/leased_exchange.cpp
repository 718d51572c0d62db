#include "tranship/array/leased_exchange.hpp"

#include <algorithm>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/array/located.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

std::vector<std::vector<ExchangeArray>> views_of(const std::vector<std::vector<LeasedArray>>& slots) {
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

/// Why copies between memories are made for a plan.
std::optional<Cause> cause_of(PlanKind kind) {
  if (kind == PlanKind::halo || kind == PlanKind::halo_adjoint) return Cause::halo;
  return std::nullopt;
}

}  // namespace

LeasedExchange::LeasedExchange(World& world, TransferPlan plan, const std::vector<std::vector<LeasedArray>>& slots,
                               ExchangeOptions options, CallSite where) {
  for (std::size_t s = 0; s < slots.size(); ++s)
    for (const LeasedArray& one : slots[s]) arrays_.push_back({one.array, s});
  exchange_ = located(
      where, [&] { return std::make_unique<Exchange>(world, std::move(plan), views_of(slots), options, where); });
}

LeasedExchange::LeasedExchange(LeasedExchange&&) noexcept = default;

LeasedExchange::~LeasedExchange() {
  exchange_.reset();
  if (leases_.empty()) return;
  leases_.clear();
  for (const Member& one : arrays_) invalidate(*one.array, touched_[one.slot].written | touched_[one.slot].combined);
}

void LeasedExchange::invalidate(Coherence& array, const Region& region) const noexcept {
  try {
    if (array.has_buffer()) array.buffer().invalidate(region, since_);
  } catch (const Error&) {
    // A lease has been taken since: what it sees is what has arrived.
  }
}

bool LeasedExchange::start_may_wait() const noexcept {
  return std::any_of(arrays_.begin(), arrays_.end(), [](const Member& one) { return one.array->has_buffer(); });
}

void LeasedExchange::start(CallSite where) {
  since_ = where;
  std::vector<Lease> leases;
  const auto open = [&](Coherence& array, const Region& region, auto intent) {
    if (region.empty()) return;
    leases.push_back((array.buffer().*intent)(
        {.stream = nullptr, .device = Device::host(), .cause = cause_of(plan().kind), .region = region}, where));
    if (leases.back().view().data != array.host_view().data)
      throw_error(ErrorCode::invalid_use,
                  "array '{}': its copy on the host is not where it was when the exchange of {} was planned",
                  array.buffer().name(), to_string(where));
  };
  if (touched_.empty() && start_may_wait()) touched_ = touched_cells(plan());
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
    located(where, [&] { exchange_->start(); });
  } catch (...) {
    leases.clear();
    while (!touched_.empty() && opened-- > 0)
      invalidate(*arrays_[opened].array, touched_[arrays_[opened].slot].written);
    throw;
  }
  leases_ = std::move(leases);
}

bool LeasedExchange::test(CallSite where) {
  if (!exchange_->test(where)) return false;
  leases_.clear();
  return true;
}

void LeasedExchange::finish(CallSite where) {
  located(where, [&] { exchange_->finish(where); });
  leases_.clear();
}

}  // namespace tranship
