"""The values that MSCCL++ makes programs of inside, and names for its operations.

Operations are written by ranks and channels, and the library has them from then on. The classes of operations, of
ranks and of thread blocks are here so that scripts may import them; none can be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tranship.mscclpp._language.types import BufferType, ChannelType, DataAccessType

__all__ = [
    "BarrierOperation",
    "BaseOperation",
    "BuffersAccess",
    "CopyOperation",
    "DataAccess",
    "FlushOperation",
    "GetOperation",
    "Gpu",
    "GroupLoadReduce",
    "GroupLoadReduceStore",
    "GroupStore",
    "LocalChunk",
    "PipelineOperation",
    "PutOperation",
    "ReduceOperation",
    "RemoteBuffer",
    "RemoteChunk",
    "SemaphoreAcquireOperation",
    "SemaphoreReleaseOperation",
    "SignalOperation",
    "SyncOperation",
    "ThreadBlock",
    "ThreadBlockGroupInfo",
    "WaitOperation",
    "add_data_sync",
    "check_data_sync_op",
    "fuse_operations",
]


@dataclass
class LocalChunk:
    """Chunks of the rank itself, in an operation."""

    type: BufferType
    index: int
    size: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as JSON has it."""
        return {"type": self.type.value, "index": self.index, "size": self.size}


@dataclass
class RemoteChunk(LocalChunk):
    """Chunks of a remote buffer, in an operation."""

    buffer_id: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as JSON has it."""
        return {"buffer_id": self.buffer_id, "index": self.index, "size": self.size}


@dataclass
class ThreadBlockGroupInfo:
    """The position of a thread block in its group, and how many blocks that has."""

    tb_id: int
    tbg_size: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as JSON has it."""
        return {"tb_id": self.tb_id, "tbg_size": self.tbg_size}


class RemoteBuffer:
    """A buffer of a peer, and the kinds of channels that reach it.

    Parameters
    ----------
    local_rank, remote_rank : int
    type : BufferType
    channel_access : ChannelType
    set_id : bool
        Has no meaning.
    """

    def __init__(
        self,
        local_rank: int,
        remote_rank: int,
        type: BufferType,
        channel_access: ChannelType,
        set_id: bool = False,
    ) -> None:
        self.local_rank = local_rank
        self.remote_rank = remote_rank
        self.type = type
        self.channel_access = {channel_access}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteBuffer) and (self.remote_rank, self.type) == (other.remote_rank, other.type)

    def __hash__(self) -> int:
        return hash((self.remote_rank, self.type))

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as JSON has it."""
        access = sorted(channel.value for channel in self.channel_access)
        return {"rank": self.remote_rank, "type": self.type.value, "access_channel_types": access}


@dataclass
class DataAccess:
    """Chunks `start` to `end`, both included, that an operation reads or writes."""

    operation_id: Any
    start: int
    end: int
    buffer_type: BufferType
    data_access_type: DataAccessType

    def __lt__(self, other: DataAccess) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataAccess) and (self.start, self.end) == (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def overlaps(self, other: DataAccess) -> bool:
        """Returns True when the two have chunks in common."""
        return self.start <= other.end and other.start <= self.end

    def check_conflict(self, other: DataAccess) -> bool:
        """Returns True when another operation accesses some of the chunks, and one of the two writes."""
        both_read = self.data_access_type is DataAccessType.read and other.data_access_type is DataAccessType.read
        return self.overlaps(other) and self.operation_id != other.operation_id and not both_read


class _InTheLibrary:
    def __init__(self, *args: object, **named: object) -> None:
        _refuse(type(self).__name__)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: operations are written by Rank, Semaphore and the channels, and lowered by "
        "CollectiveProgram.lower(); the library has them in between, not Python"
    )


class BaseOperation(_InTheLibrary):
    """An operation of any kind."""


class SyncOperation(BaseOperation):
    """A meeting of the threads of a block."""


class CopyOperation(BaseOperation):
    """See :meth:`Rank.copy`."""


class SemaphoreAcquireOperation(BaseOperation):
    """See :meth:`Semaphore.acquire`."""


class SemaphoreReleaseOperation(BaseOperation):
    """See :meth:`Semaphore.release`."""


class SignalOperation(BaseOperation):
    """See :meth:`MemoryChannel.signal`."""


class WaitOperation(BaseOperation):
    """See :meth:`MemoryChannel.wait`."""


class BarrierOperation(BaseOperation):
    """See :meth:`Rank.barrier`."""


class FlushOperation(BaseOperation):
    """See :meth:`PortChannel.flush`."""


class GetOperation(BaseOperation):
    """See :meth:`MemoryChannel.get`."""


class PutOperation(BaseOperation):
    """See :meth:`MemoryChannel.put`."""


class ReduceOperation(BaseOperation):
    """See :meth:`Rank.reduce` and :meth:`MemoryChannel.reduce`."""


class GroupLoadReduce(BaseOperation):
    """See :meth:`SwitchChannel.reduce`."""


class GroupStore(BaseOperation):
    """See :meth:`SwitchChannel.broadcast`."""


class GroupLoadReduceStore(BaseOperation):
    """The two of a switch channel, joined."""


class PipelineOperation(BaseOperation):
    """See :class:`LoopIterationContext`."""


class Gpu(_InTheLibrary):
    """The operations of one rank."""


class ThreadBlock(_InTheLibrary):
    """The operations of one thread block."""


class BuffersAccess(_InTheLibrary):
    """See the pass `dependencies` of :meth:`CollectiveProgram.lower`."""


def check_data_sync_op(operation: object) -> NoReturn:
    """See the pass `data_sync` of :meth:`CollectiveProgram.lower`."""
    _refuse("check_data_sync_op")


def add_data_sync(operations: object) -> NoReturn:
    """See the pass `data_sync` of :meth:`CollectiveProgram.lower`."""
    _refuse("add_data_sync")


def fuse_operations(operations: object) -> NoReturn:
    """See the pass `fusion` of :meth:`CollectiveProgram.lower`."""
    _refuse("fuse_operations")
