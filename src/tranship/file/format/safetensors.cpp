#include "tranship/file/format/safetensors.hpp"

#include <algorithm>
#include <optional>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/format/json_events.hpp>

namespace tranship {
namespace {

constexpr Index length_bytes = 8;
constexpr std::size_t alignment_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";

struct Dtype {
  std::string_view name;
  ElementType type;
};

// An element type is written as the dtype of its first row.
constexpr Dtype dtypes[] = {
    {"BOOL", ElementType::bool8},     {"U8", ElementType::u8},          {"I8", ElementType::i8},
    {"F8_E5M2", ElementType::u8},     {"F8_E4M3", ElementType::u8},     {"F8_E8M0", ElementType::u8},
    {"F8_E4M3FNUZ", ElementType::u8}, {"F8_E5M2FNUZ", ElementType::u8}, {"I16", ElementType::i16},
    {"U16", ElementType::u16},        {"F16", ElementType::f16},        {"BF16", ElementType::bf16},
    {"I32", ElementType::i32},        {"U32", ElementType::u32},        {"F32", ElementType::f32},
    {"C64", ElementType::c64},        {"F64", ElementType::f64},        {"I64", ElementType::i64},
    {"U64", ElementType::u64},
};

/// Dtypes of less than a byte.
struct NarrowDtype {
  std::string_view name;
  Index bits;
};
constexpr NarrowDtype narrow_dtypes[] = {{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}};

[[noreturn]] void refuse_dtype(std::string_view dtype) {
  std::string known;
  for (const Dtype& row : dtypes) known += fmt::format("{}, ", row.name);
  for (const NarrowDtype& row : narrow_dtypes)
    known += fmt::format("{}{}", row.name == narrow_dtypes[0].name ? "" : ", ", row.name);
  throw_error(ErrorCode::unsupported, "dtype '{}' is not known: supported are {}", printable(dtype), known);
}

Index narrow_bits(std::string_view dtype) {
  for (const NarrowDtype& row : narrow_dtypes)
    if (row.name == dtype) return row.bits;
  refuse_dtype(dtype);
}

std::optional<ElementType> whole_type(std::string_view dtype) {
  for (const Dtype& row : dtypes)
    if (row.name == dtype) return row.type;
  return std::nullopt;
}

TensorForm form_of(std::string_view dtype, std::span<const Index> shape) {
  const std::optional<ElementType> type = whole_type(dtype);
  const Index bits = type ? Index{8} * size_bytes(*type) : narrow_bits(dtype);
  if (shape.size() > safetensors_dims_max)
    throw_error(ErrorCode::unsupported, "{}: at most {} are supported", amount(shape.size(), "dimension"),
                safetensors_dims_max);
  // The check counts an extent of 0 as 1, because the strides of an empty tensor must fit, too.
  Index cells = 1, dense = bits;
  for (const Index extent : shape) {
    dense = checked_multiply(dense, std::max<Index>(extent, 1));
    if (extent == 0) cells = 0;
  }
  if (cells > 0) cells = dense / bits;
  if (cells * bits % 8 != 0)
    throw_error(ErrorCode::bad_file, "{} of {} of {} each: the last of {} is not full", amount(cells, "element"), dtype,
                amount(bits, "bit"), amount(ceil_divide(cells * bits, 8), "byte"));
  TensorForm out{.size_bytes = cells * bits / 8, .opaque = !type || shape.size() > dims_max};
  out.type = type && !out.opaque ? *type : ElementType::u8;
  if (out.opaque)
    out.extents = Indices{out.size_bytes};
  else
    for (const Index extent : shape) out.extents.push_back(extent);
  return out;
}

std::span<const Index> shape_of(const Indices& extents, const std::vector<Index>& opaque_shape) {
  if (!opaque_shape.empty()) return opaque_shape;
  return {extents.begin(), extents.end()};
}

std::string named(const SafetensorsEntry& tensor) {
  return fmt::format("tensor '{}'", printable(tensor.name, name_chars_max));
}

/// Collects a header and checks each tensor on its own.
class HeaderEvents final : public JsonEvents {
 public:
  void start_object() override {
    if (place_ == Place::document) return go(Place::header);
    if (place_ == Place::header && key_ == metadata_key) return go(Place::metadata);
    if (place_ == Place::header) return go(Place::tensor);
    return JsonEvents::start_object();
  }

  void key(std::string& name) override {
    key_ = name;
    if (place_ == Place::header) start_member();
    if (place_ == Place::metadata) header_.metadata.emplace_back(std::move(name), std::string());
    if (place_ == Place::tensor) start_key();
  }

  void string(std::string& text) override {
    if (place_ == Place::metadata) {
      header_.metadata.back().second = std::move(text);
      return;
    }
    if (place_ != Place::tensor || key_ != "dtype") return JsonEvents::string(text);
    tensor().dtype = std::move(text);
  }

  void start_array() override {
    if (place_ != Place::tensor || key_ == "dtype") return JsonEvents::start_array();
    return go(Place::numbers);
  }

  void number_unsigned(std::uint64_t value) override {
    if (place_ != Place::numbers) return JsonEvents::number_unsigned(value);
    const Index number = index_in_json(value, where());
    if (key_ == "shape") {
      if (shape_.size() == safetensors_dims_max)
        throw_error(ErrorCode::unsupported, "{}: more than {} dimensions", where(), safetensors_dims_max);
      shape_.push_back(number);
    } else if (offsets_.size() == 2) {
      throw_error(ErrorCode::bad_file, "{}: more than 2 numbers", where());
    } else {
      offsets_.push_back(number);
    }
  }

  void end_array() override { return go(Place::tensor); }

  void end_object() override {
    if (place_ == Place::header) return go(Place::end);
    if (place_ == Place::tensor) finish_tensor();
    return go(Place::header);
  }

  SafetensorsHeader finish() {
    std::vector<std::string_view> names;
    for (const SafetensorsEntry& tensor : header_.tensors) names.push_back(tensor.name);
    refuse_equal(std::move(names), "tensor");
    names.clear();
    for (const auto& [name, text] : header_.metadata) names.push_back(name);
    refuse_equal(std::move(names), "metadata");
    return std::move(header_);
  }

 protected:
  std::string expected() const override { return fmt::format("{}: expected {}", where(), wanted()); }

 private:
  enum class Place : std::uint8_t { document, header, metadata, tensor, numbers, end };

  void go(Place place) { place_ = place; }

  SafetensorsEntry& tensor() { return header_.tensors.back(); }

  std::string where() const {
    switch (place_) {
      case Place::document:
      case Place::end:
        return "the header";
      case Place::header:
        return key_.empty() ? "the header" : fmt::format("'{}'", printable(key_));
      case Place::metadata:
        return fmt::format("{}: '{}'", metadata_key, printable(key_));
      case Place::tensor:
      case Place::numbers:
        return fmt::format("{}: {}", named(header_.tensors.back()), key_);
    }
    return "";
  }

  std::string_view wanted() const {
    switch (place_) {
      case Place::document:
      case Place::header:
        return "an object";
      case Place::metadata:
        return "a string";
      case Place::tensor:
        return key_ == "dtype" ? "a string" : "an array";
      case Place::numbers:
        return "a whole number of 0 or more";
      case Place::end:
        return "the end";
    }
    return "";
  }

  void start_member() {
    if (key_ == metadata_key) {
      if (metadata_seen_++ > 0) throw_error(ErrorCode::bad_file, "{} is given twice", metadata_key);
      return;
    }
    if (static_cast<Index>(header_.tensors.size()) == safetensors_tensors_max)
      throw_error(ErrorCode::unsupported, "more than {} tensors in a file", safetensors_tensors_max);
    header_.tensors.push_back({.name = key_});
    offsets_ = Indices();
    shape_.clear();
    dtype_seen_ = shape_seen_ = offsets_seen_ = 0;
  }

  void start_key() {
    int* seen = key_ == "dtype"          ? &dtype_seen_
                : key_ == "shape"        ? &shape_seen_
                : key_ == "data_offsets" ? &offsets_seen_
                                         : nullptr;
    if (!seen)
      throw_error(ErrorCode::unsupported, "{}: unknown key '{}', its keys are dtype, shape and data_offsets",
                  named(tensor()), printable(key_));
    if ((*seen)++ > 0) throw_error(ErrorCode::bad_file, "{}: {} is given twice", named(tensor()), key_);
  }

  void finish_tensor() {
    SafetensorsEntry& out = tensor();
    const auto require = [&](int seen, const char* name) {
      if (seen == 0) throw_error(ErrorCode::bad_file, "{}: {} is missing", named(out), name);
    };
    require(dtype_seen_, "dtype");
    require(shape_seen_, "shape");
    require(offsets_seen_, "data_offsets");
    if (offsets_.size() != 2)
      throw_error(ErrorCode::bad_file, "{}: data_offsets has {}, 2 are needed", named(out),
                  amount(offsets_.size(), "number"));
    Result<TensorForm> form = attempt([&] { return form_of(out.dtype, shape_); });
    if (!form) throw make_error(form.error().code(), "{}: {}", named(out), form.error().message());
    out.type = form.value().type;
    out.extents = form.value().extents;
    out.size_bytes = form.value().size_bytes;
    if (form.value().opaque) out.opaque_shape = shape_;
    out.offset_bytes = offsets_[0];
    if (offsets_[1] < offsets_[0] || offsets_[1] - offsets_[0] != out.size_bytes)
      throw_error(ErrorCode::bad_file, "{}: data_offsets [{}] do not hold {} elements [{}] of {}", named(out),
                  to_string(offsets_), out.dtype, join_text(shape_, ", "), amount(out.size_bytes, "byte"));
  }

  SafetensorsHeader header_;
  Place place_ = Place::document;
  std::string key_;
  Indices offsets_;
  std::vector<Index> shape_;
  int metadata_seen_ = 0, dtype_seen_ = 0, shape_seen_ = 0, offsets_seen_ = 0;
};

/// Returns the end of all elements. Throws `bad_file` unless the tensors follow one another from 0 on.
Index check_offsets(const SafetensorsHeader& header) {
  std::vector<const SafetensorsEntry*> by_offset;
  for (const SafetensorsEntry& tensor : header.tensors) by_offset.push_back(&tensor);
  // Empty tensors come before the tensor that begins at the same offset.
  std::sort(by_offset.begin(), by_offset.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->offset_bytes, a->size_bytes) < std::pair(b->offset_bytes, b->size_bytes);
  });
  Index end = 0;
  for (const SafetensorsEntry* tensor : by_offset) {
    if (tensor->offset_bytes != end)
      throw_error(ErrorCode::bad_file, "{} begins at {}, the tensor before it ends at {}: {}", named(*tensor),
                  tensor->offset_bytes, end, tensor->offset_bytes < end ? "they overlap" : "there is a hole");
    end = checked_add(end, tensor->size_bytes);
  }
  return end;
}

SafetensorsHeader read(std::span<const std::byte> head, Index file_size_bytes) {
  const Index given = static_cast<Index>(head.size());
  if (file_size_bytes < length_bytes)
    throw_error(ErrorCode::bad_file, "truncated: a safetensors file needs {}, the file has {}",
                amount(length_bytes, "byte"), file_size_bytes);
  const auto need = [&](Index bytes) {
    if (given < bytes)
      throw_error(ErrorCode::invalid_use, "the header needs {}, {} were given", amount(bytes, "byte"), given);
  };
  need(length_bytes);
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(head[i]);
  if (length > static_cast<std::uint64_t>(safetensors_header_bytes_max))
    throw_error(ErrorCode::bad_file, "not a safetensors file: it says that its header has {}, at most {} are",
                amount(length, "byte"), safetensors_header_bytes_max);
  const Index header_bytes = length_bytes + static_cast<Index>(length);
  if (file_size_bytes < header_bytes)
    throw_error(ErrorCode::bad_file, "truncated: the header needs {}, the file has {}", amount(header_bytes, "byte"),
                file_size_bytes);
  need(header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + length_bytes,
                              static_cast<std::size_t>(length));
  if (!text.starts_with('{'))
    throw_error(ErrorCode::bad_file, "not a safetensors file: its header begins with '{}', not with '{{'",
                printable(text.substr(0, 8)));
  HeaderEvents events;
  read_json(text, events);
  SafetensorsHeader out = events.finish();
  out.header_bytes = header_bytes;
  const Index data_bytes = check_offsets(out);
  if (data_bytes != file_size_bytes - header_bytes)
    throw_error(ErrorCode::bad_file, "the tensors have {}, the file has {} after its header",
                amount(data_bytes, "byte"), file_size_bytes - header_bytes);
  return out;
}

std::string text_of(const SafetensorsHeader& header) {
  std::string out = "{";
  if (!header.metadata.empty()) {
    out += fmt::format("\"{}\":{{", metadata_key);
    for (const auto& [name, text] : header.metadata)
      out += fmt::format("{}{}:{}", out.back() == '{' ? "" : ",", json_string(name), json_string(text));
    out += '}';
  }
  for (const SafetensorsEntry& tensor : header.tensors)
    out += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", out.size() > 1 ? "," : "",
                       json_string(tensor.name), tensor.dtype,
                       join_text(shape_of(tensor.extents, tensor.opaque_shape), ","), tensor.offset_bytes,
                       tensor.offset_bytes + tensor.size_bytes);
  out += '}';
  out.append((alignment_bytes - out.size() % alignment_bytes) % alignment_bytes, ' ');
  return out;
}

/// Throws the errors that parse_safetensors_header would throw for the written header.
void check(const SafetensorsHeader& header) {
  std::vector<std::string_view> names;
  for (const SafetensorsEntry& tensor : header.tensors) {
    if (tensor.name == metadata_key) throw_error(ErrorCode::bad_file, "{} is no name of a tensor", metadata_key);
    const TensorForm form = form_of(tensor.dtype, shape_of(tensor.extents, tensor.opaque_shape));
    if (tensor.type != form.type || form.opaque == tensor.opaque_shape.empty())
      throw_error(ErrorCode::bad_file, "{}: dtype '{}' does not spell elements {}", named(tensor), tensor.dtype,
                  name_of(tensor.type));
    if (tensor.size_bytes != form.size_bytes || !(tensor.extents == form.extents))
      throw_error(ErrorCode::bad_file, "{}: {}, its extents [{}] have {}", named(tensor),
                  amount(tensor.size_bytes, "byte"), to_string(tensor.extents), form.size_bytes);
    names.push_back(tensor.name);
  }
  refuse_equal(std::move(names), "tensor");
  names.clear();
  for (const auto& [name, text] : header.metadata) names.push_back(name);
  refuse_equal(std::move(names), "metadata");
  check_offsets(header);
}

}  // namespace

Index SafetensorsHeader::data_bytes() const {
  Index out = 0;
  for (const SafetensorsEntry& tensor : tensors) out = checked_add(out, tensor.size_bytes);
  return out;
}

Result<TensorForm> tensor_form(std::string_view dtype, std::span<const Index> shape) {
  return attempt([&] { return form_of(dtype, shape); });
}

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head, Index file_size_bytes) {
  return attempt([&] { return read(head, file_size_bytes); });
}

SafetensorsHeader make_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                          std::vector<std::pair<std::string, std::string>> metadata) {
  SafetensorsHeader out{.metadata = std::move(metadata)};
  for (const SafetensorsTensor& tensor : tensors) {
    const TensorForm form = form_of(tensor.dtype, shape_of(tensor.extents, tensor.opaque_shape));
    out.tensors.push_back({.name = tensor.name,
                           .dtype = tensor.dtype,
                           .type = form.type,
                           .extents = form.extents,
                           .opaque_shape = tensor.opaque_shape,
                           .size_bytes = form.size_bytes});
  }
  std::vector<SafetensorsEntry*> by_size;
  for (SafetensorsEntry& tensor : out.tensors) by_size.push_back(&tensor);
  // An opaque tensor moves as bytes, but is aligned to its elements, too.
  const auto width = [](const SafetensorsEntry* tensor) {
    return size_bytes(whole_type(tensor->dtype).value_or(ElementType::u8));
  };
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](const SafetensorsEntry* a, const SafetensorsEntry* b) { return width(a) > width(b); });
  Index end = 0;
  for (SafetensorsEntry* tensor : by_size) {
    tensor->offset_bytes = end;
    end = checked_add(end, tensor->size_bytes);
  }
  out.header_bytes = static_cast<Index>(format_safetensors_header(out).size());
  checked_add(out.header_bytes, end);
  return out;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  if (const Result<void> valid = attempt([&] { check(header); }); !valid) {
    const bool form = valid.error().code() == ErrorCode::bad_file;
    throw Error(form ? ErrorCode::invalid_use : valid.error().code(), valid.error().message());
  }
  const std::string text = text_of(header);
  if (static_cast<Index>(text.size()) > safetensors_header_bytes_max)
    throw_error(ErrorCode::unsupported, "a safetensors header of {}: the format allows {}", amount(text.size(), "byte"),
                safetensors_header_bytes_max);
  std::string out;
  for (int i = 0; i < length_bytes; ++i) out += static_cast<char>(text.size() >> 8 * i & 0xff);
  return out + text;
}

std::span<const std::byte> SafetensorsFile::bytes_of(const SafetensorsEntry& tensor) const {
  return file.bytes().subspan(static_cast<std::size_t>(header.header_bytes + tensor.offset_bytes),
                              static_cast<std::size_t>(tensor.size_bytes));
}

Result<SafetensorsFile> open_safetensors(const std::string& path, FileAccess access) {
  Result<MappedFile> file = MappedFile::open(path, access);
  if (!file) return file.error();
  Result<SafetensorsHeader> header = parse_safetensors_header(file.value().bytes(), file.value().size_bytes());
  if (const Result<void> whole = attempt([&] { file.value().check(); }); !whole) return whole.error();
  if (!header) return make_error(header.error().code(), "'{}': {}", path, header.error().message());
  return SafetensorsFile{std::move(file).value(), std::move(header).value()};
}

}  // namespace tranship
