// Private: JSON. `Json` is a value, `parse_json` reads one, `dump` writes it; `read_json` tells a reader what a text
// holds, piece by piece, for documents of many keys and known shape. Only json.cpp includes the library that does the
// work: its header costs every file that includes it seconds to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tranship {

/// What a value is. A whole number is an `integer` where 64 bits with a sign hold it, a `large_integer` above.
enum class JsonType : std::uint8_t { null, boolean, integer, large_integer, real, string, array, object };

/// "null", "boolean", "number", "string", "array" or "object".
const char* name_of(JsonType type) noexcept;

enum class JsonCharacters : std::uint8_t { utf8, ascii };   ///< ascii: all others are written as \u and four digits
enum class InvalidUtf8 : std::uint8_t { refuse, replace };  ///< replace: by U+FFFD

struct JsonFormat {
  int indent = 0;  ///< spaces for each level; 0 writes one line without spaces
  JsonCharacters characters = JsonCharacters::utf8;
  InvalidUtf8 invalid = InvalidUtf8::refuse;
};

class JsonItem;

/// A value, with all that it holds. Objects keep their members in the order in which they were added. Values that a
/// text was read into nest a few levels only; of deeper ones, which code can build, copies and comparisons recurse,
/// destruction and dump() do not.
class Json {
 public:
  struct Member;

  Json() noexcept = default;  ///< null
  Json(std::nullptr_t) noexcept {}
  template <class T>
  requires std::is_arithmetic_v<T> Json(T value)
  noexcept {
    if constexpr (std::same_as<T, bool>)
      type_ = JsonType::boolean, value_.boolean = value;
    else if constexpr (std::floating_point<T>)
      type_ = JsonType::real, value_.real = value;
    else if (std::in_range<std::int64_t>(value))
      type_ = JsonType::integer, value_.integer = static_cast<std::int64_t>(value);
    else
      type_ = JsonType::large_integer, value_.large = static_cast<std::uint64_t>(value);
  }
  Json(std::string text) : type_(JsonType::string) { value_.string = new std::string(std::move(text)); }
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}
  template <class T>
  Json(const std::vector<T>& items) : Json(array()) {
    for (const T& item : items) push_back(item);
  }
  /// `{{"a", 1}, {"b", x}}` is an object: pairs that all begin with a string. `{1, 2}` is an array, `{}` is null.
  Json(std::initializer_list<JsonItem> list);

  Json(const Json& other);
  Json(Json&& other) noexcept : type_(std::exchange(other.type_, JsonType::null)), value_(other.value_) {}
  Json& operator=(Json other) noexcept {
    std::swap(type_, other.type_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Json() {
    if (type_ >= JsonType::string) destroy();
  }

  static Json array();
  static Json object();

  JsonType type() const noexcept { return type_; }
  bool is_null() const noexcept { return type_ == JsonType::null; }
  bool is_boolean() const noexcept { return type_ == JsonType::boolean; }
  bool is_integer() const noexcept { return type_ == JsonType::integer || type_ == JsonType::large_integer; }
  bool is_number() const noexcept { return is_integer() || type_ == JsonType::real; }
  bool is_string() const noexcept { return type_ == JsonType::string; }
  bool is_array() const noexcept { return type_ == JsonType::array; }
  bool is_object() const noexcept { return type_ == JsonType::object; }
  bool is_structured() const noexcept { return is_array() || is_object(); }

  // What a value holds. For other types these throw `bad_text`.
  bool as_boolean() const;
  /// Throws `overflow` for a large_integer.
  std::int64_t as_integer() const;
  /// Throws `overflow` below 0.
  std::uint64_t as_unsigned() const;
  /// Any number; what has more than 53 bits is rounded.
  double as_number() const;
  const std::string& as_string() const;
  /// The elements of an array. Those of a temporary are given away, so that a loop over them does not outlive them.
  const std::vector<Json>& items() const&;
  std::vector<Json> items() &&;
  /// The members of an object.
  const std::vector<Member>& members() const&;
  std::vector<Member> members() &&;

  /// How many items or members; 0 of null, 1 of what has no parts.
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  const Json& operator[](std::size_t index) const { return items()[index]; }
  Json& operator[](std::size_t index) { return const_cast<Json&>(items()[index]); }
  /// Null becomes an array first.
  void push_back(Json item);

  /// The member, or nullptr when there is none or this is no object. Takes as long as the object has members.
  const Json* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  /// Throws `bad_text` when there is none.
  const Json& at(std::string_view key) const;
  /// Adds null where there is no such member. Null becomes an object first.
  Json& operator[](std::string_view key);
  /// Adds a member that the object is known not to have.
  Json& add_member(std::string key, Json value);
  /// Sets all members of another object.
  void update(Json object);

  /// Numbers that are not finite are written as null. Throws `invalid_use` for a string that is not UTF-8, unless
  /// `format` says to replace what is wrong.
  std::string dump(const JsonFormat& format = {}) const;

  /// Numbers are equal by value, objects in the order of their members.
  friend bool operator==(const Json& a, const Json& b);

 private:
  void destroy() noexcept;
  void require(JsonType type) const;

  JsonType type_ = JsonType::null;
  union {
    bool boolean;
    std::int64_t integer;
    std::uint64_t large = 0;
    double real;
    std::string* string;
    std::vector<Json>* array;
    std::vector<Member>* object;
  } value_;
};

struct Json::Member {
  std::string key;
  Json value;
  friend bool operator==(const Member&, const Member&) = default;
};

/// A value in a list in braces, which is moved from there and not copied.
class JsonItem {
 public:
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, JsonItem> && std::constructible_from<Json, T>) JsonItem(T&& value)
      : value_(std::forward<T>(value)) {}
  JsonItem(std::initializer_list<JsonItem> list) : value_(list) {}

 private:
  friend class Json;
  mutable Json value_;
};

/// The text as a JSON string. Throws `invalid_use` when it is not UTF-8.
std::string json_string(std::string_view text);

/// What a message says of an untrusted value or name: JSON in printable ASCII on one line, cut after `length_max`
/// bytes.
std::string json_in_message(const Json& value, std::size_t length_max = 40);

/// Reads a document. Throws `bad_text`, with the column in bytes where the text is not JSON; also for a key that an
/// object has twice, and for documents that are deeper or wider than any of ours.
Json parse_json(std::string_view text);

/// What a JSON text holds, in the order of the text. A reader refuses what it does not expect by throwing, so that
/// nothing nests deeper than it allows. Strings may be moved from.
class JsonReader {
 public:
  JsonReader() = default;
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;
  virtual ~JsonReader() = default;

  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  /// A whole number with a minus sign.
  virtual void number_integer(std::int64_t value) = 0;
  virtual void number_unsigned(std::uint64_t value) = 0;
  /// All other numbers, with their text: fractions, exponents, and whole numbers that 64 bits do not hold.
  virtual void number_float(double value, const std::string& text) = 0;
  virtual void string(std::string& text) = 0;
  virtual void start_object() = 0;
  virtual void key(std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  /// The text is not JSON from the byte of this number on, the first being 1. Must throw.
  virtual void not_json(std::size_t column) = 0;
  /// The number that ends there is too large for a double. Must throw.
  virtual void number_too_large(std::size_t column) { not_json(column); }
};

void read_json(std::string_view text, JsonReader& reader);

}  // namespace tranship
