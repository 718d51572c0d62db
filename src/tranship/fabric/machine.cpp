#include "tranship/fabric/machine.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include <hwloc.h>
#include <link.h>
#include <sys/resource.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/launch.hpp>

namespace tranship {
namespace {

/// The processing units that this process may use, with the caches and memory nodes that they share. Never destroyed,
/// since threads bind to it until the end.
hwloc_topology_t topology() {
  static const hwloc_topology_t loaded = [] {
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return hwloc_topology_t(nullptr);
    if (hwloc_topology_load(made) == 0) return made;
    hwloc_topology_destroy(made);
    return hwloc_topology_t(nullptr);
  }();
  return loaded;
}

int count(hwloc_obj_type_t type) {
  return topology() ? std::max(0, hwloc_get_nbobjs_by_type(topology(), type)) : 0;
}

Index cache_bytes(hwloc_obj_type_t type) {
  const hwloc_obj_t cache = topology() ? hwloc_get_obj_by_type(topology(), type, 0) : nullptr;
  return cache ? Index(cache->attr->cache.size) : 0;
}

HugePages huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  for (std::string word; file >> word;) {
    if (word == "[always]") return HugePages::always;
    if (word == "[madvise]") return HugePages::on_request;
  }
  return HugePages::never;
}

/// The files in which a control group reports its memory.
struct GroupFiles {
  const char* limit;
  const char* used;
  /// Entries of memory.stat: file caches count as used, but the system reclaims them when memory is requested.
  std::array<std::string_view, 3> reclaimable;
};
constexpr GroupFiles version_1{
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_active_file", "total_inactive_file", ""}};
constexpr GroupFiles version_2{"memory.max", "memory.current", {"active_file", "inactive_file", "slab_reclaimable"}};

Index left_in_group(const std::string& folder, const GroupFiles& files) {
  std::ifstream limit(folder + '/' + files.limit), used(folder + '/' + files.used), kinds(folder + "/memory.stat");
  Index most = 0, now = 0;
  if (!(limit >> most && used >> now)) return INT64_MAX;  // "max" is no number
  std::string kind;
  for (Index bytes = 0; kinds >> kind >> bytes;)
    if (std::find(files.reclaimable.begin(), files.reclaimable.end(), kind) != files.reclaimable.end()) now -= bytes;
  // The numbers are read at different moments, so the caches may seem larger than the use.
  return std::max<Index>(0, most - std::max<Index>(0, now));
}

/// Returns the least memory left in a group and its ancestors. Skips the part of the path that a container does not
/// see.
Index least_left(const std::string& hierarchy, std::string path, const GroupFiles& files) {
  Index least = INT64_MAX;
  for (;;) {
    while (path.ends_with('/')) path.pop_back();
    least = std::min(least, left_in_group(hierarchy + path, files));
    const std::size_t parent = path.rfind('/');
    if (parent == std::string::npos) return least;
    path.resize(parent);
  }
}

}  // namespace

const Machine& this_machine() {
  static const Machine machine{.cores = count(HWLOC_OBJ_CORE),
                               .processing_units = count(HWLOC_OBJ_PU),
                               .memory_nodes = count(HWLOC_OBJ_NUMANODE),
                               .l1_bytes = cache_bytes(HWLOC_OBJ_L1CACHE),
                               .l2_bytes = cache_bytes(HWLOC_OBJ_L2CACHE),
                               .l3_bytes = cache_bytes(HWLOC_OBJ_L3CACHE),
                               .huge_pages = huge_pages()};
  return machine;
}

Index available_memory_bytes() {
  Index available = INT64_MAX;
  std::ifstream memory("/proc/meminfo");
  for (std::string word; memory >> word;)
    if (Index kib = 0; word == "MemAvailable:" && memory >> kib) {
      available = kib * 1024;
      break;
    }
  // A group of processes may have less than the machine.
  std::ifstream groups("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(groups), {}};
  return std::min(available, available_memory_bytes_of_groups(membership, "/sys/fs/cgroup"));
}

Index available_memory_bytes_of_groups(const std::string& membership, const std::string& root) {
  Index available = INT64_MAX;
  std::istringstream lines(membership);
  // "hierarchy:controllers:path"; the line without controllers is of version 2.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty())
      for (const char* const mounted : {"", "/unified"})
        available = std::min(available, least_left(root + mounted, path, version_2));
    else if (fmt::format(",{},", controllers).find(",memory,") != std::string::npos)
      available = std::min(available, least_left(root + "/memory", path, version_1));
  }
  return available;
}

Index resident_memory_bytes() {
  std::ifstream pages("/proc/self/statm");
  Index all = 0, resident = 0;
  return pages >> all >> resident ? resident * Index(page_bytes()) : 0;
}

std::string limits_of_processes() {
  rlimit processes{};
  if (getrlimit(RLIMIT_NPROC, &processes) != 0 || processes.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(" (this user may have {} and threads: ulimit -u)",
                     amount(processes.rlim_cur, "process", "processes"));
}

Pinning resolved(Pinning pinning) {
  if (pinning != Pinning::automatic) return pinning;
  if (const char* wanted = std::getenv("TRANSHIP_PIN")) {
    for (const Pinning known : {Pinning::none, Pinning::node, Pinning::core})
      if (std::string_view(wanted) == name_of(known)) return known;
    throw_error(ErrorCode::invalid_use, "TRANSHIP_PIN is '{}'; it may be none, node or core", wanted);
  }
  return this_machine().memory_nodes > 1 ? Pinning::node : Pinning::none;
}

void pin_rank(Pinning pinning, int rank, int size) {
  pinning = resolved(pinning);
  if (pinning == Pinning::none) return;
  const hwloc_obj_type_t type = pinning == Pinning::node ? HWLOC_OBJ_NUMANODE : HWLOC_OBJ_CORE;
  const int places = count(type);
  if (places == 0) return;
  // Consecutive ranks share a place, or get consecutive places.
  const auto place = static_cast<unsigned>(Index(rank) * places / size);
  if (const hwloc_obj_t object = hwloc_get_obj_by_type(topology(), type, place))
    hwloc_set_cpubind(topology(), object->cpuset, HWLOC_CPUBIND_THREAD);
}

const char* name_of(Pinning pinning) {
  switch (pinning) {
    case Pinning::automatic:
      return "automatic";
    case Pinning::none:
      break;
    case Pinning::node:
      return "node";
    case Pinning::core:
      return "core";
  }
  return "none";
}

const char* name_of(HugePages huge_pages) {
  switch (huge_pages) {
    case HugePages::never:
      break;
    case HugePages::on_request:
      return "on request";
    case HugePages::always:
      return "always";
  }
  return "never";
}

std::span<std::byte> statics_of_executable() {
  struct Range {
    std::uintptr_t first = 0, end = 0, constant_end = 0;
  } range;
  // The first entry is the executable.
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        Range& range = *static_cast<Range*>(found);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          const std::uintptr_t first = info->dlpi_addr + header.p_vaddr, end = first + header.p_memsz;
          // Pages that the loader makes read-only again lie at the start of the last writable segment, or in an earlier
          // one.
          if (header.p_type == PT_GNU_RELRO) range.constant_end = round_down(end, page_bytes());
          if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0)
            range.first = round_down(first, page_bytes()), range.end = round_up(end, page_bytes());
        }
        return 1;
      },
      &range);
  range.first = std::clamp(range.constant_end, range.first, range.end);
  auto* const first =
      reinterpret_cast<std::byte*>(range.first);  // NOLINT(performance-no-int-to-ptr): the loader says it so
  return {first, range.end - range.first};
}

}  // namespace tranship
