#include <algorithm>

#include <tranship/array/coherence.hpp>
#include <tranship/array/leased_exchange.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

std::vector<StridedView> views_of(const std::vector<Coherence*>& arrays) {
  std::vector<StridedView> out;
  for (const Coherence* array : arrays) out.push_back(array->host_view());
  return out;
}

/// Why copies between memories are made for a plan.
std::optional<Cause> cause_of(PlanKind kind) {
  if (kind == PlanKind::halo || kind == PlanKind::halo_adjoint) return Cause::halo;
  return std::nullopt;
}

}  // namespace

LeasedExchange::LeasedExchange(World& world, TransferPlan plan, std::vector<Coherence*> arrays, ExchangeOptions options)
    : arrays_(std::move(arrays)),
      exchange_(std::make_unique<Exchange>(world, std::move(plan), views_of(arrays_), options)) {}

LeasedExchange::LeasedExchange(LeasedExchange&&) noexcept = default;

LeasedExchange::~LeasedExchange() {
  exchange_.reset();
  if (leases_.empty()) return;
  leases_.clear();
  for (std::size_t i = 0; i < arrays_.size(); ++i) invalidate(i, touched_[i].written | touched_[i].combined);
}

void LeasedExchange::invalidate(std::size_t array, const Region& region) noexcept {
  try {
    if (arrays_[array]->has_buffer()) arrays_[array]->buffer().invalidate(region);
  } catch (const Error&) {
    // Somebody has taken a lease since: what it sees is what has arrived.
  }
}

void LeasedExchange::start(CallSite where) {
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
  const bool any_buffer =
      std::any_of(arrays_.begin(), arrays_.end(), [](Coherence* array) { return array->has_buffer(); });
  if (touched_.empty() && any_buffer) touched_ = touched_cells(plan());
  // What can fail without a trace comes first.
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if (arrays_[i]->has_buffer()) {
      open(*arrays_[i], touched_[i].read, &Buffer::read);
      open(*arrays_[i], touched_[i].combined, &Buffer::read_write);
    }
  std::size_t opened = 0;
  try {
    for (; opened < arrays_.size(); ++opened)
      if (arrays_[opened]->has_buffer()) open(*arrays_[opened], touched_[opened].written, &Buffer::write);
    exchange_->start();
  } catch (...) {
    leases.clear();
    while (!touched_.empty() && opened-- > 0) invalidate(opened, touched_[opened].written);
    throw;
  }
  leases_ = std::move(leases);
}

bool LeasedExchange::test() {
  if (!exchange_->test()) return false;
  leases_.clear();
  return true;
}

void LeasedExchange::finish() {
  exchange_->finish();
  leases_.clear();
}

}  // namespace tranship
