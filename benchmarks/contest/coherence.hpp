// Coherence: one array of doubles in two memories, which use it by turns. The sequences of uses are the same for all
// contestants, and each use touches all of its cells. A contestant brings the calls before and after a use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <contest/act.hpp>

namespace contest {

enum class Place { host, device };
enum class Use {
  read,
  write,  ///< all cells of the region
  add,    ///< to all cells of the region
};
struct Cells {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The array of one contestant. One use at a time.
class TwoMemories {
 public:
  virtual ~TwoMemories() = default;
  /// Makes the cells usable; returns where cell 0 would be in the memory of `place`.
  virtual double* begin(Place place, Use use, Cells cells) = 0;
  virtual void end(Place place, Use use) = 0;
  /// Bytes copied between the two memories since the array was made.
  virtual std::int64_t moved_bytes() = 0;
};

/// Makes the method `name` for a work of Task::coherence. Every operation writes other values than the one before, and
/// checks the sum of the values that each use reads.
std::unique_ptr<Method> coherence_method(const Work& work, std::string name, std::unique_ptr<TwoMemories> array);

}  // namespace contest
