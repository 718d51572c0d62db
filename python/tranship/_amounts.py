"""Numbers and their nouns in messages: "1 byte", "2 bytes"."""

from __future__ import annotations

from typing import Any

from . import _core


def amount(count: Any, one: str, several: str = "") -> str:
    """The plural takes an s unless another one is given."""
    return f"{count} {_core.plural(1 if count == 1 else 0, one, several)}"
