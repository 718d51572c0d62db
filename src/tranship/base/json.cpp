#include "tranship/base/json.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {
namespace {

// Members are found by a linear search.
constexpr std::size_t keys_per_object_max = 1024;
// The library's own documents nest at most a dozen values; each array or object takes about 100 bytes while it is read.
constexpr std::size_t depth_max = 64;
constexpr std::int64_t containers_max = std::int64_t(1) << 22;

// --- Writing --------------------------------------------------------------------------------------------------------

void append_string(std::string& out, std::string_view text, const JsonFormat& format) {
  const auto stands_for_itself = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), stands_for_itself)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  using Handler = nlohmann::json::error_handler_t;
  const Handler handler = format.invalid == InvalidUtf8::replace ? Handler::replace : Handler::strict;
  try {
    out += nlohmann::json(text).dump(-1, ' ', format.characters == JsonCharacters::ascii, handler);
  } catch (const nlohmann::json::type_error&) {
    throw_error(ErrorCode::invalid_use, "'{}' is not UTF-8, which JSON needs", printable(text));
  }
}

template <class Integer>
void append_integer(std::string& out, Integer value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

/// Writes values with its own stack, because a value may nest deeper than the stack of the thread allows.
class Writer {
 public:
  explicit Writer(const JsonFormat& format) : format_(format) {}

  std::string text_of(const Json& value) {
    begin(value);
    while (!open_.empty()) {
      const Json& container = *open_.back().container;
      const std::size_t i = open_.back().next++;
      if (i == container.size()) {
        open_.pop_back();
        new_line();
        out_ += container.is_object() ? '}' : ']';
        continue;
      }
      if (i > 0) out_ += ',';
      new_line();
      if (container.is_array()) {
        begin(container[i]);
        continue;
      }
      const auto& [key, member] = container.members()[i];
      append_string(out_, key, format_);
      out_ += format_.indent > 0 ? ": " : ":";
      begin(member);
    }
    return std::move(out_);
  }

 private:
  struct Open {
    const Json* container;
    std::size_t next = 0;
  };

  /// Writes a value without parts in full, and the opening bracket of any other.
  void begin(const Json& value) {
    switch (value.type()) {
      case JsonType::null:
        out_ += "null";
        return;
      case JsonType::boolean:
        out_ += value.as_boolean() ? "true" : "false";
        return;
      case JsonType::integer:
        return append_integer(out_, value.as_integer());
      case JsonType::large_integer:
        return append_integer(out_, value.as_unsigned());
      case JsonType::real:
        out_ += nlohmann::json(value.as_number()).dump();
        return;
      case JsonType::string:
        return append_string(out_, value.as_string(), format_);
      case JsonType::array:
      case JsonType::object:
        if (value.empty()) {
          out_ += value.is_object() ? "{}" : "[]";
          return;
        }
        out_ += value.is_object() ? '{' : '[';
        open_.push_back({&value});
    }
  }

  void new_line() {
    if (format_.indent <= 0) return;
    out_ += '\n';
    out_.append(open_.size() * std::size_t(format_.indent), ' ');
  }

  const JsonFormat& format_;
  std::string out_;
  std::vector<Open> open_;
};

// --- Reading --------------------------------------------------------------------------------------------------------

/// Passes what the parser finds to the reader.
class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(JsonReader& reader) : reader_(reader) {}

  bool null() override { return reader_.null(), true; }
  bool boolean(bool value) override { return reader_.boolean(value), true; }
  bool number_integer(number_integer_t value) override { return reader_.number_integer(value), true; }
  bool number_unsigned(number_unsigned_t value) override { return reader_.number_unsigned(value), true; }
  bool number_float(number_float_t value, const string_t& text) override {
    return reader_.number_float(value, text), true;
  }
  bool string(string_t& text) override { return reader_.string(text), true; }
  bool binary(binary_t&) override { return false; }  // a text never has binary values
  bool start_object(std::size_t) override { return reader_.start_object(), true; }
  bool key(string_t& name) override { return reader_.key(name), true; }
  bool end_object() override { return reader_.end_object(), true; }
  bool start_array(std::size_t) override { return reader_.start_array(), true; }
  bool end_array() override { return reader_.end_array(), true; }
  bool parse_error(std::size_t column, const std::string&, const nlohmann::json::exception& error) override {
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error))
      reader_.number_too_large(column);
    else
      reader_.not_json(column);
    return false;
  }

 private:
  JsonReader& reader_;
};

/// Returns where a column of a text is, with the line if it is not the first.
std::string place_in(std::string_view text, std::size_t column) {
  const std::string_view before = text.substr(0, column > 0 ? column - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t begin = before.rfind('\n') + 1;  // 0 where there is none
  return line == 1 ? fmt::format("column {}", column) : fmt::format("line {}, column {}", line, column - begin);
}

std::string character_at(std::string_view text, std::size_t column) {
  if (column == 0 || column > text.size()) return "the end";
  const auto c = static_cast<unsigned char>(text[column - 1]);
  return c > ' ' && c < 0x7f ? fmt::format("'{:c}'", c) : fmt::format("byte 0x{:02x}", c);
}

/// Builds the value of a text.
class Builder final : public JsonReader {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  void null() override { add(nullptr); }
  void boolean(bool value) override { add(value); }
  void number_integer(std::int64_t value) override { add(value); }
  void number_unsigned(std::uint64_t value) override { add(value); }
  void number_float(double value, const std::string&) override { add(value); }
  void string(std::string& text) override { add(std::move(text)); }

  void start_object() override {
    open(Json::object());
    keys_.emplace_back();
  }
  void key(std::string& name) override {
    std::set<std::string>& keys = keys_.back();
    if (!keys.insert(name).second) throw_error(ErrorCode::bad_text, "key {} is given twice", json_in_message(name));
    if (keys.size() > keys_per_object_max)
      throw_error(ErrorCode::bad_text, "an object has more than {} keys", keys_per_object_max);
    key_ = std::move(name);
  }
  void end_object() override {
    keys_.pop_back();
    open_.pop_back();
  }
  void start_array() override { open(Json::array()); }
  void end_array() override { open_.pop_back(); }

  void not_json(std::size_t column) override {
    Error error =
        make_error(ErrorCode::bad_text, "{}: not JSON: found {}", place_in(text_, column), character_at(text_, column));
    error.column = static_cast<std::int64_t>(column);
    throw error;
  }
  void number_too_large(std::size_t) override {
    throw_error(ErrorCode::bad_text, "a number of the JSON text is too large");
  }

  Json result() { return std::move(document_); }

 private:
  Json& add(Json value) {
    if (open_.empty()) return document_ = std::move(value);
    Json& around = *open_.back();
    if (around.is_object()) return around.add_member(std::move(key_), std::move(value));
    around.push_back(std::move(value));
    return around[around.size() - 1];
  }

  void open(Json container) {
    if (open_.size() >= depth_max)
      throw_error(ErrorCode::bad_text, "the JSON text nests more than {} values", depth_max);
    if (++containers_ > containers_max)
      throw_error(ErrorCode::bad_text, "the JSON text has more than {} arrays and objects", containers_max);
    open_.push_back(&add(std::move(container)));
  }

  std::string_view text_;
  Json document_;
  std::vector<Json*> open_;  ///< stays valid: a container gains no member while one inside it is open
  std::vector<std::set<std::string>> keys_;
  std::string key_;
  std::int64_t containers_ = 0;
};

}  // namespace

// --- Json -----------------------------------------------------------------------------------------------------------

const char* name_of(JsonType type) noexcept {
  switch (type) {
    case JsonType::null:
      return "null";
    case JsonType::boolean:
      return "boolean";
    case JsonType::integer:
    case JsonType::large_integer:
    case JsonType::real:
      return "number";
    case JsonType::string:
      return "string";
    case JsonType::array:
      return "array";
    case JsonType::object:
      return "object";
  }
  return "?";
}

Json::Json(std::initializer_list<JsonItem> list) {
  if (list.size() == 0) return;
  const bool pairs = std::all_of(list.begin(), list.end(), [](const JsonItem& item) {
    return item.value_.is_array() && item.value_.size() == 2 && item.value_[0].is_string();
  });
  *this = pairs ? object() : array();
  for (const JsonItem& item : list) {
    if (pairs)
      add_member(std::move(*item.value_[0].value_.string), std::move(item.value_[1]));
    else
      push_back(std::move(item.value_));
  }
}

Json::Json(const Json& other) : value_(other.value_) {
  if (other.type_ == JsonType::string) value_.string = new std::string(*other.value_.string);
  if (other.type_ == JsonType::array) value_.array = new std::vector<Json>(*other.value_.array);
  if (other.type_ == JsonType::object) value_.object = new std::vector<Member>(*other.value_.object);
  type_ = other.type_;
}

Json Json::array() {
  Json out;
  out.value_.array = new std::vector<Json>();
  out.type_ = JsonType::array;
  return out;
}

Json Json::object() {
  Json out;
  out.value_.object = new std::vector<Member>();
  out.type_ = JsonType::object;
  return out;
}

void Json::destroy() noexcept {
  // Moves nested values to a list and empties them one by one, so that destructors do not recurse.
  std::vector<Json> nested;
  const auto take = [&nested](Json& value) {
    if (value.is_structured() && !value.empty()) nested.push_back(std::move(value));
  };
  const auto take_parts = [&take](Json& value) {
    if (value.is_array())
      for (Json& item : *value.value_.array) take(item);
    if (value.is_object())
      for (Member& member : *value.value_.object) take(member.value);
  };
  take_parts(*this);
  while (!nested.empty()) {
    Json last = std::move(nested.back());
    nested.pop_back();
    take_parts(last);
  }
  if (is_string()) delete value_.string;
  if (is_array()) delete value_.array;
  if (is_object()) delete value_.object;
}

void Json::require(JsonType type) const {
  if (type_ != type) throw_error(ErrorCode::bad_text, "expected JSON {}, found {}", name_of(type), name_of(type_));
}

bool Json::as_boolean() const {
  require(JsonType::boolean);
  return value_.boolean;
}

std::int64_t Json::as_integer() const {
  if (type_ == JsonType::large_integer)
    throw_error(ErrorCode::overflow, "{} does not fit in 63 bits; at most {} does", value_.large, INT64_MAX);
  require(JsonType::integer);
  return value_.integer;
}

std::uint64_t Json::as_unsigned() const {
  if (type_ == JsonType::large_integer) return value_.large;
  require(JsonType::integer);
  if (value_.integer < 0) throw_error(ErrorCode::overflow, "{} is below 0", value_.integer);
  return static_cast<std::uint64_t>(value_.integer);
}

double Json::as_number() const {
  if (type_ == JsonType::integer) return static_cast<double>(value_.integer);
  if (type_ == JsonType::large_integer) return static_cast<double>(value_.large);
  require(JsonType::real);
  return value_.real;
}

const std::string& Json::as_string() const {
  require(JsonType::string);
  return *value_.string;
}

const std::vector<Json>& Json::items() const& {
  require(JsonType::array);
  return *value_.array;
}

std::vector<Json> Json::items() && {
  require(JsonType::array);
  return std::move(*value_.array);
}

const std::vector<Json::Member>& Json::members() const& {
  require(JsonType::object);
  return *value_.object;
}

std::vector<Json::Member> Json::members() && {
  require(JsonType::object);
  return std::move(*value_.object);
}

std::size_t Json::size() const noexcept {
  return is_null() ? 0 : is_array() ? value_.array->size() : is_object() ? value_.object->size() : 1;
}

void Json::push_back(Json item) {
  if (is_null()) *this = array();
  require(JsonType::array);
  value_.array->push_back(std::move(item));
}

const Json* Json::find(std::string_view key) const noexcept {
  if (!is_object()) return nullptr;
  for (const Member& member : *value_.object)
    if (member.key == key) return &member.value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  require(JsonType::object);
  if (const Json* value = find(key)) return *value;
  throw_error(ErrorCode::bad_text, "{} is missing", json_in_message(key));
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = object();
  if (const Json* value = find(key)) return const_cast<Json&>(*value);
  return add_member(std::string(key), nullptr);
}

Json& Json::add_member(std::string key, Json value) {
  require(JsonType::object);
  TRANSHIP_ASSERT_COSTLY(!contains(key));
  value_.object->push_back({std::move(key), std::move(value)});
  return value_.object->back().value;
}

void Json::update(Json object) {
  for (auto& [key, value] : std::move(object).members()) (*this)[key] = std::move(value);
}

std::string Json::dump(const JsonFormat& format) const {
  return Writer(format).text_of(*this);
}

bool operator==(const Json& a, const Json& b) {
  if (a.type_ != b.type_) {
    const bool mixed = a.type_ == JsonType::real || b.type_ == JsonType::real;
    return mixed && a.is_number() && b.is_number() && a.as_number() == b.as_number();
  }
  switch (a.type_) {
    case JsonType::null:
      return true;
    case JsonType::boolean:
      return a.value_.boolean == b.value_.boolean;
    case JsonType::integer:
      return a.value_.integer == b.value_.integer;
    case JsonType::large_integer:
      return a.value_.large == b.value_.large;
    case JsonType::real:
      return a.value_.real == b.value_.real;
    case JsonType::string:
      return *a.value_.string == *b.value_.string;
    case JsonType::array:
      return *a.value_.array == *b.value_.array;
    case JsonType::object:
      return *a.value_.object == *b.value_.object;
  }
  return false;
}

// --- Texts ----------------------------------------------------------------------------------------------------------

std::string json_string(std::string_view text) {
  std::string out;
  append_string(out, text, {});
  return out;
}

std::string json_in_message(const Json& value, std::size_t length_max) {
  return printable(value.dump({.characters = JsonCharacters::ascii, .invalid = InvalidUtf8::replace}), length_max);
}

void read_json(std::string_view text, JsonReader& reader) {
  // The parser takes a zero byte for the end of the text, but JSON has no zero bytes.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) return reader.not_json(zero + 1);
  Events events(reader);
  nlohmann::json::sax_parse(text, &events);
}

Json parse_json(std::string_view text) {
  Builder builder(text);
  read_json(text, builder);
  return builder.result();
}

}  // namespace tranship
