#include "tranship/fabric/processes/machine_identity.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/stat.h>

namespace tranship {

std::array<std::uint8_t, 16> this_start_of_the_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  file >> text;
  std::erase(text, '-');
  std::array<std::uint8_t, 16> out{};
  for (std::size_t i = 0; i < out.size() && 2 * i + 2 <= text.size(); ++i)
    out[i] = static_cast<std::uint8_t>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  return out;
}

std::uint64_t this_network() {
  struct stat status {};
  return stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace tranship
