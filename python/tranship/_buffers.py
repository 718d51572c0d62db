"""Buffers: one array on many devices, copied only when a stale copy is read."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import Any, Optional, SupportsIndex, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._amounts import amount
from . import _core
from ._core import human_bytes
from ._elements import Elements, elements_of
from ._errors import InvalidUse, of_type
from ._pictures import ROWS_MAX, folded, grouped, line, table
from ._tracing import note_devices
from ._views import extents_of, refuse_mask, require_distinct

__all__ = ["Buffer", "Devices", "Lease", "offload"]

Cells = tuple[slice, ...]
Region = Union[None, slice, Cells, list[slice], list[Cells]]

_device: contextvars.ContextVar[str] = contextvars.ContextVar("tranship_device", default="host")


@contextlib.contextmanager
def offload(device: str) -> Iterator[None]:
    """Within the block, leases that name no device are on this one. Moves nothing, on entry or on exit.

    Raises
    ------
    InvalidUse
        For what names no device. Whether a buffer has such a device, its leases say.
    """
    token = _device.set(_core.device_name(device))
    try:
        yield
    finally:
        _device.reset(token)


def current_device() -> str:
    return _device.get()


class Devices:
    """The host and the devices of a process.

    Parameters
    ----------
    fake
        How many devices to add that are memory of the host: for tests, and for laptops without a GPU. They are called
        ``"fake:0"``, ``"fake:1"``, ...
    capacity_bytes
        Of each.
    """

    __slots__ = ("_core", "__weakref__")

    def __init__(self, fake: int = 0, capacity_bytes: Optional[int] = None) -> None:
        self._core = _core.Devices(fake) if capacity_bytes is None else _core.Devices(fake, capacity_bytes)
        if fake > 0:  # on the host alone nothing is copied between memories
            note_devices(self)

    @property
    def names(self) -> list[str]:
        """``"host"``, ``"fake:0"``, ..."""
        return self._core.names()

    @property
    def copies(self) -> list[dict[str, Any]]:
        """Every copy between memories that was made, and why: ``source``, ``target``, ``bytes``, ``cause``, ``text``."""
        return self._core.copies()

    @property
    def copied_bytes(self) -> int:
        """The bytes of all copies between memories until now."""
        return self._core.copied()[1]

    def __repr__(self) -> str:
        return f"<devices {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        sums: dict[tuple[str, str, str], list[int]] = {}
        copies = self.copies
        for copy in copies:
            entry = sums.setdefault((copy["source"], copy["target"], copy["cause"]), [0, 0])
            entry[0] += 1
            entry[1] += copy["bytes"]
        rows = [
            [f"{source} → {target}", cause, grouped(count), human_bytes(size)]
            for (source, target, cause), (count, size) in sorted(sums.items(), key=lambda item: -item[1][1])
        ]
        out = line(f"devices {', '.join(self.names)}: {human_bytes(self.copied_bytes)} copied between them")
        if rows:
            out += table(["copies", "cause", "count", "bytes"], rows)
            out += folded("the last copies", "\n".join(copy["text"] for copy in copies[-ROWS_MAX:]))
        return out


Lease = _core.Lease


def _boxes(cells: Region, extents: Sequence[int]) -> Optional[list[tuple[Any, Any]]]:
    if cells is None:
        return None
    return [_box(one, extents) for one in cells] if isinstance(cells, list) else [_box(cells, extents)]


def _box(cells: Union[slice, Cells], extents: Sequence[int]) -> tuple[Any, Any]:
    given = cells if isinstance(cells, tuple) else (cells,)
    if len(given) > len(extents):
        raise InvalidUse(f"cells has {amount(len(given), 'dimension')}, the buffer has {len(extents)}")
    lower, upper = [], []
    for extent, one in zip(extents, list(given) + [slice(None)] * (len(extents) - len(given))):
        if not isinstance(one, slice):
            raise InvalidUse(f"cells are slices, not {one!r}")
        start, stop, step = one.indices(extent)
        if step != 1:
            raise InvalidUse(f"cells have step {step}: a box has every cell, so the step must be 1")
        lower.append(start)
        upper.append(max(start, stop))
    return tuple(lower), tuple(upper)


class Buffer:
    """One array of cells on the host and on devices.

    For every region it knows which copies hold its last value. A lease makes the copies that it needs, and no others.

    Parameters
    ----------
    shape, dtype
        Of the array, row-major. Elements are those of :func:`array`.
    data
        Or memory of the program's, taken as the host's copy, valid as it is; nothing is copied.
    are_zeros
        Says that ``data`` holds zeros: devices then begin with zeros of their own, and copy none.
    devices
        Where it can be; a private host where nothing is said.
    zeros
        Whether it begins with zeros, as it does where nothing is said. With ``zeros=False``, reading what was never
        written is an error.

    Examples
    --------
    >>> devices = Devices(fake=1)
    >>> x = Buffer(1000, devices=devices, name="x")
    >>> with x.write() as a:
    ...     a[:] = 1
    >>> with x.read("fake:0") as a:
    ...     float(a.sum())
    1000.0
    >>> x.state("fake:0"), devices.copied_bytes
    ('valid', 8000)
    """

    __slots__ = ("_core", "_elements", "_views", "devices")

    def __init__(
        self,
        shape: Union[SupportsIndex, Sequence[SupportsIndex], None] = None,
        dtype: DTypeLike = "f8",
        *,
        data: Optional[NDArray[Any]] = None,
        are_zeros: bool = False,
        devices: Optional[Devices] = None,
        name: str = "buffer",
        zeros: bool = True,
    ) -> None:
        self.devices = Devices() if devices is None else of_type("devices", devices, Devices)
        if (shape is None) == (data is None):
            raise InvalidUse("a Buffer takes a shape, or data")
        if data is not None:
            if not isinstance(data, np.ndarray):
                raise InvalidUse(f"data is a NumPy array, not a {type(data).__name__}")
            refuse_mask(data)
            if not data.flags.writeable:
                raise InvalidUse("data that is read-only: freeze() a buffer of memory that can be written")
            self._elements = elements_of(data.dtype)
            described = self._elements.described(data)
            require_distinct(data)
            self._core = _core.BufferMemory.wrap(self.devices._core, *described, data, name, are_zeros)
        else:
            self._elements = elements_of(dtype)
            extents = extents_of("an extent", () if shape is None else shape) + self._elements.inside
            self._core = _core.BufferMemory(self.devices._core, extents, self._elements.kind, name, zeros)
        self._views = _core.LeaseViews(self._elements.view_dtype, bool(self._elements.inside))

    @classmethod
    def _of(cls, core: _core.BufferMemory, devices: Devices, elements: Elements, views: _core.LeaseViews) -> Buffer:
        out = cls.__new__(cls)
        out._core = core
        out._elements = elements
        out._views = views
        out.devices = devices
        return out

    @property
    def shape(self) -> tuple[int, ...]:
        extents = self._core.extents
        return extents[: len(extents) - len(self._elements.inside)]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._elements.dtype

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def version(self) -> int:
        """A number that grows exactly when the values may have changed: when a lease that writes, reads and writes, or
        accumulates is closed."""
        return self._core.version

    def open(self, intent: str, device: Optional[str] = None, cells: Region = None) -> Lease:
        """A lease by the name of its intent: ``"read"``, ``"write"``, ``"read_write"`` or ``"accumulate"``."""
        boxes = None if cells is None else _boxes(cells, self._core.extents)
        if intent == "accumulate":
            self._elements.require_numbers(intent)
        return self._core.open(intent, _device.get() if device is None else device, "sum", boxes, self._views)

    def read(self, device: Optional[str] = None, cells: Region = None) -> Lease:
        """Opens a lease to read, and copies what is stale there. ``cells`` are a slice, or one for each dimension, or a
        list of these; all where nothing is said."""
        boxes = None if cells is None else _boxes(cells, self._core.extents)
        return self._core.open("read", _device.get() if device is None else device, "sum", boxes, self._views)

    def write(self, device: Optional[str] = None, cells: Region = None) -> Lease:
        """All of these cells will be written: nothing is copied."""
        boxes = None if cells is None else _boxes(cells, self._core.extents)
        return self._core.open("write", _device.get() if device is None else device, "sum", boxes, self._views)

    def read_write(self, device: Optional[str] = None, cells: Region = None) -> Lease:
        """Cells that are read and then written: copies what is stale there."""
        boxes = None if cells is None else _boxes(cells, self._core.extents)
        return self._core.open("read_write", _device.get() if device is None else device, "sum", boxes, self._views)

    def accumulate(
        self, device: Optional[str] = None, cells: Region = None, *, combine: str = "sum"
    ) -> Lease:
        """Opens a block whose values are combined (``"sum"``, ``"product"``, ``"min"``, ``"max"``) with the value when that is
        next read. The memory begins with the element that changes nothing. Elements must be numbers."""
        self._elements.require_numbers("accumulate")
        boxes = None if cells is None else _boxes(cells, self._core.extents)
        return self._core.open("accumulate", _device.get() if device is None else device, combine, boxes, self._views)

    def state(self, device: str) -> str:
        """``"unallocated"``, ``"stale"``, ``"partly valid"`` or ``"valid"``. Changes nothing."""
        return self._core.state(device)

    def explain(self, intent: str = "read", device: Optional[str] = None) -> str:
        """Says what such a lease would copy, or why it would be refused, and the state of every memory. Changes nothing."""
        return self._core.explain(intent, _device.get() if device is None else device)

    def freeze(self) -> None:
        """From now on it may not be written."""
        self._core.freeze()

    @property
    def is_frozen(self) -> bool:
        return self._core.is_frozen

    def duplicate(self, *, empty: bool = False) -> Buffer:
        """A buffer with the same values; copied when one of the two changes. ``empty``: of the same shape, unwritten."""
        if empty:
            views = _core.LeaseViews(self._elements.view_dtype, bool(self._elements.inside))
            return Buffer._of(self._core.duplicate_empty(), self.devices, self._elements, views)
        return Buffer._of(self._core.duplicate(), self.devices, self._elements, self._views.of_duplicate())

    def __repr__(self) -> str:
        return f"<buffer '{self.name}' {self.dtype}{list(self.shape)}>"
