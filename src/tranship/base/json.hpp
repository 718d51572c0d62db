// Private: JSON. `parse_json` reads a text into a value (`Json`), and `dump` writes a value as text. `read_json`
// reports the parts of a text to a reader one by one, for documents with many keys and a known shape. Only json.cpp
// includes nlohmann's header, which takes seconds to compile.
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

/// The type of a value. A whole number is an `integer` if it fits in 64 bits with a sign, else a `large_integer`.
enum class JsonType : std::uint8_t { null, boolean, integer, large_integer, real, string, array, object };

/// "null", "boolean", "number", "string", "array" or "object".
const char* name_of(JsonType type) noexcept;

enum class JsonCharacters : std::uint8_t { utf8, ascii };   ///< ascii: writes other characters as \u and four digits
enum class InvalidUtf8 : std::uint8_t { refuse, replace };  ///< replace: writes U+FFFD instead

struct JsonFormat {
  int indent = 0;  ///< spaces per level; 0 writes one line without spaces
  JsonCharacters characters = JsonCharacters::utf8;
  InvalidUtf8 invalid = InvalidUtf8::refuse;
};

class JsonItem;

/// A value with all that it holds. Objects keep their members in the order in which they were added. Values that were
/// parsed nest only a few levels. Code can build deeper ones: copies and comparisons of these recurse, destruction and
/// dump() do not.
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
  /// `{{"a", 1}, {"b", x}}` is an object, because all items are pairs that begin with a string. `{1, 2}` is an array,
  /// and `{}` is null.
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

  // These return what a value holds, and throw `bad_text` if it has another type.
  bool as_boolean() const;
  /// Throws `overflow` for a large_integer.
  std::int64_t as_integer() const;
  /// Throws `overflow` for a negative number.
  std::uint64_t as_unsigned() const;
  /// Takes any number; rounds one that needs more than 53 bits.
  double as_number() const;
  const std::string& as_string() const;
  /// Returns the elements of an array. A temporary returns them by value, so that a loop over them is safe.
  const std::vector<Json>& items() const&;
  std::vector<Json> items() &&;
  /// Returns the members of an object.
  const std::vector<Member>& members() const&;
  std::vector<Member> members() &&;

  /// Returns the number of items or members; 0 for null, 1 for a value without parts.
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }

  const Json& operator[](std::size_t index) const { return items()[index]; }
  Json& operator[](std::size_t index) { return const_cast<Json&>(items()[index]); }
  /// Appends an item; turns null into an array first.
  void push_back(Json item);

  /// Returns the member, or nullptr if there is none or this is not an object. Linear in the number of members.
  const Json* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  /// Returns the member; throws `bad_text` if there is none.
  const Json& at(std::string_view key) const;
  /// Returns the member; adds it as null if there is none. Turns null into an object first.
  Json& operator[](std::string_view key);
  /// Adds a member that the object must not have yet. Needs no search.
  Json& add_member(std::string key, Json value);
  /// Sets all members of `object` in this object.
  void update(Json object);

  /// Returns the value as text. Numbers that are not finite become null. Throws `invalid_use` for a string that is not
  /// UTF-8, unless `format` says to replace what is wrong.
  std::string dump(const JsonFormat& format = {}) const;

  /// Numbers compare by value; objects are equal if their members are equal and in the same order.
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

/// An item of a list in braces. The Json takes its value by move, which an initializer_list alone does not allow.
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

/// Returns the text as a JSON string. Throws `invalid_use` when it is not UTF-8.
std::string json_string(std::string_view text);

/// Returns an untrusted value or name as a message quotes it: JSON in printable ASCII on one line, cut after
/// `length_max` bytes.
std::string json_in_message(const Json& value, std::size_t length_max = 40);

/// Parses a document. Throws `bad_text`, with the column in bytes where the text is not JSON. It also refuses an object
/// that has a key twice, and documents that are deeper or wider than any of the library's own.
Json parse_json(std::string_view text);

/// Receives the parts of a JSON text in the order of the text. A reader throws to refuse a part, so nothing nests
/// deeper than it allows. It may move from the strings.
class JsonReader {
 public:
  JsonReader() = default;
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;
  virtual ~JsonReader() = default;

  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  /// A negative whole number.
  virtual void number_integer(std::int64_t value) = 0;
  virtual void number_unsigned(std::uint64_t value) = 0;
  /// All other numbers, with their text: fractions, exponents, and whole numbers that do not fit in 64 bits.
  virtual void number_float(double value, const std::string& text) = 0;
  virtual void string(std::string& text) = 0;
  virtual void start_object() = 0;
  virtual void key(std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  /// The text is not JSON from this byte on; bytes count from 1. Must throw.
  virtual void not_json(std::size_t column) = 0;
  /// The number that ends at this byte is too large for a double. Must throw.
  virtual void number_too_large(std::size_t column) { not_json(column); }
};

void read_json(std::string_view text, JsonReader& reader);

}  // namespace tranship
