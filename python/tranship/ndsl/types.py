"""Protocols of what callers pass in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

__all__ = ["Allocator", "AsyncRequest", "Number", "QuantityLike"]

Number = Union[int, float, np.int32, np.int64, np.float32, np.float64]
"""A number, of Python or of NumPy."""


class Allocator(Protocol):
    """A function of a NumPy-like module that makes an array, such as ``numpy.empty``."""

    def __call__(self, shape: Any, dtype: Any) -> Any: ...


class AsyncRequest(Protocol):
    """The request that ``Isend`` and ``Irecv`` return."""

    def wait(self) -> Any: ...


@runtime_checkable
class QuantityLike(Protocol):
    """The members of a quantity that the halo layer uses. :class:`tranship.ndsl.Quantity` and NDSL's own have them."""

    @property
    def data(self) -> Any: ...
    @property
    def dims(self) -> Sequence[str]: ...
    @property
    def origin(self) -> Sequence[int]: ...
    @property
    def extent(self) -> Sequence[int]: ...
