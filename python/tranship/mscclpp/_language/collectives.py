"""The collectives that programs promise."""

from __future__ import annotations

from tranship.mscclpp._language.buffers import BaseBuffer
from tranship.mscclpp._language.types import BufferType, whole

__all__ = [
    "AllGather",
    "AllReduce",
    "AllToAll",
    "Broadcast",
    "Collective",
    "Reduce",
    "ReduceScatter",
    "SendRecv",
    "TestCollective",
]

Buffers = list[dict[BufferType, BaseBuffer]]


class Collective:
    """A collective operation. Subclasses say how many chunks each rank has.

    Parameters
    ----------
    num_ranks : int
    chunk_factor : int
        Chunks of the smallest part that the collective tells apart.
    inplace : bool
        Whether input and output share memory.
    """

    def __init__(self, num_ranks: int, chunk_factor: int, inplace: bool) -> None:
        self.num_ranks = whole("num_ranks", num_ranks)
        self.chunk_factor = whole("chunk_factor", chunk_factor)
        self.inplace = inplace
        self.name = "custom"

    def init_buffers(self) -> Buffers:
        """The input and the output of each rank."""
        raise NotImplementedError(f"{type(self).__name__} does not say which buffers it has")

    def check(self, prog: object) -> None:
        """Nothing: :meth:`tranship.Program.verify` proves programs."""

    def _buffers(self, input_chunks: int, output_chunks: int) -> Buffers:
        return [
            {
                BufferType.input: BaseBuffer(rank, BufferType.input, 0, input_chunks),
                BufferType.output: BaseBuffer(rank, BufferType.output, 0, output_chunks),
            }
            for rank in range(self.num_ranks)
        ]


class _Named(Collective):
    """A collective whose buffers have one part, or one for each rank."""

    _name = ""
    _input_has_all = False
    _output_has_all = False

    def __init__(self, num_ranks: int, chunk_factor: int, inplace: bool) -> None:
        super().__init__(num_ranks, chunk_factor, inplace)
        self.name = self._name

    def init_buffers(self) -> Buffers:
        """The input and the output of each rank."""
        one, all_of_them = self.chunk_factor, self.chunk_factor * self.num_ranks
        return self._buffers(
            all_of_them if self._input_has_all else one, all_of_them if self._output_has_all else one
        )


class AllGather(_Named):
    """Every rank receives the inputs of all, in the order of ranks."""

    _name = "allgather"
    _output_has_all = True


class AllReduce(_Named):
    """Every rank receives the combination of all inputs."""

    _name = "allreduce"
    _input_has_all = True
    _output_has_all = True


class ReduceScatter(_Named):
    """Rank r receives the combination of part r of all inputs."""

    _name = "reducescatter"
    _input_has_all = True


class AllToAll(_Named):
    """Rank r receives part r of all inputs, in the order of ranks."""

    _name = "alltoall"
    _input_has_all = True
    _output_has_all = True


class SendRecv(_Named):
    """Every rank receives the input of another one, which the program chooses."""

    _name = "sendrecv"


class Broadcast(_Named):
    """Every rank receives the input of one, which the program chooses. Not in MSCCL++."""

    _name = "broadcast"


class Reduce(_Named):
    """One rank at least, which the program chooses, receives the combination of all inputs. Not in MSCCL++."""

    _name = "reduce"


class TestCollective(Collective):
    """Buffers of any size, and no promise.

    Parameters
    ----------
    num_ranks : int
    input_size, output_size : int
        Chunks of each rank.
    """

    __test__ = False  # it is no test of pytest's

    def __init__(self, num_ranks: int, input_size: int, output_size: int) -> None:
        super().__init__(num_ranks, 1, False)
        self.name = "test"
        self.input_size = input_size
        self.output_size = output_size

    def init_buffers(self) -> Buffers:
        """The input and the output of each rank."""
        return self._buffers(self.input_size, self.output_size)
