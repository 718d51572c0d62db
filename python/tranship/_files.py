"""Arrays in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Optional, Union

from . import _core
from ._core import ArraySpec, Distribution

__all__ = ["inspect", "picture", "reshard"]


def inspect(path: Union[str, os.PathLike[str]]) -> ArraySpec:
    """The layout of the array in a ``.npy`` file, in a member of a ``.npz`` file (``"data.npz:member"``), or in a
    directory of parts."""
    return _core.inspect_file(os.fspath(path))[0]


def reshard(
    source: Union[str, os.PathLike[str]],
    target: Union[str, os.PathLike[str]],
    *,
    to: Union[str, Distribution, ArraySpec],
    verify: bool = False,
    memory_bytes: int = 256 << 20,
    threads: int = 0,
    progress: Optional[Callable[[int, int], None]] = None,
) -> dict[str, Any]:
    """Moves an array in files into another layout, in bounded memory. The target appears complete or not at all.

    Parameters
    ----------
    to
        A distribution, or what stands behind the extents in a layout text: ``"@ 2x2 : block, block"``.
    verify
        Checks the checksums of the source, and compares the target with it before it is put in place.
    memory_bytes
        For what is on its way, 4 MiB at least.
    threads
        0: as many as cores, 8 at most.
    progress
        Called with bytes done and bytes in all. What it raises ends the work, and the target is as it was.

    Returns
    -------
    dict
        What was read and written, and the CRC-32 of each file.
    """
    path = os.fspath(source)
    if isinstance(to, ArraySpec):
        spec = to
    else:
        stored = inspect(path)
        spec = _core.placement(to, stored) if isinstance(to, str) else ArraySpec(stored.type, to)
    return _core.reshard(path, os.fspath(target), spec, verify, memory_bytes, threads, progress)


def picture(spec: ArraySpec, *, form: str = "text") -> str:
    """Who owns what: as characters, or as an SVG document (``form="svg"``)."""
    if form not in ("text", "svg"):
        raise ValueError(f"form='{form}': needs 'text' or 'svg'")
    return _core.picture_svg(spec) if form == "svg" else _core.picture_text(spec)
