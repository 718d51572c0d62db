"""A rank of MPI that makes worlds of communicators: ``mpirun -n 4 python mpi_worlds.py FIRST``, where FIRST, "mpi4py" or
"tranship", begins MPI. Prints "rank N is right"."""

import os
import sys

import numpy as np
import pytest

import tranship as ts
import tranship.nvshmem as nvshmem


def use(world):
    """Work that only the right world does right: the corner turn of a matrix, and sums at each rank."""
    size = world.size
    rows = ts.array(world, ts.distribution((48, 32), grid=(size, 1)))
    rows.fill(lambda i, j: i + 1e-3 * j)
    columns = ts.redistribute(rows, ts.distribution((48, 32), grid=(1, size)))
    assert columns.count_wrong(lambda i, j: i + 1e-3 * j) == 0
    cells = ts.symmetric(world, 50_000, "f8")
    cells.put(np.full(50_000, world.rank, "f8"), (world.rank + 1) % size)
    world.barrier()
    assert (cells.local == (world.rank - 1) % size).all()
    world.barrier()


def on_a_host_of(hosts):
    """Tells tranship on which of ``hosts`` hosts this process is."""
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    os.environ["TRANSHIP_HOST"] = f"host {rank * hosts // size}"


def several_worlds():
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    for hosts in (1, 2):
        on_a_host_of(hosts)
        part = MPI.COMM_WORLD.Split(rank % 2, -rank)
        expected = (part.Get_rank(), part.Get_size())
        with ts.World.from_mpi(MPI.COMM_WORLD) as whole:
            assert (whole.rank, whole.size) == (rank, size) and ts.current_world() is whole
            of_part = ts.World.from_mpi(part, heap_bytes=1 << 22)
            part.Free()
            assert (of_part.rank, of_part.size) == expected and ts.current_world() is of_part
            again = ts.World.from_mpi(MPI.COMM_WORLD)
            for world in (whole, of_part, again):
                use(world)
            of_part.leave()
            assert ts.current_world() is again
            use(again)
            again.leave()
            assert ts.current_world() is whole
            use(whole)
        with pytest.raises(ts.InvalidUse):
            ts.current_world()


def ends_of_their_own():
    """Each rank ends its worlds in an order of its own, and the first one that leaves waits for none."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    begun = MPI.Wtime()
    for hosts in (1, 2, size):
        on_a_host_of(hosts)
        worlds = [ts.World.from_mpi(comm) for _ in range(3)]
        for world in worlds:
            use(world)
        for number in range(3):
            worlds[(rank + number) % 3].leave()
        left = ts.World.from_mpi(comm)
        if rank == 0:
            left.leave()
        comm.bcast(rank)
        if rank != 0:
            left.leave()
        with ts.World.from_mpi(comm) as world:
            use(world)
    assert MPI.Wtime() - begun < 30


def refusals():
    rank = MPI.COMM_WORLD.Get_rank()
    for wrong in (None, 5, ts.World, MPI.GROUP_EMPTY):
        with pytest.raises(ts.InvalidUse, match="communicator of mpi4py"):
            ts.World.from_mpi(wrong)
    with pytest.raises(ts.InvalidUse, match="MPI_COMM_NULL"):
        ts.World.from_mpi(MPI.COMM_NULL)
    half = MPI.COMM_WORLD.Split(rank % 2, rank)
    between = half.Create_intercomm(0, MPI.COMM_WORLD, 1 - rank % 2)
    with pytest.raises(ts.InvalidUse, match="intercommunicator"):
        ts.World.from_mpi(between)
    between.Free()
    half.Free()
    with pytest.raises(ts.Mismatch, match="rank 1"):
        ts.World.from_mpi(MPI.COMM_WORLD, heap_bytes=(1 << 22) + (1 << 12) * (rank == 1))


def shmem():
    on_a_host_of(2)
    with pytest.raises(ts.InvalidUse, match="communicator of mpi4py, not int"):
        nvshmem.init(mpi_comm=3, initializer_method="mpi")
    nvshmem.init(mpi_comm=MPI.COMM_WORLD, initializer_method="mpi")
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    assert (me, n) == (MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size())
    x, y = nvshmem.array(3, "float64"), nvshmem.array(3, "float64")
    x[:] = me
    nvshmem.put(y, x, (me + 1) % n)
    nvshmem.barrier_all()
    assert (y == (me - 1) % n).all()
    for array in (x, y):
        nvshmem.free_array(array)
    nvshmem.finalize()


if __name__ == "__main__":
    if sys.argv[1] == "tranship":
        with ts.join() as world:
            use(world)
        ts.launch(use)
    from mpi4py import MPI

    several_worlds()
    ends_of_their_own()
    refusals()
    shmem()
    left = ts.World.from_mpi(MPI.COMM_WORLD)  # and ends with the process
    use(left)
    print(f"rank {left.rank} is right", flush=True)
