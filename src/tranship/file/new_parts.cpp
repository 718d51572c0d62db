#include <cerrno>

#include <fcntl.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/checksum.hpp>
#include <tranship/file/manifest.hpp>
#include <tranship/file/new_parts.hpp>

namespace tranship {
namespace {

using posix::FileDescriptor;
using posix::io_error;

void make_file(const std::string& path, Index size_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) throw io_error("create", path, errno);
  posix::reserve(file.number(), path, size_bytes);
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

/// Writes the heads: a run that was killed may have been killed before they were on the disk.
void NewParts::use(const std::shared_ptr<FileSet>& files) {
  for (Index i = 0; i < files->count(); ++i) files->write(i, 0, std::as_bytes(std::span(what_.files[i].head)));
  for (StoredParts& array : what_.arrays) array.files = files;
}

void NewParts::begin() {
  staging_.begin();
  const auto files = std::make_shared<FileSet>(FileAccess::read_write);
  for (Index i = 0; i < static_cast<Index>(what_.files.size()); ++i) {
    make_file(path_of(i), what_.files[i].size_bytes);
    files->add(path_of(i)).value();
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

std::uint32_t NewParts::head_contribution(Index file) const {
  const NewFile& f = what_.files[file];
  return moved_on(crc32_of(std::as_bytes(std::span(f.head))), f.size_bytes - static_cast<Index>(f.head.size()));
}

void NewParts::commit() {
  what_.check_replaceable(staging_.target());
  staging_.commit();
}

void NewParts::write_manifest(const std::string& text) {
  if (staging_.kind() == StagedKind::file) return;
  const std::string path = staging_.path() + "/" + manifest_name;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.number() < 0) throw io_error("create", path, errno);
  posix::write_at(file.number(), path, 0, std::as_bytes(std::span(text)));
  if (posix::disk.fsync(file.number()) != 0) throw io_error("sync", path, errno);
}

}  // namespace tranship
