// Private: The table of back-ends: what this build can run on, and why it cannot run on the others. A back-end that is
// a library of its own registers itself.
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
  /// What it is, or why it is absent.
  std::string_view note;
  /// Joins the world for which this process was started by this back-end; empty where it was not. nullptr: processes
  /// are not started for it.
  std::optional<RankScope> (*join)() = nullptr;
  /// What WorldId::make and RankScope::join of an id do; the second is empty where the id is not one of this back-end.
  /// nullptr: processes cannot join its worlds by an id.
  WorldId (*make_id)() = nullptr;
  std::optional<RankScope> (*join_by_id)(const WorldId& id, Rank rank, int size, const JoinOptions& options) = nullptr;
  /// What launch_processes() does where this back-end is chosen: runs a function as ranks in processes that are forked
  /// from this one. nullptr: it cannot be chosen.
  void (*launch)(const LaunchOptions& options, FunctionRef<void(World&)> body) = nullptr;
};

/// In the order in which they are asked whether this process is a rank of theirs: those that registered last come
/// first.
std::vector<Backend> available_backends();

/// The one that the variable TRANSHIP_BACKEND of the environment names: launch_processes() runs ranks on it. Empty
/// where the variable is not set. Throws `invalid_use` for a name that none has, and for one that starts no ranks so.
std::optional<Backend> chosen_backend();

/// Adds a back-end, or takes the place of an absent one of that name. To be called before any other thread runs, as
/// initialisers of static variables are. Throws `invalid_use`, with its name, for one that is registered already, and
/// for one that lacks a function: it has both calls of ids or neither, and, where it is present, some way to start
/// ranks.
void register_backend(const Backend& backend);

}  // namespace tranship
