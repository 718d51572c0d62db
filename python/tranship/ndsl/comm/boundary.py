"""The boundary between two ranks that are neighbours."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

from ..halo.data_transformer import check_specification
from ..quantity import QuantityHaloSpec
from ..quantity.quantity import halo_spec_of
from ..utils import data_of
from ._boundary_utils import get_boundary_slice

__all__ = ["Boundary", "SimpleBoundary"]


@dataclasses.dataclass
class Boundary(abc.ABC):
    """A boundary between two ranks.

    Parameters
    ----------
    from_rank, to_rank
        This rank, and the one on the other side.
    n_clockwise_rotations
        Quarter turns from the axes of this rank to those of the other one, as NDSL counts them.
    """

    from_rank: int
    to_rank: int
    n_clockwise_rotations: int

    def send_view(self, quantity: Any, n_points: int) -> Any:
        """The cells of a quantity that are sent, in the memory itself."""
        return data_of(quantity)[self.send_slice(halo_spec_of(quantity, n_points))]

    def recv_view(self, quantity: Any, n_points: int) -> Any:
        """The cells of a quantity that are received, in the memory itself."""
        return data_of(quantity)[self.recv_slice(halo_spec_of(quantity, n_points))]

    def send_slice(self, specification: QuantityHaloSpec) -> tuple[slice, ...]:
        """Which cells are sent.

        Raises
        ------
        IndexError
            When they leave the array.
        ValueError
            For a quantity without one of the horizontal dimensions, and for more halo points than it has cells.
        """
        return self._slice(specification, interior=True)

    def recv_slice(self, specification: QuantityHaloSpec) -> tuple[slice, ...]:
        """Which cells are received; raises as :meth:`send_slice`."""
        return self._slice(specification, interior=False)

    @abc.abstractmethod
    def _slice(self, specification: QuantityHaloSpec, interior: bool) -> tuple[slice, ...]: ...


@dataclasses.dataclass
class SimpleBoundary(Boundary):
    """An edge or a corner of a rank's part of its tile.

    Parameters
    ----------
    boundary_type
        Which: :data:`~tranship.ndsl.constants.NORTH`, ...
    """

    boundary_type: int

    def _slice(self, specification: QuantityHaloSpec, interior: bool) -> tuple[slice, ...]:
        slices = get_boundary_slice(
            specification.dims,
            specification.origin,
            specification.extent,
            specification.shape,
            self.boundary_type,
            specification.n_points,
            interior,
        )
        check_specification(specification)
        return slices
