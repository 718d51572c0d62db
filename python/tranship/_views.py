"""Memory of the program's as NumPy views, and what of it can be moved."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._errors import InvalidUse, Overflow, Unsupported


def as_view(data: Any) -> NDArray[Any]:
    """A NumPy view of whatever shows its memory, which it keeps; never a copy."""
    if isinstance(data, np.ndarray):
        refuse_mask(data)
        return data
    if hasattr(data, "__array_interface__"):
        return np.asarray(data)
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    try:
        return np.asarray(memoryview(data))
    except TypeError:
        raise InvalidUse(
            f"a {type(data).__name__} shows no memory: needs NumPy's array interface, the buffer protocol or DLPack"
        ) from None


def refuse_mask(data: Any) -> None:
    """Raises ``InvalidUse`` for a masked array, of whose memory the mask is no part."""
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidUse("a masked array: its mask does not lie in its memory; use its .data, or what .filled() returns")


def extents_of(what: str, given: Union[SupportsIndex, Sequence[SupportsIndex]]) -> tuple[int, ...]:
    """One number, or a sequence with one for each dimension."""
    listed: Any = given if np.ndim(given) else [given]  # type: ignore[arg-type]
    try:
        numbers = tuple(map(operator.index, listed))
    except TypeError:
        raise InvalidUse(f"{what} must be an integer, or a sequence with one for each dimension: got {given!r}") from None
    if len(numbers) > _core.dims_max:
        raise Unsupported(f"an array has at most {_core.dims_max} dimensions, got {len(numbers)}")
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise Overflow(f"{what} of {number} does not fit in 63 bits")
    return numbers


def require_distinct(view: NDArray[Any]) -> None:
    """That no two elements share memory, as far as strides that nest can say so."""
    if view.size == 0:
        return
    span = 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(view.strides, view.shape) if n > 1):
        if stride <= span:
            raise InvalidUse(f"strides of {view.strides} bytes with extents {view.shape}: elements share memory")
        span += stride * (extent - 1)
