"""The collectives that programs promise."""

from tranship.mscclpp._language.buffers import BaseBuffer
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
from tranship.mscclpp._language.types import BufferType

__all__ = [
    "AllGather",
    "AllReduce",
    "AllToAll",
    "BaseBuffer",
    "Broadcast",
    "BufferType",
    "Collective",
    "Reduce",
    "ReduceScatter",
    "SendRecv",
    "TestCollective",
]
