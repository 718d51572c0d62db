"""The host interface of NVSHMEM4Py."""

from . import _collectives, _memory, _runtime, _teams, _transfers, _types
from ._collectives import *  # noqa: F403
from ._memory import *  # noqa: F403
from ._runtime import *  # noqa: F403
from ._teams import *  # noqa: F403
from ._transfers import *  # noqa: F403
from ._types import *  # noqa: F403

__all__: list[str] = []
__all__ += _collectives.__all__
__all__ += _memory.__all__
__all__ += _runtime.__all__
__all__ += _teams.__all__
__all__ += _transfers.__all__
__all__ += _types.__all__
