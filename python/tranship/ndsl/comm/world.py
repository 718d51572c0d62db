"""Ranks of a :class:`tranship.World`: halos go by its exchanges, from memory to memory where ranks reach each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from ... import _arrays, _core, _layouts
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

_EXCHANGES_KEPT = 4  # sets of arrays, of one updater
_UPDATES_KEPT = 8  # memory layouts of one-shot updates, of one communicator


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
        self._finished: dict[Any, _HaloExchange] = {}

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
            raise HaloMismatch(f"a buffer of {whole.nbytes} bytes at the root for {size} parts of {nbytes}")
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

    # What takes the place of messages.

    def direct_exchange(
        self,
        communicator: Any,
        module: Any,
        specs_x: Sequence[QuantityHaloSpec],
        specs_y: Optional[Sequence[QuantityHaloSpec]],
        boundaries: Sequence[Any],
    ) -> _HaloExchange:
        """Collective: the exchange of an updater."""
        if module is not np:
            raise HaloUnsupported(f"a halo update of {module} over a World: its ranks exchange arrays of NumPy")
        if list(boundaries) != list(communicator.boundaries.values()):
            raise HaloUnsupported(
                f"a halo update across {len(boundaries)} of {len(communicator.boundaries)} boundaries over a World: its "
                "ranks exchange all"
            )
        layouts = [[_layout_of(spec) for spec in specs] for specs in (specs_x, specs_y or ())]
        key = (id(communicator.partitioner), specs_y is None, repr(layouts))
        finished = self._finished.pop(key, None)
        # Ranks may have kept different ones: they use one again only together.
        numbers = set(self.world.all_gather(0 if finished is None else finished.number))
        if finished is not None and numbers == {finished.number}:
            finished.is_one_shot, finished.was_kept = False, True
            return finished
        self._made += 1
        out = _HaloExchange(self.world, communicator.partitioner, specs_x, specs_y)
        out.number, out.keep = self._made, functools.partial(self._keep, key)
        return out

    def _keep(self, key: Any, exchange: _HaloExchange) -> None:
        self._finished[key] = exchange
        while len(self._finished) > _UPDATES_KEPT:
            self._finished.pop(next(iter(self._finished)))

    def direct_synchronization(self, updater: Any, x: Any, y: Any) -> _Synchronization:
        """Collective: the synchronization of points that neighbours share, started."""
        if updater.communicator is None:
            raise HaloUnsupported("a synchronization over a World needs a Communicator, which knows how tiles are joined")
        return _Synchronization(self.world, updater.communicator.partitioner, x, y, updater.timer)


def _no_messages(what: str) -> HaloUnsupported:
    return HaloUnsupported(
        f"{what} over a World: its ranks exchange arrays together, or put into each other's symmetric memory "
        "(tranship.symmetric)"
    )


def _bytes_of(array: Any) -> Any:
    if not array.flags["C_CONTIGUOUS"]:
        raise HaloValueError("a buffer of a scatter or gather is in C order without gaps; see numpy.ascontiguousarray")
    return array.reshape(-1).view(np.uint8)


class _Field:
    """One quantity on all tiles: where its global array lies, and how this rank's part of it is cut out of memory."""

    def __init__(
        self,
        partitioner: Any,
        spec: QuantityHaloSpec,
        parts: Sequence[dict[str, int]],
        rank: int,
        widths: dict[str, tuple[int, int]],
        drop_shared: bool,
    ) -> None:
        """``widths`` are halo points to the low and the high side, by kind of dimension (``"j"``, ``"i"``). With
        ``drop_shared``, the points that neighbours share are the halo of the lower one."""
        ny, nx = partitioner.layout
        per_tile = ny * nx
        tiles = partitioner.total_ranks // per_tile
        self.tile = rank // per_tile
        self.tile_dims = [0, 0]
        extents, counts, cuts, overlap, interfaces = [], [], [], [], []
        box = []
        places: list[Any] = []
        for axis, (dim, o, e) in enumerate(zip(spec.dims, spec.origin, spec.extent)):
            if dim not in constants.HORIZONTAL_DIMS:
                extents.append(e)
                counts.append(1)
                cuts.append(_layouts.whole())
                overlap.append((0, 0))
                interfaces.append(False)
                box.append(slice(o, o + e))
                places.append(None)
                continue
            kind = "j" if dim in constants.J_DIMS else "i"
            number = ny if kind == "j" else nx
            self.tile_dims[0 if kind == "j" else 1] = axis
            shared = 1 if dim in constants.INTERFACE_DIMS else 0
            of_parts = [parts[n * nx if kind == "j" else n][kind] for n in range(number)]
            bounds = [0]
            for cells in of_parts:
                bounds.append(bounds[-1] + cells)
            keeps_shared = shared and not drop_shared
            extents.append(bounds[-1] + (1 if keeps_shared else 0))
            counts.append(number)
            even = len(set(of_parts)) == 1
            cuts.append(_layouts.block() if even else _layouts.irregular(bounds))
            low, high = widths[kind]
            overlap.append((low, high))
            interfaces.append(bool(keeps_shared))
            owned = e - (shared if drop_shared else 0)
            box.append(slice(o - low, o + owned + high))
            places.append(kind)
        self.box = tuple(box)
        order = [axis for axis, kind in enumerate(places) if kind is not None]
        self.distributions = []
        for tile in range(tiles):
            ranks = []
            for place in np.ndindex(*(counts[axis] for axis in order)):
                at = dict(zip((places[axis] for axis in order), place))
                ranks.append(tile * per_tile + at["j"] * nx + at["i"])
            self.distributions.append(
                _layouts.distribution(
                    extents,
                    _layouts.grid(*counts, ranks=ranks),
                    cuts,
                    overlap,
                    "open",
                    interfaces=interfaces,
                )
            )
        self.dtype = spec.dtype

    def arrays(self, world: World, data: Any) -> list[_arrays.Array]:
        """One array for each tile, of which this rank holds a part of one."""
        return [
            _arrays.wrap(world, d, data[self.box])
            if tile == self.tile
            else _arrays.array(world, d, self.dtype)
            for tile, d in enumerate(self.distributions)
        ]


def _layout_of(spec: QuantityHaloSpec) -> tuple[Any, ...]:
    memory = (spec.dims, spec.shape, spec.origin, spec.extent)
    return (spec.n_points, str(np.dtype(spec.dtype)), *(tuple(one) for one in memory))


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
        f"{dtype} on ({', '.join(dims)}) with {n} halo points and extents {others} of other dimensions"
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
                    f"rank {rank} has {mine[kind]} cells along {kind}, and rank {like}, in the same "
                    f"{'row' if kind == 'j' else 'column'} of its tile, {cells[like][kind]}"
                )


def _tiling(partitioner: Any, cells: Sequence[dict[str, int]]) -> _core.Tiling:
    ny, nx = partitioner.layout
    along_j = sum(cells[j * nx]["j"] for j in range(ny))
    along_i = sum(cells[i]["i"] for i in range(nx))
    if not isinstance(partitioner, CubedSpherePartitioner):
        return _layouts.doubly_periodic(along_j, along_i)
    if along_j != along_i:
        raise HaloValueError(f"a tile of {along_j} by {along_i} cells on the cube: its sides must be equally long")
    return _layouts.cubed_sphere(along_j)


class _HaloExchange:
    """Halo updates of quantities of fixed memory layouts, as exchanges of the World.

    An exchange knows the memory of its arrays. Those of the last few sets of arrays are kept, with the arrays
    themselves, so that every rank of a program that starts its updates in the same order makes a new one at the same
    time.
    """

    def __init__(
        self,
        world: World,
        partitioner: Any,
        specs_x: Sequence[QuantityHaloSpec],
        specs_y: Optional[Sequence[QuantityHaloSpec]],
    ) -> None:
        self._world = world
        self._specs_x, self._specs_y = list(specs_x), None if specs_y is None else list(specs_y)
        specs = [*specs_x, *(specs_y or ())]
        parts = _agreed_parts(world, specs)
        for cells in parts:
            _check_grid(partitioner, cells)
            if cells != parts[0]:
                raise HaloMismatch("quantities of different numbers of cells in one halo update")
        self._tiling = _tiling(partitioner, parts[0])
        self._fields = []
        for spec, cells in zip(specs, parts):
            n = spec.n_points
            self._fields.append(_Field(partitioner, spec, cells, world.rank, {"j": (n, n), "i": (n, n)}, False))
        count = len(specs_x)
        self._vectors = [] if specs_y is None else [{n: 1, count + n: 0} for n in range(count)]
        self._exchanges: dict[Any, tuple[_arrays.TiledHaloExchange, list[Any], int]] = {}
        self._exchanges_made = 0
        self.number = 0
        self.keep: Optional[Callable[[_HaloExchange], None]] = None
        self.is_one_shot = False  # then ranks agree at each start whether they have an exchange for their arrays
        self.was_kept = False
        self._last: list[tuple[Any, Any]] = []
        self._running: Optional[_arrays.TiledHaloExchange] = None

    def start(self, x: Sequence[Any], y: Optional[Sequence[Any]]) -> None:
        """Starts; makes the exchange first, collectively, for arrays that are new."""
        given = [*x, *(y or ())]
        if self.was_kept and not self.is_one_shot:
            self._exchanges.clear()
        self.was_kept = False
        if not self.is_one_shot and self._come_again(given):
            self._running = next(reversed(self._exchanges.values()))[0]
            self._running.start()
            return
        data = [array_of(q, spec, True) for q, spec in zip(x, self._specs_x)]
        data += [array_of(q, spec, True) for q, spec in zip(y or (), self._specs_y or ())]
        key = tuple([(one.__array_interface__["data"][0], one.strides) for one in data])  # of memory that is kept
        found = self._exchanges.pop(key, None)
        if self.is_one_shot:
            numbers = set(self._world.all_gather(0 if found is None else found[2]))
            found = found if found is not None and numbers == {found[2]} else None
        if found is None:
            arrays = [field.arrays(self._world, one) for field, one in zip(self._fields, data)]
            exchange = _arrays.TiledHaloExchange(
                self._tiling, *arrays, tile_dims=[field.tile_dims for field in self._fields], vectors=self._vectors
            )
            self._exchanges_made += 1
            found = (exchange, data, self._exchanges_made)
            while len(self._exchanges) >= _EXCHANGES_KEPT:
                self._exchanges.pop(next(iter(self._exchanges)))
        self._exchanges[key] = found
        self._last = list(zip(given, data))
        found[0].start()
        self._running = found[0]

    def _come_again(self, given: Sequence[Any]) -> bool:
        if len(given) != len(self._last):
            return False
        for q, (before, array) in zip(given, self._last):
            if q is not before or data_of(q) is not array or not array.flags.writeable:
                return False
        return True

    def wait(self) -> None:
        """Finishes."""
        running = self._running
        if running is None:
            raise HaloStateError('Halo update "wait" call before "start"')
        running.finish()
        self._running = None

    def finalize(self) -> None:
        """Ends a one-shot update. The exchange is kept for the next one of these memory layouts, with its arrays."""
        self._last = []
        if self.keep is not None:
            self.keep(self)


class _Synchronization:
    """The points that neighbours share, as one-sided halos: what lies on the north and the east edge of a rank is the
    halo of an array without these points."""

    def __init__(self, world: World, partitioner: Any, x: Any, y: Any, timer: Timer) -> None:
        self._timer = timer
        specs = [halo_spec_of(x, 1), halo_spec_of(y, 1)]
        parts = _agreed_parts(world, specs)
        _check_grid(partitioner, parts[0])
        if parts[0] != parts[1]:
            raise HaloMismatch("components of a vector of different numbers of cells")
        tiling = _tiling(partitioner, parts[0])
        north, east = {"j": (0, 1), "i": (0, 0)}, {"j": (0, 0), "i": (0, 1)}
        fields = [
            _Field(partitioner, spec, parts[0], world.rank, widths, True) for spec, widths in zip(specs, (north, east))
        ]
        arrays = [field.arrays(world, data_of(q)) for field, q in zip(fields, (x, y))]
        self._exchange = _arrays.TiledHaloExchange(
            tiling, *arrays, tile_dims=[field.tile_dims for field in fields], vectors=[{0: 1, 1: 0}]
        )
        self._is_done = False
        with timer.clock("Isend"):
            self._exchange.start()

    def wait(self) -> None:
        """Finishes. Again, it does nothing."""
        if not self._is_done:
            with self._timer.clock("wait"):
                self._exchange.finish()
            self._is_done = True
