"""Arrays in files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Optional, Union

import numpy as np

from . import _core
from ._core import ArraySpec, Distribution
from ._elements import element_type
from ._errors import InvalidUse
from ._layouts import distribution

__all__ = ["inspect", "picture", "reshard"]


def inspect(path: Union[str, os.PathLike[str]]) -> ArraySpec:
    """The layout of the array in a ``.npy`` file, in a member of a ``.npz`` file (``"data.npz:member"``), or in a
    directory of parts."""
    return _core.inspect_file(os.fspath(path))[0]


def reshard(
    source: Any,
    target: Union[str, os.PathLike[str]],
    *,
    to: Union[str, Distribution, ArraySpec],
    verify: bool = False,
    memory_bytes: int = 0,
    threads: int = 0,
    progress: Optional[Callable[[int, int], None]] = None,
) -> dict[str, Any]:
    """Moves an array into another layout in files, in bounded memory. The target appears complete or not at all.

    Parameters
    ----------
    source
        A path; or an array that is sliced like NumPy's and has ``shape`` and ``dtype``: of NumPy, Dask, xarray, Zarr or
        h5py. Of an array, only as much is read at a time as fits in the memory, along its ``chunks`` where it has any;
        a chunk is read again for each block of the target that needs it (of Dask: computed again).
    to
        A distribution, or what stands behind the extents in a layout text: ``"@ 2x2 : block, block"``.
    verify
        Checks the checksums of the source, and compares the target with it before it is put in place.
    memory_bytes
        For what is on its way, 4 MiB at least; 0: 256 MiB, halved until that is available. What an array needs to
        give a slice is not counted.
    threads
        0: as many as cores, 8 at most.
    progress
        Called with bytes done and bytes in all. What it raises ends the work, and the target is as it was.

    Returns
    -------
    dict
        What was read and written, and the CRC-32 of each file.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> report = reshard(np.arange(12.0).reshape(3, 4), os.path.join(folder, "parts"), to="@ 1x2 : whole, block")
    >>> np.load(os.path.join(folder, "parts", "part-00001.npy"))[0]
    array([2., 3.])
    """
    if not isinstance(source, (str, bytes, os.PathLike)):
        return _reshard_array(source, os.fspath(target), to, verify, memory_bytes, threads, progress)
    path = os.fsdecode(source)
    spec = _spec_of(to, None if isinstance(to, ArraySpec) else inspect(path))
    return _core.reshard(path, os.fspath(target), spec, verify, memory_bytes, threads, progress)


def _spec_of(to: Union[str, Distribution, ArraySpec], stored: Optional[ArraySpec]) -> ArraySpec:
    if isinstance(to, ArraySpec):
        return to
    assert stored is not None
    return _core.placement(to, stored) if isinstance(to, str) else ArraySpec(stored.type, to)


def _reshard_array(
    source: Any,
    target: str,
    to: Union[str, Distribution, ArraySpec],
    verify: bool,
    memory_bytes: int,
    threads: int,
    progress: Optional[Callable[[int, int], None]],
) -> dict[str, Any]:
    try:
        shape, dtype = tuple(int(n) for n in source.shape), np.dtype(source.dtype)
    except (AttributeError, TypeError):
        raise InvalidUse(
            f"a {type(source).__name__} is no source: needs a path, or an array with shape, dtype and slices"
        ) from None
    if not shape:
        raise InvalidUse("an array of 0 dimensions has no layout: needs 1 or more")
    stored = ArraySpec(element_type(dtype), distribution(shape, (1,) * len(shape), "whole"))

    def read(lower: tuple[int, ...], upper: tuple[int, ...], memory: Any) -> None:
        given = source[tuple(map(slice, lower, upper))]
        if np.ma.is_masked(given):
            raise InvalidUse("a slice of the source has masked elements, and files have no masks: see its .filled()")
        box = np.asarray(given)
        into = np.asarray(memory)
        if box.shape != into.shape or box.dtype != dtype:
            raise InvalidUse(f"a slice of the source is {box.dtype}{list(box.shape)}, not {dtype}{list(into.shape)}")
        into[...] = box.view(into.dtype) if box.dtype != into.dtype else box

    return _core.reshard_boxes(
        stored, _chunk_of(source, shape), read, target, _spec_of(to, stored), verify, memory_bytes, threads, progress
    )


def _chunk_of(source: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of its first chunk (a tuple of extents, or Dask's tuples of those of all chunks), or of all of it."""
    chunks = getattr(source, "chunks", None)
    if not isinstance(chunks, tuple) or len(chunks) != len(shape):
        return shape
    return tuple(int(max(c, default=0) if isinstance(c, tuple) else c) for c in chunks)


def picture(spec: ArraySpec, *, form: str = "text") -> str:
    """Who owns what: as characters, or as an SVG document (``form="svg"``)."""
    if form not in ("text", "svg"):
        raise ValueError(f"form='{form}': needs 'text' or 'svg'")
    return _core.picture_svg(spec) if form == "svg" else _core.picture_text(spec)
