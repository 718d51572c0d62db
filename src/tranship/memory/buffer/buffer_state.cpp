#include "tranship/memory/buffer/buffer_state.hpp"

#include <cstdlib>
#include <exception>
#include <string_view>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship::detail {
namespace {

Checks checks_of_environment() {
  static const Checks checks = [] {
    const char* text = std::getenv("TRANSHIP_CHECKS");
    const std::string_view word = text ? text : "none";
    if (word == "none" || word.empty()) return Checks::none;
    if (word == "poison") return Checks::poison;
    if (word == "checksums") return Checks::checksums;
    if (word == "guard") return Checks::guard;
    throw_error(ErrorCode::bad_text, "TRANSHIP_CHECKS is '{}'; it must be none, poison, checksums or guard", word);
  }();
  return checks;
}

}  // namespace

BufferState::BufferState(ElementType element_type, const Indices& shape, const Indices& steps,
                         const BufferOptions& given)
    : BufferShape(element_type, shape, steps, given),
      residents_(devices.residents()),
      losses_(devices.losses()),
      core_(*this, *this) {
  const Checks checks = given.checks == Checks::by_environment ? checks_of_environment() : given.checks;
  if (checks != Checks::none && size_bytes > 0) core_.watch = std::make_unique<Watch>(core_, checks);
  residents_.add(*this);
}

BufferState::~BufferState() {
  residents_.remove(*this);
}

std::shared_ptr<BufferState> BufferState::make(ElementType type, const Indices& extents, const Indices& strides,
                                               const BufferOptions& options) {
  return {new BufferState(type, extents, strides, options), [](BufferState* state) { state->lose_handles(); }};
}

void BufferState::lose_handles() noexcept {
  {
    const BufferLock lock(*this);
    lock->has_handles = false;
    if (lock->admission.open_count() > 0) return;
  }
  delete this;
}

void BufferCore::know(MemoryId memory) {
  if (residence.know(memory) && watch) watch->know(residence.copies.size());
}

void BufferCore::admit(const Request& request) {
  know(request.memory);
  residence.note_losses();
  admission.check(request);
  residence.check_device(request);
  admission.check_conflicts(request);
}

std::shared_ptr<Storage> BufferCore::take_copy(MemoryId memory) {
  if (watch) watch->forget(memory);
  return residence.take_copy(memory);
}

// Memory under pressure.

std::uint64_t BufferState::last_use(MemoryId memory) noexcept {
  const BufferLock lock(*this, std::try_to_lock);
  if (!lock || !lock->residence.has_copy(memory)) return 0;
  const Storage& copy = *lock->residence.copies[memory];
  return copy.is_foreign ? 0 : copy.last_use.load(std::memory_order_relaxed);
}

bool BufferState::try_release(MemoryId memory) noexcept {
  std::shared_ptr<Storage> gone;  // without the lock
  const BufferLock lock(*this, std::try_to_lock);
  if (!lock) return false;
  Residence& residence = lock->residence;
  if (!residence.has_copy(memory) || residence.copies[memory].use_count() > 1 || lock->admission.is_open_on(memory))
    return false;
  residence.note_losses();
  if (!residence.needed(memory).empty()) return false;
  if (lock->watch) lock->watch->before_loss(memory);
  gone = lock->take_copy(memory);
  return true;
}

// Accesses.

Lease BufferState::open(const Request& request, const std::shared_ptr<BufferState>& self) {
  Lease lease;
  std::vector<Before> before;
  const auto wait_for_all = [&] {
    for (const Before& one : before) come_after(request.memory == 0 ? nullptr : lease.stream_, one);
  };
  {
    const BufferLock lock(*this);
    Admission& admission = lock->admission;
    Residence& residence = lock->residence;
    Watch* const watch = lock->watch.get();
    lock->admit(request);
    if (watch) watch->before_use(name_of(request.intent), request.where);
    const Region& region = admission.region_of(request);
    const std::shared_ptr<Storage>& copy_here = residence.copies[request.memory];
    const CellState* only = residence.cells.only(region.boxes());
    if (!copy_here || (writes(request.intent) && copy_here.use_count() > 1) ||
        !residence.all_of(only, region, [&](const CellState& cell) {
          return is_ready(cell, request.intent, request.combine, request.memory);
        })) {
      lock->carry_out(request, std::nullopt);
      only = residence.cells.only(region.boxes());
    }
    const bool claims =
        request.intent == Intent::accumulate &&
        !residence.all_of(only, region, [&](const CellState& cell) { return is_claimed(cell, request.memory); });
    if (!only || !only->uses.empty() || copy_here->was_shared.load(std::memory_order_relaxed))
      before = residence.work_before(request.memory, request.intent, region.boxes());

    const int slot = admission.enter(request);
    copy_here->last_use.store(residents_.now(), std::memory_order_relaxed);
    lease.state_ = this;
    lease.data_ = copy_here->data;
    lease.stream_ = request.stream;
    lease.device_ = request.device;
    lease.intent_ = request.intent;
    lease.exceptions_ = std::int8_t(std::uncaught_exceptions());
    lease.slot_ = slot;
    try {
      if (watch) watch->opened(slot);
      if (claims) {
        // Other copies are invalidated last: after this nothing can fail, and no other thread sees the lease before it.
        wait_for_all();
        residence.cells.update(region, [&](const Box&, CellState& cell) { claim(request.memory, cell); });
        before.clear();
      }
    } catch (...) {
      admission.lease(slot).is_void = true;
      throw;
    }
  }
  // The lock is not held, so other threads can go on; the lease guards the region. If a wait fails, the lease is
  // closed.
  try {
    if (options.residency == Residency::release) Offload::note(self, request.device);
    wait_for_all();
  } catch (...) {
    const BufferLock lock(*this);
    lock->admission.lease(lease.slot_).is_void = true;
    throw;
  }
  return lease;
}

void BufferState::close(const Lease& lease, Ending ending) noexcept {
  {
    const BufferLock lock(*this);
    Admission& admission = lock->admission;
    Residence& residence = lock->residence;
    Watch* const watch = lock->watch.get();
    OpenLease& entry = admission.lease(lease.slot_);
    const Region& region = admission.region_of(entry);
    // When the device is lost, what was written there is lost with it: "lost" says more than "abandoned".
    if (ending == Ending::abandoned && losses_.load(std::memory_order_acquire) > 0 &&
        !devices.driver(entry.memory).loss().empty())
      ending = Ending::committed;
    if (watch) watch->closing(lease.slot_, *lease.stream_, ending);
    if (!entry.is_void) {  // a void lease has not been used
      if (writes(entry.intent)) {
        const std::uint64_t version = ++lock->version;
        const auto written = [&](const Box&, CellState& cell) {
          if (ending == Ending::abandoned) return expire(Absence::abandoned, version, entry.where, cell);
          commit(entry.intent, entry.memory, version, entry.where, cell);
          cell.cause = entry.cause;
        };
        if (region.boxes().size() == 1)
          residence.cells.renew(region.boxes()[0], written);
        else
          residence.cells.update(region, written);
      }
      if (entry.storage)
        entry.storage->note(lease.stream_->event());
      else
        residence.add_uses({entry.memory, lease.stream_->event(), entry.intent}, region.boxes());
    }
    admission.leave(lease.slot_);
    residence.note_losses();
    if (watch) watch->closed(lease.slot_, ending);
    entry.storage.reset();
    if (lock->has_handles || admission.open_count() > 0) return;
  }
  delete this;
}

void BufferState::note_pointers(MemoryId memory) {
  const BufferLock lock(*this);
  if (size_bytes == 0) return;
  if (!lock->watch) lock->watch = std::make_unique<Watch>(*lock, Checks::none);
  lock->watch->note_pointers(memory);
}

void BufferState::forget_pointers() noexcept {
  const BufferLock lock(*this);
  if (lock->watch) lock->watch->forget_pointers();
}

void BufferState::prefetch(const Request& request) {
  const BufferLock lock(*this);
  lock->admit(request);
  if (lock->watch) lock->watch->before_use("prefetch", request.where);
  lock->carry_out(request, Cause::prefetch);
}

std::vector<CopyRecord> BufferState::predict(const Request& request) {
  const BufferLock lock(*this);
  lock->admit(request);
  const CopyPlan plan(*this, lock->residence, request, std::nullopt);
  return {plan.records.all().begin(), plan.records.all().end()};
}

void BufferState::invalidate(const Region& region, CallSite where) {
  const BufferLock lock(*this);
  const Request request{.intent = Intent::write, .region = &region, .where = where};
  lock->admission.check(request);
  lock->admission.check_conflicts(request);
  const std::uint64_t version = ++lock->version;
  lock->residence.cells.update(region,
                               [&](const Box&, CellState& cell) { expire(Absence::elsewhere, version, where, cell); });
}

void BufferState::freeze(CallSite where) {
  const BufferLock lock(*this);
  lock->admission.check_no_writer("frozen", where);
  lock->admission.freeze(where);
}

std::shared_ptr<BufferState> BufferState::duplicate(CallSite where) {
  const BufferLock lock(*this);
  lock->admission.check_no_writer("duplicated", where);
  if (lock->watch) lock->watch->before_use("duplicate", where);
  lock->residence.note_losses();
  auto out = make(type, extents, strides, options);
  const BufferLock other(*out);
  other->residence.cells = lock->residence.cells;
  other->residence.copies = lock->residence.copies;
  for (const auto& storage : lock->residence.copies)
    if (storage) storage->was_shared = true;
  other->version = lock->version;
  if (lock->watch) {
    if (!other->watch) other->watch = std::make_unique<Watch>(*other, Checks::none);
    other->watch->know(other->residence.copies.size());
    other->watch->take_over(*lock->watch);
  }
  return out;
}

void BufferState::drop(Device device, CallSite where) {
  std::shared_ptr<Storage> gone;  // without the lock
  const BufferLock lock(*this);
  lock->residence.note_losses();
  const MemoryId memory = devices.memory_of(device);
  if (!lock->residence.has_copy(memory)) return;
  lock->admission.check_unused(memory, where);
  if (lock->watch) lock->watch->before_use("drop", where);
  if (const Region lost = lock->residence.needed(memory); !lost.empty())
    throw_error(ErrorCode::invalid_use, "buffer '{}': dropping its copy on {} at {} would lose {} of its {}, {}",
                options.name, tranship::to_string(device), to_string(where), bytes_of(lost), amount(size_bytes, "byte"),
                tranship::to_string(lost));
  gone = lock->take_copy(memory);
}

void BufferState::evict(Device device, CallSite where) {
  std::shared_ptr<Storage> gone;  // without the lock
  const BufferLock lock(*this);
  lock->residence.note_losses();
  const MemoryId memory = devices.memory_of(device);
  if (!lock->residence.has_copy(memory)) return;
  lock->admission.check_unused(memory, where);
  if (lock->watch) lock->watch->before_use("eviction", where);
  const Region kept = lock->residence.needed(memory);
  if (!kept.empty() && memory == 0)
    throw_error(ErrorCode::invalid_use, "buffer '{}': {} of its {} {} only on the host, whose copy cannot be dropped",
                options.name, bytes_of(kept), amount(size_bytes, "byte"), plural(bytes_of(kept), "is", "are"));
  const Request request{.device = Device::host(), .memory = 0, .region = &kept, .where = where, .leaving = memory};
  if (!kept.empty()) {
    lock->admission.check_conflicts(request);
    lock->carry_out(request, Cause::eviction);
  }
  gone = lock->take_copy(memory);
}

Region BufferState::valid(Device device) {
  const BufferLock lock(*this);
  lock->residence.note_losses();
  const MemoryId memory = devices.memory_of(device);
  if (!lock->residence.has_copy(memory)) return {};
  return lock->residence.cells_where(
      whole, [&](const CellState& cell) { return cell.valid.has(memory) && cell.partial.empty(); });
}

}  // namespace tranship::detail
