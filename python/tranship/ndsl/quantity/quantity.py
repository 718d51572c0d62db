"""A field on this rank: an array with named dimensions, a compute domain and a halo around it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

import numpy as np

from ..._amounts import amount
from .._errors import HaloMismatch, HaloTypeError, HaloValueError
from ..utils import data_of, module_of_type
from .bounds import BoundedArrayView
from .metadata import QuantityHaloSpec, QuantityMetadata

__all__ = ["Quantity"]


class Quantity:
    """An array with named dimensions, a compute domain and a halo around it.

    Parameters
    ----------
    data
        An array of NumPy or of a module like it, which is used as it is: nothing is copied.
    dims
        A name for each dimension; see :mod:`tranship.ndsl.constants`.
    units
        Of the values, as text.
    backend
        The name of a back-end of NDSL; kept, and not used.
    origin
        The first point of the compute domain. Zeros where nothing is said.
    extent
        Its number of points. All from the origin on where nothing is said.
    allow_mismatch_float_precision
        Accepted for programs that pass it: any dtype is welcome.
    number_of_halo_points
        How many halo points the array was allocated with, at most of which :meth:`halo_spec` gives.

    Raises
    ------
    ValueError
        When their lengths differ, and for a compute domain that leaves the array.

    Examples
    --------
    >>> import numpy as np
    >>> from tranship.ndsl import Quantity
    >>> q = Quantity(np.zeros((8, 8)), ["j", "i"], "m", origin=(1, 1), extent=(6, 6))
    >>> q.field.shape
    (6, 6)
    """

    def __init__(
        self,
        data: Any,
        dims: Sequence[str],
        units: str,
        *,
        backend: Any = None,
        origin: Optional[Sequence[int]] = None,
        extent: Optional[Sequence[int]] = None,
        allow_mismatch_float_precision: bool = False,
        number_of_halo_points: int = 0,
    ) -> None:
        if isinstance(data, (int, float, list, tuple)) or not hasattr(data, "shape"):
            raise HaloTypeError(f"a Quantity holds an array of NumPy or of a module like it, not a {type(data).__name__}")
        first = tuple(0 for _ in dims) if origin is None else _integers("origin", origin)
        count = (
            tuple(length - o for length, o in zip(data.shape, first)) if extent is None else _integers("extent", extent)
        )
        for what, entries in (("dims", dims), ("origin", first), ("extent", count)):
            if len(entries) != len(data.shape):
                raise HaloValueError(
                    f"{what} has {amount(len(entries), 'entry', 'entries')}, and the array {amount(len(data.shape), 'dimension')}"
                )
        for dim, o, e, length in zip(dims, first, count, data.shape):
            if o < 0 or e < 0 or o + e > length:
                raise HaloValueError(f"dimension {dim}: points {o} to {o + e} of an array that has 0 to {length}")
        self._data = data
        self._metadata = QuantityMetadata(
            origin=first,
            extent=count,
            n_halo=number_of_halo_points,
            dims=tuple(dims),
            units=units,
            data_type=type(data),
            dtype=data.dtype,
            backend=backend,
        )

    def halo_spec(self, n_halo: int) -> QuantityHaloSpec:
        """Returns the specification of an exchange of ``n_halo`` halo points.

        Raises
        ------
        ValueError
            For more points than ``number_of_halo_points``.
        """
        if n_halo > self._metadata.n_halo:
            raise HaloValueError(
                f"Halo specification requires exchange of more halo points ({n_halo}) than available on this Quantity "
                f"({self._metadata.n_halo})."
            )
        return halo_spec_of(self, n_halo)

    def __repr__(self) -> str:
        m = self._metadata
        return f"Quantity(data=\n{self._data},\n    dims={m.dims},\n    units={m.units},\n    origin={m.origin},\n    extent={m.extent}\n)"

    def sel(self, **kwargs: Union[slice, int]) -> Any:
        """A part of the compute domain, by names of dimensions."""
        return self.view[tuple(kwargs.get(dim, slice(None)) for dim in self.dims)]

    @property
    def metadata(self) -> QuantityMetadata:
        """The metadata: all but the values."""
        return self._metadata

    @property
    def units(self) -> str:
        """The units of the values."""
        return self._metadata.units

    @property
    def backend(self) -> Any:
        """The name of a back-end of NDSL, or None."""
        return self._metadata.backend

    @property
    def attrs(self) -> dict[str, Any]:
        """The units under the key ``"units"``."""
        return {"units": self.units}

    @property
    def dims(self) -> tuple[str, ...]:
        """A name for each dimension."""
        return self._metadata.dims

    @property
    def origin(self) -> tuple[int, ...]:
        """The first point of the compute domain."""
        return self._metadata.origin

    @property
    def extent(self) -> tuple[int, ...]:
        """Number of points of the compute domain."""
        return self._metadata.extent

    @property
    def view(self) -> BoundedArrayView:
        """The array with indices that count from the compute domain."""
        return BoundedArrayView(self._data, self.dims, self.origin, self.extent)

    @property
    def field(self) -> Any:
        """The compute domain, in the memory itself."""
        return self.view[:]

    @property
    def data(self) -> Any:
        """The whole array, halo included."""
        return self._data

    @data.setter
    def data(self, input_data: Any) -> None:
        if tuple(input_data.shape) != tuple(self._data.shape) or input_data.dtype != self._data.dtype:
            raise HaloMismatch(
                f"an array of {input_data.dtype}{list(input_data.shape)} for a quantity of "
                f"{self._data.dtype}{list(self._data.shape)}"
            )
        self._data = input_data

    def swap_buffer(self, input_data: Any) -> None:
        """Another array of the same shape and dtype takes the place of this one."""
        self.data = input_data

    @property
    def np(self) -> Any:
        """The NumPy-like module of the array."""
        return module_of_type(type(self._data))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return tuple(self._data.shape)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._data.dtype

    def __getitem__(self, subscript: Any) -> Any:
        return self._data[subscript]

    def __setitem__(self, subscript: Any, value: Any) -> None:
        self._data[subscript] = value

    @property
    def __array_interface__(self) -> Any:
        return self._data.__array_interface__

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._data.__cuda_array_interface__

    def __deepcopy__(self, memo: dict[int, Any]) -> Quantity:
        out = copy.copy(self)
        out._data = copy.deepcopy(self._data, memo)
        out._metadata = copy.copy(self._metadata)
        return out

    def transpose(
        self, target_dims: Sequence[Union[str, Iterable[str]]], allow_mismatch_float_precision: bool = False
    ) -> Quantity:
        """Returns the same memory with its dimensions in another order. An entry may be a list of names, of which one fits.

        Raises
        ------
        ValueError
            When the names are not those of this quantity.
        """
        order = []
        for target in target_dims:
            names = (target,) if isinstance(target, str) else tuple(target)
            found = [n for n, dim in enumerate(self.dims) if dim in names and n not in order]
            if len(found) != 1:
                raise HaloValueError(f"dimension {target}: this quantity has {', '.join(self.dims)}")
            order.append(found[0])
        if len(order) != len(self.dims):
            raise HaloValueError(
                f"{amount(len(order), 'dimension')} for a quantity of {len(self.dims)}: {', '.join(self.dims)}"
            )
        return Quantity(
            self._data.transpose(order),
            [self.dims[n] for n in order],
            self.units,
            backend=self.backend,
            origin=[self.origin[n] for n in order],
            extent=[self.extent[n] for n in order],
            number_of_halo_points=self._metadata.n_halo,
        )


def _integers(what: str, entries: Sequence[int]) -> tuple[int, ...]:
    try:
        out = tuple(int(entry) for entry in entries)
        is_whole = all(one == entry for one, entry in zip(out, entries))
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise HaloTypeError(f"{what} is a sequence of integers, not {entries!r}")
    return out


def halo_spec_of(quantity: Any, n_points: int) -> QuantityHaloSpec:
    """The specification of an exchange of ``n_points`` halo points of any quantity, NDSL's included."""
    try:
        data = data_of(quantity)
        layout = quantity.origin, quantity.extent, quantity.dims, data.strides
    except AttributeError as error:
        raise HaloTypeError(f"a quantity is needed, not a {type(quantity).__name__}: {error}") from None
    return QuantityHaloSpec(
        n_points=n_points,
        strides=tuple(layout[3]),
        itemsize=data.itemsize,
        shape=tuple(data.shape),
        origin=tuple(int(o) for o in layout[0]),
        extent=tuple(int(e) for e in layout[1]),
        dims=tuple(layout[2]),
        numpy_module=module_of_type(type(data)),
        dtype=data.dtype,
    )
