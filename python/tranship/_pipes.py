"""Streams of arrays from one group of ranks to another."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Union

from numpy.typing import DTypeLike

from . import _core
from ._arrays import Array, _cores, array, require_alike
from ._core import ArraySpec, Distribution
from ._elements import elements_of
from ._errors import of_type
from ._worlds import World

__all__ = ["Pipe", "PipeEnd"]

Side = Union[Distribution, ArraySpec, list[Array], None]


class PipeEnd:
    """One side of a :class:`Pipe` on one rank: ``pipe.sender`` or ``pipe.receiver``.

    Its buffers rotate first in, first out. ``with end as buffer:`` gets one, and puts it at the end of the block unless
    the block raises.
    """

    __slots__ = ("_arrays", "_core", "_sends")

    def __init__(self, core: _core.Pipe, sends: bool, arrays: list[Array]) -> None:
        self._core = core
        self._sends = sends
        self._arrays = arrays

    @property
    def buffers(self) -> list[Array]:
        """All buffers of this side, in the order of the rotation. Those that are not held belong to the pipe."""
        return list(self._arrays)

    @property
    def held(self) -> int:
        """How many buffers the program holds: got and not put."""
        return self._core.held(self._sends)

    def get(self) -> Array:
        """The next buffer. Of the sender, waits until it is empty; of the receiver, until it is full.

        Raises
        ------
        InvalidUse
            When the program holds all buffers.
        Timeout, PeerLost
            They say who waits on whom.
        """
        return self._arrays[self._core.get(self._sends)]

    def test_get(self) -> Optional[Array]:
        """Like ``get``, but returns None where ``get`` would wait."""
        number = self._core.test_get(self._sends)
        return None if number is None else self._arrays[number]

    def put(self) -> None:
        """Gives back the buffer that is held longest: of the sender it is launched, of the receiver it may be
        overwritten. Never waits.

        Raises
        ------
        InvalidUse
            Where the program holds no buffer.
        """
        self._core.put(self._sends)

    def drain(self) -> None:
        """Waits, on the sender, until all that was put has left this rank; returns at once on the receiver."""
        if self._sends:
            self._core.drain()

    def test_drained(self) -> bool:
        """Returns True when ``drain`` would return at once."""
        return self._core.test_drained() if self._sends else True

    def __enter__(self) -> Array:
        return self.get()

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.put()


class Pipe:
    """A stream of arrays from the ranks of one distribution to those of another, planned once, with several buffers.

    The groups may be disjoint, overlap, or be the same. Frame k that the senders put is frame k that the receivers get; a
    sender runs ahead by the buffers of both sides. Making a pipe is collective over the world.

    Parameters
    ----------
    source, target
        The distributions of the two sides, over ranks of this world; or this rank's buffers, a list of arrays; or None
        for a side that the rank is not in and does not know.
    dtype
        Of the elements, where distributions do not say.
    buffers
        How many each side has, where they are not given: one number, or a pair ``(source, target)``.
    schedule
        As for :class:`Redistribution`.

    Raises
    ------
    Mismatch
        On all ranks, where they give different distributions or numbers of buffers, or extents or elements differ.
    InvalidUse
        For numbers of buffers out of range, and arrays that share memory or are read-only targets.

    Examples
    --------
    >>> import tranship as ts
    >>> def main(world):
    ...     rows = ts.distribution((4, 6), grid=ts.grid(1, 1, ranks=[0]))
    ...     columns = ts.distribution((4, 6), grid=ts.grid(1, 2, ranks=[1, 2]))
    ...     pipe = ts.Pipe(world, rows, columns, buffers=2)
    ...     sums = []
    ...     for frame in range(3):
    ...         if pipe.sends:
    ...             with pipe.sender as out:
    ...                 out.fill(lambda i, j: 100 * frame + i)
    ...         if pipe.receives:
    ...             with pipe.receiver as got:
    ...                 sums.append(float(got.local.sum()))
    ...     if pipe.sends:
    ...         pipe.sender.drain()
    ...     return sums
    >>> ts.launch(3, main)
    [[], [18.0, 1218.0, 2418.0], [18.0, 1218.0, 2418.0]]
    """

    __slots__ = ("_core", "_receiver", "_sender")

    def __init__(
        self,
        world: World,
        source: Side,
        target: Side,
        *,
        dtype: DTypeLike = "f8",
        buffers: Union[int, tuple[int, int]] = 2,
        schedule: str = "automatic",
        name: str = "pipe",
    ) -> None:
        counts = (buffers, buffers) if isinstance(buffers, int) else buffers
        specs: list[Optional[ArraySpec]] = []
        arrays: list[list[Array]] = []
        for side, count in zip((source, target), counts):
            if isinstance(side, list):
                arrays.append(side)
                specs.append(side[0].spec if side else None)
                continue
            specs.append(elements_of(dtype).spec(side) if isinstance(side, Distribution) else side)
            arrays.append([] if side is None else [array(world, side, dtype, name) for _ in range(count)])
        cores = [_cores(*side) for side in arrays]
        given = arrays[0] + arrays[1]
        for other in given[1:]:
            require_alike(given[0], other)
        self._core = _core.make_pipe(
            of_type("world", world, World)._core,
            specs[0],
            specs[1],
            *cores,
            schedule,
            name,
        )
        self._sender = PipeEnd(self._core, True, arrays[0])
        self._receiver = PipeEnd(self._core, False, arrays[1])

    @property
    def sends(self) -> bool:
        """True when this rank is one of the senders."""
        return self._core.sends

    @property
    def receives(self) -> bool:
        """True when this rank is one of the receivers."""
        return self._core.receives

    @property
    def sender(self) -> PipeEnd:
        """The end of a sender; its calls raise InvalidUse on other ranks."""
        return self._sender

    @property
    def receiver(self) -> PipeEnd:
        """The end of a receiver; its calls raise InvalidUse on other ranks."""
        return self._receiver

    @property
    def source(self) -> ArraySpec:
        """The layout of the senders, as all ranks know it now."""
        return self._core.source

    @property
    def target(self) -> ArraySpec:
        """The layout of the receivers."""
        return self._core.target

    def explain(self) -> str:
        """How this rank moves one frame: messages, bytes, lengths of runs."""
        return self._core.explain()

    def close(self) -> None:
        """Ends the pipe on this rank. What was put and not drained may be lost; its arrays stay."""
        self._core.close()
