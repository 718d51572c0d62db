// Private: The table of back-ends: what this build can run on, and why it cannot run on the others. A back-end that is
// a library of its own registers itself.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

class RankScope;
struct JoinOptions;
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
};

/// In the order in which they are asked whether this process is a rank of theirs: those that registered last come
/// first.
std::vector<Backend> available_backends();

/// Adds a back-end, or takes the place of the one of that name. To be called before any other thread runs, as
/// initialisers of static variables are.
void register_backend(const Backend& backend);

}  // namespace tranship
