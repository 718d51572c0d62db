// The kinds of devices that suites of devices and buffers run on, and kernels of tests on them. Cards are among them
// where this machine has one, or TRANSHIP_CUDA names a double; elsewhere such tests are skipped with the reason.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/cuda/cuda_devices.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/fake_devices.hpp>

namespace tranship::test {

/// The cards of this process: how many, and a note that says why there are none.
inline DeviceFamilyState cards_here() {
  for (const DeviceFamily& family : device_families())
    if (family.kind == CudaDevices::kind) return family.state();
  return {.count = 0, .note = "no library that the program is linked with has devices of kind cuda"};
}
/// Why there are no cards here; empty where there are.
inline std::string why_no_card() {
  const DeviceFamilyState state = cards_here();
  return state.count > 0 ? std::string() : state.note;
}

/// Returns true where the cards are doubles that count what kernels do (cuda/software).
inline bool are_software_cards() {
  const char* const setting = std::getenv("TRANSHIP_CUDA");
  return setting && std::string_view(setting).starts_with("software");
}

/// Two devices that work at once, late, in threads, or that are cards: the first two, or twice the only one. Kernels of
/// tests are host functions, and on a card they touch a copy in the host's memory (run_kernel).
enum class DeviceCase { eager, deferred, threaded, card };
inline void PrintTo(DeviceCase one, std::ostream* out) {
  static const char* const names[] = {"eager", "deferred", "threaded", "card"};
  *out << names[int(one)];
}
inline std::string name_of(DeviceCase one) {
  static const char* const names[] = {"eager", "deferred", "threaded", "card"};
  return names[int(one)];
}
inline Device device_of(DeviceCase one, int ordinal) {
  return one == DeviceCase::card ? Device::cuda(ordinal) : Device::fake(ordinal);
}
/// None where a test of cards is about to be skipped.
inline DevicesOptions options_of(DeviceCase one, const FakeDevices& like = {.count = 2}) {
  if (one == DeviceCase::card) {
    const int cards = cards_here().count;
    if (cards == 0) return {};
    CudaDevices out;
    for (int i = 0; i < like.count; ++i) out.cards.push_back(i % std::min(cards, 2));
    return {.kinds = {out}};
  }
  FakeDevices fake = like;
  fake.timing = one == DeviceCase::eager      ? FakeTiming::eager
                : one == DeviceCase::deferred ? FakeTiming::deferred
                                              : FakeTiming::threaded;
  return {.kinds = {fake}};
}

/// Gives the stream of a card a kernel that writes where there is no memory. The card is lost when the kernel runs,
/// which may be before the call has returned: it may throw `device_lost`.
enum class Stray { copy, fill };
inline void give_stray_kernel(Stream& stream, Driver& driver, Stray how = Stray::copy) {
  auto* const memory = static_cast<std::byte*>(driver.allocate(4096));
  // Rows are a terabyte apart.
  const CopyBlock beyond{
      .dims = 2, .extents = {5, 33}, .source_strides = {8, 64}, .target_strides = {(long long)1 << 40, 64}};
  const double zero = 0;
  if (how == Stray::copy)
    stream.copy(beyond, 8, memory, memory);
  else
    stream.fill(beyond, 8, &zero, memory);
}

/// Gives a lease's stream f(data) as a kernel. It may touch the elements from `lower` to `upper` of the copy's memory,
/// counted from the first of the buffer. Where host functions cannot, they are copied to the host and back.
template <class T, class F>
void run_kernel(const Lease& lease, Index lower, Index upper, F f) {
  T* const data = lease.data<T>();
  Stream& stream = lease.stream();
  if (lease.device().kind() != DeviceKind::cuda) return run_on(stream, [data, f] { f(data); });
  using Value = std::remove_const_t<T>;
  const std::shared_ptr<Value[]> mirror(new Value[std::size_t(upper - lower)]);
  constexpr int width = sizeof(Value) > 16 ? 16 : int(sizeof(Value));
  const CopyBlock row = row_of((upper - lower) * Index(sizeof(Value)) / width, width);
  if (upper > lower) stream.copy(row, width, data + lower, mirror.get());
  run_on(stream, [mirror, lower, f] { f(mirror.get() - lower); });
  if constexpr (!std::is_const_v<T>)
    if (upper > lower) stream.copy(row, width, mirror.get(), data + lower);
  run_on(stream, [mirror] {});  // It stays until then.
}

}  // namespace tranship::test
