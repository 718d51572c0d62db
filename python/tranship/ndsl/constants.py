"""Names of dimensions and numbers of boundaries, with the values that NDSL gives them.

A field is on cell centres along ``i``, ``j`` and ``k``, and on the interfaces between cells, of which there is one
more, along ``i_interface``, ``j_interface`` and ``k_interface``. Only dimensions of the kinds i and j have halos.
"""

from __future__ import annotations

__all__ = [
    "BOUNDARY_TYPES",
    "CORNER_BOUNDARY_TYPES",
    "EAST",
    "EDGE_BOUNDARY_TYPES",
    "HORIZONTAL_DIMS",
    "INTERFACE_DIMS",
    "INTERIOR",
    "I_DIM",
    "I_DIMS",
    "I_INTERFACE_DIM",
    "J_DIM",
    "J_DIMS",
    "J_INTERFACE_DIM",
    "K_DIM",
    "K_DIMS",
    "K_INTERFACE_DIM",
    "K_SOIL_DIM",
    "NORTH",
    "NORTHEAST",
    "NORTHWEST",
    "N_HALO_DEFAULT",
    "ROOT_RANK",
    "SOUTH",
    "SOUTHEAST",
    "SOUTHWEST",
    "SPATIAL_DIMS",
    "TILE_DIM",
    "WEST",
]

I_DIM = "i"
I_INTERFACE_DIM = "i_interface"
J_DIM = "j"
J_INTERFACE_DIM = "j_interface"
K_DIM = "k"
K_INTERFACE_DIM = "k_interface"
K_SOIL_DIM = "k_soil"
TILE_DIM = "tile"

I_DIMS = (I_DIM, I_INTERFACE_DIM)
J_DIMS = (J_DIM, J_INTERFACE_DIM)
K_DIMS = (K_DIM, K_INTERFACE_DIM)
HORIZONTAL_DIMS = I_DIMS + J_DIMS
INTERFACE_DIMS = (I_INTERFACE_DIM, J_INTERFACE_DIM, K_INTERFACE_DIM)
SPATIAL_DIMS = I_DIMS + J_DIMS + K_DIMS

ROOT_RANK = 0
N_HALO_DEFAULT = 3

WEST = 0
EAST = 1
NORTH = 2
SOUTH = 3
NORTHWEST = 4
NORTHEAST = 5
SOUTHWEST = 6
SOUTHEAST = 7
INTERIOR = 8
EDGE_BOUNDARY_TYPES = (NORTH, SOUTH, WEST, EAST)
CORNER_BOUNDARY_TYPES = (NORTHWEST, NORTHEAST, SOUTHWEST, SOUTHEAST)
BOUNDARY_TYPES = EDGE_BOUNDARY_TYPES + CORNER_BOUNDARY_TYPES
