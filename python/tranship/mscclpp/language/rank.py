"""Ranks, buffers and semaphores."""

from tranship.mscclpp._language.buffers import BaseBuffer, Buffer, ThreadBlockGroup
from tranship.mscclpp._language.operations import Rank, Semaphore
from tranship.mscclpp._language.programs import get_program
from tranship.mscclpp._language.types import BufferType, ChannelType, Chunk, Instruction, ReduceOperationType, SyncType

__all__ = [
    "BaseBuffer",
    "Buffer",
    "BufferType",
    "ChannelType",
    "Chunk",
    "Instruction",
    "Rank",
    "ReduceOperationType",
    "Semaphore",
    "SyncType",
    "ThreadBlockGroup",
    "get_program",
]
