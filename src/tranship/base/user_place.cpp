#include "tranship/base/user_place.hpp"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/core.h>
#include <link.h>

#include <tranship/base/debug_lines.hpp>
#include <tranship/base/elf_symbols.hpp>

namespace tranship {
namespace {

bool is_in_standard_library(std::string_view file) {
  return file.find("/c++/") != std::string_view::npos;
}

bool is_in_own_header(std::string_view file) {
  return file.find("include/tranship/") != std::string_view::npos ||
         file.find("src/tranship/") != std::string_view::npos;
}

std::string short_line(std::string_view file, int line) {
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
}

/// Returns true if a mangled name belongs to the namespace: a member or function of it, or something nested in one.
bool is_of(std::string_view linker_name, std::string_view encoded_space) {
  constexpr std::string_view prefixes[] = {"_Z", "_ZN", "_ZNK", "_ZZ", "_ZZN", "_ZZNK"};
  for (const std::string_view prefix : prefixes)
    if (linker_name.starts_with(prefix) && linker_name.substr(prefix.size()).starts_with(encoded_space)) return true;
  return false;
}
bool is_own_or_standard(std::string_view linker_name) {
  // "S" abbreviates std and its members.
  return is_of(linker_name, "8tranship") || is_of(linker_name, "S") || is_of(linker_name, "9__gnu_cxx") ||
         is_of(linker_name, "3fmt");
}

std::string readable(const std::string& linker_name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(linker_name.c_str(), nullptr, nullptr, &status), std::free);
  return text ? text.get() : linker_name;
}

struct Place {
  std::string linker_name = {};  // empty: the file names no function there
  std::uint64_t offset_bytes = 0;
  std::string file = {};
  bool is_program = false;
};

/// Reads each file once for all frames.
class Places {
 public:
  Place at(const void* address) {
    Dl_info module{};
    void* map = nullptr;
    if (dladdr1(address, &module, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
    const auto* const link = static_cast<const link_map*>(map);
    const bool is_program = *link->l_name == '\0';
    const std::string path = is_program ? "/proc/self/exe" : link->l_name;
    const std::uint64_t in_file = reinterpret_cast<std::uintptr_t>(address) - link->l_addr;
    Place out{.offset_bytes = in_file,
              .file = is_program ? "program" : path.substr(path.rfind('/') + 1),
              .is_program = is_program};
    auto& symbols = files_[path];
    if (!symbols) symbols = std::make_unique<ElfSymbols>(path);
    symbols->find([&](const ElfSymbols::Function& function) {
      if (in_file < function.address || in_file - function.address >= function.size_bytes) return false;
      out.linker_name = function.name;
      out.offset_bytes = in_file - function.address;
      return true;
    });
    return out;
  }

 private:
  std::map<std::string, std::unique_ptr<ElfSymbols>> files_;
};

/// Returns the line of the first caller outside the standard library of the code that lies in `file`.
std::string line_behind(std::string_view file, std::span<void* const> frames) {
  const DebugLines lines;
  bool is_behind = false;
  std::string out;
  const auto look = [&](std::string_view at_file, int line) {
    is_behind |= at_file == file;
    if (!is_behind || is_in_standard_library(at_file)) return false;
    out = short_line(at_file, line);
    return true;
  };
  for (void* const frame : frames)
    if (lines.find(static_cast<const char*>(frame) - 1, look)) break;
  return out;
}

}  // namespace

std::string place_of_code(const void* address) {
  const void* const code = static_cast<const char*>(address) - 1;
  std::string innermost, line;
  const DebugLines lines;
  lines.find(code, [&](std::string_view file, int number) {
    if (innermost.empty()) innermost = short_line(file, number);
    if (is_in_standard_library(file) || is_in_own_header(file)) return false;
    line = short_line(file, number);
    return true;
  });
  if (!line.empty()) return line;
  if (!innermost.empty()) return innermost;
  const Place place = Places().at(code);
  if (place.linker_name.empty()) return fmt::format("{}+{:#x}", place.file, place.offset_bytes);
  return fmt::format("{}+{:#x}", readable(place.linker_name), place.offset_bytes);
}

std::string user_place(CallSite where) {
  if (!is_in_standard_library(where.file)) return {};
  void* frames[128];
  const int count = backtrace(frames, int(std::size(frames)));
  Places places;
  if (count < 1) return {};
  if (std::string line = line_behind(where.file, {frames + 1, std::size_t(count - 1)}); !line.empty()) return line;
  const Place own = places.at(frames[0]);
  for (int i = 1; i < count; ++i) {
    // A frame holds the address after its call, which may belong to the next function.
    const Place place = places.at(static_cast<const char*>(frames[i]) - 1);
    if (place.file.empty()) continue;
    if (place.linker_name.empty()) {
      // Without names, code of this library cannot be told from code of the program that contains it.
      if (place.file == own.file && own.is_program) return {};
      if (place.file == own.file) continue;
      return fmt::format("{}+{:#x}", place.file, place.offset_bytes);
    }
    if (!is_own_or_standard(place.linker_name))
      return fmt::format("{}+{:#x}", readable(place.linker_name), place.offset_bytes);
  }
  return {};
}

}  // namespace tranship
