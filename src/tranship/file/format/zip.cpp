#include "tranship/file/format/zip.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <zlib.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/zip_numbers.hpp>

namespace tranship {
namespace {

// The records of the format: a signature, and the bytes of the fixed part.
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr Index end_bytes = 22;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr Index end64_bytes = 56;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr Index locator64_bytes = 20;
constexpr std::uint32_t entry_signature = 0x02014b50;
constexpr Index entry_bytes = 46;
constexpr std::uint32_t local_signature = 0x04034b50;
constexpr Index local_bytes = 30;
// Bit 0 means encrypted, bit 6 strongly encrypted, bit 13 that the directory hides values.
constexpr unsigned encrypted_flags = 1u << 0 | 1u << 6 | 1u << 13;

// Deflate makes at most 258 bytes from 2 bits; one more block as slack for the ends.
constexpr Index inflation_max = 1032;
constexpr Index inflation_slack_bytes = 1032;

/// A part of the archive, read by offset. Every function throws `bad_file` beyond its end.
class Bytes {
 public:
  Bytes(std::span<const std::byte> bytes, Index offset) : bytes_(bytes), offset_(offset) {}

  Index size() const { return static_cast<Index>(bytes_.size()); }

  Bytes part(Index offset, Index count, std::string_view what) const {
    if (offset < 0 || count < 0 || offset > size() || count > size() - offset)
      throw_error(ErrorCode::bad_file, "{} needs {} at offset {}, there are {}", what, amount(count, "byte"),
                  checked_add(offset_, offset), std::max<Index>(0, size() - std::max<Index>(0, offset)));
    return {bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count)), offset_ + offset};
  }

  // Little-endian numbers. The caller has checked that the part is long enough.
  std::uint16_t u16(Index at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  std::uint32_t u32(Index at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t u64(Index at) const { return number(at, 8); }

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::uint64_t number(Index at, Index count) const {
    TRANSHIP_ASSERT(at >= 0 && at + count <= size());
    std::uint64_t out = 0;
    for (Index i = count; i-- > 0;) out = out << 8 | std::to_integer<std::uint64_t>(bytes_[at + i]);
    return out;
  }

  std::span<const std::byte> bytes_;
  Index offset_;
};

Index index_of(std::uint64_t value, std::string_view what) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
    throw_error(ErrorCode::bad_file, "{} of {} does not fit in 63 bits", what, amount(value, "byte"));
  return static_cast<Index>(value);
}

/// The place of the directory, as the end of the archive states it.
struct Directory {
  Index offset = 0;
  Index bytes = 0;
  Index members = 0;
};

Index find_end(const Bytes& archive) {
  // A comment of up to 65535 bytes may follow and may contain any bytes. Its length must reach the end of the file.
  const Index first = std::max<Index>(0, archive.size() - end_bytes - zip_max16);
  for (Index at = archive.size() - end_bytes; at >= first; --at)
    if (archive.u32(at) == end_signature && at + end_bytes + archive.u16(at + 20) == archive.size()) return at;
  throw_error(ErrorCode::bad_file, "not a zip archive, or truncated: {} without an end record",
              amount(archive.size(), "byte"));
}

void refuse_disks(std::uint32_t disk, std::uint32_t directory_disk) {
  if (disk != 0 || directory_disk != 0)
    throw_error(ErrorCode::unsupported, "an archive of several disks: this is disk {}, its directory is on disk {}",
                disk, directory_disk);
}

void refuse_missing_members(std::uint64_t here, std::uint64_t all) {
  if (here != all)
    throw_error(ErrorCode::unsupported, "an archive of several disks: {} of {} are on this one", here,
                amount(all, "member"));
}

void check_end(const Directory& directory, Index end) {
  if (directory.offset > end || directory.bytes != end - directory.offset)
    throw_error(ErrorCode::bad_file, "the directory of {} at offset {} does not end at {}, where its end is",
                amount(directory.bytes, "byte"), directory.offset, end);
}

/// Reads the zip64 record, which has the values that do not fit in the 32-bit record. `limit` is the locator's offset.
Directory read_end64(const Bytes& archive, Index limit) {
  const Bytes locator = archive.part(limit, locator64_bytes, "the zip64 locator");
  if (locator.u32(16) > 1) refuse_disks(locator.u32(16) - 1, locator.u32(4));
  const Index at = index_of(locator.u64(8), "an offset");
  const Bytes record = archive.part(at, end64_bytes, "the zip64 end record");
  if (record.u32(0) != end64_signature)
    throw_error(ErrorCode::bad_file, "no zip64 end record at offset {}, where the locator says", at);
  const Index record_bytes = checked_add(index_of(record.u64(4), "the zip64 end record"), 12);
  if (record_bytes < end64_bytes || record_bytes != limit - at)
    throw_error(ErrorCode::bad_file, "the zip64 end record of {} at offset {} does not reach its locator at {}",
                amount(record_bytes, "byte"), at, limit);
  refuse_disks(record.u32(16), record.u32(20));
  refuse_missing_members(record.u64(24), record.u64(32));
  const Directory out{.offset = index_of(record.u64(48), "an offset"),
                      .bytes = index_of(record.u64(40), "a directory"),
                      .members = index_of(record.u64(32), "a list of members")};
  check_end(out, at);
  return out;
}

/// Checks that a field that is too narrow has its largest value, or the same value as the wide field.
void check_narrow(std::uint32_t narrow, std::uint32_t largest, Index wide) {
  if (narrow != largest && narrow != wide)
    throw_error(ErrorCode::bad_file, "the end record says {}, the zip64 end record {}", narrow, wide);
}

Directory find_directory(const Bytes& archive) {
  const Index at = find_end(archive);
  const Bytes end = archive.part(at, end_bytes, "the end record");
  if (at >= locator64_bytes && archive.u32(at - locator64_bytes) == locator64_signature) {
    const Directory wide = read_end64(archive, at - locator64_bytes);
    check_narrow(end.u16(10), zip_max16, wide.members);
    check_narrow(end.u32(12), zip_max32, wide.bytes);
    check_narrow(end.u32(16), zip_max32, wide.offset);
    return wide;
  }
  refuse_disks(end.u16(4), end.u16(6));
  refuse_missing_members(end.u16(8), end.u16(10));
  const Directory out{.offset = end.u32(16), .bytes = end.u32(12), .members = end.u16(10)};
  check_end(out, at);
  return out;
}

/// One entry of the directory: a member whose data is not located yet, and the offset of its local header.
struct Entry {
  ZipMember member;
  Index header_offset = 0;
};

/// Reads the values that do not fit in the entry from the zip64 extra field, in the order of the format.
void widen(const Bytes& extra, std::string_view name, std::span<std::uint64_t* const> values) {
  if (values.empty()) return;
  for (Index at = 0; at + 4 <= extra.size();) {
    const Bytes field = extra.part(at + 4, extra.u16(at + 2), "an extra field");
    if (extra.u16(at) == zip_extra64_id) {
      if (field.size() < static_cast<Index>(values.size()) * 8)
        throw_error(ErrorCode::bad_file, "member '{}': its zip64 field has {}, {} are needed",
                    printable(name, name_chars_max), amount(field.size(), "byte"), values.size() * 8);
      for (std::size_t i = 0; i < values.size(); ++i) *values[i] = field.u64(static_cast<Index>(i) * 8);
      return;
    }
    at += 4 + field.size();
  }
  // Without the field, the largest 32-bit number is the value itself.
}

void check_sizes(const ZipMember& member) {
  const Index size = member.size_bytes, packed = member.data_bytes;
  const bool lies = (member.method == ZipMethod::stored && member.cipher == ZipCipher::none && size != packed) ||
                    (member.method == ZipMethod::deflated && size / inflation_max > packed + inflation_slack_bytes);
  if (lies)
    throw_error(ErrorCode::bad_file, "member '{}': {} cannot come from {}", printable(member.name, name_chars_max),
                amount(size, "byte"),
                amount(packed, member.method == ZipMethod::stored ? "stored byte" : "deflated byte"));
}

/// Reads the entry at `at` and advances `at` behind it.
Entry read_entry(const Bytes& directory, Index& at) {
  const Bytes fixed = directory.part(at, entry_bytes, "an entry of the directory");
  if (fixed.u32(0) != entry_signature)
    throw_error(ErrorCode::bad_file, "byte {} of the directory does not begin an entry: found 0x{:08x}", at,
                fixed.u32(0));
  const Index name_bytes = fixed.u16(28), extra_bytes = fixed.u16(30), comment_bytes = fixed.u16(32);
  const std::string_view name = directory.part(at + entry_bytes, name_bytes, "the name of a member").text();
  const Bytes extra = directory.part(at + entry_bytes + name_bytes, extra_bytes, "the extra fields of a member");
  at += entry_bytes + name_bytes + extra_bytes;
  directory.part(at, comment_bytes, "the comment of a member");
  at += comment_bytes;

  std::uint64_t size = fixed.u32(24), packed = fixed.u32(20), header_offset = fixed.u32(42);
  std::array<std::uint64_t*, 3> narrow{};
  std::size_t narrow_count = 0;
  for (std::uint64_t* value : {&size, &packed, &header_offset})
    if (*value == zip_max32) narrow[narrow_count++] = value;
  widen(extra, name, std::span(narrow).first(narrow_count));
  if (const unsigned disk = fixed.u16(34); disk != 0 && disk != zip_max16)
    throw_error(ErrorCode::unsupported, "an archive of several disks: member '{}' is on disk {}",
                printable(name, name_chars_max), disk);
  Entry out{.member = {.name = std::string(name),
                       .method = static_cast<ZipMethod>(fixed.u16(10)),
                       .cipher = fixed.u16(8) & encrypted_flags ? ZipCipher::encrypted : ZipCipher::none,
                       .crc32 = fixed.u32(16),
                       .size_bytes = index_of(size, "a member"),
                       .data_bytes = index_of(packed, "a member")},
            .header_offset = index_of(header_offset, "an offset")};
  check_sizes(out.member);
  return out;
}

/// Finds the data of a member behind its local header, which must describe the same member. `limit` is the offset of
/// the directory.
void locate_data(const Bytes& archive, Index limit, Entry& entry) {
  const Bytes members = archive.part(0, limit, "the members");
  const std::string what = fmt::format("member '{}'", printable(entry.member.name, name_chars_max));
  const Bytes header = members.part(entry.header_offset, local_bytes, what);
  if (header.u32(0) != local_signature)
    throw_error(ErrorCode::bad_file, "{}: no header at offset {}, where the directory says", what, entry.header_offset);
  const Index name_bytes = header.u16(26), extra_bytes = header.u16(28);
  const std::string_view name = members.part(entry.header_offset + local_bytes, name_bytes, what).text();
  if (name != entry.member.name)
    throw_error(ErrorCode::bad_file, "{}: its header says '{}'", what, printable(name, name_chars_max));
  if (header.u16(8) != static_cast<std::uint16_t>(entry.member.method))
    throw_error(ErrorCode::bad_file, "{}: method {} in the directory, {} in its header", what,
                static_cast<std::uint16_t>(entry.member.method), header.u16(8));
  entry.member.data_offset_bytes = entry.header_offset + local_bytes + name_bytes + extra_bytes;
  members.part(entry.member.data_offset_bytes, entry.member.data_bytes, what);
}

void refuse_overlap(const std::vector<Entry>& entries) {
  std::vector<const Entry*> by_offset;
  for (const Entry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Entry* a, const Entry* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const ZipMember& before = by_offset[i - 1]->member;
    const Index end = before.data_offset_bytes + before.data_bytes;
    if (end > by_offset[i]->header_offset)
      throw_error(ErrorCode::bad_file, "members '{}' and '{}' overlap: one ends at {}, the other begins at {}",
                  printable(before.name, name_chars_max), printable(by_offset[i]->member.name), end,
                  by_offset[i]->header_offset);
  }
}

void refuse_equal_names(const std::vector<ZipMember>& members) {
  std::vector<std::string_view> names;
  for (const ZipMember& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw_error(ErrorCode::bad_file, "two members are named '{}'", printable(*twice, name_chars_max));
}

std::vector<ZipMember> read_directory(std::span<const std::byte> bytes) {
  const Bytes archive(bytes, 0);
  const Directory found = find_directory(archive);
  if (found.members > zip_members_max)
    throw_error(ErrorCode::unsupported, "an archive of {}: at most {} are read", amount(found.members, "member"),
                zip_members_max);
  const Bytes directory = archive.part(found.offset, found.bytes, "the directory");
  if (found.members > found.bytes / entry_bytes)
    throw_error(ErrorCode::bad_file, "a directory of {} cannot list {}", amount(found.bytes, "byte"),
                amount(found.members, "member"));
  std::vector<Entry> entries;
  for (Index at = 0; at < found.bytes;) {
    if (static_cast<Index>(entries.size()) == found.members)
      throw_error(ErrorCode::bad_file, "the directory goes on for {} after its {}", amount(found.bytes - at, "byte"),
                  amount(found.members, "member"));
    entries.push_back(read_entry(directory, at));
    locate_data(archive, found.offset, entries.back());
  }
  if (static_cast<Index>(entries.size()) != found.members)
    throw_error(ErrorCode::bad_file, "the directory says {} and lists {}", amount(found.members, "member"),
                entries.size());
  refuse_overlap(entries);
  std::vector<ZipMember> out;
  for (Entry& entry : entries) out.push_back(std::move(entry.member));
  refuse_equal_names(out);
  return out;
}

/// Returns the packed bytes. Throws `unsupported` if they are packed in a way that is not read.
std::span<const std::byte> packed_bytes(std::span<const std::byte> archive, const ZipMember& member) {
  if (member.cipher != ZipCipher::none)
    throw_error(ErrorCode::unsupported, "member '{}' is encrypted", printable(member.name, name_chars_max));
  if (member.method != ZipMethod::stored && member.method != ZipMethod::deflated)
    throw_error(ErrorCode::unsupported, "member '{}' is packed by method {}: 0 (stored) and 8 (deflated) are read",
                printable(member.name, name_chars_max), static_cast<std::uint16_t>(member.method));
  const Index size = static_cast<Index>(archive.size());
  if (member.data_offset_bytes < 0 || member.data_bytes < 0 || member.data_offset_bytes > size ||
      member.data_bytes > size - member.data_offset_bytes)
    throw_error(ErrorCode::invalid_use, "member '{}' has {} at offset {} of another archive, this one has {}",
                printable(member.name, name_chars_max), amount(member.data_bytes, "byte"), member.data_offset_bytes,
                size);
  return archive.subspan(static_cast<std::size_t>(member.data_offset_bytes),
                         static_cast<std::size_t>(member.data_bytes));
}

/// Counts the bytes that go to the sink and checks them against the directory.
class CheckedSink {
 public:
  CheckedSink(const ZipMember& member, FunctionRef<void(std::span<const std::byte>)> sink)
      : member_(member), sink_(sink) {}

  void take(std::span<const std::byte> bytes) {
    bytes_ += static_cast<Index>(bytes.size());
    if (bytes_ > member_.size_bytes) refuse_length("more");
    crc_ = ::crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    if (!bytes.empty()) sink_(bytes);
  }

  void finish() const {
    if (bytes_ != member_.size_bytes) refuse_length(fmt::format("{}", bytes_));
    if (crc_ != member_.crc32)
      throw_error(ErrorCode::bad_file, "member '{}': CRC {:08x}, the directory says {:08x}",
                  printable(member_.name, name_chars_max), crc_, member_.crc32);
  }

 private:
  [[noreturn]] void refuse_length(std::string_view found) const {
    throw_error(ErrorCode::bad_file, "member '{}': the directory says {}, its data gives {}",
                printable(member_.name, name_chars_max), amount(member_.size_bytes, "byte"), found);
  }

  const ZipMember& member_;
  FunctionRef<void(std::span<const std::byte>)> sink_;
  Index bytes_ = 0;
  unsigned long crc_ = ::crc32_z(0, nullptr, 0);
};

class Inflater {
 public:
  Inflater() {
    // Negative: the bare format, without a header and a checksum of its own.
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK)
      throw_error(ErrorCode::no_memory, "no memory to inflate: about {} bytes are needed", 1 << MAX_WBITS);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream_); }

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

void inflate_to(std::span<const std::byte> packed, const ZipMember& member, CheckedSink& sink) {
  constexpr std::size_t input_bytes_max = std::size_t(1) << 30;  // zlib counts in 32 bits
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::vector<std::byte> chunk(static_cast<std::size_t>(zip_chunk_bytes_max));
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::span<const std::byte> input = packed.first(std::min(packed.size(), input_bytes_max));
      packed = packed.subspan(input.size());
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input.data()));
      stream.avail_in = static_cast<uInt>(input.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    state = ::inflate(&stream, Z_NO_FLUSH);
    sink.take(std::span(chunk).first(chunk.size() - stream.avail_out));
    if (state == Z_MEM_ERROR)
      throw_error(ErrorCode::no_memory, "no memory to inflate member '{}'", printable(member.name, name_chars_max));
    // Z_BUF_ERROR: there is no more input.
    if (state != Z_OK && state != Z_STREAM_END)
      throw_error(ErrorCode::bad_file, "member '{}': {}", printable(member.name, name_chars_max),
                  state == Z_BUF_ERROR ? "its deflated data is cut" : "its data is not deflated");
  }
  if (const std::size_t rest = stream.avail_in + packed.size(); rest > 0)
    throw_error(ErrorCode::bad_file, "member '{}': {} after the end of its deflated data",
                printable(member.name, name_chars_max), amount(rest, "byte"));
}

}  // namespace

Result<std::vector<ZipMember>> parse_zip(std::span<const std::byte> archive) {
  return attempt([&] { return read_directory(archive); });
}

const ZipMember* find_zip_member(std::span<const ZipMember> members, std::string_view name) {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

Result<void> read_zip_member(std::span<const std::byte> archive, const ZipMember& member,
                             FunctionRef<void(std::span<const std::byte>)> sink) {
  return attempt([&] {
    std::span<const std::byte> packed = packed_bytes(archive, member);
    CheckedSink checked(member, sink);
    if (member.method == ZipMethod::deflated) {
      inflate_to(packed, member, checked);
    } else {
      while (!packed.empty()) {
        const std::size_t count = std::min(packed.size(), static_cast<std::size_t>(zip_chunk_bytes_max));
        checked.take(packed.first(count));
        packed = packed.subspan(count);
      }
    }
    checked.finish();
  });
}

}  // namespace tranship
