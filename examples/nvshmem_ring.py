# Shows a token of 1 MiB that goes around all PEs, by NVSHMEM4Py's names.
# Prints how many PEs have added 1 to it.
# Run: python examples/nvshmem_ring.py (4 forked ranks), or this after `tranship launch -n 4` or `mpirun -n 4`

import os

import numpy as np

import tranship as ts
import tranship.nvshmem as nvshmem
from tranship.nvshmem import ComparisonType, SignalOp


def ring() -> float:
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    token = nvshmem.array((1 << 18,), "float32")
    arrived = nvshmem.array((1,), "uint64")
    if me == 0:
        token[:] = np.arange(token.size)
    else:
        nvshmem.signal_wait(arrived, 1, ComparisonType.CMP_EQ)
        token += 1
    if n > 1:
        nvshmem.put_signal(token, token, arrived, 1, SignalOp.SIGNAL_SET, (me + 1) % n)
    if me == 0 and n > 1:
        nvshmem.signal_wait(arrived, 1, ComparisonType.CMP_EQ)
    total = float(token.sum() / token.size - (token.size - 1) / 2)
    nvshmem.barrier_all()
    nvshmem.free_array(token)
    nvshmem.free_array(arrived)
    return total


def main(method: str = "") -> None:
    nvshmem.init(initializer_method=method)
    added = ring()
    if nvshmem.my_pe() == 0:
        print(f"{nvshmem.n_pes()} PEs have added {added:.0f}")
    nvshmem.finalize()


if __name__ == "__main__":
    if "OMPI_COMM_WORLD_SIZE" in os.environ or "PMI_SIZE" in os.environ:
        main("mpi")
    elif "TRANSHIP_WORLD" in os.environ:
        main()
    else:
        ts.launch(4, lambda world: main(), ranks="processes")
