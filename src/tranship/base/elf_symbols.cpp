#include "tranship/base/elf_symbols.hpp"

#include <cstring>
#include <fstream>
#include <iterator>

#include <elf.h>
#include <link.h>

namespace tranship {
namespace {

template <class T>
bool read_at(const std::string& file, std::uint64_t offset, T& out) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, file.data() + offset, sizeof(T));
  return true;
}

}  // namespace

ElfSymbols::ElfSymbols(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void ElfSymbols::find(FunctionRef<bool(const Function&)> f) const {
  ElfW(Ehdr) header;
  if (!read_at(file_, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto section_at = [&](std::uint64_t index, ElfW(Shdr) & out) {
    return read_at(file_, header.e_shoff + index * header.e_shentsize, out);
  };
  ElfW(Shdr) table, names;
  for (std::uint64_t i = 0; i < header.e_shnum && section_at(i, table); ++i) {
    if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) || !section_at(table.sh_link, names)) continue;
    ElfW(Sym) symbol;
    for (std::uint64_t at = 0; at + sizeof symbol <= table.sh_size && read_at(file_, table.sh_offset + at, symbol);
         at += sizeof symbol) {
      const std::uint64_t name = names.sh_offset + symbol.st_name;
      if ((symbol.st_info & 0xf) != STT_FUNC || symbol.st_value == 0 || name > file_.size()) continue;
      if (f({.name = file_.c_str() + name, .address = symbol.st_value, .size_bytes = symbol.st_size})) return;
    }
  }
}

}  // namespace tranship
