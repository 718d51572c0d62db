// Private: ElfSymbols, the functions that a program's or library's file names in its tables of symbols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tranship/base/function_ref.hpp>

namespace tranship {

/// Holds the file in memory. No function where the file cannot be read, is no ELF file, or has been stripped.
class ElfSymbols {
 public:
  explicit ElfSymbols(const std::string& path);

  struct Function {
    std::string_view name;  ///< as the linker knows it
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };
  /// Calls `f` for each function, until it returns true.
  void find(FunctionRef<bool(const Function&)> f) const;

 private:
  std::string file_;
};

}  // namespace tranship
