"""Joining and leaving, and who this rank is."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any, Optional

import numpy as np

from ... import _core, _worlds
from ..._errors import InvalidUse, Unsupported
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


class Runtime:
    """One rank between init() and finalize()."""

    def __init__(self, world: _worlds.World, is_joined: bool) -> None:
        self.world = world
        self.is_joined = is_joined  # by init(), and to be left by finalize()
        self.shmem = _core.begin_shmem(world._core)
        self.rank, self.size = world.rank, world.size
        # Threads of a kernel take turns in what they ask of their rank.
        self.lock = threading.RLock()
        self.team_names: dict[str, int] = {}
        self.allocations: dict[int, Any] = {}  # by address
        self.allocated = 0  # how many there have ever been: the same on all ranks


class _Threads(threading.local):
    runtime: Optional[Runtime] = None


_threads = _Threads()
_all: list[Runtime] = []  # of this process


def _forget_in_child() -> None:
    """Children that a rank forks are no ranks."""
    _threads.runtime = None
    _all.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def _of_this_thread() -> Optional[Runtime]:
    """The rank of the calling thread, unless its world has ended without finalize()."""
    here = _threads.runtime
    if here is not None and here.shmem.is_over:
        _threads.runtime = here = None
        _all[:] = [one for one in _all if not one.shmem.is_over]
    return here


def runtime_if_any() -> Optional[Runtime]:
    """The rank of the calling thread; of a thread of a simulated kernel, that of its process."""
    here = _of_this_thread()
    if here is None and len(_all) == 1 and hasattr(threading.current_thread(), "_manager"):
        return _all[0]
    return here


def runtime() -> Runtime:
    """The same; raises where there is none."""
    here = runtime_if_any()
    if here is not None:
        return here
    if _all:
        raise InvalidUse(
            f"{len(_all)} ranks of this process have called init(), and this thread is none of them: each is used by its "
            "own thread, and kernels need ranks that are processes"
        )
    raise InvalidUse("call init() first")


class UniqueID:
    """What the ranks of one world share: made by one of them, sent to the others by other means.

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
        For ``"mpi"`` and ``"emulated_mpi"``: a communicator of mpi4py, ``COMM_WORLD`` where nothing is said. Its ranks
        must be on one machine.
    initializer_method
        ``"uid"``, ``"mpi"`` or ``"emulated_mpi"``; what is given says it where this does not. Without any, the rank is the one that :func:`tranship.launch` or
        ``tranship launch`` has started; in a process that was started in another way, the one rank of a world.
    timeout, heap_bytes
        As in :func:`tranship.join`.

    Raises
    ------
    InvalidUse
        For a method that is none, or one that lacks its arguments; when this rank has been initialized already.
    Unsupported
        For a communicator of several machines.
    """
    before = _of_this_thread()
    if before is not None and mpi_comm is None:
        raise InvalidUse(f"init() was called before (rank {before.rank} of {before.size})")
    _all[:] = [one for one in _all if not one.shmem.is_over]
    method = initializer_method or init_method or ("uid" if uid is not None else "mpi" if mpi_comm is not None else "")
    current = _worlds._current.get()
    is_joined = True
    if method in ("mpi", "emulated_mpi"):
        if mpi_comm is None:
            from mpi4py import MPI

            mpi_comm = MPI.COMM_WORLD
        rank, nranks = mpi_comm.Get_rank(), mpi_comm.Get_size()
        said = mpi_comm.allgather((_machine(), before is not None))
        if any(is_begun for _, is_begun in said):
            begun = [r for r, (_, is_begun) in enumerate(said) if is_begun]
            raise InvalidUse(f"init() was called before by ranks {begun} of the communicator's {nranks} (rank {rank})")
        machines = len({machine for machine, _ in said})
        if machines > 1:
            raise Unsupported(
                f"the {nranks} ranks of the communicator are on {machines} machines: memory is shared on one machine, "
                "and a back-end of MPI for several ones is not in this build"
            )
        data = mpi_comm.bcast(_worlds.world_id() if rank == 0 else None, root=0)
        world = _worlds.join(data, rank, nranks, timeout=timeout, heap_bytes=heap_bytes)
    elif method == "uid":
        if uid is None or rank is None or nranks is None:
            raise InvalidUse(f"initializer_method='uid' needs uid, rank and nranks, not {uid}, {rank} and {nranks}")
        world = _worlds.join(bytes(uid), rank, nranks, timeout=timeout, heap_bytes=heap_bytes)
    elif method:
        raise InvalidUse(f"initializer_method={method!r}: needs 'uid', 'mpi' or 'emulated_mpi'")
    elif current is not None:
        if timeout is not None or heap_bytes is not None:
            raise InvalidUse(f"timeout={timeout}, heap_bytes={heap_bytes}: launch() has said them (rank {current.rank})")
        world, is_joined = current, False
    else:
        world = _worlds.join(timeout=timeout, heap_bytes=heap_bytes)
    started = Runtime(world, is_joined)
    _threads.runtime = started
    _all.append(started)
    _adapt_simulator()


def finalize(dev: Any = None, stream: Any = None) -> None:
    """Collective: completes all transfers and ends this rank's part. What was not freed is freed, and logged.

    Raises
    ------
    InvalidUse
        When init() was not called.
    """
    here = _of_this_thread()
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
        _threads.runtime = None
        _all.remove(here)
        if here.is_joined:
            here.world.leave()


def init_status() -> InitStatus:
    """Whether this rank is between init() and finalize()."""
    is_on = _of_this_thread() is not None
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
    """What two processes have in common on one machine: one run of one system, and its names."""
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
