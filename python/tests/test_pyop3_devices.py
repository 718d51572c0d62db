"""Devices that a program writes in Python: their arrays, what is copied, and what a wrong one leads to."""

import gc
import threading

import numpy as np
import pytest

import tranship as ts
from tranship import pyop3 as op3


class Arena(op3.Device):
    """Memory of its own, in which arrays lie one after the other. Counts what is done."""

    def __init__(self, number, size_bytes=1 << 16):
        self.name = f"arena:{number}"
        self.memory = memoryview(bytearray(size_bytes))
        self.free = [(0, size_bytes)]
        self.arrays = []
        self.copies = []

    def asarray(self, array, *, constant=False):
        out = self.allocate(array.size, array.dtype)
        out[:] = array
        out.flags.writeable = not constant
        return out

    def zeros_like(self, array):
        return self.asarray(np.zeros_like(array))

    def allocate(self, size, dtype):
        for i, (first, end) in enumerate(self.free):
            stop = first + -(-size * dtype.itemsize // 16) * 16
            if stop <= end:
                self.free[i] = (stop, end)
                out = np.frombuffer(self.memory[first : first + size * dtype.itemsize], dtype)
                self.arrays.append(out)
                return out
        raise MemoryError(f"{self.name} is full")

    def copy_from_host(self, target, source):
        self.copies.append(("in", source.size))
        target[:] = source

    def copy_to_host(self, target, source):
        self.copies.append(("out", source.size))
        target[:] = source


_numbers = iter(range(1000))


@pytest.fixture(autouse=True)
def devices_of_its_own():
    """A process can have 64 memories, and devices stay."""
    op3._devices.cache_clear()
    op3._own_devices.clear()


@pytest.fixture
def arena():
    return Arena(next(_numbers))


def copied(device):
    return [c for c in op3._devices().copies if device.name in (c["source"], c["target"])]


def test_a_device_makes_its_arrays_and_copies_them(arena):
    x = op3.ArrayBuffer(np.arange(10.0), name="x")
    assert x.state[arena] == -1
    with op3.offloading(arena):
        assert arena.arrays == []  # moves nothing
        a = x.data_rw
        assert len(arena.arrays) == 1 and np.shares_memory(a, arena.arrays[0])
        assert np.shares_memory(a, np.frombuffer(arena.memory, "u1")) and a.tolist() == list(range(10))
        assert arena.copies == [("in", 10)]
        a += 1
        assert x.state[arena] == 1 and x.state[op3.HOST] == 0 and x.last_updated_device == arena
    assert x.data_ro.tolist() == list(range(1, 11))
    assert arena.copies == [("in", 10), ("out", 10)]
    assert [(c["source"], c["target"], c["bytes"]) for c in copied(arena)] == [
        ("host", arena.name, 80),
        (arena.name, "host", 80),
    ]
    with op3.offloading(arena):
        assert x.data_ro[0] == 1 and not x.data_ro.flags.writeable
    assert len(arena.copies) == 2 and len(arena.arrays) == 1  # its copy was kept
    with pytest.raises(ValueError):
        a[0] = 5  # handed out before


def test_zeros_whole_writes_and_other_devices(arena):
    x = op3.ArrayBuffer(size=6, dtype="i4")
    with op3.offloading(arena):
        assert x.data_ro.tolist() == [0] * 6
        x.data_wo[:] = 4
    other, fake = Arena(next(_numbers)), op3.FakeGPU(3)
    with op3.offloading(fake):
        assert x.data_ro.tolist() == [4] * 6
    with op3.offloading(other):
        x.data_rw[1] = 5
    with op3.offloading(arena):
        assert x.data_ro.tolist() == [4, 5, 4, 4, 4, 4]
    assert op3.on_host(lambda: x.data_ro.tolist())() == [4, 5, 4, 4, 4, 4]
    empty = op3.ArrayBuffer(size=0)
    with op3.offloading(arena):
        assert empty.data_rw.size == 0


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4", "f8", "c16", "g", "G", "?"])
@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_types_and_strides(arena, dtype, step):
    mine = np.arange(24).astype(dtype)
    x = op3.ArrayBuffer(mine[::step])
    want = mine[::step].copy()
    with op3.offloading(arena):
        a = x.data_rw
        assert a.tolist() == want.tolist()
        a[1:3] = want[1:3] = a[2:4].copy()
    assert x.data_ro.tolist() == want.tolist()
    assert mine[::step].tolist() == want.tolist()


def test_duplicates_and_loops(arena):
    x = op3.ArrayBuffer(np.ones(5), name="x")
    with op3.offloading(arena):
        with x.access(op3.RW) as a:
            a += 1
            with x.access(op3.READ) as b:
                assert b.tolist() == [2] * 5 and not b.flags.writeable
        y = x.duplicate(copy=True)
        y.data_rw[:] = 7
        with x.access(op3.INC) as a:
            a += 1
    assert x.data_ro.tolist() == [3] * 5 and y.data_ro.tolist() == [7] * 5


def test_leaves_alone_are_copied(run):
    first = next(_numbers)
    for _ in range(2):
        next(_numbers)

    def body(world):
        device = Arena(first + world.rank)
        n, r, size = 4, world.rank, world.size
        sf = op3.StarForest(world, range(n * r, n * (r + 1)), [n * ((r + 1) % size), (n * r - 1) % (n * size)])
        x = op3.ArrayBuffer(np.zeros(6), sf)
        with op3.offloading(device):
            x.data_rw[:4] = np.arange(n * r, n * (r + 1))
            assert x.data_ro[4:].tolist() == [n * ((r + 1) % size), (n * r - 1) % (n * size)]
            with x.access(op3.INC) as a:
                a[4:] += 100
            assert x.data_ro.tolist()[:4] == [n * r + 100, n * r + 1, n * r + 2, n * r + 103]
        # Only the cells that other ranks changed were copied to the device.
        assert all(size <= 4 for way, size in device.copies[1:] if way == "in")

    run(3, body)


def test_a_device_is_known_by_its_name(arena):
    x = op3.ArrayBuffer(np.ones(3))
    with op3.offloading(arena):
        x.data_rw[:] = 2
    twin = Arena(int(arena.name.partition(":")[2]))
    with op3.offloading(twin):
        assert x.data_ro.tolist() == [2] * 3
    assert twin.arrays == []  # the first object is the device

    class Other(Arena):
        pass

    with op3.offloading(Other(int(arena.name.partition(":")[2]))):
        with pytest.raises(ts.InvalidUse, match=f"'{arena.name}' of class Other is another one than that of class Arena"):
            x.data_ro


@pytest.mark.parametrize("name", ["fake:0", "host", "host:0", "arena", "Arena:0", "a b:0", "arena:", "arena:-1", "arena:x", 7])
def test_wrong_names_are_refused(name):
    class Named(Arena):
        def __init__(self):
            super().__init__(0)
            self.name = name

    x = op3.ArrayBuffer(np.ones(3))
    with op3.offloading(Named()):
        for access in ("data_ro", "data_rw", "data_wo"):
            with pytest.raises(ts.InvalidUse, match="name|call"):
                getattr(x, access)
    assert x.data_ro.tolist() == [1] * 3


# Devices that do something wrong: errors are clear, and nothing is lost.


class Fault(Exception):
    pass


def test_a_copy_that_raises_loses_nothing(arena):
    fails = []

    class Failing(Arena):
        def copy_from_host(self, target, source):
            if "in" in fails:
                target[: source.size // 2] = -1
                raise Fault("cable")
            super().copy_from_host(target, source)

        def copy_to_host(self, target, source):
            if "out" in fails:
                target[: source.size // 2] = -1
                raise Fault("cable")
            super().copy_to_host(target, source)

    device = Failing(next(_numbers))
    x = op3.ArrayBuffer(np.arange(4.0), name="x")
    fails.append("in")
    with op3.offloading(device):
        with pytest.raises(Fault, match="cable") as caught:
            x.data_rw
        if hasattr(caught.value, "add_note"):
            assert caught.value.__notes__ == [f"raised by device '{device.name}' in copy_from_host of float64[4]"]
    assert x.data_ro.tolist() == [0, 1, 2, 3]
    fails.clear()
    with op3.offloading(device):
        x.data_rw[:] += 10
    fails.append("out")
    for _ in range(2):
        with pytest.raises(Fault):
            x.data_ro
    with op3.offloading(arena), pytest.raises(Fault):
        x.data_rw
    with op3.offloading(device):
        assert x.data_ro.tolist() == [10, 11, 12, 13]
    fails.clear()
    assert x.data_ro.tolist() == [10, 11, 12, 13]
    with op3.offloading(arena):
        assert x.data_ro.tolist() == [10, 11, 12, 13]


@pytest.mark.parametrize(
    "made,said",
    [
        (lambda size, dtype: np.zeros(size + 1, dtype), r"float64\[5\], not float64\[4\]"),
        (lambda size, dtype: np.zeros(size - 1, dtype), r"float64\[3\], not float64\[4\]"),
        (lambda size, dtype: np.zeros((size, 1), dtype), r"float64\[4, 1\], not float64\[4\]"),
        (lambda size, dtype: np.zeros(size, "f4"), r"float32\[4\], not float64\[4\]"),
        (lambda size, dtype: np.zeros(size, "i8"), r"int64\[4\], not float64\[4\]"),
        (lambda size, dtype: [0.0] * size, "a list, which has no shape and dtype"),
        (lambda size, dtype: None, "a NoneType"),
        (lambda size, dtype: np.broadcast_to(np.zeros(1, dtype), size), "read-only"),
    ],
)
def test_wrong_arrays_are_refused(made, said):
    class Wrong(Arena):
        def allocate(self, size, dtype):
            return made(size, dtype)

    device = Wrong(next(_numbers))
    x = op3.ArrayBuffer(np.arange(4.0), name="x")
    with op3.offloading(device):
        for access in ("data_ro", "data_rw", "data_wo"):
            with pytest.raises(ts.InvalidUse, match=rf"{device.name}.*allocate\(4, float64\).*{said}"):
                getattr(x, access)
    assert x.data_ro.tolist() == [0, 1, 2, 3] and x.state[device] == -1


def test_one_array_for_two_copies_is_refused():
    class Same(Arena):
        def allocate(self, size, dtype):
            return self.memory_of(size, dtype)

        def memory_of(self, size, dtype):
            return np.frombuffer(self.memory[: size * dtype.itemsize], dtype)

    device = Same(next(_numbers))
    x, y = op3.ArrayBuffer(np.ones(4)), op3.ArrayBuffer(np.zeros(4))
    with op3.offloading(device):
        x.data_rw[:] = 3
        with pytest.raises(ts.InvalidUse, match="that is in use"):
            y.data_ro
    assert x.data_ro.tolist() == [3] * 4 and y.data_ro.tolist() == [0] * 4


def test_a_full_device_lets_clean_copies_go():
    class Small(Arena):
        def __init__(self, number):
            super().__init__(number)
            self.left = 2

        def allocate(self, size, dtype):
            if self.left == 0:
                raise MemoryError("two arrays")
            self.left -= 1
            out = super().allocate(size, dtype)
            ts_finalize(out, self)
            return out

    import weakref

    def ts_finalize(array, device):
        weakref.finalize(array, lambda: setattr(device, "left", device.left + 1))
        device.arrays.clear()

    device = Small(next(_numbers))
    x, y, z = (op3.ArrayBuffer(np.full(4, float(i)), name="xyz"[i]) for i in range(3))
    with op3.offloading(device):
        for one in (x, y):
            one.data_ro
            one._release()
        z.data_rw[:] = 9
        z._release()
        assert x.state[device] in (-1, 0)
        y.data_rw[:] = 8  # still there, or again
        y._release()
        with pytest.raises(ts.Error, match=f"{device.name}.*two arrays"):
            x.data_ro  # both that are there are the only ones that hold their values
    assert [one.data_ro[0] for one in (x, y, z)] == [0, 8, 9]


def test_a_device_must_not_use_buffers_or_keep_what_it_is_given(arena):
    x, y = op3.ArrayBuffer(np.ones(4), name="x"), op3.ArrayBuffer(np.ones(4), name="y")
    kept = []

    class Nosy(Arena):
        def copy_from_host(self, target, source):
            if kept is not None and not kept:
                for use in (lambda: x.data_ro, lambda: y.data_ro, lambda: x.state, lambda: op3.ArrayBuffer(size=3)):
                    with pytest.raises(ts.InvalidUse, match="the code of a device must not use a buffer"):
                        use()
                kept.append(source)
            target[:] = source

    device = Nosy(next(_numbers))
    with op3.offloading(device):
        with pytest.raises(ts.InvalidUse, match="has kept the array of the host that copy_from_host was given"):
            x.data_rw
        x.data_rw[:] += 1
    kept.clear()
    assert x.data_ro.tolist() == [2] * 4


def test_what_is_collected_within_a_copy_is_closed_after_it():
    class Collecting(Arena):
        def copy_from_host(self, target, source):
            gc.collect()
            target[:] = source

    device = Collecting(next(_numbers))
    x = op3.ArrayBuffer(np.ones(4), name="x")
    lease = x._buffer.read("host")
    lease.array
    cycle = [lease]
    cycle.append(cycle)
    gone = [op3.ArrayBuffer(np.ones(2))]
    gone.append(gone)
    del lease, cycle, gone
    with op3.offloading(device):
        assert x.data_ro.tolist() == [1] * 4
    x.data_rw[:] = 2  # no lease is left open
    assert x.data_ro.tolist() == [2] * 4


def test_threads_that_use_one_device_and_one_buffer():
    class Slow(Arena):
        def copy_from_host(self, target, source):
            for i in range(source.size):
                target[i : i + 1] = source[i : i + 1]  # lets other threads run

        copy_to_host = copy_from_host

    class Swapped(Slow):
        def copy_to_host(self, target, source):
            for i in range(source.size):
                target[i : i + 1] = source[i : i + 1]

    device = Swapped(next(_numbers), 1 << 20)
    shared = ts.Buffer((50,), devices=op3._devices(), name="shared")
    place = op3._place(device)
    errors = []

    def work(number):
        try:
            mine = op3.ArrayBuffer(np.zeros(50))
            for turn in range(15):
                with op3.offloading(device):
                    mine.data_rw[:] += 1
                mine.data_rw[:] += 1
                try:
                    with shared.read_write(place if (turn + number) % 2 else "host") as a:
                        a += 1
                except ts.InvalidUse:
                    pass  # another thread's lease
                shared.version, shared.state(place)
            assert mine.data_ro.tolist() == [30] * 50
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with shared.read() as a:
        assert len(set(a.tolist())) == 1


def test_partial_values_are_merged(arena):
    x = ts.Buffer((6,), devices=op3._devices(), name="x")
    place = op3._place(arena)
    with x.write() as a:
        a[:] = 1
    with x.accumulate(place) as a:
        a += 2
    with x.accumulate("fake:0") as a:
        a += 4
    with x.read(place) as a:
        assert a.tolist() == [7] * 6
    with x.accumulate(place, combine="max") as a:
        a[:] = 9
    with x.read() as a:
        assert a.tolist() == [9] * 6
    assert "arena" in x.explain("read", place)


def test_arrays_that_are_not_numpys():
    class Cells:
        """The least that a device's array needs."""

        def __init__(self, inner):
            self.inner = inner
            self.shape, self.dtype = inner.shape, inner.dtype

        def __getitem__(self, cells):
            return Cells(self.inner[cells])

    class Foreign(Arena):
        def allocate(self, size, dtype):
            return Cells(super().allocate(size, dtype))

        def copy_from_host(self, target, source):
            target.inner[:] = source

        def copy_to_host(self, target, source):
            target[:] = source.inner

    device = Foreign(next(_numbers))
    x = op3.ArrayBuffer(np.arange(3.0))
    with op3.offloading(device):
        a = x.data_rw
        assert isinstance(a, Cells) and np.shares_memory(a.inner, device.arrays[0])
        a.inner[:] *= 2
    assert x.data_ro.tolist() == [0, 2, 4]


def test_the_two_methods_of_the_base_are_enough():
    class Least(op3.Device):
        name = "least:0"

        def asarray(self, array, *, constant=False):
            return np.array(array)

        def zeros_like(self, array):
            return np.zeros_like(array)

    x = op3.ArrayBuffer(np.arange(3.0))
    with op3.offloading(Least()):
        x.data_rw[:] += 1
        assert x.state[Least()] == 1
    assert x.data_ro.tolist() == [1, 2, 3]


def test_arrays_of_the_process_alone_go_on(arena):
    x = op3.ArrayBuffer(np.ones(3))
    with op3.offloading(arena):
        x.data_ro

    def body(world):
        u = ts.array(world, ts.distribution((8,), (2,)))
        with u.write() as a:
            a[...] = 3
        with u.read() as a:
            return float(a.sum())

    assert sum(ts.launch(2, body)) == 24
