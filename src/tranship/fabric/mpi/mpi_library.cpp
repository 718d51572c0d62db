#include "tranship/fabric/mpi/mpi_library.hpp"

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/processes/other_launcher.hpp>

namespace tranship {
namespace {

/// Libraries by what their ABI is called, and the module that serves it.
struct Abi {
  const char* name;
  const char* module;
  std::span<const std::string_view> libraries;
};
constexpr std::string_view openmpi_libraries[] = {"libmpi.so.40"};
constexpr std::string_view mpich_libraries[] = {"libmpich.so.12", "libmpi.so.12"};
constexpr std::string_view standard_libraries[] = {"libmpi_abi.so.1"};
constexpr Abi openmpi{"Open MPI", "tranship_mpi_openmpi.so", openmpi_libraries};
constexpr Abi mpich{"MPICH", "tranship_mpi_mpich.so", mpich_libraries};
/// Several MPIs have it beside their own.
constexpr Abi standard{"the MPI standard", "tranship_mpi_abi.so", standard_libraries};
constexpr const Abi* abis[] = {&openmpi, &mpich, &standard};

const Abi* abi_of(std::string_view file) {
  for (const Abi* const abi : abis)
    for (const std::string_view library : abi->libraries)
      if (file.starts_with(library)) return abi;
  return nullptr;
}

const Abi& abi_of(MpiFamily family) {
  return family == MpiFamily::openmpi ? openmpi : mpich;
}

std::string file_of(const std::string& path) {
  return std::filesystem::path(path).filename();
}

std::string text_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text ? text : "";
}

/// The path of an MPI that this process has loaded, or "".
std::string loaded_library() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (!info->dlpi_name || !abi_of(file_of(info->dlpi_name))) return 0;
        *static_cast<std::string*>(out) = info->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

/// Launchers that start a rank on its own machine, by the beginnings of their names.
constexpr std::string_view launchers[] = {"orterun", "orted", "prte", "mpirun", "mpiexec", "hydra", "pmi_proxy"};

int parent_of(int process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(status), {}};
  // After the name, which may hold anything: the state, and the number of the parent.
  const std::size_t name_end = text.rfind(')');
  int parent = 0;
  if (name_end != std::string::npos && text.size() > name_end + 4)
    std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

/// The executable of the nearest launcher above this process, or "": a script or a shell may lie between.
std::filesystem::path launcher_above() {
  for (int process = getppid(); process > 1; process = parent_of(process)) {
    std::error_code ignored;
    std::filesystem::path program = std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe", ignored);
    const std::string name = program.filename();
    for (const std::string_view launcher : launchers)
      if (name.starts_with(launcher)) return program;
  }
  return {};
}

/// The folders named "tranship" where the loader looks for libraries of this program, such as those of its run path.
std::vector<std::filesystem::path> run_path_folders() {
  std::vector<std::filesystem::path> out;
  void* const program = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size{};
  if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &size) != 0) return out;
  const std::unique_ptr<std::byte[]> memory(new std::byte[size.dls_size]);
  auto* const paths = new (memory.get()) Dl_serinfo;
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, paths) != 0 || dlinfo(program, RTLD_DI_SERINFO, paths) != 0) return out;
  for (unsigned i = 0; i < paths->dls_cnt; ++i)
    if (const std::filesystem::path folder = paths->dls_serpath[i].dls_name; folder.filename() == "tranship")
      out.push_back(folder);
  return out;
}

/// The folders where modules may lie.
std::vector<std::filesystem::path> module_folders() {
  std::vector<std::filesystem::path> out;
  if (const std::string folder = text_of(mpi_modules_variable); !folder.empty()) out.emplace_back(folder);
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&mpi_library), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) !=
      0) {
    std::error_code ignored;
    // The program itself has no name there. Its name in `info` is the one that it was called by, perhaps without a
    // folder.
    const char* const file = map != nullptr && *map->l_name != '\0' ? map->l_name : "/proc/self/exe";
    const std::filesystem::path self = std::filesystem::canonical(file, ignored).parent_path();
    for (const std::filesystem::path& folder : {self, self.parent_path(), self.parent_path() / "lib"})
      out.push_back(folder / "tranship");
    out.push_back(self);
  }
  for (const std::filesystem::path& folder : run_path_folders()) out.push_back(folder);
  out.emplace_back(TRANSHIP_MPI_MODULE_FOLDER);
  return out;
}

/// The files that the module of an ABI could be.
std::vector<std::filesystem::path> module_files(const Abi& abi) {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const std::filesystem::path& folder : module_folders())
    if (std::filesystem::exists(folder / abi.module, ignored)) out.push_back(folder / abi.module);
  return out;
}

Result<const MpiModule*> load_module(const Abi& abi, const std::string& library) {
  std::string said;
  for (const std::filesystem::path& path : module_files(abi)) {
    void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded) {
      said = dlerror();
      continue;
    }
    const auto entry = reinterpret_cast<const MpiModule* (*)()>(dlsym(loaded, "tranship_mpi_module"));
    const MpiModule* const mpi = entry ? entry() : nullptr;
    if (mpi && mpi->version == MpiModule::version_here) return mpi;
    said = fmt::format("{} has version {} of the table of calls, this library {}", path.c_str(), mpi ? mpi->version : 0,
                       MpiModule::version_here);
  }
  if (said.empty()) {
    std::vector<std::string> searched;
    for (const std::filesystem::path& folder : module_folders()) searched.push_back(folder.string());
    said = fmt::format(
        "which is in none of {}: this build was made without the header of that MPI, or {} names a "
        "folder of another build",
        join_text(searched, ", "), mpi_modules_variable);
  }
  return make_error(ErrorCode::unsupported, "{} needs {}, {}", library, abi.module, said);
}

Result<MpiLibrary> with_module(const std::string& path, std::string chosen, void* loaded) {
  const Abi* abi = abi_of(file_of(path));
  if (!abi) {
    // A link, or a name without a number: what it is linked to says which it is.
    link_map* map = nullptr;
    if (dlinfo(loaded, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map) {
      std::error_code ignored;
      abi = abi_of(std::filesystem::canonical(map->l_name, ignored).filename().string());
    }
  }
  if (!abi)
    return make_error(ErrorCode::unsupported,
                      "'{}' is not a known MPI library; known are libmpi.so.40 (Open MPI), libmpich.so.12 and "
                      "libmpi.so.12 (MPICH, Intel MPI), libmpi_abi.so.1 (the MPI standard)",
                      printable(path));
  Result<const MpiModule*> module = load_module(*abi, path);
  if (!module) return module.error();
  char version[256];
  module.value()->library_version(version, sizeof version);
  return MpiLibrary{.mpi = module.value(), .path = path, .chosen = std::move(chosen), .version = version};
}

Result<MpiLibrary> find() {
  if (const std::string path = loaded_library(); !path.empty()) {
    // Its names must be seen by the module.
    void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    if (loaded) return with_module(path, "this process has it already", loaded);
  }
  std::vector<MpiCandidate> candidates;
  if (const std::string path = text_of(mpi_library_variable); !path.empty())
    candidates.push_back({path, std::string(mpi_library_variable) + " names it"});
  else
    candidates = mpi_of_launcher();
  if (candidates.empty())
    return make_error(ErrorCode::unsupported,
                      "no MPI library is known: this process has not loaded one, no launcher of MPI has started it, "
                      "and {} names none",
                      mpi_library_variable);
  std::string said;
  for (const MpiCandidate& candidate : candidates) {
    if (void* const loaded = dlopen(candidate.path.c_str(), RTLD_NOW | RTLD_GLOBAL))
      return with_module(candidate.path, candidate.chosen, loaded);
    said += fmt::format("{}{}", said.empty() ? "" : "; ", dlerror());
  }
  return make_error(ErrorCode::unsupported, "no MPI can be loaded ({}): {}", candidates.front().chosen, said);
}

}  // namespace

std::vector<MpiCandidate> mpi_of_launcher() {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const std::optional<MpiLauncher> launcher = mpi_launcher(variable);
  if (!launcher) return {};
  std::vector<std::string_view> libraries;
  for (const MpiFamily family : {MpiFamily::openmpi, MpiFamily::mpich})
    if (family == launcher->family || launcher->may_be_other_family)
      libraries.insert(libraries.end(), abi_of(family).libraries.begin(), abi_of(family).libraries.end());
  const std::string chosen = fmt::format("{} has started this process", launcher->name);
  std::vector<MpiCandidate> out;
  if (const std::filesystem::path above = launcher_above(); !above.empty()) {
    const std::filesystem::path prefix = above.parent_path().parent_path();
    for (const std::string_view library : libraries)
      for (const char* const folder : {"lib", "lib/" TRANSHIP_LIBRARY_ARCHITECTURE, "lib64"}) {
        std::error_code ignored;
        const std::filesystem::path beside = prefix / folder / library;
        if (std::filesystem::exists(beside, ignored)) out.push_back({beside, chosen});
      }
  }
  for (const std::string_view library : libraries) out.push_back({std::string(library), chosen});
  return out;
}

const Result<MpiLibrary>& mpi_library() {
  static const auto& found = *new Result<MpiLibrary>(find());
  return found;
}

std::vector<MpiModuleFile> mpi_modules() {
  std::vector<MpiModuleFile> out;
  for (const Abi* const abi : abis) {
    const std::vector<std::filesystem::path> files = module_files(*abi);
    out.push_back({abi->name, files.empty() ? abi->module : files.front().string(), !files.empty()});
  }
  return out;
}

void check_mpi(const MpiModule& mpi, int code, const char* what) {
  if (code == 0) return;
  char text[256];
  mpi.error_text(code, text, sizeof text);
  throw_error(ErrorCode::io, "MPI cannot {}: {}", what, text);
}

}  // namespace tranship
