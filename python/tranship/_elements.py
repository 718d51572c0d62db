"""The one table of element types: how dtypes of NumPy's cross to the library, for every call that takes one.

Numbers and bfloat16 are elements of the library. A struct, a date or a duration crosses as one more dimension, the inside
of an element, in unsigned numbers that are aligned as the element is.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _core
from ._errors import Error, InvalidUse

__all__ = ["Elements", "element_type", "elements_named", "elements_of", "has_sign", "moved_elements"]


class Elements(NamedTuple):
    """Elements of one dtype."""

    dtype: np.dtype[Any]
    name: str
    """The library's name of the elements, or of the units of what is moved as bytes: ``"f64"``."""
    kind: str
    """NumPy's kind and size of the same: ``"f8"``, and ``"V2"`` for bfloat16."""
    inside: tuple[int, ...] = ()
    """The units in an element that is moved as bytes; empty for numbers."""

    def spec(self, distribution: _core.Distribution) -> _core.ArraySpec:
        if self.inside:
            return _core.record_spec(distribution, self.dtype.itemsize, self.dtype.alignment)
        return _core.ArraySpec(self.name, distribution)

    @property
    def record(self) -> str:
        """How elements that are moved as bytes are made up, on which the ranks of an exchange agree; nothing of numbers."""
        return str(self.dtype) if self.inside else ""

    @property
    def view_dtype(self) -> Optional[np.dtype[Any]]:
        """The dtype that NumPy must be told for memory that the library shows; None where NumPy knows it."""
        return self.dtype if self.inside or self.name == "bf16" else None

    def shown(self, array: NDArray[Any]) -> NDArray[Any]:
        """The library's memory as elements of the dtype."""
        if self.view_dtype is None:
            return array
        shown = array.view(self.dtype)
        if not self.inside:
            return shown
        # A rank without a part has 0 of everything.
        return shown[..., 0] if shown.size else shown.reshape(shown.shape[:-1])

    def strides(self, view: NDArray[Any]) -> tuple[int, ...]:
        """Strides of a view of such elements, in what the library takes for elements."""
        width = view.itemsize
        if any(s % width for s in view.strides):
            raise InvalidUse(f"strides of {view.strides} bytes are not multiples of the element size {width}")
        if not self.inside:
            return tuple(s // width for s in view.strides)
        return (*(s // width * self.inside[0] for s in view.strides), 1)

    def described(self, view: NDArray[Any]) -> tuple[int, str, tuple[int, ...], tuple[int, ...]]:
        """Address, kind, extents and strides of a view."""
        return view.__array_interface__["data"][0], self.kind, view.shape + self.inside, self.strides(view)

    def require_numbers(self, what: str) -> None:
        if self.inside:
            raise InvalidUse(f"{what} cannot take elements that are moved as bytes, as {self.dtype} are")


def elements_of(dtype: DTypeLike) -> Elements:
    """The row of the table. Raises ``InvalidUse`` where there is none."""
    of = np.dtype(dtype)
    if of.name == "bfloat16":
        return Elements(of, "bf16", "V2")
    if of.names is not None and not of.hasobject and of.itemsize > 0 and of.subdtype is None:
        return _as_bytes(of)
    if not of.isnative:
        raise InvalidUse(f"dtype {of!r} is not in this machine's byte order; see ndarray.astype and byteswap")
    if of.kind in "biufc":
        kind = f"{of.kind}{of.itemsize}"
        try:
            return Elements(of, _core.element_type_name(kind), kind)
        except Error:
            pass
    if of.kind in "mM":
        return _as_bytes(of)
    raise InvalidUse(
        f"dtype {of!r} is none of NumPy's number types, bool, bfloat16, datetime64, timedelta64 or a struct without objects"
    )


def _as_bytes(of: np.dtype[Any]) -> Elements:
    width = min(of.alignment, 8)
    return Elements(of, f"u{8 * width}", f"u{width}", (of.itemsize // width,))


def moved_elements(dtype: DTypeLike) -> Elements:
    """The row for those who move elements and do not look at them: of all but objects, as structs are moved."""
    of = np.dtype(dtype)
    try:
        return elements_of(of)
    except InvalidUse:
        if of.hasobject or of.itemsize == 0 or of.subdtype is not None:
            raise
        return _as_bytes(of)


def has_sign(dtype: DTypeLike) -> bool:
    """Returns True when NumPy negates elements; unsigned integers wrap."""
    of = np.dtype(dtype)
    return of.kind in "iufcm" or of.name == "bfloat16"


def elements_named(name: str, kind: str) -> Elements:
    """The row of one of the library's types. Without ml_dtypes, bfloat16 is shown as two bytes."""
    if name != "bf16":
        return Elements(np.dtype(kind), name, kind)
    try:
        import ml_dtypes
    except ImportError:
        return Elements(np.dtype("V2"), name, kind)
    return Elements(np.dtype(ml_dtypes.bfloat16), name, kind)


def element_type(dtype: DTypeLike) -> str:
    """The name of a number's dtype in layout texts: ``"f64"`` for ``"f8"``."""
    elements = elements_of(dtype)
    elements.require_numbers("a layout")
    return elements.name
