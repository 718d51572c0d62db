#include <algorithm>
#include <filesystem>
#include <fstream>

#include <tranship/base/fail.hpp>
#include <tranship/cli/picture_file.hpp>
#include <tranship/file/io/atomic_write.hpp>
#include <tranship/view/picture.hpp>

namespace tranship::cli {

void check_replaceable_picture(const std::string& path, Replace replace) {
  std::error_code ignored;  // what is no regular file is refused in any case
  if (replace == Replace::any_file || !std::filesystem::is_regular_file(path, ignored)) return;
  std::ifstream file(path, std::ios::binary);
  std::string begin(1024, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  const bool is_picture = begin.starts_with("<svg ") || begin.starts_with("<!doctype html>");
  if (!is_picture || begin.find(picture_mark) == std::string::npos)
    throw_error(ErrorCode::invalid_use, "'{}' exists and is not a picture that tranship drew: --force replaces it",
                path);
}

void write_picture(const std::string& path, std::string_view picture, Replace replace) {
  check_replaceable_picture(path, replace);
  AtomicFile file = AtomicFile::create(path, static_cast<Index>(picture.size())).value();
  std::transform(picture.begin(), picture.end(), file.bytes().begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  file.commit().value();
}

}  // namespace tranship::cli
