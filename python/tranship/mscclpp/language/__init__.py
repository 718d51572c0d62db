"""The channel language, under the module paths of MSCCL++, and all of its names that a script needs in one place."""

from tranship.mscclpp._language.programs import AlgoSpec
from tranship.mscclpp._language.types import ReplicationPolicy
from tranship.mscclpp.language import collectives, internal, utils
from tranship.mscclpp.language.channel import (
    BufferType,
    Chunk,
    MemoryChannel,
    PortChannel,
    ReduceOperationType,
    SwitchChannel,
    SyncType,
)
from tranship.mscclpp.language.collectives import AllGather, AllReduce, AllToAll, ReduceScatter, SendRecv
from tranship.mscclpp.language.general import JSON
from tranship.mscclpp.language.loop import LoopIterationContext
from tranship.mscclpp.language.program import CollectiveProgram
from tranship.mscclpp.language.rank import Buffer, Rank, Semaphore
from tranship.mscclpp.language.thread_block_group import ThreadBlockGroup

__all__ = [
    "JSON",
    "AlgoSpec",
    "AllGather",
    "AllReduce",
    "AllToAll",
    "Buffer",
    "BufferType",
    "Chunk",
    "CollectiveProgram",
    "LoopIterationContext",
    "MemoryChannel",
    "PortChannel",
    "Rank",
    "ReduceOperationType",
    "ReduceScatter",
    "ReplicationPolicy",
    "Semaphore",
    "SendRecv",
    "SwitchChannel",
    "SyncType",
    "ThreadBlockGroup",
    "collectives",
    "internal",
    "utils",
]
