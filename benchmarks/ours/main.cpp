// The contestant tranship: ranks are threads of this process, or, where `tranship launch` has started it, processes;
// each is pinned to a core. Started by tranship-bench alone.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "our_methods.hpp"

namespace {

using namespace contest;

Methods methods_for(tranship::World& world, const Work& work) {
  switch (work.task) {
    case Task::redistribution:
      return redistribution_methods(world, work);
    case Task::halo:
      return halo_methods(world, work);
    case Task::stencil:
      return stencil_methods(world, work);
    case Task::coherence:
      return coherence_methods(work);
    case Task::one_sided:
      return one_sided_methods(world, work);
    case Task::collective:
      return collective_methods(world, work);
    case Task::stream:
      return stream_methods(world, work);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "started by tranship-bench with the path of a stage; got %d arguments\n", argc - 1);
    return 2;
  }
  try {
    const StageMemory stage = StageMemory::open(argv[1]);
    const auto play = [&](tranship::World& world) {
      pin(world.rank(), world.size());
      act(*stage, world.rank(), [&](const Work& work) { return methods_for(world, work); });
    };
    if (std::getenv(tranship::launch_variable))
      tranship::launch(play);
    else
      tranship::launch(stage->ranks, play);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
