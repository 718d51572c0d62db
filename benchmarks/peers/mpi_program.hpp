// The main part of every peer that is an MPI program, after MPI_Init or what stands for it.
#pragma once

#include <cstdio>
#include <exception>

#include <contest/act.hpp>
#include <mpi.h>

namespace contest {

template <class F>
int act_under_mpi(int argc, char** argv, F&& methods_for) {
  if (argc != 2) {
    std::fprintf(stderr, "started by tranship-bench with the path of a stage; got %d arguments\n", argc - 1);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  try {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const StageMemory stage = StageMemory::open(argv[1]);
    pin(rank, ranks);
    act(*stage, rank, [&](const Work& work) { return methods_for(work, rank); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}

}  // namespace contest
