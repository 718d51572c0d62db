#include "tranship/memory/buffer.hpp"

#include <exception>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/memory/buffer/buffer_state.hpp>
#include <tranship/memory/buffer/thread_scopes.hpp>

namespace tranship {

using detail::thread_scopes;

const char* name_of(Intent intent) {
  switch (intent) {
    case Intent::read:
      return "read";
    case Intent::write:
      return "write";
    case Intent::read_write:
      return "read_write";
    case Intent::accumulate:
      break;
  }
  return "accumulate";
}

const char* name_of(CopyState state) {
  switch (state) {
    case CopyState::unallocated:
      return "unallocated";
    case CopyState::stale:
      return "stale";
    case CopyState::partly_valid:
      return "partly valid";
    case CopyState::valid:
      break;
  }
  return "valid";
}

// Leases.

Lease::Lease(Lease&& other) noexcept {
  *this = std::move(other);
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  close();
  state_ = std::exchange(other.state_, nullptr);
  data_ = other.data_;
  stream_ = other.stream_;
  device_ = other.device_;
  intent_ = other.intent_;
  exceptions_ = other.exceptions_;
  slot_ = other.slot_;
  return *this;
}

Lease::~Lease() {
  if (!state_) return;
  if (std::uncaught_exceptions() > exceptions_)
    abandon();
  else
    close();
}

void Lease::close() noexcept {
  if (state_) std::exchange(state_, nullptr)->close(*this, detail::Ending::committed);
}

void Lease::abandon() noexcept {
  if (state_) std::exchange(state_, nullptr)->close(*this, detail::Ending::abandoned);
}

void Lease::note_pointers() {
  if (!state_) throw_error(ErrorCode::invalid_use, "this lease is closed");
  state_->note_pointers(state_->devices.memory_of(device_));
}

void Lease::forget_pointers() noexcept {
  if (state_) state_->forget_pointers();
}

StridedView Lease::view() const {
  if (!state_) throw_error(ErrorCode::invalid_use, "this lease is closed");
  return {
      .data = data_, .type = state_->type, .extents = state_->extents, .strides = state_->strides, .device = device_};
}

void* Lease::data_as(ElementType type, detail::Constness constness) const {
  if (!state_) throw_error(ErrorCode::invalid_use, "this lease is closed");
  if (type != state_->type)
    throw_error(ErrorCode::mismatch, "buffer '{}' has elements {}, but a pointer to {} is asked for",
                state_->options.name, name_of(state_->type), name_of(type));
  if (constness == detail::Constness::changeable && intent_ == Intent::read)
    throw_error(ErrorCode::invalid_use, "buffer '{}' is leased to read: ask for a pointer to const {}",
                state_->options.name, name_of(type));
  return data_;
}

// Offload.

Offload::Offload(Device device) : outer_(thread_scopes.offload), device_(device) {
  thread_scopes.offload = this;
}

Offload::~Offload() {
  thread_scopes.offload = outer_;
  for (const auto& weak : used_)
    if (const auto state = weak.lock()) try {
        state->evict(device_, CallSite::here());
      } catch (const Error&) {
        // A lease is open, or the host is full: keeping the copy is no error.
      }
}

void Offload::note(const std::shared_ptr<detail::BufferState>& used, Device device) {
  Offload* scope = thread_scopes.offload;
  while (scope && scope->device_ != device) scope = scope->outer_;
  if (!scope) return;
  for (const auto& weak : scope->used_)
    if (!weak.owner_before(used) && !used.owner_before(weak)) return;
  scope->used_.emplace_back(used);
}

Device current_device() noexcept {
  return thread_scopes.offload ? thread_scopes.offload->device_ : Device::host();
}

// Buffers.

namespace {

detail::Request request_of(const detail::BufferState& state, Intent intent, const Access& access, CallSite where) {
  const Devices::Place place = state.devices.place(access.device);
  if (access.stream && state.devices.memory_of(access.stream->device()) != place.memory)
    throw_error(ErrorCode::invalid_use, "buffer '{}': a lease on {} cannot use a stream of {}", state.options.name,
                to_string(access.device), to_string(access.stream->device()));
  if (access.stream && !state.devices.has(*access.stream))
    throw_error(ErrorCode::invalid_use,
                "buffer '{}': a lease on {} cannot use a stream of {} that belongs to other Devices",
                state.options.name, to_string(access.device), to_string(access.stream->device()));
  return {.intent = intent,
          .device = access.device,
          .memory = place.memory,
          .stream = access.stream ? access.stream : place.stream,
          .region = access.region ? &*access.region : nullptr,
          .cause = access.cause,
          .where = where};
}

}  // namespace

Buffer::Buffer(ElementType type, const Indices& extents, const BufferOptions& options)
    : state_(detail::BufferState::make(type, extents, row_major_strides(extents), options)) {}

Buffer Buffer::import(const StridedView& view, const BufferOptions& options, std::shared_ptr<void> owner) {
  return import_as(1, view, options, std::move(owner));
}

Buffer Buffer::import_zeros(const StridedView& view, const BufferOptions& options, std::shared_ptr<void> owner) {
  return import_as(0, view, options, std::move(owner));
}

Buffer Buffer::import_as(std::uint64_t version, const StridedView& view, const BufferOptions& options,
                         std::shared_ptr<void> owner) {
  if (view.strides.size() != view.extents.size())
    throw_error(ErrorCode::invalid_use, "buffer '{}': the view has {} and {}", options.name,
                amount(view.extents.size(), "extent"), amount(view.strides.size(), "stride"));
  Buffer out(detail::BufferState::make(view.type, view.extents, view.strides, options));
  detail::BufferState& state = *out.state_;
  if (view.imaginary)
    throw_error(ErrorCode::unsupported, "buffer '{}': the view has 2 planes, a buffer has 1", state.options.name);
  if (!view.data && state.size_bytes > 0)
    throw_error(ErrorCode::invalid_use, "buffer '{}': no memory is given for its {}", state.options.name,
                amount(state.size_bytes, "byte"));
  const MemoryId id = state.devices.memory_of(view.device);
  if (state.size_bytes > 0) {
    const std::byte* const lowest = static_cast<const std::byte*>(view.data) + state.lowest_bytes;
    if (const std::string why = state.devices.driver(id).why_not_foreign(lowest, std::size_t(state.span_bytes));
        !why.empty())
      throw_error(ErrorCode::invalid_use, "buffer '{}': {}", state.options.name, why);
    for (MemoryId other = 1; id == 0 && other < state.devices.memory_count(); ++other)
      if (state.devices.driver(other).has_memory_at(lowest))
        throw_error(ErrorCode::invalid_use, "buffer '{}': the memory is of {}, but the device of the view is {}",
                    state.options.name, to_string(state.devices.device_of(other)), to_string(view.device));
  }
  auto storage = std::make_shared<detail::Storage>();
  storage->data = view.data;
  storage->owner = std::move(owner);
  storage->is_foreign = true;
  storage->residents = &state.devices.residents();
  const detail::BufferLock lock(state);
  lock->know(id);
  lock->residence.copies[id] = std::move(storage);
  lock->version = version;
  lock->residence.cells.update(state.whole, [&](const Box&, detail::CellState& cell) {
    detail::commit(Intent::write, id, version, CallSite{"", 0}, cell);
  });
  return out;
}

ElementType Buffer::type() const noexcept {
  return state_->type;
}
const Indices& Buffer::extents() const noexcept {
  return state_->extents;
}
const Indices& Buffer::strides() const noexcept {
  return state_->strides;
}
const std::string& Buffer::name() const noexcept {
  return state_->options.name;
}
Devices& Buffer::devices() const noexcept {
  return state_->devices;
}

Lease Buffer::read(const Access& access, CallSite where) const {
  return state_->open(request_of(*state_, Intent::read, access, where), state_);
}
Lease Buffer::write(const Access& access, CallSite where) {
  return state_->open(request_of(*state_, Intent::write, access, where), state_);
}
Lease Buffer::read_write(const Access& access, CallSite where) {
  return state_->open(request_of(*state_, Intent::read_write, access, where), state_);
}
Lease Buffer::accumulate(Combine combine, const Access& access, CallSite where) {
  detail::Request request = request_of(*state_, Intent::accumulate, access, where);
  request.combine = combine;
  return state_->open(request, state_);
}

void Buffer::prefetch(const Access& access, CallSite where) const {
  state_->prefetch(request_of(*state_, Intent::read, access, where));
}

std::vector<CopyRecord> Buffer::predict(Intent intent, const Access& access, CallSite where) const {
  return state_->predict(request_of(*state_, intent, access, where));
}

std::string Buffer::explain(Intent intent, const Access& access, CallSite where) const {
  const detail::Request request = request_of(*state_, intent, access, where);
  std::string out = fmt::format("buffer '{}': {} [{}], {}, version {}\n", name(), name_of(type()), to_string(extents()),
                                amount(state_->size_bytes, "byte"), version());
  for (MemoryId memory = 0; memory < devices().memory_count(); ++memory) {
    const Device device = devices().device_of(memory);
    const CopyState there = state(device);
    out += fmt::format("  {}: {}", to_string(device), name_of(there));
    if (there == CopyState::partly_valid) out += fmt::format(", {}", to_string(valid(device)));
    out += '\n';
  }
  const std::string lease = fmt::format("{} on {}", name_of(intent), to_string(request.device));
  try {
    const std::vector<CopyRecord> copies = state_->predict(request);
    out += fmt::format("{} would copy{}\n", lease, copies.empty() ? " nothing" : ":");
    for (const CopyRecord& copy : copies) out += fmt::format("  {}\n", to_string(copy));
  } catch (const Error& refused) {
    out += fmt::format("{} would be refused: {}\n", lease, refused.message());
  }
  return out;
}

CopyState Buffer::state(Device device) const {
  return state(device, state_->whole);
}

CopyState Buffer::state(Device device, const Region& region) const {
  const MemoryId memory = state_->devices.memory_of(device);
  {
    const detail::BufferLock lock(*state_);
    if (!lock->residence.has_copy(memory)) return CopyState::unallocated;
  }
  const Region good = valid(device) & region;
  return good == region ? CopyState::valid : good.empty() ? CopyState::stale : CopyState::partly_valid;
}

Region Buffer::valid(Device device) const {
  return state_->valid(device);
}

std::uint64_t Buffer::version() const {
  return detail::BufferLock(*state_)->version;
}

void Buffer::invalidate(const Region& region, CallSite where) {
  state_->invalidate(region, where);
}

void Buffer::freeze(CallSite where) {
  state_->freeze(where);
}
bool Buffer::is_frozen() const {
  return detail::BufferLock(*state_)->admission.is_frozen();
}

Buffer Buffer::duplicate(CallSite where) const {
  return Buffer(state_->duplicate(where));
}
Buffer Buffer::duplicate_empty() const {
  return Buffer(detail::BufferState::make(state_->type, state_->extents, state_->strides, state_->options));
}

void Buffer::check(CallSite where) const {
  const detail::BufferLock lock(*state_);
  if (lock->watch) lock->watch->before_use("check", where);
}

void Buffer::drop(Device device, CallSite where) {
  state_->drop(device, where);
}
void Buffer::evict(Device device, CallSite where) {
  state_->evict(device, where);
}

}  // namespace tranship
