"""Words and values."""

from dataclasses import dataclass
from enum import Enum
from typing import List, Set

from tranship.mscclpp._language.parts import DataAccess, RemoteBuffer
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
    "DataAccess",
    "DataAccessType",
    "Enum",
    "Instruction",
    "List",
    "RankGroup",
    "ReduceOperationType",
    "RemoteBuffer",
    "ReplicationPolicy",
    "Set",
    "SyncType",
    "dataclass",
]
