"""Ranks that one thread plays in turn: for tests, and for trying a decomposition without starting processes."""

from __future__ import annotations

import copy
import functools
from typing import Any, Optional, TypeVar

import numpy as np

from ..._amounts import amount
from .._errors import HaloMismatch, HaloStateError, HaloUnsupported
from ..utils import ensure_contiguous, safe_assign_array
from .comm_abc import Comm, ReductionOperator, Request

__all__ = ["AsyncResult", "ConcurrencyError", "LocalComm"]

T = TypeVar("T")


class ConcurrencyError(HaloStateError):
    """A rank needs what another one has not sent yet: the ranks were played in an order that cannot work."""


class AsyncResult(Request):
    """A request whose ``wait`` calls a function and returns its result."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def wait(self) -> Any:
        """Calls the function."""
        return self._result()


class _Shared:
    """The state that all ranks of one group share."""

    def __init__(self) -> None:
        self.messages: dict[tuple[int, int, int], list[Any]] = {}
        self.collectives: dict[tuple[str, int], dict[int, Any]] = {}
        self.groups: dict[tuple[int, Any], tuple[list[tuple[Any, int]], dict[str, Any]]] = {}


class LocalComm(Comm[T]):
    """One of several ranks in one thread.

    A message is there for its receiver as soon as it was sent. Play the root of a scatter or a broadcast
    first, and the root of a gather or a reduction last. Buffers have no gaps, like those of MPI.

    Parameters
    ----------
    rank, total_ranks
        Which rank this is, and of how many.
    buffer_dict
        A dictionary that all ranks of one group share, empty in the beginning.

    Examples
    --------
    >>> import numpy as np
    >>> from tranship.ndsl import LocalComm
    >>> shared = {}
    >>> a, b = LocalComm(0, 2, shared), LocalComm(1, 2, shared)
    >>> a.Send(np.array([3.0]), dest=1)
    >>> out = np.zeros(1)
    >>> b.Recv(out, source=0)
    >>> out
    array([3.])
    """

    def __init__(self, rank: int, total_ranks: int, buffer_dict: dict[str, Any]) -> None:
        self._rank = rank
        self._total_ranks = total_ranks
        self._shared: _Shared = buffer_dict.setdefault("tranship.ndsl", _Shared())
        self._calls: dict[str, int] = {}
        self._group: Optional[list[tuple[Any, int]]] = None

    def __repr__(self) -> str:
        return f"<rank {self.Get_rank()} of {self.Get_size()}, played in this thread>"

    def Get_rank(self) -> int:
        """This rank. In a group that was split off, its place by key among the ranks that have called."""
        return self._rank if self._group is None else [of for _, of in sorted(self._group)].index(self._rank)

    def Get_size(self) -> int:
        """How many ranks there are; in a group that was split off, that have called."""
        return self._total_ranks if self._group is None else len(self._group)

    def _next(self, what: str) -> dict[int, Any]:
        """Returns what ranks have brought to the next collective call of a kind."""
        number = self._calls.get(what, 0)
        self._calls[what] = number + 1
        return self._shared.collectives.setdefault((what, number), {})

    def _from_root(self, what: str, value: Any, root: int) -> Any:
        brought = self._next(what)
        if self.Get_rank() == root:
            brought[root] = value
        elif root not in brought:
            self._calls[what] -= 1
            raise ConcurrencyError(f"{what} on rank {self.Get_rank()}: the root, rank {root}, has not called it yet")
        return brought[root]

    def bcast(self, value: Optional[T], root: int = 0) -> Optional[T]:
        """Collective: the object of ``root``, which is played first."""
        out: Optional[T] = self._from_root("bcast", value, root)
        return out

    def Barrier(self) -> None:
        """Returns at once: the other ranks are played by the same thread."""

    def barrier(self) -> None:
        """Returns at once: the other ranks are played by the same thread."""

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the n-th part of the buffer of ``root``, which is played first, goes to rank n."""
        ensure_contiguous(sendbuf)
        ensure_contiguous(recvbuf)
        parts = self._from_root("Scatter", None if sendbuf is None else copy.deepcopy(sendbuf), root)
        _assign(recvbuf, parts[self.Get_rank()], f"Scatter to rank {self.Get_rank()}")

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the buffer of rank n becomes the n-th part of that of ``root``, which is played last."""
        ensure_contiguous(sendbuf)
        ensure_contiguous(recvbuf)
        brought = self._next("Gather")
        brought[self.Get_rank()] = copy.deepcopy(sendbuf)
        if self.Get_rank() != root:
            return
        missing = sorted(set(range(self.Get_size())) - set(brought))
        if missing:
            self._calls["Gather"] -= 1
            raise ConcurrencyError(f"Gather on rank {root}, the root: ranks {missing} have not called it yet")
        for rank, part in brought.items():
            _assign(recvbuf[rank], part, f"Gather from rank {rank}")

    def allgather(self, sendobj: T) -> list[T]:
        """Not possible for ranks that are played in turn."""
        raise HaloUnsupported("allgather: ranks that one thread plays in turn cannot all wait for each other")

    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> None:
        """Copies a buffer for its receiver."""
        self.Isend(sendbuf, dest, tag)

    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> AsyncResult:
        """Copies a buffer for its receiver."""
        self._check_rank(dest)
        ensure_contiguous(sendbuf)
        key = (self.Get_rank(), dest, tag)
        self._shared.messages.setdefault(key, []).append(copy.deepcopy(sendbuf))
        return AsyncResult(lambda: None)

    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> None:
        """Copies the oldest message of this source and tag into a buffer. ``ConcurrencyError`` where there is none."""
        self._check_rank(source)
        ensure_contiguous(recvbuf)
        key = (source, self.Get_rank(), tag)
        waiting = self._shared.messages.get(key, [])
        if not waiting:
            raise ConcurrencyError(f"rank {key[1]} waits for tag {tag} of rank {source}, which has not sent it yet")
        _assign(recvbuf, waiting[0], f"tag {tag} from rank {source} to rank {key[1]}")
        waiting.pop(0)

    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> AsyncResult:
        """Like ``Recv``, when the request is waited for."""
        self._check_rank(source)
        ensure_contiguous(recvbuf)
        return AsyncResult(functools.partial(self.Recv, recvbuf, source, tag))

    def _check_rank(self, rank: int) -> None:
        if self._group is None and not 0 <= rank < self._total_ranks:
            raise HaloStateError(f"there is no rank {rank} of {self._total_ranks}")

    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Not possible for ranks that are played in turn."""
        raise HaloUnsupported("sendrecv: ranks that one thread plays in turn cannot wait for each other")

    def Split(self, color: Any, key: Any) -> LocalComm[T]:
        """A communicator of the ranks that have called with the same color, and of those that will."""
        number = self._calls.get("Split", 0)
        self._calls["Split"] = number + 1
        members, shared = self._shared.groups.setdefault((number, color), ([], {}))
        members.append((key, self.Get_rank()))
        out: LocalComm[T] = LocalComm(self.Get_rank(), self._total_ranks, shared)
        out._group = members
        return out

    def _reduced(self, what: str, value: Any, op: Optional[ReductionOperator]) -> Any:
        brought = self._next(what)
        brought[self.Get_rank()] = copy.deepcopy(value)
        return combined([brought[rank] for rank in sorted(brought)], op)

    def allreduce(self, sendobj: Any, op: Optional[ReductionOperator] = None, recvobj: Any = None) -> Any:
        """Combines what the ranks that have called so far have brought: the last one played sees all."""
        return self._reduced("allreduce", sendobj, op)

    def Allreduce(self, sendobj: Any, recvobj: Any, op: ReductionOperator) -> Any:
        """Like ``allreduce``, for buffers."""
        safe_assign_array(recvobj, self._reduced("Allreduce", sendobj, op))
        return recvobj

    def Allreduce_inplace(self, obj: Any, op: ReductionOperator) -> Any:
        """Like ``allreduce``, for buffers, in place."""
        return self.Allreduce(obj, obj, op)


def _assign(target: Any, source: Any, what: str) -> None:
    if np.shape(target) != np.shape(source) and np.size(target) != np.size(source):
        raise HaloMismatch(
            f"{what}: a message of {amount(np.size(source), 'element')} for a buffer of {np.size(target)}"
        )
    safe_assign_array(target, source if np.shape(target) == np.shape(source) else source.reshape(target.shape))


_COMBINE = {
    ReductionOperator.MAX: np.maximum,
    ReductionOperator.MIN: np.minimum,
    ReductionOperator.SUM: np.add,
    ReductionOperator.PROD: np.multiply,
    ReductionOperator.LAND: np.logical_and,
    ReductionOperator.BAND: np.bitwise_and,
    ReductionOperator.LOR: np.logical_or,
    ReductionOperator.BOR: np.bitwise_or,
    ReductionOperator.LXOR: np.logical_xor,
    ReductionOperator.BXOR: np.bitwise_xor,
}


def combined(values: list[Any], op: Optional[ReductionOperator]) -> Any:
    """Values of several ranks, combined in their order."""
    if op not in _COMBINE:
        raise HaloUnsupported(f"a reduction by {op}: needs one of {', '.join(o.name for o in _COMBINE)}")
    return functools.reduce(_COMBINE[op], values)
