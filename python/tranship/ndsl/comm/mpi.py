"""Ranks of mpi4py. The module is imported when the first communicator is made."""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Optional, TypeVar

import numpy as np

from ..._amounts import amount
from ..._errors import TimeoutError as TranshipTimeoutError
from .._errors import HaloMismatch, HaloUnsupported, HaloValueError
from .comm_abc import Comm, ReductionOperator, Request
from .local_comm import combined

__all__ = ["MPIComm", "default_timeout"]

T = TypeVar("T")

_POLLS_BEFORE_YIELD = 64
_REFUSAL_TAG = 32767  # the highest that every MPI has; halo updates use those below
_REFUSALS_KEPT = 256
_abandoned: dict[int, tuple[Any, Any]] = {}  # requests that are not waited for, with the memory that they use
_abandonments = itertools.count()
_refusals: dict[tuple[int, int, tuple[int, ...]], str] = {}  # by communicator, rank and update


def default_timeout() -> float:
    """Seconds that a wait may take: 60, or what ``TRANSHIP_TIMEOUT`` says."""
    text = os.environ.get("TRANSHIP_TIMEOUT", "")
    try:
        seconds = float(text) if text else 60.0
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise HaloValueError(f"TRANSHIP_TIMEOUT={text}: needs a number of seconds above 0")
    return seconds


class _Message(Request):
    """A message of MPI on its way, which is waited for with a deadline. Has the methods of mpi4py's requests, too.

    ``nbytes`` is what must arrive, or None for a message that is sent; ``what`` names it.
    """

    def __init__(self, comm: MPIComm[Any], request: Any, buffer: Any, nbytes: Optional[int], what: str) -> None:
        self._comm = comm
        self.request = request
        self._buffer = buffer  # which MPI reads or writes
        self.nbytes = nbytes
        self.what = what

    def wait(self) -> None:
        """Returns when the message has arrived, or was taken over.

        Raises
        ------
        TimeoutError
            After the communicator's ``timeout``.
        RuntimeError
            For a message of another size than its buffer.
        """
        self._comm.wait_any([self], self.what)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)

    def __del__(self) -> None:
        # MPI still reads or writes the buffer of a message that was given up, by an update that failed.
        if self.request and not self._comm._mpi.Is_finalized():
            if self.nbytes is not None:
                self.request.Cancel()
            _keep_until_done(self.request, self._buffer)


def _keep_until_done(request: Any, buffer: Any) -> None:
    _abandoned[next(_abandonments)] = (request, buffer)
    for number in list(_abandoned):  # another one may come or go meanwhile, by the collector of garbage
        kept = _abandoned.get(number)
        if kept is not None and kept[0].Test():
            _abandoned.pop(number, None)


class MPIComm(Comm[T]):
    """Ranks of mpi4py.

    Parameters
    ----------
    comm
        A communicator of mpi4py; ``MPI.COMM_WORLD`` where nothing is said.
    timeout
        Seconds that a halo update may wait for a message, and a collective for other ranks: 60, or what
        ``TRANSHIP_TIMEOUT`` says. (``Send``, ``Recv``, ``sendrecv`` and ``Split`` are MPI's own, and wait for ever.)

    Messages with the tag 32767 are this package's own.

    Raises
    ------
    NotImplementedError
        Where mpi4py is not installed.
    """

    def __init__(self, comm: Any = None, timeout: Optional[float] = None) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise HaloUnsupported(f"MPIComm needs mpi4py, which cannot be imported: {error}") from None
        self._mpi = MPI
        self._comm = MPI.COMM_WORLD if comm is None else comm
        self.timeout = default_timeout() if timeout is None else timeout
        self._status = MPI.Status()

    def Get_rank(self) -> int:
        """This rank."""
        return int(self._comm.Get_rank())

    def Get_size(self) -> int:
        """How many ranks there are."""
        return int(self._comm.Get_size())

    def _finish(self, request: Any, memory: Any, what: str) -> None:
        """Waits for a collective, with the deadline."""
        _Message(self, request, memory, None, what).wait()

    def bcast(self, value: Optional[T], root: int = 0) -> Optional[T]:
        """Collective: the object of ``root``."""
        what = f"a broadcast of rank {root}"
        is_root = self.Get_rank() == root
        data = self._mpi.pickle.dumps(value) if is_root else b""
        length = np.array([len(data)], np.int64)
        self._finish(self._comm.Ibcast(length, root=root), length, what)
        memory = np.frombuffer(data, np.uint8).copy() if is_root else np.empty(int(length[0]), np.uint8)
        self._finish(self._comm.Ibcast(memory, root=root), memory, what)
        out: Optional[T] = value if is_root else self._mpi.pickle.loads(memory.tobytes())
        return out

    def barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self._finish(self._comm.Ibarrier(), None, "a barrier")

    def Barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self.barrier()

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the n-th part of the buffer of ``root`` goes to rank n."""
        memory = _wire(sendbuf), _wire(recvbuf)
        self._finish(self._comm.Iscatter(*memory, root=root, **kwargs), memory, f"a scatter of rank {root}")

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the buffer of rank n becomes the n-th part of that of ``root``."""
        memory = _wire(sendbuf), _wire(recvbuf)
        self._finish(self._comm.Igather(*memory, root=root, **kwargs), memory, f"a gather to rank {root}")

    def allgather(self, sendobj: T) -> list[T]:
        """Collective: an object of each rank, in their order."""
        what = "an allgather"
        data = np.frombuffer(self._mpi.pickle.dumps(sendobj), np.uint8)
        mine, lengths = np.array([data.size], np.int64), np.empty(self.Get_size(), np.int64)
        self._finish(self._comm.Iallgather(mine, lengths), (mine, lengths), what)
        ends = np.cumsum(lengths)
        memory = np.empty(int(ends[-1]), np.uint8)
        layout = [memory, lengths.tolist(), (ends - lengths).tolist(), self._mpi.BYTE]
        self._finish(self._comm.Iallgatherv([data, self._mpi.BYTE], layout), (data, memory, layout), what)
        return [self._mpi.pickle.loads(memory[end - n : end].tobytes()) for n, end in zip(lengths, ends)]

    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> None:
        """Sends a buffer; it may be used again when the call returns."""
        self._comm.Send(_wire(sendbuf), dest, tag=tag, **kwargs)

    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Sends an object, and returns the one that is received."""
        return self._comm.sendrecv(sendbuf, dest, **kwargs)

    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Any:
        """Sends a buffer, which may be used again when the request has been waited for."""
        wire = _wire(sendbuf)
        request = self._comm.Isend(wire, dest, tag=tag, **kwargs)
        return _Message(self, request, wire, None, f"the receipt of a message by rank {dest} (tag {tag})")

    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> None:
        """Receives into a buffer."""
        self._comm.Recv(_wire(recvbuf), source, tag=tag, **kwargs)

    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Any:
        """Receives into a buffer, which is filled when the request has been waited for."""
        wire = _wire(recvbuf)
        request = self._comm.Irecv(wire, source, tag=tag, **kwargs)
        return _Message(self, request, wire, getattr(wire, "nbytes", None), f"a message of rank {source} (tag {tag})")

    def wait_any(self, requests: Sequence[Any], what: str = "a message", update: Optional[Sequence[int]] = None) -> int:
        """The index of a request that is done, as soon as one is.

        Parameters
        ----------
        requests
            What :meth:`Isend` and :meth:`Irecv` have returned.
        what
            For messages of errors.
        update
            What :meth:`refuse` calls the update of these requests.

        Raises
        ------
        TimeoutError
            After ``timeout`` seconds; the message has ``what``.
        RuntimeError
            For a message of another size than its buffer, and where a rank has refused the update.
        """
        end = time.monotonic() + self.timeout
        polls = 0
        messages = list(requests)
        pending = [message.request for message in messages]
        status = self._status
        while True:
            try:
                index, done = self._mpi.Request.Testany(pending, status)
            except self._mpi.Exception as error:
                if error.Get_error_class() != self._mpi.ERR_TRUNCATE:
                    raise
                raise HaloMismatch(f"{what}: a message is longer than its buffer, on rank {self.Get_rank()}") from None
            if done:
                expected = messages[index].nbytes if index >= 0 else None
                if expected is not None:
                    arrived = status.Get_count(self._mpi.BYTE)
                    if arrived != expected:
                        raise HaloMismatch(
                            f"{what}: a message of {amount(arrived, 'byte')} from rank {status.Get_source()} for a "
                            f"buffer of {expected}, on rank {self.Get_rank()}"
                        )
                return int(index)
            polls += 1
            if polls > _POLLS_BEFORE_YIELD:
                if polls % _POLLS_BEFORE_YIELD == 1:
                    self._check_refusals(what, update)
                os.sched_yield()
                if time.monotonic() > end:
                    raise TranshipTimeoutError(f"{what}: none in {self.timeout} s (rank {self.Get_rank()})")

    def refuse(self, ranks: Iterable[int], update: Sequence[int], error: Exception) -> None:
        """Tells other ranks that this one takes no part in an update, so that they do not wait for it until their
        deadline: their :meth:`wait_any` raises, if it was given an equal ``update``. Returns at once."""
        text = json.dumps([list(update), f"{type(error).__name__}: {error}"]).encode()
        for rank in sorted(ranks):
            if rank != self.Get_rank():
                request = self._comm.Isend([text, self._mpi.BYTE], rank, tag=_REFUSAL_TAG)
                _keep_until_done(request, text)

    def _check_refusals(self, what: str, update: Optional[Sequence[int]]) -> None:
        status = self._mpi.Status()
        mine = self._comm.py2f()
        while self._comm.Iprobe(source=self._mpi.ANY_SOURCE, tag=_REFUSAL_TAG, status=status):
            text = bytearray(status.Get_count(self._mpi.BYTE))
            source = status.Get_source()
            self._comm.Recv([text, self._mpi.BYTE], source=source, tag=_REFUSAL_TAG)
            refused, error = json.loads(bytes(text))
            _refusals[mine, source, tuple(refused)] = error
        while len(_refusals) > _REFUSALS_KEPT:
            _refusals.pop(next(iter(_refusals)))
        for (comm, rank, refused), error in _refusals.items():
            if update is not None and comm == mine and refused == tuple(update):
                raise HaloMismatch(f"{what}: rank {rank} has refused this update: {error}")

    def Split(self, color: Any, key: Any) -> MPIComm[T]:
        """Collective: a communicator of the ranks with the same color, in the order of their keys."""
        return MPIComm(self._comm.Split(color, key), self.timeout)

    def _op(self, op: ReductionOperator) -> Any:
        return self._mpi.OP_NULL if op is ReductionOperator.OP_NULL else getattr(self._mpi, op.name)

    def allreduce(self, sendobj: T, op: ReductionOperator = ReductionOperator.NO_OP) -> T:
        """Collective: the objects of all ranks, combined in their order."""
        everything = self.allgather(sendobj)
        if isinstance(sendobj, np.ndarray):  # of which mpi4py's MAX and MIN know no order
            return combined(everything, op)  # type: ignore[no-any-return]
        return functools.reduce(self._op(op), everything)

    def Allreduce(self, sendobj: Any, recvobj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in a buffer."""
        self._finish(self._comm.Iallreduce(sendobj, recvobj, self._op(op)), (sendobj, recvobj), "a reduction")
        return recvobj

    def Allreduce_inplace(self, obj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in these buffers."""
        self._finish(self._comm.Iallreduce(self._mpi.IN_PLACE, obj, self._op(op)), obj, "a reduction")
        return obj


def __getattr__(name: str) -> Any:
    if name == "MPI":
        try:
            from mpi4py import MPI
        except ImportError:
            return None
        return MPI
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_mpi4py(comm: Any) -> bool:
    """Returns True when an object is a communicator of mpi4py, without importing it."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(comm, mpi.Comm)


def _wire(array: Any) -> Any:
    """The buffer as MPI takes it: elements that have no type there, such as half precision, go as bytes."""
    if not isinstance(array, np.ndarray):
        return array
    if array.dtype.kind in "biufc" and array.dtype.isnative and array.dtype != np.float16:
        return array
    return array.reshape(-1).view(np.uint8)
