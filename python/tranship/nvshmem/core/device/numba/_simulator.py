"""Changes of Numba's CUDA simulator: it passes symmetric arrays to kernels as they are, takes ``stream=`` at a
launch, and says which threads a block has.

The simulator copies arrays to a "device" and back, which would tear them from symmetric memory.
"""

from __future__ import annotations

import functools
from typing import Any

_is_adapted = False


def adapt() -> None:
    """Does nothing where the simulator is not in use."""
    global _is_adapted
    try:
        from numba.core import config
    except ImportError:
        return
    if _is_adapted or not config.ENABLE_CUDASIM:
        return
    from numba.cuda.simulator import kernel
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    from ..._memory import InPlaceArray
    from ._lanes import block_of

    launch = kernel.FakeCUDAKernel.__call__

    @functools.wraps(launch)
    def launch_with_symmetric_arrays(self: Any, *args: Any, stream: Any = None) -> Any:
        import numpy as np

        return launch(self, *(FakeCUDAArray(a.view(np.ndarray)) if isinstance(a, InPlaceArray) else a for a in args))

    make_thread = kernel.BlockThread.__init__

    @functools.wraps(make_thread)
    def make_known_thread(self: Any, *args: Any, **kwargs: Any) -> None:
        make_thread(self, *args, **kwargs)
        block_of(self._manager).threads[self.thread_id] = self

    run_thread = kernel.BlockThread.run

    @functools.wraps(run_thread)
    def run_known_thread(self: Any) -> None:
        try:
            run_thread(self)
        finally:
            block_of(self._manager).ended.add(self.thread_id)

    kernel.FakeCUDAKernel.__call__ = launch_with_symmetric_arrays
    kernel.BlockThread.__init__ = make_known_thread
    kernel.BlockThread.run = run_known_thread
    _is_adapted = True
