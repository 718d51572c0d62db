"""A module with CuPy's names and manners, whose arrays lie on the host: what NumPy may not touch, it refuses."""

import sys
import types

import numpy as np


class ndarray:
    """An array of the device: only functions of the module and of its own read it, and nothing converts it."""

    def __init__(self, inner):
        self._inner = inner

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __getattr__(self, name):
        if name in ("shape", "dtype", "strides", "itemsize", "size", "nbytes", "ndim", "flags"):
            return getattr(self._inner, name)
        raise AttributeError(name)

    def __len__(self):
        return len(self._inner)

    def __getitem__(self, index):
        return ndarray(self._inner[index])

    def __setitem__(self, index, value):
        if isinstance(value, np.ndarray):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        self._inner[index] = value._inner if isinstance(value, ndarray) else value

    def __neg__(self):
        return ndarray(-self._inner)

    def __deepcopy__(self, memo):
        return ndarray(self._inner.copy())

    def reshape(self, *shape):
        return ndarray(self._inner.reshape(*shape))

    def swapaxes(self, one, other):
        return ndarray(self._inner.swapaxes(one, other))

    def transpose(self, *axes):
        return ndarray(self._inner.transpose(*axes))

    def get(self):
        return self._inner.copy()

    def set(self, array):
        if not self._inner.flags.c_contiguous:
            raise RuntimeError("Cannot set to non-contiguous array")
        self._inner[...] = array


class CUDARuntimeError(RuntimeError):
    pass


class _Stream:
    def __init__(self, non_blocking=False):
        pass

    def wait_event(self, event):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def synchronize(self):
        pass


def _negative(x, out=None):
    if out is None:
        return -x
    if not isinstance(out, ndarray):
        raise TypeError("Unsupported type of out")
    np.negative(x._inner, out=out._inner)
    return out


def module(devices):
    """The module, with ``devices`` devices. ``calls`` lists the calls that it gets."""
    cupy = types.ModuleType("cupy")
    calls = []

    def synchronize():
        calls.append("deviceSynchronize")
        if devices == 0:
            raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    def count():
        calls.append("getDeviceCount")
        if devices == 0:
            raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return devices

    cupy.ndarray = ndarray
    cupy.calls = calls
    cupy.empty = cupy.zeros = lambda shape, dtype=float: ndarray(np.zeros(shape, dtype))
    cupy.asarray = lambda array: array if isinstance(array, ndarray) else ndarray(np.array(array))
    cupy.negative = _negative
    stream = types.SimpleNamespace(record=lambda: None)
    cupy.cuda = types.SimpleNamespace(
        runtime=types.SimpleNamespace(getDeviceCount=count, deviceSynchronize=synchronize),
        get_current_stream=lambda: stream,
        Stream=_Stream,
    )
    return cupy


def install(monkeypatch, devices):
    """Puts the module where ``import cupy`` finds it."""
    cupy = module(devices)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(ndarray, "__module__", "cupy")
    return cupy
