// Private: the base of JSON readers that refuse unexpected input with `bad_file`, naming its place.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/json.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {

/// Refuses every event. A reader overrides the events that it expects, and calls these functions for the rest.
class JsonEvents : public JsonReader {
 public:
  void null() override { refuse("null"); }
  void boolean(bool) override { refuse("true or false"); }
  void number_integer(std::int64_t value) override { refuse(fmt::format("{}", value)); }
  void number_unsigned(std::uint64_t value) override { refuse(fmt::format("{}", value)); }
  void number_float(double, const std::string& text) override { refuse(printable(text)); }
  void string(std::string& text) override { refuse(fmt::format("\"{}\"", printable(text))); }
  void start_object() override { refuse("an object"); }
  void key(std::string& name) override { refuse(fmt::format("key \"{}\"", printable(name))); }
  void end_object() override { refuse("the end of an object"); }
  void start_array() override { refuse("an array"); }
  void end_array() override { refuse("the end of an array"); }
  void not_json(std::size_t column) override { throw_error(ErrorCode::bad_file, "not JSON at byte {}", column); }

 protected:
  /// Returns what the document must have at this point, and the point: "tensor 'a': shape: expected a number".
  virtual std::string expected() const = 0;

  [[noreturn]] void refuse(std::string_view found) const {
    throw_error(ErrorCode::bad_file, "{}, found {}", expected(), found);
  }
};

/// Returns a number as an Index; throws `overflow` if it does not fit.
inline Index index_in_json(std::uint64_t value, std::string_view where) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
    throw_error(ErrorCode::overflow, "{}: {} does not fit in 63 bits", where, value);
  return static_cast<Index>(value);
}

/// Throws `bad_file` when two of `names` are equal.
inline void refuse_equal(std::vector<std::string_view> names, std::string_view what) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw_error(ErrorCode::bad_file, "{} '{}' is given twice", what, printable(*twice, name_chars_max));
}

}  // namespace tranship
