"""Which rank has which part of a tile or of a cube, and who lies beyond its edges.

Ranks are numbered tile by tile, and on each tile row by row: rank = tile * ny * nx + j * nx + i for a layout (ny, nx).
The edges of the cube are joined as GFDL's FV3 joins them, which is how :func:`tranship.cubed_sphere` joins its tiles.

At a corner, the step that stays on the tile comes first. Where both leave it, which is at the corners of the cube,
nothing lies beyond.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional, TypeVar, Union

import numpy as np

from ..._amounts import amount
from ... import _core
from ..._errors import InvalidUse
from .. import constants
from .._errors import HaloUnsupported, HaloValueError
from ..utils import list_by_dims
from ._boundary_utils import STEPS
from .boundary import SimpleBoundary

__all__ = [
    "CubedSpherePartitioner",
    "Partitioner",
    "TilePartitioner",
    "get_tile_index",
    "rotate_subtile_rank",
    "subtile_slice",
    "tile_extent_from_rank_metadata",
]

P = TypeVar("P", bound="Partitioner")


def get_tile_index(rank: int, total_ranks: int) -> int:
    """The tile of a rank of a cube.

    Raises
    ------
    ValueError
        For a number of ranks that six tiles cannot share, and for a rank that is none of them.
    """
    if total_ranks < 6 or total_ranks % 6:
        raise HaloValueError(f"{amount(total_ranks, 'rank')}: a cube has a multiple of 6")
    if not 0 <= rank < total_ranks:
        raise HaloValueError(f"there is no rank {rank} of {total_ranks}")
    return rank // (total_ranks // 6)


class Partitioner(abc.ABC):
    """Which rank has which part of a global domain."""

    tile: TilePartitioner
    layout: tuple[int, int]

    def __init__(self, tile: TilePartitioner, layout: Union[tuple[int, int], list[int]]) -> None:
        self.tile = tile
        self.layout = _checked_layout(layout)

    @abc.abstractmethod
    def boundary(self, boundary_type: int, rank: int) -> Optional[SimpleBoundary]:
        """Returns the boundary at an edge or a corner of a rank's part; None where there is none."""

    @abc.abstractmethod
    def tile_index(self, rank: int) -> int:
        """The tile of a rank."""

    @abc.abstractmethod
    def global_extent(self, rank_metadata: Any) -> tuple[int, ...]:
        """The extents of the whole domain, from what one rank has of it."""

    @abc.abstractmethod
    def subtile_slice(
        self, rank: int, global_dims: Sequence[str], global_extent: Sequence[int], overlap: bool = False
    ) -> tuple[Union[int, slice], ...]:
        """Which part of the whole domain a rank has."""

    @abc.abstractmethod
    def subtile_extent(self, global_metadata: Any, rank: int) -> tuple[int, ...]:
        """The extents of a rank's part, from those of the whole domain."""

    @property
    @abc.abstractmethod
    def total_ranks(self) -> int:
        """How many ranks there are."""


def _checked_layout(layout: Any) -> tuple[int, int]:
    if not isinstance(layout, (tuple, list)) or len(layout) != 2:
        raise HaloValueError(f"Expected layout to be a tuple/list of two integers. Got {layout} instead.")
    if any(int(n) != n or n < 1 for n in layout):
        raise HaloValueError(f"Expected layout to be two integers of 1 or more. Got {layout} instead.")
    return int(layout[0]), int(layout[1])


class TilePartitioner(Partitioner):
    """One tile that is periodic in both directions.

    Parameters
    ----------
    layout
        How many ranks along j and along i.
    edge_interior_ratio
        How many cells a rank at an edge of the tile has in proportion to others, at most about that.

    Examples
    --------
    >>> from tranship.ndsl import TilePartitioner
    >>> tile = TilePartitioner((2, 3))
    >>> tile.subtile_slice(4, ["j", "i"], (8, 12))
    (slice(4, 8, None), slice(4, 8, None))
    """

    def __init__(self, layout: Union[tuple[int, int], list[int]], edge_interior_ratio: float = 1.0) -> None:
        super().__init__(self, layout)
        if not edge_interior_ratio > 0:
            raise HaloValueError(f"an edge_interior_ratio of {edge_interior_ratio}: needs more than 0")
        self.edge_interior_ratio = edge_interior_ratio

    def tile_index(self, rank: int) -> int:
        """0, or the tile of a rank of a cube."""
        return rank // self.total_ranks

    @classmethod
    def from_namelist(cls, namelist: Any) -> TilePartitioner:
        """The layout of the entry ``fv_core_nml`` of a namelist."""
        return cls(layout=list(namelist["fv_core_nml"]["layout"]))

    def subtile_index(self, rank: int) -> tuple[int, int]:
        """Which part of its tile a rank has: the index along j and that along i."""
        return subtile_index(rank, self.total_ranks, self.layout)

    @property
    def total_ranks(self) -> int:
        """How many ranks share the tile."""
        return self.layout[0] * self.layout[1]

    def global_extent(self, rank_metadata: Any) -> tuple[int, ...]:
        """The extents of the tile, from what one rank has of it; see :func:`tile_extent_from_rank_metadata`."""
        return tile_extent_from_rank_metadata(
            rank_metadata.dims, rank_metadata.extent, self.layout, self.edge_interior_ratio
        )

    def subtile_extent(self, global_metadata: Any, rank: int) -> tuple[int, ...]:
        """The extents of a rank's part, from those of the tile, shared points included; without a dimension of
        tiles."""
        cuts = self.subtile_slice(rank, global_metadata.dims, global_metadata.extent, overlap=True)
        return tuple(
            cut.stop - cut.start for dim, cut in zip(global_metadata.dims, cuts) if dim != constants.TILE_DIM
        )

    def subtile_slice(
        self, rank: int, global_dims: Sequence[str], global_extent: Sequence[int], overlap: bool = False
    ) -> tuple[slice, ...]:
        """Which part of the tile a rank has.

        Parameters
        ----------
        overlap
            Whether points that neighbours share belong to both of them; else to the one on their high side.

        Raises
        ------
        ValueError
            For extents that the ranks cannot share.
        """
        return subtile_slice(
            global_dims,
            global_extent,
            self.layout,
            self.subtile_index(rank),
            edge_interior_ratio=self.edge_interior_ratio,
            overlap=overlap,
        )

    def on_tile_top(self, rank: int) -> bool:
        """Returns True when a rank's part is at the north edge of its tile."""
        return self.subtile_index(rank)[0] == self.layout[0] - 1

    def on_tile_bottom(self, rank: int) -> bool:
        """Returns True when a rank's part is at the south edge of its tile."""
        return self.subtile_index(rank)[0] == 0

    def on_tile_left(self, rank: int) -> bool:
        """Returns True when a rank's part is at the west edge of its tile."""
        return self.subtile_index(rank)[1] == 0

    def on_tile_right(self, rank: int) -> bool:
        """Returns True when a rank's part is at the east edge of its tile."""
        return self.subtile_index(rank)[1] == self.layout[1] - 1

    def boundary(self, boundary_type: int, rank: int) -> Optional[SimpleBoundary]:
        """Returns the boundary at an edge or a corner of a rank's part: on a periodic tile there is always a rank, perhaps
        itself."""
        within = rank % self.total_ranks
        neighbor = _ranks_on_a_tile(*self.layout).neighbor(within, _step_of(boundary_type))
        assert neighbor is not None  # a periodic tile has no edge
        return SimpleBoundary(rank, rank - within + neighbor[0], 0, boundary_type)

    def fliplr_rank(self, rank: int) -> int:
        """The rank at the place that is mirrored along i."""
        return fliplr_subtile_rank(rank, self.layout)

    def rotate_rank(self, rank: int, n_clockwise_rotations: int) -> int:
        """The rank at the place that is turned; see :func:`rotate_subtile_rank`."""
        return rotate_subtile_rank(rank, self.layout, n_clockwise_rotations)


def _step_of(boundary_type: int) -> tuple[int, int]:
    try:
        return STEPS[boundary_type]
    except KeyError:
        raise HaloValueError(f"there is no boundary {boundary_type}: boundaries are {min(STEPS)} to {max(STEPS)}") from None


class CubedSpherePartitioner(Partitioner):
    """The six tiles of a cube.

    Parameters
    ----------
    tile
        How each of them is cut; with as many ranks along j as along i.

    Raises
    ------
    NotImplementedError
        By :meth:`boundary`, for a layout that is not square: the neighbours beyond an edge that turns would have to be
        several.
    """

    def __init__(self, tile: TilePartitioner) -> None:
        super().__init__(tile, tile.layout)

    @classmethod
    def from_namelist(cls, namelist: Any) -> CubedSpherePartitioner:
        """The layout of the entry ``fv_core_nml`` of a namelist."""
        return cls(TilePartitioner.from_namelist(namelist))

    def _ensure_square_layout(self) -> None:
        if self.layout[0] != self.layout[1]:
            raise HaloUnsupported(
                f"currently only square layouts are supported on the cube, and this one is {self.layout[0]} by "
                f"{self.layout[1]}: its edges that turn would not meet part by part"
            )

    def tile_index(self, rank: int) -> int:
        """The tile of a rank."""
        return get_tile_index(rank, self.total_ranks)

    def tile_root_rank(self, rank: int) -> int:
        """The lowest rank of the same tile."""
        return self.tile.total_ranks * self.tile_index(rank)

    @property
    def total_ranks(self) -> int:
        """How many ranks there are."""
        return 6 * self.tile.total_ranks

    def boundary(self, boundary_type: int, rank: int) -> Optional[SimpleBoundary]:
        """Returns the boundary at an edge or a corner of a rank's part; None at a corner of the cube."""
        step = _step_of(boundary_type)
        self._ensure_square_layout()
        self.tile_index(rank)  # refuses a rank that does not exist
        neighbor = _ranks_on_a_cube(self.layout[0]).neighbor(rank, step)
        return None if neighbor is None else SimpleBoundary(rank, *neighbor, boundary_type)

    def global_extent(self, rank_metadata: Any) -> tuple[int, ...]:
        """The extents of all tiles, from what one rank has of them: the tiles come first."""
        return (6,) + self.tile.global_extent(rank_metadata)

    def subtile_extent(self, cube_metadata: Any, rank: int) -> tuple[int, ...]:
        """The extents of a rank's part, without the dimension of tiles."""
        return self.tile.subtile_extent(cube_metadata, rank)

    def subtile_slice(
        self, rank: int, global_dims: Sequence[str], global_extent: Sequence[int], overlap: bool = False
    ) -> tuple[Union[int, slice], ...]:
        """Which part of all tiles a rank has: the number of its tile, and slices.

        Raises
        ------
        ValueError
            Without a dimension of tiles, and for extents that the ranks cannot share.
        """
        if constants.TILE_DIM not in global_dims:
            raise HaloValueError(f"an array of the cube has a dimension '{constants.TILE_DIM}', and this one {global_dims}")
        cuts = self.tile.subtile_slice(rank, global_dims, global_extent, overlap)
        tile = self.tile_index(rank)
        return tuple(tile if dim == constants.TILE_DIM else cut for dim, cut in zip(global_dims, cuts))


@functools.lru_cache(maxsize=16)
def _ranks_on_a_cube(edge: int) -> _core.TileRanks:
    return _core.TileRanks(_core.cubed_sphere(edge), [edge, edge])


@functools.lru_cache(maxsize=16)
def _ranks_on_a_tile(ny: int, nx: int) -> _core.TileRanks:
    return _core.TileRanks(_core.doubly_periodic(ny, nx), [ny, nx])


# Places on a tile.


def on_tile_left(subtile_index: tuple[int, int]) -> bool:
    """Returns True when a place is at the west edge."""
    return subtile_index[1] == 0


def on_tile_right(subtile_index: tuple[int, int], layout: tuple[int, int]) -> bool:
    """Returns True when a place is at the east edge."""
    return subtile_index[1] == layout[1] - 1


def on_tile_top(subtile_index: tuple[int, int], layout: tuple[int, int]) -> bool:
    """Returns True when a place is at the north edge."""
    return subtile_index[0] == layout[0] - 1


def on_tile_bottom(subtile_index: tuple[int, int]) -> bool:
    """Returns True when a place is at the south edge."""
    return subtile_index[0] == 0


def subtile_index(rank: int, ranks_per_tile: int, layout: tuple[int, int]) -> tuple[int, int]:
    """The place of a rank on its tile: the index along j and that along i."""
    j, i = divmod(rank % ranks_per_tile, layout[1])
    return j, i


def rotate_subtile_rank(rank: int, layout: tuple[int, int], n_clockwise_rotations: int) -> int:
    """The rank that comes to the place of this one when the layout is turned clockwise."""
    return transform_subtile_rank(lambda places: np.rot90(places, -n_clockwise_rotations), rank, layout)


def transpose_subtile_rank(rank: int, layout: tuple[int, int]) -> int:
    """The rank at the place with both indices exchanged."""
    return transform_subtile_rank(np.transpose, rank, layout)


def fliplr_subtile_rank(rank: int, layout: tuple[int, int]) -> int:
    """The rank at the place that is mirrored along i."""
    return transform_subtile_rank(np.fliplr, rank, layout)


def flipud_subtile_rank(rank: int, layout: tuple[int, int]) -> int:
    """The rank at the place that is mirrored along j."""
    return transform_subtile_rank(np.flipud, rank, layout)


def transform_subtile_rank(transform_func: Callable[[Any], Any], rank: int, layout: tuple[int, int]) -> int:
    """The rank at whose place a function of a matrix of ranks puts this one; on the same tile."""
    ranks_per_tile = layout[0] * layout[1]
    places = np.arange(ranks_per_tile).reshape(layout)
    return rank // ranks_per_tile * ranks_per_tile + int(transform_func(places).ravel()[rank % ranks_per_tile])


# Extents.


def tile_extent_from_rank_metadata(
    dims: Sequence[str], rank_extent: Sequence[int], layout: tuple[int, int], edge_interior_ratio: float = 1.0
) -> tuple[int, ...]:
    """The extents of a tile, from those of one part of it.

    Raises
    ------
    NotImplementedError
        For parts of different sizes.
    """
    if edge_interior_ratio != 1.0:
        raise HaloUnsupported(
            f"Only equal sized subdomains are supported, was given an edge_interior_ratio of {edge_interior_ratio}"
        )
    return extent_from_metadata(dims, rank_extent, np.asarray(layout))


def extent_from_metadata(dims: Sequence[str], extent: Sequence[int], layout_factors: Any) -> tuple[int, ...]:
    """Extents of which the horizontal ones are multiplied by factors along j and along i; shared points count once."""
    factors = list_by_dims(dims, [int(layout_factors[0]), int(layout_factors[1])], 1)
    out = []
    for dim, length, factor in zip(dims, extent, factors):
        shared = 1 if dim in constants.INTERFACE_DIMS else 0
        out.append((int(length) - shared) * factor + shared)
    return tuple(out)


def _bounds(cells: int, parts: int, edge_interior_ratio: float) -> list[int]:
    """Where the parts of a dimension begin, and where the last one ends."""
    if cells % 2 and parts % 2 == 0:
        raise HaloValueError(
            f"Cannot find valid decomposition for odd ({cells}) gridpoints along an even count ({parts}) of ranks."
        )
    try:
        return list(_core.uneven_block_bounds(cells, parts, edge_interior_ratio))
    except InvalidUse:
        raise HaloValueError(f"Cannot find valid decomposition for {cells} gridpoints along {parts} ranks.") from None


def rank_slice_from_tile_metadata(
    dims: Sequence[str],
    *,
    extent: Sequence[int],
    layout: tuple[int, int],
    subtile_index: tuple[int, int],
    edge_interior_ratio: float,
    overlap: bool,
) -> tuple[slice, ...]:
    """Calls :func:`subtile_slice` with keywords."""
    return subtile_slice(dims, extent, layout, subtile_index, edge_interior_ratio, overlap)


def subtile_slice(
    dims: Sequence[str],
    global_extent: Sequence[int],
    layout: tuple[int, int],
    subtile_index: tuple[int, int],
    edge_interior_ratio: float = 1.0,
    overlap: bool = False,
) -> tuple[slice, ...]:
    """Which part of a tile is at a place of the layout.

    Parameters
    ----------
    dims, global_extent
        Of the tile.
    layout
        Parts along j and along i.
    subtile_index
        The place along j and along i.
    edge_interior_ratio
        As of :class:`TilePartitioner`.
    overlap
        Whether points that neighbours share belong to both of them; else to the one on their high side.
    """
    places = list_by_dims(dims, list(subtile_index), -1)
    parts = list_by_dims(dims, list(layout), 0)
    out = []
    for dim, length, n, place in zip(dims, global_extent, parts, places):
        if place < 0:
            out.append(slice(0, int(length)))
            continue
        shared = 1 if dim in constants.INTERFACE_DIMS else 0
        bounds = _bounds(int(length) - shared, n, edge_interior_ratio)
        stop = bounds[place + 1]
        if shared and (overlap or place == n - 1):
            stop += 1
        out.append(slice(bounds[place], stop))
    return tuple(out)
