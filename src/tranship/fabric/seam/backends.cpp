#include "tranship/fabric/seam/backends.hpp"

#include <algorithm>
#include <cstdlib>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/mpi/mpi_world.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/processes/rendezvous.hpp>
#include <tranship/fabric/rank_scope.hpp>

namespace tranship {
namespace {

std::vector<Backend>& table() {
  static auto& backends = *new std::vector<Backend>{
      {"threads", Backend::State::present, "ranks are threads of one process"},
      {"processes", Backend::State::present,
       "ranks are processes of one machine: launch_processes(), tranship launch, RankScope::join(id, ...)",
       &join_program, &make_world_id, &join_world},
      {"sim", Backend::State::present, "ranks are simulated under a seed, to find what is missing: simulate()"},
      {"mpi", Backend::State::present,
       "ranks are the processes that mpirun or mpiexec has started, on several machines: launch(f), RankScope::join()",
       &join_mpi_job},
      {"cuda", Backend::State::absent, "ranks on cards: not in this build"},
  };
  return backends;
}

}  // namespace

std::vector<Backend> available_backends() {
  return table();
}

std::optional<Backend> chosen_backend() {
  const char* const text = std::getenv("TRANSHIP_BACKEND");
  if (text == nullptr || *text == '\0') return {};
  std::vector<std::string_view> names;
  for (const Backend& backend : table()) {
    if (backend.launch != nullptr) names.push_back(backend.name);
    if (backend.name == text && backend.launch != nullptr) return backend;
  }
  throw_error(ErrorCode::invalid_use, "TRANSHIP_BACKEND is '{}', which is no back-end that starts processes; {}{}",
              printable(text), names.empty() ? "this build has none" : "there are: ", join_text(names, ", "));
}

void register_backend(const Backend& backend) {
  const auto lacks = [&](std::string_view what) {
    throw_error(ErrorCode::invalid_use, "back-end '{}' lacks {}", backend.name, what);
  };
  std::vector<Backend>& backends = table();
  if (backend.name.empty()) throw_error(ErrorCode::invalid_use, "a back-end is registered without a name");
  for (const Backend& other : backends)
    if (other.name == backend.name && other.state == Backend::State::present)
      throw_error(ErrorCode::invalid_use, "back-end '{}' is registered already", backend.name);
  if (backend.make_id != nullptr && backend.join_by_id == nullptr)
    lacks("join_by_id: it makes ids by which no process can join");
  if (backend.make_id == nullptr && backend.join_by_id != nullptr)
    lacks("make_id: processes can join by ids, and it makes none");
  if (backend.state == Backend::State::present && backend.join == nullptr && backend.join_by_id == nullptr &&
      backend.launch == nullptr)
    lacks("join, join_by_id and launch: it starts no rank");
  std::erase_if(backends, [&](const Backend& other) { return other.name == backend.name; });
  backends.insert(backends.begin(), backend);
}

}  // namespace tranship
