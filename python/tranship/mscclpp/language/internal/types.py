"""Words and values."""

from tranship.mscclpp._language.types import (
    BufferType,
    ChannelType,
    Chunk,
    DataAccessType,
    Instruction,
    RankGroup,
    ReduceOperationType,
    ReplicationPolicy,
    SyncType,
)

__all__ = [
    "BufferType",
    "ChannelType",
    "Chunk",
    "DataAccessType",
    "Instruction",
    "RankGroup",
    "ReduceOperationType",
    "ReplicationPolicy",
    "SyncType",
]
