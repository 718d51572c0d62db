#include "tranship/base/device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {
namespace {

constexpr std::size_t kinds_max = 64;
constexpr std::size_t name_bytes_max = 32;

/// Names are added and never removed, so readers need no lock.
struct Kinds {
  std::array<std::string, kinds_max> names{"host", "fake", "cuda"};
  std::atomic<std::size_t> count = 3;
  std::mutex mutex;  // held to add a name

  std::optional<DeviceKind> find(std::string_view name) const {
    const auto end = names.begin() + std::ptrdiff_t(count.load(std::memory_order_acquire));
    const auto at = std::find(names.begin(), end, name);
    if (at == end) return std::nullopt;
    return DeviceKind(at - names.begin());
  }
};
Kinds& kinds() {
  static auto& all = *new Kinds;
  return all;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= name_bytes_max && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

Error wrong_at(std::string_view text, std::size_t at) {
  Error error = make_error(ErrorCode::bad_text, "column {}: '{}' is no device; write host, fake:0 or cuda:0", at + 1,
                           text.substr(0, 32));
  error.column = std::int64_t(at) + 1;
  return error;
}

std::size_t common_length(std::string_view a, std::string_view b) {
  return std::size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// Parses the ordinal in `text`, which begins at `at`.
Result<int> parse_ordinal(std::string_view text, std::size_t at) {
  const char* end = text.data() + text.size();
  int ordinal = 0;
  // from_chars would accept a minus sign.
  if (at == text.size() || text[at] < '0' || text[at] > '9') return wrong_at(text, at);
  const auto [after, fault] = std::from_chars(text.data() + at, end, ordinal);
  if (fault != std::errc()) return wrong_at(text, at);
  if (after != end) return wrong_at(text, std::size_t(after - text.data()));
  return ordinal;
}

}  // namespace

DeviceKind device_kind(std::string_view name) {
  Kinds& all = kinds();
  if (const std::optional<DeviceKind> known = all.find(name)) return *known;
  if (!is_name(name))
    throw_error(ErrorCode::invalid_use,
                "'{}' cannot name a kind of device: it needs a lower-case letter, then more of them, digits and "
                "underscores, at most {}",
                printable(name), name_bytes_max);
  const std::lock_guard lock(all.mutex);
  if (const std::optional<DeviceKind> known = all.find(name)) return *known;
  const std::size_t number = all.count.load(std::memory_order_relaxed);
  if (number == kinds_max)
    throw_error(ErrorCode::invalid_use, "no kind of device can be called {}: there are {} already", name, kinds_max);
  all.names[number] = name;
  all.count.store(number + 1, std::memory_order_release);
  return DeviceKind(number);
}

std::string_view name_of(DeviceKind kind) {
  const Kinds& all = kinds();
  if (std::size_t(kind) >= all.count.load(std::memory_order_acquire)) return "?";
  return all.names[std::size_t(kind)];
}

std::string to_string(Device device) {
  if (device.is_host()) return std::string(name_of(device.kind()));
  return fmt::format("{}:{}", name_of(device.kind()), device.ordinal());
}

Result<Device> parse_device(std::string_view text) {
  if (text == "host") return Device::host();
  std::size_t right = common_length(text, "host");
  const std::size_t known = kinds().count.load(std::memory_order_acquire);
  for (std::size_t number = 1; number < known; ++number) {
    const auto kind = DeviceKind(number);
    const std::string head = fmt::format("{}:", name_of(kind));
    if (text.starts_with(head)) {
      const Result<int> ordinal = parse_ordinal(text, head.size());
      if (!ordinal) return ordinal.error();
      return Device::of(kind, ordinal.value());
    }
    right = std::max(right, common_length(text, head));
  }
  return wrong_at(text, right);
}

}  // namespace tranship
