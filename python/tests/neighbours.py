"""Functions that tests with other libraries share."""

import importlib.util

import numpy as np
import pytest

import tranship as ts


def needs(*packages):
    """Skips where a package is missing, and says which."""
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}: pip install {' '.join(missing)}")


def address_of(array):
    return array.__array_interface__["data"][0]


def numbers(shape, dtype="f8"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def turned(world, data):
    """Returns the result of a redistribution from ``data``, rows of rank 0, to a whole copy on rank 0."""
    d = ts.distribution(data.shape, (1,) * data.ndim, "whole")
    a, b = ts.wrap(world, d, data), ts.array(world, d, dtype=np.asarray(data).dtype)
    ts.Redistribution(a, b)()
    return b.local
