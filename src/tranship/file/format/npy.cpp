#include "tranship/file/format/npy.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/byte_order.hpp>
#include <tranship/file/format/utf8.hpp>

namespace tranship {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

[[noreturn]] void refuse_element(std::string_view descr, std::string_view reason) {
  throw_error(ErrorCode::unsupported,
              "unsupported element type '{}': {}; supported are b1, i1 to i8, u1 to u8, f2 to f16, c8 to c32, V2 "
              "(bfloat16), and, moved as bytes, f1, S, U, V, M8, m8 and records of these",
              printable(descr), reason);
}

NpyElement number(ElementType type, char byte_order) {
  return {type, byte_order, size_bytes(part_of(type))};
}

/// Makes an element that is not a number.
NpyElement opaque(std::string_view descr, Index bytes, char byte_order, Index swap_bytes) {
  static constexpr ElementType types[] = {ElementType::u64, ElementType::u32, ElementType::u16, ElementType::u8};
  if (bytes == 0) refuse_element(descr, "it has no bytes");
  for (const ElementType type : types)
    if (bytes % size_bytes(type) == 0) return {type, byte_order, swap_bytes, bytes / size_bytes(type)};
  return {};  // any number of bytes is a multiple of u8
}

/// Parses a number that is all of `text`.
std::optional<Index> whole_number(std::string_view text) {
  Index out = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool plain = failure == std::errc() && end == text.data() + text.size() && out >= 0;
  return plain ? std::optional(out) : std::nullopt;
}

/// Accepts "8", "8[ns]", "8[25s]".
bool is_date(std::string_view text) {
  if (!text.starts_with('8')) return false;
  text.remove_prefix(1);
  if (text.empty()) return true;
  const std::string_view unit = text.substr(1, text.size() - std::min<std::size_t>(text.size(), 2));
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/';
  };
  return text.size() > 2 && text.front() == '[' && text.back() == ']' && std::all_of(unit.begin(), unit.end(), plain);
}

/// Parses a descr of one word.
NpyElement parse_word(std::string_view descr) {
  if (descr == "bfloat16") return number(ElementType::bf16, native_order);
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string_view kind = descr.substr(has_order ? 1 : 0);
  const char given = has_order ? descr[0] : '=';
  const char order = given == '<' || given == '>' ? given : native_order;  // '=' and, as NumPy reads it, '|'
  if (const Result<ElementType> type = element_type_of_numpy(kind)) {
    if (size_bytes(type.value()) == 1) return number(type.value(), '|');
    return number(type.value(), type.value() == ElementType::bf16 && given != order ? '|' : order);
  }
  if (kind.empty()) refuse_element(descr, "it is not known");
  const std::optional<Index> count = whole_number(kind.substr(1));
  switch (kind[0]) {
    case 'O':
      refuse_element(kind, "it is a Python object");
    case 'f':
      if (count == 1) return opaque(descr, 1, '|', 1);
      break;
    case 'S':
    case 'a':
    case 'V':
      if (count) return opaque(descr, *count, '|', 1);
      break;
    case 'U':
      if (count) return opaque(descr, checked_multiply(*count, 4), order, 4);
      break;
    case 'M':
    case 'm':
      if (is_date(kind.substr(1))) return opaque(descr, 8, order, 8);
      break;
    default:
      break;
  }
  refuse_element(descr, "it is not known");
}

/// Reads Python literals as they occur in headers and records. Every function throws Error.
class LiteralReader {
 public:
  /// `start_bytes` is the offset of `text` in the file, for messages.
  LiteralReader(std::string_view text, std::size_t start_bytes) : text_(text), start_bytes_(start_bytes) {}

  /// Reads a record's descr, a list of fields. NumPy writes the gaps between fields as fields without a name.
  NpyElement record(int depth = 0) {
    constexpr int depth_max = 32;
    if (depth > depth_max)
      throw_error(ErrorCode::unsupported, "records are nested {} deep: at most {} levels are supported", depth,
                  depth_max);
    const std::size_t begin = at_;
    Index bytes = 0;
    bool native = false, foreign = false;
    expect('[');
    while (!accept(']')) {
      expect('(');
      if (accept('(')) {  // a title and a name
        string();
        expect(',');
        string();
        expect(')');
      } else {
        string();
      }
      expect(',');
      const NpyElement element = peek() == '[' ? record(depth + 1) : parse_word(string());
      Index field_bytes = checked_multiply(element.count, size_bytes(element.type));
      if (accept(',') && peek() == '(') {
        for (const Index extent : extents()) field_bytes = checked_multiply(field_bytes, extent);
        accept(',');
      }
      expect(')');
      bytes = checked_add(bytes, field_bytes);
      native |= element.byte_order == native_order;
      foreign |= element.byte_order != native_order && element.byte_order != '|';
      if (!accept(',') && peek() != ']') refuse("',' or ']'");
    }
    const char order = foreign ? (native_order == '<' ? '>' : '<') : native ? native_order : '|';
    return opaque(text_.substr(begin, at_ - begin), bytes, order, 0);
  }

  void end() {
    skip_space();
    if (at_ < text_.size()) refuse("nothing but spaces after the dictionary");
  }

 protected:
  /// Reads a tuple of numbers from 0 on.
  std::vector<Index> extents() {
    std::vector<Index> out;
    bool comma = false;
    expect('(');
    while (!accept(')')) {
      out.push_back(extent(static_cast<int>(out.size())));
      comma = accept(',');
      if (!comma && peek() != ')') refuse("',' or ')'");
    }
    // In Python "(3)" is a number, not a tuple.
    if (out.size() == 1 && !comma) {
      --at_;
      refuse("',' after the only extent");
    }
    return out;
  }

  Index extent(int dimension) {
    const bool negative = accept('-');
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty() || (digits[0] == '0' && digits.size() > 1)) {
      at_ = begin;
      refuse("a number");
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers this way
    Index value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
      throw_error(ErrorCode::overflow, "extent {}{} of dimension {} does not fit in 63 bits", negative ? "-" : "",
                  printable(digits), dimension);
    if (negative && value != 0)
      throw_error(ErrorCode::bad_file, "extent -{} of dimension {} is negative", value, dimension);
    return value;
  }

  /// Returns the text between quotes of either kind. No accepted header has escapes.
  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("a quoted string");
    const std::size_t begin = at_ + 1;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) refuse("a string that ends");
    const std::string_view out = text_.substr(begin, end - begin);
    if (const std::size_t bad = out.find_first_of("\\\n"); bad != std::string_view::npos) {
      at_ = begin + bad;
      refuse("a string without escapes or line ends");
    }
    at_ = end + 1;
    return out;
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r\f").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  /// Returns the next character that is not a space, or '\0' at the end.
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("'{}'", c));
  }

  [[noreturn]] void refuse(std::string_view wanted) {
    const std::string found = at_ < text_.size() ? fmt::format("'{}'", printable(text_.substr(at_, 1))) : "its end";
    throw_error(ErrorCode::bad_file, "malformed header: expected {} at byte {}, found {}", wanted, start_bytes_ + at_,
                found);
  }

  /// Returns the text from an earlier position to the present one.
  std::string_view text_since(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  std::string_view text_;
  std::size_t start_bytes_;
  std::size_t at_ = 0;
};

NpyElement parse_descr(std::string_view descr) {
  if (!descr.starts_with('[')) return parse_word(descr);
  LiteralReader reader(descr, 0);
  const NpyElement out = reader.record();
  reader.end();
  return out;
}

/// Reads the dictionary of a header. Every function throws Error.
class HeaderReader : LiteralReader {
 public:
  /// Version 3 is UTF-8, the other versions are Latin-1.
  HeaderReader(std::string_view text, std::size_t start_bytes, int version)
      : LiteralReader(text, start_bytes), version_(version) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr")
        set_once(descr_, key, [&] { return descr(); });
      else if (key == "fortran_order")
        set_once(order_, key, [&] { return order(); });
      else if (key == "shape")
        set_once(extents_, key, [&] { return shape(); });
      else
        throw_error(ErrorCode::bad_file, "unknown key '{}' in the header: its keys are descr, fortran_order and shape",
                    printable(key));
      if (!accept(',') && peek() != '}') refuse("',' or '}'");
    }
    end();
    require(descr_.has_value(), "descr");
    require(order_.has_value(), "fortran_order");
    require(extents_.has_value(), "shape");
    const NpyElement element = parse_descr(*descr_);
    return {.type = element.type,
            .count = element.count,
            .byte_order = element.byte_order,
            .order = *order_,
            .extents = *extents_,
            .header_bytes = static_cast<Index>(start_bytes_ + text_.size()),
            .descr = *descr_};
  }

 private:
  template <class T, class Read>
  void set_once(std::optional<T>& slot, std::string_view key, Read&& read) {
    if (slot) throw_error(ErrorCode::bad_file, "key '{}' comes twice in the header", key);
    slot = read();
  }

  void require(bool present, const char* key) {
    if (!present) throw_error(ErrorCode::bad_file, "key '{}' is missing in the header", key);
  }

  std::string descr() {
    if (peek() == '(')
      throw_error(ErrorCode::unsupported, "unsupported element type: an array within an element, not one number");
    const std::size_t begin = at_;
    const bool is_record = peek() == '[';
    std::string_view text;
    if (is_record) {
      record();
      text = text_since(begin);
    } else {
      text = string();
    }
    if (version_ < 3) return utf8_of_latin1(text);
    if (!is_utf8(text)) throw_error(ErrorCode::bad_file, "element type '{}' is not UTF-8", printable(text));
    return std::string(text);
  }

  NpyOrder order() {
    if (accept_word("True")) return NpyOrder::fortran;
    if (accept_word("False")) return NpyOrder::c;
    refuse("True or False");
  }

  Indices shape() {
    const std::vector<Index> extents = this->extents();
    if (extents.size() > dims_max)
      throw_error(ErrorCode::unsupported, "the array has {}, at most {} are supported",
                  amount(extents.size(), "dimension"), dims_max);
    return Indices(std::span<const Index>(extents));
  }

  int version_;
  std::optional<std::string> descr_;
  std::optional<NpyOrder> order_;
  std::optional<Indices> extents_;
};

Index little_endian(std::string_view bytes) {
  Index out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

/// Finds the dictionary of a header.
HeaderReader find_dictionary(std::string_view head, Index file_size_bytes) {
  if (head.substr(0, magic.size()) != magic.substr(0, head.size()))
    throw_error(ErrorCode::bad_file, "not a .npy file: it begins with '{}'", printable(head.substr(0, magic.size())));
  constexpr std::size_t version_end = magic.size() + 2;
  const auto need = [&](Index bytes) {
    if (file_size_bytes < bytes)
      throw_error(ErrorCode::bad_file, "truncated: the header needs {}, the file has {}", amount(bytes, "byte"),
                  file_size_bytes);
    if (bytes > npy_header_bytes_max)
      throw_error(ErrorCode::unsupported, "a header of {}: at most {} are read", amount(bytes, "byte"),
                  npy_header_bytes_max);
    if (static_cast<Index>(head.size()) < bytes)
      throw_error(ErrorCode::invalid_use, "the header needs {}, {} were given", amount(bytes, "byte"), head.size());
  };
  need(version_end);
  const int major = static_cast<unsigned char>(head[magic.size()]);
  const int minor = static_cast<unsigned char>(head[magic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0)
    throw_error(ErrorCode::unsupported, ".npy version {}.{}: 1.0, 2.0 and 3.0 are read", major, minor);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t start = version_end + length_bytes;
  need(start);
  const Index length = little_endian(head.substr(version_end, length_bytes));
  need(static_cast<Index>(start) + length);
  return HeaderReader(head.substr(start, static_cast<std::size_t>(length)), start, major);
}

/// Returns the length of the whole file. The check counts an extent of 0 as 1, because the strides of an empty array
/// must fit, too.
Index checked_file_bytes(const NpyHeader& header) {
  Index dense = size_bytes(header.type);
  bool fits = !__builtin_mul_overflow(dense, header.count, &dense);
  for (const Index extent : header.extents) fits &= !__builtin_mul_overflow(dense, std::max<Index>(extent, 1), &dense);
  fits &= !__builtin_add_overflow(dense, header.header_bytes, &dense);
  if (!fits)
    throw_error(ErrorCode::overflow, "the file's length does not fit in 63 bits: extents [{}] of {} each",
                to_string(header.extents), amount(header.count * size_bytes(header.type), "byte"));
  return header.header_bytes + header.data_bytes();
}

}  // namespace

Index NpyHeader::data_bytes() const {
  return checked_multiply(checked_product(extents), checked_multiply(count, size_bytes(type)));
}

Indices layout_extents(const NpyHeader& header) {
  Indices out = header.extents.empty() ? Indices{1} : header.extents;
  if (header.count == 1) return out;
  if (out.size() == dims_max)
    throw_error(
        ErrorCode::unsupported,
        "{} of elements '{}', which are {} {} each and take one more dimension: a layout has at most {} dimensions",
        amount(out.size(), "dimension"), printable(header.descr), header.count, name_of(header.type), dims_max);
  out.push_back(header.count);
  return out;
}

NpyHeader make_npy_header(ElementType type, const Indices& extents, NpyOrder order) {
  const bool unordered = size_bytes(type) == 1 || type == ElementType::bf16;
  NpyHeader out{.type = type, .byte_order = unordered ? '|' : native_order, .order = order, .extents = extents};
  out.descr = fmt::format("{}{}", out.byte_order, numpy_kind(type));
  out.header_bytes = static_cast<Index>(format_npy_header(out).size());
  checked_file_bytes(out);
  return out;
}

Result<NpyElement> parse_npy_descr(std::string_view descr) {
  return attempt([&] { return parse_descr(descr); });
}

Result<NpyHeader> parse_npy_header(std::span<const std::byte> head, Index file_size_bytes) {
  return attempt([&] {
    const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
    NpyHeader out = find_dictionary(bytes, file_size_bytes).read();
    const Index needed = checked_file_bytes(out);
    if (file_size_bytes < needed)
      throw_error(ErrorCode::bad_file, "truncated: needs {}, has {}", amount(needed, "byte"), file_size_bytes);
    if (file_size_bytes > needed)
      throw_error(ErrorCode::bad_file, "has {}: needs {}, has {}", amount(file_size_bytes - needed, "trailing byte"),
                  amount(needed, "byte"), file_size_bytes);
    return out;
  });
}

std::string format_npy_header(const NpyHeader& header) {
  const NpyElement element = parse_descr(header.descr);
  if (element.type != header.type || element.count != header.count || element.byte_order != header.byte_order)
    throw_error(ErrorCode::invalid_use, "descr '{}' does not spell {} of byte order '{}'", header.descr,
                name_of(header.type), header.byte_order);
  const bool fortran = header.order == NpyOrder::fortran;
  const std::string_view quote = header.descr.starts_with('[') ? "" : "'";
  std::string text =
      fmt::format("{{'descr': {}{}{}, 'fortran_order': {}, 'shape': ({}{}), }}", quote, header.descr, quote,
                  fortran ? "True" : "False", to_string(header.extents), header.extents.size() == 1 ? "," : "");
  // NumPy leaves room for the slowest dimension to grow to the 21 digits of 8 * 2**64 - 1.
  if (!header.extents.empty()) {
    const Index grows = header.extents[fortran ? header.extents.size() - 1 : 0];
    text.append(21 - fmt::formatted_size("{}", grows), ' ');
  }
  // Version 1.0 is Latin-1 of at most 65535 bytes, 2.0 is longer, 3.0 is UTF-8.
  const std::optional<std::string> latin1 = latin1_of_utf8(text);
  if (latin1) text = *latin1;
  // Front (magic, version, length) and text end, after at least one space and the line end, on a multiple of 64 bytes.
  const auto padding = [&](std::size_t front) { return 64 - (front + text.size() + 1) % 64; };
  constexpr std::size_t length_max = 65535;
  std::size_t length_bytes = 2;
  if (!latin1 || text.size() + padding(magic.size() + 4) + 1 > length_max) length_bytes = 4;
  text.append(padding(magic.size() + 2 + length_bytes), ' ');
  text += '\n';
  std::string out(magic);
  out += !latin1 ? '\x03' : length_bytes == 4 ? '\x02' : '\x01';
  out += '\x00';
  for (std::size_t i = 0; i < length_bytes; ++i) out += static_cast<char>(text.size() >> 8 * i & 0xff);
  return out + text;
}

Indices dimension_order(StoredOrder order, int dims) {
  Indices out;
  const int outer = order.has_inner ? dims - 1 : dims;
  for (int k = 0; k < outer; ++k) out.push_back(order.outer == NpyOrder::c ? k : outer - 1 - k);
  if (order.has_inner) out.push_back(outer);
  return out;
}

StoredOrder stored_order(const NpyHeader& header) {
  return {header.order, header.count > 1};
}

StridedView npy_view(const NpyHeader& header, std::byte* elements) {
  Indices extents = header.extents;
  if (header.count > 1) extents.push_back(header.count);
  return {.data = elements,
          .type = header.type,
          .extents = extents,
          .strides = dense_strides(extents, dimension_order(stored_order(header), extents.size()))};
}

StridedView NpyFile::view() const {
  return npy_view(header, const_cast<std::byte*>(file.bytes().data()) + header.header_bytes);
}

Result<NpyFile> open_npy(const std::string& path, FileAccess access) {
  Result<MappedFile> file = MappedFile::open(path, access);
  if (!file) return file.error();
  Result<NpyHeader> header = parse_npy_header(file.value().bytes(), file.value().size_bytes());
  if (const Result<void> whole = attempt([&] { file.value().check(); }); !whole) return whole.error();
  if (!header) return make_error(header.error().code(), "'{}': {}", path, header.error().message());
  return NpyFile{std::move(file).value(), std::move(header).value()};
}

}  // namespace tranship
