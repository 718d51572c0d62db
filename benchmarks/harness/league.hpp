// League: the programs that meet in contests, ours first. A program starts when a contest first needs it with a given
// number of ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <harness/contest.hpp>

namespace tranship::bench {

enum class Peers : std::uint8_t { left_out, invited };

/// The kind of work that is contested.
enum class Game : std::uint8_t {
  distributed,  ///< arrays over ranks; ours twice, in threads and in processes
  coherent,     ///< one array in several memories of one process
  collective,   ///< operations of all ranks together; ours twice, in threads and in processes
  one_sided,    ///< transfers to the memory of another rank; ours twice, in threads and in processes
};

constexpr const char* ours_in_threads = "tranship";
constexpr const char* ours_in_processes = "tranship in processes";

class League {
 public:
  explicit League(Peers peers) : peers_(peers) {}

  /// Returns the programs, running with `ranks` ranks. Ends those of another game or number of ranks, and starts those
  /// that were lost anew. The pointer of a program that was not built is null.
  std::vector<std::shared_ptr<Contender>>& with_ranks(int ranks, Game game = Game::distributed);
  /// Ends all programs.
  void dismiss() { running_.clear(); }

 private:
  Peers peers_;
  int ranks_ = 0;
  Game game_ = Game::distributed;
  std::vector<std::shared_ptr<Contender>> running_;
};

}  // namespace tranship::bench
