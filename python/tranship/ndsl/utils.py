"""Small functions over arrays of NumPy-like modules."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from . import constants
from ._errors import HaloBufferError
from .optional_imports import has_device

__all__ = [
    "accessor_of",
    "data_of",
    "device_synchronize",
    "ensure_contiguous",
    "is_c_contiguous",
    "is_contiguous",
    "list_by_dims",
    "safe_assign_array",
]

T = TypeVar("T")


def list_by_dims(dims: Sequence[str], horizontal_list: Sequence[T], non_horizontal_value: T) -> tuple[T, ...]:
    """For each dimension: the first entry of ``horizontal_list`` for the kind j, the second for the kind i, or
    ``non_horizontal_value``."""
    return tuple(
        horizontal_list[0]
        if dim in constants.J_DIMS
        else horizontal_list[1]
        if dim in constants.I_DIMS
        else non_horizontal_value
        for dim in dims
    )


def is_contiguous(array: Any) -> bool:
    """Returns True when the array is in C order or in Fortran order without gaps."""
    return bool(array.flags["C_CONTIGUOUS"] or array.flags["F_CONTIGUOUS"])


def is_c_contiguous(array: Any) -> bool:
    """Returns True when the array is in C order without gaps."""
    return bool(array.flags["C_CONTIGUOUS"])


def ensure_contiguous(maybe_array: Any) -> None:
    """Raises ``BufferError`` for an array with gaps; anything else is let through."""
    if isinstance(maybe_array, np.ndarray) and not is_contiguous(maybe_array):
        raise HaloBufferError(
            f"dlpack: buffer is not contiguous: strides {maybe_array.strides} of shape {maybe_array.shape}; see "
            "numpy.ascontiguousarray"
        )


def safe_assign_array(to_array: Any, from_array: Any) -> None:
    """``to_array[:] = from_array``, also where one is in the memory of a GPU and the other one on the host."""
    if isinstance(to_array, np.ndarray) and hasattr(from_array, "get") and not isinstance(from_array, np.ndarray):
        to_array[...] = from_array.get()
    elif isinstance(from_array, np.ndarray) and hasattr(to_array, "set") and not isinstance(to_array, np.ndarray):
        to_array[...] = module_of_type(type(to_array)).asarray(from_array)  # set() takes arrays without gaps alone
    else:
        to_array[...] = from_array


_accessors: dict[type, Callable[[Any], Any]] = {}


def accessor_of(kind: type) -> Callable[[Any], Any]:
    """Returns a function that gets the array of a quantity of some class. It reads NDSL's and this package's past their
    property ``data``: NDSL's warns on every use."""
    accessor = _accessors.get(kind)
    if accessor is None:
        is_quantity = any(
            base.__name__ == "Quantity" and "ndsl" in base.__module__.split(".")[:2] for base in kind.__mro__
        )
        accessor = _accessors[kind] = operator.attrgetter("_data" if is_quantity else "data")
    return accessor


def data_of(quantity: Any) -> Any:
    """The array of a quantity; see :func:`accessor_of`."""
    return accessor_of(type(quantity))(quantity)


def device_synchronize() -> None:
    """Waits for all work of CuPy's current device, if the program uses CuPy and there is a device."""
    cupy: Any = sys.modules.get("cupy")
    if cupy is None:
        return
    if _with_device.get("cupy") is not cupy:
        if not has_device(cupy):
            return
        _with_device["cupy"] = cupy
    cupy.cuda.runtime.deviceSynchronize()


_with_device: dict[str, Any] = {}  # modules that have been found to have a device


def module_of_type(array_type: type) -> Any:
    """The NumPy-like module that a class of arrays belongs to."""
    return np if issubclass(array_type, np.ndarray) else sys.modules[array_type.__module__.partition(".")[0]]
