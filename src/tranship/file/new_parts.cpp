#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/checksum.hpp>
#include <tranship/file/new_parts.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;
using posix::FileDescriptor;
using posix::io_error;

bool is_directory(const std::string& path) {
  std::error_code failure;
  const bool out = fs::is_directory(path, failure);
  return out && !failure;
}

bool exists(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is found when it is opened
  return fs::exists(path, ignored);
}

void check_replaceable_file(const std::string& target) {
  if (!exists(target)) return;
  if (is_directory(target))
    throw_error(ErrorCode::invalid_use, "'{}' exists and is a directory, not a .npy file", target);
  static constexpr std::string_view magic = "\x93NUMPY";
  const MappedFile old = MappedFile::open(target).value();
  const std::string_view found(reinterpret_cast<const char*>(old.bytes().data()), old.bytes().size());
  if (!found.starts_with(magic))
    throw_error(ErrorCode::invalid_use, "'{}' exists and is not a .npy file: it is not replaced", target);
}

/// Whatever lies in a replaced directory is gone: there must be nothing but what its manifest names.
void check_replaceable_directory(const std::string& target) {
  if (!exists(target)) return;
  if (!is_directory(target)) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a directory", target);
  if (!exists(target + "/" + manifest_name))
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and holds no '{}': it is not replaced", target,
                manifest_name);
  const Result<Manifest> manifest = read_manifest(target);
  if (!manifest)
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: {}", target,
                manifest.error().message());
  std::vector<std::string> known = manifest.value().files;
  known.push_back(manifest_name);
  std::sort(known.begin(), known.end());
  std::error_code failure;
  for (fs::directory_iterator entry(target, failure), end; !failure && entry != end; entry.increment(failure))
    if (const std::string name = entry->path().filename().string();
        !std::binary_search(known.begin(), known.end(), name))
      throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: its manifest does not name '{}'",
                  target, name);
  if (failure) throw io_error("list", target, failure.value());
}

void make_file(const std::string& path, Index size_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) throw io_error("create", path, errno);
  if (const int failure = posix::reserve(file.number(), size_bytes))
    throw_error(ErrorCode::io, "cannot reserve {} bytes for '{}': {}", size_bytes, path,
                std::generic_category().message(failure));
}

}  // namespace

NewParts::NewParts(Manifest manifest, Staging staging)
    : manifest_(std::move(manifest)),
      parts_{manifest_.spec, manifest_.descr, std::make_shared<FileSet>(FileAccess::read_write), {}, {}},
      staging_(std::move(staging)) {
  for (Index i = 0; i < static_cast<Index>(manifest_.files.size()); ++i) {
    const NpyHeader header = header_of(i);
    parts_.parts.push_back({i, header.header_bytes, header.order, header.extents});
  }
}

Result<NewParts> NewParts::open(const std::string& target, const ArraySpec& spec, const std::string& descr) {
  return attempt([&] {
    Manifest manifest = make_manifest(spec, descr);
    const bool single = target.ends_with(".npy");
    if (const Index parts = spec.distribution.grid().size(); single && parts != 1)
      throw_error(ErrorCode::invalid_use, "'{}' is to be a file of 1 part, the layout has {}: name a directory", target,
                  parts);
    single ? check_replaceable_file(target) : check_replaceable_directory(target);
    const StagedKind kind = single ? StagedKind::file : StagedKind::directory;
    return NewParts(std::move(manifest), Staging::open(target, kind, manifest_name).value());
  });
}

NpyHeader NewParts::header_of(Index ordinal) const {
  const ArraySpec& spec = manifest_.spec;
  const NpyElement element = parse_npy_descr(manifest_.descr).value();
  NpyHeader out{.type = element.type,
                .byte_order = element.byte_order,
                .order = stored_order(spec),
                .extents = spec.distribution.local_extents(spec.distribution.grid().rank_at(ordinal)),
                .descr = manifest_.descr};
  out.header_bytes = static_cast<Index>(format_npy_header(out).size());
  return out;
}

std::string NewParts::path_of(Index ordinal) const {
  return staging_.kind() == StagedKind::file ? staging_.path() : staging_.path() + "/" + manifest_.files[ordinal];
}

std::string NewParts::file_name(Index ordinal) const {
  return staging_.kind() == StagedKind::file ? fs::path(staging_.target()).filename().string()
                                             : manifest_.files[ordinal];
}

void NewParts::begin() {
  staging_.begin();
  parts_.files = std::make_shared<FileSet>(FileAccess::read_write);
  for (Index i = 0; i < static_cast<Index>(parts_.parts.size()); ++i) {
    make_file(path_of(i), checked_add(parts_.parts[i].offset_bytes, parts_.part_bytes(i)));
    parts_.files->add(path_of(i)).value();
  }
  write_headers();
}

bool NewParts::resume(const JournalSubject& subject) {
  if (!staging_.resume(subject.name, subject.inode)) return false;
  auto files = std::make_shared<FileSet>(FileAccess::read_write);
  for (Index i = 0; i < static_cast<Index>(parts_.parts.size()); ++i) {
    const Result<Index> file = files->add(path_of(i));
    if (!file || files->size_bytes(i) != parts_.parts[i].offset_bytes + parts_.part_bytes(i)) return false;
  }
  parts_.files = std::move(files);
  write_headers();
  return true;
}

void NewParts::write_headers() {
  for (Index i = 0; i < static_cast<Index>(parts_.parts.size()); ++i) {
    const std::string header = format_npy_header(header_of(i));
    parts_.files->write(i, 0, std::as_bytes(std::span(header)));
  }
}

std::uint32_t NewParts::header_contribution(Index file) const {
  const std::string header = format_npy_header(header_of(file));
  return moved_on(crc32_of(std::as_bytes(std::span(header))), parts_.part_bytes(file));
}

void NewParts::write_manifest(std::span<const std::uint32_t> checksums) {
  if (staging_.kind() == StagedKind::file) return;
  manifest_.checksums.assign(checksums.begin(), checksums.end());
  const std::string text = format_manifest(manifest_), path = staging_.path() + "/" + manifest_name;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) throw io_error("create", path, errno);
  posix::write_at(file.number(), path, 0, std::as_bytes(std::span(text)));
  if (posix::disk.fsync(file.number()) != 0) throw io_error("sync", path, errno);
}

}  // namespace tranship
