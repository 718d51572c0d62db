"""Buffers and what cuts them."""

from __future__ import annotations

from tranship.mscclpp._language.current import open_program, raised_as_language
from tranship.mscclpp._language.types import BufferType, Chunk, LanguageError, whole

__all__ = ["BaseBuffer", "Buffer", "ThreadBlockGroup"]


class BaseBuffer:
    """A buffer of a rank; slices of it are chunks.

    Parameters
    ----------
    rank : int
    buffer_type : BufferType
    offset : int
        Where it begins, in chunks.
    size : int
        Its chunks.

    Attributes
    ----------
    size : int
        Where it ends, in chunks: `offset` plus its chunks.
    """

    def __init__(self, rank: int, buffer_type: BufferType, offset: int, size: int) -> None:
        self.rank = rank
        self.buffer_type = buffer_type
        self.offset = offset
        self.size = offset + size

    def __getitem__(self, key: slice) -> Chunk:
        if not isinstance(key, slice):
            raise TypeError(f"a buffer is cut by slices, not by {type(key).__name__}")
        if key.step is not None and key.step != 1:
            raise ValueError(f"a slice of a buffer has step 1, not {key.step}")
        chunks = self.size - self.offset
        start = 0 if key.start is None else whole("the start of a slice", key.start)
        stop = chunks if key.stop is None else whole("the stop of a slice", key.stop)
        if start < 0 or stop < 0 or start > stop:
            raise ValueError(f"a slice from {key.start} to {key.stop}: needs 0 <= start <= stop")
        if stop > chunks:
            raise LanguageError(
                f"[{start}..{stop}) is not a range of a buffer of {chunks} chunk{'s' * (chunks != 1)} "
                f"({self.buffer_type} of rank {self.rank})"
            )
        return Chunk(self.rank, self.buffer_type, self.offset + start, stop - start)


class Buffer(BaseBuffer):
    """Scratch memory, appended to what the rank has.

    Parameters
    ----------
    rank : int
    size : int
        Its chunks.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._program = open_program()
        with raised_as_language():
            offset = self._program._writer.scratch(rank, size)
        super().__init__(rank, BufferType.scratch, offset, size)

    def __getitem__(self, key: slice) -> Chunk:
        self._program.require_written(type(self).__name__)
        return super().__getitem__(key)


class ThreadBlockGroup:
    """Thread blocks that share an operation: each takes its part of the bytes, by position.

    Parameters
    ----------
    tb_list : list of int
        Their ids, each once.
    """

    def __init__(self, tb_list: list[int]) -> None:
        self.tb_list = tb_list
        self._places = {tb: place for place, tb in enumerate(tb_list)}
        if len(self._places) != len(tb_list):
            twice = next(tb for place, tb in enumerate(tb_list) if self._places[tb] != place)
            raise ValueError(f"thread block {twice} is twice in a group of {len(tb_list)}")

    def get_internal_id(self, tb: int) -> int:
        """The position of a block in the group."""
        if tb not in self._places:
            raise ValueError(f"thread block {tb} is not in the group of {len(self.tb_list)}")
        return self._places[tb]

    def numtb(self) -> int:
        """How many blocks there are."""
        return len(self.tb_list)
