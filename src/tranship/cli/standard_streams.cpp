#include "tranship/cli/standard_streams.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/file/io/mapped_file.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship::cli {
namespace {

using posix::FileDescriptor;
using posix::io_error;

constexpr std::size_t piece_bytes = std::size_t(1) << 20;

std::string spool_name() {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder && *folder ? folder : "/tmp") + "/tranship-XXXXXX";
}

}  // namespace

Spool::Spool() : folder_(spool_name()) {
  if (!::mkdtemp(folder_.data()))
    throw make_error(ErrorCode::io, "{} (a temporary folder for '{}'): set TMPDIR to another folder",
                     io_error("create", folder_, errno).message(), standard_stream);
}

Spool::~Spool() {
  std::error_code ignored;  // a file that cannot be removed stays in the folder for temporary files
  std::filesystem::remove_all(folder_, ignored);
}

void Spool::receive(FunctionRef<void()> watch) const {
  const FileDescriptor file(::open(path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.number() < 0) throw io_error("create", path(), errno);
  std::vector<std::byte> piece(piece_bytes);
  for (Index at = 0;;) {
    watch();
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw io_error("read", standard_stream, errno);
    if (count == 0) return;
    posix::write_at(file.number(), path(), at, std::span(piece).first(static_cast<std::size_t>(count)));
    at += count;
  }
}

Error Spool::renamed(const Error& error) const {
  std::string text = error.message();
  // A full disk belongs to the folder, not to a stream.
  const bool is_ours = text.find(folder_ + "/") != std::string::npos;
  const std::string folder = std::filesystem::path(folder_).parent_path().string();
  for (std::size_t at = 0; (at = text.find(folder_ + "/", at)) != std::string::npos; ++at)
    text.replace(at, std::min(text.find('\'', at), text.size()) - at, standard_stream);
  const auto says = [&](int reason) { return text.find(std::strerror(reason)) != std::string::npos; };
  if (is_ours && (says(ENOSPC) || says(EDQUOT)))
    text += fmt::format("; '{}' is stored in '{}' first, and TMPDIR names another folder", standard_stream, folder);
  return error.with_message(std::move(text));
}

void Spool::send(FunctionRef<void()> watch) const {
  const MappedFile file = MappedFile::open(path()).value();
  for (std::span<const std::byte> bytes = file.bytes(); !bytes.empty();) {
    watch();
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), std::min(bytes.size(), piece_bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) throw OutputClosed();
    if (count < 0) throw io_error("write", standard_stream, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace tranship::cli
