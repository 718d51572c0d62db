"""The words of operations, and names for their classes. What they do is in the library."""

import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import List

from tranship.mscclpp._language.parts import (
    BarrierOperation,
    BaseOperation,
    CopyOperation,
    DataAccess,
    FlushOperation,
    GetOperation,
    GroupLoadReduce,
    GroupLoadReduceStore,
    GroupStore,
    LocalChunk,
    PipelineOperation,
    PutOperation,
    ReduceOperation,
    RemoteChunk,
    SemaphoreAcquireOperation,
    SemaphoreReleaseOperation,
    SignalOperation,
    SyncOperation,
    ThreadBlockGroupInfo,
    WaitOperation,
    add_data_sync,
    check_data_sync_op,
)
from tranship.mscclpp._language.types import (
    BufferType,
    ChannelType,
    Chunk,
    DataAccessType,
    Instruction,
    ReduceOperationType,
    SyncType,
)

# Those of the standard library are what the module of MSCCL++ hands on to scripts.
__all__ = [
    "ABC",
    "BarrierOperation",
    "BaseOperation",
    "BufferType",
    "ChannelType",
    "Chunk",
    "CopyOperation",
    "DataAccess",
    "DataAccessType",
    "FlushOperation",
    "GetOperation",
    "GroupLoadReduce",
    "GroupLoadReduceStore",
    "GroupStore",
    "Instruction",
    "List",
    "LocalChunk",
    "PipelineOperation",
    "PutOperation",
    "ReduceOperation",
    "ReduceOperationType",
    "RemoteChunk",
    "SemaphoreAcquireOperation",
    "SemaphoreReleaseOperation",
    "SignalOperation",
    "SyncOperation",
    "SyncType",
    "ThreadBlockGroupInfo",
    "WaitOperation",
    "abstractmethod",
    "add_data_sync",
    "check_data_sync_op",
    "dataclass",
    "field",
    "uuid",
]
