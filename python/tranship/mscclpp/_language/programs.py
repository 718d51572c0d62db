"""The program that is being written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Optional

from tranship._amounts import amount
from tranship import _core
from tranship._programs import Program
from tranship.mscclpp._language import current
from tranship.mscclpp._language.collectives import Collective
from tranship.mscclpp._language.current import raised_as_language
from tranship.mscclpp._language.types import BufferType, LanguageError, ProtocolError, ReplicationPolicy

__all__ = ["JSON", "AlgoSpec", "CollectiveProgram", "LoopIterationContext", "get_program", "set_program"]


def set_program(program: Optional[CollectiveProgram]) -> None:
    """Makes a program the one that operations of this thread are added to."""
    current.program.set(program)


def get_program() -> CollectiveProgram:
    """The program that operations of this thread are added to."""
    program: CollectiveProgram = current.open_program()
    return program


@dataclass(frozen=True)
class AlgoSpec:
    """All that says which program is meant; :meth:`CollectiveProgram.from_spec` takes it."""

    name: str
    collective: Collective
    nranks_per_node: int
    world_size: int
    in_place: bool
    instances: int
    protocol: str
    instr_fusion: bool = True
    auto_sync: bool = True
    replication_policy: ReplicationPolicy = ReplicationPolicy.interleaved
    reuse_resources: bool = False
    num_threads_per_block: int = 1024
    use_double_scratch_buffer: bool = False
    buffer_alignment: int = 16
    min_message_size: int = 0
    max_message_size: int = 2**64 - 1
    tags: dict[str, Any] = field(default_factory=dict)


class CollectiveProgram:
    """A program. Operations that are written within ``with`` are added to it.

    Parameters
    ----------
    name : str
    collective : Collective
        What it promises.
    num_ranks : int
        As many as the collective has.
    instances : int
        How often all of it is replicated.
    protocol : {"Simple", "LL"}
        "LL": data travels in packets.
    instr_fusion : bool
        Whether neighbouring operations are joined.
    auto_sync : bool
        Whether thread blocks meet between operations on the same chunks.
    replication_policy : ReplicationPolicy
    reuse_resources : bool
    num_threads_per_block : int
    use_double_scratch_buffer : bool
        Whether launches use two halves of the scratch memory in turn.
    buffer_alignment : int
        In bytes.
    min_message_size, max_message_size : int
        In bytes.
    """

    def __init__(
        self,
        name: Optional[str],
        collective: Collective,
        num_ranks: int,
        instances: int = 1,
        protocol: str = "Simple",
        instr_fusion: bool = True,
        auto_sync: bool = True,
        replication_policy: ReplicationPolicy = ReplicationPolicy.interleaved,
        reuse_resources: bool = False,
        num_threads_per_block: int = 1024,
        use_double_scratch_buffer: bool = False,
        buffer_alignment: int = 16,
        min_message_size: int = 0,
        max_message_size: int = 2**64 - 1,
    ) -> None:
        if protocol not in ("Simple", "LL"):
            raise ProtocolError(f"the protocol is {protocol!r}; it must be 'Simple' or 'LL'")
        self.name = name
        self.collective = collective
        self.num_ranks = num_ranks
        self.instances = instances
        self.protocol = protocol
        self.instr_fusion = instr_fusion
        self.auto_sync = auto_sync
        self.replication_policy = ReplicationPolicy(replication_policy)
        self.reuse_resources = reuse_resources
        self.num_threads_per_block = num_threads_per_block
        self.use_double_scratch_buffer = use_double_scratch_buffer
        self.buffer_alignment = buffer_alignment
        self.min_message_size = min_message_size
        self.max_message_size = max_message_size
        self.buffers = collective.init_buffers()
        self.loop_context: Optional[LoopIterationContext] = None
        self._around: Optional[CollectiveProgram] = None
        if len(self.buffers) != num_ranks:
            raise LanguageError(f"the program has {amount(num_ranks, 'rank')}, but the collective {len(self.buffers)}")
        with raised_as_language():
            self._writer = _core.ProgramWriter(
                name="" if name is None else name,  # scripts pass on an option that was not given
                collective=collective.name,
                input_chunks=[of_rank[BufferType.input].size for of_rank in self.buffers],
                output_chunks=[of_rank[BufferType.output].size for of_rank in self.buffers],
                in_place=bool(collective.inplace),
                instances=instances,
                protocol=protocol,
                interleaved=self.replication_policy is ReplicationPolicy.interleaved,
                reuse_resources=reuse_resources,
                threads_per_block=num_threads_per_block,
                double_scratch=use_double_scratch_buffer,
                buffer_alignment=buffer_alignment,
                message_bytes_min=min_message_size,
                message_bytes_max=max_message_size,
            )

    @classmethod
    def from_spec(cls, spec: AlgoSpec) -> CollectiveProgram:
        """The program that a specification describes."""
        return cls(
            spec.name,
            spec.collective,
            spec.world_size,
            instances=spec.instances,
            protocol=spec.protocol,
            instr_fusion=spec.instr_fusion,
            auto_sync=spec.auto_sync,
            replication_policy=spec.replication_policy,
            reuse_resources=spec.reuse_resources,
            num_threads_per_block=spec.num_threads_per_block,
            use_double_scratch_buffer=spec.use_double_scratch_buffer,
            buffer_alignment=spec.buffer_alignment,
            min_message_size=spec.min_message_size,
            max_message_size=spec.max_message_size,
        )

    def __enter__(self) -> CollectiveProgram:
        self._around = current.program.get()
        set_program(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_program(self._around)
        self._around = None

    def require_written(self, what: str) -> None:
        """Refuses what belongs to this program where operations are added to another one, or to none."""
        written = get_program()
        if written is not self:
            raise LanguageError(f'a {what} of the program "{self.name}" is used in the `with` of the program "{written.name}"')

    def lower(
        self,
        *,
        pairing: bool = True,
        group_barriers: Optional[bool] = None,
        fusion: Optional[bool] = None,
        data_sync: bool = True,
        dependencies: Optional[bool] = None,
        replication: bool = True,
    ) -> Program:
        """The program as it stands. Operations may follow, and it may be called again.

        Parameters
        ----------
        pairing, group_barriers, fusion, data_sync, dependencies, replication : bool, optional
            The passes, in their order; a pass that is False is left out. Where nothing is said, ``instr_fusion`` and
            ``auto_sync`` of the program decide.
        """
        with raised_as_language():
            return Program._of(
                self._writer.lower(
                    pairing=pairing,
                    group_barriers=self.auto_sync if group_barriers is None else group_barriers,
                    fusion=self.instr_fusion if fusion is None else fusion,
                    data_sync=data_sync,
                    dependencies=self.auto_sync if dependencies is None else dependencies,
                    replication=replication,
                )
            )

    def to_json(self, indent: Optional[int] = 2, **kwargs: Any) -> str:
        """The plan as text; arguments are those of :func:`json.dumps`."""
        return json.dumps(json.loads(self.lower().to_json()), indent=indent, **kwargs)


def JSON() -> str:
    """The plan of the program that is being written, as text."""
    return get_program().to_json()


class LoopIterationContext:
    """Operations that are written within ``with`` are done again and again, on one unit of bytes after the other.

    Parameters
    ----------
    unit : int
        Bytes of each chunk that one iteration works on.
    num_chunks : int
        Chunks whose bytes, together, are cut into units.
    """

    def __init__(self, unit: int, num_chunks: int) -> None:
        self.unit = unit
        self.num_chunks = num_chunks
        self._program: Optional[CollectiveProgram] = None
        self._loop: Optional[_core.ProgramLoop] = None

    def __enter__(self) -> LoopIterationContext:
        self._program = get_program()
        with raised_as_language():
            self._loop = _core.ProgramLoop(self._program._writer, self.unit, self.num_chunks)
        self._program.loop_context = self
        return self

    def __exit__(self, *_: object) -> None:
        assert self._program is not None and self._loop is not None
        self._program.loop_context = None
        self._loop.close()
