"""The program that is being written, for buffers and operations; programs themselves import both."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, Optional

from tranship._errors import InvalidUse, Overflow
from tranship.mscclpp._language.types import LanguageError

# A CollectiveProgram; ranks may be threads, and each of them writes a program.
program: contextvars.ContextVar[Optional[Any]] = contextvars.ContextVar("program", default=None)


def open_program() -> Any:
    """The program that operations of this thread are added to."""
    found = program.get()
    if found is None:
        raise LanguageError("there is no program: operations belong into `with CollectiveProgram(...)`")
    return found


@contextlib.contextmanager
def raised_as_language() -> Iterator[None]:
    """Raises what the library refuses in the types that MSCCL++ raises."""
    try:
        yield
    except (InvalidUse, Overflow) as error:
        if isinstance(error, LanguageError):
            raise
        raise LanguageError(str(error)) from None
