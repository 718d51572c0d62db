// Private: ElfSymbols, the functions named in the symbol tables of a program or a library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tranship/base/function_ref.hpp>

namespace tranship {

/// Holds the file in memory. Finds no functions when the file cannot be read, is not ELF, or is stripped.
class ElfSymbols {
 public:
  explicit ElfSymbols(const std::string& path);

  struct Function {
    std::string_view name;  ///< name as the linker knows it (mangled)
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };
  /// Calls `f` for each function until `f` returns true.
  void find(FunctionRef<bool(const Function&)> f) const;

 private:
  std::string file_;
};

}  // namespace tranship
