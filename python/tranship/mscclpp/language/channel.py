"""Channels."""

from tranship.mscclpp._language.buffers import ThreadBlockGroup
from tranship.mscclpp._language.operations import MemoryChannel, PortChannel, SwitchChannel
from tranship.mscclpp._language.programs import get_program
from tranship.mscclpp._language.types import (
    BufferType,
    ChannelType,
    Chunk,
    Instruction,
    RankGroup,
    ReduceOperationType,
    SyncType,
)

__all__ = [
    "BufferType",
    "ChannelType",
    "Chunk",
    "Instruction",
    "MemoryChannel",
    "PortChannel",
    "RankGroup",
    "ReduceOperationType",
    "SwitchChannel",
    "SyncType",
    "ThreadBlockGroup",
    "get_program",
]
