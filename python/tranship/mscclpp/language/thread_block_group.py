"""Groups of thread blocks."""

from tranship.mscclpp._language.buffers import ThreadBlockGroup

__all__ = ["ThreadBlockGroup"]
