"""Ranks of a :class:`tranship.World`: halos go by its exchanges, which pack once, into memory that the receiver reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from ..._amounts import amount
from ... import _arrays, _core, _layouts
from ..._core import ArraySpec
from ..._elements import moved_elements
from ..._worlds import World
from .. import constants
from .._errors import HaloMismatch, HaloStateError, HaloUnsupported, HaloValueError
from ..halo.data_transformer import array_of
from ..performance.timer import Timer
from ..quantity import QuantityHaloSpec
from ..quantity.quantity import halo_spec_of
from ..utils import data_of
from .comm_abc import Comm, ReductionOperator
from .local_comm import combined
from .partitioner import CubedSpherePartitioner

__all__ = ["WorldComm"]

_UPDATES_KEPT = 8  # of quantities of different extents, for one-shot updates of one communicator


class WorldComm(Comm[Any]):
    """Ranks of a World.

    Halo updates and synchronizations of shared points do not go through messages of this class, but through the World's
    own exchanges; :class:`~tranship.ndsl.comm.communicator.Communicator` makes one of these where it is given a World.

    Parameters
    ----------
    world
        The ranks. The communicator can be used as long as they run.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._made = 0
        self._finished: dict[Any, _Update] = {}

    def Get_rank(self) -> int:
        """This rank."""
        return self.world.rank

    def Get_size(self) -> int:
        """How many ranks there are."""
        return self.world.size

    def bcast(self, value: Any, root: int = 0) -> Any:
        """Collective: the object of ``root``."""
        return self.world.broadcast(value, root)

    def barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self.world.barrier()

    def Barrier(self) -> None:
        """Collective: returns when all ranks have called it."""
        self.world.barrier()

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the n-th part of the buffer of ``root`` goes to rank n."""
        whole, parts = self._buffers(sendbuf, recvbuf, root)
        _arrays.Redistribution(whole, parts)()

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0, **kwargs: Any) -> None:
        """Collective: the buffer of rank n becomes the n-th part of that of ``root``."""
        whole, parts = self._buffers(recvbuf, sendbuf, root)
        _arrays.Redistribution(parts, whole)()

    def _buffers(self, whole: Any, part: Any, root: int) -> tuple[_arrays.Array, _arrays.Array]:
        """The buffer of the root as an array that it alone holds, and the buffers of all as parts of one array."""
        size, nbytes = self.world.size, part.nbytes
        if self.world.rank == root and whole.nbytes != size * nbytes:
            raise HaloMismatch(
                f"a buffer of {amount(whole.nbytes, 'byte')} at the root for {amount(size, 'part')} of {nbytes}"
            )
        at_root = _layouts.distribution((size, nbytes), _layouts.grid(1, 1, ranks=[root]), "whole")
        cut = _layouts.distribution((size, nbytes), _layouts.grid(size, 1), ["block", "whole"])
        empty = np.empty((0, 0), np.uint8)
        mine = _bytes_of(whole).reshape(size, nbytes) if self.world.rank == root else empty
        return (
            _arrays.wrap(self.world, at_root, mine),
            _arrays.wrap(self.world, cut, _bytes_of(part).reshape(1, nbytes)),
        )

    def allgather(self, sendobj: Any) -> list[Any]:
        """Collective: an object of each rank, in their order."""
        return self.world.all_gather(sendobj)

    def Send(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Any:
        """Not possible: ranks of a World exchange arrays together, or by puts into symmetric memory."""
        raise _no_messages("Send")

    def Isend(self, sendbuf: Any, dest: int, tag: int = 0, **kwargs: Any) -> Any:
        """Not possible; see :meth:`Send`."""
        raise _no_messages("Isend")

    def Recv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Any:
        """Not possible; see :meth:`Send`."""
        raise _no_messages("Recv")

    def Irecv(self, recvbuf: Any, source: int, tag: int = 0, **kwargs: Any) -> Any:
        """Not possible; see :meth:`Send`."""
        raise _no_messages("Irecv")

    def sendrecv(self, sendbuf: Any, dest: int, **kwargs: Any) -> Any:
        """Not possible; see :meth:`Send`."""
        raise _no_messages("sendrecv")

    def Split(self, color: Any, key: Any) -> WorldComm:
        """Collective: a communicator of the ranks with the same color. They must be equally far apart, and their keys
        in their order."""
        asked = self.world.all_gather((color, key))
        mine: Optional[World] = None
        for group in sorted({c for c, _ in asked}):
            ranks = [rank for rank, (c, _) in enumerate(asked) if c == group]
            keys = [asked[rank][1] for rank in ranks]
            step = ranks[1] - ranks[0] if len(ranks) > 1 else 1
            if ranks != list(range(ranks[0], ranks[-1] + 1, step)) or keys != sorted(keys):
                raise HaloUnsupported(f"Split: color {group} has ranks {ranks}, which are not equally far apart and in order")
            sub = self.world.split(ranks[0], step, len(ranks))
            mine = sub if group == color else mine
        if mine is None:
            raise HaloStateError(f"Split: color {color} has no rank")
        return WorldComm(mine)

    def allreduce(self, sendobj: Any, op: ReductionOperator = ReductionOperator.NO_OP) -> Any:
        """Collective: the objects of all ranks, combined in their order."""
        return combined(self.world.all_gather(sendobj), op)

    def Allreduce(self, sendobj: Any, recvobj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in a buffer."""
        recvobj[...] = self.allreduce(sendobj, op)
        return recvobj

    def Allreduce_inplace(self, obj: Any, op: ReductionOperator) -> Any:
        """Collective: the buffers of all ranks, combined, in these buffers."""
        return self.Allreduce(obj, obj, op)

    # Halo updates and synchronization, in place of messages.

    def direct_exchange(
        self,
        communicator: Any,
        module: Any,
        specs_x: Sequence[QuantityHaloSpec],
        specs_y: Optional[Sequence[QuantityHaloSpec]],
        boundaries: Sequence[Any],
    ) -> _HaloExchange:
        """Collective: the exchange of an updater."""
        specs = [*specs_x, *(specs_y or ())]
        if list(boundaries) != list(communicator.boundaries.values()):
            raise HaloUnsupported(
                f"over a World, a halo update cannot leave out boundaries ({len(boundaries)} of "
                f"{len(communicator.boundaries)} are given): its "
                "ranks exchange all"
            )
        count = len(specs_x)
        vectors = [] if specs_y is None else [{n: 1, count + n: 0} for n in range(count)]
        widths = [{"j": (spec.n_points,) * 2, "i": (spec.n_points,) * 2} for spec in specs]
        update = self._take(communicator.partitioner, specs, widths, False, vectors)
        touched = [
            _Touched(_low_corner(*of), [boundary.recv_slice(of[0]) for boundary in boundaries])
            for of in zip(specs, widths)
        ]
        return _HaloExchange(update, specs_x, specs_y, touched, self._keep)

    def direct_synchronization(self, updater: Any, x: Any, y: Any) -> _Synchronization:
        """Collective: the synchronization of points that neighbours share, started.

        What lies on the north and the east edge of a rank is the halo of an array without these points."""
        if updater.communicator is None:
            raise HaloUnsupported("a synchronization over a World needs a Communicator, which knows how tiles are joined")
        specs = [halo_spec_of(x, 1), halo_spec_of(y, 1)]
        widths = [{"j": (0, 1), "i": (0, 0)}, {"j": (0, 0), "i": (0, 1)}]
        update = self._take(updater.communicator.partitioner, specs, widths, True, [{0: 1, 1: 0}])
        upper = [
            [_upper_line(spec, kind)] if boundary in updater.boundaries else []
            for spec, kind, boundary in zip(specs, ("j", "i"), (constants.NORTH, constants.EAST))
        ]
        touched = [_Touched(_low_corner(*of), cuts) for of, cuts in zip(zip(specs, widths), upper)]
        update.bind([data_of(x), data_of(y)], touched)
        return _Synchronization(update, updater.timer, self._keep)

    def _take(
        self,
        partitioner: Any,
        specs: Sequence[QuantityHaloSpec],
        widths: Sequence[Widths],
        drop_shared: bool,
        vectors: list[dict[int, int]],
    ) -> _Update:
        """Collective: an update that has finished, or a new one."""
        for spec in specs:
            if spec.numpy_module is not np:
                raise HaloUnsupported(
                    f"a halo update of {spec.numpy_module} over a World: its ranks exchange arrays of NumPy"
                )
        extents = [(spec.n_points, str(np.dtype(spec.dtype)), tuple(spec.dims), tuple(spec.extent)) for spec in specs]
        key = (id(partitioner), drop_shared, bool(vectors), tuple(extents))
        finished = self._finished.pop(key, None)
        # Ranks may have kept different ones: they use one again only together.
        numbers = set(self.world.all_gather(0 if finished is None else finished.number))
        if finished is not None and numbers == {finished.number}:
            return finished
        self._made += 1
        return _Update(self._made, key, self.world, partitioner, specs, widths, drop_shared, vectors)

    def _keep(self, update: _Update) -> None:
        self._finished[update.key] = update
        while len(self._finished) > _UPDATES_KEPT:
            self._finished.pop(next(iter(self._finished)))


def _no_messages(what: str) -> HaloUnsupported:
    return HaloUnsupported(
        f"{what} over a World: its ranks exchange arrays together, or put into each other's symmetric memory "
        "(tranship.symmetric)"
    )


def _bytes_of(array: Any) -> Any:
    if not array.flags["C_CONTIGUOUS"]:
        raise HaloValueError("a buffer of a scatter or gather is in C order without gaps; see numpy.ascontiguousarray")
    return array.reshape(-1).view(np.uint8)


class _Touched(NamedTuple):
    """The part of a quantity's array that an update touches."""

    low_corner: tuple[int, ...]
    """The first of its points that the update touches."""
    cuts: Sequence[tuple[slice, ...]]
    """Where it writes."""


def _to_bind(array: Any, is_turned: bool) -> Any:
    """The array, or memory for a copy of it where the library cannot move its elements from where they lie: they do not
    lie at multiples of their size, or would be negated in another byte order."""
    of = array.dtype
    if is_turned and not of.isnative:
        return np.empty(array.shape, of.newbyteorder("="))
    if not array.flags.aligned or any(stride % of.itemsize for stride in array.strides):
        return np.empty(array.shape, of)
    return array


def _elements(dtype: Any, is_turned: bool) -> Any:
    """Returns the library's elements for a quantity of some dtype. Elements that are negated are numbers there."""
    of = np.dtype(dtype)
    if is_turned:
        of = np.dtype("i8") if of.kind == "m" else of.newbyteorder("=")
    return moved_elements(of)


Widths = dict[str, tuple[int, int]]
"""Halo points to the low and the high side, by kind of dimension (``"j"``, ``"i"``)."""


def _kind_of(dim: str) -> str:
    return "j" if dim in constants.J_DIMS else "i"


def _low_corner(spec: QuantityHaloSpec, widths: Widths) -> tuple[int, ...]:
    """Returns the first of a quantity's points that an update with ``n_points`` halo points touches."""
    return tuple(
        o - widths[_kind_of(dim)][0] if dim in constants.HORIZONTAL_DIMS else o
        for dim, o in zip(spec.dims, spec.origin)
    )


def _upper_line(spec: QuantityHaloSpec, kind: str) -> tuple[slice, ...]:
    """The last points of the compute domain along j or i."""
    return tuple(
        slice(o + e - 1 if dim in constants.HORIZONTAL_DIMS and _kind_of(dim) == kind else o, o + e)
        for dim, o, e in zip(spec.dims, spec.origin, spec.extent)
    )


def _tile_dims(spec: QuantityHaloSpec) -> list[int]:
    """The dimensions along j and along i."""
    out = [0, 0]
    for axis, dim in enumerate(spec.dims):
        if dim in constants.HORIZONTAL_DIMS:
            out["ji".index(_kind_of(dim))] = axis
    return out


def _tiles_of(
    partitioner: Any,
    spec: QuantityHaloSpec,
    parts: Sequence[dict[str, int]],
    widths: Widths,
    drop_shared: bool,
    is_turned: bool,
) -> list[ArraySpec]:
    """How one quantity is distributed on each tile. With ``drop_shared``, the points that neighbours share are the halo
    of the lower one."""
    ny, nx = partitioner.layout
    per_tile = ny * nx
    extents, counts, cuts, overlap, interfaces = [], [], [], [], []
    places: list[Any] = []
    for dim, e in zip(spec.dims, spec.extent):
        if dim not in constants.HORIZONTAL_DIMS:
            extents.append(e)
            counts.append(1)
            cuts.append(_layouts.whole())
            overlap.append((0, 0))
            interfaces.append(False)
            places.append(None)
            continue
        kind = _kind_of(dim)
        number = ny if kind == "j" else nx
        keeps_shared = dim in constants.INTERFACE_DIMS and not drop_shared
        of_parts = [parts[n * nx if kind == "j" else n][kind] for n in range(number)]
        bounds = [0]
        for cells in of_parts:
            bounds.append(bounds[-1] + cells)
        extents.append(bounds[-1] + (1 if keeps_shared else 0))
        counts.append(number)
        even = len(set(of_parts)) == 1
        cuts.append(_layouts.block() if even else _layouts.irregular(bounds))
        overlap.append(widths[kind])
        interfaces.append(keeps_shared)
        places.append(kind)
    order = [axis for axis, kind in enumerate(places) if kind is not None]
    out = []
    for tile in range(partitioner.total_ranks // per_tile):
        ranks = []
        for place in np.ndindex(*(counts[axis] for axis in order)):
            at = dict(zip((places[axis] for axis in order), place))
            ranks.append(tile * per_tile + at["j"] * nx + at["i"])
        cut = _layouts.distribution(
            extents, _layouts.grid(*counts, ranks=ranks), cuts, overlap, "open", interfaces=interfaces
        )
        out.append(_elements(spec.dtype, is_turned).spec(cut))
    return out


def _cells(spec: QuantityHaloSpec) -> dict[str, int]:
    out = {}
    for dim, extent in zip(spec.dims, spec.extent):
        if dim in constants.HORIZONTAL_DIMS:
            kind = "j" if dim in constants.J_DIMS else "i"
            out[kind] = int(extent) - (1 if dim in constants.INTERFACE_DIMS else 0)
    return out


def _agreed_parts(world: World, specs: Sequence[QuantityHaloSpec]) -> list[list[dict[str, int]]]:
    """Collective: the cells of every rank's part along j and i, of each quantity; all ranks raise when they differ in
    anything else."""
    mine = [
        (
            tuple(spec.dims),
            str(np.dtype(spec.dtype)),
            spec.n_points,
            tuple(e for dim, e in zip(spec.dims, spec.extent) if dim not in constants.HORIZONTAL_DIMS),
        )
        for spec in specs
    ]
    everyone = world.all_gather((mine, [_cells(spec) for spec in specs]))
    for rank, (theirs, _) in enumerate(everyone):
        if theirs != everyone[0][0]:
            raise HaloMismatch(
                f"a halo update of {_described(everyone[0][0])} on rank 0 and of {_described(theirs)} on rank {rank}"
            )
    return [[cells[n] for _, cells in everyone] for n in range(len(specs))]


def _described(quantities: Sequence[Any]) -> str:
    return "; ".join(
        f"{dtype} on ({', '.join(dims)}) with {amount(n, 'halo point')} and extents {others} of other dimensions"
        for dims, dtype, n, others in quantities
    )


def _check_grid(partitioner: Any, cells: Sequence[dict[str, int]]) -> None:
    """Ranks of one row have equally many rows of cells, and ranks of one column equally many columns."""
    ny, nx = partitioner.layout
    for rank, mine in enumerate(cells):
        j, i = divmod(rank % (ny * nx), nx)
        for kind, like in (("j", j * nx), ("i", i)):
            if mine[kind] != cells[like][kind]:
                raise HaloMismatch(
                    f"rank {rank} has {amount(mine[kind], 'cell')} along {kind}, and rank {like}, in the same "
                    f"{'row' if kind == 'j' else 'column'} of its tile, {cells[like][kind]}"
                )


def _tiling(partitioner: Any, cells: Sequence[dict[str, int]]) -> _core.Tiling:
    ny, nx = partitioner.layout
    along_j = sum(cells[j * nx]["j"] for j in range(ny))
    along_i = sum(cells[i]["i"] for i in range(nx))
    if not isinstance(partitioner, CubedSpherePartitioner):
        return _layouts.doubly_periodic(along_j, along_i)
    if along_j != along_i:
        raise HaloValueError(
            f"a tile of {along_j} by {amount(along_i, 'cell')} on the cube: its sides must be equally long"
        )
    return _layouts.cubed_sphere(along_j)


class _Update:
    """A halo update of quantities of some extents on all ranks. Each rank binds it to memory of its own, whenever and
    wherever it likes: what is sent is packed when it starts."""

    def __init__(
        self,
        number: int,
        key: Any,
        world: World,
        partitioner: Any,
        specs: Sequence[QuantityHaloSpec],
        widths: Sequence[Widths],
        drop_shared: bool,
        vectors: list[dict[int, int]],
    ) -> None:
        self.number, self.key = number, key
        parts = _agreed_parts(world, specs)
        for cells in parts:
            _check_grid(partitioner, cells)
            if cells != parts[0]:
                raise HaloMismatch("the quantities of one halo update have different numbers of cells")
        ny, nx = partitioner.layout
        # Where no edge turns, components of a vector are scalars.
        self._is_turned = bool(vectors) and isinstance(partitioner, CubedSpherePartitioner)
        fields = [
            (_tiles_of(partitioner, spec, cells, of, drop_shared, self._is_turned), _tile_dims(spec))
            for spec, cells, of in zip(specs, parts, widths)
        ]
        self._core = _core.make_halo_update(
            world._core,
            _tiling(partitioner, parts[0]),
            fields,
            [list(vector.items()) for vector in vectors] if self._is_turned else [],
            world.rank // (ny * nx),
        )
        self._copies: list[tuple[Any, Any, Sequence[tuple[slice, ...]]]] = []
        self.start, self.finish = self._core.start, self._core.finish

    def bind(self, arrays: Sequence[Any], touched: Sequence[_Touched]) -> None:
        """From here on the update is one of these arrays, which it keeps."""
        bound, copies = [], []
        for one, of in zip(arrays, touched):
            memory = _to_bind(one, self._is_turned)
            if memory is not one:
                copies.append((one, memory, of.cuts))
            elements = _elements(one.dtype, self._is_turned)
            described = memory if elements.inside else memory.view(elements.dtype)
            address, _, extents, strides = elements.described(described)
            bound.append((memory, address, extents, strides, (*of.low_corner, *(0 for _ in elements.inside))))
        self._core.bind(bound)
        self._copies = copies
        self.start, self.finish = (
            (self._start_copies, self._finish_copies) if copies else (self._core.start, self._core.finish)
        )

    def release(self) -> None:
        """Releases the arrays. The update is bound again before its next start."""
        self._core.release()
        self._copies = []

    def _start_copies(self) -> None:
        for array, copy, _ in self._copies:
            copy[...] = array
        self._core.start()

    def _finish_copies(self) -> None:
        self._core.finish()
        for array, copy, cuts in self._copies:
            for cut in cuts:
                array[cut] = copy[cut]


class _HaloExchange:
    """The halo updates of an updater."""

    def __init__(
        self,
        update: _Update,
        specs_x: Sequence[QuantityHaloSpec],
        specs_y: Optional[Sequence[QuantityHaloSpec]],
        touched: Sequence[_Touched],
        keep: Callable[[_Update], None],
    ) -> None:
        self._update = update
        self._specs_x, self._specs_y = list(specs_x), list(specs_y or ())
        self._touched = touched
        self._keep = keep
        self._last: list[tuple[Any, Any]] = []

    def start(self, x: Sequence[Any], y: Optional[Sequence[Any]]) -> None:
        """Packs what neighbours need of these quantities; waits for no other rank."""
        given = [*x, *(y or ())]
        if not self._come_again(given):
            data = [array_of(q, spec, True) for q, spec in zip(x, self._specs_x)]
            data += [array_of(q, spec, True) for q, spec in zip(y or (), self._specs_y)]
            self._last = []
            self._update.bind(data, self._touched)
            self._last = list(zip(given, data))
        self._update.start()

    def _come_again(self, given: Sequence[Any]) -> bool:
        if len(given) != len(self._last):
            return False
        for q, (before, array) in zip(given, self._last):
            if q is not before or data_of(q) is not array or not array.flags.writeable:
                return False
        return True

    def wait(self) -> None:
        """Finishes."""
        self._update.finish()

    def finalize(self) -> None:
        """Ends a one-shot update. The exchange is kept for the next one of quantities of these extents."""
        self._last = []
        self._update.release()
        self._keep(self._update)


class _Synchronization:
    """A synchronization that has been started."""

    def __init__(self, update: _Update, timer: Timer, keep: Callable[[_Update], None]) -> None:
        self._update: Optional[_Update] = update
        self._timer = timer
        self._keep = keep
        with timer.clock("Isend"):
            update.start()

    def wait(self) -> None:
        """Finishes. Again, it does nothing."""
        if self._update is None:
            return
        with self._timer.clock("wait"):
            self._update.finish()
        self._update.release()
        self._keep(self._update)
        self._update = None
