"""Words, values and the current program, and names for what MSCCL++ has beside them."""

from tranship.mscclpp.language.internal import globals, operations, types

__all__ = ["globals", "operations", "types"]
