"""Modules that a program may have: ``cupy`` is None where it is not installed or has no device."""

from __future__ import annotations

from typing import Any

__all__ = ["cupy"]


def has_device(module: Any) -> bool:
    """Returns True when a module like CuPy has a device. An installed one may have neither a device nor a driver."""
    try:
        return bool(module.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # of the module's own classes
        return False


def _cupy() -> Any:
    try:
        import cupy as found  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except Exception:  # not installed, or without the libraries that it needs
        return None
    return found if has_device(found) else None


cupy = _cupy()
