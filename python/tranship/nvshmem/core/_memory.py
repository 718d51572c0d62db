"""Symmetric buffers and arrays, and views of those of peers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..._amounts import amount
from ..._errors import InvalidUse, Mismatch
from ..._symmetric import symmetric
from ..._views import refuse_mask
from ._ground import Runtime, runtime
from ._types import BufferTypes

__all__ = [
    "Array",
    "Buffer",
    "MulticastArray",
    "PeerArray",
    "array",
    "array_get_buffer",
    "buffer",
    "bytearray",
    "free",
    "free_array",
    "get_multicast_array",
    "get_multicast_buffer",
    "get_peer_array",
    "get_peer_buffer",
    "register_external_array",
    "register_external_buffer",
    "unregister_external_array",
    "unregister_external_buffer",
]

Shape = Union[int, Sequence[int]]


class InPlaceArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that kernels get as it is. What is computed from it is a plain array."""

    __cuda_ndarray__ = True

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:  # the target of an operation in place
            return self
        result = np.asarray(array)
        return result[()] if return_scalar or result.ndim == 0 else result


class Array(InPlaceArray):
    """A NumPy array in symmetric memory. Slices are in it, too; copies are not, and are refused as targets."""


class PeerArray(InPlaceArray):
    """The elements of a symmetric array at a peer: to load and store, and no symmetric array."""


class Buffer:
    """Bytes of symmetric memory, of a peer, or of the program's own that were registered."""

    def __init__(self, data: NDArray[Any], kind: BufferTypes) -> None:
        self._data = data
        self.kind = kind

    @property
    def handle(self) -> int:
        """The address of the first byte."""
        return _address(self._data)

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self._data.nbytes)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._data.__array_interface__

    def __repr__(self) -> str:
        return f"<{self.kind.name.lower()} buffer of {amount(self.size, 'byte')} at {self.handle:#x}>"


class _Record:
    """An allocation or a registration of this rank."""

    def __init__(self, here: Runtime, data: NDArray[Any], kind: BufferTypes, original: Any = None) -> None:
        self.buffer = Buffer(data, kind)
        self.size = data.nbytes
        self.original = original  # memory of the program's own
        here.allocated += 1
        self.number = here.allocated

    @property
    def is_owned(self) -> bool:
        return self.buffer.kind is BufferTypes.NORMAL


def _shown(memory: Any) -> NDArray[Any]:
    """The array that an object is, or shows; never a copy."""
    if isinstance(memory, np.ndarray):
        refuse_mask(memory)
        return memory
    if hasattr(memory, "__array_interface__"):
        return np.asarray(memory)
    raise InvalidUse(f"an array or a buffer is needed, not a {type(memory).__name__}")


def _address(data: Any) -> int:
    return int(data.__array_interface__["data"][0])


def _allocate(shape: Shape, dtype: DTypeLike, morder: str, release: bool) -> NDArray[Any]:
    if morder not in ("C", "F"):
        raise InvalidUse(f"morder={morder!r}: needs 'C' or 'F'")
    here = runtime()
    extents = tuple(map(operator.index, shape)) if isinstance(shape, Sequence) else (operator.index(shape),)
    # Memory comes in the order of C: what is Fortran's is the same with its dimensions turned.
    memory = symmetric(here.world, extents[::-1] if morder == "F" else extents, dtype)
    data = memory.local.T if morder == "F" else memory.local
    if not release and data.size > 0:
        here.allocations[_address(data)] = _Record(here, data, BufferTypes.NORMAL)
    return data


def _record_of(memory: Any, what: str) -> _Record:
    here = runtime()
    record = here.allocations.get(_address(memory))
    if record is None:
        raise InvalidUse(
            f"{what}: no allocation begins at {_address(memory):#x} (rank {here.rank}); it may have been freed, or be a "
            "slice or a peer's"
        )
    return record  # type: ignore[no-any-return]


def _require_alike(here: Runtime, what: str, number: int) -> None:
    """Collective: that all ranks free, or unregister, the same."""
    numbers = here.world.all_gather(number)
    if len(set(numbers)) > 1:
        said = ", ".join(f"rank {rank} allocation {n}" for rank, n in enumerate(numbers))
        raise Mismatch(f"{what}: the ranks bring different ones: {said}")


def buffer(size: int, release: bool = False, except_on_del: bool = True) -> Buffer:
    """Collective: ``size`` bytes, all 0, at the same place of the symmetric heap of every rank.

    With ``release=True`` it is not kept for the program: it is free again when the last of its views has gone on all
    ranks. ``except_on_del`` is accepted: dropping a buffer frees nothing, and is no error.

    Raises
    ------
    Mismatch, NoMemory
        On all ranks.
    """
    data = _allocate(size, "u1", "C", release)
    if release:
        return Buffer(data, BufferTypes.NORMAL)
    return _record_of(data, "buffer").buffer if data.size > 0 else Buffer(data, BufferTypes.NORMAL)


def array(shape: Shape, dtype: DTypeLike = "float32", release: bool = False, morder: str = "C") -> Array:
    """Collective: an array of zeros in symmetric memory, with its dimensions in C's or Fortran's order.

    Raises
    ------
    Mismatch
        On all ranks, when they ask for other sizes or dtypes; it names both.
    NoMemory
        On all ranks.
    """
    return _allocate(shape, dtype, morder, release).view(Array)


def bytearray(
    shape: Shape, dtype: DTypeLike = "float32", release: bool = False, device_id: Optional[int] = None, morder: str = "C"
) -> Array:
    """Collective: the bytes of such an array, as ``uint8``."""
    extents = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    size = np.dtype(dtype).itemsize
    for extent in extents:
        size *= operator.index(extent)
    return array(size, "u1", release, morder)


def array_get_buffer(array: Any) -> tuple[Buffer, int, str]:
    """The buffer that an array of :func:`array` lies in, its size in bytes, and the name of its dtype."""
    return _record_of(array, "array_get_buffer").buffer, int(array.nbytes), str(array.dtype)


def free(buffer: Any) -> None:
    """Collective: gives memory back. It is free for others when the last view of it has gone; views stay valid until
    then. Of a peer's or a multicast buffer, a no-op that is not collective.

    Raises
    ------
    InvalidUse
        For what no allocation begins at.
    Mismatch
        On all ranks, when they free different ones.
    """
    if isinstance(buffer, (MulticastArray, PeerArray)):
        return
    if getattr(buffer, "kind", None) in (BufferTypes.PEER, BufferTypes.MULTIMEM):
        return
    here = runtime()
    data = _shown(buffer)
    if data.size == 0:  # there is nothing to free
        return
    if not here.shmem.is_symmetric(_address(data)):
        raise InvalidUse(f"free: {_address(data):#x} lies in no symmetric memory (rank {here.rank})")
    record = _record_of(data, "free")
    if record.size != data.nbytes:
        raise InvalidUse(f"free: {amount(data.nbytes, 'byte')} given, the allocation has {record.size} (rank {here.rank})")
    if not record.is_owned:
        raise InvalidUse(f"free: this memory was registered, call unregister_external_array (rank {here.rank})")
    _require_alike(here, "free", record.number)
    del here.allocations[record.buffer.handle]


def free_array(array: Any) -> None:
    """Collective: :func:`free` of an array."""
    free(array)


class _PeerMemory:
    """Elements of a peer, which this rank can load and store. Keeps the symmetric array that they belong to."""

    def __init__(self, of: Any, pe: int) -> None:
        self._of = of
        self.__array_interface__ = runtime().shmem.peer_view(_shown(of), pe)


def get_peer_array(array: Any, peer_pe: Optional[int] = None, *, pe: Optional[int] = None) -> NDArray[Any]:
    """The elements of a symmetric array at a peer, to load and store.

    Raises
    ------
    Unsupported
        Where that peer's memory is not reachable.
    """
    peer = peer_pe if peer_pe is not None else pe
    if peer is None:
        raise InvalidUse("get_peer_array needs the peer")
    return np.asarray(_PeerMemory(array, operator.index(peer))).view(PeerArray)


def get_peer_buffer(buffer: Buffer, pe: int) -> Buffer:
    """The bytes of a buffer at a peer."""
    return Buffer(get_peer_array(buffer, pe), BufferTypes.PEER)


class MulticastArray:
    """A symmetric array at all members of a team: a store goes to all of them, a load combines them.

    >>> import tranship as ts
    >>> def main(world):
    ...     import tranship.nvshmem as nvshmem
    ...     nvshmem.init()
    ...     x = nvshmem.array(2, "int64")
    ...     x[:] = nvshmem.my_pe() + 1
    ...     nvshmem.barrier_all()
    ...     total = nvshmem.get_multicast_array(nvshmem.Teams.TEAM_WORLD, x).load_reduce("sum").tolist()
    ...     nvshmem.barrier_all()
    ...     nvshmem.free_array(x)
    ...     nvshmem.finalize()
    ...     return total
    >>> ts.launch(3, main)
    [[6, 6], [6, 6], [6, 6]]
    """

    kind = BufferTypes.MULTIMEM
    _combinations = {
        "sum": np.add,
        "prod": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }

    def __init__(self, copies: Iterable[NDArray[Any]]) -> None:
        self._copies = list(copies)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._copies[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._copies[0].dtype

    @property
    def size(self) -> int:
        return int(self._copies[0].size)

    def __len__(self) -> int:
        return len(self._copies[0])

    def __setitem__(self, key: Any, value: Any) -> None:
        for copy in self._copies:
            copy[key] = value

    def __getitem__(self, key: Any) -> MulticastArray:
        parts = [copy[key] for copy in self._copies]
        if not isinstance(parts[0], np.ndarray):
            raise InvalidUse("an element of a multicast array has a value at every member: load_reduce(op) combines them")
        return MulticastArray(parts)

    def load_reduce(self, op: str = "sum") -> NDArray[Any]:
        """The combination of all members' elements, in their order: ``sum``, ``prod``, ``min``, ``max``, ``and``,
        ``or`` or ``xor``."""
        if op not in self._combinations:
            raise InvalidUse(f"reduction {op!r}: needs one of {', '.join(self._combinations)}")
        combine = self._combinations[op]
        value = self._copies[0].copy()
        for copy in self._copies[1:]:
            combine(value, copy, out=value)
        return value


def get_multicast_array(team: int, array: Any) -> MulticastArray:
    """The elements of a symmetric array at all members of a team.

    Raises
    ------
    Unsupported
        Where the memory of any of them is not reachable.
    """
    shmem = runtime().shmem
    return MulticastArray(
        [get_peer_array(array, shmem.world_rank(team, member)) for member in range(shmem.team_size(team))]
    )


def get_multicast_buffer(team: int, buffer: Buffer) -> MulticastArray:
    """The bytes of a buffer at all members of a team."""
    return get_multicast_array(team, buffer)


def register_external_array(array: Any) -> Array:
    """Collective: makes memory of the program's own symmetric, where it lies. The result is a new array of the same
    memory, which transfers and signals take; the old one stays valid.

    The memory is whole pages, such as ``mmap`` gives, and as many on all ranks.

    Raises
    ------
    InvalidUse
        On all ranks, for memory that is no whole pages, or is registered already.
    """
    here = runtime()
    registration = here.shmem.register_memory(np.asarray(array))
    data = np.asarray(registration)
    here.allocations[_address(data)] = _Record(here, data, BufferTypes.EXTERNAL, original=array)
    return data.view(Array)


def unregister_external_array(array: Any) -> None:
    """Collective: ends a registration. The program's own memory keeps its values."""
    here = runtime()
    record = _record_of(array, "unregister_external_array")
    if record.buffer.kind is not BufferTypes.EXTERNAL:
        raise InvalidUse(f"unregister: this memory was allocated, call free (rank {here.rank})")
    _require_alike(here, "unregister_external_array", record.number)
    del here.allocations[record.buffer.handle]


def register_external_buffer(buffer: Any) -> Buffer:
    """Collective: :func:`register_external_array` of anything that shows its bytes."""
    data = register_external_array(np.frombuffer(buffer, "u1"))
    return _record_of(data, "register_external_buffer").buffer


def unregister_external_buffer(buffer: Buffer) -> None:
    """Collective: :func:`unregister_external_array` of a buffer."""
    unregister_external_array(buffer)
