"""The name of a back-end of NDSL, as its quantities carry it. The halo layer itself has no use for it."""

from __future__ import annotations

import dataclasses

__all__ = ["Backend"]


@dataclasses.dataclass(frozen=True)
class Backend:
    """A name such as ``"st:numpy:cpu:IJK"``: whatever the program gives, kept and compared."""

    as_humanly_readable: str = "st:numpy:cpu:IJK"

    @classmethod
    def python(cls) -> Backend:
        """NumPy on the host."""
        return cls()

    def is_gpu_backend(self) -> bool:
        """Whether the name says that arrays are in the memory of a GPU."""
        return ":gpu:" in self.as_humanly_readable

    def __str__(self) -> str:
        return self.as_humanly_readable
