"""From quantities to the buffers that ranks send each other, and back.

A :class:`HaloDataTransformer` is made for everything that one rank exchanges with one other rank. Its two flat buffers
hold one block after the other, without padding or header, in the order of the descriptors: the cells to send, turned
into the axes of the receiver, in C order of the dimensions as the quantity names them. Of a vector, each pair of
descriptors gives the component along i and then that along j, swapped and negated as the turn says. These are NDSL's
bytes.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from ..._amounts import amount
from ..._views import refuse_mask
from .. import constants
from .._errors import HaloBoundsError, HaloMismatch, HaloStateError, HaloTypeError, HaloUnsupported, HaloValueError
from ..buffer import Buffer
from ..quantity.metadata import QuantityHaloSpec
from ..types import QuantityLike
from ..utils import accessor_of, data_of
from ._packing import CorePacker, ModulePacker, Plan, box_size, core_packer
from .rotate import require_sign

__all__ = [
    "INDICES_CACHE",
    "STREAM_POOL",
    "HaloDataTransformer",
    "HaloDataTransformerCPU",
    "HaloDataTransformerGPU",
    "HaloExchangeSpec",
]

INDICES_CACHE: dict[Any, list[Plan]] = {}
"""Plans of updaters, by the memory layouts and boundaries that they were made for; of the last 64. A program may clear
it. (In NDSL it holds arrays of indices, by which a GPU gathers; plans have none.)"""

STREAM_POOL: list[Any] = []
"""Streams of a GPU that wait to be used again."""


def check_specification(specification: QuantityHaloSpec) -> None:
    """Checks what every exchange needs: both horizontal dimensions once, and enough points to send."""
    try:
        n_points = operator.index(specification.n_points)
    except (AttributeError, TypeError):
        given = getattr(specification, "n_points", specification)
        raise HaloTypeError(f"a QuantityHaloSpec with an int of n_points is needed, not {given!r}") from None
    dims = tuple(specification.dims)
    for what, kind in (("i", constants.I_DIMS), ("j", constants.J_DIMS)):
        found = [dim for dim in dims if dim in kind]
        if len(found) != 1:
            raise HaloValueError(
                f"a halo update needs one dimension of the kind {what}, and the quantity has {len(found)} of them "
                f"({', '.join(dims)}): without it the compute domain itself would be overwritten"
            )
    lengths = (("shape", specification.shape), ("origin", specification.origin), ("extent", specification.extent))
    for what, entries in (*lengths, ("strides", specification.strides)):
        if len(entries) != len(dims):
            raise HaloValueError(f"{what} has {amount(len(entries), 'entry', 'entries')}, and dims {len(dims)}")
    if n_points < 0:
        raise HaloValueError(f"{amount(n_points, 'halo point')}: they are 0 or more")
    for dim, extent in zip(dims, specification.extent):
        inside = extent - (1 if dim in constants.INTERFACE_DIMS else 0)
        if dim in constants.HORIZONTAL_DIMS and n_points > inside:
            raise HaloValueError(
                f"{amount(n_points, 'halo point')} of a compute domain of {amount(inside, 'cell')} along {dim}: some of what "
                "would be sent lies in the opposite halo"
            )


def common_dtype(specifications: Sequence[QuantityHaloSpec]) -> np.dtype[Any]:
    """The dtype of all quantities of one exchange."""
    dtypes: list[np.dtype[Any]] = list({np.dtype(spec.dtype) for spec in specifications})
    if len(dtypes) > 1:
        names = sorted(map(str, dtypes))
        raise HaloUnsupported(f"Halo exchange process mixed precision: {', '.join(names)} in one exchange")
    if dtypes[0].hasobject:
        raise HaloTypeError(f"elements of {dtypes[0]} are objects of this process, which no other rank can use")
    return dtypes[0]


def check_components(x: QuantityHaloSpec, y: QuantityHaloSpec, turns: int) -> None:
    """Components of a vector have their dimensions in the same order, and a sign where they turn."""
    if [_KIND.get(dim, dim) for dim in x.dims] != [_KIND.get(dim, dim) for dim in y.dims]:
        raise HaloMismatch(
            f"the components of a vector have dims {', '.join(x.dims)} and {', '.join(y.dims)}: their order must be "
            "the same"
        )
    if turns:
        require_sign(x.dtype)


_KIND = {dim: kind for kind, dims in (("i", constants.I_DIMS), ("j", constants.J_DIMS)) for dim in dims}


@dataclass
class HaloExchangeSpec:
    """One block of an exchange.

    Parameters
    ----------
    specification
        The memory layout of the quantity.
    pack_slices
        Which cells are sent, a slice for each dimension, with a start, a stop and no step.
    pack_clockwise_rotation
        ``n_clockwise_rotations`` of the boundary; what is sent is turned back by as many quarter turns.
    unpack_slices
        Where what is received goes.

    Raises
    ------
    IndexError
        For slices that leave the array.
    ValueError
        For slices with a step, for another number of them than there are dimensions, for a quantity without one of the
        horizontal dimensions, and for more halo points than the compute domain has.
    """

    specification: QuantityHaloSpec
    pack_slices: tuple[slice, ...]
    pack_clockwise_rotation: int
    unpack_slices: tuple[slice, ...]

    def __post_init__(self) -> None:
        check_specification(self.specification)
        self.pack_slices = self._checked("pack_slices", self.pack_slices)
        self.unpack_slices = self._checked("unpack_slices", self.unpack_slices)

    def _checked(self, what: str, slices: Sequence[slice]) -> tuple[slice, ...]:
        shape, dims = self.specification.shape, self.specification.dims
        if len(slices) != len(shape):
            raise HaloValueError(
                f"{what} has {amount(len(slices), 'entry', 'entries')}, and the quantity {amount(len(shape), 'dimension')}"
            )
        out = []
        for dim, length, cut in zip(dims, shape, slices):
            if not isinstance(cut, slice):
                raise HaloTypeError(f"{what}: a slice for each dimension, not {cut!r} for {dim}")
            if cut.step not in (None, 1):
                raise HaloValueError(f"{what}: a step of {cut.step} along {dim}; slices of an exchange have none")
            start = 0 if cut.start is None else int(cut.start)
            stop = length if cut.stop is None else int(cut.stop)
            if not 0 <= start <= stop <= length:
                raise HaloBoundsError(f"{what}: points {start} to {stop} along {dim}, and the array has 0 to {length}")
            out.append(slice(start, stop))
        return tuple(out)


_OPERATIONS = ("zeros", "negative")


class HaloDataTransformer(abc.ABC):
    """Packs blocks of quantities into one buffer, and unpacks another one.

    The order of calls: :meth:`async_pack`; :meth:`get_pack_buffer`, to send it; receive into :meth:`get_unpack_buffer`;
    :meth:`async_unpack`; :meth:`synchronize`. The number and the order of the quantities is that of the descriptors: a
    quantity of which several blocks are exchanged is named for each of them.

    The buffers come from the pool of :mod:`tranship.ndsl.buffer` and go back to it by :meth:`finalize`, or when the
    object is deleted.

    Parameters
    ----------
    np_module
        The NumPy-like module of the buffers: that of the arrays, or NumPy for messages in the memory of the host.
    exchange_descriptors_x
        The blocks of scalars, or of the components of vectors along i.
    exchange_descriptors_y
        The blocks of the components along j, of vectors.

    Raises
    ------
    RuntimeError
        Without a descriptor, for lists that differ in length, and for blocks that are not received in the size in which
        they are sent.
    NotImplementedError
        For more than one dtype.
    """

    _pack_buffer: Optional[Buffer] = None
    _unpack_buffer: Optional[Buffer] = None
    _packer: Any = None
    _repeats: dict[str, tuple[Optional[int], list[tuple[Any, Callable[[Any], Any], Any]], Callable[[], None]]]

    def __init__(
        self,
        np_module: Any,
        exchange_descriptors_x: Sequence[HaloExchangeSpec],
        exchange_descriptors_y: Optional[Sequence[HaloExchangeSpec]] = None,
    ) -> None:
        self._infos_x = tuple(exchange_descriptors_x)
        self._infos_y = tuple(exchange_descriptors_y) if exchange_descriptors_y is not None else ()
        self._specs_x = [info.specification for info in self._infos_x]
        self._specs_y = [info.specification for info in self._infos_y]
        self._is_vector = exchange_descriptors_y is not None
        if not self._infos_x:
            raise HaloStateError("Attempting to init an empty halo exchange: it has no descriptor")
        if self._is_vector and len(self._infos_x) != len(self._infos_y):
            raise HaloStateError(
                "Vector halo exchange must have same exchange data for X and Y: the lists have "
                f"{len(self._infos_x)} and {len(self._infos_y)} descriptors"
            )
        missing = [name for name in _OPERATIONS if not hasattr(np_module, name)]
        if missing:
            raise HaloUnsupported(
                f"Quantity module {np_module} has no HaloDataTransformer implemented: it lacks {', '.join(missing)}"
            )
        self._np_module = np_module
        self._repeats = {}
        self._compile()

    def _compile(self) -> None:
        infos = self._infos_x + self._infos_y
        self._dtype = common_dtype(self._specs_x + self._specs_y)
        for x, y in zip(self._infos_x, self._infos_y):
            turns = [info.pack_clockwise_rotation % 4 for info in (x, y)]
            if turns[0] != turns[1]:
                raise HaloMismatch(f"the components of a vector turn by {turns[0]} and {turns[1]}: both must turn equally")
            check_components(x.specification, y.specification, turns[0])
        sent = sum(box_size(info.pack_slices) for info in infos)
        received = sum(box_size(info.unpack_slices) for info in infos)
        if sent != received:
            raise HaloMismatch(
                f"the blocks to pack have {amount(sent, 'element')} together, and those to unpack {received}"
            )
        self._packer = self._make_packer()
        self._take_buffers(sent)

    def _take_buffers(self, size: int) -> None:
        self._pack_buffer = Buffer.pop_from_cache(self._np_module.zeros, (size,), self._dtype)
        self._unpack_buffer = Buffer.pop_from_cache(self._np_module.zeros, (size,), self._dtype)

    def _make_packer(self) -> Any:
        return ModulePacker(self._arrays_module(), self._infos_x, self._infos_y, self._is_vector)

    def _arrays_module(self) -> Any:
        """The module of the arrays, which is that of the buffers, unless these lie on the host alone."""
        return self._np_module if self._np_module is not np else self._specs_x[0].numpy_module

    def __del__(self) -> None:
        self.finalize()

    def finalize(self) -> None:
        """Gives the buffers back to the pool. The transformer cannot be used any more; again, it does nothing."""
        for buffer in (self._pack_buffer, self._unpack_buffer):
            if buffer is not None:
                Buffer.push_to_cache(buffer)
        self._pack_buffer = self._unpack_buffer = None
        self._packer = None
        self._repeats = {}

    @staticmethod
    def get(
        np_module: Any,
        exchange_descriptors_x: Sequence[HaloExchangeSpec],
        exchange_descriptors_y: Optional[Sequence[HaloExchangeSpec]] = None,
    ) -> HaloDataTransformer:
        """A transformer whose buffers are of a NumPy-like module; see the class.

        Raises
        ------
        NotImplementedError
            For a module without the operations of NumPy that are needed.
        """
        on_gpu = getattr(np_module, "__name__", "").partition(".")[0] == "cupy"
        kind = HaloDataTransformerGPU if on_gpu else HaloDataTransformerCPU
        return kind(np_module, exchange_descriptors_x, exchange_descriptors_y)

    def get_unpack_buffer(self) -> Buffer:
        """Where to receive. Waits for all packing and unpacking. ``RuntimeError`` after :meth:`finalize`."""
        if self._unpack_buffer is None:
            raise HaloStateError("Recv buffer can't be retrieved before allocate(): the transformer was finalized")
        self.synchronize()
        return self._unpack_buffer

    def get_pack_buffer(self) -> Buffer:
        """Returns the buffer to send. Waits for all packing and unpacking. ``RuntimeError`` after :meth:`finalize`."""
        if self._pack_buffer is None:
            raise HaloStateError("Send buffer can't be retrieved before allocate(): the transformer was finalized")
        self.synchronize()
        return self._pack_buffer

    def ready(self) -> bool:
        """Returns True when there are buffers."""
        return self._pack_buffer is not None and self._unpack_buffer is not None

    def async_pack(
        self, quantities_x: Sequence[QuantityLike], quantities_y: Optional[Sequence[QuantityLike]] = None
    ) -> None:
        """Fills the pack buffer from quantities; done when :meth:`synchronize` has returned.

        Raises
        ------
        RuntimeError
            For another number of quantities than of descriptors, for a vector without its second component, and for
            quantities whose shape or dtype is not that of their specification: then the buffer is as it was.
        """
        if self._pack_buffer is None:
            raise HaloStateError("the transformer was finalized: it has no buffer to pack")
        self._move("pack", self._pack_buffer.array, quantities_x, quantities_y)

    def async_unpack(
        self, quantities_x: Sequence[QuantityLike], quantities_y: Optional[Sequence[QuantityLike]] = None
    ) -> None:
        """Fills blocks of quantities from the unpack buffer; done when :meth:`synchronize` has returned.

        Raises
        ------
        RuntimeError
            As :meth:`async_pack`, and for arrays that are read-only: then the quantities are as they were.
        """
        if self._unpack_buffer is None:
            raise HaloStateError("the transformer was finalized: it has no buffer to unpack")
        self._move("unpack", self._unpack_buffer.array, quantities_x, quantities_y)

    def _move(self, what: str, buffer: Any, quantities_x: Sequence[Any], quantities_y: Optional[Sequence[Any]]) -> None:
        """Packs or unpacks. Quantities that come again with the same arrays were compared with their specifications
        before, and a packer that can is bound to them."""
        again = self._again(what, quantities_x, quantities_y)
        if again is not None:
            again()
            return
        x, y = self._arrays(quantities_x, quantities_y, to_write=what == "unpack")
        again = getattr(self._packer, what)(buffer, x, y)
        if again is not None:
            given = [*quantities_x, *(quantities_y or ())]
            known = list(zip(given, [accessor_of(type(q)) for q in given], [*x, *(y or ())]))
            self._repeats[what] = (None if y is None else len(y), known, again)

    def _again(
        self, what: str, quantities_x: Sequence[Any], quantities_y: Optional[Sequence[Any]]
    ) -> Optional[Callable[[], None]]:
        """Returns what packs or unpacks the quantities that came the last time; None for others."""
        repeat = self._repeats.get(what)
        if repeat is None:
            return None
        n_y, known, again = repeat
        given = quantities_x
        if quantities_y is not None or n_y is not None:
            if quantities_y is None or n_y != len(quantities_y):
                return None
            given = [*quantities_x, *quantities_y]
        if len(given) != len(known):
            return None
        for q, (before, accessor, array) in zip(given, known):
            if q is not before or accessor(q) is not array:
                return None
            if what == "unpack" and not array.flags.writeable:
                return None
        return again

    def check(self, quantities_x: Sequence[QuantityLike], quantities_y: Optional[Sequence[QuantityLike]] = None) -> None:
        """Raises what packing and unpacking these quantities would raise, and touches nothing."""
        if not self.ready():
            raise HaloStateError("the transformer was finalized: it has no buffers")
        if self._again("unpack", quantities_x, quantities_y) is None:
            self._arrays(quantities_x, quantities_y, to_write=True)

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Waits until what was packed and unpacked may be used."""

    def _arrays(
        self, quantities_x: Sequence[Any], quantities_y: Optional[Sequence[Any]], to_write: bool
    ) -> tuple[list[Any], Optional[list[Any]]]:
        """The arrays of all quantities, every one of which fits its specification."""
        n_x, n_y = len(quantities_x), len(quantities_y) if quantities_y is not None else None
        if not self._is_vector:
            if n_y is not None:
                given = amount(n_y, "quantity", "quantities")
                raise HaloMismatch(f"{given} for the components along j, but this exchange moves scalars")
            if n_x != len(self._specs_x):
                raise HaloMismatch(f"Quantities count ({n_x} is different that edges count {len(self._specs_x)}")
        elif (n_x, n_y) != (len(self._specs_x), len(self._specs_y)):
            raise HaloMismatch(
                f"Quantities count (x: {n_x}, y: {n_y}) is different that specifications count "
                f"(x: {len(self._specs_x)}, y: {len(self._specs_y)})"
            )
        x = [array_of(q, spec, to_write) for q, spec in zip(quantities_x, self._specs_x)]
        if quantities_y is None:
            return x, None
        return x, [array_of(q, spec, to_write) for q, spec in zip(quantities_y, self._specs_y)]


def array_of(quantity: Any, specification: QuantityHaloSpec, to_write: bool) -> Any:
    """The array of a quantity, after it was compared with the specification. Strides may differ."""
    data = data_of(quantity)
    if not hasattr(data, "dtype") or not hasattr(data, "shape"):
        raise HaloTypeError(f"a quantity is needed, not a {type(quantity).__name__}")
    refuse_mask(data)
    if data.dtype != specification.dtype:
        raise HaloMismatch(f"a quantity of {data.dtype} where the specification says {np.dtype(specification.dtype)}")
    if tuple(data.shape) != tuple(specification.shape):
        raise HaloMismatch(
            f"a quantity of shape {tuple(data.shape)} where the specification says {tuple(specification.shape)}"
        )
    for what in ("dims", "origin", "extent"):
        mine, said = tuple(getattr(quantity, what, getattr(specification, what))), tuple(getattr(specification, what))
        if mine != said:
            raise HaloMismatch(f"a quantity with {what} {mine} where the specification says {said}")
    if to_write and isinstance(data, np.ndarray) and not data.flags.writeable:
        raise HaloMismatch("a quantity whose array is read-only cannot receive a halo")
    return data


class HaloDataTransformerCPU(HaloDataTransformer):
    """Packs and unpacks arrays in the memory of the host, at once."""

    def _make_packer(self) -> Any:
        packer = core_packer(self._infos_x, self._infos_y) if self._arrays_module() is np else None
        return super()._make_packer() if packer is None else CorePacker(packer)

    @classmethod
    def of_plan(
        cls, plan: Plan, specs_x: list[QuantityHaloSpec], specs_y: Optional[list[QuantityHaloSpec]]
    ) -> HaloDataTransformerCPU:
        """Makes a transformer from a plan that was made before, instead of from descriptors."""
        out = cls.__new__(cls)
        out._np_module, out._is_vector, out._repeats = np, specs_y is not None, {}
        out._infos_x = out._infos_y = ()
        out._specs_x, out._specs_y = specs_x * plan.boundaries, (specs_y or []) * plan.boundaries
        out._dtype = plan.dtype
        out._packer = CorePacker(plan.packer)
        out._take_buffers(plan.packer.nbytes // plan.dtype.itemsize)
        return out

    def synchronize(self) -> None:
        """Returns at once: packing and unpacking are done when they return."""


class HaloDataTransformerGPU(HaloDataTransformer):
    """Packs and unpacks arrays of a module that works on a GPU, such as CuPy, with that module's operations, on a
    stream of its own: what was given to the current stream before is done first, and :meth:`synchronize` waits for the
    rest."""

    _stream: Any = None

    def _move(self, what: str, buffer: Any, quantities_x: Sequence[Any], quantities_y: Optional[Sequence[Any]]) -> None:
        cuda = getattr(self._np_module, "cuda", None)
        if cuda is None:
            super()._move(what, buffer, quantities_x, quantities_y)
            return
        if self._stream is None:
            try:
                self._stream = STREAM_POOL.pop()
            except IndexError:
                self._stream = cuda.Stream(non_blocking=True)
        self._stream.wait_event(cuda.get_current_stream().record())
        with self._stream:
            super()._move(what, buffer, quantities_x, quantities_y)

    def synchronize(self) -> None:
        """Waits for the device's part of the work."""
        if self._stream is not None:
            self._stream.synchronize()

    def finalize(self) -> None:
        """Waits, and gives the buffers and the stream back. Again, it does nothing."""
        self.synchronize()
        super().finalize()
        if self._stream is not None:
            STREAM_POOL.append(self._stream)
        self._stream = None
