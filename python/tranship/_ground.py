"""The world of the rank that calls. All modules may ask for it, so this one imports none of them."""

from __future__ import annotations

import contextvars
from typing import Any, Optional

# A World; ranks may be threads, and each of them has its own.
current: contextvars.ContextVar[Optional[Any]] = contextvars.ContextVar("tranship_world", default=None)
