"""Ranks, buffers and semaphores."""

from collections import defaultdict
from typing import Dict

from tranship.mscclpp._language.buffers import BaseBuffer, Buffer, ThreadBlockGroup
from tranship.mscclpp._language.operations import Rank, Semaphore
from tranship.mscclpp._language.programs import get_program
from tranship.mscclpp._language.types import BufferType, ChannelType, Chunk, Instruction, ReduceOperationType, SyncType
from tranship.mscclpp.language.internal import operations as _operations
from tranship.mscclpp.language.internal.operations import *  # noqa: F403

__all__ = [
    "BaseBuffer",
    "Buffer",
    "BufferType",
    "ChannelType",
    "Chunk",
    "Dict",
    "Instruction",
    "Rank",
    "ReduceOperationType",
    "Semaphore",
    "SyncType",
    "ThreadBlockGroup",
    "defaultdict",
    "get_program",
]
__all__ += _operations.__all__
