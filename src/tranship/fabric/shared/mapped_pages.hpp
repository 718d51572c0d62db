// Private: What the system has mapped at an address range that a program wants to register, determined before any of it
// is touched or mapped over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tranship/base/result.hpp>

namespace tranship {

/// Adjacent whole pages that can be loaded and stored, by address.
struct MappedPages {
  struct Part {
    std::uintptr_t first = 0, end = 0;
    bool is_shared = false;
    bool is_anonymous = false;  ///< not of a named file: only forked children can have it mapped, too
    std::string object;         ///< the mapped object, by its device and inode
    std::string path;           ///< "" if there is none
  };
  std::vector<Part> parts;

  bool any_shared() const noexcept;
  bool all_shared() const noexcept;
};

/// Fails with `invalid_use` for addresses where nothing is mapped, for pages that cannot be loaded and stored, and for
/// pages that hold the stack of this call; with `unsupported` for executable pages, and if the system does not report
/// mappings.
Result<MappedPages> mapped_pages(const void* memory, std::size_t size_bytes);

/// Returns true if another process of this machine, among those that this one may inspect, has the same object mapped.
/// Costs a look at every process.
bool is_mapped_elsewhere(const MappedPages::Part& part);

}  // namespace tranship
