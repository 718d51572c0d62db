#include "tranship/file/store/replaceable.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/file/format/manifest.hpp>
#include <tranship/file/format/npz.hpp>
#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/format/safetensors_index.hpp>
#include <tranship/file/format/tensor_manifest.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_named_in(const std::string& directory) {
  const std::string path = directory + "/" + manifest_name;
  const std::string text = posix::read_text(path, manifest_bytes_max);
  if (!is_tensor_manifest(text)) return std::move(read_manifest(directory).value().files);
  const Result<TensorManifest> manifest = parse_tensor_manifest(text);
  if (!manifest) throw make_error(manifest.error().code(), "'{}': {}", path, manifest.error().message());
  std::vector<std::string> out;
  for (const TensorManifest::File& f : manifest.value().files) out.push_back(f.name);
  out.emplace_back(safetensors_index_name);
  return out;
}

/// Returns true if something exists there; throws if it is a directory.
bool is_file_there(const std::string& target, std::string_view kind) {
  if (!posix::exists(target)) return false;
  if (posix::is_directory(target))
    throw_error(ErrorCode::invalid_use, "'{}' exists and is a directory, not {}", target, kind);
  return true;
}

}  // namespace

void check_replaceable_npy(const std::string& target) {
  if (!is_file_there(target, "a .npy file")) return;
  static constexpr std::string_view magic = "\x93NUMPY";
  const MappedFile old = MappedFile::open(target).value();
  const std::string_view found(reinterpret_cast<const char*>(old.bytes().data()), old.bytes().size());
  const bool is_npy = found.starts_with(magic);
  old.check();
  if (!is_npy) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a .npy file: it is not replaced", target);
}

void check_replaceable_npz(const std::string& target) {
  if (!is_file_there(target, "a .npz file")) return;
  if (const Result<NpyHeader> old = read_npz_header({target, {}}); !old)
    throw_error(ErrorCode::invalid_use, "'{}' exists and is not replaced, for it is not a .npz file of one array: {}",
                target, old.error().message());
}

void check_replaceable_safetensors(const std::string& target) {
  if (!is_file_there(target, "a safetensors file")) return;
  if (!open_safetensors(target))
    throw_error(ErrorCode::invalid_use, "'{}' exists and is not a safetensors file: it is not replaced", target);
}

void check_replaceable_raw(const std::string& target) {
  is_file_there(target, "a file of bare elements");
}

// Replacing a directory removes everything in it.
void check_replaceable_directory(const std::string& target) {
  if (!posix::exists(target)) return;
  if (!posix::is_directory(target)) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a directory", target);
  std::error_code ignored;  // a directory that cannot be inspected fails when it is listed
  if (fs::is_empty(target, ignored)) return;
  if (!posix::exists(target + "/" + manifest_name))
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and holds no '{}': it is not replaced", target,
                manifest_name);
  const Result<std::vector<std::string>> named = attempt([&] { return files_named_in(target); });
  if (!named)
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: {}", target,
                named.error().message());
  std::vector<std::string> known = named.value();
  known.push_back(manifest_name);
  std::sort(known.begin(), known.end());
  std::error_code failure;
  for (fs::directory_iterator entry(target, failure), end; !failure && entry != end; entry.increment(failure))
    if (const std::string name = entry->path().filename().string();
        !std::binary_search(known.begin(), known.end(), name))
      throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: its manifest does not name '{}'",
                  target, name);
    else if (std::error_code gone; fs::is_directory(entry->symlink_status(gone)))
      throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: '{}' in it is a directory",
                  target, name);
  if (failure) throw posix::io_error("list", target, failure.value());
}

}  // namespace tranship
