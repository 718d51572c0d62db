// Private: The table of back-ends of this build, which of them can run here, and why the others cannot. A back-end in a
// library of its own registers itself.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

class RankScope;
class World;
struct JoinOptions;
struct LaunchOptions;
struct WorldId;

struct Backend {
  enum class State { present, absent };
  std::string_view name;
  State state;
  /// Describes the back-end, or says why it is absent.
  std::string_view note;
  /// Joins the world for which this back-end started this process; empty if it did not. nullptr if the back-end starts
  /// no processes.
  std::optional<RankScope> (*join)() = nullptr;
  /// Implement WorldId::make and RankScope::join with an id; the latter returns nothing if the id is not one of this
  /// back-end. nullptr if processes cannot join its worlds by an id.
  WorldId (*make_id)() = nullptr;
  std::optional<RankScope> (*join_by_id)(const WorldId& id, Rank rank, int size, const JoinOptions& options) = nullptr;
  /// Implements launch_processes() if this back-end is chosen: runs a function as ranks in processes forked from this
  /// one. nullptr if it cannot be chosen.
  void (*launch)(const LaunchOptions& options, FunctionRef<void(World&)> body) = nullptr;
};

/// Returns the back-ends in the order in which they are asked whether this process is one of their ranks: the back-end
/// that registered last comes first.
std::vector<Backend> available_backends();

/// Returns the back-end that the environment variable TRANSHIP_BACKEND names, on which launch_processes() runs ranks;
/// empty if the variable is not set. Throws `invalid_use` for an unknown name and for a back-end without `launch`.
std::optional<Backend> chosen_backend();

/// Adds a back-end, or replaces an absent one of that name. Must be called before any other thread runs, as
/// initialisers of static variables are. Throws `invalid_use`, with the name, for a back-end that is already registered
/// or lacks a function: it needs both id functions or neither, and, if it is present, one way to start ranks.
void register_backend(const Backend& backend);

}  // namespace tranship
