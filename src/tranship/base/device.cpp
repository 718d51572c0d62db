#include "tranship/base/device.hpp"

#include <algorithm>
#include <charconv>

#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

const char* word_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::host:
      return "host";
    case DeviceKind::fake:
      return "fake";
    case DeviceKind::cuda:
      return "cuda";
  }
  return "?";
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

/// What follows "fake:".
Result<int> parse_ordinal(std::string_view text, std::size_t at) {
  const char* end = text.data() + text.size();
  int ordinal = 0;
  // from_chars would take a sign.
  if (at == text.size() || text[at] < '0' || text[at] > '9') return wrong_at(text, at);
  const auto [after, fault] = std::from_chars(text.data() + at, end, ordinal);
  if (fault != std::errc()) return wrong_at(text, at);
  if (after != end) return wrong_at(text, std::size_t(after - text.data()));
  return ordinal;
}

}  // namespace

std::string to_string(Device device) {
  if (device.is_host()) return word_of(device.kind());
  return fmt::format("{}:{}", word_of(device.kind()), device.ordinal());
}

Result<Device> parse_device(std::string_view text) {
  if (text == "host") return Device::host();
  std::size_t right = common_length(text, "host");
  for (const DeviceKind kind : {DeviceKind::fake, DeviceKind::cuda}) {
    const std::string head = fmt::format("{}:", word_of(kind));
    if (text.starts_with(head)) {
      const Result<int> ordinal = parse_ordinal(text, head.size());
      if (!ordinal) return ordinal.error();
      return kind == DeviceKind::fake ? Device::fake(ordinal.value()) : Device::cuda(ordinal.value());
    }
    right = std::max(right, common_length(text, head));
  }
  return wrong_at(text, right);
}

}  // namespace tranship
