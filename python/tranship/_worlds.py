"""Ranks: launching them, and what each of them sees of the others."""

from __future__ import annotations

import contextvars
import os
import pickle
import tempfile
from collections.abc import Callable
from typing import Any, Optional, TypeVar, overload

from . import _core
from ._errors import InvalidUse

__all__ = ["World", "current_world", "launch", "simulate"]

T = TypeVar("T")

_current: contextvars.ContextVar[Optional["World"]] = contextvars.ContextVar("tranship_world", default=None)


class World:
    """One rank's view of all ranks that run together.

    It ends with the function that :func:`launch` runs; calls after that raise :class:`InvalidUse`. Used by the thread of
    its rank. Calls marked *collective* must be made by all ranks, in the same order; they wait for all ranks until
    ``timeout``, and raise :class:`Mismatch` on every rank when the calls differ, :class:`TimeoutError`, and
    :class:`PeerLost` as soon as a rank has failed.
    """

    __slots__ = ("_core", "__weakref__")

    def __init__(self, core: _core.World) -> None:
        self._core = core

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}>"

    @property
    def rank(self) -> int:
        """This rank, from 0."""
        return self._core.rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._core.size

    @property
    def timeout(self) -> float:
        """Seconds that a wait may take; ``math.inf`` is never."""
        return self._core.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        _check_timeout(seconds)
        self._core.timeout = seconds

    def barrier(self) -> None:
        """Collective. Completes this rank's transfers and waits for all ranks: what any of them wrote or put before is
        seen by all after it."""
        self._core.barrier()

    def sync(self) -> None:
        """Collective. Waits for all ranks; puts may still be on their way."""
        self._core.sync()

    def fence(self) -> None:
        """Orders what this rank has put and updated at each peer before what comes after; completes nothing."""
        _core.fence(self._core)

    def quiet(self) -> None:
        """Completes this rank's transfers: puts are at their peers, gets and values are here."""
        _core.quiet(self._core)

    def all_gather(self, value: Any) -> list[Any]:
        """Collective: one value of each rank, in their order, on all of them. Values are pickled: for set-ups and
        results, not for arrays."""
        return [pickle.loads(b) for b in self._core.all_gather_bytes(pickle.dumps(value))]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Collective: the value of rank ``root`` on all ranks."""
        if not 0 <= root < self.size:
            raise InvalidUse(f"no root {root} in a world of {self.size} (rank {self.rank})")
        return self.all_gather(value if self.rank == root else None)[root]

    def is_reachable(self, peer: int) -> bool:
        """Whether this rank can load and store the memory of ``peer``."""
        return self._core.is_reachable(peer)

    def activity_of(self, peer: int) -> str:
        """What a rank does now, as failures report it: ``"running"``, ``"waiting for barrier ..."``."""
        return self._core.activity_of(peer)

    def has_ended(self, peer: int) -> bool:
        """Whether a rank has finished or failed."""
        return self._core.has_ended(peer)

    def split(
        self, first: int = 0, stride: int = 1, count: Optional[int] = None, *, heap_bytes: Optional[int] = None
    ) -> Optional[World]:
        """Collective: a world of the ranks ``first``, ``first + stride``, ...; ``None`` on the other ranks.

        Arrays and exchanges of the new world take part of its ranks only, which are numbered from 0. Its symmetric heap
        is a part of this one's, an eighth where ``heap_bytes`` says nothing.
        """
        if stride < 1:
            raise InvalidUse(f"ranks {stride} apart: needs 1 or more (rank {self.rank})")
        if count is None:
            count = max(0, (self.size - first + stride - 1) // stride)
        sub = self._core.split(first, stride, count, heap_bytes)
        return None if sub is None else World(sub)


def _check_timeout(seconds: Optional[float]) -> None:
    if seconds is not None and not seconds > 0:
        raise InvalidUse(f"a timeout of {seconds} s: needs more than 0")


def current_world() -> World:
    """The world of the rank that calls, inside of :func:`launch`."""
    world = _current.get()
    if world is None:
        raise InvalidUse("this is no rank: only the function that launch() runs has a world")
    return world


def _as_rank(f: Callable[[World], T], keep: Callable[[int, T], None]) -> Callable[[_core.World], None]:
    def body(core: _core.World) -> None:
        world = World(core)
        token = _current.set(world)
        try:
            keep(world.rank, f(world))
        finally:
            _current.reset(token)

    return body


@overload
def launch(n: Callable[[World], T], /) -> T: ...
@overload
def launch(
    n: int,
    f: Callable[[World], T],
    /,
    *,
    ranks: str = ...,
    timeout: Optional[float] = ...,
    heap_bytes: Optional[int] = ...,
) -> list[T]: ...
def launch(
    n: Any,
    f: Any = None,
    /,
    *,
    ranks: str = "threads",
    timeout: Optional[float] = None,
    heap_bytes: Optional[int] = None,
) -> Any:
    """Runs ``f(world)`` as so many ranks and returns what they return, in their order.

    ``launch(f)`` alone runs it as the rank that ``tranship launch -n 4 python program.py`` has started this process as
    (in a process that was started in another way, as the one rank of a world), and returns what it returns.

    Parameters
    ----------
    n
        How many.
    f
        Called with the :class:`World` of its rank.
    ranks
        ``"threads"`` of this process; ``"processes"`` that are forked from it, each with a copy of all that it has, and
        whose results are pickled; or ``"sim"``: one thread, in which transfers arrive as late as the rules allow (see
        :func:`simulate`).
    timeout
        Seconds that a wait may take: 60, or what ``TRANSHIP_TIMEOUT`` says.
    heap_bytes
        What each rank's symmetric heap may grow to.

    Raises
    ------
    Exception
        What the first rank that failed has raised: of threads and of simulated ranks the exception itself. The other
        ranks fail with :class:`PeerLost`, which names it.

    Examples
    --------
    >>> launch(3, lambda world: world.all_gather(world.rank ** 2))
    [[0, 1, 4], [0, 1, 4], [0, 1, 4]]
    """
    if callable(n):
        if f is not None:
            raise InvalidUse("launch takes a number of ranks and a function, or a function alone")
        results: dict[int, Any] = {}
        _core.launch_this(_as_rank(n, results.__setitem__))
        return next(iter(results.values()), None)
    if not callable(f):
        raise InvalidUse(f"launch needs a function that takes a World, not {f!r}")
    _check_timeout(timeout)
    if ranks == "processes":
        return _launch_processes(n, f, timeout, heap_bytes)
    results = {}
    _core.launch_ranks(n, _as_rank(f, results.__setitem__), ranks, timeout, heap_bytes, 1, False, 0)
    return [results[rank] for rank in range(n)]


def _launch_processes(
    ranks: int, f: Callable[[World], T], timeout: Optional[float], heap_bytes: Optional[int]
) -> list[T]:
    with tempfile.TemporaryDirectory(prefix="tranship-") as folder:

        def keep(rank: int, result: T) -> None:
            if result is not None:
                with open(os.path.join(folder, str(rank)), "wb") as file:
                    pickle.dump(result, file)

        _core.launch_ranks(ranks, _as_rank(f, keep), "processes", timeout, heap_bytes, 1, False, 0)

        def result_of(rank: int) -> Any:
            try:
                with open(os.path.join(folder, str(rank)), "rb") as file:
                    return pickle.load(file)
            except FileNotFoundError:
                return None

        return [result_of(rank) for rank in range(ranks)]


def simulate(
    ranks: int,
    f: Callable[[World], T],
    /,
    *,
    seed: int = 1,
    peers: str = "reachable",
    ranks_per_host: int = 0,
    timeout: Optional[float] = None,
    heap_bytes: Optional[int] = None,
) -> list[T]:
    """Runs ``f(world)`` as ranks of one thread, under a scheduler that is as unhelpful as the rules allow.

    Puts, updates and signals arrive late, in pieces and in any order that no fence, quiet or signal forbids; all of it
    follows from ``seed``. Accesses that nothing orders raise :class:`Race`, which names both places.

    Parameters
    ----------
    peers
        ``"reachable"``, or ``"messaged"``: no rank can load or store the memory of another one.
    ranks_per_host
        Where it is not 0, the world has several machines with so many ranks each.
    """
    _check_timeout(timeout)
    if peers not in ("reachable", "messaged"):
        raise InvalidUse(f"peers='{peers}': needs 'reachable' or 'messaged'")
    results: dict[int, Any] = {}
    _core.launch_ranks(
        ranks,
        _as_rank(f, results.__setitem__),
        "sim",
        timeout,
        heap_bytes,
        seed,
        peers == "messaged",
        ranks_per_host,
    )
    return [results[rank] for rank in range(ranks)]
