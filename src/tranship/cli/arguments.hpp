// Private: Reads the values of arguments: layouts as text or in a file, ranks, lists of numbers. Code that finds an
// argument wrong throws UsageError, which ends the command with exit code 2.
#pragma once

#include <string>

#include <tranship/file/reshard.hpp>
#include <tranship/file/rules/layout_rules.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship::cli {

/// Wrong arguments: one line that says what is wrong and, if not empty, a picture of two lines that shows where.
struct UsageError {
  std::string message;
  std::string picture = {};
};

/// Returns the text of a file that an argument names.
std::string text_in_file(const std::string& name, const std::string& path);
/// Ends the command because the contents of the file do not suit the argument.
[[noreturn]] void refuse_file(const std::string& name, const std::string& path, const Error& why);
/// Returns `read(text)` for the text of a file that an argument names.
template <class Read>
auto read_argument(const std::string& name, const std::string& path, Read&& read) {
  const std::string text = text_in_file(name, path);
  try {
    return read(text);
  } catch (const Error& why) {
    refuse_file(name, path, why);
  }
}
/// Returns the layout that an argument gives as text, or as @FILE with its JSON. Errors call the argument `name`.
ArraySpec layout_argument(const std::string& name, const std::string& argument);
/// Returns true if an argument is a placement, "@ 4x1 : block, whole", and not a layout or the name of a file.
bool is_placement(const std::string& argument);
/// Returns the layout of an argument like layout_argument(), or places the array of layout `array` if the argument is a
/// placement. If an element consists of `count` elements of its type, the placement may omit the dimension that they
/// form.
ArraySpec placed_argument(const std::string& name, const std::string& argument, const ArraySpec& array,
                          Index count = 1);
/// Takes the layout and the element type from an array in files.
ArraySpec placed_argument(const std::string& name, const std::string& argument, const StoredArray& array);
/// Returns how many elements of its type make up one element of an array in files with layout `from`. It looks at
/// `path`, or at the first part in a directory without a manifest. Returns 1 if neither can be read.
Index elements_at(const std::string& path, const ArraySpec& from);
/// Returns the rules for tensors that an argument gives as text, or as @FILE.
LayoutRules rules_argument(const std::string& name, const std::string& argument);
/// Parses "2" or "2,1": one number per dimension; a single number stands for all dimensions.
Indices numbers_argument(const std::string& name, const std::string& argument, int dims);
/// Throws UsageError unless the grid of one of the layouts has the rank.
void require_rank(Rank rank, const Distribution& a, const Distribution& b);

}  // namespace tranship::cli
