"""Ranks of mpi4py. The module is imported when the first communicator is made."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Optional, TypeVar

import numpy as np

from ..._errors import TimeoutError as TranshipTimeoutError
from .._errors import HaloUnsupported, HaloValueError
from .comm_abc import Comm, ReductionOperator
from .local_comm import combined

__all__ = ["MPIComm", "default_timeout"]

T = TypeVar("T")

_POLLS_BEFORE_YIELD = 64


def default_timeout() -> float:
    """Seconds that a wait may take: 60, or what ``TRANSHIP_TIMEOUT`` says."""
    text = os.environ.get("TRANSHIP_TIMEOUT", "")
    try:
        seconds = float(text) if text else 60.0
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise HaloValueError(f"TRANSHIP_TIMEOUT={text}: needs a number of seconds above 0")
    return seconds


class MPIComm(Comm[T]):
    """Ranks of mpi4py.

    Parameters
    ----------
    comm
        A communicator of mpi4py; ``MPI.COMM_WORLD`` where nothing is said.
    timeout
        Seconds that a halo update may wait for a message: 60, or what ``TRANSHIP_TIMEOUT`` says.

    Raises
    ------
    NotImplementedError
        Where mpi4py is not installed.
    """

    def __init__(self, comm: Any = None, timeout: Optional[float] = None) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise HaloUnsupported(f"MPIComm needs mpi4py, which cannot be imported: {error}") from None
        self._mpi = MPI
        self._comm = MPI.COMM_WORLD if comm is None else comm
        self.timeout = default_timeout() if timeout is None else timeout

    def Get_rank(self) -> int:
        """This rank."""
        return int(self._comm.Get_rank())

    def Get_size(self) -> int:
        """How many ranks there are."""
        return int(self._comm.Get_size())

    def bcast(self, value: Optional[T], root: int = 0) -> Optional[T]:
        """Collective: the object of ``root``."""
        out: Optional[T] = self._comm.bcast(value, root=root)
        return out

    def barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self._comm.barrier()

    def Barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self._comm.Barrier()

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the n-th part of the buffer of ``root`` goes to rank n."""
        self._comm.Scatter(_wire(sendbuf), _wire(recvbuf), root=root, **kwargs)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the buffer of rank n becomes the n-th part of that of ``root``."""
        self._comm.Gather(_wire(sendbuf), _wire(recvbuf), root=root, **kwargs)

    def allgather(self, sendobj: T) -> list[T]:
        """Collective: an object of each rank, in their order."""
        out: list[T] = self._comm.allgather(sendobj)
        return out

    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> None:
        """Sends a buffer; it may be used again when the call returns."""
        self._comm.Send(_wire(sendbuf), dest, tag=tag, **kwargs)

    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Sends an object, and returns the one that is received."""
        return self._comm.sendrecv(sendbuf, dest, **kwargs)

    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Any:
        """Sends a buffer, which may be used again when the request has been waited for."""
        return self._comm.Isend(_wire(sendbuf), dest, tag=tag, **kwargs)

    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> None:
        """Receives into a buffer."""
        self._comm.Recv(_wire(recvbuf), source, tag=tag, **kwargs)

    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Any:
        """Receives into a buffer, which is filled when the request has been waited for."""
        return self._comm.Irecv(_wire(recvbuf), source, tag=tag, **kwargs)

    def wait_any(self, requests: Sequence[Any], what: str = "a message") -> int:
        """The index of a request that is done, as soon as one is.

        Raises
        ------
        TimeoutError
            After ``timeout`` seconds; the message has ``what``.
        """
        end = time.monotonic() + self.timeout
        polls = 0
        pending = list(requests)
        while True:
            index, done = self._mpi.Request.Testany(pending)
            if done:
                return int(index)
            polls += 1
            if polls > _POLLS_BEFORE_YIELD:
                os.sched_yield()
                if time.monotonic() > end:
                    raise TranshipTimeoutError(f"{what}: none in {self.timeout} s (rank {self.Get_rank()})")

    def Split(self, color: Any, key: Any) -> MPIComm[T]:
        """Collective: a communicator of the ranks with the same color, in the order of their keys."""
        return MPIComm(self._comm.Split(color, key), self.timeout)

    def _op(self, op: ReductionOperator) -> Any:
        return self._mpi.OP_NULL if op is ReductionOperator.OP_NULL else getattr(self._mpi, op.name)

    def allreduce(self, sendobj: T, op: ReductionOperator = ReductionOperator.NO_OP) -> T:
        """Collective: the objects of all ranks, combined."""
        if isinstance(sendobj, np.ndarray):  # of which mpi4py's MAX and MIN know no order
            combination: T = combined(self._comm.allgather(sendobj), op)
            return combination
        out: T = self._comm.allreduce(sendobj, self._op(op))
        return out

    def Allreduce(self, sendobj: Any, recvobj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in a buffer."""
        self._comm.Allreduce(sendobj, recvobj, self._op(op))
        return recvobj

    def Allreduce_inplace(self, obj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in these buffers."""
        self._comm.Allreduce(self._mpi.IN_PLACE, obj, self._op(op))
        return obj


def __getattr__(name: str) -> Any:
    if name == "MPI":
        try:
            from mpi4py import MPI
        except ImportError:
            return None
        return MPI
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_mpi4py(comm: Any) -> bool:
    """Whether an object is a communicator of mpi4py, without importing it."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(comm, mpi.Comm)


def _wire(array: Any) -> Any:
    """The buffer as MPI takes it: half precision has no type there and goes as bytes."""
    if isinstance(array, np.ndarray) and (array.dtype.kind == "V" or array.dtype == np.float16):
        return array.reshape(-1).view(np.uint8)
    return array
