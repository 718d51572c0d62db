"""The operations of kernels, by one thread. ``forms`` makes those of a warp and a block from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional, TypeVar

import numpy as np

from ....._errors import InvalidUse
from ... import _collectives, _memory, _transfers
from ..._ground import Runtime, runtime
from ..._transfers import value_of, whole
from ._lanes import on_rank, plain, together, wait_on_rank
from ._values import as_element

F = TypeVar("F", bound=Callable[..., Any])


def _described(value: Any) -> str:
    data = plain(value)
    if hasattr(data, "__array_interface__") and not isinstance(data, np.generic):
        return f"{data.dtype}{list(data.shape)} at {data.__array_interface__['data'][0]:#x}"
    return str(int(value)) if isinstance(value, int) else str(value)


_scope_notes = {
    "thread": "By one thread.",
    "warp": "By all threads of a warp, at the same place and with the same arguments; made once.",
    "block": "By all threads of a block, at the same place and with the same arguments; made once.",
}


def _form(scope: str, base: F) -> F:
    name = base.__name__ + ("" if scope == "thread" else f"_{scope}")

    @functools.wraps(base)
    def operation(*args: Any, **kwargs: Any) -> Any:
        if scope == "thread":
            return base(*args, **kwargs)
        call = f"{name}({', '.join(map(_described, (*args, *kwargs.values())))})"
        return together(scope, call, lambda: base(*args, **kwargs))

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"{base.__doc__}\n\n    {_scope_notes[scope]}\n    "
    return operation  # type: ignore[return-value]


def forms(base: F) -> tuple[F, F, F]:
    """By a thread, by a warp, by a block."""
    return _form("thread", base), _form("warp", base), _form("block", base)


# Transfers.


def put(dst: Any, src: Any, pe: int) -> None:
    """Copies ``src`` of this rank to the symmetric ``dst`` of a peer, as :func:`tranship.nvshmem.put` does."""
    on_rank(lambda here: here.shmem.put(plain(dst), plain(src), whole(pe, "a peer"), True))


def put_nbi(dst: Any, src: Any, pe: int) -> None:
    """Like the call without ``_nbi``, but may return earlier: ``src`` may be written after the next quiet."""
    on_rank(lambda here: here.shmem.put(plain(dst), plain(src), whole(pe, "a peer"), False))


def get(dst: Any, src: Any, pe: int) -> None:
    """Copies the symmetric ``src`` of a peer to ``dst`` of this rank, and returns with the values."""
    on_rank(lambda here: here.shmem.get(plain(dst), plain(src), whole(pe, "a peer"), True))


def get_nbi(dst: Any, src: Any, pe: int) -> None:
    """Like the call without ``_nbi``, but may return earlier: ``dst`` has the values after the next quiet."""
    on_rank(lambda here: here.shmem.get(plain(dst), plain(src), whole(pe, "a peer"), False))


def p(dst: Any, src: Any, pe: int) -> None:
    """Puts one value, or the first element of an array, into the first element of the symmetric ``dst`` of a peer.

    Elements that are bools take bools, integers take integers that fit, floats take integers and floats, and complex
    numbers take any number.
    """
    target = _first(plain(dst))
    value = as_element(plain(src), target.dtype)
    on_rank(lambda here: here.shmem.put(target, value, whole(pe, "a peer"), True))


def g(src: Any, pe: int) -> Any:
    """The first element of the symmetric ``src`` of a peer."""
    source = _first(plain(src))
    value = np.empty(1, source.dtype)
    on_rank(lambda here: here.shmem.get(value, source, whole(pe, "a peer"), True))
    return value[0]


def put_signal(dst: Any, src: Any, signal_var: Any, signal_val: int, signal_op: int, pe: int) -> None:
    """A put, and then a signal: when the peer sees the signal, it has the data of this put (and of no other)."""
    on_rank(
        lambda here: _transfers.put_signal(plain(dst), plain(src), plain(signal_var), signal_val, signal_op, whole(pe, "a peer"))
    )


def put_signal_nbi(dst: Any, src: Any, signal_var: Any, signal_val: int, signal_op: int, pe: int) -> None:
    """Like the call without ``_nbi``, but may return earlier: ``src`` may be written after the next quiet."""
    on_rank(
        lambda here: _transfers.put_signal_nbi(
            plain(dst), plain(src), plain(signal_var), signal_val, signal_op, whole(pe, "a peer")
        )
    )


# Signals, and waits for what peers put here.


def signal_op(signal_var: Any, signal_val: int, signal_op: int, pe: int) -> None:
    """Sets a signal of a peer, or adds to it. A fence before it orders it after earlier puts."""
    on_rank(lambda here: _transfers.signal_op(plain(signal_var), signal_val, signal_op, whole(pe, "a peer")))


def signal_fetch(signal_var: Any) -> int:
    """This rank's signal. What was put with what is seen is there."""
    return on_rank(lambda here: _transfers.signal_fetch(plain(signal_var)))


def _first(array: Any) -> Any:
    if array.size == 0:
        raise InvalidUse("the array has 0 elements: needs 1 or more")
    return array[(0,) * array.ndim + (Ellipsis,)].reshape(1)


def signal_wait(signal_var: Any, signal_op: int, signal_val: int) -> int:
    """Waits until this rank's signal compares so with a value, and returns what it was then. (On the host the value
    comes before the comparison.)"""
    return wait_until(_transfers._signal(plain(signal_var)), signal_op, signal_val)


def wait_until(ivar: Any, cmp: int, cmp_value: int) -> int:
    """Waits until the first element compares so with a value, and returns what it was then."""
    variable = _first(plain(ivar))

    def look(here: Runtime) -> Optional[int]:
        if not here.shmem.test(variable, whole(cmp, "a comparison"), value_of(cmp_value)):
            return None
        seen: Any = here.shmem.atomic(variable, "fetch", 0, 0, here.rank)
        return int(seen)

    seen: int = wait_on_rank(
        "wait_until", look, lambda: f"sees {variable[0]}, which does not compare (CMP {int(cmp)}) with {int(cmp_value)}"
    )
    return seen


def test(ivar: Any, cmp: int, cmp_value: int) -> bool:
    """Returns True when the first element compares so with a value."""
    return on_rank(lambda here: _transfers.test(plain(ivar), cmp, cmp_value))


def test_all(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> bool:
    """Returns True when all elements compare so with a value, or each with its own; those with a status other than 0 do not
    count."""
    return on_rank(lambda here: _transfers.test_all(plain(ivars), cmp, plain(cmp_values), plain_or_none(status)))


def test_any(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> Optional[int]:
    """The place of one that does, or None."""
    return on_rank(lambda here: _transfers.test_any(plain(ivars), cmp, plain(cmp_values), plain_or_none(status)))


def test_some(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> list[int]:
    """The places of all that do."""
    return on_rank(lambda here: _transfers.test_some(plain(ivars), cmp, plain(cmp_values), plain_or_none(status)))


def plain_or_none(value: Any) -> Any:
    return None if value is None else plain(value)


def _skips_all(ivars: Any, status: Any) -> bool:
    count = int(plain(ivars).size)
    return count == 0 or (status is not None and bool(np.all(np.asarray(plain(status)).reshape(-1)[:count])))


def _seen(ivars: Any) -> Callable[[], str]:
    return lambda: f"sees {plain(ivars).reshape(-1).tolist()}"


def wait_until_all(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> None:
    """Waits until :func:`test_all` is true."""
    wait_on_rank("wait_until_all", lambda _: test_all(ivars, cmp, cmp_values, status) or None, _seen(ivars))


def wait_until_any(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> Optional[int]:
    """Waits until one compares so, and returns its place; None where there are no variables."""
    if _skips_all(ivars, status):
        return None
    place: int = wait_on_rank("wait_until_any", lambda _: test_any(ivars, cmp, cmp_values, status), _seen(ivars))
    return place


def wait_until_some(ivars: Any, cmp: int, cmp_values: Any, status: Any = None) -> list[int]:
    """Waits until at least one does, and returns the places of all that do; none where there are no variables."""
    if _skips_all(ivars, status):
        return []
    places: list[int] = wait_on_rank(
        "wait_until_some", lambda _: test_some(ivars, cmp, cmp_values, status) or None, _seen(ivars)
    )
    return places


def fence() -> None:
    """Orders what was put and updated at each peer before what comes after; completes nothing."""
    on_rank(lambda here: here.world.fence())


def quiet() -> None:
    """Completes all transfers of this rank."""
    on_rank(lambda here: here.world.quiet())


# Atomics.


def _atomic(op: str, at: Any, value: Any, compare: Any, pe: int) -> Any:
    variable = _first(plain(at))
    number = value_of if np.issubdtype(variable.dtype, np.integer) else float
    before = on_rank(lambda here: here.shmem.atomic(variable, op, number(value), number(compare), whole(pe, "a peer")))
    return None if before is None else variable.dtype.type(before)


def atomic_fetch(src: Any, pe: int) -> Any:
    """The first element of the symmetric ``src`` of a peer, atomically."""
    return _atomic("fetch", src, 0, 0, pe)


def atomic_set(dst: Any, value: Any, pe: int) -> None:
    """It becomes ``value``."""
    _atomic("set", dst, value, 0, pe)


def atomic_swap(dst: Any, value: Any, pe: int) -> Any:
    """It becomes ``value``; returns what it was."""
    return _atomic("swap", dst, value, 0, pe)


def atomic_compare_swap(dst: Any, cond: Any, value: Any, pe: int) -> Any:
    """It becomes ``value`` where it was ``cond``; returns what it was."""
    return _atomic("compare_swap", dst, value, cond, pe)


def atomic_fetch_inc(dst: Any, pe: int) -> Any:
    """It has 1 added; returns what it was."""
    return _atomic("fetch_inc", dst, 0, 0, pe)


def atomic_inc(dst: Any, pe: int) -> None:
    """It has 1 added."""
    _atomic("inc", dst, 0, 0, pe)


def atomic_fetch_add(dst: Any, value: Any, pe: int) -> Any:
    """It has ``value`` added; returns what it was."""
    return _atomic("fetch_add", dst, value, 0, pe)


def atomic_add(dst: Any, value: Any, pe: int) -> None:
    """It has ``value`` added."""
    _atomic("add", dst, value, 0, pe)


def atomic_fetch_and(dst: Any, value: Any, pe: int) -> Any:
    """Bitwise and; returns what it was."""
    return _atomic("fetch_and", dst, value, 0, pe)


def atomic_and(dst: Any, value: Any, pe: int) -> None:
    """Bitwise and."""
    _atomic("and", dst, value, 0, pe)


def atomic_fetch_or(dst: Any, value: Any, pe: int) -> Any:
    """Bitwise or; returns what it was."""
    return _atomic("fetch_or", dst, value, 0, pe)


def atomic_or(dst: Any, value: Any, pe: int) -> None:
    """Bitwise or."""
    _atomic("or", dst, value, 0, pe)


def atomic_fetch_xor(dst: Any, value: Any, pe: int) -> Any:
    """Bitwise exclusive or; returns what it was."""
    return _atomic("fetch_xor", dst, value, 0, pe)


def atomic_xor(dst: Any, value: Any, pe: int) -> None:
    """Bitwise exclusive or."""
    _atomic("xor", dst, value, 0, pe)


# Those that fetch, into the first element of an array of this rank, which has the value after the next quiet.


def _fetch_into(fetched: Any, value: Any) -> None:
    target = plain(fetched)
    if target.size == 0:
        raise InvalidUse("the array has 0 elements: needs 1 or more")
    target.flat[0] = value


def atomic_fetch_nbi(fetched: Any, src: Any, pe: int) -> None:
    """:func:`atomic_fetch`, which may return before."""
    _fetch_into(fetched, atomic_fetch(src, pe))


def atomic_swap_nbi(fetched: Any, dst: Any, value: Any, pe: int) -> None:
    """:func:`atomic_swap`, which may return before."""
    _fetch_into(fetched, atomic_swap(dst, value, pe))


def atomic_compare_swap_nbi(fetched: Any, dst: Any, cond: Any, value: Any, pe: int) -> None:
    """:func:`atomic_compare_swap`, which may return before."""
    _fetch_into(fetched, atomic_compare_swap(dst, cond, value, pe))


def atomic_fetch_inc_nbi(fetched: Any, dst: Any, pe: int) -> None:
    """:func:`atomic_fetch_inc`, which may return before."""
    _fetch_into(fetched, atomic_fetch_inc(dst, pe))


def atomic_fetch_add_nbi(fetched: Any, dst: Any, value: Any, pe: int) -> None:
    """:func:`atomic_fetch_add`, which may return before."""
    _fetch_into(fetched, atomic_fetch_add(dst, value, pe))


def atomic_fetch_and_nbi(fetched: Any, dst: Any, value: Any, pe: int) -> None:
    """:func:`atomic_fetch_and`, which may return before."""
    _fetch_into(fetched, atomic_fetch_and(dst, value, pe))


def atomic_fetch_or_nbi(fetched: Any, dst: Any, value: Any, pe: int) -> None:
    """:func:`atomic_fetch_or`, which may return before."""
    _fetch_into(fetched, atomic_fetch_or(dst, value, pe))


def atomic_fetch_xor_nbi(fetched: Any, dst: Any, value: Any, pe: int) -> None:
    """:func:`atomic_fetch_xor`, which may return before."""
    _fetch_into(fetched, atomic_fetch_xor(dst, value, pe))


# Collective operations of teams.


def sync(team: int) -> None:
    """Collective over the team: waits for all members; puts may still be on their way."""
    on_rank(lambda here: here.shmem.sync(whole(team, "a team")))


def sync_all() -> None:
    """Collective: the sync of all ranks."""
    sync(0)


def barrier(team: int) -> None:
    """Collective over the team: completes this rank's transfers and waits for all members."""
    on_rank(lambda here: here.shmem.barrier(whole(team, "a team")))


def barrier_all() -> None:
    """Collective: the barrier of all ranks."""
    barrier(0)


def reduce(team: int, dst_array: Any, src_array: Any, op: str) -> None:
    """Collective over the team: :func:`tranship.nvshmem.reduce`."""
    on_rank(lambda here: _collectives.reduce(team, plain(dst_array), plain(src_array), op))


def reducescatter(team: int, dst_array: Any, src_array: Any, op: str) -> None:
    """Collective over the team: :func:`tranship.nvshmem.reducescatter`."""
    on_rank(lambda here: _collectives.reducescatter(team, plain(dst_array), plain(src_array), op))


def fcollect(team: int, dst_array: Any, src_array: Any) -> None:
    """Collective over the team: :func:`tranship.nvshmem.fcollect`."""
    on_rank(lambda here: _collectives.fcollect(team, plain(dst_array), plain(src_array)))


def broadcast(team: int, dst_array: Any, src_array: Any, root: int = 0) -> None:
    """Collective over the team: :func:`tranship.nvshmem.broadcast`."""
    on_rank(lambda here: _collectives.broadcast(team, plain(dst_array), plain(src_array), whole(root, "a root")))


def alltoall(team: int, dst_array: Any, src_array: Any) -> None:
    """Collective over the team: :func:`tranship.nvshmem.alltoall`."""
    on_rank(lambda here: _collectives.alltoall(team, plain(dst_array), plain(src_array)))


# Who is where, and memory of peers.


def my_pe() -> int:
    """This rank, from 0."""
    return runtime().rank


def n_pes() -> int:
    """How many ranks there are."""
    return runtime().size


def team_my_pe(team: int) -> int:
    """This rank's place in a team."""
    return on_rank(lambda here: here.shmem.team_rank(whole(team, "a team")))


def team_n_pes(team: int) -> int:
    """The size of a team."""
    return on_rank(lambda here: here.shmem.team_size(whole(team, "a team")))


def get_peer_array(arr: Any, pe: int) -> Any:
    """The elements of a symmetric array at a peer, to load and store."""
    return on_rank(lambda here: _memory.get_peer_array(plain(arr), whole(pe, "a peer")))


def get_multicast_array(team: int, array: Any) -> Any:
    """The elements of a symmetric array at all members of a team: a store goes to all of them, and ``load_reduce``
    combines them."""
    return on_rank(lambda here: _memory.get_multicast_array(whole(team, "a team"), plain(array)))
