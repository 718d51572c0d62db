"""Groups of thread blocks."""

from typing import Dict, List

from tranship.mscclpp._language.buffers import ThreadBlockGroup

__all__ = ["Dict", "List", "ThreadBlockGroup"]
