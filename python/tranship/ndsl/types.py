"""Protocols of what callers pass in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

__all__ = ["Allocator", "AsyncRequest", "QuantityLike"]


class Allocator(Protocol):
    """A function of a NumPy-like module that makes an array, such as ``numpy.empty``."""

    def __call__(self, shape: Any, dtype: Any) -> Any: ...


class AsyncRequest(Protocol):
    """What ``Isend`` and ``Irecv`` return."""

    def wait(self) -> Any: ...


@runtime_checkable
class QuantityLike(Protocol):
    """What the halo layer needs of a quantity. :class:`tranship.ndsl.Quantity` and NDSL's own have it."""

    @property
    def data(self) -> Any: ...
    @property
    def dims(self) -> Sequence[str]: ...
    @property
    def origin(self) -> Sequence[int]: ...
    @property
    def extent(self) -> Sequence[int]: ...
