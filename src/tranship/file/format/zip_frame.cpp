#include "tranship/file/format/zip_frame.hpp"

#include <algorithm>
#include <cstdint>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/format/zip_numbers.hpp>

namespace tranship {
namespace {

constexpr std::uint16_t version_plain = 20, version_zip64 = 45;
constexpr std::uint16_t made_on_unix = 3 << 8;
constexpr std::uint16_t name_is_utf8 = 1 << 11;
// The extra field of Android's zipalign: the alignment, then zeros.
constexpr std::uint16_t alignment_id = 0xd935;
constexpr Index alignment_bytes_min = 6;
// 1980-01-01, 00:00: a fixed date, so that equal arrays make equal archives.
constexpr std::uint16_t date = 1 << 5 | 1;
constexpr std::uint32_t regular_file_0644 = 0100644u << 16;

class Record {
 public:
  template <typename T>
  Record& put(std::uint64_t value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_ += static_cast<char>(value >> 8 * i & 0xff);
    return *this;
  }
  Record& u16(std::uint64_t value) { return put<std::uint16_t>(value); }
  Record& u32(std::uint64_t value) { return put<std::uint32_t>(value); }
  Record& u64(std::uint64_t value) { return put<std::uint64_t>(value); }
  Record& text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  Index size() const { return static_cast<Index>(bytes_.size()); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::uint64_t narrow(Index value) {
  return static_cast<std::uint64_t>(std::min<Index>(value, zip_max32));
}

std::string alignment_field(Index field_bytes, Index alignment) {
  Record out;
  out.u16(alignment_id).u16(field_bytes - 4).u16(alignment);
  return out.take() + std::string(static_cast<std::size_t>(field_bytes - alignment_bytes_min), '\0');
}

}  // namespace

ZipFrame zip_frame(std::string_view name, Index member_bytes, Index alignment) {
  TRANSHIP_ASSERT(alignment > 0 && alignment <= zip_max16 / 2 && member_bytes >= 0);
  const auto name_bytes = static_cast<Index>(name.size());
  if (name_bytes < 1 || name_bytes > zip_max16)
    throw_error(ErrorCode::invalid_use, "a member's name has {}: 1 to {} are possible", amount(name_bytes, "byte"),
                zip_max16);
  const bool is_wide = member_bytes >= zip_max32;
  const std::uint16_t version = is_wide ? version_zip64 : version_plain;
  ZipFrame out;

  Record wide;
  if (is_wide) wide.u16(zip_extra64_id).u16(16).u64(member_bytes).u64(member_bytes);
  constexpr Index local_bytes = 30, local_crc = 14, entry_crc = 16;
  const Index in_front = local_bytes + name_bytes + wide.size() + alignment_bytes_min;
  const Index padding = alignment_bytes_min + (alignment - in_front % alignment) % alignment;
  const Index extra_bytes = wide.size() + padding;
  Record local;
  local.u32(0x04034b50).u16(version).u16(name_is_utf8).u16(0).u16(0).u16(date).u32(0);
  local.u32(narrow(member_bytes)).u32(narrow(member_bytes)).u16(name_bytes).u16(extra_bytes);
  local.text(name).text(wide.take()).text(alignment_field(padding, alignment));
  out.crc_places.push_back(local_crc);
  out.head = local.take();

  const Index directory = checked_add(static_cast<Index>(out.head.size()), member_bytes);
  Record entry;
  entry.u32(0x02014b50).u16(made_on_unix | version).u16(version).u16(name_is_utf8).u16(0).u16(0).u16(date).u32(0);
  entry.u32(narrow(member_bytes)).u32(narrow(member_bytes)).u16(name_bytes).u16(is_wide ? 20 : 0);
  entry.u16(0).u16(0).u16(0).u32(regular_file_0644).u32(0).text(name);
  if (is_wide) entry.u16(zip_extra64_id).u16(16).u64(member_bytes).u64(member_bytes);
  out.crc_places.push_back(checked_add(directory, entry_crc));

  const Index entry_bytes = entry.size();
  if (directory >= zip_max32) {
    entry.u32(0x06064b50).u64(44).u16(made_on_unix | version_zip64).u16(version_zip64).u32(0).u32(0).u64(1).u64(1);
    entry.u64(entry_bytes).u64(directory);
    entry.u32(0x07064b50).u32(0).u64(checked_add(directory, entry_bytes)).u32(1);
  }
  entry.u32(0x06054b50).u16(0).u16(0).u16(1).u16(1).u32(entry_bytes).u32(narrow(directory)).u16(0);
  out.tail = entry.take();
  return out;
}

}  // namespace tranship
