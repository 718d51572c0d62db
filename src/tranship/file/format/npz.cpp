#include "tranship/file/format/npz.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/utf8.hpp>
#include <tranship/file/format/zip.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;
using posix::FileDescriptor;
using posix::io_error;

constexpr std::string_view archive_ending = ".npz", member_ending = ".npy";
// Limit on the names that an error lists.
constexpr std::size_t members_listed_max = 20;

struct OpenMember {
  MappedFile archive;
  ZipMember member;
  std::string path;  ///< as errors call it

  /// Passes its bytes to `sink`, in order.
  void read(FunctionRef<void(std::span<const std::byte>)> sink) const {
    const Result<void> all = read_zip_member(archive.bytes(), member, sink);
    archive.check();
    if (!all) throw make_error(all.error().code(), "'{}': {}", path, all.error().message());
  }
};

std::string without_ending(std::string_view name) {
  if (name.ends_with(member_ending)) name.remove_suffix(member_ending.size());
  return printable(name, name_chars_max);
}

std::string listed(std::span<const ZipMember> members) {
  std::string out;
  for (const ZipMember& member : members.first(std::min(members.size(), members_listed_max)))
    out += fmt::format("{}{}", out.empty() ? "" : ", ", without_ending(member.name));
  if (members.size() > members_listed_max) out += fmt::format(" and {} more", members.size() - members_listed_max);
  return out;
}

OpenMember open_member(const NpzName& name) {
  OpenMember out{MappedFile::open(name.archive).value(), {}, {}};
  const Result<std::vector<ZipMember>> parsed = parse_zip(out.archive.bytes());
  out.archive.check();
  if (!parsed) throw make_error(parsed.error().code(), "'{}': {}", name.archive, parsed.error().message());
  const std::vector<ZipMember>& members = parsed.value();
  const ZipMember* found = nullptr;
  if (name.member) {
    found = find_zip_member(members, *name.member + std::string(member_ending));
    if (!found) found = find_zip_member(members, *name.member);
    if (!found)
      throw_error(ErrorCode::invalid_use, "'{}' has no member '{}'; it has {}", name.archive,
                  printable(*name.member, name_chars_max), members.empty() ? "none" : listed(members));
  } else {
    if (members.size() != 1)
      throw_error(ErrorCode::invalid_use, "'{}' has {}{}{}", name.archive, amount(members.size(), "member"),
                  members.empty()
                      ? ""
                      : fmt::format("; name one, as in '{}:{}': ", name.archive, without_ending(members.front().name)),
                  listed(members));
    found = &members.front();
  }
  out.member = *found;
  out.path = fmt::format("{}:{}", name.archive, without_ending(found->name));
  return out;
}

NpyHeader header_of(const OpenMember& open) {
  std::vector<std::byte> head;
  const auto wanted = static_cast<std::size_t>(std::min(npy_header_bytes_max, open.member.size_bytes));
  struct Enough {};
  try {
    open.read([&](std::span<const std::byte> bytes) {
      head.insert(head.end(), bytes.begin(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), wanted - head.size())));
      if (head.size() == wanted) throw Enough{};
    });
  } catch (const Enough&) {
    // The bytes after the header are read later, or never.
  }
  open.archive.check();
  Result<NpyHeader> header = parse_npy_header(head, open.member.size_bytes);
  if (!header) throw make_error(header.error().code(), "'{}': {}", open.path, header.error().message());
  return std::move(header).value();
}

/// Makes a new nameless file in a folder; it vanishes with its descriptor.
FileDescriptor nameless_file(const std::string& folder) {
  FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.number() >= 0) return file;
  // Some file systems have no nameless files; a file that is unlinked at once is as good.
  std::string name = folder + "/.tranship-inflated-XXXXXX";
  FileDescriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.number() < 0) throw io_error("create a file in", folder, errno);
  if (::unlink(name.c_str()) != 0) throw io_error("remove", name, errno);
  return named;
}

FileDescriptor inflate(const OpenMember& open, const std::string& folder) {
  FileDescriptor file = nameless_file(folder);
  posix::reserve(file.number(), fmt::format("{}/ (of {})", folder, open.path), open.member.size_bytes);
  Index at = 0;
  open.read([&](std::span<const std::byte> bytes) {
    posix::write_at(file.number(), open.path, at, bytes);
    at += static_cast<Index>(bytes.size());
  });
  return file;
}

}  // namespace

std::optional<NpzName> npz_name_of(const std::string& path) {
  std::error_code ignored;  // a path that cannot be inspected fails when it is opened
  if (fs::exists(path, ignored) || path.ends_with(archive_ending))
    return path.ends_with(archive_ending) && !fs::is_directory(path, ignored) ? std::optional(NpzName{path, {}})
                                                                              : std::nullopt;
  const std::size_t colon = path.rfind(std::string(archive_ending) + ":");
  if (colon == std::string::npos) return std::nullopt;
  const std::size_t end = colon + archive_ending.size();
  return NpzName{path.substr(0, end), path.substr(end + 1)};
}

std::string npz_member_name(const NpzName& name) {
  std::string out = name.member.value_or("arr_0");
  if (out.empty())
    throw_error(ErrorCode::invalid_use, "'{}:' names no member: write '{}:NAME'", name.archive, name.archive);
  if (!out.ends_with(member_ending)) out += member_ending;
  if (!is_utf8(out))
    throw_error(ErrorCode::invalid_use, "'{}:{}': a member's name must be UTF-8", name.archive,
                printable(out, name_chars_max));
  // Programs that unpack archives may use the name as a path.
  if (const fs::path path(out); path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
    throw_error(ErrorCode::invalid_use,
                "'{}:{}': a member's name must not leave the archive: no '..', and no '/' in front", name.archive,
                printable(out, name_chars_max));
  return out;
}

Result<NpyHeader> read_npz_header(const NpzName& name) {
  return attempt([&] { return header_of(open_member(name)); });
}

Result<OpenArray> open_npz(const NpzName& name, const std::optional<ArraySpec>& layout) {
  return attempt([&] {
    if (layout) stored_order(*layout);
    const auto files = std::make_shared<FileSet>(FileAccess::read_only);
    const Index archive = files->add(name.archive).value();
    const OpenMember open = open_member(name);
    OpenArray out{whole_array(open.path, header_of(open), layout)};
    if (open.member.method == ZipMethod::stored) {
      StoredPart& part = out.array.parts.front();
      part.file = archive;
      const Index begin = open.member.data_offset_bytes;
      part.offset_bytes = checked_add(part.offset_bytes, begin);
      out.array.checksums[archive] = {open.member.crc32, {{open.path, {begin, begin + open.member.data_bytes}}}};
    } else {
      out.unpacked_bytes = open.member.size_bytes;
    }
    out.array.files = files;
    return out;
  });
}

void unpack_npz(const NpzName& name, const std::string& folder, StoredParts& array) {
  const OpenMember open = open_member(name);
  array.parts.front().file = array.files->adopt(open.path, inflate(open, folder)).value();
  array.checksums.resize(static_cast<std::size_t>(array.files->count()));
}

}  // namespace tranship
