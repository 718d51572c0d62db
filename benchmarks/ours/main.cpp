// The contestant tranship: ranks are threads of this process, each pinned to a core. Started by tranship-bench alone.
#include <cstdio>
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
    tranship::launch(stage->ranks, [&](tranship::World& world) {
      pin(world.rank(), world.size());
      act(*stage, world.rank(), [&](const Work& work) { return methods_for(world, work); });
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
