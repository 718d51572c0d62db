"""The blocks of an exchange, and what moves them: the library itself, or the operations of another array module."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

import numpy as np

from ... import _core
from ..utils import safe_assign_array
from .rotate import horizontal_axes, rotate_scalar_data

__all__: list[str] = []


class Block(NamedTuple):
    """One stretch of a buffer, in elements, and the box of one quantity that it holds.

    The box is turned clockwise by ``turns`` and, if ``negated``, its sign is changed, on its way into the buffer. On
    its way out it is neither.
    """

    component: int  # 0: scalars and components along i; 1: components along j
    quantity: int
    box: tuple[slice, ...]
    axes: tuple[str, ...]  # the names by which the box is turned
    turns: int
    negated: bool
    offset: int
    size: int


def box_size(box: tuple[slice, ...]) -> int:
    """Number of elements of a box."""
    return math.prod(cut.stop - cut.start for cut in box)


def turned_shape(box: tuple[slice, ...], dims: tuple[str, ...], turns: int) -> tuple[int, ...]:
    """The shape of a box after it was turned."""
    shape = [cut.stop - cut.start for cut in box]
    y, x = horizontal_axes(dims)
    if turns % 2 and x >= 0 and y >= 0:
        shape[x], shape[y] = shape[y], shape[x]
    return tuple(shape)


def scalar_blocks(specs: Any, unpack: bool) -> tuple[Block, ...]:
    """The blocks of a scalar exchange: one after the other."""
    blocks, offset = [], 0
    for n, one in enumerate(specs):
        box = one.unpack_slices if unpack else one.pack_slices
        turns = 0 if unpack else -one.pack_clockwise_rotation % 4
        size = box_size(box)
        blocks.append(Block(0, n, box, tuple(one.specification.dims), turns, False, offset, size))
        offset += size
    return tuple(blocks)


# Which component fills the first slot of a pair, and which slots are negated, for each number of clockwise turns.
_VECTOR = {0: (0, (False, False)), 1: (1, (False, True)), 2: (0, (True, True)), 3: (1, (True, False))}


def vector_blocks(specs_x: Any, specs_y: Any, unpack: bool) -> tuple[Block, ...]:
    """The blocks of a vector exchange: for each pair, what will be the component along i, then that along j."""
    blocks, offset = [], 0
    for n, pair in enumerate(zip(specs_x, specs_y)):
        turns = 0 if unpack else -pair[0].pack_clockwise_rotation % 4
        first, negated = _VECTOR[turns]
        for slot in (0, 1):
            component = first ^ slot
            box = pair[component].unpack_slices if unpack else pair[component].pack_slices
            axes = tuple(pair[0].specification.dims)
            size = box_size(box)
            blocks.append(Block(component, n, box, axes, turns, negated[slot], offset, size))
            offset += size
    return tuple(blocks)


_CORE_KINDS = "biufc"


def core_knows(specs: Iterable[Any]) -> bool:
    """Returns True when the library moves the elements of these specifications."""
    for spec in specs:
        dtype = np.dtype(spec.dtype)
        if dtype.kind not in _CORE_KINDS or not dtype.isnative or dtype.itemsize > 16:
            return False
        if any(stride % dtype.itemsize for stride in spec.strides):
            return False
    return True


def core_spec(spec: Any) -> _core.HaloSpec:
    """A specification as the library has it."""
    dtype = np.dtype(spec.dtype)
    return _core.HaloSpec(
        f"{dtype.kind}{dtype.itemsize}",
        tuple(spec.shape),
        tuple(spec.strides),
        list(spec.dims),
        tuple(spec.origin),
        tuple(spec.extent),
        spec.n_points,
    )


def core_packer(infos_x: Any, infos_y: Any) -> Optional[_core.HaloTransformer]:
    """The library's own packer, for dtypes that it knows and blocks that are halos: what is sent lies in the compute
    domain, and what is received outside of it."""
    infos = (*infos_x, *(infos_y or ()))
    if not core_knows(info.specification for info in infos) or not all(map(_is_halo, infos)):
        return None
    specs = {id(info.specification): core_spec(info.specification) for info in infos}

    def exchange(info: Any) -> Any:
        return specs[id(info.specification)], info.pack_clockwise_rotation % 4, info.pack_slices, info.unpack_slices

    return _core.HaloTransformer([exchange(i) for i in infos_x], [exchange(i) for i in infos_y or ()])


class Plan(NamedTuple):
    """The exchange with one neighbour, of quantities whose specifications were checked."""

    rank: int
    boundaries: int  # that are shared with it: the quantities are packed once for each
    packer: _core.HaloTransformer
    dtype: np.dtype[Any]


def _is_halo(info: Any) -> bool:
    spec = info.specification
    domain = [(o, o + e) for o, e in zip(spec.origin, spec.extent)]
    sent = all(low <= cut.start and cut.stop <= high for cut, (low, high) in zip(info.pack_slices, domain))
    kept = any(cut.stop <= low or cut.start >= high for cut, (low, high) in zip(info.unpack_slices, domain))
    return sent and kept and all(cut.stop > cut.start for cut in info.pack_slices)


class CorePacker:
    """Moves blocks by the library's plan, made once."""

    def __init__(self, plan: _core.HaloTransformer) -> None:
        self._plan = plan

    def pack(self, buffer: Any, x: list[Any], y: Optional[list[Any]]) -> Any:
        """Fills the buffer from the arrays; returns a call that does it again."""
        fit_x, fit_y = _fitting(x), _fitting(y or [])
        again = self._plan.bind(fit_x, fit_y, pack_buffer=buffer).pack
        again()
        return again if _are_same(fit_x, x) and _are_same(fit_y, y or []) else None

    def unpack(self, buffer: Any, x: list[Any], y: Optional[list[Any]]) -> Any:
        """Fills boxes of the arrays from the buffer; returns a call that does it again."""
        fit_x, fit_y = _fitting(x), _fitting(y or [])
        again = self._plan.bind(fit_x, fit_y, unpack_buffer=buffer).unpack
        again()
        if _are_same(fit_x, x) and _are_same(fit_y, y or []):
            return again
        for array, copy in zip([*x, *(y or ())], [*fit_x, *fit_y]):
            if copy is not array:
                array[...] = copy
        return None


def _fitting(arrays: list[Any]) -> list[Any]:
    """The arrays, or copies of those whose elements do not lie at multiples of their size. An array that comes several
    times has one copy."""
    copies: dict[int, Any] = {}
    out = []
    for array in arrays:
        if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
            array = copies.setdefault(id(array), array.copy())
        out.append(array)
    return out


def _are_same(some: list[Any], others: list[Any]) -> bool:
    return all(one is other for one, other in zip(some, others))


class ModulePacker:
    """Moves blocks with slices and assignments of the NumPy-like module of the arrays: each element is read once and
    written once. Where the buffer is one of the host and the arrays are not, each block crosses by itself."""

    def __init__(self, module: Any, infos_x: Any, infos_y: Any, is_vector: bool) -> None:
        self._module = module
        self._pack, self._unpack = (
            vector_blocks(infos_x, infos_y, unpack) if is_vector else scalar_blocks(infos_x, unpack)
            for unpack in (False, True)
        )

    def pack(self, buffer: Any, x: list[Any], y: Optional[list[Any]]) -> None:
        """Fills the buffer from the arrays."""
        for block in self._pack:
            data = (y if block.component and y is not None else x)[block.quantity]
            turned = rotate_scalar_data(data[block.box], block.axes, self._module, block.turns)
            slot = buffer[block.offset : block.offset + block.size].reshape(turned.shape)
            if not block.negated:
                safe_assign_array(slot, turned)
            elif isinstance(slot, type(turned)):
                self._module.negative(turned, out=slot)
            else:
                safe_assign_array(slot, self._module.negative(turned))

    def unpack(self, buffer: Any, x: list[Any], y: Optional[list[Any]]) -> None:
        """Fills boxes of the arrays from the buffer."""
        for block in self._unpack:
            data = (y if block.component and y is not None else x)[block.quantity]
            target = data[block.box]
            safe_assign_array(target, buffer[block.offset : block.offset + block.size].reshape(target.shape))
