"""The words of operations. What they do is in the library."""

from tranship.mscclpp._language.types import (
    BufferType,
    ChannelType,
    Chunk,
    DataAccessType,
    Instruction,
    ReduceOperationType,
    SyncType,
)

__all__ = ["BufferType", "ChannelType", "Chunk", "DataAccessType", "Instruction", "ReduceOperationType", "SyncType"]
