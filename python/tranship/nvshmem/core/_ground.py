"""The rank of the calling thread, between init() and finalize(). All modules of this package may ask for it, so this one
imports none of them."""

from __future__ import annotations

import os
import threading
from typing import Any, Optional

from ..._amounts import amount
from ... import _core
from ..._errors import InvalidUse
from ..._worlds import World


class Runtime:
    """One rank between init() and finalize()."""

    def __init__(self, world: World, is_joined: bool) -> None:
        self.world = world
        self.is_joined = is_joined  # by init(), and to be left by finalize()
        self.shmem = _core.begin_shmem(world._core)
        self.rank, self.size = world.rank, world.size
        # Threads of a kernel take turns in what they ask of their rank.
        self.lock = threading.RLock()
        self.team_names: dict[str, int] = {}
        self.allocations: dict[int, Any] = {}  # by address
        self.allocated = 0  # how many there have ever been: the same on all ranks


class _Threads(threading.local):
    runtime: Optional[Runtime] = None


threads = _Threads()
runtimes: list[Runtime] = []  # of this process


def _forget_in_child() -> None:
    """Children that a rank forks are no ranks."""
    threads.runtime = None
    runtimes.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def of_this_thread() -> Optional[Runtime]:
    """The rank of the calling thread, unless its world has ended without finalize()."""
    here = threads.runtime
    if here is not None and here.shmem.is_over:
        threads.runtime = here = None
        runtimes[:] = [one for one in runtimes if not one.shmem.is_over]
    return here


def runtime_if_any() -> Optional[Runtime]:
    """The rank of the calling thread; of a thread of a simulated kernel, that of its process."""
    here = of_this_thread()
    if here is None and len(runtimes) == 1 and hasattr(threading.current_thread(), "_manager"):
        return runtimes[0]
    return here


def runtime() -> Runtime:
    """The rank of the calling thread as for :func:`runtime_if_any`; raises InvalidUse where there is none."""
    here = runtime_if_any()
    if here is not None:
        return here
    if runtimes:
        raise InvalidUse(
            f"{amount(len(runtimes), 'rank')} of this process have called init(), and this thread is none of them: "
            "each is used by its own thread, and kernels need ranks that are processes"
        )
    raise InvalidUse("call init() first")
