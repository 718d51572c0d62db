"""Symmetric memory, and transfers in which the peer need not take part."""

from __future__ import annotations

import operator
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from ._elements import Elements, elements_of
from ._errors import InvalidUse, Mismatch, of_type
from ._views import extents_of, refuse_mask
from ._worlds import Shape, World

__all__ = ["Symmetric", "symmetric"]


_new = object.__new__


class Symmetric:
    """Elements at the same place in the symmetric heap of every rank, or a slice of them.

    ``local`` is this rank's, as a NumPy array of the memory itself. A slice (``array[3:5]``, ``array[:, 1]``) names the
    same elements at all ranks. Calls that take a ``peer`` move or change that rank's elements. What completes when is
    what OpenSHMEM and NVSHMEM define:

    - ``put`` returns when the source may be used again; the data is there after ``world.quiet()`` or
      ``world.barrier()``, or when a signal that was put with it has been seen. ``get`` returns with the values.
    - Forms with ``nbi=True`` may return before; until the next ``quiet`` the source must not be written, and the target
      not be read.
    - ``world.fence()`` orders puts and updates before it ahead of those after it, for each peer.
    """

    __slots__ = ("_core", "_elements", "_local")
    _local: NDArray[Any]

    def __init__(self, core: _core.SymmetricView, elements: Elements) -> None:
        self._core = core
        self._elements = elements

    @property
    def local(self) -> NDArray[Any]:
        """This rank's elements, a NumPy array of the memory itself."""
        try:
            return self._local
        except AttributeError:  # made where it is needed: slices are mostly to be put to
            self._local = self._elements.shown(np.asarray(self._core))
            return self._local

    @property
    def world(self) -> World:
        """The world whose ranks have it."""
        return World(self._core.world)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.local.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._elements.dtype

    def __len__(self) -> int:
        return len(self.local)

    def __getitem__(self, key: Any) -> Symmetric:
        core = self._core.part_of(key)
        if core is None:
            return self._slice(key)
        part = _new(Symmetric)  # a call of the class takes as long as the rest
        part._core = core
        part._elements = self._elements
        return part

    def _slice(self, key: Any) -> Symmetric:
        """Returns the part for a key that is not a plain slice, such as an integer."""
        part = self.local[key]
        if not isinstance(part, np.ndarray):  # one element: a slice of it
            index = key if isinstance(key, tuple) else (key,)
            part = self.local[tuple(slice(i, i + 1) if i != -1 else slice(i, None) for i in map(operator.index, index))]
            part = part.reshape(1)
        if part.size and not np.may_share_memory(part, self.local):
            raise InvalidUse("a symmetric array takes slices and integers, which name memory, and no lists or masks")
        width = self.local.itemsize
        first = part.__array_interface__["data"][0] - self.local.__array_interface__["data"][0] if part.size else 0
        units = first // width * (self._elements.inside or (1,))[0]
        return Symmetric(
            self._core.part(units, part.shape + self._elements.inside, self._elements.strides(part)), self._elements
        )

    def __repr__(self) -> str:
        return f"<symmetric {self.dtype}{list(self.shape)}>"

    def put(
        self,
        source: Union[ArrayLike, Symmetric],
        peer: int,
        *,
        nbi: bool = False,
        signal: Optional[Symmetric] = None,
        value: int = 1,
        op: str = "set",
    ) -> None:
        """Puts ``source`` into these elements at ``peer``, element by element.

        With ``signal``, one element of ``u8``, that is set to ``value`` at the peer (or has it added, ``op="add"``) after
        the data is there.

        Raises
        ------
        Mismatch
            For another shape or dtype. Python's numbers, and lists of them, take the dtype of the elements where it has
            numbers of their kind, integers where they fit; one number is broadcast.
        InvalidUse
            For a rank outside of the world.
        """
        if signal is None and _core.put_buffer(self._core, source, peer, not nbi):
            return
        data = _operand(source, self.local)
        if signal is None and _core.put_buffer(self._core, data, peer, not nbi):
            return
        args = (*self._elements.described(data), peer, not nbi)
        _core.put(self._core, *args, None if signal is None else of_type("signal", signal, Symmetric)._core, operator.index(value), op, data)

    def get(self, peer: int, out: Optional[NDArray[Any]] = None, *, nbi: bool = False) -> NDArray[Any]:
        """These elements of ``peer``: in ``out``, or in a new array."""
        if out is None:
            if nbi:
                raise InvalidUse("get(nbi=True) needs `out`: until the next quiet the values are not there")
            out = np.empty(self.shape, self.dtype)
        if not isinstance(out, np.ndarray):
            raise InvalidUse(f"out is a NumPy array, not a {type(out).__name__}")
        if _core.get_buffer(self._core, out, peer, not nbi):
            return out
        refuse_mask(out)
        if not out.flags.writeable:
            raise InvalidUse("get: the array to get into is read-only")
        _core.get(self._core, *self._elements.described(_like(out, self.local)), peer, not nbi, out)
        return out

    def signal(self, peer: int, value: int = 1, op: str = "set") -> None:
        """Sets the element at ``peer``, or adds to it. Ordered after nothing: a fence before it orders it."""
        _core.signal(self._core, operator.index(value), op, peer)

    def wait_until(self, comparison: str, value: int) -> int:
        """Waits until this rank's element compares so (``"=="``, ``">="``, ...) with ``value``, and returns what it was
        then. What was put with what is seen is there."""
        seen: Any = _core.wait_until(self._core, comparison, operator.index(value))
        return int(seen)

    def test(self, comparison: str, value: int) -> bool:
        """Returns True when this rank's element compares so with ``value``. A loop over it fails where a wait would."""
        return _core.test(self._core, comparison, operator.index(value))

    def all_reduce(self, op: str = "sum", source: Optional[Symmetric] = None) -> None:
        """Collective: these elements become the combination of all ranks' ``source``, of which they are the one where
        nothing is said. ``op`` is ``"sum"``, ``"product"``, ``"min"``, ``"max"``, ``"bit_and"``, ``"bit_or"`` or
        ``"bit_xor"``.

        All ranks name the same elements, side by side. Values are combined in the order of the ranks, so that the result
        is the same on all of them and in every run. At return the elements may be used.

        Raises
        ------
        Mismatch
            On all ranks, when their calls differ.
        InvalidUse
            For shapes that do not fit, overlap, and types without such an operation.

        Examples
        --------
        >>> from tranship import launch
        >>> def main(world):
        ...     x = symmetric(world, 2, "i8")
        ...     x.local[:] = world.rank + 1
        ...     x.all_reduce()
        ...     return x.local.tolist()
        >>> launch(3, main)
        [[6, 6], [6, 6], [6, 6]]
        """
        self._elements.require_numbers("all_reduce")
        _core.collective("all_reduce", self._core, self._core if source is None else of_type("source", source, Symmetric)._core, op)

    def reduce_scatter(self, source: Symmetric, op: str = "sum") -> None:
        """Collective: the combination of all ranks' part ``rank`` of ``source``, which has one part for each rank."""
        self._elements.require_numbers("reduce_scatter")
        _core.collective("reduce_scatter", self._core, of_type("source", source, Symmetric)._core, op)

    def all_gather(self, source: Symmetric) -> None:
        """Collective: all ranks' ``source``, in their order."""
        _core.collective("all_gather", self._core, of_type("source", source, Symmetric)._core)

    def all_to_all(self, source: Symmetric) -> None:
        """Collective: part s is this rank's part of the ``source`` of rank s."""
        _core.collective("all_to_all", self._core, of_type("source", source, Symmetric)._core)

    def broadcast(self, root: int, source: Optional[Symmetric] = None) -> None:
        """Collective: the ``source`` of rank ``root``; these elements of it where nothing is said."""
        given = self if source is None else of_type("source", source, Symmetric)
        _core.collective("broadcast", self._core, given._core, "sum", operator.index(root))

    def _fetching(self, op: str, value: int, compare: int, peer: int) -> int:
        before: Any = _core.atomic(self._core, op, operator.index(value), operator.index(compare), peer)
        return int(before)

    def fetch(self, peer: int) -> int:
        """Atomic, as the next seven: the element at ``peer``."""
        return self._fetching("fetch", 0, 0, peer)

    def set(self, peer: int, value: int) -> None:
        """Becomes ``value``."""
        _core.atomic(self._core, "set", operator.index(value), 0, peer)

    def add(self, peer: int, value: int = 1) -> None:
        """Has ``value`` added."""
        _core.atomic(self._core, "add", operator.index(value), 0, peer)

    def fetch_add(self, peer: int, value: int = 1) -> int:
        """Has ``value`` added; returns what it was."""
        return self._fetching("fetch_add", value, 0, peer)

    def fetch_and(self, peer: int, value: int) -> int:
        """Bitwise and; returns what it was."""
        return self._fetching("fetch_and", value, 0, peer)

    def fetch_or(self, peer: int, value: int) -> int:
        """Bitwise or; returns what it was."""
        return self._fetching("fetch_or", value, 0, peer)

    def fetch_xor(self, peer: int, value: int) -> int:
        """Bitwise exclusive or; returns what it was."""
        return self._fetching("fetch_xor", value, 0, peer)

    def swap(self, peer: int, value: int) -> int:
        """Becomes ``value``; returns what it was."""
        return self._fetching("swap", value, 0, peer)

    def compare_swap(self, peer: int, expected: int, desired: int) -> int:
        """Becomes ``desired`` where it was ``expected``; returns what it was."""
        return self._fetching("compare_swap", desired, expected, peer)


def _like(data: NDArray[Any], elements: NDArray[Any]) -> NDArray[Any]:
    if data.dtype != elements.dtype or data.shape != elements.shape:
        raise Mismatch(f"{data.dtype}{list(data.shape)} and {elements.dtype}{list(elements.shape)} differ in type or shape")
    return data


def _operand(source: Union[ArrayLike, Symmetric], elements: NDArray[Any]) -> NDArray[Any]:
    if isinstance(source, Symmetric):
        return _like(source.local, elements)
    if not isinstance(source, (int, float, complex, np.generic, list, tuple)):
        if type(source) is not np.ndarray:
            refuse_mask(source)
        return _like(np.asarray(source), elements)
    number = _as_elements(np.asarray(source), elements)
    if elements.size > 4096:
        return np.broadcast_to(number, elements.shape)
    filled = np.empty(elements.shape, elements.dtype)  # sooner there than a broadcast view
    filled[...] = number
    return filled


def _as_elements(numbers: NDArray[Any], elements: NDArray[Any]) -> NDArray[Any]:
    """Python's numbers, which have no size of their own: of the same kind, and integers that fit."""
    given, wanted = numbers.dtype, elements.dtype
    if given == wanted and not numbers.ndim:
        return numbers
    are_integers = given.kind in "biu" and wanted.kind in "biu"
    if numbers.ndim and numbers.shape != elements.shape:
        return _like(numbers, elements)
    if numbers.size and not are_integers and not np.can_cast(given, wanted, "same_kind"):
        return _like(numbers, elements)
    out = numbers.astype(wanted)
    if are_integers and not np.array_equal(out, numbers):
        raise Mismatch(f"{numbers.min()} to {numbers.max()} do not fit in elements of {wanted}")
    return out


def symmetric(world: World, shape: Shape, dtype: DTypeLike = "f8") -> Symmetric:
    """Collective: an array of zeros in the symmetric heap of every rank, at the same place.

    Its memory is free for others when all ranks have released it and allocate again.

    Raises
    ------
    Mismatch, NoMemory
        On every rank.
    """
    elements = elements_of(dtype)
    extents = extents_of("an extent", shape) + elements.inside
    return Symmetric(_core.allocate_symmetric(of_type("world", world, World)._core, extents, elements.kind, len(elements.inside)), elements)
