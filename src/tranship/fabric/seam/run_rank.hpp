// Private: how one rank is run to its end, whatever it runs on.
#pragma once

#include <cstdint>
#include <exception>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// What is being handled, as the other ranks learn it: an Error as it is; of exceptions of the program's own the type
/// and the text, with code `user_exception`.
Error error_of_current_exception();

/// Runs `body` and leaves the world as it ended. What it threw, if it did.
std::exception_ptr run_in(RankScope& scope, FunctionRef<void(World&)> body) noexcept;

/// The same with a world of the fabric that `make` returns.
std::exception_ptr run_rank(Board& board, Rank rank, std::int64_t timeout_ns,
                            FunctionRef<std::unique_ptr<Fabric>()> make, FunctionRef<void(World&)> body) noexcept;

}  // namespace tranship
