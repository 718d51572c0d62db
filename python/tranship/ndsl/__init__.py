"""NDSL's halo layer: its names, over tranship's ranks and moves.

A model that was written for NDSL changes its imports. The messages between ranks are NDSL's to the byte.

>>> import numpy as np
>>> import tranship as ts
>>> from tranship.ndsl import CubedSphereCommunicator, Quantity
>>> def main(world):
...     ranks = CubedSphereCommunicator.from_layout(world, layout=(1, 1))
...     data = np.zeros((10, 10))
...     data[3:7, 3:7] = world.rank
...     q = Quantity(data, dims=["j", "i"], units="K", origin=(3, 3), extent=(4, 4))
...     ranks.halo_update(q, n_points=3)
...     return float(data[5, 7])  # one cell beyond the east edge
>>> ts.launch(6, main)
[1.0, 3.0, 3.0, 5.0, 5.0, 1.0]
"""

from .comm.boundary import Boundary, SimpleBoundary
from .comm.communicator import Communicator, CubedSphereCommunicator, TileCommunicator
from .comm.local_comm import LocalComm
from .comm.mpi import MPIComm
from .comm.partitioner import CubedSpherePartitioner, TilePartitioner, get_tile_index
from .config import Backend
from .halo.data_transformer import HaloDataTransformer, HaloExchangeSpec
from .halo.updater import HaloUpdater, HaloUpdateRequest, VectorInterfaceHaloUpdater
from .performance.timer import NullTimer, Timer
from .quantity import Quantity, QuantityHaloSpec, QuantityMetadata
from .types import Allocator

__all__ = [
    "Allocator",
    "Backend",
    "Boundary",
    "Communicator",
    "CubedSphereCommunicator",
    "CubedSpherePartitioner",
    "HaloDataTransformer",
    "HaloExchangeSpec",
    "HaloUpdateRequest",
    "HaloUpdater",
    "LocalComm",
    "MPIComm",
    "NullTimer",
    "Quantity",
    "QuantityHaloSpec",
    "QuantityMetadata",
    "SimpleBoundary",
    "TileCommunicator",
    "TilePartitioner",
    "Timer",
    "VectorInterfaceHaloUpdater",
    "get_tile_index",
]
