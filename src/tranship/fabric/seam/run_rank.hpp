// Private: Runs one rank to its end, on any back-end.
#pragma once

#include <cstdint>
#include <exception>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// Returns the exception being handled in the form in which other ranks see it: an Error unchanged; an exception of the
/// program's own with its type and text, and code `user_exception`.
Error error_of_current_exception();

/// Runs `body`, then leaves the world as finished or failed. Returns the exception of `body`, if there was one.
std::exception_ptr run_in(RankScope& scope, FunctionRef<void(World&)> body) noexcept;

/// Runs `body` in this way in a world on the fabric that `make` returns.
std::exception_ptr run_rank(Board& board, Rank rank, std::int64_t timeout_ns,
                            FunctionRef<std::unique_ptr<Fabric>()> make, FunctionRef<void(World&)> body) noexcept;

}  // namespace tranship
