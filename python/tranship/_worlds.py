"""Ranks: launching them, and what each of them sees of the others."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import operator
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, NoReturn, Optional, SupportsIndex, TypeVar, Union, overload

import numpy as np
from numpy.typing import NDArray

from ._amounts import amount
from . import _core
from ._errors import Error, InvalidUse, NoMemory
from ._ground import current
from ._tracing import in_children
from ._views import as_view

__all__ = ["World", "current_world", "join", "launch", "simulate", "world_id"]

T = TypeVar("T")
Shape = Union[SupportsIndex, Sequence[SupportsIndex]]
Order = Literal["C", "F"]

class World:
    """One rank's view of all ranks that run together.

    It ends with the function that :func:`launch` runs, or with :meth:`leave` where it was joined (:func:`join`,
    :meth:`from_mpi`); calls after that raise :class:`InvalidUse`. Used by the thread of its rank. Calls marked *collective* must be made by all
    ranks, in the same order; they wait for all ranks until ``timeout``, and raise :class:`Mismatch` on every rank when the
    calls differ, :class:`TimeoutError`, and :class:`PeerLost` as soon as a rank has failed.
    """

    __slots__ = ("_core", "__weakref__")

    def __init__(self, core: _core.World) -> None:
        self._core = core

    @classmethod
    def from_mpi(cls, comm: Any, *, timeout: Optional[float] = None, heap_bytes: Optional[int] = None) -> World:
        """Collective over a communicator of mpi4py: each of its processes becomes the rank that it is there.

        Works on however many machines the processes are. Ranks that can hand each other memory share it, and all others
        exchange messages on a duplicate of the communicator, which itself stays the caller's and may be freed at once. A
        process may be in worlds of several communicators, and end them in any order, by :meth:`leave` or a ``with`` block;
        :func:`current_world` is the one of them that was joined last.

        Where MPI was initialised with ``MPI.THREAD_MULTIPLE``, as mpi4py does, a thread answers the ranks of other machines
        while this one computes. At lower levels they wait until this rank waits or makes a call. MPI is not finalised here.

        Parameters
        ----------
        comm
            A ``mpi4py.MPI.Intracomm``.
        timeout
            Seconds that the others may take to come, and that a wait may take later: 60, or what ``TRANSHIP_TIMEOUT`` says.
        heap_bytes
            What each rank's symmetric heap may grow to. Ranks that say it must say the same.

        Raises
        ------
        InvalidUse
            For ``MPI.COMM_NULL``, an intercommunicator, what is no communicator of mpi4py, and when MPI has been finalised.
        Mismatch
            On all ranks, when heaps or builds differ.
        TimeoutError
            When some do not come.
        Unsupported
            Where this build has no module for that MPI (``tranship info`` names it), and under ``tranship simulate``.
        """
        _check_timeout(timeout)
        mpi = sys.modules.get("mpi4py.MPI")
        if mpi is None or not isinstance(comm, mpi.Comm):
            raise InvalidUse(f"from_mpi takes a communicator of mpi4py, not {type(comm).__name__}")
        handle = int.from_bytes(ctypes.string_at(mpi._addressof(comm), mpi._sizeof(comm)), sys.byteorder)
        with _only_here():
            return _begin(lambda: _core.join_mpi(handle, timeout, heap_bytes))

    def __repr__(self) -> str:
        try:
            return f"<rank {self.rank} of {self.size}>"
        except InvalidUse:
            return "<a world that has ended>"

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

    def reads(self, *memory: Any) -> None:
        """This rank loads these elements, from its last wait or barrier to its next.

        Each is a view of memory, such as ``u.local[1:-1]``, or an array or a symmetric array as a whole. Where ranks are
        simulated, accesses of others to the same elements that nothing orders raise :class:`Race`; elsewhere nothing
        happens.

        Examples
        --------
        >>> import tranship as ts
        >>> def main(world):
        ...     x = ts.symmetric(world, 2)
        ...     x.put([1, 2], 1 - world.rank)
        ...     world.reads(x)  # a barrier is missing before it
        >>> try:
        ...     ts.simulate(2, main)
        ... except ts.Race as race:
        ...     print("loads" in str(race))
        True
        """
        self._touches(memory, False)

    def writes(self, *memory: Any) -> None:
        """This rank stores to these elements; as :meth:`reads`."""
        self._touches(memory, True)

    def acquires(self, variable: Any) -> None:
        """This rank has seen the value of a symmetric variable by plain loads of ``variable.local``: what was put with
        it is there, as after ``wait_until``."""
        if not hasattr(variable, "wait_until"):
            raise InvalidUse(f"acquires() takes a symmetric array, not a {type(variable).__name__}")
        _core.acquires(variable._core)

    def _touches(self, memory: tuple[Any, ...], stores: bool) -> None:
        for one in memory:
            view = as_view(getattr(one, "local", one))
            if view.size:
                address = view.__array_interface__["data"][0]
                _core.touches(self._core, address, view.itemsize, view.shape, view.strides, stores)

    def all_gather(self, value: Any) -> list[Any]:
        """Collective: one value of each rank, in their order, on all of them. Values are pickled: for set-ups and
        results, not for arrays."""
        return [pickle.loads(b) for b in self._core.all_gather_bytes(pickle.dumps(value))]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Collective: the value of rank ``root`` on all ranks."""
        if not 0 <= root < self.size:
            raise InvalidUse(f"no root {root} in a world of {self.size} (rank {self.rank})")
        return self.all_gather(value if self.rank == root else None)[root]

    def empty(self, shape: Shape, dtype: Any = "f8", order: Order = "C") -> NDArray[Any]:
        """A NumPy array of any content in memory of this rank that its peers reach, beginning on a cache line.

        Where ranks are processes, exchanges between arrays that were made from such memory (:func:`wrap`) copy straight
        from one to the other; what comes from :func:`numpy.empty` costs one more copy on either side. Takes what
        :func:`numpy.empty` takes, so it serves as an allocator of libraries that ask for one. Not collective. The memory
        is freed with the last view of it, also after the world has ended.

        Raises
        ------
        NoMemory
            Where the rank cannot get these bytes.

        Examples
        --------
        >>> import tranship as ts
        >>> def f(world):
        ...     mine = world.zeros((4, 3), "f4")
        ...     return mine.shape, float(mine.sum())
        >>> ts.launch(2, f)
        [((4, 3), 0.0), ((4, 3), 0.0)]
        """
        type_of_elements = np.dtype(dtype)
        if type_of_elements.hasobject:
            raise InvalidUse(f"elements of {type_of_elements} are addresses of objects: peers cannot use them")
        listed: Any = shape  # numbers are of no dimension, and arrays are numbers to an isinstance()
        extents = tuple(map(operator.index, listed if np.ndim(listed) else (listed,)))
        if any(extent < 0 for extent in extents):
            raise InvalidUse(f"extents {extents}: needs 0 or more (rank {self.rank})")
        count = math.prod(extents) * type_of_elements.itemsize
        if count > sys.maxsize:
            raise NoMemory(f"{amount(count, 'byte')}: an array has at most {sys.maxsize} (rank {self.rank})")
        return np.ndarray(extents, type_of_elements, self._core.reachable_bytes(count), order=order)

    def zeros(self, shape: Shape, dtype: Any = "f8", order: Order = "C") -> NDArray[Any]:
        """Like :meth:`empty`, but filled with zeros."""
        out = self.empty(shape, dtype, order)
        out[...] = np.zeros((), out.dtype)
        return out

    def is_reachable(self, peer: int) -> bool:
        """Returns True when this rank can load and store the memory of ``peer``."""
        return self._core.is_reachable(peer)

    def activity_of(self, peer: int) -> str:
        """Returns what a rank does now, as failures report it: ``"running"``, ``"waiting for barrier ..."``."""
        return self._core.activity_of(peer)

    def global_exit(self, status: int) -> NoReturn:
        """Ends all ranks, of the outermost world, with the low 8 bits of ``status``; of several calls the first counts.

        What standard streams hold is written; nothing else is cleaned up. Where ranks are threads or simulated, their one
        process ends. Other processes end when they next wait, poll, or leave the world, or are killed a quarter of a
        second later by what has launched them.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        self._core.global_exit(status)
        raise AssertionError("the process has not ended")

    def has_ended(self, peer: int) -> bool:
        """Returns True when a rank has finished or failed."""
        return self._core.has_ended(peer)

    def split(
        self, first: int = 0, stride: int = 1, count: Optional[int] = None, *, heap_bytes: Optional[int] = None
    ) -> Optional[World]:
        """Collective: a world of the ranks ``first``, ``first + stride``, ...; ``None`` on the other ranks.

        Arrays and exchanges of the new world take part of its ranks only, which are numbered from 0. Its symmetric heap
        is a part of this one's, an eighth where ``heap_bytes`` says nothing.
        """
        if stride < 1:
            raise InvalidUse(f"a stride of {stride}: needs 1 or more (rank {self.rank})")
        if count is None:
            count = max(0, (self.size - first + stride - 1) // stride)
        sub = self._core.split(first, stride, count, heap_bytes)
        return None if sub is None else World(sub)

    def leave(self) -> None:
        """Ends this rank's part in a world that it has joined (:func:`join`, :meth:`from_mpi`), and all that lives in it.

        Not collective; does not wait for other ranks, which see that this one has finished. What they still need of its
        memory must have been read: a :meth:`barrier` before says so.

        Raises
        ------
        InvalidUse
            When the world was not joined, in another thread, and when it was left.
        """
        _part_of(self).leave(None)

    def __enter__(self) -> World:
        _part_of(self)
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        """Leaves, if the block has not: as failed where an exception leaves it, other than ``SystemExit`` of 0."""
        if any(part.world is self for part in _parts):
            ends_well = isinstance(exception, SystemExit) and not exception.code
            _part_of(self).leave(None if ends_well else exception)


def _check_timeout(seconds: Optional[float]) -> None:
    if seconds is not None and not seconds > 0:
        raise InvalidUse(f"a timeout of {seconds} s: needs more than 0")


def current_world() -> World:
    """The world of the rank that calls: inside of :func:`launch`, or from :func:`join` or :meth:`World.from_mpi` until it
    leaves."""
    world: Optional[World] = current.get()
    if world is None:
        raise InvalidUse("this is no rank: a world is what launch() gives to its function, or what join() returns")
    return world


class _Part(NamedTuple):
    """The world that this process has joined."""

    world: World
    thread: threading.Thread
    uncaught_before: Optional[BaseException]

    def leave(self, exception: Optional[BaseException]) -> None:
        _parts.remove(self)
        left = next((part.world for part in reversed(_parts) if part.thread is self.thread), None)
        if current.get() is self.world:
            current.set(left)
        _core.leave(self.world._core, exception, -1 if left is None else left.rank)


_parts: list[_Part] = []  # the last one that was joined last
_joining = threading.Lock()


def _part_of(world: World) -> _Part:
    part = next((part for part in _parts if part.world is world), None)
    if part is None:
        raise InvalidUse("the rank has left this world, or has not joined it: launch() ends the worlds that it gives")
    if part.thread is not threading.current_thread():
        raise InvalidUse(f"the thread '{part.thread.name}' has joined this world: it is the one to leave it")
    return part


def _last_uncaught() -> Optional[BaseException]:
    # The interpreter keeps what it has reported as uncaught, by one name or the other in different versions.
    exception: Optional[BaseException] = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return exception


def _leave_at_exit() -> None:
    for part in reversed(_parts.copy()):
        if part.thread is not threading.current_thread() and part.thread.is_alive():
            continue  # a daemon is still at work in it; the others learn that this process has ended
        is_interactive = bool(sys.flags.interactive) or hasattr(sys, "ps1")
        uncaught = None if is_interactive else _last_uncaught()
        part.leave(None if uncaught is part.uncaught_before else uncaught)


def _forget_in_child() -> None:
    if any(current.get() is part.world for part in _parts):
        current.set(None)
    _parts.clear()


atexit.register(_leave_at_exit)
atexit.register(_core.end_launches)
os.register_at_fork(after_in_child=_forget_in_child)


def world_id() -> bytes:
    """A new id of a world, 64 bytes, for :func:`join`.

    The program brings it to the other ranks: by a broadcast of MPI, a file, a pipe, or as text (``id.hex()``) in an
    argument. The process that makes it must be one of the ranks, and answers the others once it joins itself.

    Examples
    --------
    >>> with join(world_id(), 0, 1) as world:
    ...     world.all_gather(world.rank)
    [0]
    """
    return _core.world_id()


def join(
    id: Optional[bytes] = None,
    rank: Optional[int] = None,
    size: Optional[int] = None,
    *,
    timeout: Optional[float] = None,
    heap_bytes: Optional[int] = None,
) -> World:
    """Makes this process a rank until it leaves (:meth:`World.leave`), or until the end of a ``with`` block.

    With an id, processes of one machine that were started apart join one world; all of them return when all have
    joined. Without one, the process joins what ``tranship launch`` has started it for, or is the one rank of a world.

    A process is a rank of one world at a time, and may join another one by another id when it has left. One that ends
    normally without leaving leaves as finished, and one that ends by an uncaught exception as failed, which the others
    see at once. ``sys.exit`` with any code, and the end of an interactive session, count as normal here: a program that
    fails by ``sys.exit(1)`` says so by a ``with`` block around it. A process that is killed, or ends by ``os._exit``,
    is named to the others as soon as it is gone. Children that a rank forks are no ranks.

    A thread of the process, which sleeps and runs no Python, watches the other ranks until this one leaves.

    Parameters
    ----------
    id
        What :func:`world_id` has returned in one of the processes.
    rank, size
        Which rank this process is, and of how many. Only with an id.
    timeout
        Seconds in which all must have joined, and that a wait may take later: 60, or what ``TRANSHIP_TIMEOUT`` says. The
        shortest of all ranks holds for joining.
    heap_bytes
        What each rank's symmetric heap may grow to. Ranks that say it must say the same. Only with an id.

    Raises
    ------
    TimeoutError
        Names the ranks that have not joined.
    Mismatch
        On all ranks, when two processes name one rank, or sizes, heaps or builds differ; on this one for an id of
        another machine, container or user.
    PeerLost
        When a process that has joined, or has made the id, is gone.
    InvalidUse
        For an id that was used before, and in a process that is a rank already.
    Unsupported
        Under ``tranship simulate``, which runs a function many times: that takes :func:`launch`. Without an id, in a
        process that ``srun`` without ``--mpi`` has started as one of several, or an MPI without a module, unless
        ``TRANSHIP_SEPARATE_WORLDS=1`` lets each of them be a world of its own.

    Examples
    --------
    >>> world = join()
    >>> current_world() is world
    True
    >>> world.leave()
    """
    with _only_here():
        already = current.get() or (_parts[-1].world if _parts else None)
        if already is not None:
            raise InvalidUse(f"this process is rank {already.rank} of a world of {already.size}, and has not left it")
        _check_timeout(timeout)
        if id is None:
            if rank is not None or size is not None or heap_bytes is not None:
                said = f"rank={rank}, size={size}, heap_bytes={heap_bytes}"
                raise InvalidUse(f"{said}: needs an id; tranship launch has its own")
            rank, size = 0, 1
        elif rank is None or size is None:
            raise InvalidUse(f"rank={rank}, size={size}: an id needs both")
        return _begin(lambda: _core.join(id, rank, size, timeout, heap_bytes))


@contextlib.contextmanager
def _only_here() -> Iterator[None]:
    if not _joining.acquire(blocking=False):
        raise InvalidUse("another thread of this process is joining a world")
    try:
        yield
    finally:
        _joining.release()


def _begin(join_core: Callable[[], _core.World]) -> World:
    uncaught_before = _last_uncaught()
    world = World(join_core())
    _parts.append(_Part(world, threading.current_thread(), uncaught_before))
    current.set(world)
    return world


def _as_rank(f: Callable[[World], T], keep: Callable[[int, T], None]) -> Callable[[_core.World], None]:
    def body(core: _core.World) -> None:
        world = World(core)
        token = current.set(world)
        try:
            keep(world.rank, f(world))
        finally:
            current.reset(token)

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
    teams_max: Optional[int] = ...,
) -> list[T]: ...
def launch(
    n: Any,
    f: Any = None,
    /,
    *,
    ranks: str = "threads",
    timeout: Optional[float] = None,
    heap_bytes: Optional[int] = None,
    teams_max: Optional[int] = None,
) -> Any:
    """Runs ``f(world)`` as ``ranks`` ranks and returns what they return, in their order.

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
    teams_max
        How many teams can exist at a time, those of :meth:`World.split` among them: 64, or what ``TRANSHIP_TEAMS`` says.

    Raises
    ------
    Exception
        What the first rank that failed has raised: of threads and of simulated ranks the exception itself. The other
        ranks fail with :class:`PeerLost`, which names it.
    Unsupported
        Without a number of ranks, in a process that ``srun`` without ``--mpi`` has started as one of several: ``launch(1, f)``
        makes each of them a world of its own.

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
        return _launch_processes(n, f, timeout, heap_bytes, teams_max)
    results = {}
    keep = _as_rank(f, results.__setitem__)
    _core.launch_ranks(n, keep, ranks, timeout, heap_bytes, teams_max, 1, False, 0)
    return [results[rank] for rank in range(n)]


def _launch_processes(
    ranks: int,
    f: Callable[[World], T],
    timeout: Optional[float],
    heap_bytes: Optional[int],
    teams_max: Optional[int],
) -> list[T]:
    with tempfile.TemporaryDirectory(prefix="tranship-") as folder:

        def keep(rank: int, result: T) -> None:
            if result is not None:
                with open(os.path.join(folder, str(rank)), "wb") as file:
                    pickle.dump(result, file)

        run = in_children(_as_rank(f, keep))
        _core.launch_ranks(ranks, run, "processes", timeout, heap_bytes, teams_max, 1, False, 0)

        def result_of(rank: int) -> Any:
            try:
                with open(os.path.join(folder, str(rank)), "rb") as file:
                    return pickle.load(file)
            except FileNotFoundError:
                return None

        return [result_of(rank) for rank in range(ranks)]


def _say(error: Exception, what: str) -> None:
    """Adds to the text of an error of tranship, and as a note to one of the program's own, whose arguments are its own."""
    if isinstance(error, Error):
        if what not in str(error):
            error.args = (f"{error.args[0] if error.args else ''}; {what}", *error.args[1:])
    elif hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(what)


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
    follows from ``seed``, which the text of each error names, and from Python 3.11 on a note of each exception of the
    program's own. Accesses that nothing orders raise :class:`Race`, which names both places.

    Parameters
    ----------
    peers
        ``"reachable"``, or ``"messaged"``: no rank can load or store the memory of another one.
    ranks_per_host
        Where it is not 0, the world has several machines with this many ranks each.
    """
    _check_timeout(timeout)
    if peers not in ("reachable", "messaged"):
        raise InvalidUse(f"peers='{peers}': needs 'reachable' or 'messaged'")
    if not 0 <= seed < 2**64:
        raise InvalidUse(f"seed={seed}: needs 0 to {2**64 - 1}")
    results: dict[int, Any] = {}
    try:
        _core.launch_ranks(
            ranks,
            _as_rank(f, results.__setitem__),
            "sim",
            timeout,
            heap_bytes,
            None,
            seed,
            peers == "messaged",
            ranks_per_host,
        )
    except Exception as error:
        _say(error, f"simulated with seed {seed}")
        raise
    return [results[rank] for rank in range(ranks)]
