"""The exceptions of this face: each derives from tranship's and from the type that NDSL raises in its place."""

from __future__ import annotations

from .._errors import InvalidUse, Mismatch, Unsupported

__all__ = [
    "HaloBoundsError",
    "HaloBufferError",
    "HaloMismatch",
    "HaloStateError",
    "HaloTypeError",
    "HaloUnsupported",
    "HaloValueError",
]


class HaloStateError(InvalidUse, RuntimeError):
    """A call comes out of order, or its lists do not fit what the object was made for."""


class HaloValueError(InvalidUse):
    """An argument has a value that no halo update can have."""


class HaloBoundsError(InvalidUse, IndexError):
    """A slice of a boundary leaves the array."""


class HaloTypeError(InvalidUse, TypeError):
    """An argument is not of a type that can be used here."""


class HaloBufferError(InvalidUse, BufferError):
    """A buffer of a message has gaps."""


class HaloMismatch(Mismatch, RuntimeError):
    """A quantity, or the number of quantities, is not what the specification says."""


class HaloUnsupported(Unsupported):
    """This combination cannot be exchanged."""
