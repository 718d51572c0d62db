"""NVSHMEM4Py's names over tranship: symmetric memory, transfers, signals and collectives, on ranks of the CPU.

A program that was written for ``nvshmem.core`` runs with ``import tranship.nvshmem as nvshmem``. Ranks (PEs) are what
:func:`init` joins: processes that share a unique id, the ranks of an MPI communicator on one machine, those of
``tranship launch``, or those of :func:`tranship.launch`. Arrays are NumPy arrays in the symmetric heap, operations take
effect in the order of the program, and streams order nothing.

>>> import tranship as ts
>>> import tranship.nvshmem as nvshmem
>>> def main(world):
...     nvshmem.init()
...     me, n = nvshmem.my_pe(), nvshmem.n_pes()
...     inbox, mine = nvshmem.array((2,), "int32"), nvshmem.array((2,), "int32")
...     mine[:] = me
...     nvshmem.put(inbox, mine, remote_pe=(me + 1) % n)
...     nvshmem.barrier_all()
...     got = inbox.tolist()
...     nvshmem.free_array(inbox)
...     nvshmem.free_array(mine)
...     nvshmem.finalize()
...     return got
>>> ts.launch(3, main)
[[2, 2], [0, 0], [1, 1]]

What differs, on purpose: views with strides are moved as views, never flat. A dropped array is not freed behind the
program's back, which would be a collective call. A peer's array cannot be mistaken for a symmetric one. Every wait has
a deadline, and ends when a peer has failed.
"""

from . import core
from .core import _collectives, _memory, _runtime, _teams, _transfers, _types
from .core._collectives import *  # noqa: F403
from .core._memory import *  # noqa: F403
from .core._runtime import *  # noqa: F403
from .core._teams import *  # noqa: F403
from .core._transfers import *  # noqa: F403
from .core._types import *  # noqa: F403

__all__: list[str] = ["core"]
__all__ += _collectives.__all__
__all__ += _memory.__all__
__all__ += _runtime.__all__
__all__ += _teams.__all__
__all__ += _transfers.__all__
__all__ += _types.__all__
