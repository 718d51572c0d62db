"""Views of an array that count from its compute domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from ..._amounts import amount
from .. import constants
from .._errors import HaloBoundsError
from ..comm._boundary_utils import shift_boundary_slice_tuple

__all__ = ["BoundaryArrayView", "BoundedArrayView"]


def _filled(index: Any, length: int) -> tuple[Any, ...]:
    """An index for each dimension: an ellipsis, and dimensions left out at the end, are whole."""
    entries = index if isinstance(index, tuple) else (index,)
    if any(entry is Ellipsis for entry in entries):
        at = next(n for n, entry in enumerate(entries) if entry is Ellipsis)
        missing = length - len(entries) + 1
        entries = entries[:at] + (slice(None),) * missing + entries[at + 1 :]
    if len(entries) > length:
        raise HaloBoundsError(f"the index has {amount(len(entries), 'dimension')}, the array has {length}")
    return entries + (slice(None),) * (length - len(entries))


class BoundaryArrayView:
    """An array whose indices count from a boundary: negative ones lie to the low side of it."""

    def __init__(
        self, data: Any, boundary_type: int, dims: Sequence[str], origin: Sequence[int], extent: Sequence[int]
    ) -> None:
        self._data, self._boundary_type = data, boundary_type
        self._dims, self._origin, self._extent = tuple(dims), tuple(origin), tuple(extent)

    def _index(self, index: Any) -> tuple[Union[slice, int], ...]:
        shifted = shift_boundary_slice_tuple(
            self._dims, self._origin, self._extent, self._boundary_type, _filled(index, len(self._dims))
        )
        for dim, one, length in zip(self._dims, shifted, self._data.shape):
            first = one.start if isinstance(one, slice) else one
            last = one.stop - 1 if isinstance(one, slice) else one
            if first < 0 or last >= length:
                raise HaloBoundsError(f"points {first} to {last} of dimension {dim}: the array has 0 to {length - 1}")
        return shifted

    def __getitem__(self, index: Any) -> Any:
        return self._data[self._index(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[self._index(index)] = value

    def sel(self, **kwargs: Union[slice, int]) -> Any:
        """Selects by names of dimensions."""
        return self[tuple(kwargs.get(dim, slice(None)) for dim in self._dims)]


class BoundedArrayView:
    """The compute domain of an array: index 0 is its first point, -1 its last one, and slices stay inside of it unless
    they name points beyond."""

    def __init__(self, array: Any, dims: Sequence[str], origin: Sequence[int], extent: Sequence[int]) -> None:
        self._data = array
        self._dims, self._origin, self._extent = tuple(dims), tuple(origin), tuple(extent)

    @property
    def origin(self) -> tuple[int, ...]:
        """The first point of the compute domain."""
        return self._origin

    @property
    def extent(self) -> tuple[int, ...]:
        """Its number of points."""
        return self._extent

    def _index(self, index: Any) -> tuple[Any, ...]:
        return tuple(
            _shifted(one, o, e) for one, o, e in zip(_filled(index, len(self._origin)), self._origin, self._extent)
        )

    def __getitem__(self, index: Any) -> Any:
        return self._data[self._index(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[self._index(index)] = value

    def _at(self, boundary_type: int) -> BoundaryArrayView:
        return BoundaryArrayView(self._data, boundary_type, self._dims, self._origin, self._extent)

    @property
    def northwest(self) -> BoundaryArrayView:
        """Counted from the northwest corner."""
        return self._at(constants.NORTHWEST)

    @property
    def northeast(self) -> BoundaryArrayView:
        """Counted from the northeast corner."""
        return self._at(constants.NORTHEAST)

    @property
    def southwest(self) -> BoundaryArrayView:
        """Counted from the southwest corner."""
        return self._at(constants.SOUTHWEST)

    @property
    def southeast(self) -> BoundaryArrayView:
        """Counted from the southeast corner."""
        return self._at(constants.SOUTHEAST)

    @property
    def interior(self) -> BoundaryArrayView:
        """Indices and starts count from the origin, stops from the high end: ``[-1:1]`` is the compute domain with one
        halo point on each side."""
        return self._at(constants.INTERIOR)


def _shifted(one: Any, origin: int, extent: int) -> Any:
    if not isinstance(one, slice):
        return _shifted_bound(one, origin, extent) if isinstance(one, int) else one + origin
    return slice(
        origin if one.start is None else _shifted_bound(one.start, origin, extent),
        origin + extent if one.stop is None else _shifted_bound(one.stop, origin, extent),
        one.step,
    )


def _shifted_bound(bound: Optional[int], origin: int, extent: int) -> Optional[int]:
    if bound is None:
        return None
    return origin + extent + bound if bound < 0 else origin + bound
