// Private: JSON read as events, for documents of many keys and known shape. Nothing is kept but what the reader keeps,
// an event that it does not expect is refused where it stands, and so nothing nests deeper than the reader does.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/base/index.hpp>
#include <tranship/file/printable.hpp>

namespace tranship {

/// Refuses every event with `bad_file`; a reader overrides those that it expects, and calls these for the rest.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("true or false"); }
  bool number_integer(number_integer_t value) override { refuse(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { refuse(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { refuse(printable(text)); }
  bool string(string_t& text) override { refuse(fmt::format("\"{}\"", printable(text))); }
  bool binary(binary_t&) override { refuse("bytes"); }
  bool start_object(std::size_t) override { refuse("an object"); }
  bool key(string_t& name) override { refuse(fmt::format("key \"{}\"", printable(name))); }
  bool end_object() override { refuse("the end of an object"); }
  bool start_array(std::size_t) override { refuse("an array"); }
  bool end_array() override { refuse("the end of an array"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw_error(ErrorCode::bad_file, "not JSON at byte {}", position);
  }

 protected:
  JsonEvents() = default;

  /// What the document needs at this point, and where that is: "tensor 'a': shape: expected a number".
  virtual std::string expected() const = 0;

  [[noreturn]] void refuse(std::string_view found) const {
    throw_error(ErrorCode::bad_file, "{}, found {}", expected(), found);
  }
};

/// Reads a document. The lexer takes a zero byte for the end of the text; JSON has none.
inline void read_json(std::string_view text, JsonEvents& events) {
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw_error(ErrorCode::bad_file, "not JSON at byte {}", zero + 1);
  nlohmann::json::sax_parse(text, &events);
}

/// A number that an Index holds; throws `overflow`.
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

/// A string of valid UTF-8 as JSON writes it; throws `invalid_use` for other bytes.
inline std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw_error(ErrorCode::invalid_use, "'{}' is not UTF-8, which JSON needs", printable(text));
  }
}

}  // namespace tranship
