#include "tranship/fabric/processes/other_launcher.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship {
namespace {

struct Launcher {
  const char* name;
  const char* size;  ///< nullptr if no variable has it
  const char* rank;
  std::optional<MpiFamily> family = std::nullopt;  ///< if the launcher is part of an MPI
};
constexpr const char* launcher_with_pmix = "a launcher with PMIx";
constexpr Launcher launchers_of_mpi[] = {
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", MpiFamily::openmpi},
    {"mpiexec (MVAPICH)", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", MpiFamily::mpich},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
    {"mpiexec (PMI)", "PMI_SIZE", "PMI_RANK", MpiFamily::mpich},
    {launcher_with_pmix, nullptr, "PMIX_RANK"},
};
/// Variables of a step: a job script that srun has not started has SLURM_NTASKS, too.
constexpr Launcher slurm = {"srun (Slurm)", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"};
/// Without one of these options, each process of a step becomes an MPI job of its own, with any MPI.
constexpr const char* slurm_with_mpi = "`srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH), with ";

std::optional<int> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  int number = 0;
  const auto read = std::from_chars(text, text + std::strlen(text), number);
  return read.ec == std::errc() && *read.ptr == '\0' ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<OtherLauncher> other_launcher(FunctionRef<const char*(const char*)> variable) {
  bool is_mpi = false;
  const auto found = [&](const Launcher& launcher) -> std::optional<OtherLauncher> {
    const std::optional<int> size = launcher.size ? number_of(variable(launcher.size)) : std::nullopt;
    const std::optional<int> rank = number_of(variable(launcher.rank));
    is_mpi |= size.has_value();
    if (size ? *size < 2 : rank.value_or(0) < 1) return std::nullopt;
    OtherLauncher out{.name = launcher.name, .processes = size.value_or(0), .variables = {}};
    if (size) out.variables = fmt::format("{}={}", launcher.size, *size);
    if (rank) out.variables += fmt::format("{}{}={}", size ? ", " : "", launcher.rank, *rank);
    return out;
  };
  std::optional<OtherLauncher> by_rank;
  for (const Launcher& launcher : launchers_of_mpi)
    if (std::optional<OtherLauncher> one = found(launcher)) {
      if (one->processes > 0) return one;
      if (!by_rank) by_rank = std::move(one);
    }
  if (is_mpi) return std::nullopt;
  if (number_of(variable(slurm.size)))
    if (std::optional<OtherLauncher> one = found(slurm); one && one->processes > 0) return one;
  return by_rank;
}

std::optional<MpiLauncher> mpi_launcher(FunctionRef<const char*(const char*)> variable) {
  // If launchers are nested, the one that has started several processes counts.
  for (const int processes_min : {2, 1})
    for (const Launcher& launcher : launchers_of_mpi)
      if (launcher.family && number_of(variable(launcher.size)).value_or(0) >= processes_min)
        return MpiLauncher{launcher.name, *launcher.family};
  if (number_of(variable("PMIX_RANK")))
    return MpiLauncher{launcher_with_pmix, MpiFamily::openmpi, /*may_be_other_family=*/true};
  return std::nullopt;
}

std::optional<OtherLauncher> other_launcher() {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  if (const char* const text = variable(separate_worlds_variable); text != nullptr && *text != '\0') {
    const std::string_view word = text;
    if (word == "1") return std::nullopt;
    if (word != "0")
      throw_error(ErrorCode::bad_text, "{} is '{}'; it must be 0 or 1", separate_worlds_variable, printable(word));
  }
  return other_launcher(variable);
}

std::string OtherLauncher::text() const {
  return fmt::format("{} has started this process as one of {} ({})", name,
                     processes > 0 ? std::to_string(processes) : "several", variables);
}

void refuse_other_launcher(const char* what) {
  const std::optional<OtherLauncher> launcher = other_launcher();
  if (!launcher) return;
  throw_error(
      ErrorCode::unsupported,
      "{}, and each of them would have {}: ranks are started with {}`tranship launch -n {} PROGRAM`, or join by an "
      "id (RankScope::join(id, rank, size), tranship.join, nvshmem.init(mpi_comm=...)); {}=1 lets each process "
      "have worlds of its own",
      launcher->text(), what, launcher->name == slurm.name ? slurm_with_mpi : "",
      launcher->processes > 0 ? std::to_string(launcher->processes) : "N", separate_worlds_variable);
}

}  // namespace tranship
