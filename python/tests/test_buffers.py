"""Buffers on fake devices: what is copied, and what is refused."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tranship as ts


def test_only_what_is_stale_is_copied():
    devices = ts.Devices(fake=2)
    assert devices.names == ["host", "fake:0", "fake:1"]
    x = ts.Buffer((10, 10), "f4", devices=devices, name="x")
    with x.write() as a:
        a[...] = np.arange(100).reshape(10, 10)
    assert x.state("fake:0") == "unallocated"
    with ts.offload("fake:0"):
        assert devices.copied_bytes == 0  # entering moves nothing
        with x.read_write(cells=slice(2, 4)) as a:
            a[2:4] += 1
    assert devices.copied_bytes == 80
    assert x.state("host") == "partly valid"
    with x.read("fake:1") as a:
        assert a[3, 3] == 34 and a[4, 3] == 43
        with pytest.raises(ValueError):
            a[0, 0] = 1
    assert {c["cause"] for c in devices.copies} == {"first_touch"}
    assert "x" in devices.copies[0]["text"] and "test_buffers.py" in devices.copies[0]["text"]
    before = devices.copied_bytes
    with x.read("fake:1"):
        pass
    assert devices.copied_bytes == before


def test_closed_leases_are_closed():
    x = ts.Buffer(8)
    lease = x.write()
    a = lease.array
    a[:] = 3
    lease.close()
    lease.close()
    with pytest.raises(ValueError):
        a[0] = 1
    with pytest.raises(ts.InvalidUse):
        lease.array
    with pytest.raises(ts.InvalidUse):
        with lease:
            pass
    with x.read() as b:
        assert b.sum() == 24


@pytest.mark.parametrize("dtype", ["f8", [("a", "i4"), ("b", "f4")]])
@pytest.mark.parametrize("intent", ["read", "write", "read_write"])
@pytest.mark.parametrize("by_block", [True, False])
def test_the_array_of_a_closed_lease_cannot_be_made_writable(dtype, intent, by_block):
    x = ts.Buffer((4, 4), dtype, devices=ts.Devices(fake=1))
    lease = x.open(intent)
    if by_block:
        with lease as a:
            assert a.flags.writeable == (intent != "read")
    else:
        a = lease.array
        assert a.flags.writeable == (intent != "read")
        lease.close()
    views = [a, a[1:], a.T, a.view(np.ndarray)]
    other = x.open(intent)  # of the same memory
    for view in views:
        with pytest.raises(ValueError):
            view.flags.writeable = True
        with pytest.raises(ValueError):
            view.setflags(write=True)
        with pytest.raises(ValueError):
            view[...] = 1
    other.close()


def test_conflicts_name_both_places():
    x = ts.Buffer(8)
    with x.write() as a:
        a[:] = 0
        with pytest.raises(ts.InvalidUse, match="test_buffers.py.*test_buffers.py"):
            x.read()
    x.freeze()
    assert x.is_frozen
    with pytest.raises(ts.InvalidUse):
        x.write()
    y = x.duplicate()
    with y.write() as a:
        a[:] = 1
    with x.read() as a:
        assert not a.any()
    assert not x.duplicate(empty=True).is_frozen


def test_accumulate_merges():
    devices = ts.Devices(fake=1)
    x = ts.Buffer(4, devices=devices)
    with x.write() as a:
        a[:] = 10
    with x.accumulate("fake:0") as a:
        a[:] += 1
    with x.accumulate("host") as a:
        a[:] += 2
    with x.read() as a:
        assert a.tolist() == [13] * 4


def test_memory_of_the_program_is_kept_and_released():
    data = np.arange(12.0).reshape(3, 4)[:, ::2]
    before = sys.getrefcount(data)
    devices = ts.Devices(fake=1)
    x = ts.Buffer(data=data, devices=devices)
    with x.read_write("fake:0") as a:
        assert np.array_equal(a, data)
        a[...] *= 2
    with x.read() as a:
        assert np.shares_memory(a, data) and data[1, 1] == 12
    del x, a
    gc.collect()
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda: ts.Buffer(),
        lambda: ts.Buffer(3, data=np.zeros(3)),
        lambda: ts.Buffer(-1),
        lambda: ts.Buffer(3, "O"),
        lambda: ts.Buffer(3).read("fake:0"),
        lambda: ts.Buffer(3).read("gpu"),
        lambda: ts.Buffer(3).read(cells=slice(0, 3, 2)),
        lambda: ts.Buffer(3).read(cells=(slice(0, 1), slice(0, 1))),
        lambda: ts.Buffer(3).accumulate(combine="mean"),
        lambda: ts.Buffer(3, zeros=False).read(),
    ],
)
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ts.Error):
        call()


@given(st.lists(st.tuples(st.sampled_from(["read", "write", "read_write"]), st.integers(0, 2), st.integers(0, 7),
                          st.integers(0, 8)), max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_sequence_has_the_values_of_one_array(steps):
    devices = ts.Devices(fake=2)
    x, model = ts.Buffer(8, "i8", devices=devices), np.zeros(8, "i8")
    for number, (intent, device, lower, upper) in enumerate(steps):
        name = devices.names[device]
        if lower >= upper:
            continue
        cells = slice(lower, upper)
        with getattr(x, intent)(name, cells) as a:
            if intent != "write":
                assert np.array_equal(a[cells], model[cells])
            if intent != "read":
                a[cells] = model[cells] = number + 1
    with x.read() as a:
        assert np.array_equal(a, model)


def test_names_of_devices():
    for name in ("xyz", "", "fake", "fake:-1", "fake:x", "gpu"):
        with pytest.raises(ts.InvalidUse, match=f"device '{name}': needs 'host'"):
            with ts.offload(name):
                pass
        x = ts.Buffer(3)
        for call in (x.read, x.state, lambda device: x.open("read", device), lambda device: x.explain("read", device)):
            with pytest.raises(ts.InvalidUse, match=f"device '{name}': needs 'host'"):
                call(name)
    with ts.offload("fake:7"), pytest.raises(ts.InvalidUse, match="no fake:7; the 2 devices are host, fake:0"):
        ts.Buffer(3, devices=ts.Devices(fake=1)).read()
    with pytest.raises(ts.InvalidUse, match="no fake:0; the only device is host"):
        ts.Buffer(3).read("fake:0")
    with ts.Buffer(3).read() as view:  # on the host again
        assert view.size == 3


def test_what_would_be_refused_is_explained():
    x = ts.Buffer(3, zeros=False, devices=ts.Devices(fake=1), name="x")
    for device in ("host", "fake:0"):
        text = x.explain("read", device)
        assert f"read on {device} would be refused" in text and "have not been written" in text and "buffer 'x'" in text
        assert "would copy nothing" in x.explain("write", device)
    with pytest.raises(ZeroDivisionError):
        with x.write():
            1 / 0
    assert "would be refused" in x.explain() and "abandoned" in x.explain()
    with x.write() as a:
        assert "test_buffers.py" in x.explain() and "would be refused" in x.explain()
        a[:] = 1
    assert "would copy:" in x.explain("read", "fake:0")
    x.freeze()
    assert "would be refused" in x.explain("write")


def test_leases_that_are_dropped_are_closed():
    x = ts.Buffer(4, devices=ts.Devices(fake=1))
    version = x.version
    lease = x.read_write("fake:0")
    del lease
    gc.collect()
    assert x.version == version + 1
    x.write("fake:0").array[:] = 2
    assert x.version == version + 2
    with x.read() as a:
        assert a.tolist() == [2] * 4
    with pytest.raises(ZeroDivisionError):
        with x.write() as a:
            1 / 0
    lease = x.write()
    with pytest.raises(ts.InvalidUse, match="test_buffers.py.*test_buffers.py"):
        x.read()
    del lease
    x.read().close()


def test_arrays_of_leases_keep_them_open():
    devices = ts.Devices(fake=1)
    x = ts.Buffer((2, 2), devices=devices)
    x.read("fake:0").close()
    part = x.write("fake:0").array.T[1]  # the lease is kept by nothing else
    with pytest.raises(ts.InvalidUse, match="write.*test_buffers.py"):
        x.read()
    part[:] = 7
    del part
    with x.read() as a:
        assert a.tolist() == [[0, 7], [0, 7]]
    y = ts.Buffer(1000, devices=devices)
    kept = y.write("fake:0").array
    del y
    gc.collect()
    kept[:] = 3
    assert kept.sum() == 3000
    assert ts.Buffer(3).write().array.shape == (3,)  # the last to hold a buffer and its devices
    lease = x.write()
    first = lease.array
    with lease as second:
        assert second is first
    with pytest.raises(ValueError):
        first[0] = 1


def names_of(error):
    return "has been kept" in str(error.value) and "test_buffers.py" in str(error.value)


@pytest.mark.parametrize(
    "part",
    [lambda a: a[1:3], lambda a: a.T, lambda a: a.reshape(2, 4)[1], memoryview, lambda a: a[2:].view("i8").view("f8")],
)
@pytest.mark.parametrize("by_array", [False, True])
@pytest.mark.parametrize("first,then", [("host", "fake:0"), ("fake:0", "host"), ("fake:0", "fake:1")])
def test_no_write_through_a_kept_view_is_lost_in_silence(part, by_array, first, then):
    x = ts.Buffer(8, devices=ts.Devices(fake=2))
    if by_array:
        lease = x.write(first)
        a = lease.array
        a[:] = 1
        kept = part(a)
        lease.close()
    else:
        with x.write(first) as a:
            a[:] = 1
            kept = part(a)
    with x.write(then) as b:
        b[:] = 2
        kept[0] = 5
    with pytest.raises(ts.InvalidUse) as error:
        x.read(then)
    assert names_of(error)
    with x.read(first) as a:  # it is told once
        assert a.tolist() == [2] * 8
    kept[0] = 5
    with pytest.raises(ts.InvalidUse) as error:
        x.read(then)
    assert names_of(error)


def test_views_that_are_kept_and_not_written_are_no_error():
    x = ts.Buffer(8, devices=ts.Devices(fake=1))
    y = ts.Buffer(8)
    kept = []
    for turn in range(20):
        with x.write(("host", "fake:0")[turn % 2]) as a, y.write() as b:
            a[:] = turn
            b[:] = turn
            kept += [a[turn % 8 :], a, b[:3]]
        with x.read() as c, y.read_write() as d:
            assert c.tolist() == d.tolist() == [turn] * 8
    z = x.duplicate()
    with x.write() as a:
        a[:] = 30
    with z.read() as a:
        assert a.tolist() == [19] * 8
    view = kept[-3]
    del kept
    with x.read("fake:0") as a:
        assert a.tolist() == [30] * 8
    del view
    with x.write() as a:
        a[:] = 31
    with x.read("fake:0") as a:
        assert a.tolist() == [31] * 8


def test_a_view_of_memory_that_a_duplicate_shares():
    x = ts.Buffer(8)
    with x.write() as a:
        a[:] = 1
        kept = a[:4]
    y = x.duplicate()
    with x.write() as a:
        a[:] = 2
    kept[0] = 5  # which only the duplicate has by now
    with pytest.raises(ts.InvalidUse) as error:
        y.read()
    assert names_of(error)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7), st.sampled_from(["keep", "drop", "stray", "use"])),
                max_size=25))
@settings(max_examples=150, deadline=None)
def test_any_sequence_with_kept_views_loses_no_write(steps):
    devices = ts.Devices(fake=2)
    x, kept, strays = ts.Buffer(8, "i8", devices=devices), {}, 0
    value = 0
    for device, cell, what in steps + [(0, 0, "use"), (1, 0, "use"), (0, 0, "use"), (0, 0, "use")]:
        value += 1
        if what == "drop":
            kept.pop(device, None)
        elif what == "stray":
            if device in kept:
                kept[device][cell] = 1000 + value
                strays |= 1 << device
        else:
            try:
                with x.read_write(devices.names[device]) as a:
                    a[cell] = value
                    if what == "keep":
                        kept[device] = a[:]
                assert not strays, "nothing was said"
            except ts.InvalidUse as error:
                told = [d for d in range(3) if f"on {devices.names[d]} was changed" in str(error)]
                assert told and all(strays >> d & 1 for d in told), str(error)
                strays &= ~sum(1 << d for d in told)
    assert not strays


@pytest.mark.parametrize("intent", ["write", "read_write", "accumulate"])
@pytest.mark.parametrize("device", ["host", "fake:0"])
def test_a_block_that_raises_abandons_its_write(intent, device):
    x = ts.Buffer(8, devices=ts.Devices(fake=1))
    with x.write() as a:
        a[:] = 1
    with pytest.raises(ZeroDivisionError):
        with x.open(intent, device, slice(2, 6)) as a:
            a[2:4] = 7
            1 / 0
    assert x.state("host") != "valid" and x.state("fake:0") != "valid"
    for where in ("host", "fake:0"):
        with pytest.raises(ts.InvalidUse, match="abandoned"):
            x.read(where)
        with x.read(where, slice(0, 2)) as a:
            assert a[:2].tolist() == [1, 1]
    with x.write(device, slice(2, 6)) as a:
        a[2:6] = 3
    with x.read() as a:
        assert a.tolist() == [1, 1, 3, 3, 3, 3, 1, 1]
    lease = x.write()
    lease.abandon()
    lease.abandon()
    with pytest.raises(ts.InvalidUse, match="test_buffers.py"):
        x.read()
    with x.write() as a:
        a[:] = 4
    with pytest.raises(ZeroDivisionError):
        with x.read():
            1 / 0
    with x.read() as a:
        assert a.tolist() == [4] * 8
