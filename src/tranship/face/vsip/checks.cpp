#include "tranship/face/vsip/checks.hpp"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_set>

#include <tranship/face/vsip/guarded.hpp>
#include <tranship/lower/view_overlap.hpp>

namespace tranship::vsip {
namespace {

std::atomic<tranship_vsip_handler> handler{nullptr};

struct Living {
  std::mutex mutex;
  std::unordered_set<const void*> objects;
};
/// Never destroyed, because objects may outlive static variables.
Living& living() {
  static Living* const all = new Living;
  return *all;
}

}  // namespace

void report(const char* call, const char* format, ...) {
  char message[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (const auto call_handler = handler.load()) {
    call_handler(call, message);
    return;
  }
  std::fprintf(stderr, "%s: %s\n", call, message);
  std::abort();
}

bool note_alive(const void* object) {
  return guarded(false, [object] {
    const std::lock_guard lock(living().mutex);
    living().objects.insert(object);
    return true;
  });
}

void note_destroyed(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().objects.erase(object);
}

bool is_alive(const void* object) {
  return guarded(false, [object] {
    const std::lock_guard lock(living().mutex);
    return living().objects.contains(object);
  });
}

bool is_one_of(const char* call, int value, const Values& values) {
  if (value >= values.first && value <= values.last && (value - values.first) % values.step == 0) return true;
  char list[64];
  int length = 0;
  for (int v = values.first; v <= values.last; v += values.step)
    length += std::snprintf(list + length, sizeof list - std::size_t(length), v == values.first ? "%d" : ", %d", v);
  report(call, "the %s is %d, and not one of %s", values.what, value, list);
  return false;
}

bool inside_block(const char* call, vsip_offset offset, const Dimension* dimensions, int dims, vsip_length length) {
  auto first = static_cast<long long>(offset), last = first;
  for (int d = 0; d < dims; ++d)
    if (dimensions[d].length == 0) return true;
  bool fits = first >= 0;
  for (int d = 0; d < dims; ++d) {
    long long reach = 0;
    fits &= dimensions[d].length - 1 <= vsip_length(PTRDIFF_MAX);
    fits &= !__builtin_mul_overflow(static_cast<long long>(dimensions[d].length - 1), dimensions[d].stride, &reach);
    long long& end = reach < 0 ? first : last;
    fits &= !__builtin_add_overflow(end, reach, &end);
  }
  if (fits && first >= 0 && vsip_length(last) < length) return true;
  if (fits) {
    report(call, "a view shows elements %lld to %lld of a block of %zu elements", first, last, length);
    return false;
  }
  char text[200];
  int end = 0;
  for (int d = 0; d < dims; ++d)
    end += std::snprintf(text + end, sizeof text - std::size_t(end), "%s%zu at stride %td", d == 0 ? "" : " by ",
                         dimensions[d].length, dimensions[d].stride);
  report(call, "a view of %s from offset %zu leaves a block of %zu elements", text, offset, length);
  return false;
}

bool may_share(const char* call, Sharing sharing, bool same_part, const StridedView& result,
               const StridedView& argument) {
  const bool in_place = sharing == Sharing::same_elements ||
                        (sharing == Sharing::same_scalars && same_part && result.data == argument.data);
  // Without memory for the check, the call counts as right.
  if (guarded(true, [&] { return in_place ? !share_out_of_step(result, argument) : !share_bytes(result, argument); }))
    return true;
  const ByteRange written = range_of(result), read = range_of(argument);
  const std::uintptr_t zero = std::min(written.lower, read.lower);
  report(call, "the result in bytes %zu to %zu overlaps an argument in bytes %zu to %zu",
         std::size_t(written.lower - zero), std::size_t(written.upper - zero - 1), std::size_t(read.lower - zero),
         std::size_t(read.upper - zero - 1));
  return false;
}

}  // namespace tranship::vsip

extern "C" tranship_vsip_handler tranship_vsip_set_handler(tranship_vsip_handler new_handler) {
  return tranship::vsip::handler.exchange(new_handler);
}
