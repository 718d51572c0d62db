"""One-sided transfers on every back-end, against NumPy arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tranship as ts


def test_put_get_and_slices(run):
    def body(world):
        n, r = world.size, world.rank
        a = ts.symmetric(world, (4, 6), "i4")
        assert a.shape == (4, 6) and not a.local.any()
        world.barrier()
        mine = np.arange(24, dtype="i4").reshape(4, 6) + 100 * r
        a.put(mine, (r + 1) % n)
        world.barrier()
        left = mine - 100 * r + 100 * ((r - 1) % n)
        assert np.array_equal(a.local, left)
        world.barrier()
        a[1:3, ::2].put(mine[1:3, ::2], (r + 1) % n, nbi=True)
        a[0].put(np.full(6, -r, "i4"), (r + 1) % n)
        world.quiet()
        world.barrier()
        want = left.copy()
        want[0] = -((r - 1) % n)
        assert np.array_equal(a.local, want)
        got = a[:, 1].get((r + 1) % n)
        there = np.arange(24, dtype="i4").reshape(4, 6) + 100 * r
        there[0] = -r
        assert np.array_equal(got, there[:, 1])
        world.barrier()

    run(3, body)


def test_signals_carry_their_data(run):
    def body(world):
        data, flag = ts.symmetric(world, 100), ts.symmetric(world, 1, "u8")
        if world.rank == 0:
            for i in range(1, 6):
                data.put(np.full(100, float(i)), 1, signal=flag, value=i)
                ack = ts_ack(world)
                ack.wait_until(">=", i)
        else:
            for i in range(1, 6):
                assert flag.wait_until(">=", i) == i
                assert np.all(data.local == i)
                ts_ack(world).add(0, 1)
        world.barrier()

    acks = {}

    def ts_ack(world):
        return acks[world.rank]

    def with_ack(world):
        acks[world.rank] = ts.symmetric(world, 1, "i8")
        try:
            body(world)
        finally:
            del acks[world.rank]

    run(2, with_ack)


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
def test_atomics(run, dtype):
    def body(world):
        n, r = world.size, world.rank
        word = ts.symmetric(world, 2, dtype)
        world.barrier()
        before = word[0].fetch_add(0, r + 1)
        word[1].add(0)
        world.barrier()
        if r == 0:
            assert word.local.tolist() == [n * (n + 1) // 2, n]
        world.barrier()
        if r == n - 1:
            assert word[1].compare_swap(0, n, 7) == n
            assert word[1].compare_swap(0, n, 9) == 7
            assert word[1].swap(0, 6) == 7
            assert word[1].fetch_and(0, 3) == 6
            assert word[1].fetch_or(0, 8) == 2
            assert word[1].fetch_xor(0, 15) == 10
            assert word[1].fetch(0) == 5
            word[1].set(0, 1)
        world.barrier()
        return before

    assert 0 in run(3, body)


def test_none_at_all(run):
    def body(world):
        none = ts.symmetric(world, (0, 3), "f4")
        assert none.shape == (0, 3) and none.local.size == 0
        none.put(np.zeros((0, 3), "f4"), 0)
        assert none.get(0).shape == (0, 3)
        world.barrier()

    run(2, body)


def test_test_and_negative_indices(run):
    def body(world):
        word = ts.symmetric(world, 3, "i8")
        assert not word[-1].test("==", 5)
        world.barrier()
        word[-1].put(5, (world.rank + 1) % world.size)
        world.barrier()
        assert word[-1].test("==", 5) and word.local.tolist() == [0, 0, 5]

    run(2, body)


def test_refusals():
    def body(world):
        a = ts.symmetric(world, 4, "f4")
        for call, error in (
            (lambda: a.put(np.zeros(3, "f4"), 0), ts.Mismatch),
            (lambda: a.put(np.zeros(4, "f8"), 0), ts.Mismatch),
            (lambda: a.put(np.zeros(4, "f4"), 2), ts.InvalidUse),
            (lambda: a.put(np.zeros(4, "f4"), -1), ts.InvalidUse),
            (lambda: a.get(0, nbi=True), ts.InvalidUse),
            (lambda: a[[0, 1]], ts.InvalidUse),
            (lambda: a.wait_until("==", 1), ts.InvalidUse),
            (lambda: a.add(0, 1), ts.InvalidUse),
            (lambda: ts.symmetric(world, 2, "i8").wait_until("=", 1), ts.InvalidUse),
            (lambda: ts.symmetric(world, -1), ts.InvalidUse),
            (lambda: ts.symmetric(world, 1 << 62), ts.Error),
            (lambda: ts.symmetric(world, 2, "O"), ts.InvalidUse),
        ):
            with pytest.raises(error):
                call()
        with pytest.raises(IndexError):
            a[4]
        world.barrier()

    ts.launch(2, body)


def test_collective_operations(run):
    def body(world):
        n, r = world.size, world.rank
        x, y = ts.symmetric(world, 3, "i8"), ts.symmetric(world, 3, "i8")
        wide, other = ts.symmetric(world, (n, 3), "i8"), ts.symmetric(world, (n, 3), "i8")
        x.local[:], wide.local[:] = np.arange(3) + 10 * r, np.arange(3 * n).reshape(n, 3) + 100 * r
        y.all_reduce("max", x)
        assert y.local.tolist() == [10 * (n - 1) + i for i in range(3)]
        y.broadcast(n - 1, x)
        assert y.local.tolist() == [10 * (n - 1) + i for i in range(3)]
        y.reduce_scatter(wide, "min")
        assert y.local.tolist() == [3 * r + i for i in range(3)]
        other.all_gather(x)
        assert (other.local == np.arange(3) + 10 * np.arange(n)[:, None]).all()
        other.all_to_all(wide)
        assert (other.local == np.arange(3) + 3 * r + 100 * np.arange(n)[:, None]).all()
        x.all_reduce()
        assert x.local.tolist() == [n * i + 10 * n * (n - 1) // 2 for i in range(3)]
        x[:2].all_reduce("bit_and")
        half = world.split(0, 1, n - 1)
        if half is not None:
            z = ts.symmetric(half, 1, "f4")
            z.local[:] = 1
            z.all_reduce()
            assert z.local[0] == n - 1
        for call, text in [
            (lambda: y.all_reduce("mean"), "'mean'"),
            (lambda: other[:, 1].all_reduce(), "side by side"),
            (lambda: y.broadcast(n), f"no root {n}"),
            (lambda: y.all_gather(x), "do not fit"),
            (lambda: x[:2].all_reduce("sum", x[1:]), "overlap"),
        ]:
            with pytest.raises(ts.InvalidUse, match=text):
                call()
        world.barrier()

    run(3, body)


def test_signals_of_other_types_are_refused():
    def body(world):
        a, flag = ts.symmetric(world, 4), ts.symmetric(world, 1, "i4")
        with pytest.raises(ts.InvalidUse, match="i32"):
            a.put(0, 0, signal=flag)
        with pytest.raises((OverflowError, ValueError, RuntimeError, TypeError)):
            ts.symmetric(world, 1, "u4").add(0, -1)

    ts.launch(1, body)


def test_sources_of_no_elements_and_of_no_dimensions_are_sources(run):
    def body(world):
        x, y = ts.symmetric(world, 4, "i8"), ts.symmetric(world, 4, "i8")
        one, other = ts.symmetric(world, (), "i8"), ts.symmetric(world, (), "i8")
        x.local[:], one.local[...], other.local[...] = 7 + world.rank, world.rank, 10 + world.rank
        for call in (lambda: x.all_reduce(source=y[:0]), lambda: x.broadcast(0, source=y[:0])):
            with pytest.raises(ts.InvalidUse, match="do not fit"):
                call()
        y[:0].all_reduce(source=x[:0])
        one.all_reduce(source=other)
        assert one.local == 10 * world.size + sum(range(world.size))
        one.broadcast(1, other)
        assert one.local == 11
        one.broadcast(1)
        return x.local.tolist()

    assert run(2, body) == [[7] * 4, [8] * 4]


@pytest.mark.parametrize(
    "dtype, number, expected",
    [
        ("i8", 3, 3),
        ("i8", True, 1),
        ("i8", np.int8(-3), -3),
        ("u1", 255, 255),
        ("u8", 2**64 - 1, 2**64 - 1),
        ("?", 1, True),
        ("f4", 2, 2.0),
        ("f4", 0.5, 0.5),
        ("f4", np.float64(0.5), 0.5),
        ("c8", 1.5, 1.5),
    ],
)
def test_numbers_take_the_dtype_of_the_elements(dtype, number, expected):
    def body(world):
        a = ts.symmetric(world, (2, 2), dtype)
        for given in (number, [[number] * 2] * 2, [(number, number)] * 2):
            a.local[...] = 0
            a.put(given, 0)
            assert (a.local == expected).all()
        a[0, :0].put([], 0)

    ts.launch(1, body)


@pytest.mark.parametrize(
    "dtype, number",
    [
        ("i8", 1.5),
        ("i8", np.float32(2)),
        ("i8", 1j),
        ("i8", "7"),
        ("i8", b"7"),
        ("i8", None),
        ("i8", 2**63),
        ("i8", 2**64),
        ("i8", np.uint64(2**63)),
        ("u1", 256),
        ("u1", -1),
        ("?", 2),
        ("f4", 1j),
        ("i8", np.datetime64(5, "s")),
        ("i8", np.timedelta64(5, "s")),
        ("i8", np.datetime64("NaT")),
        ("u1", np.datetime64(5, "s")),
    ],
)
def test_numbers_that_would_lose_something_are_refused(dtype, number):
    def body(world):
        a, flag = ts.symmetric(world, 8, dtype), ts.symmetric(world, 1, "u8")
        for given in (number, [number] * 8):
            for signal in (None, flag):
                with pytest.raises(ts.Mismatch):
                    a.put(given, 0, signal=signal)
        assert not a.local.any() and not flag.local.any()

    ts.launch(1, body)


@pytest.mark.parametrize("source", [[1, 2, 3], [[1, 2, 3, 4]], [[1], [2], [3], [4]], (), np.zeros((1, 4), "i8")])
def test_other_shapes_are_refused(source):
    def body(world):
        with pytest.raises(ts.Mismatch, match=r"\[4\]"):
            ts.symmetric(world, 4, "i8").put(source, 0)

    ts.launch(1, body)


@pytest.mark.parametrize("times", [np.datetime64(5, "s"), np.timedelta64(5, "s"), np.datetime64("NaT")])
def test_times_of_numpy_are_no_elements(times):
    def body(world):
        for dtype in ("i8", "u1"):
            a = ts.symmetric(world, 8, dtype)
            for given in (times, np.full(8, times)):
                with pytest.raises(ts.Mismatch, match="8"):
                    a.put(given, 0)
            with pytest.raises(ts.InvalidUse):
                a.get(0, times)
            assert not a.local.any()

    ts.launch(1, body)


_one_key = st.one_of(
    st.integers(-5, 4), st.slices(5), st.slices(7), st.just(Ellipsis), st.just(np.int64(1)), st.just(slice(None, None, -1))
)


@given(st.one_of(_one_key, st.tuples(), st.tuples(_one_key), st.tuples(_one_key, _one_key), st.tuples(*[_one_key] * 3)))
@settings(max_examples=300, deadline=None)
def test_slices_name_what_numpy_says(key):
    def body(world):
        x = ts.symmetric(world, (5, 3, 4), "i4")
        x.local[...] = np.arange(60).reshape(5, 3, 4)
        plain = x.local.copy()
        try:
            wanted = plain[key]
        except IndexError:
            with pytest.raises(IndexError):
                x[key]
            return
        part = x[key]
        wanted = wanted if isinstance(wanted, np.ndarray) else np.array([wanted])
        assert part.shape == part.local.shape == wanted.shape and np.array_equal(part.local, wanted)
        assert np.array_equal(part.get(0), wanted)

    ts.launch(1, body)
