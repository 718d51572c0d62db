"""Channels."""

from collections import defaultdict
from typing import Dict

from tranship.mscclpp._language.buffers import ThreadBlockGroup
from tranship.mscclpp._language.operations import MemoryChannel, PortChannel, SwitchChannel
from tranship.mscclpp._language.parts import RemoteBuffer
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
from tranship.mscclpp.language.internal import operations as _operations
from tranship.mscclpp.language.internal.operations import *  # noqa: F403

__all__ = [
    "BufferType",
    "ChannelType",
    "Chunk",
    "Dict",
    "Instruction",
    "MemoryChannel",
    "PortChannel",
    "RankGroup",
    "ReduceOperationType",
    "RemoteBuffer",
    "SwitchChannel",
    "SyncType",
    "ThreadBlockGroup",
    "defaultdict",
    "get_program",
]
__all__ += _operations.__all__
