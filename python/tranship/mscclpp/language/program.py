"""Programs."""

from tranship.mscclpp._language.buffers import BaseBuffer, ThreadBlockGroup
from tranship.mscclpp._language.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    Collective,
    Reduce,
    ReduceScatter,
    SendRecv,
    TestCollective,
)
from tranship.mscclpp._language.operations import MemoryChannel, PortChannel, Semaphore, SwitchChannel
from tranship.mscclpp._language.programs import AlgoSpec, CollectiveProgram, get_program, set_program
from tranship.mscclpp._language.types import (
    BufferType,
    ChannelType,
    Chunk,
    RankGroup,
    ReduceOperationType,
    ReplicationPolicy,
    SyncType,
)

__all__ = [
    "AlgoSpec",
    "AllGather",
    "AllReduce",
    "AllToAll",
    "BaseBuffer",
    "Broadcast",
    "BufferType",
    "ChannelType",
    "Chunk",
    "Collective",
    "CollectiveProgram",
    "MemoryChannel",
    "PortChannel",
    "RankGroup",
    "Reduce",
    "ReduceOperationType",
    "ReduceScatter",
    "ReplicationPolicy",
    "Semaphore",
    "SendRecv",
    "SwitchChannel",
    "SyncType",
    "TestCollective",
    "ThreadBlockGroup",
    "get_program",
    "set_program",
]
