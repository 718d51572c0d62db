"""Modules that a program may have: ``cupy`` is None where it is not installed or has no device."""

from __future__ import annotations

from typing import Any

__all__ = ["cupy"]


def _cupy() -> Any:
    try:
        import cupy as found  # type: ignore[import-not-found, import-untyped, unused-ignore]

        found.cuda.runtime.getDeviceCount()
    except Exception:  # not installed, without a driver, or without a device
        return None
    return found


cupy = _cupy()
