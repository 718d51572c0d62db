"""Enumerations with NVSHMEM's numbers, errors, and what stands for devices and streams."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from ..._errors import Error, InvalidUse
from ._ground import runtime_if_any

__all__ = [
    "BufferTypes",
    "ComparisonType",
    "Device",
    "InitStatus",
    "NvshmemError",
    "NvshmemInvalid",
    "NvshmemStreamsType",
    "SignalOp",
    "Stream",
    "TeamConfig",
    "Teams",
    "Version",
]

#: What NVSHMEM4Py raises are tranship's own errors.
NvshmemError = Error
NvshmemInvalid = InvalidUse


class ComparisonType(enum.IntEnum):
    """How a wait compares."""

    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_LE = 3
    CMP_LT = 4
    CMP_GE = 5


class SignalOp(enum.IntEnum):
    """The ways in which a signal changes its variable."""

    SIGNAL_SET = 9
    SIGNAL_ADD = 10


class InitStatus(enum.IntEnum):
    """The result of :func:`init_status`."""

    STATUS_NOT_INITIALIZED = 0
    STATUS_IS_BOOTSTRAPPED = 1
    STATUS_IS_INITIALIZED = 2


class BufferTypes(enum.IntEnum):
    """The kinds of memory that a buffer can be."""

    NORMAL = 0
    PEER = 1
    MULTIMEM = 2
    EXTERNAL = 3


class TeamRegistry(Mapping[str, int]):
    """Numbers of teams by name: ``Teams.TEAM_WORLD``. New teams of a rank add theirs. As in NVSHMEM's enumeration, the
    first number of these and the highest one that a team can have, ``TEAMS_MIN`` and ``TEAM_INDEX_MAX``, are among
    them."""

    def __init__(self, **predefined: int) -> None:
        self._predefined = predefined

    @property
    def _own(self) -> dict[str, int]:
        here = runtime_if_any()
        return {} if here is None else here.team_names

    def add(self, key: str, value: int) -> None:
        if key in self:
            raise NvshmemInvalid(f"the name {key!r} belongs to team {self[key]}: it cannot name team {value}")
        self._own[key] = value

    def remove(self, key: str) -> None:
        if key not in self._own:
            raise NvshmemInvalid(f"no team of this rank's own is called {key!r}")
        del self._own[key]

    def remove_by_value(self, value: int) -> None:
        own = self._own
        for key in [key for key, known in own.items() if known == value]:
            del own[key]

    def __getitem__(self, key: str) -> int:
        return self._predefined[key] if key in self._predefined else self._own[key]

    def __getattr__(self, key: str) -> int:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"no team is called {key!r}") from None

    def __iter__(self) -> Iterator[str]:
        yield from self._predefined
        yield from self._own

    def __len__(self) -> int:
        return len(self._predefined) + len(self._own)

    def __repr__(self) -> str:
        return f"<teams {', '.join(f'{name}={number}' for name, number in self.items())}>"


Teams = TeamRegistry(
    TEAM_INVALID=-1,
    TEAM_WORLD=0,
    TEAM_SHARED=1,
    TEAM_NODE=2,
    TEAM_SAME_MYPE_NODE=3,
    TEAM_SAME_GPU=4,
    TEAM_GPU_LEADERS=5,
    TEAMS_MIN=6,
    TEAM_INDEX_MAX=32767,
)


class TeamConfig:
    """Accepted where NVSHMEM takes one; nothing here depends on it."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


class Stream:
    """Stands for a stream of a GPU. Operations take effect in the order of the program, so that it orders nothing."""

    handle = 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 0)

    def __int__(self) -> int:
        return 0

    def sync(self) -> None:
        """Returns at once: what was enqueued has been done."""

    def close(self) -> None:
        """Does nothing."""


class Device:
    """Stands for a GPU: the CPU of this rank, as ``cuda.core.Device`` is used."""

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def set_current(self) -> None:
        """Does nothing: a rank has one CPU."""

    def create_stream(self, *_: Any, **__: Any) -> Stream:
        return Stream()

    def sync(self) -> None:
        """Returns at once."""


#: Anything that names a stream; nothing depends on it.
NvshmemStreamsType = Any


class Version:
    """The result of :func:`get_version`."""

    def __init__(self, openshmem_spec_version: str, nvshmem4py_version: str, libnvshmem_version: str) -> None:
        self.openshmem_spec_version = openshmem_spec_version
        self.nvshmem4py_version = nvshmem4py_version
        self.libnvshmem_version = libnvshmem_version

    def __repr__(self) -> str:
        return (
            f"<OpenSHMEM {self.openshmem_spec_version}, names of NVSHMEM4Py {self.nvshmem4py_version}, "
            f"tranship {self.libnvshmem_version}>"
        )
