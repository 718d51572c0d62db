#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <string_view>

#include <tranship/base/fail.hpp>
#include <tranship/file/npy.hpp>
#include <tranship/file/printable.hpp>

namespace tranship {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr char native_order = std::endian::native == std::endian::little ? '<' : '>';

[[noreturn]] void refuse_element(std::string_view descr, std::string_view reason) {
  throw_error(ErrorCode::unsupported,
              "unsupported element type '{}': {}; supported are b1, i1 to i8, u1 to u8, f2 to f16, c8 to c32 and V2 "
              "(bfloat16)",
              printable(descr), reason);
}

NpyElement number(ElementType type, char byte_order) {
  return {type, byte_order, size_bytes(part_of(type))};
}

NpyElement parse_descr(std::string_view descr) {
  if (descr == "bfloat16") return number(ElementType::bf16, native_order);
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string_view kind = descr.substr(has_order ? 1 : 0);
  const Result<ElementType> type = element_type_of_numpy(kind);
  if (!type) {
    switch (kind.empty() ? '\0' : kind[0]) {
      case 'O':
        refuse_element(kind, "it is a Python object");
      case 'S':
      case 'a':
      case 'U':
        refuse_element(kind, "it is text");
      case 'M':
      case 'm':
        refuse_element(kind, "it is a date or a time span");
      case 'V':
        refuse_element(kind, "it is raw memory");
      default:
        refuse_element(descr, "it is not known");
    }
  }
  const char order = has_order ? descr[0] : '=';
  if (size_bytes(type.value()) == 1) return number(type.value(), '|');
  if (order == '<' || order == '>') return number(type.value(), order);
  if (type.value() == ElementType::bf16) return number(ElementType::bf16, '|');
  return number(type.value(), native_order);  // '=' and, as NumPy reads it, '|'
}

/// Reads the Python literal of a header. Every function throws Error.
class HeaderReader {
 public:
  /// `start_bytes`: where `text` begins in the file, for messages.
  HeaderReader(std::string_view text, std::size_t start_bytes) : text_(text), start_bytes_(start_bytes) {}

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
    skip_space();
    if (at_ < text_.size()) refuse("nothing but spaces after the dictionary");
    require(descr_.has_value(), "descr");
    require(order_.has_value(), "fortran_order");
    require(extents_.has_value(), "shape");
    const NpyElement element = parse_descr(*descr_);
    return {.type = element.type,
            .byte_order = element.byte_order,
            .order = *order_,
            .extents = *extents_,
            .header_bytes = static_cast<Index>(start_bytes_ + text_.size()),
            .descr = std::string(*descr_)};
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

  std::string_view descr() {
    if (peek() == '[')
      throw_error(ErrorCode::unsupported, "unsupported element type: a record of several fields, not one number");
    if (peek() == '(')
      throw_error(ErrorCode::unsupported, "unsupported element type: an array within an element, not one number");
    return string();
  }

  NpyOrder order() {
    if (accept_word("True")) return NpyOrder::fortran;
    if (accept_word("False")) return NpyOrder::c;
    refuse("True or False");
  }

  Indices shape() {
    Indices out;
    int dims = 0;
    bool comma = false;
    expect('(');
    while (!accept(')')) {
      const Index value = extent(dims);
      if (++dims <= dims_max) out.push_back(value);
      comma = accept(',');
      if (!comma && peek() != ')') refuse("',' or ')'");
    }
    // In Python "(3)" is a number, not a tuple.
    if (dims == 1 && !comma) {
      --at_;
      refuse("',' after the only extent");
    }
    if (dims > dims_max)
      throw_error(ErrorCode::unsupported, "the array has {} dimensions, at most {} are supported", dims, dims_max);
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
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    Index value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
      throw_error(ErrorCode::overflow, "extent {}{} of dimension {} does not fit in 63 bits", negative ? "-" : "",
                  printable(digits), dimension);
    if (negative && value != 0)
      throw_error(ErrorCode::bad_file, "extent -{} of dimension {} is negative", value, dimension);
    return value;
  }

  /// What lies between quotes of either kind. Escapes occur in nothing that is accepted.
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

  /// The next character that is not a space, '\0' at the end.
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

  std::string_view text_;
  std::size_t start_bytes_;
  std::size_t at_ = 0;
  std::optional<std::string_view> descr_;
  std::optional<NpyOrder> order_;
  std::optional<Indices> extents_;
};

Index little_endian(std::string_view bytes) {
  Index out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

/// The dictionary of a header and where it begins.
HeaderReader find_dictionary(std::string_view head, Index file_size_bytes) {
  if (head.substr(0, magic.size()) != magic.substr(0, head.size()))
    throw_error(ErrorCode::bad_file, "not a .npy file: it begins with '{}'", printable(head.substr(0, magic.size())));
  constexpr std::size_t version_end = magic.size() + 2;
  const auto need = [&](Index bytes) {
    if (file_size_bytes < bytes)
      throw_error(ErrorCode::bad_file, "truncated: the header needs {} bytes, the file has {}", bytes, file_size_bytes);
    if (bytes > npy_header_bytes_max)
      throw_error(ErrorCode::unsupported, "a header of {} bytes: at most {} are read", bytes, npy_header_bytes_max);
    if (static_cast<Index>(head.size()) < bytes)
      throw_error(ErrorCode::invalid_use, "the header needs {} bytes, {} were given", bytes, head.size());
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
  return HeaderReader(head.substr(start, static_cast<std::size_t>(length)), start);
}

/// The length of the whole file. An extent of 0 counts as 1 in the check: the strides of an empty array must fit too.
Index checked_file_bytes(const NpyHeader& header) {
  Index dense = size_bytes(header.type);
  bool fits = true;
  for (const Index extent : header.extents) fits &= !__builtin_mul_overflow(dense, std::max<Index>(extent, 1), &dense);
  fits &= !__builtin_add_overflow(dense, header.header_bytes, &dense);
  if (!fits)
    throw_error(ErrorCode::overflow, "the file's length does not fit in 63 bits: extents [{}] of {} bytes each",
                to_string(header.extents), size_bytes(header.type));
  return header.header_bytes + header.data_bytes();
}

}  // namespace

Index NpyHeader::data_bytes() const {
  return checked_multiply(checked_product(extents), size_bytes(type));
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
      throw_error(ErrorCode::bad_file, "truncated: needs {} bytes, has {}", needed, file_size_bytes);
    if (file_size_bytes > needed)
      throw_error(ErrorCode::bad_file, "has {} trailing bytes: needs {} bytes, has {}", file_size_bytes - needed,
                  needed, file_size_bytes);
    return out;
  });
}

std::string format_npy_header(const NpyHeader& header) {
  const NpyElement element = parse_descr(header.descr);
  if (element.type != header.type || element.byte_order != header.byte_order)
    throw_error(ErrorCode::invalid_use, "descr '{}' does not spell {} of byte order '{}'", header.descr,
                name_of(header.type), header.byte_order);
  const bool fortran = header.order == NpyOrder::fortran;
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{}), }}", header.descr, fortran ? "True" : "False",
                  to_string(header.extents), header.extents.size() == 1 ? "," : "");
  // NumPy leaves room for the slowest dimension to grow to the 21 digits of 8 * 2**64 - 1.
  if (!header.extents.empty()) {
    const Index grows = header.extents[fortran ? header.extents.size() - 1 : 0];
    text.append(21 - fmt::formatted_size("{}", grows), ' ');
  }
  // Front (magic, version, length) and text end, after at least one space and the line end, on a multiple of 64 bytes.
  // With 8 dimensions at most the text is a few hundred bytes long: version 1.0 always holds it.
  constexpr std::size_t front = magic.size() + 4;
  text.append(64 - (front + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string out(magic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

StridedView npy_view(const NpyHeader& header, std::byte* elements) {
  Indices dimensions;
  for (int d = 0; d < header.extents.size(); ++d)
    dimensions.push_back(header.order == NpyOrder::c ? d : header.extents.size() - 1 - d);
  return {.data = elements,
          .type = header.type,
          .extents = header.extents,
          .strides = dense_strides(header.extents, dimensions)};
}

StridedView NpyFile::view() const {
  return npy_view(header, const_cast<std::byte*>(file.bytes().data()) + header.header_bytes);
}

Result<NpyFile> open_npy(const std::string& path, FileAccess access) {
  Result<MappedFile> file = MappedFile::open(path, access);
  if (!file) return file.error();
  Result<NpyHeader> header = parse_npy_header(file.value().bytes(), file.value().size_bytes());
  if (!header) return make_error(header.error().code(), "'{}': {}", path, header.error().message());
  return NpyFile{std::move(file).value(), std::move(header).value()};
}

}  // namespace tranship
