"""The name of what one rank does. The library has it: see :mod:`internal.operations`."""

from tranship.mscclpp._language.parts import BaseOperation, Gpu, RemoteBuffer, ThreadBlock
from tranship.mscclpp._language.types import BufferType, ChannelType, RankGroup

__all__ = ["BaseOperation", "BufferType", "ChannelType", "Gpu", "RankGroup", "RemoteBuffer", "ThreadBlock"]
