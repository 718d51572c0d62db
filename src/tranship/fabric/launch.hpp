// launch: runs a function as n ranks, which are threads of this process.
#pragma once

#include <cstdint>
#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

struct LaunchOptions {
  int ranks = 1;
  /// The ranks' timeout at the start; default_timeout_ns() where there is none.
  std::optional<std::int64_t> timeout_ns = std::nullopt;
  Pinning pinning = Pinning::automatic;
};

namespace detail {
void launch_ranks(const LaunchOptions& options, FunctionRef<void(World&)> body);
}

/// Runs `f(World&)` on `options.ranks` new threads and returns when all have ended. If ranks threw, rethrows what the
/// first of them threw (with Error::rank set), after all threads have ended. Throws `invalid_use` for less than 1 rank.
template <class F>
void launch(const LaunchOptions& options, F&& f) {
  detail::launch_ranks(options, [&f](World& world) { f(world); });
}

template <class F>
void launch(int ranks, F&& f) {
  launch(LaunchOptions{.ranks = ranks}, f);
}

}  // namespace tranship
