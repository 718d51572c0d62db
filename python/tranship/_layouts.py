"""Where an array is: distributions, from names and numbers or from layout texts."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional, Union, overload

from ._amounts import amount
from . import _core
from ._core import ArraySpec, Distribution, EdgePolicy, Grid, Partition, Remainder, Tiling, TransferPlan
from ._core import cubed_sphere, doubly_periodic, folded, periodic
from ._errors import InvalidUse, of_type
from ._pictures import Plans
from ._views import extents_of

__all__ = [
    "ArraySpec",
    "Distribution",
    "Grid",
    "Partition",
    "Relabelled",
    "Tiling",
    "TransferPlan",
    "block",
    "cubed_sphere",
    "cyclic",
    "distribution",
    "doubly_periodic",
    "folded",
    "grid",
    "indexed",
    "irregular",
    "layout",
    "load_plan",
    "periodic",
    "plan_halo",
    "plan_redistribution",
    "relabel",
    "save_plan",
    "whole",
]

PartitionLike = Union[str, Partition]
OverlapLike = Union[int, tuple[int, int]]
EdgeName = Union[str, EdgePolicy]
EdgeLike = Union[EdgeName, tuple[EdgeName, EdgeName]]
Depth = Union[None, int, Sequence[OverlapLike]]
Stencil = Union[str, Sequence[Sequence[int]]]
HaloNumbers = tuple[
    Optional[int],
    tuple[int, ...],
    tuple[int, ...],
    str,
    list[tuple[int, ...]],
    Optional[list[tuple[tuple[int, ...], tuple[int, ...]]]],
]


@overload
def plan_redistribution(source: ArraySpec, target: ArraySpec, rank: int) -> TransferPlan: ...
@overload
def plan_redistribution(source: ArraySpec, target: ArraySpec, rank: None = None) -> Plans: ...
def plan_redistribution(
    source: ArraySpec, target: ArraySpec, rank: Optional[int] = None
) -> Union[TransferPlan, Plans]:
    """Plans what ``rank`` sends and receives when an array goes from one layout to another; without a rank, for all ranks.

    Local: no world is needed.

    Examples
    --------
    >>> rows, columns = layout("f64[4,4] @ 2x1 : block, whole"), layout("f64[4,4] @ 1x2 : whole, block")
    >>> plan_redistribution(rows, columns).messages
    [(0, 1, 32), (1, 0, 32)]
    """
    if rank is not None:
        return _core.plan_redistribution(source, target, rank)
    return Plans(_core.plan_redistribution(source, target, r) for r in _ranks_of([source, target]))


@overload
def plan_halo(fields: Sequence[ArraySpec], rank: int, *, depth: Depth = ..., stencil: Stencil = ...) -> TransferPlan: ...
@overload
def plan_halo(fields: Sequence[ArraySpec], rank: None = None, *, depth: Depth = ..., stencil: Stencil = ...) -> Plans: ...
def plan_halo(
    fields: Sequence[ArraySpec], rank: Optional[int] = None, *, depth: Depth = None, stencil: Stencil = "box"
) -> Union[TransferPlan, Plans]:
    """Plans what ``rank`` sends and receives in a halo exchange of these arrays; without a rank, for all ranks.

    Local: no world is needed. ``depth`` and ``stencil`` are those of :class:`HaloExchange`.

    Examples
    --------
    >>> u = layout("f64[8,8] @ 2x1 : block+overlap(2,2), whole")
    >>> plan_halo([u], depth=[(1, 0), 0]).messages
    [(0, 1, 64)]
    """
    dims = {of_type("spec", spec, ArraySpec).distribution.dims for spec in fields}
    if len(dims) > 1 and isinstance(depth, Sequence):
        raise InvalidUse(f"depths per dimension need arrays of equally many dimensions, and these have {sorted(dims)}")
    numbers = halo_numbers(depth, stencil, max(dims, default=0))
    if rank is not None:
        return _core.plan_halo(list(fields), rank, numbers)
    return Plans(_core.plan_halo(list(fields), r, numbers) for r in _ranks_of(fields))


def halo_numbers(
    depth: Depth,
    stencil: Stencil,
    dims: int,
    boxes: Optional[list[tuple[tuple[int, ...], tuple[int, ...]]]] = None,
) -> HaloNumbers:
    """The options of a halo, as the library takes them."""
    kind, offsets = (stencil, []) if isinstance(stencil, str) else ("offsets", [tuple(o) for o in stencil])
    if depth is None:
        return None, (), (), kind, offsets, boxes
    try:
        return operator.index(depth), (), (), kind, offsets, boxes  # type: ignore[arg-type]
    except TypeError:
        pass
    if not isinstance(depth, Iterable):
        raise InvalidUse(f"depth {depth!r}: needs a number of cells, or a sequence with one, or a pair, for each dimension")
    sides = [_sides("depth", one) for one in _per_dimension("depth", list(depth), dims)]
    for one in (side for pair in sides for side in pair):
        if not hasattr(one, "__index__"):
            raise InvalidUse(f"depth {one!r}: needs a number of cells, or a pair of left and right")
    return None, tuple(left for left, _ in sides), tuple(right for _, right in sides), kind, offsets, boxes


def save_plan(plan: TransferPlan) -> str:
    """The plan of one rank as text, JSON that ends with a newline.

    Examples
    --------
    >>> rows, columns = layout("f64[4,4] @ 2x1 : block, whole"), layout("f64[4,4] @ 1x2 : whole, block")
    >>> plan = plan_redistribution(rows, columns, 0)
    >>> load_plan(save_plan(plan)) == plan
    True
    """
    return _core.save_plan(of_type("plan", plan, TransferPlan))


def load_plan(text: str) -> TransferPlan:
    """Reads a plan and checks it: one that is accepted reads and writes only inside the local arrays of its rank.

    ``Redistribution(a, b, plan=plan)``, ``RedistributionAdjoint(a, b, plan=plan)`` and ``HaloExchange(u, plan=plan)`` run
    it, for arrays of the layouts that it was made for.

    Raises
    ------
    BadText
        With the path of what does not belong there.
    BadFile
        With the path, and the numbers that make no sense.
    """
    return _core.load_plan(text)


class Relabelled(NamedTuple):
    """The result of :func:`relabel`."""

    target: Distribution
    """The parts of the target on a permutation of its own ranks."""
    cells_moved: int
    """Cells that ranks receive from others when the source goes there."""
    cells_moved_before: int
    """Cells that ranks receive from others when the source goes to the target as it was given."""


def relabel(source: Distribution, target: Distribution) -> Relabelled:
    """Which rank should hold which part of ``target``, so that the fewest cells move.

    Local, and the same on every rank that asks. Solved exactly, as an assignment of parts to ranks: memory grows with the
    square of the parts.

    Raises
    ------
    Mismatch
        When the extents differ.
    Unsupported
        For more than 8192 parts.

    Examples
    --------
    >>> rows = distribution((4, 4), grid(2, 2))
    >>> columns = distribution((4, 4), grid(2, 2, order=(1, 0)))  # ranks are counted down the columns
    >>> best = relabel(rows, columns)
    >>> best.cells_moved, best.cells_moved_before, best.target.grid.rank_of((0, 1))
    (0, 8, 1)
    """
    return Relabelled(
        *_core.relabel(of_type("source", source, Distribution), of_type("target", target, Distribution))
    )


def _ranks_of(specs: Sequence[ArraySpec]) -> list[int]:
    return sorted({rank for spec in specs for rank in of_type("spec", spec, ArraySpec).distribution.grid.ranks})


def grid(
    *extents: int,
    replicas: int = 1,
    order: Sequence[int] = (),
    first: int = 0,
    stride: int = 1,
    ranks: Sequence[int] = (),
) -> Grid:
    """A grid of ranks: an extent for each dimension of the array, row-major over ranks 0, 1, ...

    Parameters
    ----------
    *extents
        Parts along each dimension of the array.
    replicas
        Complete copies of the array, each on ranks of its own.
    order
        Axes from slowest to fastest; the axis of replicas is ``len(extents)``.
    first, stride
        The ranks are ``first``, ``first + stride``, ...
    ranks
        Or these ranks, by ordinal.

    Examples
    --------
    >>> grid(2, 3).size
    6
    """
    return Grid(extents, replicas=replicas, order=list(order), first=first, stride=stride, ranks=list(ranks))


def whole() -> Partition:
    """Every part holds the whole dimension; more than one part means replicas."""
    return _core.whole()


def block(remainder: str = "low") -> Partition:
    """One contiguous block for each part.

    ``remainder`` says where the cells go that do not divide evenly: one more on each of the first parts (``"low"``), on
    each of the last ones (``"high"``), or blocks of ``ceil(extent / parts)`` (``"ceil"``, as HPF and ScaLAPACK do).
    """
    try:
        return _core.block(Remainder[remainder])
    except KeyError:
        raise InvalidUse(f"remainder='{remainder}': needs 'low', 'high' or 'ceil'") from None


def cyclic(block_size: int = 1) -> Partition:
    """Blocks of ``block_size`` cells, dealt to the parts in turn."""
    return _core.cyclic(block_size)


def irregular(bounds: Sequence[int]) -> Partition:
    """One block for each part: ``bounds`` are parts + 1 increasing numbers from 0 to the extent."""
    return _core.irregular(list(bounds))


def _partition(of: PartitionLike) -> Partition:
    if isinstance(of, Partition):
        return of
    found = re.fullmatch(r"\s*(whole|block|cyclic)\s*(?:\(\s*(\w+)\s*\))?\s*", of)
    if not found or (found[1] == "whole" and found[2]):
        raise InvalidUse(f"partition '{of}': needs 'whole', 'block', 'block(high)', 'cyclic', 'cyclic(64)' or a Partition")
    if found[1] == "whole":
        return whole()
    if found[1] == "block":
        return block(found[2] or "low")
    if found[2] and not found[2].isdigit():
        raise InvalidUse(f"partition '{of}': the size of its blocks is a number of cells")
    return cyclic(int(found[2] or 1))


def _per_dimension(what: str, value: Any, dims: int) -> list[Any]:
    """One for all dimensions, or a sequence with one for each."""
    if isinstance(value, (list, tuple)):
        if len(value) != dims:
            raise InvalidUse(f"{what} has {amount(len(value), 'entry', 'entries')}, and the array {amount(dims, 'dimension')}")
        return list(value)
    return [value] * dims


def _sides(what: str, value: Any) -> tuple[Any, Any]:
    """One for both sides, or a pair of left and right."""
    if not isinstance(value, (list, tuple)):
        return value, value
    if len(value) != 2:
        raise InvalidUse(f"{what} of {amount(len(value), 'side')}: needs one for both sides, or a pair of left and right")
    return value[0], value[1]


def distribution(
    extents: Union[int, Sequence[int]],
    grid: Union[int, Sequence[int], Grid],
    partition: Union[PartitionLike, Sequence[PartitionLike]] = "block",
    overlap: Union[int, Sequence[OverlapLike]] = 0,
    edge: Union[EdgeName, Sequence[EdgeLike]] = "truncate",
    *,
    order: Sequence[int] = (),
    strides: Sequence[int] = (),
    spacing: Sequence[int] = (),
    align: int = 1,
    offset: int = 0,
    interfaces: Union[bool, Sequence[bool]] = False,
) -> Distribution:
    """Where every cell of a global array is.

    Parameters
    ----------
    extents
        Of the global array, in cells.
    grid
        Parts along each dimension, or a :class:`Grid`.
    partition
        How each dimension is cut: ``"whole"``, ``"block"``, ``"cyclic(64)"`` or a :class:`Partition`; one for all
        dimensions, or a sequence with one for each.
    overlap
        Extra cells that each part stores on both sides: one number for all dimensions, or a sequence with a number, or
        a pair of left and right, for each.
    edge
        What overlap holds beyond the array: ``"truncate"``, ``"toroidal"``, ``"zero"``, ``"replicate"``,
        ``"replicate_local"`` or ``"open"``; one for all dimensions, or a sequence with one, or a pair of left and right,
        for each.
    interfaces
        Whether a dimension counts the points between cells: neighbours then share the point between them.
    order, strides, spacing, align, offset
        How a local array lies in memory, in elements: dimensions from slowest to fastest (``order=(1, 0)`` is Fortran
        order of a matrix), or explicit strides; see ``MemoryLayout`` in C++.

    Raises
    ------
    InvalidUse
        Where they do not fit; the message names both numbers.

    Examples
    --------
    >>> d = distribution((10, 8), grid=(2, 1), overlap=[1, 0], edge="toroidal")
    >>> d.local_extents(0)
    (7, 8)
    >>> d.owner((7, 0))
    1
    >>> distribution(8, 2, overlap=[(2, 1)], edge=[("zero", "replicate")])
    <distribution [8] @ 2 : block+overlap(2,1,zero,replicate)>
    """
    cells = extents_of("an extent", extents)
    parts = grid if isinstance(grid, Grid) else Grid(extents_of("a grid extent", grid))
    dims = len(cells)
    cuts = [_partition(p) for p in _per_dimension("partition", partition, dims)]
    for d, staggered in enumerate(_per_dimension("interfaces", interfaces, dims)):
        if staggered:
            cuts[d] = cuts[d].with_interfaces()
    for d, (width, policy) in enumerate(
        zip(_per_dimension("overlap", overlap, dims), _per_dimension("edge", edge, dims))
    ):
        left, right = _sides("overlap", width)
        if left or right:
            cuts[d] = cuts[d].with_overlap(left, right, _sides("edge", policy))
    return _core.make_distribution(
        cells, parts, cuts, tuple(order), tuple(strides), tuple(spacing), align, offset
    )


def indexed(
    extents: Union[int, Sequence[int]],
    parts: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    indexed_dims: int = 1,
    grid: Optional[Grid] = None,
) -> Distribution:
    """An indexed distribution (a star forest): every part lists the ids that it owns, and those that it keeps copies of.

    Parameters
    ----------
    extents
        The first ``indexed_dims`` dimensions are numbered row-major by global ids; the others are whole.
    parts
        ``(owned, ghosts)`` for each part. They lie in local memory in this order, owned before ghosts.
    """
    cells = extents_of("an extent", extents)
    lists = [(list(map(int, owned)), list(map(int, ghosts))) for owned, ghosts in parts]
    return _core.make_indexed(cells, indexed_dims, grid or Grid((len(lists),)), lists)


def layout(text: str) -> ArraySpec:
    """Reads a layout text: an element type with a distribution.

    The type may be what NumPy calls it: ``"f8"``, ``"<f8"``, ``"float64"``. Without a byte order, ``"i8"``, ``"u8"`` and
    ``"f16"`` count bits; NumPy's are ``"<i8"`` or ``"int64"``.

    Examples
    --------
    >>> layout("f64[10,8] @ 2x1 : block+overlap(1,1,toroidal), whole").distribution.local_extents(0)
    (7, 8)
    """
    return _core.layout(text)
