"""Distributed arrays, and what moves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._amounts import amount
from . import _core
from ._core import ArraySpec, Distribution
from ._buffers import Devices, Lease, Region, _boxes, current_device
from ._core import Tiling, TransferPlan
from ._elements import Elements, elements_named, elements_of
from ._errors import Error, InvalidUse, Mismatch, of_type
from ._layouts import Depth, HaloNumbers, Stencil, grid, halo_numbers
from ._layouts import distribution as make_distribution
from ._pictures import folded, layout_html, line, plan_html
from ._views import as_view
from ._worlds import World

__all__ = [
    "Array",
    "Exchange",
    "HaloCheck",
    "HaloExchange",
    "HaloField",
    "InterfaceExchange",
    "Redistribution",
    "RedistributionAdjoint",
    "TiledHaloExchange",
    "array",
    "check_halo",
    "gather",
    "halo",
    "redistribute",
    "wrap",
]

Pair = tuple["Array", "Array"]


if TYPE_CHECKING:

    class _ShowsLocal: ...

else:  # nanobind says nothing of it to type checkers
    _ShowsLocal = _core.ShowsLocal


class Array(_ShowsLocal):
    """A rank's part of a distributed array.

    Made by :func:`array` (memory of its own) or :func:`wrap` (memory of the program's). Making one is not collective.
    ``local``, and whatever NumPy makes of it, are views of the memory: they keep it alive, also after the world has
    ended. The array itself shows its memory by the buffer protocol, NumPy's array interface and DLPack.
    """

    __slots__ = ("_core", "_distribution", "_elements", "_is_copy", "_local", "_rank", "_views", "_world")

    def __init__(self, world: World, core: _core.LocalArray, distribution: Distribution, elements: Elements) -> None:
        self._world = world
        self._rank = world.rank  # pictures name it after the world has ended
        self._core = core
        self._distribution = distribution
        self._elements = elements
        self._views = _core.LeaseViews(elements.view_dtype, bool(elements.inside))
        memory: Any = core.numpy()
        self._local: NDArray[Any] = elements.shown(memory)
        self._is_copy = False  # one of several, which is not written in place

    @property
    def world(self) -> World:
        """The world whose ranks have parts of it."""
        return self._world

    @property
    def distribution(self) -> Distribution:
        """Where every cell of the global array is."""
        return self._distribution

    @property
    def spec(self) -> ArraySpec:
        """The element type with the distribution; ``str(array.spec)`` is its layout text. Of structs, whose inside is a
        further dimension of it."""
        return self._core.spec

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements; bfloat16 is the type of ml_dtypes where that is installed, else two bytes."""
        return self._local.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the global array."""
        return self._distribution.extents

    @property
    def local(self) -> NDArray[Any]:
        """This rank's local array, overlap included, in the memory itself.

        From the first lease on it is read-only and shows the host's copy, to which values that devices hold are copied
        first; ghosts that are stale show what they held. What devices write later does not change it.

        Raises
        ------
        InvalidUse
            Where an open lease writes cells of it, where owned cells have no value, and where ghosts hold sums that
            their owners get when a lease reads these cells.
        """
        if self._is_copy:
            with self._core.read_on_host():
                pass
        return self._local

    def _show_copy(self) -> None:
        """After the first lease: no view of the memory writes to it unseen."""
        shown, self._local = self._local, self._elements.shown(self._core.numpy())
        self._is_copy = True
        shown.flags.writeable = False
        base = shown if shown.base is None or not isinstance(shown.base, np.ndarray) else shown.base
        base.flags.writeable = False
        arrays = [shown, base]
        del shown, base
        if self._views.outlive(arrays):
            self._core.note_host_pointers()

    def owned(self, slice_number: int = 0) -> NDArray[Any]:
        """The cells of one of this rank's slices, without overlap, in the memory itself.

        A part that is whole, a block or indexed is one slice; a cyclic one has many.
        """
        slices = self.slices()
        if not slices and slice_number == 0:
            return self._local[(slice(0, 0),) * self._local.ndim]
        if not 0 <= slice_number < len(slices):
            raise InvalidUse(f"slice {slice_number} does not exist: rank {self._world.rank} has {len(slices)}")
        return slices[slice_number][1]

    def slices(self) -> list[tuple[tuple[Any, ...], NDArray[Any]]]:
        """Returns, for each slice of this rank, the global cells that it owns, and a view of them.

        The cells index a global array: ``whole[cells]`` has what the view has. They are slices; of an indexed array they
        are arrays of indices, one for each dimension, shaped to be broadcast. The views are of :attr:`local`.
        """
        return self._slices_of(self.local)

    def _slices_of(self, local: NDArray[Any]) -> list[tuple[tuple[Any, ...], NDArray[Any]]]:
        if self._distribution.is_indexed:
            owned, _ = self._ids()
            return [(self._mesh(owned), local[: owned.size])] if owned.size else []
        return [(one["owned"], local[one["local_owned"]]) for one in self._slices()]

    def _slices(self) -> list[dict[str, tuple[slice, ...]]]:
        return self._distribution.slices(self._world.rank)

    def _ids(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns the ids that this rank owns of an indexed array, and the ids that it keeps copies of."""
        _, owned, ghosts = self._distribution.indexed_cells(self._world.rank)
        return np.array(owned, "i8"), np.array(ghosts, "i8")

    def _mesh(self, ids: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The cells that ids stand for, with the dimensions that are whole."""
        dims, _, _ = self._distribution.indexed_cells(self._world.rank)
        whole = self.shape[dims:]
        at = np.unravel_index(ids, self.shape[:dims])
        return (
            *(i.reshape((-1,) + (1,) * len(whole)) for i in at),
            *(np.arange(n).reshape((-1,) + (1,) * (len(whole) - 1 - d)) for d, n in enumerate(whole)),
        )

    def fill(self, value: Union[Callable[..., ArrayLike], ArrayLike]) -> None:
        """Gives every cell that this rank owns a value: one element, or what ``value(i, j, ...)`` says.

        The function gets an array of global indices for each dimension, shaped to be broadcast, and is called once for
        each slice. Exchanges nothing and does not wait for peers. Not collective; but once the array has had a lease,
        this is a lease to write on the host: all ranks call it, and what it raises leaves the cells without a value.
        """
        with self._core.write_on_host():
            memory: Any = self._core.writable_numpy() if self._is_copy else None
            for cells, view in self._slices_of(self._local if memory is None else self._elements.shown(memory)):
                if callable(value):
                    view[...] = value(*(cells if self._distribution.is_indexed else np.ogrid[cells]))
                else:
                    view[...] = value

    def count_wrong(self, value: Union[Callable[..., ArrayLike], ArrayLike]) -> int:
        """How many cells that this rank stores are not what ``value`` says, as for :meth:`fill`; overlap included.

        Beyond a toroidal edge, a cell is that at the other end; cells beyond other edges are left out. The built-in check
        of a redistribution and of a halo. Once the array has had a lease, a ghost that is stale has no value and counts; at
        that lease all of them are. Not collective. Raises as :attr:`local`.

        Examples
        --------
        >>> import tranship as ts
        >>> def main(world):
        ...     u = ts.array(world, ts.distribution((8, 6), grid=(2, 1), overlap=1, edge="toroidal"))
        ...     u.fill(lambda i, j: 10 * i + j + 1)
        ...     before = u.count_wrong(lambda i, j: 10 * i + j + 1)
        ...     ts.halo(u)()
        ...     return before, u.count_wrong(lambda i, j: 10 * i + j + 1)
        >>> ts.launch(2, main)[1]
        (24, 0)
        """
        wrong = 0
        with self._core.read_on_host() as boxes:
            missing: Any = np.zeros(self._local.shape, bool) if boxes else False
            for lower, upper in boxes:
                missing[tuple(map(slice, lower, upper))[: missing.ndim]] = True
            for cells, places in self._stored():
                expected = value(*cells) if callable(value) else value
                if self._elements.inside:
                    expected = np.asarray(expected, self.dtype)
                differs = self._local[places] != expected
                wrong += int(np.count_nonzero(differs | missing[places] if boxes else differs))
        return wrong

    def _stored(self) -> Iterator[tuple[tuple[NDArray[Any], ...], Any]]:
        """The cells of the array that what this rank stores stands for, and where in the local array it is."""
        if self._distribution.is_indexed:
            ids = np.concatenate(self._ids())
            yield self._mesh(ids), slice(0, ids.size)
            return
        for one in self._slices():
            cells, places = zip(*map(self._cells_in_array, range(len(self.shape)), one["stored"], one["local_stored"]))
            yield np.ix_(*cells), np.ix_(*places)

    def _cells_in_array(self, dim: int, stored: slice, local: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        """The cells of the array that a stored range stands for, and where they lie."""
        extent = self.shape[dim]
        cells, places = np.arange(stored.start, stored.stop), np.arange(local.start, local.stop)
        partition = self.distribution.partition(dim)
        wraps = [edge == "toroidal" for edge in partition.edges]
        inside = ((cells >= 0) | wraps[0]) & ((cells < extent) | wraps[1])
        cells = cells[inside]
        # The first and the last interface of a ring are one: what lies to the left counts down from it, what lies to
        # the right counts up.
        shared = int(partition.has_interfaces)
        beyond = (cells < 0) | (cells >= extent)
        first = np.where(cells < 0, 0, shared)
        return np.where(beyond, first + (cells - first) % max(1, extent - shared), cells), places[inside]

    def read(self, cells: str = "owned", **options: Any) -> Lease:
        """Collective: opens a lease of this rank's part, ``with u.read("stored", device="fake:0") as a``.

        Stale ghosts among the cells are exchanged, and stale copies on the device are copied; nothing else moves. From
        the first lease on, ``local`` is read-only, and so is all that shows it. Views that were made of it before are
        not: while one is there, the memory is compared at each use, and what was written through it raises
        ``InvalidUse``.

        Parameters
        ----------
        cells
            ``"owned"``, ``"interior"`` (of which no rank has ghosts), ``"boundary"``, ``"ghosts"`` or ``"stored"``.
        depth
            How deep ghosts are meant; all where nothing is said.
        device
            Where; that of :func:`offload`, or the host.
        region
            Only these global cells: a tuple of slices.
        """
        return self._open("read", cells, **options)

    def write(self, cells: str = "owned", **options: Any) -> Lease:
        """Collective: all of these cells will be written. Ghosts that are not written become stale on all ranks."""
        return self._open("write", cells, **options)

    def read_write(self, cells: str = "owned", **options: Any) -> Lease:
        """Collective: cells that are read and then written."""
        return self._open("read_write", cells, **options)

    def accumulate(self, cells: str = "stored", combine: str = "sum", **options: Any) -> Lease:
        """Collective: what is combined in ghosts is for their owners, who get it when the value is next needed, in the
        order of the ranks. Ghosts begin with the element that changes nothing."""
        self._elements.require_numbers("accumulate")
        return self._open("accumulate", cells, combine=combine, **options)

    def _open(
        self,
        intent: str,
        cells: str,
        *,
        depth: Optional[int] = None,
        device: Optional[str] = None,
        region: Union[None, slice, tuple[slice, ...]] = None,
        combine: str = "sum",
    ) -> Lease:
        try:
            return self._core.open(
                intent,
                cells,
                -1 if depth is None else depth,
                current_device() if device is None else device,
                combine,
                None if region is None else _boxes(region, self._core.distribution.extents),
                self._views,
            )
        finally:
            if not self._is_copy and self._core.is_leased:
                self._show_copy()

    def explain(self, intent: str = "read", cells: str = "owned", device: Optional[str] = None) -> str:
        """Says what such a lease would exchange and copy on this rank. Changes nothing."""
        return self._core.explain_lease(intent, cells, current_device() if device is None else device)

    @property
    def ghost_counts(self) -> tuple[int, int, int]:
        """Counts what leases have exchanged on this rank: exchanges, cells received, cells sent."""
        exchanges, received, sent = self._core.ghost_counts()
        return exchanges, received, sent

    def __array__(self, dtype: Optional[DTypeLike] = None, copy: Optional[bool] = None) -> NDArray[Any]:
        local = self.local
        if dtype is not None and np.dtype(dtype) != local.dtype:
            if copy is False:
                raise ValueError(f"an array of {local.dtype} cannot be shown as {np.dtype(dtype)} without a copy")
            return local.astype(dtype)
        return local.copy() if copy else local

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._elements.name == "bf16":  # it would say two bytes; __array__ says what they are
            raise AttributeError("bfloat16 has no array interface")
        return self.local.__array_interface__

    def __dlpack__(self, **options: Any) -> Any:
        return self.local.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._local.__dlpack_device__()

    def __repr__(self) -> str:
        return f"<{self._core!r}, rank {self._world_rank()}>"

    def _world_rank(self) -> str:
        try:
            return str(self._world.rank)
        except InvalidUse:
            return "of an ended world"

    def _repr_html_(self) -> str:
        held = f"{self.dtype}, {list(self._local.shape)} cells of {list(self.shape)} here"
        return layout_html(self.spec, self._rank) + line(f"{self!r}: {held}")


def array(
    world: World,
    distribution: Union[Distribution, ArraySpec],
    dtype: Optional[DTypeLike] = None,
    name: str = "array",
    devices: Optional[Devices] = None,
) -> Array:
    """This rank's part of a new array: zeros, where reachable peers can load and store them. Not collective.

    ``devices`` is where leases can be opened; the host where nothing is said. Elements are numbers, bfloat16 (that of
    ml_dtypes), or what is moved as bytes and not computed with: structs, datetime64 and timedelta64. An ``ArraySpec``
    says which they are; of a distribution they are ``f8`` where ``dtype`` says nothing.

    Raises
    ------
    InvalidUse
        When the grid needs more ranks than the world has.
    Mismatch
        For a ``dtype`` that is not the one of an ``ArraySpec``.
    NoMemory
    """
    if isinstance(distribution, ArraySpec):
        spec, cells = distribution, distribution.distribution
        elements = elements_named(spec.type, spec.numpy_type)
        if dtype is not None and elements_of(dtype).dtype != elements.dtype:
            raise Mismatch(f"dtype is {elements_of(dtype).dtype}, but the layout says {elements.dtype}")
    else:
        elements, cells = elements_of("f8" if dtype is None else dtype), distribution
        spec = elements.spec(cells)
    return _new_array(world, spec, cells, elements, name, devices)


def _new_array(
    world: World,
    spec: ArraySpec,
    cells: Distribution,
    elements: Elements,
    name: str = "array",
    devices: Optional[Devices] = None,
) -> Array:
    inner_dims = len(elements.inside)
    on = None if devices is None else of_type("devices", devices, Devices)._core
    core = _core.allocate_array(of_type("world", world, World)._core, spec, name, on, inner_dims, elements.record)
    return Array(world, core, cells, elements)


def wrap(world: World, distribution: Distribution, data: Any, name: str = "array") -> Array:
    """Memory of the program's as this rank's part of an array; nothing is copied. Not collective.

    Parameters
    ----------
    data
        What NumPy can view, or what has DLPack: of the local extents, with any strides. Read-only memory can be a
        source only. The array keeps it alive.

    Raises
    ------
    Mismatch
        For other extents than the distribution's.
    """
    view = as_view(data)
    elements = elements_of(view.dtype)
    address, _, extents, strides = elements.described(view)
    spec = elements.spec(distribution)
    if elements.inside and not view.size:  # a rank without a part has no insides of elements either
        extents = (*view.shape, *spec.distribution.local_extents(of_type("world", world, World).rank)[-1:])
    core = _core.wrap_array(
        of_type("world", world, World)._core,
        spec,
        address,
        extents,
        strides,
        not view.flags.writeable,
        view,
        name,
        len(elements.inside),
        elements.record,
    )
    return Array(world, core, distribution, elements)


class Exchange:
    """Moves what it was made for: ``exchange()``, or ``exchange.start()``, other work, ``exchange.finish()``; or
    ``with exchange:``, which starts it, and finishes it at the end of the block.

    Making one is collective; runs allocate nothing, and every rank starts and finishes equally often. ``start`` never
    waits for peers, ``finish`` does, until the world's timeout. Between the two, sources must not be written and targets
    not be touched, unless the exchange was made with ``snapshot=True``: then ``start`` packs all that is sent, targets
    are written by ``finish`` alone (or by the ``test`` that returns True), and any cell may be written in between.

    Where an exception leaves the block, the exchange is completed if that takes no more than a second; else it stays in
    flight, and the next start completes it first.
    """

    __slots__ = ("_core", "start", "test", "finish")

    def __init__(self, core: _core.Exchange) -> None:
        self._core = core
        self.start = core.start
        self.test = core.test
        self.finish = core.finish

    def __call__(self) -> None:
        self.start()
        self.finish()

    def __enter__(self) -> Exchange:
        self.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.finish()
            return
        # The peers may never come, and the exception of the block says more than a wait for them.
        try:
            if self._core.finish_soon():
                return
        except Error:
            pass
        self.start = self._start_after_exception

    def _start_after_exception(self) -> None:
        self.start = self._core.start
        self._core.finish()
        self._core.start()

    @property
    def schedule(self) -> str:
        """``"direct"`` or ``"staged"`` when all messages of this rank are, ``"automatic"`` when it has both."""
        return self._core.schedule

    def explain(self) -> str:
        """How this rank moves what: messages, bytes, lengths of runs."""
        return self._core.explain()

    @property
    def plan(self) -> TransferPlan:
        """This rank's plan, for :func:`save_plan`. Like what ``explain`` says, it stays when the world ends."""
        return self._core.plan

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.explain().splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return plan_html(self.plan) + folded(f"schedule: {self.schedule}", self.explain())


def require_alike(source: Array, target: Array) -> None:
    """That elements mean the same on both sides: structs of one size may have other fields."""
    if source.dtype != target.dtype:
        raise Mismatch(f"elements of {source.dtype} do not move to elements of {target.dtype}")


def _cores(*arrays: Array) -> list[_core.LocalArray]:
    return [of_type("array", one, Array)._core for one in arrays]


class Redistribution(Exchange):
    """Moves arrays from one distribution to another: ``Redistribution(source, target)``, or of several pairs at once.

    Every stored cell of the targets is filled, overlap included. Set-up is collective, and plans in time that does not
    depend on the extents.

    Parameters
    ----------
    schedule
        ``"automatic"``, ``"direct"``, ``"staged"`` or ``"measured"``. No schedule changes a result.
    snapshot
        Whether cells may be written between ``start`` and ``finish``; see :class:`Exchange`. What moves is then copied
        twice.
    part
        ``(source, target, extents)``: moves this box of the source to that of the target, instead of all; the first two
        are its first cells.
    plan
        This rank's plan, made or loaded before (:func:`load_plan`): nothing is planned. It says what moves, so ``part``
        is not given beside it.

    Raises
    ------
    Mismatch
        When extents or element types differ, or the calls of the ranks; and for a plan of other layouts.
    InvalidUse
        For a read-only target, and for arrays that share memory.
    """

    __slots__ = ()

    def __init__(
        self,
        source: Union[Array, Sequence[Pair]],
        target: Optional[Array] = None,
        *,
        schedule: str = "automatic",
        snapshot: bool = False,
        part: Optional[tuple[Sequence[int], Sequence[int], Sequence[int]]] = None,
        plan: Optional[TransferPlan] = None,
    ) -> None:
        pairs: list[Any] = [(source, target)] if isinstance(source, Array) else list(source)
        if any(not isinstance(a, Array) for pair in pairs for a in pair):
            raise InvalidUse("Redistribution takes two arrays, or a list of pairs of arrays")
        for of, to in pairs:
            require_alike(of, to)
        if part is not None and plan is not None:
            raise InvalidUse("give a part or a plan, not both: a plan already says what moves")
        boxes = None if part is None else tuple(tuple(p) for p in part)
        super().__init__(
            _core.make_redistribution([(s._core, t._core) for s, t in pairs], schedule, snapshot, boxes, plan)
        )


class RedistributionAdjoint(Exchange):
    """The transpose of a redistribution: adds every stored cell of ``target`` to the cell of ``source`` that it was read
    from, in the order of the ranks, so that sums are the same in every run. ``plan`` as that of :class:`Redistribution`."""

    __slots__ = ()

    def __init__(
        self, source: Array, target: Array, *, schedule: str = "automatic", plan: Optional[TransferPlan] = None
    ) -> None:
        cores = _cores(source, target)
        require_alike(source, target)
        super().__init__(_core.make_adjoint(*cores, schedule, plan))


class HaloField(NamedTuple):
    """An array with a halo of its own, among the arrays of a :class:`HaloExchange`, which says what the options mean."""

    array: Array
    depth: Depth = None
    stencil: Stencil = "box"
    region: Region = None


def _field(field: Union[Array, HaloField]) -> tuple[_core.LocalArray, HaloNumbers]:
    if not isinstance(field, HaloField):
        field = HaloField(field)
    array, depth, stencil, region = field
    distribution = of_type("array", array, Array).distribution
    numbered, _, _ = distribution.indexed_cells(array._rank) if distribution.is_indexed else (0, None, None)
    # The cells of an indexed array are ids.
    extents = (int(np.prod(array.shape[:numbered])),) if distribution.is_indexed else array.shape
    return array._core, halo_numbers(depth, stencil, len(array.shape), _boxes(region, extents))


class HaloExchange(Exchange):
    """Fills the overlap of arrays from its owners, in one message per pair of neighbours for all arrays together.

    Parameters
    ----------
    *arrays
        They may differ in everything. A :class:`HaloField` has a depth, a stencil and a region of its own; those of the
        call hold for all others.
    depth
        How many cells are filled: one number for each side that stores any; or a sequence with a number, or a pair of
        left and right, for each dimension. All where nothing is said. ``InvalidUse`` where a side stores fewer.
    stencil
        ``"box"`` (corners included), ``"star"`` (no corners), or a list of offsets: exactly the cells that some owned
        cell reaches by one of them, and those at ``replicate`` and ``replicate_local`` edges of which these are copies.
    region
        Only ghosts of these global cells: a slice, or a tuple with one for each dimension, or a list of these, which do
        not overlap. Of an indexed array, a slice of its ids. The same on all ranks.
    adjoint
        Combines the ghosts that would be filled with their owners' cells instead, in the order of the ranks. They become
        the element that changes nothing, of sums zero; other ghosts are left alone.
    combine
        Of an adjoint: ``"sum"``, ``"product"``, ``"min"`` or ``"max"``.
    snapshot
        Ghosts get what their owners held at ``start``, whatever is written before ``finish``; see :class:`Exchange`.
        What is sent is then copied twice. ``Unsupported`` for an adjoint.
    plan
        This rank's plan of a halo or of an adjoint, made or loaded before (:func:`load_plan`): nothing is planned. It
        says all that the parameters above say but ``snapshot``. Its arrays come in their order; a plan with fewer arrays
        than are given has one for each layout.

    Raises
    ------
    InvalidUse
        For a read-only array, arrays that share memory, and an adjoint of elements that are moved as bytes.
    Unsupported
        For a replicated array, and for combinations that the elements do not have.
    Mismatch
        When the calls of the ranks differ, and for a plan of other layouts.

    Examples
    --------
    >>> import tranship as ts
    >>> def main(world):
    ...     u = ts.array(world, ts.distribution(8, world.size, overlap=[(2, 1)], edge="toroidal"))
    ...     u.fill(lambda i: i + 1)
    ...     ts.halo(u, depth=[(1, 0)])()
    ...     return u.local.tolist()
    >>> ts.launch(2, main)[1]
    [0.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0]
    """

    __slots__ = ()

    def __init__(
        self,
        *arrays: Union[Array, HaloField],
        depth: Depth = None,
        stencil: Stencil = "box",
        region: Region = None,
        adjoint: bool = False,
        combine: str = "sum",
        schedule: str = "automatic",
        snapshot: bool = False,
        plan: Optional[TransferPlan] = None,
    ) -> None:
        if plan is not None:
            if depth is not None or stencil != "box" or region is not None or adjoint or combine != "sum":
                raise InvalidUse("a plan already says its depth, stencil, region and adjoint: give these or a plan, not both")
            super().__init__(_core.make_planned_halo(_cores(*arrays), plan, schedule, snapshot))  # type: ignore[arg-type]
            return
        fields = [_field(one if isinstance(one, HaloField) else HaloField(one, depth, stencil, region)) for one in arrays]
        super().__init__(_core.make_halo(fields, adjoint, combine, schedule, snapshot))


halo = HaloExchange


class InterfaceExchange(Exchange):
    """Makes staggered points agree that several parts share: each part gets the value of their owner, the upper part.
    ``snapshot`` as that of :class:`HaloExchange`."""

    __slots__ = ()

    def __init__(self, *arrays: Array, schedule: str = "automatic", snapshot: bool = False) -> None:
        super().__init__(_core.make_interfaces(_cores(*arrays), schedule, snapshot))


class TiledHaloExchange(Exchange):
    """Fills the overlap of fields on a :class:`Tiling`, such as the faces of a cube.

    Parameters
    ----------
    *fields
        Each a list with one array for each tile. Their edge policy is ``"open"`` in the dimensions of the tiles.
    tile_dims
        Which dimensions of the arrays are those of the tiles; or a list with as much for each field.
    vectors
        Fields whose values are components of a vector: a list of ``{field: dimension}``, by the number of the field and
        the dimension of the tile that it points along (0 is y, 1 is x). Crossing an edge swaps and negates them.
    depth, stencil, adjoint, combine, snapshot
        As those of :class:`HaloExchange`, for all fields.
    """

    __slots__ = ()

    def __init__(
        self,
        tiling: Tiling,
        *fields: Sequence[Array],
        tile_dims: Union[Sequence[int], Sequence[Sequence[int]]] = (0, 1),
        vectors: Sequence[dict[int, int]] = (),
        depth: Depth = None,
        stencil: Stencil = "box",
        adjoint: bool = False,
        combine: str = "sum",
        schedule: str = "automatic",
        snapshot: bool = False,
    ) -> None:
        dims = [[d] if isinstance(d, int) else list(d) for d in tile_dims]
        if all(isinstance(d, int) for d in tile_dims):
            dims = [[d for (d,) in dims]] * len(fields)
        if len(dims) != len(fields):
            raise InvalidUse(f"tile_dims has entries for {amount(len(dims), 'field')}, but there are {len(fields)}")
        tiled = [(_cores(*of_type("field", tiles, Sequence)), of) for tiles, of in zip(fields, dims)]
        array_dims = [len(tile.shape) for tiles in fields for tile in tiles]
        super().__init__(
            _core.make_tiled_halo(
                tiling,
                tiled,
                [list(vector.items()) for vector in vectors],
                halo_numbers(depth, stencil, max(array_dims, default=0)),
                adjoint,
                combine,
                schedule,
                snapshot,
            )
        )


class HaloCheck(NamedTuple):
    """The result of :func:`check_halo` on one rank."""

    ghosts: int
    """Ghost cells that have an owner, and were compared with it."""
    untouched: int
    """Ghost cells that have none, such as those beyond a cube's corners, and were left alone."""
    wrong: int
    """Wrong ones of the rank's stored cells, its own included."""
    first_wrong: str
    """Where the first of them is, what it holds and what it should hold; empty without one."""


def check_halo(
    world: World, tiling: Tiling, *distributions: Distribution, tile_dims: Sequence[int] = (0, 1)
) -> HaloCheck:
    """Collective: gives every cell of a tiling a number, exchanges the halo, and compares every stored cell with what
    the tiling says.

    Parameters
    ----------
    *distributions
        One for each tile, as those of the arrays of a :class:`TiledHaloExchange`.
    tile_dims
        Which of their dimensions are those of the tiles.

    Examples
    --------
    >>> import tranship as ts
    >>> def main(world):
    ...     tiles = [ts.distribution((4, 4), (1, 1), overlap=2, edge="open") for _ in range(6)]
    ...     return ts.check_halo(world, ts.cubed_sphere(4), *tiles)
    >>> [found] = ts.launch(1, main)
    >>> found.ghosts, found.untouched, found.wrong
    (192, 96, 0)
    """
    return HaloCheck(*_core.check_halo(of_type("world", world, World)._core, tiling, list(distributions), list(tile_dims)))


def redistribute(source: Array, distribution: Distribution, *, schedule: str = "automatic") -> Array:
    """Collective: a new array with the cells of ``source``, in another distribution."""
    elements = of_type("source", source, Array)._elements
    target = _new_array(source.world, elements.spec(distribution), distribution, elements)
    Redistribution(source, target, schedule=schedule)()
    return target


def gather(source: Array, root: int = 0) -> Optional[NDArray[Any]]:
    """Collective: the whole array on rank ``root``, and ``None`` on the others."""
    world = of_type("source", source, Array).world
    if not 0 <= root < world.size:
        raise InvalidUse(f"no root {root} in a world of {world.size} (rank {world.rank})")
    dims = len(source.shape)
    everything = make_distribution(source.shape, grid(*(1,) * dims, ranks=[root]), "whole")
    out = redistribute(source, everything)
    return out.local if world.rank == root else None
