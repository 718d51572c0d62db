"""Rotation of blocks of cells between tiles whose axes point in different directions.

Both functions return views of what they are given, where nothing is negated. A block B of ny rows and nx columns,
turned clockwise by ``n`` quarter turns, becomes P::

    n    P[a, b]                   vector (X, Y: the turned components)
    0    B[a, b]                   ( X,  Y)
    1    B[b, nx-1-a]              ( Y, -X)
    2    B[ny-1-a, nx-1-b]         (-X, -Y)
    3    B[ny-1-b, a]              (-Y,  X)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._amounts import amount
from ..._elements import has_sign
from .. import constants
from .._errors import HaloMismatch, HaloTypeError

__all__ = ["rotate_scalar_data", "rotate_vector_data"]


def horizontal_axes(dims: Sequence[str]) -> tuple[int, int]:
    """The axes of the kinds j and i; -1 for one that is missing."""
    y = next((axis for axis, dim in enumerate(dims) if dim in constants.J_DIMS), -1)
    x = next((axis for axis, dim in enumerate(dims) if dim in constants.I_DIMS), -1)
    return y, x


def rotate_scalar_data(data: Any, dims: Sequence[str], numpy: Any, n_clockwise_rotations: int) -> Any:
    """Turns a block of cells clockwise, by a number of quarter turns that may be negative.

    Where only one horizontal dimension exists, it is reversed if the turn reverses it, and stays in its place.

    Parameters
    ----------
    data
        An array of any dimensions.
    dims
        A name for each dimension of ``data``.
    numpy
        The NumPy-like module of ``data``; kept for callers of NDSL's function.

    Returns
    -------
    array
        A view of ``data``.
    """
    turns = n_clockwise_rotations % 4
    y, x = horizontal_axes(dims)
    flips = [slice(None)] * len(data.shape)
    if x >= 0 and turns in (1, 2):
        flips[x] = slice(None, None, -1)
    if y >= 0 and turns in (2, 3):
        flips[y] = slice(None, None, -1)
    turned = data[tuple(flips)]
    return turned.swapaxes(x, y) if turns % 2 and x >= 0 and y >= 0 else turned


def require_sign(dtype: Any) -> None:
    """Components of a vector are negated where they turn."""
    if not has_sign(dtype):
        raise HaloTypeError(f"components of a vector that are {np.dtype(dtype)} have no sign to change")


def rotate_vector_data(
    x_data: Any, y_data: Any, n_clockwise_rotations: int, dims: Sequence[str], numpy: Any
) -> tuple[Any, Any]:
    """Turns the two components of a vector, as blocks and as components.

    Parameters
    ----------
    x_data, y_data
        The components along i and along j, of the same order of dimensions.
    dims
        The names of the dimensions of ``x_data``.
    numpy
        The NumPy-like module of the data.

    Returns
    -------
    tuple of two arrays
        The components along i and along j after the turn. One that is negated is new memory, the other one a view.

    Raises
    ------
    RuntimeError
        For components of different numbers of dimensions.
    TypeError
        For components that turn and have no sign.
    """
    if len(x_data.shape) != len(y_data.shape):
        raise HaloMismatch(f"the components have {len(x_data.shape)} and {amount(len(y_data.shape), 'dimension')}")
    turns = n_clockwise_rotations % 4
    if turns:
        require_sign(x_data.dtype)
    x = rotate_scalar_data(x_data, dims, numpy, turns)
    y = rotate_scalar_data(y_data, dims, numpy, turns)
    if turns == 1:
        return y, numpy.negative(x)
    if turns == 2:
        return numpy.negative(x), numpy.negative(y)
    if turns == 3:
        return numpy.negative(y), x
    return x, y
