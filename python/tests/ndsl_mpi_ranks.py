"""A rank of MPI that repeats what NDSL did: ``mpirun -n 6 python ndsl_mpi_ranks.py``. Rank 0 prints how many cases."""

import re
import time

import numpy as np
from ndsl_cases import CubeCase, cube_cases, is_defect

import tranship as ts
from tranship.ndsl import CubedSphereCommunicator, MPIComm, Quantity, TileCommunicator
from tranship.ndsl.comm import ReductionOperator
from tranship.ndsl.constants import EAST


def check(condition, what):
    if not condition:
        raise SystemExit(f"wrong: {what}")


def updates(size, rank, comms):
    cases, arrays = cube_cases(size)
    done = 0
    for comm in comms:
        communicator = CubedSphereCommunicator.from_layout(comm, {6: (1, 1), 24: (2, 2)}[size])
        for case in cases:
            if not is_defect(case):
                CubeCase(case, arrays, rank).run(communicator)
                done += 1
    return done


def other_calls(size, rank, comm):
    tile = TileCommunicator.from_layout(comm, (2, size // 2))
    for dtype in ("f8", "f2", "c16", ">f4", "M8[s]"):  # MPI has no half precision
        data = np.arange(6 * size * 2).reshape(6, 2 * size).astype(dtype)
        part = tile.scatter(Quantity(data, ["j", "i"], "K") if rank == 0 else None)
        cut = tile.partitioner.subtile_slice(rank, ["j", "i"], data.shape)
        check(np.array_equal(part.data, data[cut]) and part.units == "K", "scatter")
        whole = tile.gather(part)
        check(whole is None if rank else np.array_equal(whole.data, data), "gather")
        field = Quantity(np.full((4, 4), rank).astype(dtype), ["j", "i"], "", origin=(1, 1), extent=(2, 2))
        tile.halo_update(field, 1)
        check(field.data[1, 3] == np.array(tile.boundaries[1].to_rank).astype(dtype), f"halo of {dtype}")
    part = tile.scatter(Quantity(np.zeros((6, 2 * size)), ["j", "i"], "K") if rank == 0 else None)
    check(tile.all_reduce(part, ReductionOperator.MAX).data.shape == part.extent, "reduction")
    cube = CubedSphereCommunicator.from_layout(comm, {6: (1, 1), 24: (2, 2)}[size])
    check(cube.tile.size == size // 6 and cube.tile.rank == rank % (size // 6), "tiles")


def deadline(comm):
    request = comm.Irecv(np.empty(1), 0, tag=9)
    try:
        comm.wait_any([request], "a halo of rank 0")
    except ts.TimeoutError as error:
        check("a halo of rank 0: none in 0.1 s" in str(error), error)
    else:
        check(False, "a message that was not sent")
    request.Cancel()
    request.Wait()


_SAID = "has refused this update: HaloValueError: .* points meet|a message of .* for a buffer of|longer than its buffer"


def faults(size, rank, mpi):
    """A fault on one rank ends all ranks that wait for it, long before the deadline."""
    cube = CubedSphereCommunicator.from_layout(mpi.COMM_WORLD, {6: (1, 1), 24: (2, 2)}[size])

    def field(cells, levels=1, dtype="f8"):
        shape = [n + 2 for n in cells]
        return Quantity(np.zeros((*shape, levels), dtype), ["j", "i", "k"], "", origin=(1, 1, 0), extent=(*cells, levels))

    def fails(call, message):
        began = time.monotonic()
        try:
            call()
        except RuntimeError as error:
            check(re.search(message, str(error)) and isinstance(error, ts.Error), error)
        except ValueError as error:
            check(message is None or re.search("points meet", str(error)), error)
        else:
            check(False, f"{message}: nothing was raised")
        check(time.monotonic() - began < 30, "a wait for the deadline")
        mpi.COMM_WORLD.Barrier()

    def works(call):
        call()
        mpi.COMM_WORLD.Barrier()

    # An uneven cut: some ranks have parts that are not square, and the others wait for them.
    j, i = divmod(rank % (size // 6), int((size // 6) ** 0.5))
    cells = (5 - j, 5 - i) if size == 24 else ((4, 5) if rank == 0 else (4, 4))
    waits_for_none = size == 6 and rank == 3  # of those that refuse: tile 3 is opposite to tile 0
    if waits_for_none:
        works(lambda: cube.halo_update(field(cells), 1))
    else:
        fails(lambda: cube.halo_update(field(cells), 1), _SAID)
    # Messages of other sizes than those that are expected.
    levels = 2 if rank == 0 else 1
    if size == 6 and waits_for_none:
        works(lambda: cube.halo_update(field((4, 4)), 1))
    elif size == 6:
        fails(lambda: cube.halo_update(field((4, 4), levels), 1), _SAID)
    # Parts that do not fit.
    tile = TileCommunicator.from_layout(mpi.COMM_WORLD, (1, size))
    whole = Quantity(np.zeros((4, 3 * size)), ["j", "i"], "")
    other = Quantity(np.zeros((4, 6 * size)), ["j", "i"], "")
    wide = Quantity(np.zeros((4, 5)), ["j", "i"], "")
    right = tile.scatter(whole if rank == 0 else None)
    odd = rank == size - 1
    for call in (
        lambda: tile.scatter(whole if rank == 0 else None, wide if odd else None),
        lambda: tile.gather(right, other if rank == 0 else None),
        lambda: tile.gather(Quantity(right.data.astype("f4"), ["j", "i"], "") if odd else right),
    ):
        fails(call, "has refused it|has extents|of extents|with extents|has a part of float64 .* one of float32")
    tile.gather(right)
    # A collective that a rank does not take part in.
    late = MPIComm(mpi.COMM_WORLD.Dup(), timeout=0.5)
    if rank > 0:
        try:
            late.barrier()
        except ts.TimeoutError as error:
            check("a barrier: none in 0.5 s" in str(error), error)
        else:
            check(False, "a barrier without rank 0")
    mpi.COMM_WORLD.Barrier()
    if rank == 0:
        MPIComm(late._comm).barrier()
    mpi.COMM_WORLD.Barrier()
    good = field((4, 4))
    good.data[...] = rank
    cube.halo_update(good, 1)  # and all goes on
    check(good.data[2, 5, 0] == cube.boundaries[EAST].to_rank, "a halo after faults")


def main():
    from mpi4py import MPI  # begins MPI: not in a process that only looks at this file

    size, rank = MPI.COMM_WORLD.Get_size(), MPI.COMM_WORLD.Get_rank()
    done = updates(size, rank, (MPI.COMM_WORLD, MPIComm()))  # mpi4py's own, and NDSL's name for it
    other_calls(size, rank, MPI.COMM_WORLD)
    deadline(MPIComm(MPI.COMM_SELF, timeout=0.1))
    faults(size, rank, MPI)
    total = MPI.COMM_WORLD.allreduce(done)
    if rank == 0:
        print(f"{total // size} cases on {size} ranks")


if __name__ == "__main__":
    main()
