"""The names of NVSHMEM4Py, by the host, on every back-end."""

import doctest
import gc
import logging
import mmap
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tranship as ts
import tranship.nvshmem as nvshmem

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.fixture
def pes(run):
    """``pes(n, body)``: ``body(me, n)`` as PEs between init() and finalize()."""

    def start(n, body):
        def main(world):
            nvshmem.init()
            try:
                return body(nvshmem.my_pe(), nvshmem.n_pes())
            finally:
                if sys.exc_info()[0] is None:
                    nvshmem.finalize()

        return run(n, main)

    return start


def test_documented_programs_free_what_they_allocate(caplog):
    text = (pathlib.Path(__file__).parents[2] / "docs" / "nvshmem.md").read_text()
    by_mpi = 'nvshmem.init(mpi_comm=MPI.COMM_WORLD, initializer_method="mpi")'
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if by_mpi in block]
    assert blocks
    for block in blocks:
        program = block.replace("from mpi4py import MPI\n", "").replace(by_mpi, "nvshmem.init()")
        ts.launch(2, lambda world, program=program: exec(program, {}))
    for module in (nvshmem, nvshmem.core._memory):
        said = doctest.testmod(module)
        assert said.attempted > 0 and said.failed == 0
    assert [record.getMessage() for record in caplog.records] == []


def test_put_and_get_of_every_dtype(pes):
    def body(me, n):
        for dtype in DTYPES:
            inbox, mine, back = (nvshmem.array((4, 3), dtype) for _ in range(3))
            mine[:] = me + 1
            nvshmem.put(inbox, mine, (me + 1) % n)
            nvshmem.barrier_all()
            assert (inbox == (me - 1) % n + 1).all() and inbox.dtype == dtype
            nvshmem.get(back, inbox, (me + 1) % n)
            assert (back == me + 1).all()
            nvshmem.barrier_all()
            for array in (inbox, mine, back):
                nvshmem.free_array(array)

    pes(3, body)


def test_smaller_size_wins_and_strides_are_kept(pes):
    def body(me, n):
        peer = (me + 1) % n
        before = (me - 1) % n
        target = nvshmem.array(10, "int32")
        nvshmem.put(target, np.arange(4, dtype="int32") + 10 * me, peer)
        nvshmem.barrier_all()
        assert target.tolist() == [10 * before + i for i in range(4)] + [0] * 6
        nvshmem.barrier_all()
        nvshmem.put(target[:3], np.full(8, -1, "int32"), peer)
        nvshmem.barrier_all()
        assert target.tolist() == [-1] * 3 + [10 * before + 3] + [0] * 6
        nvshmem.barrier_all()
        # Every other element, backward, into a column of a Fortran array.
        square = nvshmem.array((5, 4), "float64", morder="F")
        assert square.flags.f_contiguous and square.shape == (5, 4)
        line = np.arange(10.0) + 100 * me
        nvshmem.put(square[:, 2], line[::-2], peer)
        nvshmem.barrier_all()
        want = np.zeros((5, 4))
        want[:, 2] = (np.arange(10.0) + 100 * before)[::-2]
        assert (square == want).all()
        got = np.zeros((4, 5))
        nvshmem.get(got.T, square, peer)
        assert (got.T[:, 2] == (np.arange(10.0) + 100 * me)[::-2]).all()
        with pytest.raises(nvshmem.NvshmemInvalid, match=r"\[5, 4\].*\[3, 3\]|\[3, 3\].*\[5, 4\]"):
            nvshmem.put(square, np.zeros((3, 3)), peer)
        nvshmem.barrier_all()

    pes(3, body)


def test_the_symmetric_side_of_a_put_is_its_target(pes):
    def body(me, n):
        target = nvshmem.array(3, "int64")
        mine = np.full(3, me + 5)
        nvshmem.put(mine, target, pe=(me + 1) % n)  # as some of NVSHMEM's documents have it
        nvshmem.barrier_all()
        assert (target == (me - 1) % n + 5).all() and (mine == me + 5).all()
        with pytest.raises(nvshmem.NvshmemInvalid, match="24 bytes does not lie in the symmetric heap"):
            nvshmem.put(mine, mine, pe=0)
        with pytest.raises(nvshmem.NvshmemInvalid, match="i32.*i64"):
            nvshmem.put(target, np.zeros(3, "int32"), pe=0)
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"no rank {n}"):
            nvshmem.put(target, mine, pe=n)
        frozen = np.zeros(3, "int64")
        frozen.flags.writeable = False
        with pytest.raises(nvshmem.NvshmemInvalid, match="read-only"):
            nvshmem.get(frozen, target, pe=0)
        with pytest.raises(nvshmem.NvshmemInvalid, match="shows no elements"):
            nvshmem.put(target, np.array(["a", "b"]), pe=0)
        nvshmem.barrier_all()

    pes(2, body)


def test_signals_carry_their_data(pes):
    def body(me, n):
        data, flag = nvshmem.array(100, "float32"), nvshmem.buffer(8)
        done = nvshmem.array(1, "uint64")
        for round_ in range(1, 6):
            nvshmem.put_signal(
                data, np.full(100, round_ + 10 * me, "float32"), flag, 1, nvshmem.SignalOp.SIGNAL_ADD, (me + 1) % n
            )
            assert nvshmem.signal_wait(flag, round_, nvshmem.ComparisonType.CMP_GE) == round_
            assert nvshmem.signal_fetch(flag) == round_
            assert (data == round_ + 10 * ((me - 1) % n)).all()
            nvshmem.signal_op(done, round_, nvshmem.SignalOp.SIGNAL_SET, (me - 1) % n)
            nvshmem.signal_wait(done, round_, nvshmem.ComparisonType.CMP_EQ)
        with pytest.raises(nvshmem.NvshmemInvalid, match="signal operation 3"):
            nvshmem.signal_op(done, 1, 3, 0)
        with pytest.raises(nvshmem.NvshmemInvalid, match="comparison 9"):
            nvshmem.signal_wait(done, 1, 9)
        with pytest.raises(nvshmem.NvshmemInvalid, match="8 bytes; the buffer has 4"):
            nvshmem.signal_op(nvshmem.buffer(4), 1, nvshmem.SignalOp.SIGNAL_SET, 0)
        nvshmem.barrier_all()

    pes(3, body)


def test_waits_on_vectors(pes):
    def body(me, n):
        flags = nvshmem.array(n, "int32")
        want = 100 + np.arange(n)
        eq = nvshmem.ComparisonType.CMP_EQ
        assert nvshmem.test_any(flags, eq, want) is None and nvshmem.test_some(flags, eq, want) == []
        assert not nvshmem.test_all(flags, eq, want)
        nvshmem.barrier_all()
        for peer in range(n):
            nvshmem.put(flags[me : me + 1], np.array([100 + me], "int32"), peer)
        place = nvshmem.wait_until_any(flags, eq, want)
        assert flags[place] == 100 + place
        seen, status = set(), np.zeros(n, "int32")
        while len(seen) < n:
            for i in nvshmem.wait_until_some(flags, eq, want, status):
                seen.add(i)
                status[i] = 1
        nvshmem.wait_until_all(flags, eq, want)
        nvshmem.wait_until_all(flags, nvshmem.ComparisonType.CMP_GE, 100)
        assert nvshmem.test_all(flags, eq, want) and nvshmem.test_some(flags, eq, want) == list(range(n))
        assert nvshmem.wait_until_any(flags, eq, want, status) is None
        assert nvshmem.wait_until_some(flags[:0], eq, 1) == [] and nvshmem.test_all(flags[:0], eq, 1)
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"{n + 1} values for {n} variable"):
            nvshmem.test_all(flags, eq, np.zeros(n + 1, "int64"))
        nvshmem.barrier_all()

    pes(3, body)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "int64"])
def test_collectives(pes, dtype):
    def body(me, n):
        team = nvshmem.Teams.TEAM_WORLD
        source, target = nvshmem.array(6, dtype), nvshmem.array(6, dtype)
        wide, other = nvshmem.array((n, 2), dtype), nvshmem.array((n, 2), dtype)
        of = lambda pe: (np.arange(6) * 3 + pe + 1).astype(dtype)  # noqa: E731
        source[:] = of(me)
        operations = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
        if not dtype.startswith("float"):
            operations |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
        for name, combine in operations.items():
            want = of(0)
            for pe in range(1, n):
                want = combine(want, of(pe))
            nvshmem.reduce(team, target, source, name)
            assert (target == want).all(), name
        nvshmem.broadcast(team, target, source, root=n - 1)
        assert (target == of(n - 1)).all()
        parts = lambda pe: (np.arange(2 * n) + 10 * pe).astype(dtype).reshape(n, 2)  # noqa: E731
        wide[:] = parts(me)
        nvshmem.alltoall(team, other, wide)
        assert (other == np.stack([parts(pe)[me] for pe in range(n)])).all()
        nvshmem.reducescatter(team, target[:2], wide, "sum")
        assert (target[:2] == sum(parts(pe)[me] for pe in range(1, n)) + parts(0)[me]).all()
        nvshmem.fcollect(team, other, wide[0])
        assert (other == np.stack([parts(pe)[0] for pe in range(n)])).all()
        took = nvshmem.collective_on_buffer("reduce", team, target, source, dtype=dtype, op="max", enable_timing=True)
        assert took >= 0 and (target == of(n - 1)).all()
        for call, text in [
            (lambda: nvshmem.reduce(team, target, source, "median"), "'median'"),
            (lambda: nvshmem.reduce(team, target, np.zeros(6, dtype), "sum"), "symmetric heap"),
            (lambda: nvshmem.reduce(team, target, nvshmem_other, "sum"), "i16"),
            (lambda: nvshmem.fcollect(team, target[:2], source, None), "needs"),
            (lambda: nvshmem.reduce(99, target, source, "sum"), "no team 99"),
            (lambda: nvshmem.alltoall(team, other[:, 1], wide[:, 0]), "side by side"),
        ]:
            nvshmem_other = nvshmem.array(6, "int16", release=True)
            with pytest.raises(nvshmem.NvshmemInvalid, match=text):
                call()
        nvshmem.barrier_all()

    pes(3, body)


def test_calls_of_members_that_differ_are_named_by_all(pes):
    def body(me, n):
        source, target = nvshmem.array(6, "int32"), nvshmem.array(6, "int32")
        with pytest.raises(ts.Mismatch, match="all_reduce"):
            nvshmem.reduce(0, target, source, "sum" if me else "min")
        with pytest.raises(ts.Mismatch, match="free: .*rank 0 allocation 1, rank 1 allocation 2"):
            nvshmem.free_array(source if me == 0 else target)
        nvshmem.free_array(source)
        nvshmem.free_array(target)

    pes(2, body)


def test_teams(pes):
    def body(me, n):
        T = nvshmem.Teams
        assert (T.TEAM_INVALID, T.TEAM_WORLD, T.TEAM_SHARED, T.TEAM_NODE) == (-1, 0, 1, 2)
        assert (T.TEAM_SAME_MYPE_NODE, T.TEAM_SAME_GPU, T.TEAM_GPU_LEADERS) == (3, 4, 5)
        assert (T.TEAMS_MIN, T.TEAM_INDEX_MAX) == (6, 32767)
        assert (nvshmem.team_my_pe(0), nvshmem.team_n_pes(0)) == (me, n)
        assert nvshmem.team_n_pes(T.TEAM_SAME_GPU) == 1 and nvshmem.team_n_pes(T.TEAM_GPU_LEADERS) == n
        own, of_all = nvshmem.array(2, "int32"), nvshmem.array((n, 2), "int32")
        own[:] = nvshmem.team_my_pe(T.TEAM_NODE), nvshmem.team_n_pes(T.TEAM_NODE)
        nvshmem.fcollect(T.TEAM_WORLD, of_all, own)
        places, sizes = of_all.T.tolist()
        if len(set(sizes)) == 1:
            count = nvshmem.team_n_pes(T.TEAM_SAME_MYPE_NODE)
            members = [nvshmem.team_translate_pe(T.TEAM_SAME_MYPE_NODE, i, T.TEAM_WORLD) for i in range(count)]
            assert members == [pe for pe in range(n) if places[pe] == places[me]]
            nvshmem.barrier(T.TEAM_SAME_MYPE_NODE)
        else:
            with pytest.raises(nvshmem.NvshmemInvalid, match="no team 3"):
                nvshmem.team_n_pes(T.TEAM_SAME_MYPE_NODE)
        even = nvshmem.team_split_strided(T.TEAM_WORLD, 0, 2, 2, nvshmem.TeamConfig(), 0, f"EVEN_{me}")
        if me % 2 == 0:
            assert T[f"EVEN_{me}"] == even and nvshmem.team_my_pe(even) == me // 2
            assert nvshmem.team_translate_pe(even, 1, 0) == 2
            assert nvshmem.team_translate_pe(0, 1, even) == -1
            nvshmem.sync(even)
            nvshmem.barrier(even)
            nvshmem.team_destroy(f"EVEN_{me}")
            with pytest.raises(nvshmem.NvshmemInvalid, match=f"no team {even}"):
                nvshmem.barrier(even)
        else:
            assert even is None
        row, column = nvshmem.team_split_2d(T.TEAM_WORLD, 2, new_team_name=f"GRID_{me}")
        assert (nvshmem.team_my_pe(row), nvshmem.team_my_pe(column)) == (me % 2, me // 2)
        value, total = nvshmem.array(1, "int32"), nvshmem.array(1, "int32")
        value[:] = me
        nvshmem.reduce(column, total, value, "sum")
        assert total[0] == 2 * (me % 2) + 2
        for team in (row, column):
            nvshmem.team_destroy(team)
        for wrong in (T.TEAM_INVALID, T.TEAM_WORLD, 77):
            with pytest.raises(nvshmem.NvshmemInvalid):
                nvshmem.team_destroy(wrong)
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"of a team of {n}"):
            nvshmem.team_split_strided(T.TEAM_WORLD, 0, 2, n)
        again = nvshmem.team_init(nvshmem.TeamConfig(), 0, n, me, f"ALL_{me}")
        assert nvshmem.team_n_pes(again) == n
        nvshmem.team_destroy(f"ALL_{me}")
        with pytest.raises(ts.Unsupported, match=f"team_init of 1 .* all {n} ranks call"):
            nvshmem.team_init(nvshmem.TeamConfig(), 0, 1, 0)

    pes(4, body)


def test_memory_of_peers():
    def body(world):
        nvshmem.init()
        me, n = nvshmem.my_pe(), nvshmem.n_pes()
        x = nvshmem.array((2, 3), "float64")
        x[:] = me
        nvshmem.barrier_all()
        there = nvshmem.get_peer_array(x, (me + 1) % n)
        assert there.shape == (2, 3) and (there == (me + 1) % n).all()
        assert (nvshmem.get_peer_array(x[::-1, 1], (me + 1) % n) == (me + 1) % n).all()
        nvshmem.barrier_all()
        there[1, 2] = 50 + me
        nvshmem.barrier_all()
        assert x[1, 2] == 50 + (me - 1) % n
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"heap of rank {(me + 1) % n}"):
            nvshmem.put(there, np.zeros((2, 3)), 0)
        nvshmem.free_array(there)  # no-op, and not collective
        all_of = nvshmem.get_multicast_array(nvshmem.Teams.TEAM_WORLD, x)
        assert all_of.shape == (2, 3) and len(all_of) == 2 and all_of.dtype == "float64"
        assert all_of.load_reduce("sum")[0, 0] == n * (n - 1) / 2
        nvshmem.barrier_all()
        if me == 1:
            all_of[0] = 9
        nvshmem.barrier_all()
        assert (x[0] == 9).all()
        with pytest.raises(nvshmem.NvshmemInvalid, match="load_reduce"):
            all_of[0, 0]
        with pytest.raises(nvshmem.NvshmemInvalid, match="'mean'"):
            all_of.load_reduce("mean")
        nvshmem.free(all_of)
        held = nvshmem.get_peer_array(x, 0)
        nvshmem.free_array(x)
        del x
        gc.collect()
        assert held[0, 0] == 9  # a view keeps what it shows
        nvshmem.finalize()

    ts.launch(3, body)


def test_peers_that_are_messaged_have_no_view():
    def body(world):
        nvshmem.init()
        x = nvshmem.array(3)
        with pytest.raises(ts.Unsupported, match="messaged"):
            nvshmem.get_peer_array(x, 1 - nvshmem.my_pe())
        nvshmem.finalize()

    ts.simulate(2, body, peers="messaged")


def test_buffers_and_their_books(caplog):
    def body(world):
        nvshmem.init()
        b = nvshmem.buffer(100)
        assert (b.size, b.kind) == (100, nvshmem.BufferTypes.NORMAL) and "normal buffer of 100 bytes" in repr(b)
        a = nvshmem.array((3, 4), "int16")
        found, size, dtype = nvshmem.array_get_buffer(a)
        assert (found.handle, size, dtype) == (a.ctypes.data, 24, "int16")
        with pytest.raises(nvshmem.NvshmemInvalid, match="slice"):
            nvshmem.array_get_buffer(a[1:])
        with pytest.raises(nvshmem.NvshmemInvalid, match="no symmetric memory"):
            nvshmem.free_array(np.zeros(3))
        raw = nvshmem.bytearray((2, 3), "float32")
        assert raw.dtype == "uint8" and raw.size == 24
        nvshmem.put(b, raw, world.rank)
        nvshmem.free(b)
        with pytest.raises(nvshmem.NvshmemInvalid, match="may have been freed"):
            nvshmem.free(b)
        nvshmem.free_array(a)
        a[:] = 3  # still this program's, as long as it holds it
        loose = nvshmem.array(1000, release=True)
        loose[:] = 1
        nvshmem.free_array(raw)
        with pytest.raises(nvshmem.NvshmemInvalid, match="'X'"):
            nvshmem.array(3, morder="X")
        nvshmem.finalize()

    ts.launch(2, body)
    assert not caplog.records

    def leaking(world):
        nvshmem.init()
        nvshmem.array(5, "float64")
        nvshmem.finalize()

    with caplog.at_level(logging.ERROR, "nvshmem"):
        ts.launch(1, leaking)
    assert "1 arrays or buffers of 40 bytes were not freed" in caplog.text


def test_buffers_of_peers_and_of_the_program():
    def body(world):
        nvshmem.init()
        me, n = nvshmem.my_pe(), nvshmem.n_pes()
        b = nvshmem.buffer(16)
        nvshmem.put(b, np.full(16, me + 1, "uint8"), me)
        nvshmem.barrier_all()
        there = nvshmem.get_peer_buffer(b, (me + 1) % n)
        assert (there.kind, there.size) == (nvshmem.BufferTypes.PEER, 16) and np.asarray(there)[3] == (me + 1) % n + 1
        all_of = nvshmem.get_multicast_buffer(nvshmem.Teams.TEAM_WORLD, b)
        assert isinstance(all_of, nvshmem.MulticastArray) and all_of.load_reduce("max")[0] == n
        nvshmem.barrier_all()
        nvshmem.free(there)
        nvshmem.free(all_of)
        pages = mmap.mmap(-1, 4096)
        mine = nvshmem.register_external_buffer(pages)
        assert mine.kind is nvshmem.BufferTypes.EXTERNAL and mine.size == 4096
        nvshmem.put(mine, np.full(8, 40 + me, "uint8"), (me + 1) % n)
        nvshmem.barrier_all()
        assert pages[0] == 40 + (me - 1) % n
        nvshmem.unregister_external_buffer(mine)
        nvshmem.free(b)
        assert isinstance(nvshmem.get_team_unique_id(), nvshmem.TeamUniqueId)
        assert isinstance(nvshmem.get_version(), nvshmem.Version) and nvshmem.NvshmemStreamsType is not None
        assert issubclass(nvshmem.NvshmemInvalid, nvshmem.NvshmemError)
        assert int(nvshmem.Stream()) == 0 and nvshmem.Device(3).device_id == 3
        nvshmem.finalize()

    ts.launch(2, body)


def test_nothing_is_left_behind_by_many_calls():
    def body(world):
        nvshmem.init()
        me, n = nvshmem.my_pe(), nvshmem.n_pes()
        x, y, sig = nvshmem.array(8), nvshmem.array(8), nvshmem.array(1, "uint64")
        before = [sys.getrefcount(one) for one in (x, y, sig)]
        for i in range(10_000):
            nvshmem.put(x, y, (me + 1) % n)
            nvshmem.put_nbi(x[::2], y[::2], (me + 1) % n)
            nvshmem.put_signal_nbi(x, y, sig, 1, nvshmem.SignalOp.SIGNAL_ADD, (me + 1) % n)
            nvshmem.get(y, x, me)
            if i % 100 == 0:
                nvshmem.quiet()
        nvshmem.signal_wait(sig, 10_000, nvshmem.ComparisonType.CMP_EQ)
        nvshmem.quiet()
        gc.collect()
        assert [sys.getrefcount(one) for one in (x, y, sig)] == before
        nvshmem.barrier_all()
        nvshmem.finalize()

    ts.launch(2, body)


def test_memory_comes_back():
    def body(world):
        nvshmem.init()
        for _ in range(200):
            x = nvshmem.array(1 << 20, "uint8")
            nvshmem.free_array(x)
            del x
        nvshmem.finalize()

    ts.launch(2, body, heap_bytes=8 << 20)


def test_registered_memory(pes):
    def body(me, n):
        pages = mmap.mmap(-1, 8192)
        mine = np.frombuffer(pages, "int32")
        mine[:] = me
        symmetric = nvshmem.register_external_array(mine)
        assert symmetric.shape == mine.shape and (symmetric == me).all()
        nvshmem.barrier_all()
        nvshmem.put(symmetric[:4], np.full(4, 70 + me, "int32"), (me + 1) % n)
        nvshmem.barrier_all()
        assert (mine[:4] == 70 + (me - 1) % n).all()
        with pytest.raises(nvshmem.NvshmemInvalid, match="unregister"):
            nvshmem.free_array(symmetric)
        nvshmem.unregister_external_array(symmetric)
        del symmetric
        assert (mine[:4] == 70 + (me - 1) % n).all()
        with pytest.raises(ts.Error, match="multiples of the page size"):
            nvshmem.register_external_array(np.zeros(100))

    pes(2, body)


def test_arrays_are_numpys(pes):
    def body(me, n):
        x = nvshmem.array((2, 2), "float64")
        assert x.base is not None and isinstance(x, np.ndarray) and isinstance(x[0], nvshmem.Array)
        x += 1
        assert isinstance(x, nvshmem.Array) and x.sum() == 4
        y = x + 1
        assert type(y) is np.ndarray and isinstance(x.max(), float)
        assert np.array_equal(np.linalg.inv(np.asarray(x) + np.eye(2)), np.linalg.inv(y - 1 + np.eye(2)))

    pes(1, body)


def test_order_and_what_is_under_way(pes):
    def body(me, n):
        x = nvshmem.array(64, "int64")
        source = np.arange(64) + 1000 * me
        nvshmem.put_nbi(x, source, (me + 1) % n)
        nvshmem.fence()
        nvshmem.pe_quiet((me + 1) % n)
        nvshmem.quiet()
        nvshmem.barrier_all()
        got = np.zeros(64, "int64")
        nvshmem.get_nbi(got, x, (me + 1) % n)
        nvshmem.quiet()
        assert (got == source).all()
        nvshmem.sync_all()
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"no rank {n}"):
            nvshmem.pe_quiet([0, n])

    pes(3, body)


def test_calls_outside_of_a_part_say_what_is_missing():
    for call in (nvshmem.my_pe, nvshmem.barrier_all, lambda: nvshmem.array(3), nvshmem.finalize):
        with pytest.raises(nvshmem.NvshmemInvalid, match="init"):
            call()
    assert nvshmem.init_status() == nvshmem.InitStatus.STATUS_NOT_INITIALIZED
    assert "tranship" in repr(nvshmem.get_version())
    uid = nvshmem.get_unique_id()
    assert bytes(nvshmem.UniqueID(bytes(uid))) == bytes(uid) != bytes(nvshmem.get_unique_id())
    assert not any(bytes(nvshmem.get_unique_id(empty=True))) and uid.ptr == uid._data.ctypes.data

    def body(world):
        with pytest.raises(nvshmem.NvshmemInvalid, match="'tcp'"):
            nvshmem.init(initializer_method="tcp")
        with pytest.raises(nvshmem.NvshmemInvalid, match="needs uid, rank and nranks"):
            nvshmem.init(initializer_method="uid", rank=0)
        nvshmem.init()
        assert nvshmem.init_status() == nvshmem.InitStatus.STATUS_IS_INITIALIZED
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"rank {world.rank} of 2"):
            nvshmem.init()
        nvshmem.finalize()
        nvshmem.init()  # once more, in the same world
        nvshmem.finalize()
        nvshmem.init()  # and left open: the world ends it

    ts.launch(2, body)
    ts.launch(1, lambda world: (nvshmem.init(), nvshmem.finalize()))


def test_a_rank_that_fails_ends_the_others():
    def body(world):
        nvshmem.init()
        x = nvshmem.array(3)
        if nvshmem.my_pe() == 1:
            raise KeyError("enough")
        nvshmem.reduce(0, x, x, "sum")

    with pytest.raises(KeyError, match="enough"):
        ts.launch(3, body)


# Processes that no launcher has started as ranks.

PROGRAM = textwrap.dedent(
    """
    import os, sys, time
    import numpy as np
    import tranship.nvshmem as nvshmem
    path, rank, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    uid = nvshmem.get_unique_id(empty=rank != 0)
    if rank == 0:
        with open(path + ".new", "wb") as file:
            file.write(bytes(uid))
        os.rename(path + ".new", path)
    else:
        while not os.path.exists(path):
            time.sleep(0.001)
        uid._data[:] = np.fromfile(path, "u1")
    nvshmem.init(uid=uid, rank=rank, nranks=n, initializer_method="uid", timeout=30)
    x = nvshmem.array(1, "int64")
    x[:] = nvshmem.my_pe() + 1
    nvshmem.reduce(nvshmem.Teams.TEAM_WORLD, x, x, "sum")
    print(x[0], flush=True)
    nvshmem.free_array(x)
    nvshmem.finalize()
    """
)


def test_a_unique_id_joins_processes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(tmp_path / "uid"), str(rank), "3"], stdout=subprocess.PIPE, text=True
        )
        for rank in range(3)
    ]
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["6\n"] * 3
    assert [rank.returncode for rank in ranks] == [0] * 3


MPI_PROGRAM = textwrap.dedent(
    """
    import sys
    from mpi4py import MPI
    import tranship.nvshmem as nvshmem
    for method in ("mpi", "emulated_mpi"):
        nvshmem.init(mpi_comm=MPI.COMM_WORLD if method == "mpi" else None, initializer_method=method)
        me, n = nvshmem.my_pe(), nvshmem.n_pes()
        assert (me, n) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
        x, y = nvshmem.array(3, "float64"), nvshmem.array(3, "float64")
        x[:] = me
        nvshmem.put(y, x, (me + 1) % n)
        nvshmem.barrier_all()
        assert (y == (me - 1) % n).all()
        received = y.copy()
        MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, x)  # MPI moves symmetric memory as any other
        assert (x == n * (n - 1) / 2).all()
        nvshmem.free_array(x)
        nvshmem.free_array(y)
        nvshmem.finalize()
    open(f"{sys.argv[1]}.{me}", "x").close()
    """
)


def test_ranks_of_an_mpi_communicator(tmp_path):
    pytest.importorskip("mpi4py")
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("there is no mpirun")
    program = tmp_path / "program.py"
    program.write_text(MPI_PROGRAM)
    as_root = ["--allow-run-as-root", "--oversubscribe"] if "Open MPI" in _version_of(mpirun) else []
    done = subprocess.run(
        [mpirun, *as_root, "-n", "3", sys.executable, str(program), str(tmp_path / "done")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and len(list(tmp_path.glob("done.*"))) == 3, done.stdout + done.stderr


def _version_of(mpirun):
    return subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout


def test_a_communicator_of_several_machines_is_refused():
    class Communicator:
        def Get_rank(self):
            return 0

        def Get_size(self):
            return 2

        def allgather(self, mine):
            return [mine, ("another machine", False)]

    with pytest.raises(ts.Unsupported, match="2 ranks of the communicator are on 2 machines"):
        nvshmem.init(mpi_comm=Communicator(), initializer_method="emulated_mpi")
