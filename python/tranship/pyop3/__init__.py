"""The names of pyop3's buffers over tranship's: one flat array, many devices, copied when a stale copy is read.

>>> import numpy as np
>>> gpu = FakeGPU()
>>> x = ArrayBuffer(np.zeros(4))
>>> x.state[gpu]
-1
>>> with offloading(gpu):  # moves nothing
...     x.data_rw[:] += 1
>>> x.data_ro.tolist()
[1.0, 1.0, 1.0, 1.0]

What differs, on purpose: a device is named by its kind and number, so two objects for one device are one device. An
array that was handed out becomes read-only when a later access needs its buffer, so that no write is lost; what is
written through a view of it after that raises :class:`~tranship.InvalidUse` at the next access. A query of the state
changes nothing. Each buffer keeps its copies when a context ends, and a leaf that is stale is stale on every device.
``_data`` and the values of ``_lazy_data`` are to be read: pyop3 writes through them and counts by itself.

:mod:`tranship.pyop3.device` and :mod:`tranship.pyop3.buffer` have these names as pyop3's modules do.
"""

from __future__ import annotations

import abc
import contextlib
import contextvars
import enum
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._amounts import amount
from .. import _arrays, _layouts
from .._buffers import Buffer, Devices, Lease
from .._errors import InvalidUse, Unsupported
from .._worlds import World

__all__ = [
    "CPU",
    "CUDAGPU",
    "INC",
    "MAX",
    "MIN",
    "READ",
    "RW",
    "WRITE",
    "ArrayBuffer",
    "BadOrderingException",
    "DataTransferInFlightException",
    "Device",
    "FakeGPU",
    "HOST",
    "IncompatibleStarForestException",
    "Intent",
    "NullBuffer",
    "StarForest",
    "State",
    "current_device",
    "offloading",
    "on_host",
]

F = TypeVar("F", bound=Callable[..., Any])


class DataTransferInFlightException(InvalidUse):
    """The buffer is used between the begin and the end of an exchange."""


class IncompatibleStarForestException(InvalidUse):
    """A star forest is of another size than the data."""


class BadOrderingException(InvalidUse):
    """An end without its begin."""


# Devices.


class Device(abc.ABC):
    """Where copies are. A value: equal by its name, which is a kind and a number.

    A class of a program's own is a kind of device of its own: all that is done with arrays in its memory is done by its
    methods. Which copies are made, when and why, is tranship's, as for other devices. An access on such a device gives
    the array that :meth:`allocate` has returned: a view of it where it is a NumPy array, which becomes read-only when the
    next access needs the buffer, and else the array itself, which must not be used any more by then.

    The methods are called while a buffer is locked: they must use no buffers, and must not keep the arrays of the host
    that they are given. What they raise reaches the access that has needed them; no value is lost by it. ``MemoryError``
    of :meth:`allocate` makes copies of other buffers leave the device.

    Attributes
    ----------
    name
        As ``"arena:0"``: lower-case letters, digits and underscores, a colon, a number. Not ``host`` or ``fake``, which
        tranship has itself.
    """

    name: str

    @abc.abstractmethod
    def asarray(self, array: NDArray[Any], *, constant: bool = False) -> NDArray[Any]:
        """A copy of an array in this memory, read-only where it is constant."""

    @abc.abstractmethod
    def zeros_like(self, array: NDArray[Any]) -> NDArray[Any]:
        """Zeros of an array's shape and type in this memory."""

    def allocate(self, size: int, dtype: np.dtype[Any]) -> Any:
        """A new array of ``size`` elements in this memory, with whatever is in it. It has ``shape`` and ``dtype``, takes
        slices, and is released when no copy needs it."""
        return self.zeros_like(np.empty(size, dtype))

    def copy_from_host(self, target: Any, source: NDArray[Any]) -> None:
        """Writes an array of the host to a slice of an array of this memory, of the same length. Returns when the bytes
        are there."""
        target[:] = self.asarray(source)

    def copy_to_host(self, target: NDArray[Any], source: Any) -> None:
        """Writes a slice of an array of this memory to an array of the host, of the same length. Returns when the bytes
        are there."""
        target[:] = np.asarray(source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<device {self.name}>"


class _HostMemory(Device):
    def asarray(self, array: NDArray[Any], *, constant: bool = False) -> NDArray[Any]:
        out = np.array(array)
        out.flags.writeable = not constant
        return out

    def zeros_like(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.zeros_like(array)


class CPU(_HostMemory):
    """The host."""

    name = "host"


class FakeGPU(_HostMemory):
    """Memory of the host that stands for a device: for tests, and for laptops without a GPU."""

    count = 4

    def __init__(self, ordinal: int = 0) -> None:
        if not 0 <= ordinal < self.count:
            raise InvalidUse(f"FakeGPU({ordinal}): there are {self.count}, 0 to {self.count - 1}")
        self.name = f"fake:{ordinal}"


class CUDAGPU(Device):
    """A GPU of NVIDIA's. This build has no back-end for it."""

    def __init__(self, ordinal: int = 0) -> None:
        raise Unsupported(
            f"CUDAGPU({ordinal}): this build of tranship has no CUDA back-end; FakeGPU() stands for one in tests"
        )

    def asarray(self, array: NDArray[Any], *, constant: bool = False) -> NDArray[Any]:
        raise NotImplementedError

    def zeros_like(self, array: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError


HOST = CPU()
_current: contextvars.ContextVar[Device] = contextvars.ContextVar("tranship_pyop3_device", default=HOST)


def current_device() -> Device:
    """That of the innermost :func:`offloading`; the host without one."""
    return _current.get()


@contextlib.contextmanager
def offloading(device: Device) -> Iterator[Device]:
    """Within the block, data is that of ``device``. Nests; moves nothing and frees nothing, on entry or on exit."""
    if not isinstance(device, Device):
        raise InvalidUse(f"offloading needs a Device, not {device!r}")
    token = _current.set(device)
    try:
        yield device
    finally:
        _current.reset(token)


def on_host(f: F) -> F:
    """The function runs with the data of the host, in whichever context it is called."""

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with offloading(HOST):
            return f(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


@functools.lru_cache(maxsize=1)
def _devices() -> Devices:
    return Devices(fake=FakeGPU.count)


_own_devices: dict[str, Device] = {}  # of the program, by name
_own_devices_lock = threading.Lock()


def _place(device: Device) -> str:
    """The name of a device to buffers. One of the program's own is made known to them when it is first used."""
    name = device.name
    known = _own_devices.get(name)
    if known is device or type(device) in (CPU, FakeGPU):
        return name
    with _own_devices_lock:
        known = _own_devices.get(name)
        if known is None:
            kind, colon, number = name.partition(":") if isinstance(name, str) else ("", "", "")
            if not colon or not (number.isascii() and number.isdigit()) or len(number) > 9:
                raise InvalidUse(f"a device of class {type(device).__name__} is called {name!r}; use a name like 'arena:0'")
            if kind in ("host", "fake"):
                raise InvalidUse(
                    f"a device of class {type(device).__name__} is called '{name}', like a device of tranship: it needs a "
                    "name of its own"
                )
            _devices()._core.add(kind, int(number), _OwnDevice(device))
            _own_devices[name] = known = device
    if type(known) is not type(device):
        raise InvalidUse(
            f"device '{name}' of class {type(device).__name__} is another one than that of class {type(known).__name__}"
        )
    return name


class _OwnDevice:
    """The functions of a device that a program has written, as tranship calls them: checks what they return."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._arrays: list[weakref.ref[Any]] = []

    def _in_words(self, error: BaseException, call: str) -> None:
        if hasattr(error, "add_note"):  # Python 3.11
            error.add_note(f"raised by device '{self._device.name}' in {call}")

    def allocate(self, size: int, kind: str) -> Any:
        dtype = np.dtype(kind)
        call = f"allocate({size}, {dtype})"
        try:
            array = self._device.allocate(size, dtype)
        except BaseException as error:
            self._in_words(error, call)
            raise
        shape, got = getattr(array, "shape", None), getattr(array, "dtype", None)
        said = f"device '{self._device.name}': {call} has returned "
        if shape is None or got is None:
            raise InvalidUse(f"{said}a {type(array).__name__}, which has no shape and dtype")
        try:
            is_of_type = np.dtype(got) == dtype
        except TypeError:
            is_of_type = str(got).rpartition(".")[2] == dtype.name
        if tuple(shape) != (size,) or not is_of_type:
            raise InvalidUse(f"{said}{got}{list(shape)}, not {dtype}[{size}]")
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise InvalidUse(f"{said}an array that is read-only")
        alive = [other for other in (one() for one in self._arrays) if other is not None]
        for other in alive:
            if other is array or (
                isinstance(array, np.ndarray) and isinstance(other, np.ndarray) and np.may_share_memory(other, array)
            ):
                raise InvalidUse(f"{said}memory of an array that it has returned before, and that is in use")
        try:
            self._arrays = [weakref.ref(one) for one in [*alive, array]]
        except TypeError:  # what cannot be referred to so is not compared
            pass
        return array

    def copy_in(self, array: Any, cells: slice, host: NDArray[Any]) -> None:
        try:
            self._device.copy_from_host(array[cells], host)
        except BaseException as error:
            self._in_words(error, f"copy_from_host of {host.dtype}[{host.size}]")
            raise

    def copy_out(self, array: Any, cells: slice, host: NDArray[Any]) -> None:
        try:
            self._device.copy_to_host(host, array[cells])
        except BaseException as error:
            self._in_words(error, f"copy_to_host of {host.dtype}[{host.size}]")
            raise

    def show(self, array: Any, start: int, extents: Sequence[int], strides: Sequence[int], is_read_only: bool) -> Any:
        """The array of a lease."""
        (size,), (step,) = extents, strides
        step = step if size > 1 else 1
        if isinstance(array, np.ndarray) or step != 1:
            end = start + size * step
            array = array[start : (None if end < 0 else end) : step]
        return _read_only(array) if is_read_only else array


def _read_only(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array


# Intents.


class Intent(enum.Enum):
    """The ways in which a loop accesses a buffer."""

    READ = "read"
    WRITE = "write"
    RW = "read_write"
    INC = "sum"
    MIN = "min"
    MAX = "max"


READ, WRITE, RW, INC, MIN, MAX = Intent


def _identity(intent: Intent, dtype: np.dtype[Any]) -> Any:
    if intent is Intent.INC:
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(np.inf if intent is Intent.MIN else -np.inf)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return dtype.type(limits.max if intent is Intent.MIN else limits.min)
    raise InvalidUse(f"{dtype} has no {intent.name}")


# Star forests.


def _runs(indices: NDArray[Any]) -> list[slice]:
    """Increasing indices as ranges."""
    if not indices.size:
        return []
    first = np.concatenate(([0], np.flatnonzero(np.diff(indices) > 1) + 1))
    last = np.append(first[1:], indices.size) - 1
    return [slice(int(a), int(b) + 1) for a, b in zip(indices[first], indices[last])]


class StarForest:
    """Which entries of a rank's array are its own (roots), and which are copies of others' (leaves).

    Collective. Entries are named by global ids: in local memory, first those that this rank owns, in this order, then
    the leaves.
    """

    def __init__(self, world: World, owned: Sequence[int], ghosts: Sequence[int], size: Optional[int] = None) -> None:
        parts = world.all_gather((list(map(int, owned)), list(map(int, ghosts))))
        ids = size if size is not None else 1 + max(itertools.chain([-1], *(o for o, _ in parts)))
        self.world = world
        self.nroots = len(owned)
        self.nleaves = len(ghosts)
        self.distribution = _layouts.indexed(ids, parts)
        wanted = np.unique(np.array([i for rank, (_, g) in enumerate(parts) if rank != world.rank for i in g], dtype="i8"))
        shared = np.flatnonzero(np.isin(np.asarray(owned, "i8"), wanted))
        self._shared_roots = _runs(shared)

    @property
    def size(self) -> int:
        return self.nroots + self.nleaves

    @property
    def ileaf(self) -> slice:
        """Where leaves lie in a local array."""
        return slice(self.nroots, self.size)

    def __repr__(self) -> str:
        return f"<star forest of {self.nroots} roots and {self.nleaves} leaves>"


# Buffers.


class State:
    """A counter for each device, -1 where it has no copy. The highest is of the last value; a copy that is brought up to
    date takes it over, and a write adds 1. A snapshot, equal to another one when no value has changed between them."""

    def __init__(self, counters: dict[Device, int]) -> None:
        self._counters = counters

    def __getitem__(self, device: Device) -> int:
        return self._counters.get(device, -1)

    @property
    def version(self) -> int:
        return max(self._counters.values(), default=-1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and other.version == self.version

    def __hash__(self) -> int:
        return hash(self.version)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{d.name}: {n}" for d, n in sorted(self._counters.items(), key=lambda i: i[0].name)) + "}"


_numbers = itertools.count()


class NullBuffer:
    """A shape and a type without data, for code that is only compiled."""

    def __init__(
        self,
        size: int,
        dtype: DTypeLike = "f8",
        *,
        name: Optional[str] = None,
        prefix: str = "array",
        max_value: Any = None,
        ordered: bool = False,
    ) -> None:
        self.size = size
        self.dtype = np.dtype(dtype)
        self.name = name or f"{prefix}_{next(_numbers)}"
        self.max_value = max_value
        self.ordered = ordered

    def duplicate(self, *, copy: bool = False) -> NullBuffer:
        return NullBuffer(
            self.size, self.dtype, name=f"{self.name}_copy", max_value=self.max_value, ordered=self.ordered
        )

    def _no_data(self) -> NDArray[Any]:
        raise InvalidUse(f"buffer '{self.name}' has no data")

    data_ro = data_rw = data_wo = property(_no_data)


class _LazyData(Mapping[Device, NDArray[Any]]):
    """The copies of a buffer, by device. A copy is brought up to date when it is asked for."""

    def __init__(self, buffer: ArrayBuffer) -> None:
        self._of = buffer

    def __getitem__(self, device: Device) -> NDArray[Any]:
        if device not in self._of._counters:
            raise KeyError(device)
        with offloading(device):
            return self._of._data

    def __iter__(self) -> Iterator[Device]:
        return iter(dict(self._of._counters))

    def __len__(self) -> int:
        return len(self._of._counters)


class _Access:
    """A block of :meth:`ArrayBuffer.access`. A class, for the caller of a generator's block is contextlib."""

    __slots__ = ("_buffer", "_intent", "_is_inner")

    def __init__(self, buffer: ArrayBuffer, intent: Intent) -> None:
        self._buffer = buffer
        self._intent = intent
        self._is_inner = False

    def __enter__(self) -> NDArray[Any]:
        # No name here refers to what is handed out: it is the loop's alone.
        out, self._is_inner = self._buffer._begin_access(self._intent)
        if self._intent is not READ:
            self._buffer._loops.append(self._intent)
        return out

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._intent is not READ:
            self._buffer._loops.pop()
        if not self._is_inner:
            self._buffer._release(abandon=kind is not None)


class ArrayBuffer:
    """One flat array, with a copy on each device that has used it.

    ``data_ro``, ``data_rw`` and ``data_wo`` are arrays of the current device (:func:`offloading`), and are brought up to
    date there first, except by ``data_wo``, which assumes that all of it will be written. What they return may be used
    until the next access of the buffer: then an array to write becomes read-only. Views that were made of it do not;
    while there are any, each access compares the memory, and raises where it was written through them.

    Parameters
    ----------
    data
        A flat array, which is taken as it is; or nothing, for zeros of ``size`` and ``dtype``.
    sf
        Which entries are copies of other ranks'. Exchanges are collective.
    constant
        It cannot be written, on any device.
    rank_equal
        Whether it is the same on all ranks; of constant ones only.
    max_value, ordered
        What is known of the values; kept, and not checked.
    """

    def __init__(
        self,
        data: Optional[NDArray[Any]] = None,
        sf: Optional[StarForest] = None,
        *,
        name: Optional[str] = None,
        prefix: str = "array",
        constant: bool = False,
        rank_equal: bool = False,
        max_value: Any = None,
        ordered: bool = False,
        size: Optional[int] = None,
        dtype: Optional[DTypeLike] = None,
    ) -> None:
        if rank_equal and not constant:
            raise InvalidUse("rank_equal needs a constant buffer: others may be written differently")
        are_zeros = False
        if data is None:
            if size is None and sf is not None:
                size = sf.size
            if size is None:
                raise InvalidUse("an ArrayBuffer without data needs a size, or a star forest")
            data, are_zeros = np.zeros(size, dtype or "f8"), True
        if not isinstance(data, np.ndarray):
            raise InvalidUse(f"data is a NumPy array, not a {type(data).__name__}")
        if data.ndim != 1:
            raise InvalidUse(f"data of {amount(data.ndim, 'dimension')}: an ArrayBuffer is flat")
        if (size is not None and size != data.size) or (dtype is not None and np.dtype(dtype) != data.dtype):
            raise InvalidUse(f"data is {data.dtype}[{data.size}], not {np.dtype(dtype or data.dtype)}[{size}]")
        if sf is not None and sf.size != data.size:
            raise IncompatibleStarForestException(
                f"the star forest has {amount(sf.size, 'entry', 'entries')}, the data {data.size}"
            )
        if not data.flags.writeable:
            data = data.copy()
        self.sf = sf
        self.name = name or f"{prefix}_{next(_numbers)}"
        self.constant = constant
        self.rank_equal = rank_equal
        self.max_value = max_value
        self.ordered = ordered
        self._host = data
        self._buffer = Buffer(data=data, are_zeros=are_zeros, devices=_devices(), name=self.name)
        if constant:
            self._buffer.freeze()
        self._first_version = self._buffer.version
        self._leases: list[tuple[Device, Intent, Lease]] = []
        self._loops: list[Intent] = []  # of the blocks that are open and not to read
        self._counters: dict[Device, int] = {HOST: 0}
        self._leaves_valid = True
        self._pending: Optional[Intent] = None
        self._in_flight: Optional[tuple[str, Callable[[], None]]] = None
        self._exchanges: dict[str, _arrays.Exchange] = {}

    @property
    def size(self) -> int:
        return self._host.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._host.dtype

    @property
    def state(self) -> State:
        """Changes nothing, on whichever device it is asked for."""
        latest = self._version
        counters = dict(self._counters)
        for device in counters:
            if self._buffer.state(_place(device)) == "valid":
                counters[device] = latest
        for device, intent, _ in self._leases:
            if intent is not READ:  # it will be committed with what is written until then
                counters[device] = latest + 1
        return State(counters)

    @property
    def _version(self) -> int:
        return self._buffer.version - self._first_version

    @property
    def last_updated_device(self) -> Device:
        state = self.state
        return max(self._counters, key=lambda device: state[device])

    @property
    def leaves_valid(self) -> bool:
        """True when leaves are copies of their roots."""
        return self._leaves_valid

    # Access.

    @property
    def data_ro(self) -> NDArray[Any]:
        """To read. Collective where leaves are not valid: they are made so.

        In a block of :meth:`access`, on its device, it is a view of the block's array, as that is by then."""
        if self._loops:
            view = self._view_of_loop()
            if view is not None:
                return view
        self._settle()
        return self._hand_out(READ)

    @property
    def data_rw(self) -> NDArray[Any]:
        """To read and write. Collective where leaves are not valid."""
        self._check_writable()
        self._settle()
        array = self._hand_out(RW)
        self._leaves_valid = self.sf is None
        return array

    @property
    def data_wo(self) -> NDArray[Any]:
        """To write, all of it: nothing is copied, and a reduction that is pending is dropped."""
        self._check_writable()
        self._check_in_flight()
        self._pending = None
        array = self._hand_out(WRITE)
        self._leaves_valid = self.sf is None
        return array

    @property
    def _data(self) -> NDArray[Any]:
        """The current device's copy, brought up to date, to read. Unlike ``data_ro`` it exchanges no leaves."""
        return self._hand_out(READ)

    @property
    def _lazy_data(self) -> Mapping[Device, NDArray[Any]]:
        """By device, the copies of those that have used the buffer, each as ``_data`` there."""
        return _LazyData(self)

    def access(self, intent: Intent) -> contextlib.AbstractContextManager[NDArray[Any]]:
        """Opens a block for a loop: :data:`READ`, :data:`WRITE`, :data:`RW`; or :data:`INC`, :data:`MIN`, :data:`MAX`, which
        combine into roots and leaves. What is combined in leaves goes to their roots when the values are next needed,
        so one loop after another that does the same exchanges nothing. A loop that raises leaves no values: they must be
        written again (:data:`WRITE`). Within a block that writes, a block that reads on the same device sees its array."""
        return _Access(self, intent)

    def _begin_access(self, intent: Intent) -> tuple[NDArray[Any], bool]:
        """Returns the array that a block uses, and True when it is the array of a block around it."""
        if intent is READ and self._loops:
            view = self._view_of_loop()
            if view is not None:
                return view, True
        self._prepare(intent)
        return self._loop_data(intent), False

    def _view_of_loop(self) -> Optional[NDArray[Any]]:
        """Returns the array of the block that writes here, to read; None where it is over, or on another device."""
        loop = self._loops[-1]
        for device, intent, lease in self._leases:
            if intent is not READ and device == current_device():
                if loop in (INC, MIN, MAX):
                    raise InvalidUse(f"buffer '{self.name}' has no values in a block that combines by {loop.name}")
                return _read_only(lease.array[:])
        return None

    def _prepare(self, intent: Intent) -> None:
        """Leaves begin with what changes nothing where contributions are combined."""
        if intent in (READ, WRITE, RW):
            return
        self._check_writable()
        self._check_in_flight()
        if self._pending is intent:
            return
        self._settle()
        if self.sf is not None:
            self._release()
            device = current_device()
            place = _place(device)
            self._counters.setdefault(device, -1)
            with self._buffer.write(place, self.sf.ileaf) as array:
                array[self.sf.ileaf] = _identity(intent, self.dtype)
            self._pending = intent

    def _loop_data(self, intent: Intent) -> NDArray[Any]:
        if intent is READ:
            return self.data_ro
        if intent is WRITE:
            return self.data_wo
        if intent is RW:
            return self.data_rw
        array = self._hand_out(RW)
        self._leaves_valid = self.sf is None
        return array

    def zero(self) -> None:
        self.data_wo[:] = 0
        self._release()

    def inc_state(self) -> None:
        """Says that the current device's copy has been written by other means."""
        self._check_writable()
        self._hand_out(RW)
        self._release()

    def duplicate(self, *, copy: bool = False) -> ArrayBuffer:
        """Another buffer of this shape: zeros, or with a real copy of the values, on the current device alone."""
        self._check_in_flight()
        if copy:
            self._settle()
        out = ArrayBuffer(
            None,
            self.sf,
            name=f"{self.name}_copy",
            max_value=self.max_value,
            ordered=self.ordered,
            size=self.size,
            dtype=self.dtype,
        )
        if copy:
            source = self.data_ro
            out.data_wo[:] = source
            out._leaves_valid = self._leaves_valid
            out._release()
        out.constant, out.rank_equal = self.constant, self.rank_equal
        if out.constant:
            out._buffer.freeze()
        return out

    def _check_writable(self) -> None:
        if self.constant:
            raise InvalidUse(f"buffer '{self.name}' is constant")

    def _check_in_flight(self) -> None:
        if self._in_flight is not None:
            raise DataTransferInFlightException(f"buffer '{self.name}': a {self._in_flight[0]} is in flight")

    def _release(self, abandon: bool = False) -> None:
        for device, intent, lease in self._leases:
            lease.abandon() if abandon else lease.close()
            if intent is not READ:
                self._counters[device] = self._version
        self._leases.clear()

    def _hand_out(self, intent: Intent) -> NDArray[Any]:
        self._check_in_flight()
        device = current_device()
        place = _place(device)
        if intent is READ and all(held is READ for _, held, _ in self._leases):
            for held_device, _, lease in self._leases:
                if held_device == device:
                    return lease.array
        else:
            self._release()
        lease = self._buffer.open(intent.value, place)
        self._leases.append((device, intent, lease))
        self._counters[device] = self._version
        return lease.array

    # Exchanges.

    def _settle(self) -> None:
        """Pending contributions of leaves go to their roots, and leaves become copies of these."""
        self._check_in_flight()
        if self._pending is not None or not self._leaves_valid:
            self.broadcast_roots_to_leaves()

    def _exchange(self, kind: str) -> _arrays.Exchange:
        assert self.sf is not None
        if kind not in self._exchanges:
            array = _arrays.wrap(self.sf.world, self.sf.distribution, self._host, self.name)
            self._exchanges[kind] = (
                _arrays.HaloExchange(array)
                if kind == "broadcast"
                else _arrays.HaloExchange(array, adjoint=True, combine=kind)
            )
        return self._exchanges[kind]

    def _begin(self, what: str, kind: str, end: Callable[[], None], leases: list[Lease]) -> None:
        exchange = self._exchange(kind)
        exchange.start()

        def finish() -> None:
            exchange.finish()
            for lease in leases:
                lease.close()
            end()
            self._counters[HOST] = self._version

        self._in_flight = (what, finish)

    def _end(self, what: str) -> None:
        if self._in_flight is None or self._in_flight[0] != what:
            raise BadOrderingException(f"buffer '{self.name}': a {what} is ended that has not begun")
        finish = self._in_flight[1]
        self._in_flight = None
        finish()

    def reduce_leaves_to_roots_begin(self, op: Intent = INC) -> None:
        """Collective: leaves are combined with their roots, and become the element that changes nothing.

        Raises InvalidUse where leaves hold contributions of another intent."""
        self._check_in_flight()
        if self._pending is not None and self._pending is not op:
            raise InvalidUse(
                f"a reduction by {op.name} of buffer '{self.name}', whose leaves hold contributions by "
                f"{self._pending.name}"
            )
        self._check_writable()
        self._release()

        def end() -> None:
            self._leaves_valid = False
            self._pending = None

        if self.sf is None:
            self._in_flight = (f"reduction ({op.name})", end)
            return
        touched = [*self.sf._shared_roots, self.sf.ileaf]
        self._begin(f"reduction ({op.name})", op.value, end, [self._buffer.read_write("host", touched)])

    def reduce_leaves_to_roots_end(self, op: Intent = INC) -> None:
        self._end(f"reduction ({op.name})")
        if self.sf is None:
            self._leaves_valid = True

    def reduce_leaves_to_roots(self, op: Intent = INC) -> None:
        self.reduce_leaves_to_roots_begin(op)
        self.reduce_leaves_to_roots_end(op)

    def broadcast_roots_to_leaves_begin(self) -> None:
        """Collective: leaves become copies of their roots. On the host; other devices fetch the leaves alone.

        What leaves still hold for their roots is combined with them first."""
        self._check_in_flight()
        if self._pending is not None:
            self.reduce_leaves_to_roots(self._pending)
        self._release()

        def end() -> None:
            self._leaves_valid = True

        if self.sf is None:
            self._in_flight = ("broadcast", end)
            return
        leases = [
            self._buffer.read("host", self.sf._shared_roots),
            self._buffer.write("host", self.sf.ileaf),
        ]
        self._begin("broadcast", "broadcast", end, leases)

    def broadcast_roots_to_leaves_end(self) -> None:
        self._end("broadcast")

    def broadcast_roots_to_leaves(self) -> None:
        self.broadcast_roots_to_leaves_begin()
        self.broadcast_roots_to_leaves_end()

    def __repr__(self) -> str:
        return f"<buffer '{self.name}' {self.dtype}[{self.size}], {self.state}>"
