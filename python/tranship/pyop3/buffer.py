"""pyop3's module of buffers."""

from . import (
    ArrayBuffer,
    BadOrderingException,
    DataTransferInFlightException,
    IncompatibleStarForestException,
    NullBuffer,
    State,
)

__all__ = [
    "ArrayBuffer",
    "BadOrderingException",
    "DataTransferInFlightException",
    "IncompatibleStarForestException",
    "NullBuffer",
    "State",
]
