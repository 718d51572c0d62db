"""Clocks by name, which the communicators stop while they pack, wait and unpack."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from timeit import default_timer

from .._errors import HaloStateError, HaloUnsupported, HaloValueError

__all__ = ["NullTimer", "Timer"]


class Timer:
    """Accumulates the seconds and the number of runs of named sections.

    Examples
    --------
    >>> from tranship.ndsl.performance import Timer
    >>> timer = Timer()
    >>> with timer.clock("pack"):
    ...     pass
    >>> timer.hits["pack"]
    1
    """

    def __init__(self, enabled: bool = True) -> None:
        self._began: dict[str, float] = {}
        self._times: dict[str, float] = {}
        self._hits: dict[str, int] = {}
        self._enabled = enabled

    def start(self, name: str) -> None:
        """Starts a clock. ``ValueError`` when it runs already."""
        if not self._enabled:
            return
        if name in self._began:
            raise HaloValueError(f"Clock already started for '{name}'.")
        self._began[name] = default_timer()

    def stop(self, name: str) -> None:
        """Stops a clock and adds what it shows. ``ValueError`` when it does not run."""
        if not self._enabled:
            return
        if name not in self._began:
            raise HaloValueError(f"Clock is not running for '{name}': start it first.")
        seconds = default_timer() - self._began.pop(name)
        self._times[name] = self._times.get(name, 0.0) + seconds
        self._hits[name] = self._hits.get(name, 0) + 1

    @contextlib.contextmanager
    def clock(self, name: str) -> Iterator[None]:
        """Times a block. What the block raises passes through, and its time counts."""
        self.start(name)
        try:
            yield
        finally:
            self.stop(name)

    @property
    def times(self) -> Mapping[str, float]:
        """Seconds of each name, of clocks that have been stopped. ``RuntimeError`` while one runs."""
        self._require_stopped("times")
        return dict(self._times)

    @property
    def hits(self) -> Mapping[str, int]:
        """How often each clock was stopped."""
        self._require_stopped("hits")
        return dict(self._hits)

    def _require_stopped(self, what: str) -> None:
        if self._began:
            raise HaloStateError(f"Cannot retrieve {what} while clocks are still going: {', '.join(self._began)}")

    def reset(self) -> None:
        """Forgets all times and hits."""
        self._times.clear()
        self._hits.clear()

    def enable(self) -> None:
        """Clocks run again."""
        self._enabled = True

    def disable(self) -> None:
        """``start`` and ``stop`` do nothing. ``RuntimeError`` while a clock runs."""
        self._require_stopped("a disabled timer")
        self._enabled = False

    @property
    def enabled(self) -> bool:
        """True when clocks run."""
        return self._enabled


class NullTimer(Timer):
    """A timer that never runs."""

    def __init__(self) -> None:
        super().__init__(enabled=False)

    def enable(self) -> None:
        """Raises ``NotImplementedError``."""
        raise HaloUnsupported("`NullTimer` cannot be enabled.")
