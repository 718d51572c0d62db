// Detail: Switchboard, which makes pipes between ranks that know only their own side, such as the parts of a pipeline
// that are programs of their own. The two sides find each other by a name. Ranks that are in neither side take no part.
//
//   Switchboard board(world);                                     // collective, once
//   PipeLine line = board.connect("pulses", {}, columns);         // a receiver; meets the sender of "pulses"
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tranship/array/pipe.hpp>
#include <tranship/fabric/sub_world.hpp>

namespace tranship {

/// A pipe, and the world of its two groups, which lives as long as the pipe. Lines between the same ranks share a
/// world.
class PipeLine {
 public:
  PipeLine(std::shared_ptr<SubWorld> world, Pipe pipe) : world_(std::move(world)), pipe_(std::move(pipe)) {}

  Pipe& pipe() noexcept { return pipe_; }
  /// Errors of the pipe name ranks by their position among the ranks of both sides. Returns a text that says which
  /// ranks of the world these are, to append to an error: "; here rank 0 is rank 3 of the world, rank 1 is rank 5".
  /// Empty when all numbers are the same.
  std::string rank_key() const;

 private:
  std::shared_ptr<SubWorld> world_;  // null if the groups are the whole world
  Pipe pipe_;
};

/// Only the thread of its rank may use it. The world must outlive it and its lines.
class Switchboard {
 public:
  /// Collective over the world. Costs 64 KiB of the symmetric heap.
  explicit Switchboard(World& world, CallSite where = CallSite::here());
  ~Switchboard();
  Switchboard(Switchboard&&) noexcept;
  Switchboard& operator=(Switchboard&&) = delete;

  /// Collective over the ranks of both sides, which all call it with the same name; waits for all of them until the
  /// world's timeout. A rank gives each side that it is in. A name stands for one line at a time. Ranks that have
  /// several lines in common connect them in the same order. Errors of a pipe's set-up name ranks by their position
  /// among the ranks of both sides, and say which ranks of the world these are. The number of lines is not limited. The
  /// number of different groups of ranks that lines join at a time, other than the whole world, is limited by
  /// LaunchOptions::teams_max (about 60 per rank).
  ///
  /// Throws `invalid_use` for a name that contains a new line and for a rank that gives no side or one that it is not
  /// in; `mismatch` when the ranks of a side give different distributions or a rank does not give a side that it is in;
  /// `unsupported` when there are too many groups; `timeout`, which names the lines at which other ranks wait or have
  /// given up; and what Pipe throws.
  PipeLine connect(std::string_view name, const std::optional<ArraySpec>& source,
                   const std::optional<ArraySpec>& target, const PipeOptions& options = {},
                   CallSite where = CallSite::here());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
