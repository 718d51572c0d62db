#include <tranship/fabric/backends.hpp>

namespace tranship {
namespace {

constexpr Backend backends[] = {
    {"threads", Backend::State::present, "ranks are threads of one process"},
    {"processes", Backend::State::present, "ranks are processes of one machine: launch_processes(), tranship launch"},
    {"sim", Backend::State::present, "ranks are simulated under a seed, to find what is missing: simulate()"},
    {"mpi", Backend::State::absent, "not in this build"},
    {"cuda", Backend::State::absent, "not in this build"},
};

}  // namespace

std::span<const Backend> available_backends() noexcept {
  return backends;
}

}  // namespace tranship
