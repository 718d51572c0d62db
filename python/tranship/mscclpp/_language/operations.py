"""The operations of ranks and channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Optional, TypeVar

from tranship._amounts import amount
from tranship import _core
from tranship.mscclpp._language.buffers import BaseBuffer, ThreadBlockGroup
from tranship.mscclpp._language.current import raised_as_language
from tranship.mscclpp._language.programs import get_program
from tranship.mscclpp._language.types import (
    BufferType,
    ChannelType,
    Chunk,
    LanguageError,
    RankGroup,
    ReduceOperationType,
    SyncType,
    whole,
)

__all__ = ["MemoryChannel", "PortChannel", "Rank", "Semaphore", "SwitchChannel"]

Blocks = tuple[Optional[int], Optional[list[int]]]


def _blocks(tb: Optional[int], tb_group: Optional[ThreadBlockGroup]) -> Blocks:
    """Where both are given, `tb` does its part of what the group shares."""
    if tb is None and tb_group is None:
        raise LanguageError("no thread block is given: needs tb or tb_group, and both are None")
    return (tb, None if tb_group is None else tb_group.tb_list)


def _reduction(operation: object) -> str:
    return ReduceOperationType(operation).value


class Rank:
    """A rank, and what it does without a channel.

    Parameters
    ----------
    rank : int
    """

    def __init__(self, rank: int) -> None:
        self.rank = whole("a rank", rank)
        self._buffers()

    def __repr__(self) -> str:
        return f"Rank(rank={self.rank})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rank) and self.rank == other.rank

    def __hash__(self) -> int:
        return hash(self.rank)

    def get_input_buffer(self) -> BaseBuffer:
        """Its input."""
        return self._buffers()[BufferType.input]

    def get_output_buffer(self) -> BaseBuffer:
        """Its output."""
        return self._buffers()[BufferType.output]

    def _buffers(self) -> dict[BufferType, BaseBuffer]:
        """The buffers of the program that is being written, which may be another one than before, with fewer ranks."""
        program = get_program()
        if not 0 <= self.rank < program.num_ranks:
            raise LanguageError(
                f'rank {self.rank} is out of bounds: the program "{program.name}" has {amount(program.num_ranks, "rank")}'
            )
        return program.buffers[self.rank]

    def _check(self, *chunks: Chunk) -> None:
        for chunk in chunks:
            if chunk.rank != self.rank:
                raise LanguageError(f"the chunk belongs to rank {chunk.rank}, but this operation takes one of rank {self.rank}")

    def copy(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Copies chunks of this rank."""
        self._check(dst_chunk, src_chunk)
        with raised_as_language():
            get_program()._writer.copy(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def unpack_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Waits for packets in scratch, and makes them plain data."""
        self._check(dst_chunk, src_chunk)
        with raised_as_language():
            get_program()._writer.unpack_packets(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def copy_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Makes plain data packets in scratch."""
        self._check(dst_chunk, src_chunk)
        with raised_as_language():
            get_program()._writer.copy_packets(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def reduce(
        self,
        src_chunk: Chunk,
        other_chunks: list[Chunk],
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
        dst_chunk: Optional[Chunk] = None,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
        packet: bool = False,
    ) -> None:
        """Combines chunks of this rank.

        Parameters
        ----------
        src_chunk : Chunk
        other_chunks : list of Chunk
            With `packet`, packets in scratch, for which it waits.
        tb, tb_group
            The thread block, or the group that shares the work.
        dst_chunk : Chunk, optional
            `src_chunk` where it is missing.
        reduce_op : ReduceOperationType
        packet : bool
        """
        target = src_chunk if dst_chunk is None else dst_chunk
        self._check(src_chunk, target, *other_chunks)
        writer = get_program()._writer
        with raised_as_language():
            (writer.reduce_packets if packet else writer.reduce)(
                src_chunk._tuple(),
                [chunk._tuple() for chunk in other_chunks],
                _blocks(tb, tb_group),
                target._tuple(),
                _reduction(reduce_op),
            )

    def barrier(self, tb_list: list[int]) -> None:
        """The thread blocks wait for each other; a single one for its own threads."""
        with raised_as_language():
            get_program()._writer.barrier(self.rank, tb_list)


Core = TypeVar("Core")


class _OfProgram(Generic[Core]):
    """Base of objects that belong to the program in whose ``with`` they are made, and are used only there."""

    def __init__(self, make: Callable[[_core.ProgramWriter], Core]) -> None:
        self._program = get_program()
        with raised_as_language():
            self._made = make(self._program._writer)

    @property
    def _core(self) -> Core:
        self._program.require_written(type(self).__name__)
        return self._made

    @classmethod
    def reset(cls) -> None:
        """Nothing: each program counts what is made in it."""


class MemoryChannel(_OfProgram[_core.ProgramMemoryChannel]):
    """Loads and stores of a peer's memory, from `src_rank` to `dst_rank`.

    The k-th channel from r to p and the k-th one from p to r are the two ends of one connection.
    """

    def __init__(self, dst_rank: int, src_rank: int) -> None:
        super().__init__(lambda writer: _core.ProgramMemoryChannel(writer, dst_rank, src_rank))
        self.channel_id = self._core.id
        self.dst_rank = dst_rank
        self.src_rank = src_rank
        self.channel_type = ChannelType.memory

    def signal(self, tb: int, data_sync: SyncType = SyncType.both, relaxed: bool = False) -> None:
        """Tells the peer that what the block did before is done. A relaxed signal orders execution only."""
        with raised_as_language():
            self._core.signal(tb, SyncType(data_sync).bits, relaxed)

    def wait(self, tb: int, data_sync: SyncType = SyncType.both, relaxed: bool = False) -> None:
        """Waits for one signal of the peer."""
        with raised_as_language():
            self._core.wait(tb, SyncType(data_sync).bits, relaxed)

    def get(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Copies a chunk of the peer to this rank."""
        with raised_as_language():
            self._core.get(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def put(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Copies a chunk of this rank to the peer."""
        with raised_as_language():
            self._core.put(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def read_put_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Waits for packets of this rank, and copies them to the peer."""
        with raised_as_language():
            self._core.read_put_packets(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def put_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Copies plain data of this rank to packets in the peer's scratch."""
        with raised_as_language():
            self._core.put_packets(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))

    def reduce(
        self,
        local_src_chunk: Chunk,
        remote_src_chunks: list[Chunk],
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
        local_dst_chunk: Optional[Chunk] = None,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
    ) -> None:
        """Combines a chunk of this rank with chunks of the peer, into `local_dst_chunk` or in place."""
        target = local_src_chunk if local_dst_chunk is None else local_dst_chunk
        with raised_as_language():
            self._core.reduce(
                local_src_chunk._tuple(),
                [chunk._tuple() for chunk in remote_src_chunks],
                _blocks(tb, tb_group),
                target._tuple(),
                _reduction(reduce_op),
            )


class PortChannel(_OfProgram[_core.ProgramPortChannel]):
    """Requests to a peer that are carried out in order, from `src_rank` to `dst_rank`."""

    def __init__(self, dst_rank: int, src_rank: int) -> None:
        super().__init__(lambda writer: _core.ProgramPortChannel(writer, dst_rank, src_rank))
        self.channel_id = self._core.id
        self.dst_rank = dst_rank
        self.src_rank = src_rank
        self.channel_type = ChannelType.port

    def signal(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Tells the peer that the requests before are done."""
        with raised_as_language():
            self._core.signal(tb, SyncType(data_sync).bits)

    def wait(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits for one signal of the peer."""
        with raised_as_language():
            self._core.wait(tb, SyncType(data_sync).bits)

    def flush(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits until the sources of the requests before may be overwritten."""
        with raised_as_language():
            self._core.flush(tb, SyncType(data_sync).bits)

    def put(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Copies a chunk of this rank to the peer."""
        with raised_as_language():
            self._core.put(dst_chunk._tuple(), src_chunk._tuple(), tb)

    def put_with_signal(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Copies a chunk, and signals."""
        with raised_as_language():
            self._core.put_with_signal(dst_chunk._tuple(), src_chunk._tuple(), tb)

    def put_with_signal_and_flush(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Copies a chunk, signals, and waits until the source may be overwritten."""
        with raised_as_language():
            self._core.put_with_signal_and_flush(dst_chunk._tuple(), src_chunk._tuple(), tb)

    def put_packets(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Copies packets of this rank as they are to the peer's scratch: nothing waits for them."""
        with raised_as_language():
            self._core.put_packets(dst_chunk._tuple(), src_chunk._tuple(), tb)

    def read_put_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Optional[int] = None, tb_group: Optional[ThreadBlockGroup] = None
    ) -> None:
        """Waits for packets of this rank, and copies them to the peer."""
        with raised_as_language():
            self._core.read_put_packets(dst_chunk._tuple(), src_chunk._tuple(), _blocks(tb, tb_group))


class SwitchChannel(_OfProgram[_core.ProgramSwitchChannel]):
    """One place of a buffer of several ranks, reached at once."""

    def __init__(self, rank_list: list[int], buffer_type: BufferType) -> None:
        buffer_type = BufferType(buffer_type)
        super().__init__(lambda writer: _core.ProgramSwitchChannel(writer, rank_list, buffer_type.value))
        self.channel_ids = {rank: self._core.id_at(rank) for rank in rank_list}
        self.channel_type = ChannelType.switch
        self.buffer_type = buffer_type
        self.rank_group = RankGroup(len(rank_list), rank_list)

    def at_rank(self, rank: int) -> SwitchChannelRankView:
        """The channel as one rank uses it."""
        if rank not in self.rank_group.ranks:
            raise LanguageError(f"rank {rank} is not among the {amount(self.rank_group.size, 'rank')} of the switch channel")
        return SwitchChannel.SwitchChannelRankView(self, rank)

    def _check(self, size: int, chunk: Chunk) -> None:
        if chunk.size != size:
            raise LanguageError(f"the chunk has size {chunk.size}, but the operation moves {size}")

    def reduce(
        self,
        rank: int,
        buffer_offset: int,
        size: int,
        dst_chunk: Chunk,
        tb: int,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
    ) -> None:
        """`rank` combines one place of all ranks into a chunk of its own."""
        self._check(size, dst_chunk)
        with raised_as_language():
            self._core.reduce(rank, buffer_offset, dst_chunk._tuple(), tb, _reduction(reduce_op))

    def broadcast(self, rank: int, src_chunk: Chunk, buffer_offset: int, size: int, tb: int) -> None:
        """`rank` writes a chunk of its own to one place of all ranks."""
        self._check(size, src_chunk)
        with raised_as_language():
            self._core.broadcast(rank, src_chunk._tuple(), buffer_offset, tb)

    def broadcast_packets(self, rank: int, src_chunk: Chunk, buffer_offset: int, size: int, tb: int) -> None:
        """`rank` writes packets of its own to one place of the scratch of all ranks."""
        self._check(size, src_chunk)
        with raised_as_language():
            self._core.broadcast_packets(rank, src_chunk._tuple(), buffer_offset, tb)

    class SwitchChannelRankView:
        """A switch channel as one rank uses it."""

        def __init__(self, channel: SwitchChannel, rank: int) -> None:
            self._channel = channel
            self._rank = rank

        def reduce(
            self,
            buffer_offset: int,
            size: int,
            dst_chunk: Chunk,
            tb: int,
            reduce_op: ReduceOperationType = ReduceOperationType.sum,
        ) -> None:
            """See :meth:`SwitchChannel.reduce`."""
            self._channel.reduce(self._rank, buffer_offset, size, dst_chunk, tb, reduce_op)

        def broadcast(self, src_chunk: Chunk, buffer_offset: int, size: int, tb: int) -> None:
            """See :meth:`SwitchChannel.broadcast`."""
            self._channel.broadcast(self._rank, src_chunk, buffer_offset, size, tb)

        def broadcast_packets(self, src_chunk: Chunk, buffer_offset: int, size: int, tb: int) -> None:
            """See :meth:`SwitchChannel.broadcast_packets`."""
            self._channel.broadcast_packets(self._rank, src_chunk, buffer_offset, size, tb)


SwitchChannelRankView = SwitchChannel.SwitchChannelRankView


class Semaphore(_OfProgram[_core.ProgramSemaphore]):
    """Counts for the thread blocks of one rank."""

    def __init__(self, rank: int, initial_value: int) -> None:
        super().__init__(lambda writer: _core.ProgramSemaphore(writer, rank, initial_value))
        self.id = self._core.id
        self.rank = rank
        self.initial_value = initial_value

    def acquire(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits until the value is positive, and takes one."""
        with raised_as_language():
            self._core.acquire(tb, SyncType(data_sync).bits)

    def release(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Adds one."""
        with raised_as_language():
            self._core.release(tb, SyncType(data_sync).bits)
