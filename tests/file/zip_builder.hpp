// Zip archives made by hand, with any field free to lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <zlib.h>

namespace tranship::testing {

inline std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
  return out;
}

/// The bare deflated form of `data`.
inline std::string deflated(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

inline std::uint32_t crc_of(const std::string& data) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

/// A member as it is written; what is empty is the truth.
struct BuiltMember {
  std::string name;
  std::string data;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  /// The packed bytes, where they are not what the method makes of the data.
  std::optional<std::string> packed = {};
  std::optional<std::uint32_t> crc = {};
  std::optional<std::uint32_t> size = {};
  std::optional<std::uint32_t> packed_size = {};
  std::optional<std::uint32_t> header_offset = {};
  std::optional<std::string> local_name = {};
  std::optional<std::uint16_t> local_method = {};
  std::string local_extra = {};
  std::string extra = {};
  std::uint16_t disk = 0;
};

struct BuiltArchive {
  std::vector<BuiltMember> members;
  std::string front = {};
  std::string comment = {};
  std::uint16_t disk = 0;
  std::optional<std::uint16_t> count = {};
  std::optional<std::uint16_t> count_here = {};
  std::optional<std::uint32_t> directory_bytes = {};
  std::optional<std::uint32_t> directory_offset = {};
  std::string after_directory = {};

  std::string bytes() const {
    std::string out = front, directory;
    for (const BuiltMember& member : members) {
      const std::string packed = member.packed.value_or(member.method == 8 ? deflated(member.data) : member.data);
      const std::string crc_and_sizes = little(member.crc.value_or(crc_of(member.data)), 4) +
                                        little(member.packed_size.value_or(packed.size()), 4) +
                                        little(member.size.value_or(member.data.size()), 4);
      const std::string local_name = member.local_name.value_or(member.name);
      directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(member.flags, 2) + little(member.method, 2) +
                   little(0, 4) + crc_and_sizes + little(member.name.size(), 2) + little(member.extra.size(), 2) +
                   little(0, 2) + little(member.disk, 2) + little(0, 6) +
                   little(member.header_offset.value_or(out.size()), 4) + member.name + member.extra;
      out += "PK\x03\x04" + little(20, 2) + little(member.flags, 2) +
             little(member.local_method.value_or(member.method), 2) + little(0, 4) + crc_and_sizes +
             little(local_name.size(), 2) + little(member.local_extra.size(), 2) + local_name + member.local_extra +
             packed;
    }
    const std::size_t offset = out.size();
    return out + directory + after_directory + "PK\x05\x06" + little(disk, 2) + little(disk, 2) +
           little(count_here.value_or(count.value_or(members.size())), 2) + little(count.value_or(members.size()), 2) +
           little(directory_bytes.value_or(directory.size()), 4) + little(directory_offset.value_or(offset), 4) +
           little(comment.size(), 2) + comment;
  }
};

}  // namespace tranship::testing
