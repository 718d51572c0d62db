"""Which cells of an array lie at a boundary, on either side of it.

A dimension whose compute domain begins at ``o`` and has ``e`` points, on interfaces (``s`` = 1) or centres (``s`` = 0),
is cut so by a boundary that touches it, for ``n`` points::

            interior (sent)          exterior (received)
    low     [o+s, o+s+n)             [o-n, o)
    high    [o+e-s-n, o+e-s)         [o+e, o+e+n)

A dimension that the boundary does not touch gives [o, o+e). The points that neighbours share are therefore neither sent
nor received.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Optional, Union

from ..._amounts import amount
from .. import constants
from .._errors import HaloBoundsError, HaloValueError

_Index = Union[slice, int]

_LOW, _HIGH = True, False
_SIDES: dict[int, tuple[Optional[bool], Optional[bool]]] = {
    constants.WEST: (None, _LOW),
    constants.EAST: (None, _HIGH),
    constants.NORTH: (_HIGH, None),
    constants.SOUTH: (_LOW, None),
    constants.NORTHWEST: (_HIGH, _LOW),
    constants.NORTHEAST: (_HIGH, _HIGH),
    constants.SOUTHWEST: (_LOW, _LOW),
    constants.SOUTHEAST: (_LOW, _HIGH),
    constants.INTERIOR: (None, None),
}

# The steps (along j, along i) to the neighbour.
STEPS = {
    constants.WEST: (0, -1),
    constants.EAST: (0, 1),
    constants.NORTH: (1, 0),
    constants.SOUTH: (-1, 0),
    constants.NORTHWEST: (1, -1),
    constants.NORTHEAST: (1, 1),
    constants.SOUTHWEST: (-1, -1),
    constants.SOUTHEAST: (-1, 1),
}

_NAMES = {
    constants.WEST: "west",
    constants.EAST: "east",
    constants.NORTH: "north",
    constants.SOUTH: "south",
    constants.NORTHWEST: "northwest",
    constants.NORTHEAST: "northeast",
    constants.SOUTHWEST: "southwest",
    constants.SOUTHEAST: "southeast",
    constants.INTERIOR: "interior",
}


def boundary_name(boundary_type: int) -> str:
    """``"north"`` for :data:`~tranship.ndsl.constants.NORTH`."""
    return _NAMES.get(boundary_type, f"boundary {boundary_type}")


def boundary_at_start_of_dim(boundary: int, dim: str) -> Optional[bool]:
    """Returns True for a boundary at the low end of a dimension, False at its high end, None where it touches neither."""
    if boundary not in _SIDES:
        raise HaloValueError(f"there is no boundary {boundary}: boundaries are {constants.WEST} to {constants.INTERIOR}")
    along_y, along_x = _SIDES[boundary]
    if dim in constants.J_DIMS:
        return along_y
    return along_x if dim in constants.I_DIMS else None


@functools.lru_cache(maxsize=4096)
def cached_boundary_slice(
    dims: tuple[str, ...],
    origin: tuple[int, ...],
    extent: tuple[int, ...],
    shape: tuple[int, ...],
    boundary_type: int,
    n_halo: int,
    interior: bool,
) -> tuple[slice, ...]:
    """:func:`get_boundary_slice`, remembered."""
    return get_boundary_slice(dims, origin, extent, shape, boundary_type, n_halo, interior)


def get_boundary_slice(
    dims: Sequence[str],
    origin: Sequence[int],
    extent: Sequence[int],
    shape: Sequence[int],
    boundary_type: int,
    n_halo: int,
    interior: bool,
) -> tuple[slice, ...]:
    """The cells at a boundary: those of the compute domain nearest to it, or those of the halo beyond it.

    Raises
    ------
    IndexError
        When a slice leaves the array. The message names the dimension.
    """
    slices = []
    for dim, o, e, length in zip(dims, origin, extent, shape):
        at_start = boundary_at_start_of_dim(boundary_type, dim)
        shared = 1 if dim in constants.INTERFACE_DIMS else 0
        if at_start is None:
            start, stop = o, o + e
        elif at_start:
            start = o + shared if interior else o - n_halo
            stop = start + n_halo
        else:
            start = o + e - shared - n_halo if interior else o + e
            stop = start + n_halo
        if start < 0 or stop > length:
            raise HaloBoundsError(
                f"Boundary slice extends past end of domain on dimension {dim}. Needs points {start} to {stop} for "
                f"{amount(n_halo, 'point')} at the {boundary_name(boundary_type)}; the array has 0 to {length}"
            )
        slices.append(slice(start, stop))
    return tuple(slices)


def shift_boundary_slice_tuple(
    dims: Sequence[str],
    origin: Sequence[int],
    extent: Sequence[int],
    boundary_type: int,
    slice_tuple: tuple[_Index, ...],
) -> tuple[_Index, ...]:
    """Slices of an array for slices that count from a boundary: 0 is its first point inside at a low end, and its first
    point outside at a high end. Of the interior, a slice's stop counts from the high end."""
    return tuple(
        _shift_boundary_slice(dim, o, e, boundary_type, cut)
        for dim, o, e, cut in zip(dims, origin, extent, slice_tuple)
    )


def _shift_boundary_slice(dim: str, origin: int, extent: int, boundary_type: int, slice_object: _Index) -> _Index:
    at_start = boundary_at_start_of_dim(boundary_type, dim)
    shift = origin + extent if at_start is False else origin
    if not isinstance(slice_object, slice):
        return slice_object + shift
    stop_shift = origin + extent if boundary_type == constants.INTERIOR else shift
    return slice(
        origin if slice_object.start is None else slice_object.start + shift,
        origin + extent if slice_object.stop is None else slice_object.stop + stop_shift,
        slice_object.step,
    )
