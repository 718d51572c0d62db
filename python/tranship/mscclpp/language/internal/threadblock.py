"""The name of what one thread block does. The library has it: see :mod:`internal.operations`."""

from tranship.mscclpp._language.parts import BuffersAccess, RemoteBuffer, ThreadBlock, fuse_operations
from tranship.mscclpp.language.internal import operations as _operations
from tranship.mscclpp.language.internal.operations import *  # noqa: F403

__all__ = ["BuffersAccess", "RemoteBuffer", "ThreadBlock", "fuse_operations"]
__all__ += _operations.__all__
