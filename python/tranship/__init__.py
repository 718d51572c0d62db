"""tranship moves array data between distributed memories and devices.

Say where an array is and where it must be, plan once, and run as often as you like:

>>> import tranship as ts
>>> def main(world):
...     rows = ts.distribution((8, 6), grid=(2, 1))
...     columns = ts.distribution((8, 6), grid=(1, 2))
...     a = ts.array(world, rows)
...     a.fill(lambda i, j: 10 * i + j)
...     b = ts.redistribute(a, columns)
...     return float(b.local[7, 0])
>>> ts.launch(2, main)
[70.0, 73.0]
"""

from . import _arrays, _buffers, _errors, _files, _layouts, _pictures, _pipes, _programs, _symmetric, _tracing, _worlds
from ._arrays import *  # noqa: F403
from ._buffers import *  # noqa: F403
from ._errors import *  # noqa: F403
from ._files import *  # noqa: F403
from ._layouts import *  # noqa: F403
from ._pictures import *  # noqa: F403
from ._pipes import *  # noqa: F403
from ._programs import *  # noqa: F403
from ._symmetric import *  # noqa: F403
from ._tracing import *  # noqa: F403
from ._worlds import *  # noqa: F403

__version__ = "0.1.0"
__all__: list[str] = []
__all__ += _arrays.__all__
__all__ += _buffers.__all__
__all__ += _errors.__all__
__all__ += _files.__all__
__all__ += _layouts.__all__
__all__ += _pictures.__all__
__all__ += _pipes.__all__
__all__ += _programs.__all__
__all__ += _symmetric.__all__
__all__ += _tracing.__all__
__all__ += _worlds.__all__
