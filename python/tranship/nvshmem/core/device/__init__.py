"""What kernels call: :mod:`tranship.nvshmem.core.device.numba`."""
