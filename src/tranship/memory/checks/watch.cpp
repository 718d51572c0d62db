#include "tranship/memory/checks/watch.hpp"

#include <cstring>

#include <tranship/base/fail.hpp>
#include <tranship/memory/buffer/buffer_state.hpp>

namespace tranship::detail {

Poison::Poison(ElementType type) {
  const ElementType part = part_of(type);
  const int part_width = tranship::size_bytes(part);
  width = std::min(tranship::size_bytes(type), 16);
  for (int i = 0; i < 16; ++i) bytes[i] = i % 2 == 0 ? 0xad : 0xde;
  // A quiet NaN with a payload of its own; the exponent is at the upper end of each part.
  for (int at = 0; at < width; at += part_width) switch (part) {
      case ElementType::f16:
        bytes[at + 1] = 0x7e;
        break;
      case ElementType::bf16:
        bytes[at + 1] = 0x7f, bytes[at] = 0xed;
        break;
      case ElementType::f32:
        bytes[at + 3] = 0x7f, bytes[at + 2] = 0xed;
        break;
      case ElementType::f64:
        bytes[at + 7] = 0x7f, bytes[at + 6] = 0xfd;
        break;
      case ElementType::f128:  // 80 bits: exponent and sign, the explicit leading bit, then padding
        bytes[at + 9] = 0x7f, bytes[at + 8] = 0xff, bytes[at + 7] = 0xed;
        std::memset(bytes + at + 10, 0, 6);
        break;
      default:
        break;
    }
}

Watch::Watch(BufferState& buffer, Checks checks)
    : buffer_(buffer),
      checks_(checks),
      poison_(buffer.type),
      copies_(buffer.copies.size()),
      last_closed_(buffer.copies.size(), CallSite{"", 0}) {}

bool Watch::guards(MemoryId memory) const {
  return checks_ >= Checks::guard && buffer_.devices.driver(memory).is_host_memory();
}

Guard* Watch::guard_of(MemoryId memory) const {
  return buffer_.copies[memory] ? buffer_.copies[memory]->guard.get() : nullptr;
}

Watch::OwnWork::OwnWork(const Watch* watch) : watch_(watch) {
  if (!watch) return;
  for (MemoryId memory = 0; memory < MemoryId(watch->buffer_.copies.size()); ++memory)
    opened_.push_back(std::make_unique<OwnAccess>(watch->guard_of(memory)));
}

Watch::OwnWork::~OwnWork() {
  for (MemoryId memory = 0; memory < MemoryId(opened_.size()); ++memory) {
    if (!watch_->guard_of(memory)) continue;
    try {
      for (const Event& event : watch_->buffer_.events_before(memory, Intent::write, watch_->buffer_.whole.boxes()))
        settle(event, Deadline::after_ns(device_timeout_ns));
    } catch (const Error&) {
      // For good: work that may still touch the pages must find them open.
      watch_->guard_of(memory)->open();
    }
  }
}

template <class F>
void Watch::at_once(MemoryId memory, F f) const {
  const OwnAccess access(guard_of(memory));
  Stream& stream = buffer_.devices.copy_stream(memory);
  for (const Event& event : buffer_.events_before(memory, Intent::write, buffer_.whole.boxes())) stream.wait(event);
  run_on(stream, f);
  finish(stream.event(), Deadline::after_ns(device_timeout_ns));
}

std::uint64_t Watch::sum_of(MemoryId memory, const Region& region) const {
  // FNV-1a over 8 bytes at a time.
  std::uint64_t sum = 0xcbf29ce484222325;
  const auto* data = static_cast<const unsigned char*>(buffer_.copies[memory]->data);
  at_once(memory, [&] {
    for (const Box& box : region.boxes())
      buffer_.for_each_row(box, [&](Index offset, Index count) {
        Index rest = count * tranship::size_bytes(buffer_.type);
        for (const unsigned char* at = data + offset; rest > 0; at += 8, rest -= 8) {
          std::uint64_t word = 0;
          std::memcpy(&word, at, std::size_t(std::min<Index>(rest, 8)));
          sum = (sum ^ word) * 0x100000001b3;
        }
      });
  });
  return sum;
}

void Watch::fill(MemoryId memory, const Region& region) const {
  auto* data = static_cast<unsigned char*>(buffer_.copies[memory]->data);
  at_once(memory, [&] {
    for (const Box& box : region.boxes())
      buffer_.for_each_row(box, [&](Index offset, Index count) {
        const Index bytes = count * tranship::size_bytes(buffer_.type);
        for (Index at = 0; at < bytes; at += poison_.width)
          std::memcpy(data + offset + at, poison_.bytes, std::size_t(poison_.width));
      });
  });
}

Index Watch::count_poison(MemoryId memory, const Region& region) const {
  Index found = 0;
  const auto* data = static_cast<const unsigned char*>(buffer_.copies[memory]->data);
  const Index size = tranship::size_bytes(buffer_.type);
  at_once(memory, [&] {
    for (const Box& box : region.boxes())
      buffer_.for_each_row(box, [&](Index offset, Index count) {
        for (Index i = 0; i < count; ++i)
          found += std::memcmp(data + offset + i * size, poison_.bytes, std::size_t(poison_.width)) == 0;
      });
  });
  return found;
}

void Watch::before_use(MemoryId memory, Intent intent, CallSite where) {
  report();
  Seen& seen = copies_[memory];
  if (!seen.is_known || buffer_.open_lease_on(memory) || !buffer_.copies[memory]) return;
  const std::uint64_t sum = sum_of(memory, buffer_.whole);
  if (sum == seen.sum) return;
  seen.is_known = false;
  throw_error(ErrorCode::invalid_use,
              "buffer '{}': its copy on {} was changed after the lease of {} was closed and before the {} of {}: a "
              "pointer has been kept",
              buffer_.options.name, tranship::to_string(buffer_.devices.device_of(memory)),
              to_string(last_closed_[memory]), name_of(intent), to_string(where));
}

void Watch::opened(int slot) {
  const BufferState::OpenLease& lease = buffer_.leases[slot];
  const Region& region = buffer_.region_of(lease);
  if (Guard* const guard = guard_of(lease.memory)) guard->open(lease.intent, lease.where);
  if (lease.intent == Intent::write) fill(lease.memory, region);
  if (checks_ < Checks::checksums) return;
  lent_.resize(buffer_.leases.size());
  if (lease.intent == Intent::read) lent_[slot] = sum_of(lease.memory, region);
}

template <class F>
void Watch::find(F f) noexcept {
  try {
    f();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_lost) found_ = error.message();
  }
}

void Watch::closing(int slot, Stream& stream) noexcept {
  const BufferState::OpenLease& lease = buffer_.leases[slot];
  last_closed_[lease.memory] = lease.where;
  find([&] { check_closing(slot, stream); });
}

void Watch::check_closing(int slot, Stream& stream) {
  finish(stream.event(), Deadline::after_ns(device_timeout_ns));
  const BufferState::OpenLease& lease = buffer_.leases[slot];
  const Region& region = buffer_.region_of(lease);
  if (lease.intent == Intent::write && !lease.is_void)
    if (const Index left = count_poison(lease.memory, region))
      found_ = fmt::format("buffer '{}': the write of {} on {} at {} has left {} of its {} cells unwritten",
                           buffer_.options.name, tranship::to_string(region),
                           tranship::to_string(buffer_.devices.device_of(lease.memory)), to_string(lease.where), left,
                           region.count());
  if (checks_ >= Checks::checksums && lease.intent == Intent::read && !lease.is_void &&
      sum_of(lease.memory, region) != lent_[slot])
    found_ = fmt::format("buffer '{}': {} on {} was written under the lease to read of {}", buffer_.options.name,
                         tranship::to_string(region), tranship::to_string(buffer_.devices.device_of(lease.memory)),
                         to_string(lease.where));
}

void Watch::closed(int slot) noexcept {
  const BufferState::OpenLease& lease = buffer_.leases[slot];
  const MemoryId memory = lease.memory;
  const Region& region = buffer_.region_of(lease);
  if (lease.intent != Intent::read)
    for (MemoryId other = 0; other < MemoryId(buffer_.copies.size()); ++other)
      if (other != memory && buffer_.copies[other] && buffer_.copies[other].use_count() == 1)
        find([&] { poison_stale(other, region); });
  find([&] {
    if (!buffer_.open_lease_on(memory)) remember(memory);
  });
  close_pages(slot);
}

void Watch::poison_stale(MemoryId memory, const Region& region) {
  const Region stale = buffer_.cells_where(region, [&](const CellState& cell) {
    return cell.touched.has(memory) && !cell.valid.has(memory) && !cell.partial.has(memory);
  });
  if (stale.empty()) return;
  fill(memory, stale);
  if (!buffer_.open_lease_on(memory)) remember(memory);
}

void Watch::close_pages(int slot) noexcept {
  const BufferState::OpenLease& lease = buffer_.leases[slot];
  const MemoryId memory = lease.memory;
  const CallSite where = lease.where;
  if (Guard* const guard = lease.storage ? lease.storage->guard.get() : guard_of(memory))
    guard->close(lease.intent, where);
  if (lease.intent == Intent::read) return;
  for (MemoryId other = 0; other < MemoryId(buffer_.copies.size()); ++other)
    if (Guard* const guard = other == memory ? nullptr : guard_of(other))
      guard->written_elsewhere(buffer_.devices.device_of(memory), where);
}

void Watch::forget(MemoryId memory) {
  copies_[memory].is_known = false;
}

void Watch::remember(MemoryId memory) {
  if (checks_ >= Checks::checksums) copies_[memory] = {true, sum_of(memory, buffer_.whole)};
}

void Watch::report() {
  if (found_.empty()) return;
  const std::string found = std::exchange(found_, std::string());
  throw_error(ErrorCode::invalid_use, "{}", found);
}

}  // namespace tranship::detail
