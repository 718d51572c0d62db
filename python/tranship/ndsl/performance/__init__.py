"""Timers."""

from .timer import NullTimer, Timer

__all__ = ["NullTimer", "Timer"]
