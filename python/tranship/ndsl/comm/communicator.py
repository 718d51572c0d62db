"""Operations of all ranks: halo updates, synchronization of shared points, scatter and gather, reductions.

A communicator takes ranks of any of these kinds:

- a :class:`tranship.World`, whose ranks may be threads, processes or processes of MPI;
- a communicator of mpi4py;
- a :class:`~tranship.ndsl.LocalComm`, an object of NDSL's ``Comm`` classes, or any other one with their methods.
"""

from __future__ import annotations

import abc
import contextlib
import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, TypeVar, Union, cast

import numpy as np

from ..._errors import Error
from ..._worlds import World
from .. import constants
from .._errors import HaloMismatch, HaloStateError, HaloTypeError, HaloUnsupported, HaloValueError
from ..buffer import array_buffer
from ..halo.updater import HaloUpdater, HaloUpdateRequest, VectorInterfaceHaloUpdater
from ..performance.timer import NullTimer, Timer
from ..quantity import Quantity, QuantityHaloSpec, QuantityMetadata
from ..quantity.quantity import halo_spec_of
from ..utils import data_of, safe_assign_array
from .boundary import SimpleBoundary
from .comm_abc import ReductionOperator
from .mpi import MPIComm, is_mpi4py
from .partitioner import CubedSpherePartitioner, Partitioner, TilePartitioner

__all__ = ["Communicator", "CubedSphereCommunicator", "TileCommunicator", "to_numpy"]

C = TypeVar("C", bound="Communicator")

_TAG_MAX = 32766  # below the lowest bound that MPI allows, which is that of refusals

_communicators = itertools.count()

_METHODS = ("Get_rank", "Get_size", "Isend", "Irecv")


def to_numpy(array: Any, dtype: Any = None) -> Any:
    """An array of a NumPy-like module as one of NumPy."""
    host = array if isinstance(array, np.ndarray) else array.get() if hasattr(array, "get") else np.asarray(array)
    return host if dtype is None else host.astype(dtype=dtype)


def as_comm(comm: Any) -> Any:
    """Any kind of ranks with the methods of :class:`~tranship.ndsl.comm.Comm`.

    Raises
    ------
    TypeError
        For anything that has not these methods.
    """
    if isinstance(comm, World):
        from .world import WorldComm

        return WorldComm(comm)
    if is_mpi4py(comm):
        return MPIComm(comm)
    if type(comm).__name__ == "MPIComm" and is_mpi4py(getattr(comm, "_comm", None)) and not isinstance(comm, MPIComm):
        return MPIComm(comm._comm)  # NDSL's own, whose waits have no deadline
    missing = [name for name in _METHODS if not callable(getattr(comm, name, None))]
    if missing or isinstance(comm, type):
        raise HaloTypeError(
            "Communicator needs to be instantiated with communication subsystem derived from `comm_abc.Comm`, got "
            f"{type(comm)}" + (f", which lacks {', '.join(missing)}" if missing else "")
        )
    return comm


def _as_list(quantities: Any) -> list[Any]:
    return list(quantities) if isinstance(quantities, (list, tuple)) else [quantities]


def _common_module(specifications: Sequence[QuantityHaloSpec]) -> Any:
    if not specifications:
        raise HaloStateError("Cannot create updater with specifications list: it is empty")
    for spec in specifications:
        if not hasattr(spec, "numpy_module"):
            raise HaloTypeError(f"a QuantityHaloSpec is needed, not a {type(spec).__name__}")
    modules = {id(spec.numpy_module): spec.numpy_module for spec in specifications}
    if len(modules) > 1:
        names = sorted(getattr(module, "__name__", str(module)) for module in modules.values())
        raise HaloUnsupported(f"one halo update cannot take arrays of {' and '.join(names)}")
    return specifications[0].numpy_module


class Communicator(abc.ABC):
    """Base of communicators. Calls are collective unless they say otherwise: all ranks make them in the same order.

    Parameters
    ----------
    comm
        The ranks; see the module.
    partitioner
        Which rank has which part.
    force_cpu
        Whether all messages lie in the memory of the host. Otherwise those of arrays of another module than NumPy lie in
        memory of that module, except where ranks are those of a World, whose messages are the host's.
    timer
        Its clocks are ``halo_exchange_global``, ``Irecv``, ``pack``, ``Isend``, ``wait`` and ``unpack``.

    Raises
    ------
    TypeError
        For ranks of another kind.
    ValueError
        When the partitioner is one for another number of ranks.
    """

    def __init__(
        self, comm: Any, partitioner: Partitioner, force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> None:
        self.comm = as_comm(comm)
        self.partitioner = partitioner
        self.timer: Timer = timer if timer is not None else NullTimer()
        self._force_cpu = force_cpu
        self._boundaries: Optional[Mapping[int, SimpleBoundary]] = None
        self._last_halo_tag = 0
        self._updaters_made = 0
        self._number = next(_communicators)
        self._check_size()

    def _check_size(self) -> None:
        ranks, size = self.partitioner.total_ranks, self.comm.Get_size()
        if size != ranks:
            raise HaloValueError(
                f"was given a partitioner for {ranks} ranks but a comm object with only {size} ranks, are we running with "
                "mpi and the correct number of ranks?"
            )

    @property
    @abc.abstractmethod
    def tile(self) -> TileCommunicator:
        """The ranks of this rank's tile."""

    @classmethod
    @abc.abstractmethod
    def from_layout(
        cls: type[C], comm: Any, layout: tuple[int, int], force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> C:
        """Makes a communicator for ``layout`` ranks along j and along i of each tile."""

    @property
    def rank(self) -> int:
        """This rank."""
        return int(self.comm.Get_rank())

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return int(self.comm.Get_size())

    # Halo updates.

    @property
    def boundaries(self) -> Mapping[int, SimpleBoundary]:
        """The boundaries at the edges and corners of this rank's part, by type; without corners of the cube. Local."""
        if self._boundaries is None:
            found = ((kind, self.partitioner.boundary(kind, self.rank)) for kind in constants.BOUNDARY_TYPES)
            self._boundaries = {kind: boundary for kind, boundary in found if boundary is not None}
        return self._boundaries

    @property
    def has_square_part(self) -> bool:
        """True when this rank's part of a square tile is square. Local."""
        tile = self.partitioner.tile
        at_edge = [place in (0, count - 1) for place, count in zip(tile.subtile_index(self.rank), tile.layout)]
        return tile.edge_interior_ratio == 1.0 or at_edge[0] == at_edge[1]

    def _get_halo_tag(self) -> int:
        self._updaters_made += 1
        self._last_halo_tag = self._last_halo_tag % _TAG_MAX + 1
        return self._last_halo_tag

    def next_update(self, tag: int) -> tuple[int, int, int]:
        """Returns an id of the next updater, the same on all ranks: these make communicators and ask for updaters in
        the same order. Local."""
        return (self._number, self._updaters_made, tag)

    def halo_update(self, quantity: Union[Any, list[Any]], n_points: int) -> None:
        """Updates the halos of one quantity, or of several at once; see :meth:`start_halo_update`."""
        self.start_halo_update(quantity, n_points).wait()

    def start_halo_update(self, quantity: Union[Any, list[Any]], n_points: int) -> HaloUpdater:
        """Starts to update the halos of one quantity, or of several at once.

        Parameters
        ----------
        quantity
            Quantities of one dtype, each with a dimension of the kind i and one of the kind j, in any order, and any
            others.
        n_points
            Halo points to update; at most as many as are allocated.

        Returns
        -------
        HaloUpdater
            To be waited for, once.

        Raises
        ------
        ValueError
            For less than 1 halo point, or more than the quantity has cells.
        IndexError
            For more halo points than are allocated.
        """
        quantities = _as_list(quantity)
        updater = self.get_scalar_halo_updater([_checked_spec(q, n_points) for q in quantities])
        updater.force_finalize_on_wait()
        updater.start(quantities)
        return updater

    def vector_halo_update(
        self, x_quantity: Union[Any, list[Any]], y_quantity: Union[Any, list[Any]], n_points: int
    ) -> None:
        """Updates the halos of a vector, or of several at once; see :meth:`start_vector_halo_update`."""
        self.start_vector_halo_update(x_quantity, y_quantity, n_points).wait()

    def start_vector_halo_update(
        self, x_quantity: Union[Any, list[Any]], y_quantity: Union[Any, list[Any]], n_points: int
    ) -> HaloUpdater:
        """Starts to update the halos of a vector, or of several at once: as :meth:`start_halo_update`, and across edges
        that turn, components are swapped and negated.

        Parameters
        ----------
        x_quantity, y_quantity
            The components along i and along j. Those of one vector have their dimensions in the same order.
        """
        x, y = _as_list(x_quantity), _as_list(y_quantity)
        updater = self.get_vector_halo_updater(
            [_checked_spec(q, n_points) for q in x], [_checked_spec(q, n_points) for q in y]
        )
        updater.force_finalize_on_wait()
        updater.start(x, y)
        return updater

    def _message_module(self, module: Any) -> Any:
        """The module whose memory messages of arrays of ``module`` lie in."""
        is_world = getattr(self.comm, "direct_exchange", None) is not None
        return np if self._force_cpu or is_world else module

    def get_scalar_halo_updater(self, specifications: list[QuantityHaloSpec]) -> HaloUpdater:
        """An updater for quantities of these memory layouts, to be used as often as the program likes; see
        :meth:`HaloUpdater.from_scalar_specifications`."""
        specifications = list(specifications)
        return HaloUpdater.from_scalar_specifications(
            self,
            self._message_module(_common_module(specifications)),
            specifications,
            self.boundaries.values(),
            self._get_halo_tag(),
            self.timer,
        )

    def get_vector_halo_updater(
        self, specifications_x: list[QuantityHaloSpec], specifications_y: list[QuantityHaloSpec]
    ) -> HaloUpdater:
        """An updater for vectors; see :meth:`HaloUpdater.from_vector_specifications`."""
        specs_x, specs_y = list(specifications_x), list(specifications_y)
        module = self._message_module(_common_module(specs_x + specs_y))
        return HaloUpdater.from_vector_specifications(
            self, module, specs_x, specs_y, self.boundaries.values(), self._get_halo_tag(), self.timer
        )

    def synchronize_vector_interfaces(self, x_quantity: Any, y_quantity: Any) -> None:
        """Makes the points that neighbours share agree; see :meth:`start_synchronize_vector_interfaces`."""
        self.start_synchronize_vector_interfaces(x_quantity, y_quantity).wait()

    def start_synchronize_vector_interfaces(self, x_quantity: Any, y_quantity: Any) -> HaloUpdateRequest:
        """Starts to make the points that neighbours share agree, of a vector on the edges of cells: each rank takes the
        values of its neighbours on its north edge (of the component along i) and on its east edge.

        Raises
        ------
        ValueError
            For components that do not lie on (i, j_interface) and (i_interface, j).
        """
        updater = VectorInterfaceHaloUpdater(self.comm, self.boundaries, self._force_cpu, self.timer)
        updater.communicator = self
        return cast(HaloUpdateRequest, updater.start_synchronize_vector_interfaces(x_quantity, y_quantity))

    # Scatter and gather.

    def scatter(self, send_quantity: Optional[Any] = None, recv_quantity: Optional[Any] = None) -> Any:
        """Gives every rank its part of a quantity of the root, rank 0.

        Parameters
        ----------
        send_quantity
            On the root: the quantity of the whole domain.
        recv_quantity
            Where to put this rank's part, in its compute domain; a new quantity without halo where nothing is said.

        Returns
        -------
        quantity
            ``recv_quantity``, or the new one. Points that neighbours share are on all of them.

        Raises
        ------
        RuntimeError
            On the root, without ``send_quantity``; and for a ``recv_quantity`` with another compute domain.
        """
        is_root = self.rank == constants.ROOT_RANK
        if is_root and send_quantity is None:
            raise HaloStateError("send_quantity is a required argument on the root rank")
        metadata = bcast_metadata(self.comm, send_quantity)
        with self._together("scatter"):
            extents = self._part_extents(metadata)
            mine = extents[self.rank]
            dims = tuple(dim for dim in metadata.dims if dim != constants.TILE_DIM)
            if recv_quantity is None:
                data = metadata.np.zeros(mine, dtype=metadata.dtype)
                recv_quantity = Quantity(data, dims, metadata.units, backend=metadata.backend)
            _check_part(recv_quantity, dims, mine, metadata.dtype)
        box = tuple(max(lengths) for lengths in zip(*extents))
        empty = self._message_module(metadata.np).empty
        with array_buffer(empty, box, metadata.dtype) as recv:
            if is_root:
                with array_buffer(empty, (len(extents), *box), metadata.dtype) as send:
                    whole = _compute_domain(send_quantity)
                    for rank, extent in enumerate(extents):
                        cut = self.partitioner.subtile_slice(rank, metadata.dims, metadata.extent, overlap=True)
                        safe_assign_array(send.array[rank][tuple(map(slice, extent))], whole[cut])
                    send.finalize_memory_transfer()
                    self.comm.Scatter(send.array, recv.array, root=constants.ROOT_RANK)
            else:
                self.comm.Scatter(None, recv.array, root=constants.ROOT_RANK)
            safe_assign_array(_compute_domain(recv_quantity), recv.array[tuple(map(slice, mine))])
        return recv_quantity

    def gather(self, send_quantity: Any, recv_quantity: Optional[Any] = None) -> Optional[Any]:
        """Puts the parts of all ranks together on the root, rank 0.

        Parameters
        ----------
        send_quantity
            This rank's part: its compute domain.
        recv_quantity
            On the root: where to put the whole domain; a new quantity without halo where nothing is said.

        Returns
        -------
        quantity or None
            On the root the quantity, elsewhere None. A point that neighbours share is that of the highest rank.

        Raises
        ------
        RuntimeError
            For parts that do not fit the domain.
        """
        is_root = self.rank == constants.ROOT_RANK
        metadata = _metadata_of(send_quantity)
        parts = self._all_extents(metadata)
        box = tuple(metadata.extent) if parts is None else tuple(max(lengths) for lengths in zip(*parts))
        with self._together("gather"):
            if is_root:
                recv_quantity, extents = self._gathered(metadata, parts, recv_quantity)
        mine = tuple(map(slice, metadata.extent))
        empty = self._message_module(metadata.np).empty
        with array_buffer(empty, box, metadata.dtype) as send:
            safe_assign_array(send.array[mine], _compute_domain(send_quantity))
            send.finalize_memory_transfer()
            if not is_root:
                self.comm.Gather(send.array, None, root=constants.ROOT_RANK)
                return None
            with array_buffer(empty, (len(extents), *box), metadata.dtype) as recv:
                self.comm.Gather(send.array, recv.array, root=constants.ROOT_RANK)
                target = _compute_domain(recv_quantity)
                whole = _metadata_of(recv_quantity)
                for rank, part in enumerate(extents):
                    cut = self.partitioner.subtile_slice(rank, whole.dims, whole.extent, overlap=True)
                    safe_assign_array(target[cut], recv.array[rank][tuple(map(slice, part))])
        return recv_quantity

    def _gathered(
        self, metadata: QuantityMetadata, parts: Optional[list[tuple[int, ...]]], quantity: Optional[Any]
    ) -> tuple[Any, list[tuple[int, ...]]]:
        """The quantity of the whole domain, or a new one, and the extents of its parts, which are those that ranks
        have."""
        if quantity is None:
            extent = self.partitioner.global_extent(metadata) if parts is None else self._sum_of(parts, metadata.dims)
            dims = self._global_dims(metadata.dims)
            data = metadata.np.zeros(extent, dtype=metadata.dtype)
            quantity = Quantity(data, dims, metadata.units, backend=metadata.backend)
        whole = _metadata_of(quantity)
        if whole.dtype != metadata.dtype:
            raise HaloMismatch(f"gather: the parts have elements {metadata.dtype}, the quantity {whole.dtype}")
        dims = tuple(dim for dim in whole.dims if dim != constants.TILE_DIM)
        if dims != metadata.dims:
            raise HaloMismatch(
                f"gather: the parts are on ({', '.join(metadata.dims)}), the quantity on ({', '.join(whole.dims)})"
            )
        extents = self._part_extents(whole)
        for rank, part in enumerate(parts or [tuple(metadata.extent)]):
            if part != extents[rank]:
                raise HaloMismatch(
                    f"gather: rank {rank} has extents {part}, but its part of {whole.extent} has {extents[rank]}"
                )
        return quantity, extents

    @contextlib.contextmanager
    def _together(self, what: str) -> Iterator[None]:
        """A block that all ranks pass, or none: where one of them raises, all do. (Ranks that cannot tell each other
        raise alone.)"""
        error: Optional[Error] = None
        try:
            yield
        except Error as mine:
            error = mine
        try:
            said = self.comm.allgather(None if error is None else f"{type(error).__name__}: {error}")
        except (NotImplementedError, AttributeError):
            said = []
        if error is not None:
            raise error
        for rank, text in enumerate(said):
            if text is not None:
                raise HaloMismatch(f"{what}: rank {rank} has refused it: {text}")

    def _all_extents(self, metadata: QuantityMetadata) -> Optional[list[tuple[int, ...]]]:
        """The extents of every rank's part; None where ranks cannot tell each other, who then have parts of one
        size. All ranks raise where their parts differ otherwise."""
        mine = (tuple(int(e) for e in metadata.extent), tuple(metadata.dims), str(np.dtype(metadata.dtype)))
        try:
            everyone = self.comm.allgather(mine)
        except (NotImplementedError, AttributeError):
            return None
        for rank, (_, dims, dtype) in enumerate(everyone):
            if (dims, dtype) != everyone[0][1:]:
                raise HaloMismatch(
                    f"gather: rank 0 has a part of {everyone[0][2]} on ({', '.join(everyone[0][1])}), and rank {rank} one of "
                    f"{dtype} on ({', '.join(dims)})"
                )
        return [tuple(extent) for extent, _, _ in everyone]

    def _sum_of(self, parts: Sequence[tuple[int, ...]], dims: Sequence[str]) -> tuple[int, ...]:
        """The extents of the whole domain, from those of all parts."""
        ny, nx = self.partitioner.layout
        out = []
        for axis, dim in enumerate(dims):
            shared = 1 if dim in constants.INTERFACE_DIMS else 0
            ranks = range(0, ny * nx, nx) if dim in constants.J_DIMS else range(nx) if dim in constants.I_DIMS else [0]
            out.append(sum(parts[rank][axis] - shared for rank in ranks) + shared)
        return tuple(out) if self.size == ny * nx else (self.size // (ny * nx), *out)

    def _global_dims(self, dims: Sequence[str]) -> tuple[str, ...]:
        return tuple(dims)

    def _part_extents(self, whole: QuantityMetadata) -> list[tuple[int, ...]]:
        return [self.partitioner.subtile_extent(whole, rank) for rank in range(self.size)]

    def scatter_state(
        self, send_state: Optional[Mapping[str, Any]] = None, recv_state: Optional[dict[str, Any]] = None
    ) -> dict[str, Any]:
        """Scatters every quantity of a dictionary, and broadcasts its entry ``"time"``.

        Parameters
        ----------
        send_state
            On the root: names with quantities.
        recv_state
            Where to put this rank's parts; a new dictionary where nothing is said.

        Returns
        -------
        dict
            ``recv_state``, or the new one.
        """
        is_root = self.rank == constants.ROOT_RANK
        if is_root and send_state is None:
            raise HaloStateError("send_state is a required argument on the root rank")
        out: dict[str, Any] = {} if recv_state is None else recv_state
        names = [name for name in send_state or () if name != "time"]
        names = self.comm.bcast(names if is_root else None, root=constants.ROOT_RANK)
        for name in names:
            out[name] = self.scatter(send_state[name] if send_state is not None else None, out.get(name))
        time = self.comm.bcast((send_state or {}).get("time"), root=constants.ROOT_RANK)
        if time is not None:
            out["time"] = time
        return out

    def gather_state(
        self,
        send_state: Mapping[str, Any],
        recv_state: Optional[dict[str, Any]] = None,
        transfer_type: Any = None,
    ) -> Optional[dict[str, Any]]:
        """Gathers every quantity of a dictionary on the root, rank 0, which keeps its own entry ``"time"``.

        Parameters
        ----------
        send_state
            Names with quantities, in the same order on all ranks.
        recv_state
            On the root: where to put them; a new dictionary where nothing is said.
        transfer_type
            A dtype in which values travel, if not their own.

        Returns
        -------
        dict or None
            On the root ``recv_state``, or the new one; elsewhere None.
        """
        is_root = self.rank == constants.ROOT_RANK
        out: dict[str, Any] = {} if recv_state is None else recv_state
        for name, quantity in send_state.items():
            if name == "time":
                if is_root:
                    out[name] = quantity
                continue
            sent = quantity
            if transfer_type is not None:
                m = _metadata_of(quantity)
                sent = Quantity(
                    data_of(quantity).astype(transfer_type),
                    m.dims,
                    m.units,
                    origin=m.origin,
                    extent=m.extent,
                    backend=m.backend,
                )
            received = out.get(name)
            if transfer_type is not None and received is not None and data_of(received).dtype != data_of(sent).dtype:
                narrow = self.gather(sent)
                if is_root and narrow is not None:
                    safe_assign_array(_compute_domain(received), narrow.data)
                continue
            got = self.gather(sent, received if is_root else None)
            if is_root:
                out[name] = got
        return out if is_root else None

    # Reductions.

    def all_reduce(self, input_quantity: Any, op: ReductionOperator, output_quantity: Optional[Any] = None) -> Any:
        """The whole arrays of all ranks, halos included, combined point by point, on all ranks.

        Returns
        -------
        quantity
            ``output_quantity``, which gets the dims, units, origin and extent of the input, or a new one like the input.

        Raises
        ------
        TypeError
            For an output of another shape or dtype.
        """
        m, data = _metadata_of(input_quantity), data_of(input_quantity)
        m.n_halo = getattr(getattr(input_quantity, "metadata", None), "n_halo", 0)
        if output_quantity is not None:
            out = data_of(output_quantity)
            if tuple(out.shape) != tuple(data.shape) or out.dtype != data.dtype:
                raise HaloTypeError(
                    f"all_reduce: an output of {out.dtype}{list(out.shape)} for an input of {data.dtype}{list(data.shape)}"
                )
        total = self.comm.allreduce(to_numpy(data).copy(), op)
        if output_quantity is None:
            output_quantity = Quantity(
                m.np.zeros(data.shape, dtype=m.dtype),
                m.dims,
                m.units,
                backend=m.backend,
                origin=m.origin,
                extent=m.extent,
                number_of_halo_points=m.n_halo,
            )
        else:
            m.duplicate_metadata(output_quantity.metadata)
        safe_assign_array(data_of(output_quantity), total)
        return output_quantity

    def all_reduce_per_element(self, input_quantity: Any, output_quantity: Any, op: ReductionOperator) -> None:
        """The whole arrays of all ranks, halos included, combined point by point, in another quantity."""
        self.comm.Allreduce(data_of(input_quantity), data_of(output_quantity), op)

    def all_reduce_per_element_in_place(self, quantity: Any, op: ReductionOperator) -> None:
        """The whole arrays of all ranks, halos included, combined point by point, in these arrays."""
        self.comm.Allreduce_inplace(data_of(quantity), op)


def _checked_spec(quantity: Any, n_points: int) -> QuantityHaloSpec:
    try:
        n_points = operator.index(n_points)
    except TypeError:
        raise HaloTypeError(f"{n_points!r} halo points: an int is needed") from None
    if n_points <= 0:
        raise HaloValueError(f"cannot perform a halo update on zero halo points: {n_points} were asked for")
    return halo_spec_of(quantity, n_points)


def _compute_domain(quantity: Any) -> Any:
    return data_of(quantity)[tuple(slice(o, o + e) for o, e in zip(quantity.origin, quantity.extent))]


def _metadata_of(quantity: Any) -> QuantityMetadata:
    return QuantityMetadata(
        origin=tuple(quantity.origin),
        extent=tuple(quantity.extent),
        n_halo=0,
        dims=tuple(quantity.dims),
        units=quantity.units,
        data_type=type(data_of(quantity)),
        dtype=data_of(quantity).dtype,
        backend=getattr(quantity, "backend", None),
    )


def _check_part(quantity: Any, dims: Sequence[str], extent: Sequence[int], dtype: Any) -> None:
    if tuple(quantity.dims) != tuple(dims) or tuple(quantity.extent) != tuple(extent):
        raise HaloMismatch(
            f"the quantity is on ({', '.join(quantity.dims)}) with extents {tuple(quantity.extent)}, its part on "
            f"({', '.join(dims)}) with extents {tuple(extent)}"
        )
    if data_of(quantity).dtype != dtype:
        raise HaloMismatch(f"the quantity has elements {data_of(quantity).dtype}, the values {dtype}")


def bcast_metadata_list(comm: Any, quantity_list: Optional[Sequence[Any]]) -> list[QuantityMetadata]:
    """Collective: the metadata of quantities of the root, rank 0."""
    mine = None if quantity_list is None else [_metadata_of(quantity) for quantity in quantity_list]
    return cast("list[QuantityMetadata]", comm.bcast(mine, root=constants.ROOT_RANK))


def bcast_metadata(comm: Any, array: Optional[Any]) -> QuantityMetadata:
    """Collective: the metadata of a quantity of the root, rank 0."""
    return bcast_metadata_list(comm, None if array is None else [array])[0]


class TileCommunicator(Communicator):
    """The ranks of one tile that is periodic in both directions, of any layout.

    Examples
    --------
    Four ranks in threads update one halo point of a field that holds the number of its rank:

    >>> import numpy as np
    >>> import tranship as ts
    >>> from tranship.ndsl import Quantity, TileCommunicator
    >>> def main(world):
    ...     ranks = TileCommunicator.from_layout(world, (2, 2))
    ...     data = np.full((5, 5), world.rank)
    ...     ranks.halo_update(Quantity(data, ["j", "i"], "", origin=(1, 1), extent=(3, 3)), 1)
    ...     return data[0, 0], data[0, 1], data[1, 0]
    >>> [tuple(map(int, corner)) for corner in ts.launch(4, main)]
    [(3, 2, 1), (2, 3, 0), (1, 0, 3), (0, 1, 2)]
    """

    partitioner: TilePartitioner

    def __init__(
        self, comm: Any, partitioner: TilePartitioner, force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> None:
        super().__init__(comm, partitioner, force_cpu, timer)

    @classmethod
    def from_layout(
        cls: type[C], comm: Any, layout: tuple[int, int], force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> C:
        """Makes a communicator for ``layout`` ranks along j and along i."""
        return cls(comm, TilePartitioner(layout), force_cpu, timer)

    @property
    def tile(self) -> TileCommunicator:
        """This communicator."""
        return self


class _PartOfCube(TileCommunicator):
    """The ranks of one tile of a cube, some of which a :class:`LocalComm` may not know yet."""

    def _check_size(self) -> None:
        pass


class CubedSphereCommunicator(Communicator):
    """The ranks of the six tiles of a cube.

    Examples
    --------
    >>> import numpy as np
    >>> import tranship as ts
    >>> from tranship.ndsl import CubedSphereCommunicator, Quantity
    >>> def main(world):
    ...     ranks = CubedSphereCommunicator.from_layout(world, (1, 1))
    ...     data = np.full((6, 6), world.rank)
    ...     ranks.halo_update(Quantity(data, ["j", "i"], "", origin=(1, 1), extent=(4, 4)), 1)
    ...     return data[2, 0], data[2, 5], data[0, 2], data[5, 2]  # west, east, south, north
    >>> tuple(map(int, ts.launch(6, main)[0]))
    (4, 1, 5, 2)
    """

    partitioner: CubedSpherePartitioner

    def __init__(
        self, comm: Any, partitioner: CubedSpherePartitioner, force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> None:
        if not isinstance(partitioner, CubedSpherePartitioner):
            raise HaloTypeError(f"a CubedSpherePartitioner is needed, not a {type(partitioner).__name__}")
        super().__init__(comm, partitioner, force_cpu, timer)
        self._tile_communicator: Optional[TileCommunicator] = None

    @classmethod
    def from_layout(
        cls: type[C], comm: Any, layout: tuple[int, int], force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> C:
        """Makes a communicator for ``layout`` ranks along j and along i of each tile."""
        return cls(comm, CubedSpherePartitioner(TilePartitioner(layout)), force_cpu, timer)

    @property
    def tile(self) -> TileCommunicator:
        """The ranks of this rank's tile. Collective when it is first asked for."""
        if self._tile_communicator is None:
            ranks = self.comm.Split(color=self.partitioner.tile_index(self.rank), key=self.rank)
            self._tile_communicator = _PartOfCube(ranks, self.partitioner.tile, self._force_cpu, self.timer)
        return self._tile_communicator

    def _global_dims(self, dims: Sequence[str]) -> tuple[str, ...]:
        return (constants.TILE_DIM, *dims)
