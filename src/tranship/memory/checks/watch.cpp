#include "tranship/memory/checks/watch.hpp"

#include <cstring>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/memory/buffer/buffer_state.hpp>

namespace tranship::detail {

Poison::Poison(ElementType type) {
  const ElementType part = part_of(type);
  const int part_width = tranship::size_bytes(part);
  width = std::min(tranship::size_bytes(type), 16);
  for (int i = 0; i < 16; ++i) bytes[i] = i % 2 == 0 ? 0xad : 0xde;
  is_told_apart = part_width > 2 || part == ElementType::f16 || part == ElementType::bf16 || part == ElementType::bool8;
  // A quiet NaN with a recognisable payload; the exponent is at the upper end of each part.
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
      case ElementType::f128:  // 80 bits: exponent and sign, explicit leading bit, then padding
        bytes[at + 9] = 0x7f, bytes[at + 8] = 0xff, bytes[at + 7] = 0xed;
        std::memset(bytes + at + 10, 0, 6);
        break;
      default:
        break;
    }
}

Watch::Watch(BufferCore& buffer, Checks checks)
    : buffer_(buffer),
      checks_(checks),
      poison_(buffer.shape.type),
      copies_(buffer.residence.copies.size()),
      last_closed_(buffer.residence.copies.size(), CallSite{"", 0}) {}

void Watch::know(std::size_t memories) {
  copies_.resize(memories);
  last_closed_.resize(memories, CallSite{"", 0});
}

bool Watch::sees(MemoryId memory) const {
  return buffer_.residence.copies[memory] && buffer_.shape.devices.driver(memory).runs_host_functions();
}

bool Watch::guards(MemoryId memory) const {
  return checks_ >= Checks::guard && buffer_.shape.devices.driver(memory).is_host_memory();
}

Guard* Watch::guard_of(MemoryId memory) const {
  return buffer_.residence.copies[memory] ? buffer_.residence.copies[memory]->guard.get() : nullptr;
}

Watch::OwnWork::OwnWork(const Watch* watch) : watch_(watch) {
  if (!watch) return;
  for (MemoryId memory = 0; memory < MemoryId(watch->buffer_.residence.copies.size()); ++memory)
    opened_.push_back(std::make_unique<OwnAccess>(watch->guard_of(memory)));
}

Watch::OwnWork::~OwnWork() {
  for (MemoryId memory = 0; memory < MemoryId(opened_.size()); ++memory) {
    if (!watch_->guard_of(memory)) continue;
    try {
      for (const Before& one :
           watch_->buffer_.residence.work_before(memory, Intent::write, watch_->buffer_.shape.whole.boxes()))
        settle(one.event, Deadline::after_ns(device_timeout_ns));
    } catch (const Error&) {
      // They stay open for good, because work that may still touch them must not fault.
      watch_->guard_of(memory)->open();
    }
  }
}

template <class F>
void Watch::at_once(MemoryId memory, F f) const {
  const OwnAccess access(guard_of(memory));
  Stream& stream = buffer_.shape.devices.copy_stream(memory);
  for (const Before& one : buffer_.residence.work_before(memory, Intent::write, buffer_.shape.whole.boxes()))
    come_after(&stream, one);
  run_on(stream, f);
  finish(stream.event(), Deadline::after_ns(device_timeout_ns));
}

std::uint64_t Watch::sum_of(MemoryId memory, const Region& region) const {
  if (!sees(memory)) return 0;
  // FNV-1a over 8 bytes at a time, in four independent sums.
  constexpr std::uint64_t prime = 0x100000001b3;
  std::uint64_t sums[4] = {0xcbf29ce484222325, 1, 2, 3};
  const auto* data = static_cast<const unsigned char*>(buffer_.residence.copies[memory]->data);
  const auto add = [&](std::uint64_t& sum, const unsigned char* at, Index bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, std::size_t(bytes));
    sum = (sum ^ word) * prime;
  };
  at_once(memory, [&] {
    for (const Box& box : region.boxes())
      buffer_.shape.for_each_row(box, [&](Index offset, Index count) {
        Index rest = count * tranship::size_bytes(buffer_.shape.type);
        const unsigned char* at = data + offset;
        for (; rest >= 32; at += 32, rest -= 32)
          for (Index lane = 0; lane < 4; ++lane) add(sums[lane], at + 8 * lane, 8);
        for (; rest > 0; at += 8, rest -= 8) add(sums[0], at, std::min<Index>(rest, 8));
      });
  });
  for (int lane = 1; lane < 4; ++lane) sums[0] = (sums[0] ^ sums[lane]) * prime;
  return sums[0];
}

void Watch::fill(MemoryId memory, const Region& region) const {
  if (!sees(memory)) return;
  auto* data = static_cast<unsigned char*>(buffer_.residence.copies[memory]->data);
  at_once(memory, [&] {
    for (const Box& box : region.boxes())
      buffer_.shape.for_each_row(box, [&](Index offset, Index count) {
        const Index bytes = count * tranship::size_bytes(buffer_.shape.type);
        for (Index at = 0; at < bytes; at += poison_.width)
          std::memcpy(data + offset + at, poison_.bytes, std::size_t(poison_.width));
      });
  });
}

Index Watch::count_poison(MemoryId memory, const Region& region) const {
  if (!sees(memory)) return 0;
  Index found = 0;
  const auto* data = static_cast<const unsigned char*>(buffer_.residence.copies[memory]->data);
  const Index size = tranship::size_bytes(buffer_.shape.type);
  at_once(memory, [&] {
    for (const Box& box : region.boxes())
      buffer_.shape.for_each_row(box, [&](Index offset, Index count) {
        for (Index i = 0; i < count; ++i)
          found += std::memcmp(data + offset + i * size, poison_.bytes, std::size_t(poison_.width)) == 0;
      });
  });
  return found;
}

Region Watch::at_rest(MemoryId memory) const {
  Region out = buffer_.shape.whole;
  buffer_.admission.for_each_open([&](const OpenLease& lease) {
    if (lease.memory == memory && lease.intent != Intent::read) out = out - buffer_.admission.region_of(lease);
  });
  return out;
}

bool Watch::is_unchanged(MemoryId memory) {
  Seen& seen = copies_[memory];
  if (!seen.is_known || !buffer_.residence.copies[memory]) return true;
  seen.is_known = false;
  try {
    seen.is_known = sum_of(memory, at_rest(memory)) == seen.sum;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_lost) throw;
    return true;  // there is nothing left to compare
  }
  return seen.is_known;
}

std::string Watch::change_of(MemoryId memory, const std::string& use) const {
  const CallSite last = last_closed_[memory];
  const std::string since = last.line == 0 ? "" : fmt::format("after the lease of {} was closed and ", to_string(last));
  return fmt::format(
      "buffer '{}': its copy on {} was changed {}before {}: a pointer has been kept, or a lease has "
      "written beyond its cells",
      buffer_.shape.options.name, tranship::to_string(buffer_.shape.devices.device_of(memory)), since, use);
}

void Watch::before_use(const char* use, CallSite where) {
  report();
  for (MemoryId memory = 0; memory < MemoryId(copies_.size()); ++memory) {
    if (is_unchanged(memory)) continue;
    accept(memory);
    throw_error(ErrorCode::invalid_use, "{}", change_of(memory, fmt::format("the {} of {}", use, to_string(where))));
  }
}

void Watch::before_loss(MemoryId memory) noexcept {
  find([&] {
    if (!is_unchanged(memory)) add_found(change_of(memory, "its memory was given to others"));
  });
}

void Watch::opened(int slot) {
  const OpenLease& lease = buffer_.admission.lease(slot);
  const Region& region = buffer_.admission.region_of(lease);
  if (Guard* const guard = guard_of(lease.memory)) guard->open(lease.intent, lease.where);
  if (lease.intent == Intent::write && checks_ >= Checks::poison) fill(lease.memory, region);
  remember(lease.memory);
  if (checks_ < Checks::checksums) return;
  lent_.resize(std::size_t(buffer_.admission.slot_count()));
  if (lease.intent == Intent::read) lent_[slot] = sum_of(lease.memory, region);
}

template <class F>
void Watch::find(F f) noexcept {
  try {
    f();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_lost) add_found(error.message());
  }
}

void Watch::add_found(const std::string& text) noexcept {
  found_ += (found_.empty() ? "" : "\n") + text;
}

void Watch::closing(int slot, Stream& stream, Ending ending) noexcept {
  const OpenLease& lease = buffer_.admission.lease(slot);
  if (checks_ != Checks::none) find([&] { check_closing(slot, stream, ending); });
  // Copies that the commit makes stale are compared before they are poisoned.
  for (MemoryId memory = 0; memory < MemoryId(copies_.size()); ++memory)
    find([&] {
      if (is_unchanged(memory)) return;
      accept(memory);
      add_found(
          change_of(memory, fmt::format("the {} of {} was closed", name_of(lease.intent), to_string(lease.where))));
    });
  last_closed_[lease.memory] = lease.where;
}

void Watch::check_closing(int slot, Stream& stream, Ending ending) {
  finish(stream.event(), Deadline::after_ns(device_timeout_ns));
  const OpenLease& lease = buffer_.admission.lease(slot);
  const Region& region = buffer_.admission.region_of(lease);
  if (lease.is_void || ending == Ending::abandoned) return;
  if (lease.intent == Intent::write && poison_.is_told_apart)
    if (const Index left = count_poison(lease.memory, region))
      add_found(fmt::format("buffer '{}': the write of {} on {} at {} has left {} of its {} unwritten",
                            buffer_.shape.options.name, tranship::to_string(region),
                            tranship::to_string(buffer_.shape.devices.device_of(lease.memory)), to_string(lease.where),
                            left, amount(region.count(), "cell")));
  if (checks_ < Checks::checksums || lease.intent != Intent::read || sum_of(lease.memory, region) == lent_[slot])
    return;
  accept(lease.memory);
  add_found(fmt::format("buffer '{}': {} on {} was written under the lease to read of {}", buffer_.shape.options.name,
                        tranship::to_string(region), tranship::to_string(buffer_.shape.devices.device_of(lease.memory)),
                        to_string(lease.where)));
}

void Watch::closed(int slot, Ending ending) noexcept {
  const OpenLease& lease = buffer_.admission.lease(slot);
  const MemoryId memory = lease.memory;
  const Region& region = buffer_.admission.region_of(lease);
  if (lease.intent != Intent::read && checks_ != Checks::none)
    for (MemoryId other = 0; other < MemoryId(buffer_.residence.copies.size()); ++other)
      if ((other != memory || ending == Ending::abandoned) && buffer_.residence.copies[other] &&
          buffer_.residence.copies[other].use_count() == 1)
        find([&] { poison_stale(other, region); });
  find([&] { remember(memory); });
  close_pages(slot);
}

void Watch::poison_stale(MemoryId memory, const Region& region) {
  const Region stale = buffer_.residence.cells_where(region, [&](const CellState& cell) {
    return cell.touched.has(memory) && !cell.valid.has(memory) && !cell.partial.has(memory);
  });
  if (stale.empty()) return;
  fill(memory, stale);
  remember(memory);
}

void Watch::close_pages(int slot) noexcept {
  const OpenLease& lease = buffer_.admission.lease(slot);
  const MemoryId memory = lease.memory;
  const CallSite where = lease.where;
  if (Guard* const guard = lease.storage ? lease.storage->guard.get() : guard_of(memory))
    guard->close(lease.intent, where);
  if (lease.intent == Intent::read) return;
  for (MemoryId other = 0; other < MemoryId(buffer_.residence.copies.size()); ++other)
    if (Guard* const guard = other == memory ? nullptr : guard_of(other))
      guard->written_elsewhere(buffer_.shape.devices.device_of(memory), where);
}

void Watch::forget(MemoryId memory) {
  copies_[memory].is_known = false;
}

void Watch::remember(MemoryId memory) {
  Seen& seen = copies_[memory];
  seen.is_known = false;
  if ((checks_ < Checks::checksums && !seen.has_pointers) || !buffer_.residence.copies[memory]) return;
  seen.sum = sum_of(memory, at_rest(memory));
  seen.is_known = true;
}

void Watch::accept(MemoryId memory) {
  remember(memory);
  for (std::size_t slot = 0; slot < lent_.size(); ++slot)
    if (const OpenLease& lease = buffer_.admission.lease(int(slot));
        lease.is_open && lease.memory == memory && lease.intent == Intent::read)
      lent_[slot] = sum_of(memory, buffer_.admission.region_of(lease));
}

void Watch::note_pointers(MemoryId memory) {
  copies_[memory].has_pointers = true;
}

void Watch::forget_pointers() {
  for (Seen& seen : copies_) {
    seen.has_pointers = false;
    seen.is_known = seen.is_known && checks_ >= Checks::checksums;
  }
}

void Watch::take_over(const Watch& other) {
  last_closed_ = other.last_closed_;
  for (MemoryId memory = 0; memory < MemoryId(copies_.size()); ++memory) {
    copies_[memory].has_pointers = other.copies_[memory].has_pointers;
    remember(memory);
  }
}

void Watch::report() {
  if (found_.empty()) return;
  const std::string found = std::exchange(found_, std::string());
  throw_error(ErrorCode::invalid_use, "{}", found);
}

}  // namespace tranship::detail
