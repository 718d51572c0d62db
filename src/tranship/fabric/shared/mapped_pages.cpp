#include "tranship/fabric/shared/mapped_pages.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {
namespace {

struct Line {
  MappedPages::Part part;
  std::string permissions;
};

/// A line of /proc/PID/maps: "first-end rwxp offset device inode path".
std::optional<Line> parsed(const std::string& text) {
  Line line;
  char permissions[8] = {}, device[32] = {}, inode[32] = {};
  int path_at = 0;
  if (std::sscanf(text.c_str(), "%" SCNxPTR "-%" SCNxPTR " %7s %*x %31s %31s %n", &line.part.first, &line.part.end,
                  permissions, device, inode, &path_at) < 5)
    return std::nullopt;
  line.permissions = permissions;
  line.part.is_shared = line.permissions.find('s') != std::string::npos;
  line.part.object = fmt::format("{} {}", device, inode);
  if (path_at > 0) line.part.path = text.substr(static_cast<std::size_t>(path_at));
  line.part.is_anonymous = line.part.path.empty() || line.part.path == "/dev/zero (deleted)";
  return line;
}

}  // namespace

bool MappedPages::any_shared() const noexcept {
  return std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_shared; });
}
bool MappedPages::all_shared() const noexcept {
  return std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_shared; });
}

Result<MappedPages> mapped_pages(const void* memory, std::size_t size_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  std::uintptr_t end = 0;
  if (__builtin_add_overflow(first, size_bytes, &end))
    return make_error(ErrorCode::invalid_use, "cannot register {} at {}: there are no such addresses",
                      amount(size_bytes, "byte"), memory);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (first <= here && here < end)
    return make_error(ErrorCode::invalid_use, "cannot register {} at {}: they hold the stack of this call",
                      amount(size_bytes, "byte"), memory);
  std::ifstream maps("/proc/self/maps");
  if (!maps)
    return make_error(ErrorCode::unsupported,
                      "cannot register {} at {}: the system does not say what lies there (/proc/self/maps)",
                      amount(size_bytes, "byte"), memory);
  MappedPages out;
  std::uintptr_t next = first;  // the pages before it have been checked
  for (std::string text; next < end && std::getline(maps, text);) {
    std::optional<Line> line = parsed(text);
    if (!line || line->part.end <= next) continue;
    MappedPages::Part part = std::move(line->part);
    if (part.first > next) break;
    part.first = next;
    part.end = std::min(part.end, end);
    const std::string& permissions = line->permissions;
    const auto what = [&] {
      return fmt::format("cannot register {} at {}: {:#x} to {:#x}{}", amount(size_bytes, "byte"), memory, part.first,
                         part.end, part.path.empty() ? "" : fmt::format(" ({})", printable(part.path, name_chars_max)));
    };
    if (!permissions.starts_with("rw"))
      return make_error(ErrorCode::invalid_use, "{} cannot be {} (\"{}\")", what(),
                        permissions.starts_with("r") ? "written" : "read", permissions);
    if (permissions.find('x') != std::string::npos)
      return make_error(ErrorCode::unsupported, "{} can be executed (\"{}\")", what(), permissions);
    next = part.end;
    out.parts.push_back(std::move(part));
  }
  if (next < end)
    return make_error(ErrorCode::invalid_use, "cannot register {} at {}: nothing is mapped at {:#x}",
                      amount(size_bytes, "byte"), memory, next);
  return out;
}

bool is_mapped_elsewhere(const MappedPages::Part& part) {
  const std::string own = std::to_string(getpid());
  std::error_code ended;
  for (auto entry = std::filesystem::directory_iterator("/proc", ended);
       !ended && entry != std::filesystem::directory_iterator(); entry.increment(ended)) {
    const std::string process = entry->path().filename().string();
    if (process == own || process.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream maps(entry->path() / "maps");
    for (std::string text; std::getline(maps, text);) {
      if (text.find(part.object) == std::string::npos) continue;
      if (const std::optional<Line> line = parsed(text); line && line->part.object == part.object) return true;
    }
  }
  return false;
}

}  // namespace tranship
