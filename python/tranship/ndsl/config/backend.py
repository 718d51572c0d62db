"""The name of a back-end of NDSL, as its quantities carry it. The halo layer itself has no use for it."""

from __future__ import annotations

import enum

from ..._amounts import amount
from .._errors import HaloTypeError, HaloValueError

__all__ = [
    "Backend",
    "BackendFramework",
    "BackendLoopOrder",
    "BackendStrategy",
    "BackendTargetDevice",
    "backend_cpu",
    "backend_gpu",
    "backend_python",
]


class BackendStrategy(enum.Enum):
    """How a program is run: stencil by stencil, or as a whole."""

    STENCIL = "st"
    ORCHESTRATION = "orch"


class BackendFramework(enum.Enum):
    """The framework that makes the code."""

    GRIDTOOLS = "gt"
    DACE = "dace"
    PYTHON = "python"
    NUMPY = "numpy"


class BackendTargetDevice(enum.Enum):
    """Where it runs."""

    CPU = "cpu"
    GPU = "gpu"


class BackendLoopOrder(enum.Enum):
    """The order of its loops, the innermost one last."""

    IJK = "IJK"
    IKJ = "IKJ"
    JKI = "JKI"
    JIK = "JIK"
    KIJ = "KIJ"
    KJI = "KJI"


class Backend:
    """A name such as ``"st:numpy:cpu:IJK"``: strategy, framework, device and order of loops. Kept and compared; equal
    to its text.

    Raises
    ------
    ValueError
        For a name that has not these four parts.
    """

    def __init__(self, ndsl_backend: str) -> None:
        if not isinstance(ndsl_backend, str):
            raise HaloTypeError(f"the name of a back-end is a str, not a {type(ndsl_backend).__name__}")
        parts = ndsl_backend.split(":")
        kinds = (BackendStrategy, BackendFramework, BackendTargetDevice, BackendLoopOrder)
        if len(parts) != len(kinds):
            raise HaloValueError(
                f"Unknown {ndsl_backend}: a back-end has {amount(len(kinds), 'part')}, and this one {len(parts)}"
            )
        for kind, part in zip(kinds, parts):
            known = [str(one.value) for one in kind]
            if part not in known:
                raise HaloValueError(f"Unknown {ndsl_backend}: '{part}' is none of {', '.join(known)}")
        self._name = ndsl_backend
        self._strategy = BackendStrategy(parts[0])
        self._framework = BackendFramework(parts[1])
        self._device = BackendTargetDevice(parts[2])
        self._loop_order = BackendLoopOrder(parts[3])

    @staticmethod
    def python() -> Backend:
        """Python's own loops."""
        return backend_python

    @staticmethod
    def cpu() -> Backend:
        """The default back-end of NDSL on CPUs."""
        return backend_cpu

    @staticmethod
    def gpu() -> Backend:
        """The default back-end of NDSL on GPUs."""
        return backend_gpu

    @property
    def device(self) -> BackendTargetDevice:
        """Where it runs."""
        return self._device

    @property
    def framework(self) -> BackendFramework:
        """The framework that makes the code."""
        return self._framework

    @property
    def loop_order(self) -> BackendLoopOrder:
        """The order of its loops."""
        return self._loop_order

    def as_humanly_readable(self) -> str:
        """The name."""
        return self._name

    def as_safe_for_path(self) -> str:
        """The name with an underscore for each colon."""
        return self._name.replace(":", "_")

    def is_orchestrated(self) -> bool:
        """Returns True when a program is run as a whole."""
        return self._strategy is BackendStrategy.ORCHESTRATION

    def is_stencil(self) -> bool:
        """Returns True when a program is run stencil by stencil."""
        return self._strategy is BackendStrategy.STENCIL

    def is_gpu_backend(self) -> bool:
        """Returns True when arrays are in the memory of a GPU."""
        return self._device is BackendTargetDevice.GPU

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (str, Backend)):
            return self._name == str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._name)


backend_python = Backend("st:python:cpu:IJK")
"""Python's own loops."""

backend_cpu = Backend("orch:dace:cpu:IJK")
"""The default back-end of NDSL on CPUs."""

backend_gpu = Backend("orch:dace:gpu:KJI")
"""The default back-end of NDSL on GPUs."""
