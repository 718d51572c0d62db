"""Threads of a kernel under Numba's CUDA simulator, and the groups in which they call an operation together.

The simulator runs every thread of a block as a thread of Python. What a rank is asked for, one of them asks at a time;
an operation of a warp or a block is made once, by the thread that comes last, when all of them have come. Threads that
bring different operations, or end while others stand at one, have diverged: all of them raise InvalidUse.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ....._errors import InvalidUse, TimeoutError
from ..._ground import Runtime, runtime

T = TypeVar("T")

WARP = 32


def plain(memory: Any) -> Any:
    """The NumPy array behind what a simulated kernel sees."""
    item = memory.__dict__.get("_item") if type(memory).__name__ == "FakeWithinKernelCUDAArray" else None
    return memory if item is None else item._ary


def on_rank(action: Callable[[Runtime], T]) -> T:
    """Runs an operation that does not wait, by one thread of the rank at a time."""
    here = runtime()
    with here.lock:
        return action(here)


def wait_on_rank(what: str, look: Callable[[Runtime], Any], describe: Callable[[], str]) -> Any:
    """Looks again until something is found, and lets other threads act in between. Ends when a peer has failed, and
    after the timeout of the world."""
    here = runtime()
    thread = threading.current_thread()
    begun = time.monotonic()
    while True:
        with here.lock:
            found = look(here)
        if found is not None:
            return found
        if getattr(thread, "abort", False):
            raise InvalidUse(f"{what}: another thread of the block has raised an exception")
        waited = time.monotonic() - begun
        if waited > here.world.timeout:
            raise TimeoutError(f"{what} after {waited:.1f} s: {describe()} (rank {here.rank} of {here.size})")
        time.sleep(0)


class _Group:
    """Threads that make operations together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = threading.Condition()
        self.calls: dict[int, str] = {}  # by the number of the thread in its block
        self.generation = 0
        self.outcome: tuple[Any, Exception | None] = (None, None)

    def call(self, number: int, members: list[int], call: str, action: Callable[[], Any], block: _Block) -> Any:
        with self.changed:
            generation = self.generation
            self.calls[number] = call
            if len(set(self.calls.values())) > 1:
                self._end(None, self._diverged(number, call))
            elif len(self.calls) == len(members):
                result, problem = None, None
                try:
                    result = action()
                except Exception as error:  # noqa: BLE001: raised in all of them
                    problem = error
                self._end(result, problem)
            while self.generation == generation:
                self.changed.wait(0.01)  # those who end, or stand elsewhere, do not tell
                if self.generation == generation:
                    gone = block.cannot_come(set(members) - self.calls.keys())
                    if gone is not None:
                        self._end(None, InvalidUse(f"{call} by the {self.name}: thread {number} has come, {gone}"))
            result, problem = self.outcome
        if problem is not None:
            raise problem
        return result

    def _end(self, result: Any, problem: Exception | None) -> None:
        self.outcome = (result, problem)
        self.calls = {}
        self.generation += 1
        self.changed.notify_all()

    def _diverged(self, number: int, call: str) -> InvalidUse:
        other, at = next((n, c) for n, c in self.calls.items() if c != call)
        return InvalidUse(f"threads of a {self.name} have diverged: thread {number} is at {call}, thread {other} at {at}")


class _Block:
    """One block of a simulated grid."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.size = int(np.prod(shape))
        self.threads: dict[int, Any] = {}  # those that the simulator has made
        self.ended: set[int] = set()  # is_alive() is false of a thread that is being started, too
        self.groups: dict[tuple[str, int], _Group] = {}
        self.lock = threading.Lock()

    def group(self, scope: str, number: int) -> tuple[_Group, list[int]]:
        first = number // WARP * WARP if scope == "warp" else 0
        last = min(first + WARP, self.size) if scope == "warp" else self.size
        with self.lock:
            group = self.groups.setdefault((scope, first), _Group(scope))
        return group, list(range(first, last))

    def cannot_come(self, numbers: set[int]) -> str | None:
        """Returns what keeps one of these threads from an operation of their group."""
        for number in sorted(numbers):
            if number in self.ended:
                return f"thread {number} has ended"
            if number in self.threads and self.threads[number].syncthreads_blocked:
                return f"thread {number} is at syncthreads"
        return None


def block_of(manager: Any) -> _Block:
    """The block that a simulator's manager runs."""
    block = manager.__dict__.get("_tranship_block")
    if block is None:
        block = manager.__dict__.setdefault("_tranship_block", _Block(tuple(manager._block_dim)))
    return block  # type: ignore[no-any-return]


def together(scope: str, call: str, action: Callable[[], T]) -> T:
    """Runs ``action`` once for the group of the calling thread, and returns what it returns in all of them."""
    thread = threading.current_thread()
    manager = getattr(thread, "_manager", None)
    if scope == "thread" or manager is None:  # outside of kernels a thread is alone
        return action()
    block = block_of(manager)
    number = int(thread.thread_id)  # type: ignore[attr-defined]
    group, members = block.group(scope, number)
    result: T = group.call(number, members, call, action, block)
    return result
