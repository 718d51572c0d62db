"""One table of element types: what one call takes, all others take, and what one refuses, all refuse."""

import numpy as np
import pytest

import tranship as ts
from tranship import nvshmem
from tranship import pyop3 as op3

PARTICLE = np.dtype([("position", "f8", (3,)), ("charge", "i4"), ("kind", "S4")], align=True)
PACKED = np.dtype([("flag", "u1"), ("value", "f4")])
RECORD = np.dtype((np.record, [("time", "M8[ns]"), ("level", "i2")]))
TIMES = [np.dtype(name) for name in ("M8[s]", "M8[ns]", "m8[us]", "m8")]
MOVED_AS_BYTES = [PARTICLE, PACKED, RECORD, *TIMES]
NUMBERS = ["?", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8", "g", "c8", "c16", "G"]
REFUSED = ["O", ">M8[s]", ">f8", "S5", "U3", "V6", [("o", "O")]]


def bfloat16():
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def elements(dtype, shape=(6, 4), seed=1):
    """Different elements of any dtype."""
    count = int(np.prod(shape))
    if dtype.kind in "mM":
        return (np.arange(count) * 10**9 + seed).astype("i8").view(dtype).reshape(shape)
    if dtype.names is not None:
        out = np.zeros(count, dtype)
        for n, name in enumerate(dtype.names):
            field = out[name]
            field[...] = (np.arange(field.size) * 3 + n + seed).reshape(field.shape).astype("u1").astype(field.dtype)
        return out.reshape(shape)
    return ((np.arange(count) * 7 + seed) % 5).astype(dtype).reshape(shape)


def equal(a, b):
    """Also where parts of structs are not used."""
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    return bool(np.all(a == b))


def through_array(world, data):
    rows, columns = (ts.distribution(data.shape, g) for g in ((world.size, 1), (1, world.size)))
    a = ts.array(world, rows, data.dtype)
    for cells, view in a.slices():
        view[...] = data[cells]
    assert a.dtype == data.dtype and a.shape == data.shape
    b = ts.redistribute(a, columns)
    back = ts.array(world, rows, data.dtype)
    ts.Redistribution(b, back)()
    assert all(equal(view, data[cells]) for cells, view in back.slices())
    assert equal(np.asarray(b), b.local)
    return ts.gather(b)


def through_wrap(world, data):
    rows, columns = (ts.distribution(data.shape, g) for g in ((world.size, 1), (1, world.size)))
    a = ts.wrap(world, rows, np.array_split(data, world.size)[world.rank][:, ::-1].copy()[:, ::-1])
    b = ts.wrap(world, columns, world.zeros(columns.local_extents(world.rank), data.dtype))
    ts.Redistribution(a, b)()
    return ts.gather(b)


def through_halo(world, data):
    ring = ts.distribution(data.shape, (world.size, 1), overlap=[1, 0], edge="toroidal")
    a = ts.array(world, ring, data.dtype)
    for cells, view in a.slices():
        view[...] = data[cells]
    ts.halo(a)()
    [one] = ring.slices(world.rank)
    stored = np.take(data, np.arange(one["stored"][0].start, one["stored"][0].stop), axis=0, mode="wrap")
    assert equal(a.local, stored)
    assert a.count_wrong(lambda i, j: data[i % data.shape[0], j]) == 0
    return data


def through_leases(world, data):
    devices = ts.Devices(fake=1)
    ring = ts.distribution(data.shape, (world.size, 1), overlap=[1, 0], edge="toroidal")
    a = ts.array(world, ring, data.dtype, devices=devices)
    [one] = ring.slices(world.rank)
    with a.write(device="fake:0") as there:
        assert there.dtype == data.dtype
        there[one["local_owned"]] = data[one["owned"]]
    with a.read("stored") as here:
        stored = np.take(data, np.arange(one["stored"][0].start, one["stored"][0].stop), axis=0, mode="wrap")
        assert equal(here, stored)
    return data


def through_pipe(world, data):
    last = ts.grid(1, 1, ranks=[world.size - 1])
    pipe = ts.Pipe(world, ts.distribution(data.shape, (world.size, 1)), ts.distribution(data.shape, last), dtype=data.dtype)
    with pipe.sender as out:
        for cells, view in out.slices():
            view[...] = data[cells]
    got = data
    if pipe.receives:
        with pipe.receiver as frame:
            got = frame.local.copy()
    pipe.sender.drain()
    return got


def through_buffer(world, data):
    devices = ts.Devices(fake=1)
    x, y = ts.Buffer(data.shape, data.dtype, devices=devices), ts.Buffer(data=data.copy(), devices=devices)
    assert x.shape == data.shape and x.dtype == data.dtype
    with x.write("fake:0") as a, y.read() as b:
        a[...] = b
    with y.read_write("fake:0", slice(0, 2)) as a:
        assert equal(a[:2], data[:2])
        a[:2] = data[:2]
    assert equal(y.duplicate().read().array, data)
    return x.read().array


def through_symmetric(world, data):
    x, y = ts.symmetric(world, data.shape, data.dtype), ts.symmetric(world, data.shape, data.dtype)
    assert x.dtype == data.dtype and x.shape == data.shape
    after = (world.rank + 1) % world.size
    x[1:, ::2].put(data[1:, ::2], after)
    x[0].put(data[0], after)
    x[1:, 1::2].put(data[1:, 1::2].copy(), after)
    world.barrier()
    assert equal(x.local, data)
    y.put(x, after)
    world.barrier()
    into = np.empty(data.shape[1], data.dtype)
    assert y[2].get(after, into) is into and equal(into, data[2])
    assert equal(x[-1, 2].local, data[-1:, 2])
    got = y.get(after)
    world.barrier()
    return got


def through_nvshmem(world, data):
    nvshmem.init()
    x = nvshmem.array(data.shape, data.dtype)
    assert x.dtype == data.dtype and x.shape == data.shape
    after = (world.rank + 1) % world.size
    nvshmem.put(x, np.ascontiguousarray(data), after)
    nvshmem.barrier_all()
    got = np.empty_like(data)
    nvshmem.get(got, x, after)
    nvshmem.barrier_all()
    nvshmem.free_array(x)
    nvshmem.finalize()
    return got


def through_pyop3(world, data):
    x = op3.ArrayBuffer(data.reshape(-1).copy())
    with op3.offloading(op3.FakeGPU()):
        x.data_rw[0] = data[0, 0]
    return x.data_ro.reshape(data.shape)


NUMBERS_ONLY = [through_nvshmem]
ENTRIES = [through_array, through_wrap, through_halo, through_leases, through_pipe, through_buffer, through_symmetric,
           through_nvshmem, through_pyop3]


@pytest.mark.parametrize("through", ENTRIES, ids=lambda f: f.__name__)
def test_every_type_goes_through_every_entry(through):
    dtypes = [np.dtype(name) for name in NUMBERS] + MOVED_AS_BYTES

    def body(world):
        for dtype in dtypes:
            if dtype in MOVED_AS_BYTES and through in NUMBERS_ONLY:
                continue
            data = elements(dtype)
            got = through(world, data)
            assert got is None or equal(np.asarray(got), data), dtype
            world.barrier()

    ts.launch(2, body)


@pytest.mark.parametrize("through", ENTRIES, ids=lambda f: f.__name__)
def test_bfloat16_goes_through_every_entry(through):
    data = elements(bfloat16())

    def body(world):
        got = through(world, data)
        assert got is None or equal(np.asarray(got), data)
        world.barrier()

    ts.launch(2, body)


@pytest.mark.parametrize("dtype", REFUSED, ids=str)
def test_what_one_entry_refuses_all_refuse(dtype):
    def body(world):
        d = ts.distribution((4,), (1,))
        data = np.zeros(4, dtype)
        for call in (
            lambda: ts.array(world, d, dtype),
            lambda: ts.wrap(world, d, data),
            lambda: ts.Pipe(world, d, d, dtype=dtype),
            lambda: ts.Buffer(4, dtype),
            lambda: ts.Buffer(data=data),
            lambda: ts.symmetric(world, 4, dtype),
            lambda: op3.ArrayBuffer(data),
        ):
            with pytest.raises(ts.InvalidUse, match="dtype"):
                call()

    ts.launch(1, body)


@pytest.mark.parametrize("dtype", MOVED_AS_BYTES, ids=str)
def test_what_is_moved_as_bytes_is_not_computed_with(dtype):
    def body(world):
        d = ts.distribution((4,), (1,), overlap=1, edge="toroidal")
        a = ts.array(world, d, dtype)
        x = ts.symmetric(world, 4, dtype)
        for call in (
            lambda: a.accumulate(),
            lambda: ts.halo(a, adjoint=True),
            lambda: ts.halo(a, adjoint=True, combine="min", depth=1),
            lambda: ts.RedistributionAdjoint(a, ts.array(world, d, dtype)),
            lambda: ts.Buffer(4, dtype).accumulate(),
            lambda: ts.Buffer(4, dtype).open("accumulate"),
            lambda: x.all_reduce(),
            lambda: x[:1].add(0, 1),
            lambda: x[:1].wait_until("==", 1),
        ):
            with pytest.raises(ts.InvalidUse, match="moved as bytes"):
                call()

    ts.launch(1, body)


def test_dates_are_filled_counted_and_looked_at():
    def body(world):
        d = ts.distribution(6, world.size, overlap=1, edge="toroidal")
        a = ts.array(world, d, "M8[D]")
        a.fill(lambda i: np.datetime64("2026-11-27") + i)
        ts.halo(a)()
        assert a.count_wrong(lambda i: np.datetime64("2026-11-27") + i) == 0
        assert a.count_wrong(np.datetime64("NaT")) == a.local.size
        assert a.dtype == np.dtype("M8[D]") and np.asarray(a).dtype == a.dtype
        first = np.datetime64("2026-11-27") + d.slices(world.rank)[0]["owned"][0].start
        assert a.owned()[0] == first and a.owned()[0] - a.local[0] in (np.timedelta64(1, "D"), np.timedelta64(-5, "D"))
        b = ts.array(world, d, "M8[s]")
        with pytest.raises(ts.Mismatch, match="do not move to elements of"):
            ts.Redistribution(a, b)

    ts.launch(2, body)


def test_structs_of_one_size_with_other_fields_are_not_alike(run):
    floats, integers = [("x", "f4")], [("y", "i4")]

    def body(world):
        d = ts.distribution(4, world.size)
        u, v = ts.array(world, d, floats), ts.array(world, d, integers)
        with pytest.raises(ts.Mismatch, match="do not move to elements of"):
            ts.Redistribution(u, v)
        with pytest.raises(ts.Mismatch, match="do not move to elements of"):
            ts.Pipe(world, [u], [v], buffers=1)
        ts.Redistribution(u, ts.array(world, d, floats))()

    run(2, body)


def test_buffers_of_memory_without_cells():
    for shape in ((0, 3), (3, 0), (0,)):
        with ts.Buffer(data=np.zeros(shape)).read() as a:
            assert a.shape == shape


def test_arrays_of_no_dimensions():
    def body(world):
        for dtype in (np.dtype("f4"), PARTICLE):
            one = elements(dtype, (1,)).reshape(())
            x = ts.symmetric(world, (), dtype)
            assert x.shape == () and x[()].shape == ()
            x.put(one, (world.rank + 1) % world.size)
            world.barrier()
            assert equal(x.local, one) and equal(x.get(0), one)
            b = ts.Buffer((), dtype, devices=ts.Devices(fake=1))
            with b.write("fake:0") as a:
                a[...] = one
            with b.read() as a:
                assert equal(a, one)
            assert ts.Buffer(data=one.copy()).shape == ()
            assert world.zeros((), dtype).shape == ()
            world.barrier()

    ts.launch(2, body)


def test_bfloat16_is_never_two_bytes():
    dtype = bfloat16()

    def body(world):
        a = ts.array(world, ts.distribution((4,), (1,)), dtype)
        a.fill(3)
        assert a.dtype == np.asarray(a).dtype == np.array(a).dtype == dtype
        assert np.asarray(a).tolist() == [3] * 4 and np.shares_memory(np.asarray(a), a.local)
        assert not hasattr(a, "__array_interface__")
        for refused in (memoryview, np.from_dlpack):  # neither of Python's nor of NumPy's has such a type
            with pytest.raises((ValueError, BufferError, TypeError, RuntimeError)):
                refused(a)
        x = ts.symmetric(world, 2, dtype)
        assert x.local.dtype == x[:1].local.dtype == x.get(0).dtype == dtype
        assert nvshmem is not None

    ts.launch(1, body)


@pytest.mark.parametrize("whole", [(), (3,), (2, 3)])
@pytest.mark.parametrize("numbered", [(12,), (3, 4)])
def test_indexed_arrays_are_filled_and_checked(run, numbered, whole):
    def body(world):
        count, size = int(np.prod(numbered)), world.size
        owned = [list(range(r, count, size)) for r in range(size)]
        ghosts = [[(r + 1) % size, (r + 1) % size + size] if size > 1 else [] for r in range(size)]
        d = ts.indexed(numbered + whole, list(zip(owned, ghosts)), indexed_dims=len(numbered))
        a = ts.array(world, d, "i8")
        everything = np.arange(np.prod(numbered + whole)).reshape(numbered + whole)
        a.fill(lambda *cells: everything[cells])
        [(cells, view)] = a.slices()
        assert np.array_equal(everything[cells], view) and np.shares_memory(view, a.local)
        assert a.owned().shape == (len(owned[world.rank]),) + whole
        inner = int(np.prod(whole))
        zero = sum(0 in np.atleast_1d(everything[np.unravel_index(i, numbered)]) for i in ghosts[world.rank])
        assert a.count_wrong(lambda *cells: everything[cells]) == len(ghosts[world.rank]) * inner - zero
        ts.halo(a)()
        assert a.count_wrong(lambda *cells: everything[cells]) == 0
        a.fill(5)
        assert np.all(a.owned() == 5)
        with pytest.raises(ts.InvalidUse):
            a.owned(1)
        world.barrier()

    run(2, body)


def test_a_rank_without_ids_has_no_slices():
    def body(world):
        a = ts.array(world, ts.indexed(3, [([0, 1, 2], []), ([], [])]))
        a.fill(lambda i: i + 1)
        assert a.count_wrong(lambda i: i + 1) == 0
        assert a.owned().size == (3, 0)[world.rank] and len(a.slices()) == (1, 0)[world.rank]

    ts.launch(2, body)
