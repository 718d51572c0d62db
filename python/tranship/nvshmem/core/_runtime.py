"""Joining and leaving, and who this rank is."""

from __future__ import annotations

import logging
from typing import Any, Optional

import numpy as np

from ... import _worlds
from ..._errors import InvalidUse, Unsupported
from ..._ground import current
from ._ground import Runtime, runtimes, of_this_thread, runtime, threads
from ._types import InitStatus, Version

__all__ = [
    "UniqueID",
    "finalize",
    "get_unique_id",
    "get_version",
    "init",
    "init_status",
    "my_pe",
    "n_pes",
]

logger = logging.getLogger("nvshmem")


class UniqueID:
    """An id that the ranks of one world share: one of them makes it and sends it to the others by other means.

    ``_data`` is an array of bytes, to be broadcast in place; ``bytes(uid)`` and ``UniqueID(data)`` copy it.
    """

    def __init__(self, data: bytes = bytes(64)) -> None:
        self._data = np.frombuffer(data, "u1").copy()

    def __bytes__(self) -> bytes:
        return self._data.tobytes()

    @property
    def ptr(self) -> int:
        """The address of the bytes."""
        return int(self._data.__array_interface__["data"][0])


def get_unique_id(empty: bool = False) -> UniqueID:
    """A new id, to be called by one rank; with ``empty=True`` room for one that is received."""
    return UniqueID() if empty else UniqueID(_worlds.world_id())


def init(
    device: Any = None,
    uid: Optional[UniqueID] = None,
    rank: Optional[int] = None,
    nranks: Optional[int] = None,
    mpi_comm: Any = None,
    initializer_method: str = "",
    *,
    dev: Any = None,
    stream: Any = None,
    init_method: str = "",
    timeout: Optional[float] = None,
    heap_bytes: Optional[int] = None,
) -> None:
    """Collective: joins a world.

    Parameters
    ----------
    device, dev, stream
        Accepted, and not used.
    uid, rank, nranks
        For ``"uid"``: the id that one rank has made, this rank, and how many there are.
    mpi_comm
        For ``"mpi"`` and ``"emulated_mpi"``: a communicator of mpi4py, ``COMM_WORLD`` where nothing is said.
    initializer_method
        ``"uid"``; ``"mpi"``, as :meth:`tranship.World.from_mpi`; ``"emulated_mpi"``, where any object with the methods of a
        communicator brings an id to the ranks, which must be on one machine. What is given says it where this does not.
        Without any, the rank is the one that :func:`tranship.launch`, ``tranship launch`` or ``mpirun`` has started; in a
        process that was started in another way, the one rank of a world.
    timeout, heap_bytes
        As in :func:`tranship.join`.

    Raises
    ------
    InvalidUse
        For a method that is none, or one that lacks its arguments; when this rank has been initialized already.
    Unsupported
        For a communicator of several machines, where it only emulates MPI; where this build has no module for that MPI.
    """
    before = of_this_thread()
    if before is not None and mpi_comm is None:
        raise InvalidUse(f"init() was called before (rank {before.rank} of {before.size})")
    runtimes[:] = [one for one in runtimes if not one.shmem.is_over]
    method = initializer_method or init_method or ("uid" if uid is not None else "mpi" if mpi_comm is not None else "")
    around = current.get()
    is_joined = True
    if method in ("mpi", "emulated_mpi"):
        if mpi_comm is None:
            from mpi4py import MPI

            mpi_comm = MPI.COMM_WORLD
        if not hasattr(mpi_comm, "Get_rank"):
            raise InvalidUse(f"mpi_comm is a communicator of mpi4py, not {type(mpi_comm).__name__}")
        rank, nranks = mpi_comm.Get_rank(), mpi_comm.Get_size()
        said = mpi_comm.allgather((_machine(), before is not None))
        if any(is_begun for _, is_begun in said):
            begun = [r for r, (_, is_begun) in enumerate(said) if is_begun]
            raise InvalidUse(f"init() was called before by ranks {begun} of the communicator's {nranks} (rank {rank})")
        if method == "mpi":
            world = _worlds.World.from_mpi(mpi_comm, timeout=timeout, heap_bytes=heap_bytes)
        else:
            machines = len({machine for machine, _ in said})
            if machines > 1:
                raise Unsupported(
                    f"the {nranks} ranks of the communicator are on {machines} machines, and an id joins those of one: "
                    "initializer_method='mpi' joins all of them"
                )
            data = mpi_comm.bcast(_worlds.world_id() if rank == 0 else None, root=0)
            world = _worlds.join(data, rank, nranks, timeout=timeout, heap_bytes=heap_bytes)
    elif method == "uid":
        if uid is None or rank is None or nranks is None:
            raise InvalidUse(f"initializer_method='uid' needs uid, rank and nranks, not {uid}, {rank} and {nranks}")
        world = _worlds.join(bytes(uid), rank, nranks, timeout=timeout, heap_bytes=heap_bytes)
    elif method:
        raise InvalidUse(f"initializer_method={method!r}: needs 'uid', 'mpi' or 'emulated_mpi'")
    elif around is not None:
        if timeout is not None or heap_bytes is not None:
            raise InvalidUse(
                f"timeout={timeout}, heap_bytes={heap_bytes}: launch() has set these already (rank {around.rank})"
            )
        world, is_joined = around, False
    else:
        world = _worlds.join(timeout=timeout, heap_bytes=heap_bytes)
    started = Runtime(world, is_joined)
    threads.runtime = started
    runtimes.append(started)
    _adapt_simulator()


def finalize(dev: Any = None, stream: Any = None) -> None:
    """Collective: completes all transfers and ends this rank's part. What was not freed is freed, and logged.

    Raises
    ------
    InvalidUse
        When init() was not called.
    """
    here = of_this_thread()
    if here is None:
        raise InvalidUse("finalize() without init()")
    leaked = [record for record in here.allocations.values() if record.is_owned]
    if leaked:
        logger.error(
            "rank %d: %d arrays or buffers of %d bytes were not freed before finalize()",
            here.rank,
            len(leaked),
            sum(record.size for record in leaked),
        )
    try:
        here.world.barrier()
    finally:
        here.allocations.clear()
        here.shmem.leave()
        threads.runtime = None
        runtimes.remove(here)
        if here.is_joined:
            here.world.leave()


def init_status() -> InitStatus:
    """Returns the status of this rank, which is initialized between init() and finalize()."""
    is_on = of_this_thread() is not None
    return InitStatus.STATUS_IS_INITIALIZED if is_on else InitStatus.STATUS_NOT_INITIALIZED


def my_pe() -> int:
    """This rank, from 0."""
    return runtime().rank


def n_pes() -> int:
    """How many ranks there are."""
    return runtime().size


def get_version() -> Version:
    """Versions of the interface and of this package."""
    from ... import __version__

    return Version("1.5", "3.8", __version__)


def _machine() -> str:
    """Returns a value that two processes share when they run on one machine: one run of one system, and its names."""
    import platform

    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read() + platform.node()
    except OSError:
        return platform.node()


def _adapt_simulator() -> None:
    import sys

    if "numba.cuda" in sys.modules:
        from .device.numba import _simulator

        _simulator.adapt()
