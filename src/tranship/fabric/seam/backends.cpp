#include "tranship/fabric/seam/backends.hpp"

#include <algorithm>

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
      {"mpi", Backend::State::absent, "not in this build"},
      {"cuda", Backend::State::absent, "not in this build"},
  };
  return backends;
}

}  // namespace

std::vector<Backend> available_backends() {
  return table();
}

void register_backend(const Backend& backend) {
  std::vector<Backend>& backends = table();
  std::erase_if(backends, [&](const Backend& other) { return other.name == backend.name; });
  backends.insert(backends.begin(), backend);
}

}  // namespace tranship
