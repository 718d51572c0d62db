#include "tranship/face/vsip/checks.hpp"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <unordered_set>
#include <vector>

#include <tranship/face/vsip/guarded.hpp>

namespace tranship::vsip {
namespace {

std::atomic<tranship_vsip_handler> handler{nullptr};

struct Living {
  std::mutex mutex;
  std::unordered_set<const void*> objects;
};
/// Never destroyed: objects may outlive static variables.
Living& living() {
  static Living* const all = new Living;
  return *all;
}

}  // namespace

void report(const char* call, const char* format, ...) {
  char message[256];
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

bool lies_inside(vsip_offset offset, const Dimension* dimensions, int dims, vsip_length length, long long* first,
                 long long* last) {
  *first = *last = static_cast<long long>(offset);
  for (int d = 0; d < dims; ++d)
    if (dimensions[d].length == 0) return true;
  bool fits = *first >= 0;
  for (int d = 0; d < dims; ++d) {
    long long reach = 0;
    fits &= dimensions[d].length - 1 <= vsip_length(PTRDIFF_MAX);
    fits &= !__builtin_mul_overflow(static_cast<long long>(dimensions[d].length - 1), dimensions[d].stride, &reach);
    long long& end = reach < 0 ? *first : *last;
    fits &= !__builtin_add_overflow(end, reach, &end);
  }
  return fits && *first >= 0 && vsip_length(*last) < length;
}

namespace {

/// Addresses from the first byte to the one behind the last.
struct Range {
  std::uintptr_t begin, end;
};
Range range_of(const Footprint& shown) {
  Range out{shown.first, shown.first + std::uintptr_t(shown.width)};
  for (const auto& d : shown.dimensions) {
    if (d.length == 0) return {0, 0};
    (d.stride < 0 ? out.begin : out.end) += std::uintptr_t(d.stride) * (d.length - 1);
  }
  return out;
}

/// Calls f with the address of each element.
template <class F>
void each_address(const Footprint& shown, F f) {
  for (vsip_index i = 0; i < shown.dimensions[0].length; ++i)
    for (vsip_index j = 0; j < shown.dimensions[1].length; ++j)
      f(shown.first + i * std::uintptr_t(shown.dimensions[0].stride) + j * std::uintptr_t(shown.dimensions[1].stride));
}

/// Whether no element shares bytes with any but the same element of the other footprint.
bool in_step(const Footprint& a, const Footprint& b) {
  const auto between = std::ptrdiff_t(std::max(a.first, b.first) - std::min(a.first, b.first));
  for (int d = 0; d < 2; ++d) {
    if (a.dimensions[d].length != b.dimensions[d].length) return false;
    if (a.dimensions[d].length == 1) continue;
    const vsip_stride stride = a.dimensions[d].stride;
    if (stride != b.dimensions[d].stride || between + std::max(a.width, b.width) > std::abs(stride)) return false;
  }
  return true;
}

/// Whether some byte lies in elements of both. Marks where the one has elements, as far as the other one reaches.
bool share_bytes(const Footprint& a, const Footprint& b, const Range& both) {
  auto unit = std::gcd(std::gcd(a.width, b.width), std::ptrdiff_t(a.first - b.first));
  for (const auto* shown : {&a, &b})
    for (const auto& d : shown->dimensions) unit = std::gcd(unit, d.stride);
  std::vector<bool> marked((both.end - both.begin) / std::uintptr_t(unit));
  const auto each_mark = [&](const Footprint& shown, auto f) {
    each_address(shown, [&](std::uintptr_t at) {
      const auto end = std::min(at + std::uintptr_t(shown.width), both.end);
      for (at = std::max(at, both.begin); at < end; at += std::uintptr_t(unit))
        f(std::size_t((at - both.begin) / std::uintptr_t(unit)));
    });
  };
  bool shared = false;
  each_mark(a, [&](std::size_t at) { marked[at] = true; });
  each_mark(b, [&](std::size_t at) { shared |= marked[at]; });
  return shared;
}

}  // namespace

bool may_share(const char* call, Sharing sharing, const Footprint& result, const Footprint& argument) {
  const Range written = range_of(result), read = range_of(argument);
  const Range both{std::max(written.begin, read.begin), std::min(written.end, read.end)};
  if (both.begin >= both.end || (sharing == Sharing::same_elements && in_step(result, argument))) return true;
  // Without memory for the marks nothing is known to be wrong.
  if (!guarded(false, [&] { return share_bytes(result, argument, both); })) return true;
  const std::uintptr_t zero = std::min(written.begin, read.begin);
  report(call, "the result in bytes %zu to %zu overlaps an argument in bytes %zu to %zu",
         std::size_t(written.begin - zero), std::size_t(written.end - zero - 1), std::size_t(read.begin - zero),
         std::size_t(read.end - zero - 1));
  return false;
}

}  // namespace tranship::vsip

extern "C" tranship_vsip_handler tranship_vsip_set_handler(tranship_vsip_handler new_handler) {
  return tranship::vsip::handler.exchange(new_handler);
}
