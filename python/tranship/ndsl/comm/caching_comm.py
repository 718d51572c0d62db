"""Ranks whose messages are recorded, and ranks that replay a recording: one rank of a model runs again by itself.

A recording holds what one rank has received, in the order of its calls. The rank that replays it must make the same
calls. A recording is a pickle: load none from a source that you do not trust.
"""

from __future__ import annotations

import bisect
import copy
import dataclasses
import pickle
from collections.abc import Sequence
from typing import Any, BinaryIO, Optional, TypeVar

from .._errors import HaloMismatch, HaloStateError, HaloTypeError, HaloUnsupported
from ..utils import safe_assign_array
from .comm_abc import Comm, ReductionOperator, Request

__all__ = [
    "CachingCommData",
    "CachingCommReader",
    "CachingCommWriter",
    "CachingRequestReader",
    "CachingRequestWriter",
    "NullRequest",
]

T = TypeVar("T")


class NullRequest(Request):
    """A message that is sent to no rank."""

    def wait(self) -> None:
        """Returns at once."""


class CachingRequestWriter(Request):
    """A message on its way, which is recorded when it has arrived.

    Parameters
    ----------
    req
        The message.
    buffer
        What it is received into.
    buffer_list
        Where a copy of the buffer goes.
    order, number
        The numbers of the calls that received what is in ``buffer_list``, ascending, and that of this one: a message
        takes the place of its ``Irecv``, also when a later one was waited for first. The end of the list where nothing
        is said.
    """

    def __init__(
        self,
        req: Any,
        buffer: Any,
        buffer_list: list[Any],
        order: Optional[list[int]] = None,
        number: int = 0,
    ) -> None:
        self._req = req
        self._buffer = buffer
        self._buffer_list = buffer_list
        self._order = order
        self._number = number

    def wait(self) -> None:
        """Returns when the message has arrived. Again, it does nothing."""
        if self._req is None:
            return
        self._req.wait()
        self._req = None
        if self._order is None:
            self._buffer_list.append(copy.deepcopy(self._buffer))
            return
        place = bisect.bisect(self._order, self._number)
        self._order.insert(place, self._number)
        self._buffer_list.insert(place, copy.deepcopy(self._buffer))


class CachingRequestReader(Request):
    """A message of a recording.

    Parameters
    ----------
    recvbuf
        Where it goes.
    data
        The message.
    """

    def __init__(self, recvbuf: Any, data: Any) -> None:
        self._recvbuf = recvbuf
        self._data = data

    def wait(self) -> None:
        """Copies the message."""
        _replay(self._recvbuf, self._data)


def _replay(recvbuf: Any, recorded: Any) -> None:
    if tuple(recvbuf.shape) != tuple(recorded.shape) or recvbuf.dtype != recorded.dtype:
        raise HaloMismatch(
            f"a message of {recorded.dtype}{list(recorded.shape)} was recorded for a buffer of "
            f"{recvbuf.dtype}{list(recvbuf.shape)}: the recording was made with other calls"
        )
    safe_assign_array(recvbuf, recorded)


@dataclasses.dataclass
class CachingCommData:
    """The messages that one rank has received.

    Parameters
    ----------
    rank, size
        Which rank, and of how many.
    bcast_objects
        What was broadcast.
    received_buffers
        What was received by ``Recv``, ``Irecv``, ``Scatter`` and, on the root, ``Gather``.
    generic_obj_buffers
        What reductions and ``allgather`` returned.
    split_data
        What was received on communicators that were split off.
    """

    rank: int
    size: int
    bcast_objects: list[Any] = dataclasses.field(default_factory=list)
    received_buffers: list[Any] = dataclasses.field(default_factory=list)
    generic_obj_buffers: list[Any] = dataclasses.field(default_factory=list)
    split_data: list[CachingCommData] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self._taken: dict[str, int] = {}

    def _take(self, what: str, entries: Sequence[Any]) -> Any:
        place = self._taken.get(what, 0)
        if place >= len(entries):
            raise HaloStateError(f"the recording of rank {self.rank} holds {len(entries)} {what}, and all were replayed")
        self._taken[what] = place + 1
        return entries[place]

    def get_bcast(self) -> Any:
        """The next object that was broadcast. ``RuntimeError`` after the last one."""
        return self._take("broadcasts", self.bcast_objects)

    def get_buffer(self) -> Any:
        """The next buffer that was received. ``RuntimeError`` after the last one."""
        return self._take("received buffers", self.received_buffers)

    def get_generic_obj(self) -> Any:
        """The next result of a reduction. ``RuntimeError`` after the last one."""
        return self._take("results of reductions", self.generic_obj_buffers)

    def get_split(self) -> CachingCommData:
        """The recording of the next communicator that was split off. ``RuntimeError`` after the last one."""
        out: CachingCommData = self._take("communicators", self.split_data)
        return out

    def dump(self, file: BinaryIO) -> None:
        """Writes the recording."""
        pickle.dump(self, file)

    @classmethod
    def load(cls, file: BinaryIO) -> CachingCommData:
        """Reads a recording.

        Raises
        ------
        TypeError
            For a pickle of anything else.
        """
        data = pickle.load(file)
        if not isinstance(data, CachingCommData):
            raise HaloTypeError(f"a recording of a rank is a CachingCommData, and the file holds a {type(data).__name__}")
        data._taken = {}
        return data


class CachingCommReader(Comm[T]):
    """A rank that replays a recording: what it sends is dropped, and what it receives was recorded.

    Parameters
    ----------
    data
        The recording; see :meth:`load`.

    Raises
    ------
    RuntimeError
        By calls that were not recorded, and for buffers of another shape or dtype than recorded.
    """

    def __init__(self, data: CachingCommData) -> None:
        self._data = data

    @classmethod
    def load(cls, file: BinaryIO) -> CachingCommReader[T]:
        """A rank that replays what :meth:`CachingCommWriter.dump` has written."""
        return cls(CachingCommData.load(file))

    def Get_rank(self) -> int:
        """The rank that was recorded."""
        return self._data.rank

    def Get_size(self) -> int:
        """How many ranks there were."""
        return self._data.size

    def bcast(self, value: Optional[T], root: int = 0) -> Optional[T]:
        """The object that was broadcast."""
        out: Optional[T] = self._data.get_bcast()
        return out

    def barrier(self) -> None:
        """Returns at once."""

    def Barrier(self) -> None:
        """Returns at once."""

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Copies what was received into ``recvbuf``."""
        _replay(recvbuf, self._data.get_buffer())

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """On the root, copies what was received into ``recvbuf``."""
        if recvbuf is not None:
            _replay(recvbuf, self._data.get_buffer())

    def allgather(self, sendobj: T) -> list[T]:
        """Returns what was gathered."""
        out: list[T] = self._data.get_generic_obj()
        return out

    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> None:
        """Sends nothing."""

    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Request:
        """Sends nothing."""
        return NullRequest()

    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> None:
        """Copies what was received into ``recvbuf``."""
        _replay(recvbuf, self._data.get_buffer())

    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Request:
        """Copies what was received into ``recvbuf``, when it is waited for."""
        return CachingRequestReader(recvbuf, self._data.get_buffer())

    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Not recorded."""
        raise HaloUnsupported("CachingCommReader.sendrecv: it is not recorded")

    def Split(self, color: Any, key: Any) -> CachingCommReader[T]:
        """A rank that replays what was received on the communicator that was split off."""
        return CachingCommReader(self._data.get_split())

    def allreduce(self, sendobj: T, op: ReductionOperator = ReductionOperator.NO_OP) -> T:
        """The result that was recorded."""
        out: T = self._data.get_generic_obj()
        return out

    def Allreduce(self, sendobj: Any, recvobj: Any, op: ReductionOperator) -> Any:
        """Copies the result that was recorded into ``recvobj``."""
        _replay(recvobj, self._data.get_generic_obj())
        return recvobj

    def Allreduce_inplace(self, obj: Any, op: ReductionOperator) -> Any:
        """Copies the result that was recorded into ``obj``."""
        return self.Allreduce(obj, obj, op)


class CachingCommWriter(Comm[T]):
    """A rank that records what it receives.

    Parameters
    ----------
    comm
        The rank: a :class:`~tranship.ndsl.comm.Comm` or a communicator of mpi4py, with messages. (Ranks of a
        :class:`tranship.World` have none: they exchange arrays.)
    """

    def __init__(self, comm: Any) -> None:
        from .communicator import as_comm  # which is made of this module's classes, too

        self._comm = as_comm(comm)
        if hasattr(self._comm, "direct_exchange"):
            raise HaloTypeError("ranks of a World exchange arrays, and no messages that could be recorded")
        self._data = CachingCommData(rank=self._comm.Get_rank(), size=self._comm.Get_size())
        self._calls = 0
        self._order: list[int] = []

    def _received(self, buffer: Any) -> None:
        CachingRequestWriter(NullRequest(), buffer, self._data.received_buffers, self._order, self._number()).wait()

    def _number(self) -> int:
        self._calls += 1
        return self._calls

    def dump(self, file: BinaryIO) -> None:
        """Writes the recording; :meth:`CachingCommReader.load` reads it."""
        self._data.dump(file)

    def Get_rank(self) -> int:
        """This rank."""
        return int(self._comm.Get_rank())

    def Get_size(self) -> int:
        """How many ranks there are."""
        return int(self._comm.Get_size())

    def bcast(self, value: Optional[T], root: int = 0) -> Optional[T]:
        """Collective: the object of ``root``."""
        result: Optional[T] = self._comm.bcast(value, root=root)
        self._data.bcast_objects.append(copy.deepcopy(result))
        return result

    def barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self._comm.barrier()

    def Barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self._comm.Barrier()

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the n-th part of the buffer of ``root`` goes to rank n."""
        self._comm.Scatter(sendbuf, recvbuf, root=root, **kwargs)
        self._received(recvbuf)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the buffer of rank n becomes the n-th part of that of ``root``."""
        self._comm.Gather(sendbuf, recvbuf, root=root, **kwargs)
        if recvbuf is not None:
            self._received(recvbuf)

    def allgather(self, sendobj: T) -> list[T]:
        """Collective: an object of each rank, in their order."""
        result: list[T] = self._comm.allgather(sendobj)
        self._data.generic_obj_buffers.append(copy.deepcopy(result))
        return result

    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> None:
        """Sends a buffer; it may be used again when the call returns."""
        self._comm.Send(sendbuf, dest, tag=tag, **kwargs)

    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Any:
        """Sends a buffer, which may be used again when the request has been waited for."""
        return self._comm.Isend(sendbuf, dest, tag=tag, **kwargs)

    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> None:
        """Receives into a buffer."""
        self._comm.Recv(recvbuf, source, tag=tag, **kwargs)
        self._received(recvbuf)

    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Request:
        """Receives into a buffer, which is filled when the request has been waited for."""
        request = self._comm.Irecv(recvbuf, source, tag=tag, **kwargs)
        return CachingRequestWriter(request, recvbuf, self._data.received_buffers, self._order, self._number())

    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Not recorded."""
        raise HaloUnsupported("CachingCommWriter.sendrecv: it is not recorded")

    def Split(self, color: Any, key: Any) -> CachingCommWriter[T]:
        """Collective: a communicator of the ranks with the same color, whose messages are recorded with these."""
        out: CachingCommWriter[T] = CachingCommWriter(self._comm.Split(color, key))
        self._data.split_data.append(out._data)
        return out

    def allreduce(self, sendobj: T, op: ReductionOperator = ReductionOperator.NO_OP) -> T:
        """Collective: the objects of all ranks, combined."""
        result: T = self._comm.allreduce(sendobj, op)
        self._data.generic_obj_buffers.append(copy.deepcopy(result))
        return result

    def Allreduce(self, sendobj: Any, recvobj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in a buffer."""
        out = self._comm.Allreduce(sendobj, recvobj, op)
        self._data.generic_obj_buffers.append(copy.deepcopy(recvobj))
        return out

    def Allreduce_inplace(self, obj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in these buffers."""
        out = self._comm.Allreduce_inplace(obj, op)
        self._data.generic_obj_buffers.append(copy.deepcopy(obj))
        return out
