// Private: What the system has mapped where a program says that memory of its own lies, looked at before any of it is
// touched or mapped over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tranship/base/result.hpp>

namespace tranship {

/// Whole pages that may be loaded and stored, in the order of their addresses, with nothing between them.
struct MappedPages {
  struct Part {
    std::uintptr_t first = 0, end = 0;
    bool is_shared = false;
    bool is_anonymous = false;  ///< of no file with a name: only children of a fork can have it mapped, too
    std::string object;         ///< what is mapped, by its device and inode
    std::string path;           ///< "" where there is none
  };
  std::vector<Part> parts;

  bool any_shared() const noexcept;
  bool all_shared() const noexcept;
};

/// Fails with `invalid_use` for addresses where nothing is mapped, for pages that cannot be loaded and stored, or that
/// hold the stack of this call; with `unsupported` for pages that can be executed, and where the system does not tell.
Result<MappedPages> mapped_pages(const void* memory, std::size_t size_bytes);

/// Whether another process of this machine that can be looked at has the same object mapped. Costs a look at all of
/// them.
bool is_mapped_elsewhere(const MappedPages::Part& part);

}  // namespace tranship
