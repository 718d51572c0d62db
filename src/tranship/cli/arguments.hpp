// Private: What arguments mean: layouts as text or in a file, ranks, lists of numbers. Code that finds an argument
// wrong throws UsageError, which ends the command with exit code 2.
#pragma once

#include <string>

#include <tranship/file/reshard.hpp>
#include <tranship/file/rules/layout_rules.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship::cli {

/// One line that says what is wrong with the arguments; `picture`, when there is one, two more that show where.
struct UsageError {
  std::string message;
  std::string picture = {};
};

/// The text of a file that an argument names.
std::string text_in_file(const std::string& name, const std::string& path);
/// Ends the command because such a file is not what the argument takes.
[[noreturn]] void refuse_file(const std::string& name, const std::string& path, const Error& why);
/// `read(text)` of a file that an argument names.
template <class Read>
auto read_argument(const std::string& name, const std::string& path, Read&& read) {
  const std::string text = text_in_file(name, path);
  try {
    return read(text);
  } catch (const Error& why) {
    refuse_file(name, path, why);
  }
}
/// The layout that an argument gives as text, or as @FILE with its JSON. `name` is what the error calls the argument.
ArraySpec layout_argument(const std::string& name, const std::string& argument);
/// Whether an argument is a placement, "@ 4x1 : block, whole", rather than a layout or the name of a file.
bool is_placement(const std::string& argument);
/// The layout that an argument gives as layout_argument does, or as a placement of an array whose layout is `array`.
/// Where elements are `count` of its type each, the placement may leave out the dimension that they are.
ArraySpec placed_argument(const std::string& name, const std::string& argument, const ArraySpec& array,
                          Index count = 1);
/// The same of an array in files.
ArraySpec placed_argument(const std::string& name, const std::string& argument, const StoredArray& array);
/// How many of its type an element of an array in files is, whose layout is `from`: as the path says, or in a directory
/// without a manifest the first part. 1 where neither can be read.
Index elements_at(const std::string& path, const ArraySpec& from);
/// The rules for tensors that an argument gives as text, or as @FILE.
LayoutRules rules_argument(const std::string& name, const std::string& argument);
/// "2" or "2,1": one number for each dimension; a single number stands for all of them.
Indices numbers_argument(const std::string& name, const std::string& argument, int dims);
/// Throws UsageError unless the grid of one of the layouts has the rank.
void require_rank(Rank rank, const Distribution& a, const Distribution& b);

}  // namespace tranship::cli
