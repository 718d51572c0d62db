#include "tranship/cli/picture_file.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/file/format/formats.hpp>
#include <tranship/file/io/atomic_write.hpp>
#include <tranship/view/picture.hpp>

namespace tranship::cli {
namespace {

namespace fs = std::filesystem;

/// Returns true if a regular file at `path` is not a picture of tranship.
bool holds_something_else(const std::string& path) {
  std::error_code ignored;  // a path that is not a regular file is refused in any case
  if (!fs::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string begin(1024, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  const bool is_picture = begin.starts_with("<svg ") || begin.starts_with("<!doctype html>");
  return !is_picture || begin.find(picture_mark) == std::string::npos;
}

}  // namespace

void check_replaceable_picture(const std::string& path, PictureForm form, Replace replace) {
  if (replace == Replace::own_files && holds_something_else(path))
    throw_error(ErrorCode::invalid_use, "'{}' exists and is not a picture that tranship drew: --force replaces it",
                path);
  std::string ending = fs::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool is_page = form == PictureForm::html;
  if (!ending.empty() && ending != (is_page ? ".html" : ".svg"))
    throw UsageError{fmt::format("-o: '{}' ends with '{}', but the output is {}", printable(path), printable(ending),
                                 is_page ? "HTML: use the ending .html" : "SVG: use the ending .svg")};
}

void check_not_source(const std::string& path, const std::string& source) {
  if (!holds_something_else(path)) return;
  std::error_code ignored;
  const std::string file = format_of({.path = source}).file_of(source);
  for (fs::path at = fs::canonical(path, ignored); at.has_relative_path(); at = at.parent_path())
    if (fs::equivalent(at, file, ignored))
      throw UsageError{fmt::format("-o: '{}' is the file of the array, '{}': give another file", path, source)};
}

void write_picture(const std::string& path, std::string_view picture, Replace replace) {
  check_replaceable_picture(path, picture.starts_with("<svg ") ? PictureForm::svg : PictureForm::html, replace);
  AtomicFile file = AtomicFile::create(path, static_cast<Index>(picture.size())).value();
  std::transform(picture.begin(), picture.end(), file.bytes().begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  file.commit().value();
}

}  // namespace tranship::cli
