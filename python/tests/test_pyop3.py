"""pyop3's buffers: the story of its pull request, and every defect of it as a test that passes."""

import contextlib

import numpy as np
import pytest

import tranship as ts
from tranship import pyop3 as op3

GPU, OTHER = op3.FakeGPU(0), op3.FakeGPU(1)


def copied():
    return op3._devices().copied_bytes


def test_the_story():
    x = op3.ArrayBuffer(np.arange(10.0), name="x")
    assert x.state[op3.HOST] == 0 and x.state[GPU] == -1
    before = copied()
    with op3.offloading(GPU):
        assert copied() == before and x.state[GPU] == -1
        a = x.data_rw
        assert copied() == before + 80
        a += 1
        assert x.state[GPU] == 1 and x.state[op3.HOST] == 0
        assert x.last_updated_device == GPU
    assert copied() == before + 80  # leaving moves nothing
    assert x.data_ro.tolist() == list(range(1, 11))
    assert copied() == before + 160
    assert x.state[op3.HOST] == x.state[GPU] == 1
    with op3.offloading(GPU):
        assert x.data_ro[0] == 1
    assert copied() == before + 160  # its copy was kept


def test_contexts_nest_and_devices_are_values():
    assert op3.current_device() == op3.CPU()
    with op3.offloading(GPU) as device:
        assert device is GPU
        with op3.offloading(OTHER):
            assert op3.current_device() == OTHER
            assert op3.on_host(op3.current_device)() == op3.HOST
        assert op3.current_device() == op3.FakeGPU(0)
    assert op3.current_device() == op3.HOST
    assert len({op3.FakeGPU(0), op3.FakeGPU(0), op3.FakeGPU(1), op3.CPU()}) == 3
    assert GPU.zeros_like(np.ones(3)).tolist() == [0, 0, 0]
    assert not GPU.asarray(np.ones(3), constant=True).flags.writeable
    with pytest.raises(ts.Unsupported, match="CUDA"):
        op3.CUDAGPU()
    with pytest.raises(NotImplementedError):
        op3.CUDAGPU(1)
    with pytest.raises(ValueError):
        op3.FakeGPU(99)
    with pytest.raises(ValueError):
        with op3.offloading("gpu"):
            pass


def test_a_query_of_the_state_changes_nothing():
    x = op3.ArrayBuffer(np.zeros(4))
    before = x.state
    assert all(x.state[d] == -1 for d in (GPU, OTHER))
    with op3.offloading(GPU):
        x.data_ro
    assert x.state == before and x.state[GPU] == 0  # a read elsewhere is no change
    x.data_rw[0] = 1
    assert x.state != before and x.state.version == 1


# The table of defects.


def test_host_writes_then_a_device_reads_and_writes_over_its_copy():
    x = op3.ArrayBuffer(np.zeros(4))
    with op3.offloading(GPU):
        x.data_ro
    x.data_rw[:] = 7
    with op3.offloading(GPU):
        a = x.data_rw
        assert a.tolist() == [7] * 4
        a += 1
    assert x.data_ro.tolist() == [8] * 4


@pytest.mark.parametrize("access", ["data_rw", "data_wo"])
def test_the_first_touch_of_a_device_may_be_a_write(access):
    x = op3.ArrayBuffer(np.zeros(4))
    with op3.offloading(GPU):
        getattr(x, access)[:] = 3
    assert x.data_ro.tolist() == [3] * 4


def test_write_only_copies_nothing():
    x = op3.ArrayBuffer(np.ones(4))
    before = copied()
    with op3.offloading(GPU):
        x.data_wo[:] = 2
    assert copied() == before


def test_duplicates_are_real_copies_on_the_current_device():
    x = op3.ArrayBuffer(np.ones(4), ordered=True, max_value=5)
    with op3.offloading(GPU):
        x.data_rw[:] = 2
        before = copied()
        y, empty = x.duplicate(copy=True), x.duplicate()
        assert copied() == before
        y.data_rw[:] += 1
        assert x.data_ro.tolist() == [2] * 4 and y.data_ro.tolist() == [3] * 4
    assert y.data_ro.tolist() == [3] * 4 and x.data_ro.tolist() == [2] * 4
    assert empty.data_ro.tolist() == [0] * 4
    assert (y.ordered, y.max_value, y.size, y.dtype) == (True, 5, 4, x.dtype)


def test_no_write_through_a_kept_pointer_is_lost():
    x = op3.ArrayBuffer(np.zeros(4))
    kept = x.data_rw
    kept[0] = 1
    with op3.offloading(GPU):
        x.data_rw[1] = 2
    with pytest.raises(ValueError):
        kept[2] = 3
    assert x.data_ro.tolist() == [1, 2, 0, 0]
    read = x.data_ro
    with pytest.raises(ValueError):
        read[0] = 1


def test_constants_are_constant_on_every_device():
    x = op3.ArrayBuffer(np.ones(4), constant=True, rank_equal=True)
    for device in (op3.HOST, GPU, OTHER):
        with op3.offloading(device):
            assert not x.data_ro.flags.writeable and x.data_ro[0] == 1
            for access in ("data_rw", "data_wo"):
                with pytest.raises(ts.InvalidUse, match="constant"):
                    getattr(x, access)
            with pytest.raises(ts.InvalidUse):
                x.zero()
    assert x.duplicate(copy=True).constant
    with pytest.raises(ts.InvalidUse):
        op3.ArrayBuffer(np.ones(4), rank_equal=True)


def test_a_buffer_may_begin_without_data():
    x = op3.ArrayBuffer(size=5, dtype="i4")
    assert x.data_ro.tolist() == [0] * 5 and x.dtype == np.dtype("i4")
    for wrong in (
        lambda: op3.ArrayBuffer(),
        lambda: op3.ArrayBuffer(np.zeros((2, 2))),
        lambda: op3.ArrayBuffer(np.zeros(4), size=5),
        lambda: op3.ArrayBuffer(np.zeros(4), dtype="f4"),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_null_buffers_have_a_shape():
    x = op3.NullBuffer(7, "f4", name="n", max_value=3)
    assert (x.size, x.dtype, x.name) == (7, np.dtype("f4"), "n")
    assert x.duplicate().name == "n_copy"
    for access in ("data_ro", "data_rw", "data_wo"):
        with pytest.raises(ts.InvalidUse):
            getattr(x, access)


def ring(world, n=4):
    """Every rank owns n ids, and has the first one of the next rank and the last one of the one before."""
    r, size = world.rank, world.size
    owned = range(n * r, n * (r + 1))
    ghosts = [n * ((r + 1) % size), (n * r - 1) % (n * size)]
    return op3.StarForest(world, owned, ghosts)


def test_devices_write_the_host_exchanges_and_devices_read_leaves(run):
    def body(world):
        sf = ring(world)
        x = op3.ArrayBuffer(np.zeros(6), sf, name="x")
        for step in range(1, 4):
            with op3.offloading(GPU):
                a = x.data_rw
                a[:4] = 100 * step + np.arange(4 * world.rank, 4 * world.rank + 4)
                assert not x.leaves_valid
                before = copied()
                b = x.data_ro  # reduces nothing, broadcasts, and fetches what is stale
                assert x.leaves_valid
                want = [4 * ((world.rank + 1) % world.size), (4 * world.rank - 1) % (4 * world.size)]
                assert (b[4:] - 100 * step).tolist() == want
                del before
        world.barrier()

    run(3, body)


def test_increments_are_exchanged_once(run):
    def body(world):
        sf = ring(world)
        x = op3.ArrayBuffer(np.zeros(6), sf, name="x")
        for device in (GPU, GPU, OTHER):
            with op3.offloading(device), x.access(op3.INC) as a:
                a += 1
        # Both neighbours have incremented my first and last root three times.
        assert x.data_ro.tolist() == [6, 3, 3, 6, 6, 6]
        assert x.leaves_valid
        for intent, value, want in ((op3.MIN, 5 - world.rank, "min"), (op3.MAX, world.rank, "max")):
            y = op3.ArrayBuffer(np.full(6, 3, "i8"), sf)
            with y.access(intent) as a:
                np.minimum(a, value, out=a) if want == "min" else np.maximum(a, value, out=a)
            n, r = world.size, world.rank
            near = [(r - 1) % n, r, (r + 1) % n]
            combine = min if want == "min" else max
            values = [5 - k if want == "min" else k for k in near]
            first, last = combine(3, values[0], values[1]), combine(3, values[1], values[2])
            got = y.data_ro.tolist()
            assert got[0] == first and got[3] == last, (got, first, last)
        world.barrier()

    run(3, body)


def test_what_is_in_flight_is_not_touched(run):
    def body(world):
        sf = ring(world)
        x = op3.ArrayBuffer(np.ones(6), sf)
        x.data_rw[:] = world.rank
        x.broadcast_roots_to_leaves_begin()
        for use in (lambda: x.data_ro, lambda: x.data_wo, x.broadcast_roots_to_leaves_begin, x.duplicate):
            with pytest.raises(op3.DataTransferInFlightException):
                use()
        with pytest.raises(op3.BadOrderingException):
            x.reduce_leaves_to_roots_end()
        x.broadcast_roots_to_leaves_end()
        assert x.data_ro[4] == (world.rank + 1) % world.size
        with pytest.raises(op3.BadOrderingException):
            x.broadcast_roots_to_leaves_end()
        with pytest.raises(op3.IncompatibleStarForestException):
            op3.ArrayBuffer(np.ones(5), sf)
        x.data_wo[:] = 1
        x.reduce_leaves_to_roots()
        assert x.data_ro.tolist() == [2, 1, 1, 2, 2, 2]
        assert op3.ArrayBuffer(sf=sf, dtype="f4").size == 6
        world.barrier()

    run(3, body)


def test_write_only_drops_a_pending_reduction(run):
    def body(world):
        x = op3.ArrayBuffer(np.zeros(6), ring(world))
        with x.access(op3.INC) as a:
            a += 1
        x.data_wo[:] = 5
        assert x.data_ro.tolist() == [5] * 6
        with x.access(op3.WRITE) as a:
            a[:] = 6
        with x.access(op3.RW) as a:
            a[:4] += 1
        with x.access(op3.READ) as a:
            assert a.tolist() == [7] * 6
        x.inc_state()
        x.zero()
        assert not x.data_ro.any()
        world.barrier()

    run(2, body)


def test_without_a_star_forest_exchanges_do_nothing():
    x = op3.ArrayBuffer(np.arange(3))
    with x.access(op3.INC) as a:
        a += 1
    x.reduce_leaves_to_roots()
    x.broadcast_roots_to_leaves()
    assert x.data_ro.tolist() == [1, 2, 3] and x.leaves_valid


def test_pyop3s_modules_and_inner_names():
    from tranship.pyop3.buffer import ArrayBuffer, DataTransferInFlightException
    from tranship.pyop3.device import CPU, FakeGPU, offloading, on_host

    assert ArrayBuffer is op3.ArrayBuffer and on_host is op3.on_host
    assert DataTransferInFlightException is op3.DataTransferInFlightException
    gpu = FakeGPU()
    x = ArrayBuffer(np.arange(4.0))
    assert list(x._lazy_data) == [CPU()] and gpu not in x._lazy_data
    with pytest.raises(KeyError):
        x._lazy_data[gpu]
    with offloading(gpu):
        x.data_rw[:] += 1
        state = x.state
        assert x._data.tolist() == [1, 2, 3, 4] and not x._data.flags.writeable
    assert set(x._lazy_data) == {CPU(), gpu} and len(x._lazy_data) == 2
    assert x.state == state  # asking who has a copy moves nothing
    assert x._lazy_data[CPU()].tolist() == x._lazy_data[gpu].tolist() == [1, 2, 3, 4]


def test_a_late_write_through_a_kept_view_is_said():
    for device in (GPU, op3.HOST):
        x = op3.ArrayBuffer(np.zeros(8), name="x")
        owned = x.data_rw[:6]
        owned[0] = 1
        with op3.offloading(device):
            x.data_rw[:] += 1
        assert x.data_ro.tolist() == [2, 1, 1, 1, 1, 1, 1, 1]
        owned[2] = 9
        with op3.offloading(GPU), pytest.raises(ts.InvalidUse, match="'x'.*test_pyop3.py"):
            x.data_ro
        assert x.data_ro[0] == 2
    y = op3.ArrayBuffer(np.zeros(8))
    kept = y.data_rw[2:]
    with op3.offloading(GPU):
        on_device = y.data_rw
        kept[0] = 5
        on_device[:] = 1
    with pytest.raises(ts.InvalidUse):
        y.data_ro
    assert y.data_ro.tolist() == [1] * 8


@pytest.mark.parametrize("intent", [op3.WRITE, op3.RW, op3.INC])
def test_a_loop_that_raises_leaves_no_values(intent):
    x = op3.ArrayBuffer(np.ones(8))
    for device in (GPU, op3.HOST):
        with op3.offloading(device):
            with pytest.raises(ZeroDivisionError):
                with x.access(intent) as a:
                    a[:3] = 7
                    1 / 0
            with pytest.raises(ts.InvalidUse, match="abandoned"):
                x.data_ro
        with x.access(op3.WRITE) as a:
            a[:] = 2
        assert x.data_ro.tolist() == [2] * 8
    with pytest.raises(ZeroDivisionError):
        with x.access(op3.READ):
            1 / 0
    assert x.data_ro.tolist() == [2] * 8


def test_exchanges_move_what_is_shared_and_no_more(run):
    def body(world):
        n = 1000
        x = op3.ArrayBuffer(np.zeros(n + 2), ring(world, n), name="x")
        with op3.offloading(GPU):
            x.data_rw[:n] = world.rank
        world.barrier()
        before = copied()
        world.barrier()
        with op3.offloading(GPU):
            assert x.data_ro[n] == (world.rank + 1) % world.size
        world.barrier()
        # The first and the last root to the host, and two leaves from there, on each rank.
        assert copied() - before <= 32 * world.size
        world.barrier()
        before = copied()
        world.barrier()
        with op3.offloading(GPU):
            with x.access(op3.INC) as a:
                a[:] += 1
            x.data_ro
        world.barrier()
        assert copied() - before <= 2 * 64 * world.size
        world.barrier()

    run(2, body)


def test_zeros_are_made_on_the_device_that_needs_them():
    with op3.offloading(GPU):
        before = copied()
        x = op3.ArrayBuffer(size=1000)
        assert not x.data_ro.any()
        y = x.duplicate()
        z = x.duplicate(copy=True)
        assert not y.data_ro.any() and not z.data_rw.any()
        y.data_rw[:] = 1
        assert copied() == before
    assert not x.data_ro.any() and not z.duplicate().data_ro.any() and y.data_ro.all()
    assert x.state[op3.HOST] == 0


def test_contributions_of_leaves_go_to_their_roots_before_leaves_are_copies(run):
    def body(world):
        me = world.rank
        sf = op3.StarForest(world, [me], [1 - me])
        x = op3.ArrayBuffer(sf=sf, size=2)
        with x.access(op3.INC) as a:
            a[:] = [10 * (me + 1), me + 1]
        with pytest.raises(ts.InvalidUse, match="a reduction by MIN .* by INC"):
            x.reduce_leaves_to_roots(op3.MIN)
        x.broadcast_roots_to_leaves()
        assert x.data_ro.tolist() == ([12, 21] if me == 0 else [21, 12])
        world.barrier()

    run(2, body)


@pytest.mark.parametrize("device", [op3.CPU(), op3.FakeGPU()])
@pytest.mark.parametrize("intent", [op3.RW, op3.WRITE])
@pytest.mark.parametrize("with_leaves", [False, True])
def test_data_to_read_inside_of_a_loop_leaves_the_loops_array_as_it_is(device, intent, with_leaves):
    def body(world):
        sf = op3.StarForest(world, [0, 1, 2, 3], []) if with_leaves else None
        x = op3.ArrayBuffer(np.zeros(4), sf)
        with op3.offloading(device):
            with x.access(intent) as a:
                a[:] = 1
                ro = x.data_ro
                assert ro.tolist() == [1] * 4 and not ro.flags.writeable
                with pytest.raises(ValueError):
                    ro.flags.writeable = True
                with x.access(op3.READ) as inner:
                    assert inner.tolist() == [1] * 4
                    with pytest.raises(ValueError):
                        inner[0] = 3
                del inner
                a[:] = 2
                assert ro.tolist() == [2] * 4
                del ro
        assert x.data_ro.tolist() == [2] * 4
        with x.access(op3.INC) as a:
            with pytest.raises(ts.InvalidUse, match="combines by INC"):
                x.data_ro
            a[:] += 1
        assert x.data_ro.tolist() == [3] * 4

    ts.launch(1, body)


def test_an_abandoned_loop_is_named_by_the_programs_line():
    x = op3.ArrayBuffer(np.zeros(4))
    with pytest.raises(ZeroDivisionError):
        with x.access(op3.RW):
            1 / 0
    with pytest.raises(ts.InvalidUse, match=r"test_pyop3\.py:\d+, was abandoned") as error:
        x.data_ro
    assert "contextlib" not in str(error.value)
    with pytest.raises(ts.InvalidUse, match="test_pyop3"):
        with x.access(op3.READ):
            pass
    with pytest.raises(ZeroDivisionError):
        with contextlib.ExitStack() as stack:
            stack.enter_context(x.access(op3.WRITE))
            1 / 0
    with pytest.raises(ts.InvalidUse, match=r"test_pyop3\.py:\d+, was abandoned"):
        x.data_ro
