"""Buffers of communications, kept for reuse.

A buffer that is given back waits in a pool that the whole process shares, under its allocator, shape and dtype, and the
last one in is the first one out. The pool is locked, and holds at most :data:`BUFFER_CACHE_BYTES_MAX`; a buffer beyond
that is released. What a buffer holds when it comes out of the pool is not defined.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Optional

import numpy as np

from ._errors import HaloValueError
from .performance.timer import NullTimer, Timer
from .types import Allocator
from .utils import device_synchronize, is_c_contiguous, safe_assign_array

__all__ = ["BUFFER_CACHE", "BUFFER_CACHE_BYTES_MAX", "Buffer", "array_buffer", "recv_buffer", "send_buffer"]

BufferKey = tuple[Any, tuple[int, ...], Any]

BUFFER_CACHE: dict[BufferKey, list[Buffer]] = {}
"""Buffers that wait, by allocator, shape and dtype. A program may clear it."""

BUFFER_CACHE_BYTES_MAX = 1 << 30
"""The bytes that the buffers that wait may hold together."""

_lock = threading.RLock()  # the collector of garbage may give buffers back in the middle of a call
_waiting_bytes = 0  # in the pool, or more: a program may clear it


class Buffer:
    """An array that is in C order without gaps, with the key under which the pool keeps it. Who takes an array out of
    the pool gets an object of his own, which can be given back once."""

    array: Any

    def __init__(self, key: BufferKey, array: Any) -> None:
        self._key = key
        self._nbytes = math.prod(key[1]) * np.dtype(key[2]).itemsize
        self._is_back = False
        self.array = array

    @classmethod
    def pop_from_cache(cls, allocator: Allocator, shape: Iterable[int], dtype: Any) -> Buffer:
        """The last buffer of this key that was given back, or a new one.

        Raises
        ------
        ValueError
            For an extent below 0, and for an allocator whose arrays are not in C order.
        """
        global _waiting_bytes
        key = (allocator, tuple(map(int, shape)), dtype)
        if key[1] and min(key[1]) < 0:
            raise HaloValueError(f"a buffer of shape {key[1]}: extents are 0 or more")
        with _lock:
            waiting = BUFFER_CACHE.setdefault(key, [])
            if waiting:
                back = waiting.pop()
                _waiting_bytes -= back._nbytes
                return cls(back._key, back.array)
        array = allocator(key[1], dtype=dtype)
        if not is_c_contiguous(array):
            raise HaloValueError("the allocator makes arrays that are not in C order without gaps")
        return cls(key, array)

    @staticmethod
    def push_to_cache(buffer: Buffer) -> None:
        """Gives a buffer back. It must not be used any more. Again, it does nothing."""
        global _waiting_bytes
        with _lock:
            if buffer._is_back:
                return
            buffer._is_back = True
            if _waiting_bytes + buffer._nbytes > BUFFER_CACHE_BYTES_MAX:
                _waiting_bytes = sum(b._nbytes for waiting in list(BUFFER_CACHE.values()) for b in waiting)
            waiting = BUFFER_CACHE.setdefault(buffer._key, [])
            if _waiting_bytes + buffer._nbytes <= BUFFER_CACHE_BYTES_MAX:
                waiting.append(buffer)
                _waiting_bytes += buffer._nbytes

    def finalize_memory_transfer(self) -> None:
        """Waits for what a device still writes into the buffer."""
        if not isinstance(self.array, np.ndarray):
            device_synchronize()

    def assign_to(self, destination_array: Any, buffer_slice: Any = np.index_exp[:], buffer_reshape: Any = None) -> None:
        """Copies a slice of the buffer, reshaped if ``buffer_reshape`` says so, into an array."""
        part = self.array[buffer_slice]
        safe_assign_array(destination_array, part if buffer_reshape is None else part.reshape(buffer_reshape))

    def assign_from(self, source_array: Any, buffer_slice: Any = np.index_exp[:]) -> None:
        """Copies an array into a slice of the buffer."""
        safe_assign_array(self.array[buffer_slice], source_array)


@contextlib.contextmanager
def array_buffer(allocator: Allocator, shape: Iterable[int], dtype: Any) -> Iterator[Buffer]:
    """A buffer of the pool for the length of a block. Where the block raises, the buffer does not go back: a message
    that was given up may still use it."""
    buffer = Buffer.pop_from_cache(allocator, shape, dtype)
    yield buffer
    Buffer.push_to_cache(buffer)


@contextlib.contextmanager
def send_buffer(allocator: Allocator, array: Any, timer: Optional[Timer] = None) -> Iterator[Any]:
    """Yields what to send for an array: the array itself where it is in C order, else a copy in a buffer of the pool, made
    under the clock ``pack``."""
    if array is None or is_c_contiguous(array):
        yield array
        return
    with array_buffer(allocator, array.shape, array.dtype) as buffer:
        with (timer or NullTimer()).clock("pack"):
            buffer.assign_from(array)
            buffer.finalize_memory_transfer()
        yield buffer.array


@contextlib.contextmanager
def recv_buffer(allocator: Allocator, array: Any, timer: Optional[Timer] = None) -> Iterator[Any]:
    """Where to receive for an array: the array itself where it is in C order, else a buffer of the pool, which is
    copied into the array at the end of the block, under the clock ``unpack``; not when the block raises."""
    if array is None or is_c_contiguous(array):
        yield array
        return
    with array_buffer(allocator, array.shape, array.dtype) as buffer:
        yield buffer.array
        with (timer or NullTimer()).clock("unpack"):
            buffer.assign_to(array)
