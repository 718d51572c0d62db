#include "tranship/base/element_type.hpp"

#include <bit>
#include <iterator>
#include <string>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {
namespace {

struct Row {
  std::string_view name;
  int size_bytes;
  std::string_view numpy;
  ElementType part;
};

constexpr Row rows[] = {
#define TRANSHIP_ELEMENT(name, size, numpy, part) {#name, size, numpy, ElementType::part},
#include <tranship/base/elements.def>
#undef TRANSHIP_ELEMENT
};

const Row& row(ElementType type) {
  return rows[static_cast<int>(type)];
}

/// Returns NumPy's name of the dtype: "float64".
std::string numpy_name(const Row& row) {
  if (row.name == "bf16") return "bfloat16";
  const char kind = row.numpy[0];
  const char* const word = kind == 'i' ? "int" : kind == 'u' ? "uint" : kind == 'f' ? "float" : "complex";
  return kind == 'b' ? "bool" : word + std::to_string(8 * row.size_bytes);
}

}  // namespace

int size_bytes(ElementType type) noexcept {
  return row(type).size_bytes;
}
std::string_view name_of(ElementType type) noexcept {
  return row(type).name;
}
std::string_view numpy_kind(ElementType type) noexcept {
  return row(type).numpy;
}
bool is_complex(ElementType type) noexcept {
  return row(type).part != type;
}
ElementType part_of(ElementType type) noexcept {
  return row(type).part;
}

Result<ElementType> element_type_named(std::string_view name) {
  for (int i = 0; i < int(std::size(rows)); ++i)
    if (rows[i].name == name) return static_cast<ElementType>(i);
  constexpr char foreign_order = std::endian::native == std::endian::little ? '>' : '<';
  const bool has_order = !name.empty() && std::string_view("<>=|").find(name[0]) != std::string_view::npos;
  for (int i = 0; i < int(std::size(rows)); ++i) {
    if (rows[i].numpy != name.substr(has_order ? 1 : 0) && numpy_name(rows[i]) != name) continue;
    if (has_order && name[0] == foreign_order && rows[i].size_bytes > 1)
      return make_error(ErrorCode::unsupported,
                        "element type '{}' is in another byte order than this machine's; an array holds {}",
                        printable(name), rows[i].name);
    return static_cast<ElementType>(i);
  }
  return make_error(ErrorCode::bad_text,
                    "unknown element type '{}': one of bool8, i8 to i64, u8 to u64, f16, bf16, f32, f64, f128, c64, "
                    "c128, c256, or NumPy's f8, <f8, float64 and the like",
                    printable(name));
}

Result<ElementType> element_type_of_numpy(std::string_view kind) {
  for (int i = 0; i < int(std::size(rows)); ++i)
    if (rows[i].numpy == kind) return static_cast<ElementType>(i);
  return make_error(ErrorCode::bad_file, "NumPy element type '{}' is not a number of 1, 2, 4, 8, 16 or 32 bytes",
                    printable(kind));
}

}  // namespace tranship
