"""Words and values of the language."""

from __future__ import annotations

import enum
import operator
from dataclasses import dataclass
from typing import Any, NoReturn

from tranship import _core
from tranship._errors import InvalidUse

__all__ = [
    "BufferType",
    "ChannelType",
    "Chunk",
    "DataAccessType",
    "Instruction",
    "LanguageError",
    "ProtocolError",
    "RankGroup",
    "ReduceOperationType",
    "ReplicationPolicy",
    "SyncType",
]


class LanguageError(InvalidUse, RuntimeError):
    """An operation that breaks a rule of the language. MSCCL++ raises a RuntimeError or a ValueError there."""


class ProtocolError(LanguageError, AssertionError):
    """A protocol that does not exist. MSCCL++ asserts."""


def whole(what: str, number: object) -> int:
    """An int, also of NumPy's integers."""
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise LanguageError(f"{what} is a whole number, not {number!r}") from None


class _Word(enum.Enum):
    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        members = ", ".join(f"{cls.__name__}.{name}" for name in cls.__members__)
        raise LanguageError(f"{value!r} is no {cls.__name__}: it is one of {members}, or the value of one")


class SyncType(_Word):
    """When the threads of a block meet around an operation."""

    none = "none"
    before = "before"
    after = "after"
    both = "both"

    @property
    def bits(self) -> int:
        """1 for before, 2 for after."""
        return ("none", "before", "after", "both").index(self.value)

    @classmethod
    def _of(cls, bits: int) -> SyncType:
        return (cls.none, cls.before, cls.after, cls.both)[bits]

    def __or__(self, other: object) -> SyncType:
        return SyncType._of(self.bits | other.bits) if isinstance(other, SyncType) else NotImplemented

    def __and__(self, other: object) -> SyncType:
        return SyncType._of(self.bits & other.bits) if isinstance(other, SyncType) else NotImplemented

    def __xor__(self, other: object) -> SyncType:
        return SyncType._of(self.bits ^ other.bits) if isinstance(other, SyncType) else NotImplemented


class ReduceOperationType(_Word):
    """How values are combined. ``prod`` is not in MSCCL++."""

    sum = "sum"
    min = "min"
    max = "max"
    prod = "prod"


class BufferType(_Word):
    """Which buffer of a rank."""

    input = "i"
    output = "o"
    scratch = "s"

    def __lt__(self, other: BufferType) -> bool:
        return bool(self.value < other.value)

    def __gt__(self, other: BufferType) -> bool:
        return bool(self.value > other.value)


class ChannelType(_Word):
    """How a channel carries data."""

    port = "port"
    memory = "memory"
    switch = "switch"
    none = "none"


class DataAccessType(_Word):
    """The ways in which an operation accesses a chunk."""

    read = "r"
    write = "w"
    both = "b"

    def __or__(self, other: object) -> DataAccessType:
        if not isinstance(other, DataAccessType):
            return NotImplemented
        return self if self is other else DataAccessType.both


class ReplicationPolicy(_Word):
    """How the instances of a program divide the work: every n-th group of chunks, or shares of the same chunks."""

    interleaved = "interleaved"
    none = "none"


# MSCCL++'s names for the words of plan files; the words themselves are those that the library knows.
_INSTRUCTIONS = {
    "copy_packet": "cpkt",
    "unpack_packet": "upkt",
    "reduce_packet": "repkt",
    "reduce_copy_packet": "recpkt",
    "sem_acquire": "sem_acquire",
    "sem_release": "sem_release",
    "put_packet": "ppkt",
    "read_put_packet": "rppkt",
    "put_with_signal": "pws",
    "put_with_signal_and_flush": "pwsf",
    "reduce_send": "res",
    "reduce_send_packet": "respkt",
    "reduce_copy_send_packet": "recspkt",
    "read_reduce_send": "rres",
    "group_store": "gstore",
    "group_store_packet": "gstorepkt",
    "group_load_reduce": "glre",
    "group_load_reduce_store": "glres",
}


def _instructions() -> dict[str, str]:
    words: dict[str, str] = _core.step_words()
    unknown = set(_INSTRUCTIONS.values()) - set(words.values())
    assert not unknown, unknown
    named = set(_INSTRUCTIONS.values())
    return {**_INSTRUCTIONS, **{name: word for name, word in words.items() if word not in named}}


Instruction = enum.Enum("Instruction", _instructions())  # type: ignore[misc]


@dataclass
class Chunk:
    """Some chunks of a buffer of a rank: `size` of them from `index` on."""

    rank: int
    buffer: BufferType
    index: int
    size: int

    def __hash__(self) -> int:
        return hash((self.rank, self.buffer, self.index, self.size))

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as JSON has it."""
        return {"rank": self.rank, "type": self.buffer.value, "index": self.index, "size": self.size}

    def _tuple(self) -> tuple[int, str, int, int]:
        return (self.rank, BufferType(self.buffer).value, self.index, self.size)


@dataclass
class RankGroup:
    """The ranks of a switch channel."""

    size: int
    ranks: list[int]

    def to_dict(self) -> dict[str, Any]:
        """Returns the value as JSON has it."""
        return {"size": self.size, "ranks": self.ranks}
