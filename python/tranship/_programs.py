"""Programs of channel operations: read, proved and executed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._amounts import amount
from . import _core
from ._elements import element_type
from ._errors import InvalidUse, of_type
from ._worlds import World

__all__ = [
    "Algorithm",
    "Collectives",
    "Finding",
    "Program",
    "ProgramExecutor",
    "Verification",
    "algorithms",
    "make_program",
]


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

    >>> import tranship as ts
    >>> [one.name for one in ts.algorithms() if one.collective == "reduce"]
    ['reduce/all_pairs', 'reduce/tree']
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
        Of a node, of an algorithm that has nodes; 0 means all, and others refuse any other value.
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

    >>> import tranship as ts
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
    """The result of the verification of a program.

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
        """True when nothing was found."""
        return self.found == 0

    def __bool__(self) -> bool:
        return self.is_right

    def __str__(self) -> str:
        return self.text


class Program:
    """The steps of every thread block of every rank that carry out one collective operation.

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
        """The name of the program."""
        return self._core.name

    @property
    def collective(self) -> str:
        """The collective that it promises, such as ``"allreduce"``."""
        return self._core.collective

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return self._core.ranks

    @property
    def in_place(self) -> bool:
        """True when input and output share memory."""
        return self._core.in_place

    @property
    def steps(self) -> int:
        """The number of steps of all thread blocks; the steps of a loop count once each."""
        return self._core.steps

    @property
    def unknown_keys(self) -> list[str]:
        """Paths of keys of the plan file that are not known here: what they ask for is neither proved nor executed."""
        return self._core.unknown_keys

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

    def mscclpp_objections(self) -> list[str]:
        """Lists why the executor of MSCCL++ cannot run the plan file of this program, or would get wrong results.

        Its source has limits that nothing reports, such as 64 steps a thread block, and it takes every reduction for a
        sum. It also promises less than executors here: ranks do not meet between launches, the end of a launch
        completes no request of a port channel, and relaxed signals never publish what was written before them.

        Returns
        -------
        list of str
            One line for each limit that the program exceeds and each promise that it needs in vain, with the first
            place; empty for a program that runs there and is right, launch after launch on one stream of each rank.
            Takes about as long as two calls of :meth:`verify`.
        """
        return self._core.mscclpp_objections()

    def executor(
        self, world: World, elements: int, dtype: DTypeLike = np.float32, op: Optional[str] = None
    ) -> ProgramExecutor:
        """Collective: makes the program ready to run on the ranks of a world. See :class:`ProgramExecutor`."""
        return ProgramExecutor(world, self, elements, dtype, op)

    def __repr__(self) -> str:
        size = f"{amount(self.ranks, 'rank')}, {amount(self.steps, 'step')}"
        return f"<Program {self.name!r}: {self.collective} of {size}>"


class ProgramExecutor:
    """A program on the ranks of a world.

    Collective: all ranks bring the same program and numbers. The program is proved first.

    Parameters
    ----------
    world : World
        With as many ranks as the program has.
    program : Program
    elements : int
        Of the largest input of any rank; of programs without input, of a chunk. Where the collective promises something,
        all inputs are as large. Of other programs the elements are cut into equal chunks, and each rank brings and takes
        as many as its own chunks hold.
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
        self._core = _core.execute_program(
            of_type("world", world, World)._core,
            of_type("program", program, Program)._core,
            elements,
            element_type(self._dtype),
            op,
        )

    @property
    def input_elements(self) -> int:
        """The number of elements of this rank."""
        return self._core.input_elements

    @property
    def output_elements(self) -> int:
        """The number of elements of this rank."""
        return self._core.output_elements

    def __call__(self, input: ArrayLike, output: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """Collective: one launch.

        Parameters
        ----------
        input : array_like
            ``input_elements`` elements. Arrays are cast where the dtype of the program holds all that theirs holds, and
            Python's numbers where it holds these: integers exactly, others as floats.
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
        given = np.asarray(input)
        if not _keeps_values(given, self._dtype, has_dtype=hasattr(input, "dtype")):
            raise InvalidUse(f"the input has elements {given.dtype}, the program {self._dtype}: a cast would change values")
        source = np.ascontiguousarray(given, dtype=self._dtype)
        if source.size != self.input_elements:
            raise InvalidUse(
                f"an input of {amount(source.size, 'element')}; the executor was made for {self.input_elements}"
            )
        if output is None:
            output = np.empty(self.output_elements, dtype=self._dtype)
        if output.dtype != self._dtype or output.size != self.output_elements:
            raise InvalidUse(
                f"an output of {amount(output.size, 'element')} of {output.dtype}; "
                f"the program makes {self.output_elements} of {self._dtype}"
            )
        if not output.flags.c_contiguous or not output.flags.writeable:
            raise InvalidUse("the output is not contiguous, or read-only")
        self._core.run(source.ctypes.data, output.ctypes.data)
        return output


def _keeps_values(values: NDArray[Any], dtype: np.dtype[Any], has_dtype: bool) -> bool:
    """Returns True when a cast changes only digits of floats. Without ``has_dtype``, NumPy has chosen the dtype."""
    if np.can_cast(values.dtype, dtype, "safe") or values.size == 0:
        return True
    if has_dtype or values.dtype.kind not in "iuf":
        return False
    if dtype.kind not in "iu":
        return True
    limits = np.iinfo(dtype)
    return values.dtype.kind != "f" and bool(limits.min <= values.min() and values.max() <= limits.max)


class Collectives:
    """Collective operations of all ranks of a world, on NumPy arrays, behind one selector of algorithms.

    All ranks make all calls, in the same order and with the same sizes. Each call returns a new array, or fills `out`,
    which may be the source where both have one size. Short messages go as packets, long ones by the programs that suit
    the ranks, and what is done only once goes directly.

    Parameters
    ----------
    world : World

    >>> import numpy as np
    >>> import tranship as ts
    >>> def main(world):
    ...     together = ts.Collectives(world)
    ...     return together.all_reduce(np.arange(3) + world.rank).tolist()
    >>> ts.launch(2, main)
    [[1, 3, 5], [1, 3, 5]]
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._core = _core.make_collectives(of_type("world", world, World)._core)

    def all_reduce(self, source: ArrayLike, op: str = "sum", out: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """The combination of all sources, by "sum", "prod", "min" or "max", in the shape of the source."""
        values = np.asarray(source, order="C")
        return self._run("all_reduce", values, values.shape, out, op)

    def reduce_scatter(self, source: ArrayLike, op: str = "sum", out: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """Part r of the combination of all sources, for rank r: the first extent is cut into as many parts as ranks."""
        values = np.ascontiguousarray(source)
        return self._run("reduce_scatter", values, self._part(values), out, op)

    def all_gather(self, source: ArrayLike, out: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """The sources of all ranks, one after the other along the first dimension."""
        values = np.atleast_1d(np.ascontiguousarray(source))
        return self._run("all_gather", values, (values.shape[0] * self._world.size, *values.shape[1:]), out)

    def all_to_all(self, source: ArrayLike, out: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """Part r of all sources, for rank r: the first extent is cut into as many parts as ranks."""
        values = np.ascontiguousarray(source)
        self._part(values)
        return self._run("all_to_all", values, values.shape, out)

    def broadcast(self, values: NDArray[Any], root: int = 0) -> NDArray[Any]:
        """Fills a contiguous array with what rank `root` has in it."""
        return self._run("broadcast", values, np.shape(values), values, root=root)

    def reduce(self, source: ArrayLike, root: int = 0, op: str = "sum") -> Optional[NDArray[Any]]:
        """The combination of all sources on rank `root`, and None on the others."""
        values = np.asarray(source, order="C")
        out = self._run("reduce", values, values.shape, None, op, root)
        return out if self._world.rank == root else None

    def use(self, algorithm: str, bytes_max: int = 2**63 - 1) -> None:
        """Uses one algorithm for its collective, up to ``bytes_max`` bytes: a name of :func:`algorithms`, or "…/direct"."""
        self._core.use(algorithm, bytes_max)

    def measure(self) -> None:
        """Collective: times all algorithms, and chooses by that from then on. Takes up to about a second."""
        self._core.measure()

    def algorithm_for(self, collective: str, nbytes: int) -> str:
        """Which algorithm is for a message, such as ``("allreduce", 1024)``."""
        return self._core.algorithm_for(collective, nbytes)

    def explain(self) -> str:
        """Which algorithm is for which messages, and why."""
        return self._core.explain()

    def _part(self, values: NDArray[Any]) -> tuple[int, ...]:
        if values.ndim == 0 or values.shape[0] % self._world.size != 0:
            raise InvalidUse(f"an array of shape {values.shape} cannot be cut into {amount(self._world.size, 'equal part')}")
        return (values.shape[0] // self._world.size, *values.shape[1:])

    def _run(
        self,
        name: str,
        source: NDArray[Any],
        shape: tuple[int, ...],
        out: Optional[NDArray[Any]],
        op: str = "sum",
        root: int = 0,
    ) -> NDArray[Any]:
        if out is None:
            out = np.empty(shape, source.dtype)
        for array in (source, out):
            if not isinstance(array, np.ndarray):
                raise InvalidUse(f"{name} fills an array of NumPy's, not a {type(array).__name__}")
        if out.shape != shape or out.dtype != source.dtype:
            raise InvalidUse(f"a target of {out.dtype} {out.shape}; {name} makes {source.dtype} {shape}")
        for array in (source, out):
            if not array.flags.c_contiguous:
                raise InvalidUse("an array with strides; collectives take contiguous ones")
        if not out.flags.writeable:
            raise InvalidUse("the target is read-only")
        kind = element_type(source.dtype)
        self._core.run(
            name, (out.ctypes.data, kind, out.size), (source.ctypes.data, kind, source.size), op, root
        )
        return out
