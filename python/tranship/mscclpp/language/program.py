"""Programs."""

import json
from collections import defaultdict
from typing import Dict

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
from tranship.mscclpp._language.parts import Gpu, RemoteBuffer
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
from tranship.mscclpp.language.internal import operations as _operations
from tranship.mscclpp.language.internal.operations import *  # noqa: F403

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
    "Dict",
    "Gpu",
    "MemoryChannel",
    "PortChannel",
    "RankGroup",
    "Reduce",
    "ReduceOperationType",
    "ReduceScatter",
    "RemoteBuffer",
    "ReplicationPolicy",
    "Semaphore",
    "SendRecv",
    "SwitchChannel",
    "SyncType",
    "TestCollective",
    "ThreadBlockGroup",
    "defaultdict",
    "get_program",
    "json",
    "set_program",
]
__all__ += _operations.__all__
