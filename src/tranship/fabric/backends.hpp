// The table of back-ends: what this build can run on, and why it cannot run on the others.
#pragma once

#include <span>
#include <string_view>

namespace tranship {

struct Backend {
  enum class State { present, absent };
  std::string_view name;
  State state;
  /// What it is, or why it is absent.
  std::string_view note;
};

std::span<const Backend> available_backends() noexcept;

}  // namespace tranship
