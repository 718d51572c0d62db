"""The elements that ``MPI_Type_create_darray`` selects: reads cases as JSON, and writes the numbers for each rank.

A process of its own, because importing ``mpi4py.MPI`` begins MPI. Leaves with 77 where there is no MPI to import.
"""

import json
import sys

import numpy as np


def elements_of(MPI, case, rank):
    """The elements of the type map of `rank`, in its order, by their numbers in the global array's memory."""
    whole = np.arange(np.prod(case["extents"]), dtype=np.int32)
    kinds = {"none": MPI.DISTRIBUTE_NONE, "block": MPI.DISTRIBUTE_BLOCK, "cyclic": MPI.DISTRIBUTE_CYCLIC}
    made = MPI.INT32_T.Create_darray(
        int(np.prod(case["grid"])),
        rank,
        case["extents"],
        [kinds[kind] for kind, _ in case["cuts"]],
        [MPI.DISTRIBUTE_DFLT_DARG if size is None else size for _, size in case["cuts"]],
        case["grid"],
        MPI.ORDER_FORTRAN if case["is_fortran"] else MPI.ORDER_C,
    )
    made.Commit()
    packed = np.full(made.Get_size() // whole.itemsize, -1, np.int32)
    if packed.size:
        made.Pack(whole, packed, 0, MPI.COMM_SELF)
    made.Free()
    return packed.tolist()


def main():
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # mpi4py of a wheel looks for the library only now
        print(f"mpi4py finds no MPI: {error}", file=sys.stderr)
        raise SystemExit(77) from None
    cases = json.load(sys.stdin)
    selected = [[elements_of(MPI, case, rank) for rank in range(int(np.prod(case["grid"])))] for case in cases]
    json.dump(selected, sys.stdout)


if __name__ == "__main__":
    main()
