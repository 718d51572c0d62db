"""Arrays with DLPack: jax and torch. test_interoperation.py runs this in a process of its own.

Both start threads when they are imported, and a process with threads should not be forked, as other tests do.
"""

import weakref

import numpy as np
import pytest
from neighbours import address_of, needs, numbers, turned

import tranship as ts


def jax_array(data):
    import jax.numpy

    return jax.numpy.asarray(data)


def torch_tensor(data):
    import torch

    return torch.from_numpy(data.copy())


DLPACK = [
    pytest.param(jax_array, id="jax", marks=needs("jax")),
    pytest.param(torch_tensor, id="torch", marks=needs("torch")),
]


@pytest.mark.parametrize("make", DLPACK)
def test_arrays_with_dlpack_are_moved_without_a_copy(make):
    theirs = make(numbers((4, 6), "f4"))

    def body(world):
        a = ts.wrap(world, ts.distribution((4, 6), (1, 1), "whole"), theirs)
        assert address_of(a.local) == address_of(np.from_dlpack(theirs))
        return np.array_equal(turned(world, theirs), numbers((4, 6), "f4"))

    assert ts.launch(1, body) == [True]


@needs("jax")
def test_arrays_of_jax_stay_read_only():
    theirs = jax_array(numbers((4, 6), "f4"))

    def body(world):
        d = ts.distribution((4, 6), (1, 1), "whole")
        a, b = ts.array(world, d, "f4"), ts.wrap(world, d, theirs)
        assert not b.local.flags.writeable
        with pytest.raises(ts.InvalidUse, match="const"):
            ts.Redistribution(a, b)

    ts.launch(1, body)
    assert np.array_equal(np.asarray(theirs), numbers((4, 6), "f4"))


@needs("jax")
def test_jax_sees_our_memory_and_keeps_it():
    import jax

    def body(world):
        a = ts.array(world, ts.distribution((16, 16), (1, 1)), "f4")
        a.fill(lambda i, j: i * 16 + j)
        theirs = jax.dlpack.from_dlpack(a)
        assert theirs.unsafe_buffer_pointer() == address_of(a.local)
        return theirs

    (theirs,) = ts.launch(1, body)
    assert float(jax.numpy.sum(theirs)) == 255 * 128  # after its world, and after the array


@needs("torch")
def test_torch_sees_our_memory_and_writes_it():
    import torch

    def body(world):
        a = ts.array(world, ts.distribution((4, 4), (1, 1)), "f4")
        theirs = torch.from_dlpack(a)
        assert theirs.data_ptr() == address_of(a.local)
        theirs[1, 1] = 5
        assert a.local[1, 1] == 5
        return theirs

    assert float(ts.launch(1, body)[0].sum()) == 5


@pytest.mark.parametrize("make", DLPACK)
def test_what_is_wrapped_lives_as_long_as_its_array(make):
    def body(world):
        theirs = make(numbers((64, 64), "f4"))
        died = []
        weakref.finalize(theirs, died.append, True)
        a = ts.wrap(world, ts.distribution((64, 64), (1, 1), "whole"), theirs)
        del theirs
        for _ in range(10):  # memory that was free would be used again
            make(np.zeros((64, 64), "f4"))
        assert np.array_equal(a.local, numbers((64, 64), "f4"))

    ts.launch(1, body)


@needs("jax")
def test_jax_computes_while_ranks_exchange():
    import jax

    def body(world):
        d = ts.distribution((32, 8), (world.size, 1), ["block", "whole"], overlap=[1, 0], edge="toroidal")
        u = ts.array(world, d, "f4")
        u.fill(lambda i, j: i + 0 * j)
        halo = ts.halo(u)
        step = jax.jit(lambda z: z[:-2] + z[2:])
        with halo:
            busy = jax.numpy.ones((64, 64)) @ jax.numpy.ones((64, 64))
        assert float(busy[0, 0]) == 64
        return np.asarray(step(jax.numpy.array(u.local)))[:, 0]

    i = np.arange(32)
    assert np.array_equal(np.concatenate(ts.launch(2, body)), (i - 1) % 32 + (i + 1) % 32)
