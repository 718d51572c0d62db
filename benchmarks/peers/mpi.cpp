// The contestants of plain MPI, built once with Open MPI and once with MPICH: derived types, packing by hand,
// collectives, one-sided calls, and loops over a shared window.
#include <cstdio>
#include <exception>

#include <contest/streamed.hpp>

#include "mpi_methods.hpp"

namespace {

using namespace contest;

Methods methods_for(const Work& work, int rank) {
  return work.task == Task::halo             ? mpi_halo_methods(work, rank)
         : work.task == Task::redistribution ? mpi_redistribution_methods(work, rank)
         : work.task == Task::stream         ? streamed(work, mpi_redistribution_methods(frame_of(work), rank))
         : work.task == Task::one_sided      ? mpi_one_sided_methods(work, rank)
         : work.task == Task::collective     ? mpi_collective_methods(work, rank)
                                             : Methods();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = act_under_mpi(argc, argv, methods_for);
  MPI_Finalize();
  return status;
}
