"""Names of back-ends."""

from .backend import (
    Backend,
    BackendFramework,
    BackendLoopOrder,
    BackendStrategy,
    BackendTargetDevice,
    backend_cpu,
    backend_gpu,
    backend_python,
)

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
