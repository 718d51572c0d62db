"""The functions that kernels call: :mod:`tranship.nvshmem.core.device.numba`."""
