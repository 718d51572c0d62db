"""Halo updates: what ranks exchange, as often as a program likes.

An updater is made once for the memory layouts of its quantities, and started with any quantities of these layouts. Over
the ranks of MPI, and over any other communicator with ``Isend`` and ``Irecv``, it sends one message to each neighbour
and one tag tells updaters apart; the bytes are those of :mod:`~tranship.ndsl.halo.data_transformer`. Over a
:class:`tranship.World` they are packed into memory of their receivers.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Protocol

import numpy as np

from ..._amounts import amount
from ... import _core
from ..._errors import Error
from .. import constants
from .._errors import HaloMismatch, HaloStateError, HaloTypeError, HaloValueError
from ..buffer import Buffer
from ..comm._boundary_utils import STEPS, cached_boundary_slice
from ..comm.boundary import Boundary, SimpleBoundary
from ..performance.timer import NullTimer, Timer
from ..quantity import QuantityHaloSpec
from ..quantity.quantity import halo_spec_of
from ..types import AsyncRequest, QuantityLike
from ..utils import data_of, device_synchronize, module_of_type
from ._packing import Plan, core_knows, core_packer, core_spec
from .data_transformer import (
    INDICES_CACHE,
    HaloDataTransformer,
    HaloDataTransformerCPU,
    HaloExchangeSpec,
    check_components,
    check_specification,
    common_dtype,
)
from .rotate import horizontal_axes, require_sign

__all__ = ["TIMER_HALO_EX_KEY", "HaloUpdateRequest", "HaloUpdater", "VectorInterfaceHaloUpdater", "on_c_grid"]

TIMER_HALO_EX_KEY = "halo_exchange_global"
"""The clock that runs during ``start`` and during ``wait``."""


class _Direct(Protocol):
    """An exchange of the ranks of a World, which takes the place of messages."""

    def start(self, x: Sequence[Any], y: Optional[Sequence[Any]]) -> None: ...
    def wait(self) -> None: ...
    def finalize(self) -> None: ...


class HaloUpdater:
    """Updates the halos of quantities whose memory layouts were given when it was made.

    :meth:`start`, other work, :meth:`wait`; or :meth:`update`. Halos get what their owners held at :meth:`start`,
    whatever is written in between; what is written to halo points that are updated is lost. Several updaters may be
    between the two at once. An updater belongs to the thread of its rank.

    Made by :meth:`from_scalar_specifications`, :meth:`from_vector_specifications`, or a communicator's
    ``get_scalar_halo_updater`` and ``get_vector_halo_updater``.

    Parameters
    ----------
    comm
        The :class:`~tranship.ndsl.comm.communicator.Communicator`.
    tag
        Of its messages.
    transformers
        By the rank of each neighbour, what is exchanged with it.
    timer
        Its clocks are ``halo_exchange_global``, ``Irecv``, ``pack``, ``Isend``, ``wait`` and ``unpack``.
    """

    def __init__(self, comm: Any, tag: int, transformers: dict[int, HaloDataTransformer], timer: Timer) -> None:
        self._comm = comm
        self._tag = tag
        self._transformers = transformers
        self._timer = timer
        self._direct: Optional[_Direct] = None
        self._update: tuple[int, ...] = (tag,)  # what other ranks call it
        self._n_x = 0
        self._n_y: Optional[int] = None
        self._finalize_on_wait = False
        self._finalized = False
        self._sends: list[tuple[int, AsyncRequest]] = []
        self._receives: list[tuple[int, AsyncRequest]] = []
        self._in_flight: Optional[tuple[Sequence[Any], Optional[Sequence[Any]]]] = None

    def force_finalize_on_wait(self) -> None:
        """The buffers go back to the pool at the end of the next :meth:`wait`; after that the updater cannot be
        used."""
        self._finalize_on_wait = True

    def __del__(self) -> None:
        if getattr(self, "_in_flight", None) is not None:
            # Peers still write into these buffers: they must not go back to the pool.
            for transformer in self._transformers.values():
                transformer._pack_buffer = transformer._unpack_buffer = None
            warnings.warn(
                f"a halo updater (tag {self._tag}) is deleted between its start() and its wait()", ResourceWarning, 2
            )

    @classmethod
    def from_scalar_specifications(
        cls,
        comm: Any,
        numpy_like_module: Any,
        specifications: Iterable[QuantityHaloSpec],
        boundaries: Iterable[Boundary],
        tag: int,
        optional_timer: Optional[Timer] = None,
    ) -> HaloUpdater:
        """An updater of scalars.

        Parameters
        ----------
        comm
            The :class:`~tranship.ndsl.comm.communicator.Communicator`.
        numpy_like_module
            Of the messages: that of the arrays, or NumPy for messages in the memory of the host.
        specifications
            The memory layout of each quantity.
        boundaries
            What to exchange across; a communicator's ``boundaries.values()`` is all there is.
        tag
            Of the messages; the same on all ranks, and another one for each updater that may be in flight.
        optional_timer
            Where to count time.

        Raises
        ------
        RuntimeError
            Without a specification.
        ValueError
            For 0 halo points, and for quantities that do not fit beyond an edge that turns.
        IndexError
            For more halo points than are allocated.
        NotImplementedError
            For more than one dtype.
        """
        specs = list(specifications)
        if not specs:
            raise HaloStateError("Cannot create updater with specifications list: it is empty")
        return cls._make(comm, numpy_like_module, specs, None, list(boundaries), tag, optional_timer)

    @classmethod
    def from_vector_specifications(
        cls,
        comm: Any,
        numpy_like_module: Any,
        specifications_x: Iterable[QuantityHaloSpec],
        specifications_y: Iterable[QuantityHaloSpec],
        boundaries: Iterable[Boundary],
        tag: int,
        optional_timer: Optional[Timer] = None,
    ) -> HaloUpdater:
        """An updater of vectors, each of a quantity along i and one along j; otherwise as
        :meth:`from_scalar_specifications`. Raises ``RuntimeError`` also for lists that differ in length."""
        specs_x, specs_y = list(specifications_x), list(specifications_y)
        if not specs_x and not specs_y:
            raise HaloStateError("Cannot create updater with specifications list: it is empty")
        if len(specs_x) != len(specs_y):
            raise HaloStateError(
                f"a vector has two components, and the lists have {len(specs_x)} and {len(specs_y)} specifications"
            )
        return cls._make(comm, numpy_like_module, specs_x, specs_y, list(boundaries), tag, optional_timer)

    @classmethod
    def _make(
        cls,
        comm: Any,
        module: Any,
        specs_x: list[QuantityHaloSpec],
        specs_y: Optional[list[QuantityHaloSpec]],
        boundaries: list[Any],
        tag: int,
        timer: Optional[Timer],
    ) -> HaloUpdater:
        make_direct = getattr(getattr(comm, "comm", None), "direct_exchange", None)
        direct = None
        next_update = getattr(comm, "next_update", None)
        update = (tag,) if next_update is None else next_update(tag)
        transformers: dict[int, HaloDataTransformer] = {}
        try:
            plans = _plans(comm, module, specs_x, specs_y, boundaries, make_direct is None)
            if make_direct is not None:
                direct = make_direct(comm, module, specs_x, specs_y, boundaries)
            elif plans is not None:
                for plan in plans:
                    transformers[plan.rank] = HaloDataTransformerCPU.of_plan(plan, specs_x, specs_y)
            else:
                for rank, pairs in _by_neighbor(boundaries).items():
                    transformers[rank] = HaloDataTransformer.get(module, *_exchanges(pairs, specs_x, specs_y))
        except Error as error:
            refuse = getattr(getattr(comm, "comm", None), "refuse", None)
            if refuse is not None:
                refuse({b.to_rank for b in boundaries}, update, error)
            raise
        out = cls(comm, tag, transformers, timer or NullTimer())
        out._direct = direct
        out._update = update
        out._n_x = len(specs_x)
        out._n_y = None if specs_y is None else len(specs_y)
        return out

    def update(
        self, quantities_x: Sequence[QuantityLike], quantities_y: Optional[Sequence[QuantityLike]] = None
    ) -> None:
        """:meth:`start` and :meth:`wait`."""
        self.start(quantities_x, quantities_y)
        self.wait()

    def start(
        self, quantities_x: Sequence[QuantityLike], quantities_y: Optional[Sequence[QuantityLike]] = None
    ) -> None:
        """Sends what neighbours need of these quantities, and receives for their halos. Does not wait for neighbours.

        What is sent is packed before it returns, and halos are written by :meth:`wait` alone.

        Raises
        ------
        RuntimeError
            When the updater was started and not waited for; after a one-shot update; and for quantities that do not fit
            their specifications: nothing was sent then.
        """
        if self._in_flight is not None:
            raise HaloStateError(
                "Previous exchange hasn't been properly finished. E.g. previous start() call didn't have a wait() call."
            )
        _check_is_list(quantities_x)
        if quantities_y is not None:
            _check_is_list(quantities_y)
        if self._finalized:
            raise HaloStateError("Recv buffer can't be retrieved before allocate(): this updater was for one update only")
        self._check_counts(quantities_x, quantities_y)
        device_synchronize()
        timer = self._timer
        with timer.clock(TIMER_HALO_EX_KEY):
            if self._direct is not None:
                for key in ("Irecv", "pack"):
                    with timer.clock(key):
                        pass  # both are parts of the exchange
                with timer.clock("Isend"):
                    self._direct.start(quantities_x, quantities_y)
                self._in_flight = (quantities_x, quantities_y)
                return
            repeated = {
                rank: self._repeated(transformer, quantities_x, quantities_y)
                for rank, transformer in self._transformers.items()
            }
            for rank, transformer in self._transformers.items():
                transformer.check(*repeated[rank])
            comm = self._comm.comm
            self._in_flight = (quantities_x, quantities_y)
            with timer.clock("Irecv"):
                for rank, transformer in self._transformers.items():
                    request = comm.Irecv(transformer.get_unpack_buffer().array, source=rank, tag=self._tag)
                    self._receives.append((rank, request))
            with timer.clock("pack"):
                for rank, transformer in self._transformers.items():
                    transformer.async_pack(*repeated[rank])
            with timer.clock("Isend"):
                for rank, transformer in self._transformers.items():
                    request = comm.Isend(transformer.get_pack_buffer().array, dest=rank, tag=self._tag)
                    self._sends.append((rank, request))

    def wait(self) -> None:
        """Returns when the halos of this rank are filled and its cells have been sent. Messages are unpacked in the
        order in which they arrive, where the communicator can tell.

        Raises
        ------
        RuntimeError
            When the updater was not started.
        TimeoutError
            When a message does not come in time, over MPI and over a World.
        """
        if self._in_flight is None:
            raise HaloStateError('Halo update "wait" call before "start"')
        x, y = self._in_flight
        timer = self._timer
        with timer.clock(TIMER_HALO_EX_KEY):
            if self._direct is not None:
                with timer.clock("wait"):
                    self._direct.wait()
                with timer.clock("unpack"):
                    pass
            else:
                while self._receives:
                    with timer.clock("wait"):
                        rank = self._wait_for_one(self._receives, "a halo of")
                    with timer.clock("unpack"):
                        transformer = self._transformers[rank]
                        transformer.async_unpack(*self._repeated(transformer, x, y))
                with timer.clock("wait"):
                    while self._sends:
                        self._wait_for_one(self._sends, "the receipt of a halo by")
                with timer.clock("unpack"):
                    for transformer in self._transformers.values():
                        transformer.synchronize()
            self._in_flight = None
            if self._finalize_on_wait:
                self._finalized = True
                if self._direct is not None:
                    self._direct.finalize()
                for transformer in self._transformers.values():
                    transformer.finalize()

    def _wait_for_one(self, pending: list[tuple[int, Any]], what: str) -> int:
        wait_any = getattr(self._comm.comm, "wait_any", None)
        if wait_any is None:
            index = 0
            pending[0][1].wait()
        else:
            ranks = ", ".join(str(rank) for rank, _ in pending)
            what = f"{what} rank {ranks} (tag {self._tag})"
            index = wait_any([request for _, request in pending], what, self._update)
        return pending.pop(index)[0]

    def _check_counts(self, x: Sequence[Any], y: Optional[Sequence[Any]]) -> None:
        if not self._n_x:
            return
        if (len(x), None if y is None else len(y)) != (self._n_x, self._n_y):
            said = f"x: {self._n_x}" + ("" if self._n_y is None else f", y: {self._n_y}")
            given = f"x: {len(x)}" + ("" if y is None else f", y: {len(y)}")
            raise HaloMismatch(f"Quantities count ({given}) is different that specifications count ({said})")

    def _repeated(
        self, transformer: HaloDataTransformer, x: Sequence[Any], y: Optional[Sequence[Any]]
    ) -> tuple[list[Any], Optional[list[Any]]]:
        """The quantities once for each boundary that is shared with a neighbour."""
        times = len(transformer._specs_x) // max(1, len(x))
        return list(x) * times, None if y is None else list(y) * times


def _check_is_list(quantities: Any) -> None:
    if not isinstance(quantities, (list, tuple)):
        raise HaloTypeError(f"a list of quantities is needed, not a {type(quantities).__name__}")


_OPPOSITE = {
    constants.NORTH: constants.SOUTH,
    constants.SOUTH: constants.NORTH,
    constants.WEST: constants.EAST,
    constants.EAST: constants.WEST,
    constants.NORTHWEST: constants.SOUTHEAST,
    constants.SOUTHEAST: constants.NORTHWEST,
    constants.NORTHEAST: constants.SOUTHWEST,
    constants.SOUTHWEST: constants.NORTHEAST,
}


def _by_neighbor(boundaries: list[Any]) -> dict[int, list[tuple[Any, Any]]]:
    """By neighbour, the boundaries in the order in which they are packed, each with the one that is unpacked in its
    place.

    They are the same one, except where several are shared with one neighbour, as on a periodic tile of one or two
    ranks: its message has them in its own order, and what it sends across its north arrives at this rank's south.
    """
    shared: dict[int, list[Any]] = {}
    for boundary in boundaries:
        shared.setdefault(boundary.to_rank, []).append(boundary)
    out = {}
    for rank, mine in shared.items():
        if len(mine) == 1:
            out[rank] = [(mine[0], mine[0])]
            continue
        if any(boundary.n_clockwise_rotations % 4 for boundary in mine):
            raise HaloValueError(f"several boundaries with rank {rank} of which one turns: their order is not known there")
        by_type = {boundary.boundary_type: boundary for boundary in mine}
        order = [kind for kind in constants.BOUNDARY_TYPES if _OPPOSITE[kind] in by_type]
        mine = [by_type[kind] for kind in constants.BOUNDARY_TYPES if kind in by_type]
        out[rank] = list(zip(mine, (by_type[_OPPOSITE[kind]] for kind in order)))
    return out


def _check(
    comm: Any,
    specs_x: list[QuantityHaloSpec],
    specs_y: Optional[list[QuantityHaloSpec]],
    boundaries: Sequence[Any],
) -> None:
    """Raises what is wrong with the specifications of an update."""
    for spec in specs_x + (specs_y or []):
        if isinstance(spec.n_points, (int, np.integer)) and spec.n_points <= 0:
            raise HaloValueError(f"cannot perform a halo update on zero halo points: {spec.n_points} were asked for")
        check_specification(spec)
        _check_room(spec)
    common_dtype(specs_x + (specs_y or []))
    turns = sum(boundary.n_clockwise_rotations % 4 for boundary in boundaries)
    for spec_x, spec_y in zip(specs_x, specs_y or ()):
        check_components(spec_x, spec_y, turns)
    for n, spec in enumerate(specs_x):
        if specs_y is not None and spec.n_points != specs_y[n].n_points:
            raise HaloValueError(
                f"vector {n}: {amount(spec.n_points, 'halo point')} along i and {specs_y[n].n_points} along j"
            )
    if any(boundary.n_clockwise_rotations % 2 for boundary in boundaries):
        for n, spec in enumerate(specs_x):
            check_turn(spec, spec if specs_y is None else specs_y[n], comm)


_PLANS_KEPT = 64
_plans_lock = threading.RLock()  # as that of buffers


def _plans(
    comm: Any,
    module: Any,
    specs_x: list[QuantityHaloSpec],
    specs_y: Optional[list[QuantityHaloSpec]],
    boundaries: list[Any],
    are_wanted: bool,
) -> Optional[list[Plan]]:
    """Checks an update, and returns its plans: one for each neighbour. None for arrays that the library does not pack.

    Plans, which have passed all checks, are kept under everything that they depend on: an update of the same memory
    layouts takes them again.
    """
    is_known = module is np and all(spec.numpy_module is np for spec in (*specs_x, *(specs_y or ())))
    if not are_wanted or not is_known or any(type(boundary) is not SimpleBoundary for boundary in boundaries):
        _check(comm, specs_x, specs_y, boundaries)
        return None
    keys_x = tuple([_key_of(spec) for spec in specs_x])
    keys_y = None if specs_y is None else tuple([_key_of(spec) for spec in specs_y])
    key = (
        getattr(comm, "has_square_part", True),
        keys_x,
        keys_y,
        tuple([(b.to_rank, b.boundary_type, b.n_clockwise_rotations) for b in boundaries]),
    )
    kept = INDICES_CACHE.get(key)
    if kept is not None:
        return kept
    # Most quantities of a model have one layout: each is checked once.
    of_key = dict(zip((*keys_x, *(keys_y or ())), (*specs_x, *(specs_y or ()))))
    few = dict.fromkeys(zip(keys_x, keys_y or keys_x))
    try:
        few_y = None if specs_y is None else [of_key[y] for _, y in few]
        _check(comm, [of_key[x] for x, _ in few], few_y, boundaries)
    except Error:
        _check(comm, specs_x, specs_y, boundaries)  # whose message numbers them all
        raise
    if not core_knows(of_key.values()):
        return None
    core = {of: core_spec(spec) for of, spec in of_key.items()}
    handles = [core[x] for x in keys_x], [core[y] for y in keys_y or ()]
    plans = []
    for rank, pairs in _by_neighbor(boundaries).items():
        sent, received = pairs[0]
        if len(pairs) == 1:
            where = (STEPS[sent.boundary_type], sent.n_clockwise_rotations % 4)
            packer = _core.HaloTransformer.at_boundaries(*handles, [where])
        else:
            found = core_packer(*_exchanges(pairs, specs_x, specs_y))
            if found is None:
                return None
            packer = found
        plans.append(Plan(rank, len(pairs), packer, np.dtype(specs_x[0].dtype)))
    with _plans_lock:
        while len(INDICES_CACHE) >= _PLANS_KEPT:
            INDICES_CACHE.pop(next(iter(INDICES_CACHE)))
        INDICES_CACHE[key] = plans
    return plans


def _key_of(spec: QuantityHaloSpec) -> tuple[Any, ...]:
    """All that a plan depends on."""
    return (
        spec.n_points,
        tuple(spec.strides),
        spec.itemsize,
        tuple(spec.shape),
        tuple(spec.origin),
        tuple(spec.extent),
        tuple(spec.dims),
        spec.dtype,
    )


def _exchanges(
    pairs: list[tuple[Any, Any]], specs_x: list[QuantityHaloSpec], specs_y: Optional[list[QuantityHaloSpec]]
) -> tuple[list[HaloExchangeSpec], Optional[list[HaloExchangeSpec]]]:
    """The blocks that are exchanged with one neighbour."""
    x = [_exchange(spec, sent, received) for sent, received in pairs for spec in specs_x]
    if specs_y is None:
        return x, None
    return x, [_exchange(spec, sent, received) for sent, received in pairs for spec in specs_y]


def _exchange(spec: QuantityHaloSpec, sent: Any, received: Any) -> HaloExchangeSpec:
    return HaloExchangeSpec(spec, sent.send_slice(spec), sent.n_clockwise_rotations, received.recv_slice(spec))


def _check_room(spec: QuantityHaloSpec) -> None:
    """Raises ``IndexError`` for more halo points than are allocated."""
    memory = (tuple(spec.dims), tuple(spec.origin), tuple(spec.extent), tuple(spec.shape))
    for kind in constants.EDGE_BOUNDARY_TYPES:
        cached_boundary_slice(*memory, kind, spec.n_points, False)


def check_turn(x: QuantityHaloSpec, y: QuantityHaloSpec, communicator: Any) -> None:
    """Across an edge that turns, a row of one component is a column of the other one: they must be equally long. Parts
    of unequal sizes need not be square, but those at the corners of a tile and those inside of it are."""
    y_axis, x_axis = horizontal_axes(x.dims)
    y_axis_of_y, x_axis_of_y = horizontal_axes(y.dims)
    if min(y_axis, x_axis, y_axis_of_y, x_axis_of_y) < 0:
        return  # refused with its own message by the descriptors
    is_square = getattr(communicator, "has_square_part", True)
    for axis, axis_of_y in ((x_axis, y_axis_of_y), (y_axis, x_axis_of_y)):
        along_i, along_j = int(x.extent[axis]), int(y.extent[axis_of_y])
        shared_i, shared_j = (dim in constants.INTERFACE_DIMS for dim in (x.dims[axis], y.dims[axis_of_y]))
        if shared_i != shared_j or (is_square and along_i != along_j):
            what = "a scalar" if x is y else "components of a vector"
            raise HaloValueError(
                f"{what} on ({', '.join(x.dims)}) of extents {tuple(x.extent)}"
                + ("" if x is y else f" and ({', '.join(y.dims)}) of extents {tuple(y.extent)}")
                + f": across an edge that turns, {amount(along_i, 'point')} meet {along_j}"
            )


_SendData = tuple[AsyncRequest, Buffer]
_RecvData = tuple[AsyncRequest, Buffer, Any]


class HaloUpdateRequest:
    """Messages on their way, with their buffers and where they go.

    Parameters
    ----------
    send_data
        Requests with their buffers.
    recv_data
        Requests with their buffers and the arrays that they are copied to.
    timer
        Its clocks are ``wait`` and ``unpack``.
    """

    def __init__(
        self, send_data: list[_SendData], recv_data: list[_RecvData], timer: Optional[Timer] = None
    ) -> None:
        self._send_data = send_data
        self._recv_data = recv_data
        self._timer = timer or NullTimer()

    def wait(self) -> None:
        """Returns when all was sent and what was received lies in its arrays. Again, it does nothing."""
        with self._timer.clock("wait"):
            for request, _ in self._send_data:
                request.wait()
        for request, buffer, array in self._recv_data:
            with self._timer.clock("wait"):
                request.wait()
            with self._timer.clock("unpack"):
                buffer.assign_to(array)
        for sent in self._send_data:
            Buffer.push_to_cache(sent[1])
        for received in self._recv_data:
            Buffer.push_to_cache(received[1])
        self._send_data, self._recv_data = [], []


def on_c_grid(x_quantity: QuantityLike, y_quantity: QuantityLike) -> bool:
    """Returns True when the components of a vector lie on the edges that NDSL synchronizes: the one along i on the
    interfaces along j, and the one along j on those along i."""
    x, y = set(x_quantity.dims), set(y_quantity.dims)
    return (
        constants.I_DIM in x
        and constants.J_INTERFACE_DIM in x
        and constants.I_INTERFACE_DIM in y
        and constants.J_DIM in y
    )


def check_c_grid(x_quantity: Any, y_quantity: Any) -> None:
    """Raises ``ValueError`` for components that cannot be synchronized."""
    if not on_c_grid(x_quantity, y_quantity):
        raise HaloValueError(
            "vector must be defined on Arakawa C-grid: the component along i on (i, j_interface) and the one along j on "
            f"(i_interface, j), not on ({', '.join(x_quantity.dims)}) and ({', '.join(y_quantity.dims)})"
        )
    centres = {constants.J_INTERFACE_DIM: constants.J_DIM, constants.I_INTERFACE_DIM: constants.I_DIM}
    if [centres.get(dim, dim) for dim in x_quantity.dims] != [centres.get(dim, dim) for dim in y_quantity.dims]:
        raise HaloMismatch(
            f"the components of a vector have dims {', '.join(x_quantity.dims)} and "
            f"{', '.join(y_quantity.dims)}: their order must be the same"
        )
    if data_of(x_quantity).dtype != data_of(y_quantity).dtype:
        raise HaloMismatch(
            f"the components of a vector have elements {data_of(x_quantity).dtype} and {data_of(y_quantity).dtype}"
        )
    require_sign(data_of(x_quantity).dtype)


class VectorInterfaceHaloUpdater:
    """Makes the points that neighbours share agree, of vectors on the edges of cells.

    Each rank keeps its own values on its south and west edges and takes those of its neighbours on its north and east
    edges. Across an edge that turns, the line is reversed along the edge and negated.

    Parameters
    ----------
    comm
        With ``Isend`` and ``Irecv``.
    boundaries
        By type, what lies at the edges.
    force_cpu
        Whether messages lie in the memory of the host.
    timer
        Its clocks are ``pack``, ``Isend``, ``Irecv``, ``wait`` and ``unpack``.
    """

    def __init__(
        self, comm: Any, boundaries: Mapping[int, Boundary], force_cpu: bool = False, timer: Optional[Timer] = None
    ) -> None:
        self.comm = comm
        self.boundaries = boundaries
        self.timer = timer or NullTimer()
        self._force_cpu = force_cpu
        self.communicator: Any = None

    def _get_halo_tag(self) -> int:
        return 1

    def start_synchronize_vector_interfaces(self, x_quantity: QuantityLike, y_quantity: QuantityLike) -> Any:
        """Starts to take the values of neighbours on the north edge of ``x_quantity`` and the east edge of
        ``y_quantity``.

        Returns
        -------
        HaloUpdateRequest
            To be waited for.

        Raises
        ------
        ValueError
            For components that do not lie on (i, j_interface) and (i_interface, j), which may have more dimensions, and
            whose order must be the same.
        """
        check_c_grid(x_quantity, y_quantity)
        turning = (constants.SOUTH, constants.WEST)
        if any(self.boundaries[kind].n_clockwise_rotations % 4 for kind in turning if kind in self.boundaries):
            check_turn(halo_spec_of(x_quantity, 1), halo_spec_of(y_quantity, 1), self.communicator)
        direct = getattr(self.comm, "direct_synchronization", None)
        if direct is not None:
            request = direct(self, x_quantity, y_quantity)
            if request is not None:
                return request
        tag = self._get_halo_tag()
        recv_data = []
        with self.timer.clock("Irecv"):
            for quantity, kind in ((x_quantity, constants.NORTH), (y_quantity, constants.EAST)):
                if kind in self.boundaries:
                    line = _line(quantity, kind)
                    buffer = Buffer.pop_from_cache(self._module(line).empty, line.shape, line.dtype)
                    request = self.comm.Irecv(buffer.array, source=self.boundaries[kind].to_rank, tag=tag)
                    recv_data.append((request, buffer, line))
        send_data = []
        for quantity, kind in ((x_quantity, constants.SOUTH), (y_quantity, constants.WEST)):
            if kind in self.boundaries:
                boundary = self.boundaries[kind]
                line = _line(quantity, kind)
                with self.timer.clock("pack"):
                    dtype = line.dtype  # NumPy negates into this machine's byte order
                    if boundary.n_clockwise_rotations % 4:
                        line = -_turned_line(line, quantity, kind)
                    buffer = Buffer.pop_from_cache(self._module(line).empty, line.shape, dtype)
                    buffer.assign_from(line)
                    buffer.finalize_memory_transfer()
                with self.timer.clock("Isend"):
                    request = self.comm.Isend(buffer.array, dest=boundary.to_rank, tag=tag)
                send_data.append((request, buffer))
        return HaloUpdateRequest(send_data, recv_data, self.timer)

    def _module(self, array: Any) -> Any:
        return np if self._force_cpu else module_of_type(type(array))


def _line(quantity: Any, kind: int) -> Any:
    """The points of the compute domain on one edge of it, without the dimension across."""
    index: list[Any] = []
    for dim, o, e in zip(quantity.dims, quantity.origin, quantity.extent):
        if dim in (constants.J_DIMS if kind in (constants.NORTH, constants.SOUTH) else constants.I_DIMS):
            index.append(o if kind in (constants.SOUTH, constants.WEST) else o + e - 1)
        else:
            index.append(slice(o, o + e))
    return data_of(quantity)[tuple(index)]


def _turned_line(line: Any, quantity: Any, kind: int) -> Any:
    """The points of one edge, reversed along it, with their dimensions in the order that the line of the other
    component has: where j and i are not beside each other, the dimensions between them pass."""
    across, along = constants.J_DIMS, constants.I_DIMS
    if kind in (constants.EAST, constants.WEST):
        across, along = along, across
    mine = [dim for dim in quantity.dims if dim not in across]
    along_axis = next(n for n, dim in enumerate(mine) if dim in along)
    order = [along_axis if dim in across else mine.index(dim) for dim in quantity.dims if dim not in along]
    flips = tuple(slice(None, None, -1) if dim in constants.HORIZONTAL_DIMS else slice(None) for dim in mine)
    return line[flips].transpose(order)
