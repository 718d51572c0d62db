"""The operations that kernels make themselves: under Numba's CUDA simulator, and in functions that Numba has compiled.

``import tranship.nvshmem.core.device.numba as nvshmem_numba`` takes the place of ``nvshmem.core.device.numba``.

- Kernels (``@cuda.jit``) run on ranks of the CPU under the simulator: set ``NUMBA_ENABLE_CUDASIM=1`` before Numba is
  imported. The simulator runs one kernel at a time in a process, so that ranks are processes (``mpirun``,
  ``tranship launch``, ``tranship.launch(..., ranks="processes")``). Threads that diverge in an operation of their warp
  or block raise InvalidUse, which names both. While a thread waits for other ranks in a collective operation or a quiet,
  operations of the rank's other threads wait, too; signals and tests are waited for without that.
- Compiled functions (``@numba.njit``) call the same names; teams are passed as numbers, and values and statuses of several variables as numbers or arrays. Views of peers keep the array that they were made of,
  and are plain arrays in Python. Operations call the library without the interpreter. A function is called by the
  thread of its rank, is one thread to the forms of warps and blocks, and gives other threads of Python their turn while it
  waits. Errors are raised as from Python, outside of ``try`` in compiled code; as for all of Numba's functions, one that
  raises keeps references to its arguments. Operations belong outside of parallel loops: one that another thread of the
  loop was to make is not made, and the rank's next operation raises InvalidUse.

Arrays with strides are moved as they are, element by element.
"""

from . import amo, collective, direct, mem, rma, signal
from ._simulator import adapt
from .amo import *  # noqa: F403
from .collective import *  # noqa: F403
from .direct import *  # noqa: F403
from .mem import *  # noqa: F403
from .rma import *  # noqa: F403
from .signal import *  # noqa: F403

__all__: list[str] = []
__all__ += amo.__all__
__all__ += collective.__all__
__all__ += direct.__all__
__all__ += mem.__all__
__all__ += rma.__all__
__all__ += signal.__all__

adapt()
try:
    import numba as _numba  # noqa: F401
except ImportError:  # then nothing is compiled
    pass
else:
    from . import _compiled  # noqa: F401
