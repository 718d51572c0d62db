"""The exceptions. Each also derives from the built-in one that a Python programmer would catch."""

from __future__ import annotations

import builtins
import contextlib
import os
from typing import Any, Optional, TypeVar

from . import _core

__all__ = [
    "BadFile",
    "BadText",
    "DeviceLost",
    "Error",
    "Internal",
    "InvalidUse",
    "IoError",
    "Mismatch",
    "NoMemory",
    "Overflow",
    "PeerLost",
    "Race",
    "TimeoutError",
    "Unsupported",
    "UserException",
]


class Error(Exception):
    """A failure of tranship.

    Attributes
    ----------
    code : str
        What kind of failure it is, such as ``"mismatch"``.
    rank, peer : int or None
        The rank that failed, and the other one that it concerns. An error of a call has the rank that has called, where
        the calling thread is one.
    column : int or None
        The 1-based column of a text, in bytes.
    """

    code: str = "internal"
    rank: Optional[int] = None
    peer: Optional[int] = None
    column: Optional[int] = None

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.rank = _core.rank_of_thread()


class InvalidUse(Error, ValueError):
    """The call breaks a rule of its interface; nothing has happened."""


_T = TypeVar("_T")


def of_type(name: str, value: Any, wanted: type[_T]) -> _T:
    """The value of an argument. Raises ``InvalidUse`` with both types where it is of another one."""
    if not isinstance(value, wanted):
        raise InvalidUse(f"argument '{name}' is {wanted.__name__}, not {type(value).__name__}")
    return value


class Overflow(Error, OverflowError):
    """A size does not fit in 63 bits."""


class Unsupported(Error, NotImplementedError):
    """This build or this combination cannot do it."""


class Race(Error, RuntimeError):
    """Two accesses to the same memory are not ordered (found by a simulation)."""


class BadText(Error, ValueError):
    """A text does not follow its grammar."""


class BadFile(Error, ValueError):
    """A file does not follow its format."""


class Mismatch(Error, ValueError):
    """Two things that must agree do not."""


class IoError(Error, OSError):
    """The operating system refused a file operation."""


class NoMemory(Error, MemoryError):
    """Memory could not be obtained."""


class TimeoutError(Error, builtins.TimeoutError):
    """A deadline passed. The message says who waited on what."""


class PeerLost(Error, ConnectionError):
    """Another rank failed. The message says which, and why."""


class DeviceLost(Error, RuntimeError):
    """A device does no work any more, or held the only copy of a value."""


class Internal(Error, RuntimeError):
    """An assertion of tranship failed."""


class UserException(Error, RuntimeError):
    """A rank in another process has raised an exception of the program's own; the message has its type and text."""


_classes: dict[str, type[Error]] = {
    "invalid_use": InvalidUse,
    "overflow": Overflow,
    "unsupported": Unsupported,
    "race": Race,
    "bad_text": BadText,
    "bad_file": BadFile,
    "mismatch": Mismatch,
    "io": IoError,
    "no_memory": NoMemory,
    "timeout": TimeoutError,
    "peer_lost": PeerLost,
    "device_lost": DeviceLost,
    "internal": Internal,
    "user_exception": UserException,
}
for _code, _class in _classes.items():
    _class.code = _code
_core.set_package(
    os.path.join(os.path.dirname(__file__), ""),
    contextlib.ExitStack.close.__code__.co_filename,
    {"base": Error, **_classes},
)
