#include "tranship/fabric/sim/program_main.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include <link.h>
#include <unistd.h>

#include <tranship/base/elf_symbols.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/sim/simulate_program.hpp>

namespace tranship {
namespace {

std::string contents_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Returns the difference between the addresses of the program in memory and in its file.
std::uintptr_t program_base() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the program is the first entry
      },
      &base);
  return base;
}

/// Returns the address of main() in the program's file; 0 if the file has no such symbol.
std::uintptr_t address_of_main() {
  std::uintptr_t address = 0;
  ElfSymbols("/proc/self/exe").find([&](const ElfSymbols::Function& function) {
    if (function.name == "main") address = function.address;
    return address != 0;
  });
  return address;
}

thread_local SimulatedPart* beginning = nullptr;

}  // namespace

ProgramMain::ProgramMain() {
  const std::uintptr_t address = address_of_main();
  if (address == 0)
    throw_error(ErrorCode::unsupported,
                "this program joins a world by a call of its own, and a simulation runs main() once for each rank, but "
                "the program has no symbol of that name: it has been stripped");
  main_ = reinterpret_cast<Main>(program_base() + address);  // NOLINT(performance-no-int-to-ptr): the file says it so
  const std::string words = contents_of("/proc/self/cmdline");
  for (std::size_t at = 0; at < words.size(); at += words_.back().size() + 1) words_.emplace_back(words.c_str() + at);
}

#if defined(__clang__)  // main() may have been declared with two parameters, with three or with none
__attribute__((no_sanitize("function")))
#endif
int ProgramMain::run() const {
  std::vector<std::string> words = words_;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return main_(static_cast<int>(words.size()), pointers.data(), environ);
}

SimulatedPart* take_simulated_part() noexcept {
  return std::exchange(beginning, nullptr);
}

bool begins_as_simulated() noexcept {
  return beginning != nullptr;
}

void simulate_main() {
  const ProgramMain program;
  try {
    detail::simulate_seeds([&](World& world) {
      SimulatedPart part{.world = &world};
      beginning = &part;  // no other rank runs until it has joined
      const int status = program.run();
      beginning = nullptr;
      if (part.failure) throw *part.failure;
      if (status != 0)
        throw_error(ErrorCode::user_exception, "main() of rank {} has returned {}", world.rank(), status);
    });
  } catch (...) {  // the board has told the launcher of it
    std::exit(1);
  }
  std::exit(0);
}

}  // namespace tranship
