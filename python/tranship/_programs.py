"""Programs of channel operations: read, proved and executed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from ._errors import InvalidUse
from ._layouts import element_type
from ._worlds import World

__all__ = ["Algorithm", "Finding", "Program", "ProgramExecutor", "Verification", "algorithms", "make_program"]


@dataclass(frozen=True)
class Algorithm:
    """A ready program.

    Attributes
    ----------
    name, collective, summary : str
        Such as ``"allreduce/ring"``, ``"allreduce"``, and one line that says where it is good.
    has_packets : bool
        For short messages: data carries its own flags.
    has_nodes : bool
        Takes `ranks_per_node`.
    can_be_in_place : bool
    """

    name: str
    collective: str
    summary: str
    has_packets: bool
    has_nodes: bool
    can_be_in_place: bool


def algorithms() -> list[Algorithm]:
    """The ready programs.

    >>> [one.name for one in ts.algorithms() if one.collective == "reducescatter"]
    ['reducescatter/all_pairs', 'reducescatter/ring', 'reducescatter/packets']
    """
    return [Algorithm(**one) for one in _core.algorithms()]


def make_program(
    name: str, ranks: int, *, ranks_per_node: int = 0, root: int = 0, in_place: bool = False, instances: int = 1
) -> Program:
    """Makes a ready program.

    Parameters
    ----------
    name : str
        Of one of :func:`algorithms`.
    ranks : int
    ranks_per_node : int
        Of a node, where the algorithm asks for it.
    root : int
        Of a broadcast or a reduce.
    in_place : bool
        Whether input and output share memory.
    instances : int
        How often everything is replicated, for machines with many thread blocks.

    Raises
    ------
    InvalidUse
        For a name that there is not, and what the algorithm cannot do.

    >>> program = ts.make_program("allreduce/ring", 3)
    >>> program
    <Program 'allreduce_ring': allreduce of 3 ranks, 69 steps>
    >>> print(program.verify().is_right)
    True
    """
    return Program._of(_core.make_program(name, ranks, ranks_per_node, root, in_place, instances))


@dataclass(frozen=True)
class Finding:
    """One fault of a program.

    Attributes
    ----------
    kind : str
        Such as ``"deadlock"``, ``"race"`` or ``"wrong result"``.
    rank, block, step : int
        Where it shows; -1 where it is not of one rank, block or step.
    text : str
        What it is, with all numbers.
    """

    kind: str
    rank: int
    block: int
    step: int
    text: str


@dataclass(frozen=True)
class Verification:
    """What a proof of a program has found.

    Attributes
    ----------
    findings : tuple of Finding
        The first of them.
    found : int
        How many there are.
    steps : int
        Steps that were executed on symbols.
    knows_result : bool
        Whether the collective has a meaning, which was compared.
    needs_meeting : bool
        Right only where all ranks meet between two launches; ``why_meeting`` says why.
    """

    findings: tuple[Finding, ...]
    found: int
    steps: int
    knows_result: bool
    needs_meeting: bool
    why_meeting: tuple[Finding, ...]
    text: str

    @property
    def is_right(self) -> bool:
        """Whether nothing was found."""
        return self.found == 0

    def __bool__(self) -> bool:
        return self.is_right

    def __str__(self) -> str:
        return self.text


class Program:
    """What every thread block of every rank does, step by step, to carry out one collective operation.

    Programs are read from plan files of MSCCL++ (all versions), or written with :mod:`tranship.mscclpp.language`.

    Parameters
    ----------
    text : str
        A plan in JSON.

    Raises
    ------
    BadText, BadFile
        For a text that is no plan, and a plan that makes no sense; the message says where.
    """

    __slots__ = ("_core",)

    def __init__(self, text: str) -> None:
        self._core = _core.read_program(text)

    @classmethod
    def read(cls, path: Union[str, os.PathLike[str]]) -> Program:
        """Reads a plan file."""
        with open(path, encoding="utf-8") as file:
            return cls(file.read())

    @classmethod
    def _of(cls, core: _core.ChannelProgram) -> Program:
        out = cls.__new__(cls)
        out._core = core
        return out

    @property
    def name(self) -> str:
        """Of the program."""
        return self._core.name

    @property
    def collective(self) -> str:
        """What it promises, such as ``"allreduce"``."""
        return self._core.collective

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return self._core.ranks

    @property
    def in_place(self) -> bool:
        """Whether input and output share memory."""
        return self._core.in_place

    @property
    def steps(self) -> int:
        """Of all thread blocks; those of a loop count once each."""
        return self._core.steps

    def to_json(self) -> str:
        """The plan in the present format, which MSCCL++ reads."""
        return self._core.to_json()

    def write(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the plan to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    def verify(self, launches: int = 3) -> Verification:
        """Proves that the program ends, that nothing races, and that outputs hold what the collective promises.

        Parameters
        ----------
        launches : int
            How many launches follow each other without a barrier in between.
        """
        found: dict[str, Any] = self._core.verify(launches)
        found["findings"] = tuple(Finding(**one) for one in found["findings"])
        found["why_meeting"] = tuple(Finding(**one) for one in found["why_meeting"])
        return Verification(**found)

    def executor(
        self, world: World, elements: int, dtype: DTypeLike = np.float32, op: Optional[str] = None
    ) -> ProgramExecutor:
        """Collective: makes the program ready to run on the ranks of a world. See :class:`ProgramExecutor`."""
        return ProgramExecutor(world, self, elements, dtype, op)

    def __repr__(self) -> str:
        return f"<Program {self.name!r}: {self.collective} of {self.ranks} ranks, {self.steps} steps>"


class ProgramExecutor:
    """A program on the ranks of a world.

    Collective: all ranks bring the same program and numbers. The program is proved first.

    Parameters
    ----------
    world : World
        With as many ranks as the program has.
    program : Program
    elements : int
        Of the input of each rank.
    dtype : dtype
        Of the elements.
    op : {"sum", "prod", "min", "max"}, optional
        Instead of the reduction that the program names.

    Raises
    ------
    InvalidUse
        For a program that is not right, or of another number of ranks, and elements that it cannot cut.
    Mismatch
        Where ranks have different programs.
    """

    def __init__(
        self, world: World, program: Program, elements: int, dtype: DTypeLike = np.float32, op: Optional[str] = None
    ) -> None:
        self._dtype = np.dtype(dtype)
        self._core = _core.execute_program(world._core, program._core, elements, element_type(self._dtype), op)

    @property
    def input_elements(self) -> int:
        """Of this rank."""
        return self._core.input_elements

    @property
    def output_elements(self) -> int:
        """Of this rank."""
        return self._core.output_elements

    def __call__(self, input: ArrayLike, output: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """Collective: one launch.

        Parameters
        ----------
        input : array_like
            ``input_elements`` elements.
        output : ndarray, optional
            ``output_elements`` elements, contiguous and writable; it may be the input. A new array where it is missing.

        Returns
        -------
        ndarray
            The output. It is complete, and the input may change.

        Raises
        ------
        TimeoutError, PeerLost
            As waits do.
        """
        source = np.ascontiguousarray(input, dtype=self._dtype)
        if source.size != self.input_elements:
            raise InvalidUse(f"an input of {source.size} elements; the executor was made for {self.input_elements}")
        if output is None:
            output = np.empty(self.output_elements, dtype=self._dtype)
        if output.dtype != self._dtype or output.size != self.output_elements:
            raise InvalidUse(
                f"an output of {output.size} elements of {output.dtype}; "
                f"the program makes {self.output_elements} of {self._dtype}"
            )
        if not output.flags.c_contiguous or not output.flags.writeable:
            raise InvalidUse("an output that is not contiguous, or read-only")
        self._core.run(source.ctypes.data, output.ctypes.data)
        return output
