// Detail: Switchboard: pipes between ranks that know their own side only, as the parts of a pipeline do that are
// programs of their own. The two sides find each other by a name; ranks that are in neither take no part.
//
//   Switchboard board(world);                                     // collective, once
//   PipeLine line = board.connect("pulses", {}, columns);         // as a receiver: who sends "pulses" comes
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tranship/array/pipe.hpp>
#include <tranship/fabric/sub_world.hpp>

namespace tranship {

/// A pipe, and the world of its two groups, which lives as long. Lines between the same ranks share it.
class PipeLine {
 public:
  PipeLine(std::shared_ptr<SubWorld> world, Pipe pipe) : world_(std::move(world)), pipe_(std::move(pipe)) {}

  Pipe& pipe() noexcept { return pipe_; }
  /// Errors of the pipe name ranks by their place among the ranks of both sides. Which ranks these are, to be added to
  /// the text of an error: "; here rank 0 is rank 3 of the world, rank 1 is rank 5"; nothing where no number differs.
  std::string rank_key() const;

 private:
  std::shared_ptr<SubWorld> world_;  // none where the groups are the whole world
  Pipe pipe_;
};

/// Used by the thread of its rank; the world must outlive it and its lines.
class Switchboard {
 public:
  /// Collective over the world. Costs 64 KiB of the symmetric heap.
  explicit Switchboard(World& world, CallSite where = CallSite::here());
  ~Switchboard();
  Switchboard(Switchboard&&) noexcept;
  Switchboard& operator=(Switchboard&&) = delete;

  /// Collective over the ranks of both sides, which call it with the same name, and waits for all of them until the
  /// world's timeout. A rank gives the sides that it is in, both where it is in both. A name stands for one line at a
  /// time. Ranks that have several lines in common connect them in the same order. Errors of a pipe's set-up name ranks
  /// by their place among the ranks of both sides, and say which ranks these are. There may be any number of lines; the
  /// groups of ranks that are joined at a time by lines, and are not the whole world, are limited by
  /// LaunchOptions::teams_max (about 60 of each rank).
  ///
  /// Throws `invalid_use` for a name with a new line in it, for a rank that gives no side or one that it is not in,
  /// `mismatch` where the ranks of a side give different distributions or a rank does not come with a side that it is
  /// in; `unsupported` where there are too many groups; `timeout`, which names the lines at which other ranks wait or
  /// have given up; else as Pipe does.
  PipeLine connect(std::string_view name, const std::optional<ArraySpec>& source,
                   const std::optional<ArraySpec>& target, const PipeOptions& options = {},
                   CallSite where = CallSite::here());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
