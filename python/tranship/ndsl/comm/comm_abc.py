"""The interface of communicators that this package uses: the methods of mpi4py's communicators, in so far as they are
used."""

from __future__ import annotations

import abc
import enum
from typing import Any, Generic, Optional, TypeVar

__all__ = ["Comm", "ReductionOperator", "Request"]

T = TypeVar("T")


@enum.unique
class ReductionOperator(enum.Enum):
    """The operations of reductions, as MPI names them."""

    OP_NULL = enum.auto()
    MAX = enum.auto()
    MIN = enum.auto()
    SUM = enum.auto()
    PROD = enum.auto()
    LAND = enum.auto()
    BAND = enum.auto()
    LOR = enum.auto()
    BOR = enum.auto()
    LXOR = enum.auto()
    BXOR = enum.auto()
    MAXLOC = enum.auto()
    MINLOC = enum.auto()
    REPLACE = enum.auto()
    NO_OP = enum.auto()


class Request(abc.ABC):
    """A message on its way."""

    @abc.abstractmethod
    def wait(self) -> Any:
        """Returns when the message is sent or received."""


class Comm(abc.ABC, Generic[T]):
    """A group of ranks. Buffers are arrays in C order; names with a small letter take any object that can be
    pickled."""

    @abc.abstractmethod
    def Get_rank(self) -> int:
        """This rank."""

    @abc.abstractmethod
    def Get_size(self) -> int:
        """How many ranks there are."""

    @abc.abstractmethod
    def bcast(self, value: Optional[T], root: int = 0) -> Optional[T]:
        """Collective: the object of ``root``."""

    @abc.abstractmethod
    def barrier(self) -> None:
        """Collective: returns when all ranks have called it."""

    @abc.abstractmethod
    def Barrier(self) -> None:
        """Collective: returns when all ranks have called it."""

    @abc.abstractmethod
    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> Any:
        """Collective: the n-th part of the buffer of ``root`` goes to rank n."""

    @abc.abstractmethod
    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> Any:
        """Collective: the buffer of rank n becomes the n-th part of that of ``root``."""

    @abc.abstractmethod
    def allgather(self, sendobj: T) -> list[T]:
        """Collective: an object of each rank, in their order."""

    @abc.abstractmethod
    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Any:
        """Sends a buffer; it may be used again when the call returns."""

    @abc.abstractmethod
    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Sends an object, and returns the one that is received."""

    @abc.abstractmethod
    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Request:
        """Sends a buffer, which may be used again when the request has been waited for."""

    @abc.abstractmethod
    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Any:
        """Receives into a buffer."""

    @abc.abstractmethod
    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Request:
        """Receives into a buffer, which is filled when the request has been waited for."""

    @abc.abstractmethod
    def Split(self, color: Any, key: Any) -> Comm[T]:
        """Collective: a communicator of the ranks with the same color, in the order of their keys."""

    @abc.abstractmethod
    def allreduce(self, sendobj: T, op: ReductionOperator = ReductionOperator.NO_OP) -> T:
        """Collective: the objects of all ranks, combined."""

    @abc.abstractmethod
    def Allreduce(self, sendobj: T, recvobj: T, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in a buffer."""

    @abc.abstractmethod
    def Allreduce_inplace(self, obj: T, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in these buffers."""
