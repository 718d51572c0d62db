"""Traces: what exchanges and copies did, on one clock, for Perfetto and chrome://tracing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional, Protocol, TypeVar, Union

from ._amounts import amount
from . import _core
from ._errors import InvalidUse
from ._ground import current
from ._core import Devices as CoreDevices
from ._core import human_bytes
from ._pictures import line, table

__all__ = ["Trace", "tracing"]

Event = dict[str, Any]
T = TypeVar("T")


class Devices(Protocol):
    """The part of :class:`tranship.Devices` that this module uses."""

    @property
    def _core(self) -> CoreDevices: ...


def _launch_id() -> Optional[str]:
    """Returns an id that only the processes of one ``tranship launch`` share."""
    started = os.environ.get("TRANSHIP_WORLD", "").split()
    try:
        return f"{os.getppid()}-{os.fstat(int(started[0])).st_ino}" if started else None
    except (OSError, ValueError):
        return None


# Joining the world takes the variable out of the environment: it is read before that.
_launched_by = _launch_id()

_open: Optional[Trace] = None
_devices: weakref.WeakSet[Devices] = weakref.WeakSet()


def note_devices(devices: Devices) -> None:
    """Devices that a trace may show: those that exist when it begins, and those that are made meanwhile."""
    _devices.add(devices)
    if _open is not None:
        _open._keep(devices)


class Trace:
    """The events that :func:`tracing` has recorded, in the Trace Event Format.

    Processes of the trace are ranks. Each has a track for the calls of exchanges (``start``, ``finish``), one for the
    exchanges in flight, one for each peer and direction with the messages, from the start of the exchange until this
    rank saw them done, and one for each pair of memories with the copies between them. What a slice is about stands in
    its ``args``: bytes, ways, causes and call sites. Frames of pipes, barriers, puts and gets, signals, collective
    operations and plans of programs are not recorded.
    """

    def __init__(self) -> None:
        self._recording: Optional[_core.Recording] = None
        self._events: list[Event] = []
        self._left_out = 0
        self._kept: list[tuple[Optional[int], Devices]] = []
        self._lock = threading.Lock()
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self._rank: Optional[int] = None  # of a child that was forked as one

    def _begin(self) -> None:
        global _open
        self._recording = _core.Recording()
        for devices in list(_devices):
            self._keep(devices)
        _open = self

    def _end(self) -> None:
        global _open
        if self._recording is None:
            return
        _open = None
        self._events = self._recorded()
        self._left_out += self._recording.left_out
        self._recording = None
        self._kept = []
        if self._folder is not None:
            for entry in sorted(os.listdir(self._folder.name)):
                with open(os.path.join(self._folder.name, entry), encoding="utf-8") as file:
                    part = json.load(file)
                self._events += part["traceEvents"]
                self._left_out += part["otherData"]["exchanges_left_out"]
            self._folder.cleanup()
            self._folder = None

    def _recorded(self) -> list[Event]:
        assert self._recording is not None
        with self._lock:
            kept = [(rank if self._rank is None else self._rank, devices._core) for rank, devices in self._kept]
        events: list[Event] = json.loads(self._recording.events(kept))
        return events

    def _keep(self, devices: Devices) -> None:
        world = current.get()
        try:
            rank = None if world is None else world._core.launched_rank
        except InvalidUse:
            rank = None
        with self._lock:
            if all(one is not devices for _, one in self._kept):
                self._kept.append((rank, devices))

    def _as_child(self, rank: int, body: Callable[[], T]) -> T:
        """Runs a rank in a process of its own, which brings what it has recorded to the folder of the trace."""
        assert self._recording is not None and self._folder is not None
        self._recording.restart()
        self._rank = rank
        try:
            return body()
        finally:
            part = {"traceEvents": self._recorded(), "otherData": {"exchanges_left_out": self._recording.left_out}}
            _write(os.path.join(self._folder.name, f"{os.getpid()}.json"), part)

    @property
    def events(self) -> list[Event]:
        """All events, once the block has ended. Times are microseconds of the machine's monotonic clock."""
        return self._events

    @property
    def slices(self) -> list[Event]:
        """Those that last: calls, exchanges, messages and copies, by their begin."""
        return sorted((e for e in self._events if e["ph"] == "X"), key=lambda e: float(e["ts"]))

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the trace; Perfetto (ui.perfetto.dev) and chrome://tracing open it.

        Of processes that ``tranship launch`` has started, each adds its part to one file, in whatever order they end.
        """
        path = os.fspath(path)
        events, left_out = self._events, self._left_out
        with _locked(os.path.dirname(os.path.abspath(path))):
            before = _trace_of_this_launch(path)
            if before is not None:
                events = before["traceEvents"] + events
                left_out += before["otherData"]["exchanges_left_out"]
            other = {"exchanges_left_out": left_out, "launched_by": _launched_by}
            _write(path, {"displayTimeUnit": "ns", "traceEvents": events, "otherData": other})

    def __repr__(self) -> str:
        if self._recording is not None:
            return "<trace that is being recorded>"
        return f"<trace of {amount(len(self._names()), 'rank')}, {amount(len(self.slices), 'slice')}>"

    def _names(self) -> dict[int, str]:
        names = {e["pid"]: str(e["args"]["name"]) for e in self._events if e["name"] == "process_name"}
        return dict(sorted(names.items()))

    def _waits(self) -> list[tuple[int, int, float]]:
        """Who waited for whom: in one run of an exchange, from the call of finish to the start of the last of the peers.

        A rank, the peer that began last, and microseconds; one entry for each run in which a rank waited.
        """
        runs: dict[tuple[Any, ...], dict[int, Event]] = {}
        counts: dict[tuple[Any, ...], int] = {}
        peers: dict[tuple[int, str, int], set[int]] = {}
        finishes: dict[tuple[int, str, int], list[Event]] = {}
        for e in self.slices:
            if e["cat"] != "exchange":
                continue
            rank, args = int(e["pid"]), e["args"]
            of_rank = (rank, str(args["exchange"]), int(args["epoch"]))
            if "received_bytes" in args:  # the run as a whole: the same one of each rank, made at one place
                name = (*of_rank[1:], args["made_at"])
                number = counts[rank, name] = counts.get((rank, name), -1) + 1
                runs.setdefault((*name, number), {})[rank] = e
            elif "source" in args:
                peers.setdefault(of_rank, set()).update({int(args["source"]), int(args["target"])} - {rank})
            elif e["name"] == "finish":
                finishes.setdefault(of_rank, []).append(e)
        found = []
        for ranks in runs.values():
            for rank, run in ranks.items():
                of_rank = (rank, str(run["args"]["exchange"]), int(run["args"]["epoch"]))
                begun = [(float(ranks[peer]["ts"]), peer) for peer in peers.get(of_rank, ()) if peer in ranks]
                end = float(run["ts"]) + float(run["dur"])
                within = [e for e in finishes.get(of_rank, ()) if run["ts"] <= e["ts"] <= end]
                if begun and within:
                    last, peer = max(begun)
                    waited = min(last, end) - float(within[0]["ts"])
                    if waited > 0:
                        found.append((rank, peer, waited))
        return found

    def _repr_html_(self) -> str:
        if self._recording is not None:
            return line("a trace that is being recorded: it is complete when the block ends")
        rows = []
        waits = self._waits()
        for process, name in self._names().items():
            mine = [e for e in self.slices if e["pid"] == process]
            calls = sum(e["dur"] for e in mine if e["name"] in ("start", "finish") and e["cat"] == "exchange")
            exchanges = [e for e in mine if "received_bytes" in e["args"]]
            copies = [e for e in mine if e["cat"] != "exchange"]
            waited = sum(time for rank, _, time in waits if rank == process)
            late = sum(time for _, peer, time in waits if peer == process)
            rows.append(
                [name, len(exchanges), human_bytes(sum(e["args"]["received_bytes"] for e in exchanges))]
                + [human_bytes(sum(e["args"]["sent_bytes"] for e in exchanges)), f"{(calls - waited) / 1000:.3f} ms"]
                + [f"{waited / 1000:.3f} ms", f"{late / 1000:.3f} ms"]
                + [len(copies), human_bytes(sum(e["args"]["bytes"] for e in copies))]
            )
        heads = ["", "exchanges", "received", "sent", "at work in start and finish"]
        heads += ["waiting for late peers", "peers waited for it", "copies", "bytes"]
        return table(heads, rows) if rows else line("a trace of nothing: no exchange ran and nothing was copied")


def _write(path: str, document: dict[str, Any]) -> None:
    """Complete or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, part = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Processes of one launch write one after the other. The lock goes with its holder, however that ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _launched_by is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _trace_of_this_launch(path: str) -> Optional[dict[str, Any]]:
    if _launched_by is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found if found["otherData"]["launched_by"] == _launched_by else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # there is none, or something else, which is written over


@contextlib.contextmanager
def tracing(path: Union[None, str, os.PathLike[str]] = None) -> Iterator[Trace]:
    """Records what exchanges and copies between memories do in this process while the block runs.

    Also those of ranks that are launched in the block, be they threads, simulated, or processes that are forked: these
    add what they have recorded when they end. One trace is recorded at a time. Without one, an exchange pays for one
    load; with one, for some clock readings and a record. The first 262,144 slices are kept; the file says how many
    exchanges came after them.

    Parameters
    ----------
    path
        Where to :meth:`~Trace.save` it when the block ends, also by an exception.

    Raises
    ------
    InvalidUse
        While another trace is being recorded.

    Examples
    --------
    >>> import tranship as ts
    >>> def main(world):
    ...     d = ts.distribution((8, 8), grid=(2, 1), overlap=1, edge="toroidal")
    ...     ts.halo(ts.array(world, d, name="u"))()
    >>> with tracing() as trace:
    ...     _ = ts.launch(2, main)
    >>> sorted({e["name"] for e in trace.slices if e["pid"] == 0} & {"halo of u", "160 B"})
    ['160 B', 'halo of u']
    """
    trace = Trace()
    trace._begin()
    try:
        yield trace
    finally:
        trace._end()
        if path is not None:
            trace.save(path)


def in_children(body: Callable[[_core.World], None]) -> Callable[[_core.World], None]:
    """The body of ranks that are forked: where a trace is recorded, they add to it."""
    trace = _open
    if trace is None:
        return body
    if trace._folder is None:
        trace._folder = tempfile.TemporaryDirectory(prefix="tranship-trace-")
    return lambda core: trace._as_child(core.rank, lambda: body(core))
