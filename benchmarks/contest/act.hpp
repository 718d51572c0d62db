// What a rank of a contestant program does: it waits for commands on its stage and obeys. The program brings its
// methods; opening, checking by value, refreshing and timing are the same for all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <contest/stage.hpp>

namespace contest {

/// One way to do the work, on one rank. Construction, run and destruction are collective over the ranks.
class Method {
 public:
  virtual ~Method() = default;
  virtual std::string name() const = 0;
  /// Rewrites what this rank owns of the source.
  virtual void write(double salt) = 0;
  /// Makes sure that no right value is left in this rank's target.
  virtual void spoil() = 0;
  /// Reads this rank's target.
  virtual double read() = 0;
  /// Elements of this rank's target that are not what the last `write(salt)` and `run` must have made of them.
  virtual std::int64_t count_wrong(double salt) = 0;
  virtual void run() = 0;
  /// That the last run copied between memories; -1 where nobody counts.
  virtual std::int64_t moved_bytes() { return -1; }
};

using Methods = std::vector<std::unique_ptr<Method>>;

/// Obeys until it is told to quit. `methods_for` gives the methods that can do a work, none where none can.
void act(Stage& stage, int rank, const std::function<Methods(const Work&)>& methods_for);

}  // namespace contest
