// A program of MPI that makes a world of its communicator.
#include <mpi.h>

#include <tranship/mpi.hpp>

int main(int count, char** arguments) {
  int level = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &level);
  const int ranks = tranship::join_mpi(MPI_COMM_WORLD).world().size();
  MPI_Finalize();
  return ranks > 0 ? 0 : 1;
}
