"""Transfers, signals and order, by the host. Streams are accepted, and order nothing."""

from __future__ import annotations

import operator
from typing import Any, Optional

import numpy as np

from ..._errors import InvalidUse
from ..._views import refuse_mask
from ._memory import _shown
from ._ground import runtime
from ._types import NvshmemStreamsType, SignalOp

__all__ = [
    "fence",
    "get",
    "get_nbi",
    "pe_quiet",
    "put",
    "put_nbi",
    "put_signal",
    "put_signal_nbi",
    "quiet",
    "signal_fetch",
    "signal_op",
    "signal_wait",
    "test",
    "test_all",
    "test_any",
    "test_some",
    "wait_until",
    "wait_until_all",
    "wait_until_any",
    "wait_until_some",
]


def _peer(remote_pe: int, pe: Optional[int]) -> int:
    return whole(remote_pe if pe is None else pe, "a peer")


def whole(number: Any, what: str) -> int:
    """An integer that C++ can take."""
    try:
        value = operator.index(number)
    except TypeError:
        raise InvalidUse(f"{what} is an integer, not {number!r}") from None
    if not -(2**31) <= value < 2**31:
        raise InvalidUse(f"{what} of {value} is out of range")
    return value


def value_of(number: Any) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise InvalidUse(f"a value of a signal or a variable is an integer, not {number!r}") from None


def _source(memory: Any) -> Any:
    """Returns the array to read: anything that NumPy makes an array of."""
    refuse_mask(memory)
    return memory if isinstance(memory, np.ndarray) else np.asarray(memory)


def put(
    dst: Any, src: Any, remote_pe: int = -1, stream: NvshmemStreamsType = None, *, pe: Optional[int] = None
) -> None:
    """Copies ``src`` of this rank to the symmetric ``dst`` of a peer.

    Arrays of equal shapes go element by element, whatever their strides; otherwise as many elements as the smaller one
    has. Returns when ``src`` may be written; ``dst`` has the values after a quiet or a barrier. Where only the second
    array is symmetric, it is the target: some of NVSHMEM's documents name the source first.

    Raises
    ------
    InvalidUse
        For a target that is not symmetric, other dtypes, or shapes that do not fit.
    """
    runtime().shmem.put(_source(dst), _source(src), _peer(remote_pe, pe), True)


def put_nbi(
    dst: Any, src: Any, remote_pe: int = -1, stream: NvshmemStreamsType = None, *, pe: Optional[int] = None
) -> None:
    """Like the call without ``_nbi``, but may return earlier: ``src`` may be written after the next quiet."""
    runtime().shmem.put(_source(dst), _shown(src), _peer(remote_pe, pe), False)


def get(
    dst: Any, src: Any, remote_pe: int = -1, stream: NvshmemStreamsType = None, *, pe: Optional[int] = None
) -> None:
    """Copies the symmetric ``src`` of a peer to ``dst`` of this rank, and returns with the values."""
    runtime().shmem.get(_shown(dst), _shown(src), _peer(remote_pe, pe), True)


def get_nbi(
    dst: Any, src: Any, remote_pe: int = -1, stream: NvshmemStreamsType = None, *, pe: Optional[int] = None
) -> None:
    """Like the call without ``_nbi``, but may return earlier: ``dst`` has the values after the next quiet."""
    runtime().shmem.get(_shown(dst), _shown(src), _peer(remote_pe, pe), False)


def _signal(memory: Any) -> Any:
    data = _shown(memory)
    if data.dtype == np.uint8:  # a buffer
        if data.size < 8:
            raise InvalidUse(f"a signal is 8 bytes; the buffer has {data.size}")
        return data[:8].view("u8")
    return _variable(data)


def put_signal(
    dst: Any,
    src: Any,
    signal_var: Any,
    signal_val: int,
    signal_op: int = SignalOp.SIGNAL_SET,
    remote_pe: int = -1,
    stream: NvshmemStreamsType = None,
    *,
    pe: Optional[int] = None,
) -> None:
    """A put, and then a signal: when the peer sees the signal, it has the data of this put (and of no other)."""
    _put_signal(dst, src, signal_var, signal_val, signal_op, _peer(remote_pe, pe), True)


def _put_signal(dst: Any, src: Any, signal: Any, value: int, op: int, peer: int, blocking: bool) -> None:
    runtime().shmem.put_signal(
        _shown(dst), _source(src) if blocking else _shown(src), _signal(signal), value_of(value), whole(op, "an operation"), peer, blocking
    )


def put_signal_nbi(
    dst: Any,
    src: Any,
    signal_var: Any,
    signal_val: int,
    signal_op: int = SignalOp.SIGNAL_SET,
    remote_pe: int = -1,
    stream: NvshmemStreamsType = None,
    *,
    pe: Optional[int] = None,
) -> None:
    """Like the call without ``_nbi``, but may return earlier: ``src`` may be written after the next quiet."""
    _put_signal(dst, src, signal_var, signal_val, signal_op, _peer(remote_pe, pe), False)


def signal_op(
    signal_var: Any,
    signal_val: int,
    signal_op: int = SignalOp.SIGNAL_SET,
    remote_pe: int = -1,
    stream: NvshmemStreamsType = None,
    *,
    pe: Optional[int] = None,
) -> None:
    """Sets a signal of a peer, or adds to it, atomically. A fence before it orders it after earlier puts."""
    runtime().shmem.signal(_signal(signal_var), value_of(signal_val), whole(signal_op, "an operation"), _peer(remote_pe, pe))


def signal_wait(
    signal_var: Any, signal_val: int, signal_op: int, stream: NvshmemStreamsType = None
) -> int:
    """Waits until this rank's signal compares so with ``signal_val``, and returns what it was then.

    (In kernels the comparison comes before the value.)

    Raises
    ------
    TimeoutError, PeerLost
    """
    return wait_until(_signal(signal_var), signal_op, signal_val)


def signal_fetch(signal_var: Any) -> int:
    """This rank's signal. What was put with what is seen is there."""
    here = runtime()
    seen: Any = here.shmem.atomic(_signal(signal_var), "fetch", 0, 0, here.rank)
    return int(seen)


def quiet(stream: NvshmemStreamsType = None) -> None:
    """Completes all transfers of this rank: puts are at their peers, gets and values are here."""
    runtime().world.quiet()


def pe_quiet(pes: Any, stream: NvshmemStreamsType = None) -> None:
    """Completes the transfers to some peers, or to one."""
    here = runtime()
    for pe in [whole(one, "a peer") for one in (pes if isinstance(pes, (list, tuple, np.ndarray)) else [pes])]:
        if not 0 <= pe < here.size:
            raise InvalidUse(f"no rank {pe} in a world of {here.size} (rank {here.rank})")
    here.world.quiet()


def fence(stream: NvshmemStreamsType = None) -> None:
    """Orders what was put and updated at each peer before what comes after; completes nothing."""
    runtime().world.fence()


# Waits for what peers put here: integers of 4 or 8 bytes.


def _row(array: Any) -> Any:
    """Elements in one row: the memory itself, never a copy."""
    data = _shown(array)
    if not data.flags.c_contiguous:
        if data.ndim != 1:
            raise InvalidUse(f"variables lie side by side; these have shape {data.shape} and strides {data.strides}")
        return data
    return data.reshape(-1)


def _variable(array: Any) -> Any:
    return _row(array)[:1]


def wait_until(ivar: Any, cmp: int, cmp_value: int) -> int:
    """Waits until the first element of this rank's ``ivar`` compares so with a value; returns what it was then."""
    seen: Any = runtime().shmem.wait_until(_variable(ivar), whole(cmp, "a comparison"), value_of(cmp_value))
    return int(seen)


def test(ivar: Any, cmp: int, cmp_value: int) -> bool:
    """Returns True when the first element compares so. A loop over it ends with an error when a peer has failed."""
    return runtime().shmem.test(_variable(ivar), whole(cmp, "a comparison"), value_of(cmp_value))


def _several(what: str, ivars: Any, cmp: int, cmp_values: Any, status: Any) -> list[int]:
    given = cmp_values.reshape(-1).tolist() if isinstance(cmp_values, np.ndarray) else cmp_values
    values = [value_of(value) for value in (given if isinstance(given, (list, tuple)) else [given])]
    skip = [] if status is None else [int(bool(one)) for one in np.asarray(status).reshape(-1)]
    return runtime().shmem.several(what, _row(ivars), whole(cmp, "a comparison"), values, skip)


def test_all(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> bool:
    """Returns True when all variables compare so with a value, or each with its own; those with a status other than 0 do not
    count. True for none."""
    return len(_several("test_all", ivars, cmp, cmp_values, status)) == int(_shown(ivars).size)


def test_any(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> Optional[int]:
    """The place of one that does, or None."""
    return next(iter(_several("test_any", ivars, cmp, cmp_values, status)), None)


def test_some(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> list[int]:
    """The places of all that do."""
    return _several("test_some", ivars, cmp, cmp_values, status)


def wait_until_all(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> None:
    """Waits until all variables compare so with a value, or each with its own."""
    _several("wait_until_all", ivars, cmp, cmp_values, status)


def wait_until_any(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> Optional[int]:
    """Waits until one does, and returns its place; None where there are no variables."""
    return next(iter(_several("wait_until_any", ivars, cmp, cmp_values, status)), None)


def wait_until_some(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> list[int]:
    """Waits until at least one does, and returns the places of all that do; none where there are no variables."""
    return _several("wait_until_some", ivars, cmp, cmp_values, status)
