// The loop of a rank of a contestant program: it waits for commands on its stage and obeys. The program brings its
// methods; opening, checking by value, refreshing and timing are the same for all programs.
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
  /// Rewrites the cells of the source that this rank owns.
  virtual void write(double salt) = 0;
  /// Makes sure that no right value is left in this rank's target.
  virtual void spoil() = 0;
  /// Reads this rank's target.
  virtual double read() = 0;
  /// Returns how many elements of this rank's target differ from the result of the last `write(salt)` and `run`.
  virtual std::int64_t count_wrong(double salt) = 0;
  virtual void run() = 0;
  /// Bytes that the last run copied between memories; -1 when the method does not count them.
  virtual std::int64_t moved_bytes() { return -1; }
};

using Methods = std::vector<std::unique_ptr<Method>>;

/// Obeys commands until it is told to quit. `methods_for` returns the methods that can do a work; there may be none.
void act(Stage& stage, int rank, const std::function<Methods(const Work&)>& methods_for);

}  // namespace contest
