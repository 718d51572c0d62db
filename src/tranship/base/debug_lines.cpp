#include "tranship/base/debug_lines.hpp"

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#if defined(TRANSHIP_HAS_LIBDW)
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>
#endif

namespace tranship {

#if defined(TRANSHIP_HAS_LIBDW)

namespace {

/// Functions of libdw. The library is loaded on first use, so no program has to link or ship it.
struct Libdw {
  decltype(&::dwfl_begin) dwfl_begin = nullptr;
  decltype(&::dwfl_end) dwfl_end = nullptr;
  decltype(&::dwfl_linux_proc_report) dwfl_linux_proc_report = nullptr;
  decltype(&::dwfl_linux_proc_find_elf) dwfl_linux_proc_find_elf = nullptr;
  decltype(&::dwfl_report_end) dwfl_report_end = nullptr;
  decltype(&::dwfl_addrmodule) dwfl_addrmodule = nullptr;
  decltype(&::dwfl_module_getsrc) dwfl_module_getsrc = nullptr;
  decltype(&::dwfl_lineinfo) dwfl_lineinfo = nullptr;
  decltype(&::dwfl_module_addrdie) dwfl_module_addrdie = nullptr;
  decltype(&::dwarf_getscopes) dwarf_getscopes = nullptr;
  decltype(&::dwarf_getscopes_die) dwarf_getscopes_die = nullptr;
  decltype(&::dwarf_tag) dwarf_tag = nullptr;
  decltype(&::dwarf_attr) dwarf_attr = nullptr;
  decltype(&::dwarf_formudata) dwarf_formudata = nullptr;
  decltype(&::dwarf_getsrcfiles) dwarf_getsrcfiles = nullptr;
  decltype(&::dwarf_filesrc) dwarf_filesrc = nullptr;
  bool is_complete = true;

  Libdw() {
    void* const library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    const auto load = [&](auto& function, const char* name) {
      function =
          library ? reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name)) : nullptr;
      is_complete &= function != nullptr;
    };
#define LOAD(name) load(name, #name)
    LOAD(dwfl_begin), LOAD(dwfl_end), LOAD(dwfl_linux_proc_report), LOAD(dwfl_linux_proc_find_elf);
    LOAD(dwfl_report_end), LOAD(dwfl_addrmodule), LOAD(dwfl_module_getsrc), LOAD(dwfl_lineinfo);
    LOAD(dwfl_module_addrdie), LOAD(dwarf_getscopes), LOAD(dwarf_getscopes_die), LOAD(dwarf_tag), LOAD(dwarf_attr);
    LOAD(dwarf_formudata), LOAD(dwarf_getsrcfiles), LOAD(dwarf_filesrc);
#undef LOAD
  }
};

/// Skips debug information in separate files and on servers.
int finds_no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

}  // namespace

struct DebugLines::State {
  Libdw libdw;
  Dwfl_Callbacks callbacks = {};
  Dwfl* dwfl = nullptr;

  State() {
    if (!libdw.is_complete) return;
    callbacks.find_elf = libdw.dwfl_linux_proc_find_elf;
    callbacks.find_debuginfo = finds_no_debug_file;
    dwfl = libdw.dwfl_begin(&callbacks);
    if (dwfl != nullptr &&
        (libdw.dwfl_linux_proc_report(dwfl, getpid()) != 0 || libdw.dwfl_report_end(dwfl, nullptr, nullptr) != 0)) {
      libdw.dwfl_end(dwfl);
      dwfl = nullptr;
    }
  }
  ~State() {
    if (dwfl != nullptr) libdw.dwfl_end(dwfl);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool find(std::uintptr_t address, FunctionRef<bool(std::string_view file, int line)> f) const {
    Dwfl_Module* const module = libdw.dwfl_addrmodule(dwfl, address);
    if (module == nullptr) return false;
    int line = 0;
    if (Dwfl_Line* const at = libdw.dwfl_module_getsrc(module, address)) {
      const char* const file = libdw.dwfl_lineinfo(at, nullptr, &line, nullptr, nullptr, nullptr);
      if (file != nullptr && f(file, line)) return true;
    }
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = libdw.dwfl_module_addrdie(module, address, &bias);
    if (unit == nullptr) return false;
    // The first call returns the innermost scope as it was written; the second returns the scopes into which it was
    // inlined.
    Dwarf_Die *written = nullptr, *put = nullptr;
    const int written_count = libdw.dwarf_getscopes(unit, address - bias, &written);
    const int put_count = written_count > 0 ? libdw.dwarf_getscopes_die(&written[0], &put) : 0;
    bool found = false;
    for (int i = 0; i < put_count && !found; ++i) found = find_call(unit, &put[i], f);
    std::free(put);
    std::free(written);
    return found;
  }

 private:
  bool find_call(Dwarf_Die* unit, Dwarf_Die* scope, FunctionRef<bool(std::string_view file, int line)> f) const {
    if (libdw.dwarf_tag(scope) != DW_TAG_inlined_subroutine) return false;
    const auto number = [&](unsigned name) {
      Dwarf_Attribute attribute;
      Dwarf_Word value = 0;
      if (libdw.dwarf_attr(scope, name, &attribute) != nullptr) libdw.dwarf_formudata(&attribute, &value);
      return value;
    };
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (libdw.dwarf_getsrcfiles(unit, &files, &count) != 0) return false;
    const std::size_t file = number(DW_AT_call_file);
    const char* const name = file < count ? libdw.dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
    return name != nullptr && f(name, int(number(DW_AT_call_line)));
  }
};

DebugLines::DebugLines() : state_(std::make_unique<State>()) {
  if (state_->dwfl == nullptr) state_.reset();
}

#else

struct DebugLines::State {
  static bool find(std::uintptr_t, FunctionRef<bool(std::string_view file, int line)>) { return false; }
};

DebugLines::DebugLines() = default;

#endif

DebugLines::~DebugLines() = default;

bool DebugLines::find(const void* address, FunctionRef<bool(std::string_view file, int line)> f) const {
  return state_ && state_->find(reinterpret_cast<std::uintptr_t>(address), f);
}

}  // namespace tranship
