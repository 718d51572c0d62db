#include <algorithm>

#include <tranship/cli/picture_file.hpp>
#include <tranship/file/atomic_write.hpp>
#include <tranship/layout/picture.hpp>

namespace tranship::cli {

void write_picture(const std::string& path, const ArraySpec& spec) {
  const std::string svg = picture_svg(spec);
  AtomicFile file = AtomicFile::create(path, static_cast<Index>(svg.size())).value();
  std::transform(svg.begin(), svg.end(), file.bytes().begin(), [](char c) { return static_cast<std::byte>(c); });
  file.commit().value();
}

}  // namespace tranship::cli
