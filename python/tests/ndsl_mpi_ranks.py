"""A rank of MPI that repeats what NDSL did: ``mpirun -n 6 python ndsl_mpi_ranks.py``. Rank 0 prints how many cases."""

from ndsl_cases import CubeCase, cube_cases, is_defect

from tranship.ndsl import CubedSphereCommunicator, MPIComm


def main():
    from mpi4py import MPI  # begins MPI: not in a process that only looks at this file

    size = MPI.COMM_WORLD.Get_size()
    layout = {6: (1, 1), 24: (2, 2)}[size]
    cases, arrays = cube_cases(size)
    done = 0
    for comm in (MPI.COMM_WORLD, MPIComm()):  # mpi4py's own, and NDSL's name for it
        communicator = CubedSphereCommunicator.from_layout(comm, layout)
        for case in cases:
            if not is_defect(case):
                CubeCase(case, arrays, MPI.COMM_WORLD.Get_rank()).run(communicator)
                done += 1
    total = MPI.COMM_WORLD.allreduce(done)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(f"{total // size} cases on {size} ranks")


if __name__ == "__main__":
    main()
