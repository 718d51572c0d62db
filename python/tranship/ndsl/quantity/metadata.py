"""The metadata of a quantity: all but its values."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..utils import module_of_type

__all__ = ["QuantityHaloSpec", "QuantityMetadata"]


@dataclasses.dataclass
class QuantityMetadata:
    """The metadata of a quantity: all but its values.

    Parameters
    ----------
    origin, extent
        First point and number of points of the compute domain, in each dimension.
    n_halo
        How many halo points the quantity was allocated with, where that was said.
    dims
        A name for each dimension; see :mod:`tranship.ndsl.constants`.
    units
        Of the values, as text.
    data_type
        The class of the array.
    dtype
        Of its elements.
    backend
        The name of a back-end of NDSL, or None.
    """

    origin: tuple[int, ...]
    extent: tuple[int, ...]
    n_halo: int
    dims: tuple[str, ...]
    units: str
    data_type: type
    dtype: Any
    backend: Any = None

    @property
    def dim_lengths(self) -> dict[str, int]:
        """The extent of each dimension, by name."""
        return dict(zip(self.dims, self.extent))

    @property
    def np(self) -> Any:
        """The NumPy-like module of the array."""
        return np if issubclass(self.data_type, np.ndarray) else module_of_type(self.data_type)

    def duplicate_metadata(self, metadata_copy: QuantityMetadata) -> None:
        """Copies every field into another object."""
        for field in dataclasses.fields(self):
            setattr(metadata_copy, field.name, getattr(self, field.name))


@dataclasses.dataclass
class QuantityHaloSpec:
    """The memory layout of a quantity, and how many halo points are exchanged.

    Parameters
    ----------
    n_points
        Halo points to exchange, which may be fewer than are allocated.
    strides
        Bytes from one element to the next in each dimension; any, also negative.
    itemsize
        Bytes of an element.
    shape
        Of the whole array, halo included.
    origin, extent
        First point and number of points of the compute domain.
    dims
        A name for each dimension.
    numpy_module
        The NumPy-like module of the array.
    dtype
        Of its elements.
    """

    n_points: int
    strides: tuple[int, ...]
    itemsize: int
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    extent: tuple[int, ...]
    dims: tuple[str, ...]
    numpy_module: Any
    dtype: Any
