#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_set>

#include <tranship/face/vsip/checks.hpp>

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

void note_alive(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().objects.insert(object);
}

void note_destroyed(const void* object) {
  const std::lock_guard lock(living().mutex);
  living().objects.erase(object);
}

bool is_alive(const void* object) {
  const std::lock_guard lock(living().mutex);
  return living().objects.contains(object);
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

}  // namespace tranship::vsip

extern "C" tranship_vsip_handler tranship_vsip_set_handler(tranship_vsip_handler new_handler) {
  return tranship::vsip::handler.exchange(new_handler);
}
