"""Collective operations of teams, by the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._amounts import amount
from ... import _core
from ..._errors import InvalidUse
from ._memory import _shown
from ._ground import runtime
from ._transfers import whole
from ._types import NvshmemStreamsType

__all__ = [
    "alltoall",
    "barrier",
    "barrier_all",
    "broadcast",
    "collective_on_buffer",
    "fcollect",
    "reduce",
    "reducescatter",
    "sync",
    "sync_all",
]

_kinds: tuple[str, ...] = _core.collective_names


def _run(kind: str, team: int, dst: Any, src: Any, op: str = "", root: int = 0) -> None:
    runtime().shmem.collective(
        _kinds.index(kind), whole(team, "a team"), _shown(dst), _shown(src), op, whole(root, "a root")
    )


def reduce(team: int, dst_array: Any, src_array: Any, op: str, stream: NvshmemStreamsType = None) -> None:
    """Collective over the team: combines the elements of all members' ``src_array``, in the order of the members, into
    ``dst_array`` of every member. Both may be one array; of different sizes the smaller one counts.

    ``op`` is ``sum``, ``prod``, ``min``, ``max``, and for integers ``and``, ``or``, ``xor``.

    Raises
    ------
    InvalidUse
        For other dtypes, memory that is not symmetric, or overlap.
    Mismatch
        On all members, when their calls differ.
    """
    _run("reduce", team, dst_array, src_array, op)


def reducescatter(team: int, dst_array: Any, src_array: Any, op: str, stream: NvshmemStreamsType = None) -> None:
    """Collective: member m gets the combination of the m-th part of all sources; parts are as large as ``dst_array``."""
    _run("reducescatter", team, dst_array, src_array, op)


def fcollect(team: int, dst_array: Any, src_array: Any, stream: NvshmemStreamsType = None) -> None:
    """Collective: all members' sources, in their order, in ``dst_array`` of every member."""
    _run("fcollect", team, dst_array, src_array)


def alltoall(team: int, dst_array: Any, src_array: Any, stream: NvshmemStreamsType = None) -> None:
    """Collective: part s of ``dst_array`` is this member's part of the source of member s."""
    _run("alltoall", team, dst_array, src_array)


def broadcast(team: int, dst_array: Any, src_array: Any, root: int = 0, stream: NvshmemStreamsType = None) -> None:
    """Collective: the source of member ``root`` in ``dst_array`` of every member."""
    _run("broadcast", team, dst_array, src_array, root=root)


def collective_on_buffer(
    coll: str,
    team: int,
    dest: Any,
    src: Any,
    dtype: str = "",
    op: str = "",
    root: int = 0,
    stream: NvshmemStreamsType = None,
    enable_timing: bool = False,
) -> float:
    """Collective: one of them by its name, on buffers of elements of a NumPy dtype or one of NVSHMEM's names for it.
    Returns the milliseconds that it took where ``enable_timing`` is set, else 0."""
    import time

    if coll not in _kinds:
        raise InvalidUse(f"collective {coll!r}: needs one of {', '.join(_kinds)}")
    name = {"half": "f2", "float": "f4", "double": "f8", "": "u1", "char": "i1", "size": "u8"}.get(dtype, dtype)
    try:
        kind = np.dtype(name)
        target, source = _shown(dest).view(kind), _shown(src).view(kind)
    except (TypeError, ValueError) as error:
        raise InvalidUse(
            f"buffers of {_shown(dest).nbytes} and {amount(_shown(src).nbytes, 'byte')} cannot be seen as {dtype}: {error}"
        ) from None
    begun = time.perf_counter()
    _run(coll, team, target, source, op, root)
    return (time.perf_counter() - begun) * 1e3 if enable_timing else 0.0


def barrier(team: int, stream: NvshmemStreamsType = None) -> None:
    """Collective over the team: completes this rank's transfers and waits for all members."""
    runtime().shmem.barrier(whole(team, "a team"))


def sync(team: int, stream: NvshmemStreamsType = None) -> None:
    """Collective over the team: waits for all members; puts may still be on their way."""
    runtime().shmem.sync(whole(team, "a team"))


def barrier_all(stream: NvshmemStreamsType = None) -> None:
    """Collective: the barrier of all ranks."""
    runtime().world.barrier()


def sync_all(stream: NvshmemStreamsType = None) -> None:
    """Collective: the sync of all ranks."""
    runtime().world.sync()
