#include "tranship/file/store/new_parts.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/format/manifest.hpp>

namespace tranship {
namespace {

using posix::FileDescriptor;
using posix::io_error;

void make_file(const std::string& path, Index size_bytes, const std::string& room_note = {}) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) throw io_error("create", path, errno);
  posix::reserve(file.number(), path, size_bytes, room_note);
}

}  // namespace

NewParts::NewParts(NewArrays what, Staging staging) : what_(std::move(what)), staging_(std::move(staging)) {}

Result<NewParts> NewParts::open(const std::string& target, NewArrays what) {
  return attempt([&] {
    Staging staging = Staging::open(target, what.kind, manifest_name).value();
    return NewParts(std::move(what), std::move(staging));
  });
}

std::string NewParts::path_of(Index file) const {
  return what_.kind == StagedKind::file ? staging_.path() : staging_.path() + "/" + what_.files[file].name;
}

/// Writes heads and tails, because an earlier run may have been killed before they were on the disk.
void NewParts::use(const std::shared_ptr<FileSet>& files) {
  for (Index i = 0; i < files->count(); ++i) write_around(*files, i);
  for (StoredParts& array : what_.arrays) array.files = files;
}

void NewParts::write_around(const FileSet& files, Index file) const {
  const NewFile& f = what_.files[file];
  files.write(file, 0, std::as_bytes(std::span(f.head)));
  files.write(file, f.tail_offset_bytes(), std::as_bytes(std::span(f.tail)));
}

void NewParts::begin() {
  staging_.begin();
  const auto files = std::make_shared<FileSet>(FileAccess::read_write);
  Index needed_bytes = 0, reserved_bytes = 0;
  for (const NewFile& file : what_.files) needed_bytes += file.size_bytes;
  for (Index i = 0; i < static_cast<Index>(what_.files.size()); ++i) {
    make_file(path_of(i), what_.files[i].size_bytes,
              fmt::format("; {} of the {} of all parts were reserved", reserved_bytes, amount(needed_bytes, "byte")));
    files->add(path_of(i)).value();
    reserved_bytes += what_.files[i].size_bytes;
  }
  use(files);
}

bool NewParts::resume(const JournalSubject& subject) {
  if (!staging_.resume(subject.name, subject.inode)) return false;
  const auto files = std::make_shared<FileSet>(FileAccess::read_write);
  for (Index i = 0; i < static_cast<Index>(what_.files.size()); ++i) {
    const Result<Index> file = files->add(path_of(i));
    if (!file || files->size_bytes(i) != what_.files[i].size_bytes) return false;
  }
  use(files);
  return true;
}

std::shared_ptr<FileSet> NewParts::begin_intermediate(Index size_bytes) const {
  make_file(staging_.intermediate(), size_bytes);
  return resume_intermediate(size_bytes);
}

std::shared_ptr<FileSet> NewParts::resume_intermediate(Index size_bytes) const {
  auto out = std::make_shared<FileSet>(FileAccess::read_write);
  const Result<Index> file = out->add(staging_.intermediate());
  return file && out->size_bytes(0) == size_bytes ? out : nullptr;
}

void NewParts::fill_in(std::span<const std::uint32_t> elements) {
  const FileSet& files = *what_.arrays.front().files;
  for (Index i = 0; i < files.count(); ++i) {
    if (!what_.files[i].inner) continue;
    what_.files[i].fill_in(elements[i]);
    write_around(files, i);
    files.sync({&i, 1});
  }
}

void NewParts::commit() {
  what_.check_replaceable(staging_.target());
  staging_.commit();
}

void NewParts::reserve_beside(std::span<const TextFile> files) const {
  if (staging_.kind() == StagedKind::file) return;
  for (const TextFile& beside : files)
    make_file(staging_.path() + "/" + beside.name, static_cast<Index>(beside.text.size()));
}

void NewParts::write_beside(std::span<const TextFile> files) const {
  if (staging_.kind() == StagedKind::file) return;
  for (const TextFile& beside : files) {
    const std::string path = staging_.path() + "/" + beside.name;
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (file.number() < 0) throw io_error("create", path, errno);
    posix::write_at(file.number(), path, 0, std::as_bytes(std::span(beside.text)));
    if (::ftruncate(file.number(), static_cast<Index>(beside.text.size())) != 0) throw io_error("cut", path, errno);
    if (posix::disk.fsync(file.number()) != 0) throw io_error("sync", path, errno);
  }
}

}  // namespace tranship
