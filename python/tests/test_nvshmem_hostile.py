"""Uses of NVSHMEM4Py's names that a sceptical user has tried."""

import contextvars
import gc
import os
import sys
import threading

import numpy as np
import pytest

import tranship as ts
import tranship.nvshmem as nvshmem

EQ, GE = nvshmem.ComparisonType.CMP_EQ, nvshmem.ComparisonType.CMP_GE
SET = nvshmem.SignalOp.SIGNAL_SET


def as_pes(n, body, ranks="threads"):
    def main(world):
        nvshmem.init()
        body(nvshmem.my_pe(), nvshmem.n_pes())
        nvshmem.barrier_all()
        nvshmem.finalize()

    return ts.launch(n, main, ranks=ranks)


def test_complex_numbers_have_sums_only():
    def body(me, n):
        x = nvshmem.array(2, "complex128")
        x[:] = [1 + 2j, 3 + 4j]
        for op in ("prod", "min", "max", "and"):
            with pytest.raises(nvshmem.NvshmemInvalid, match="c128 has no"):
                nvshmem.reduce(0, x, x, op)
        nvshmem.reduce(0, x, x, "sum")
        assert x.tolist() == [n * (1 + 2j), n * (3 + 4j)]

    as_pes(2, body)


def test_members_that_bring_other_targets_learn_it():
    def body(me, n):
        a, b, source = (nvshmem.array(40, "int64") for _ in range(3))
        source[:] = me + 1
        for target in (a if me == 0 else b, source if me == 0 else b):
            with pytest.raises(ts.Mismatch, match=r"all_reduce \(sum\) of 320 bytes of i64"):
                nvshmem.reduce(0, target, source, "sum")
        with pytest.raises(ts.Mismatch):
            nvshmem.reduce(0, a[me : 4 + me], source[:4], "sum")

    as_pes(2, body)


def test_read_only_targets_are_refused():
    def body(me, n):
        x, y = nvshmem.array(4, "int64"), nvshmem.array(4, "int64")
        frozen = x.view()
        frozen.flags.writeable = False
        for call in (
            lambda: nvshmem.reduce(0, frozen, y, "sum"),
            lambda: nvshmem.broadcast(0, frozen, y),
            lambda: nvshmem.put(frozen, y, 0),
            lambda: nvshmem.put_signal(frozen, y, x, 1, SET, 0),
            lambda: nvshmem.signal_op(frozen, 1, SET, 0),
        ):
            with pytest.raises(nvshmem.NvshmemInvalid, match="read-only"):
                call()

    as_pes(1, body)


def test_an_array_of_a_peer_is_no_target():
    def body(me, n):
        x, mine = nvshmem.array(4, "int64"), nvshmem.array(4, "int64")
        mine[:] = me + 5
        nvshmem.barrier_all()
        there = nvshmem.get_peer_array(x, 1 - me)
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"heap of rank {1 - me}"):
            nvshmem.put(there, mine, 1 - me)
        assert (mine == me + 5).all() and isinstance(there, nvshmem.PeerArray)
        for pe in range(n):
            nvshmem.free(nvshmem.get_peer_array(x, pe))  # its own, too: nothing
        nvshmem.free_array(x)
        with pytest.raises(nvshmem.NvshmemInvalid, match="free: 16 bytes given, the allocation has 32"):
            nvshmem.free_array(mine[:2])

    as_pes(2, body)


def test_children_are_no_ranks():
    def body(world):
        nvshmem.init()
        child = os.fork()
        if child == 0:
            is_none = nvshmem.init_status() == nvshmem.InitStatus.STATUS_NOT_INITIALIZED
            try:
                nvshmem.barrier_all()
            except nvshmem.NvshmemInvalid:
                os._exit(0 if is_none else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        nvshmem.barrier_all()
        nvshmem.finalize()

    ts.launch(2, body, ranks="processes")


def test_init_belongs_to_the_thread_of_the_rank():
    def body(world):
        raised = []

        def elsewhere():
            try:
                nvshmem.init()
            except nvshmem.NvshmemInvalid as error:
                raised.append(str(error))

        thread = threading.Thread(target=contextvars.copy_context().run, args=(elsewhere,))
        thread.start()
        thread.join()
        assert raised and "another thread" in raised[0]
        nvshmem.init()
        with pytest.raises(nvshmem.NvshmemInvalid, match="launch"):
            nvshmem.finalize() or nvshmem.init(heap_bytes=1 << 20)
        nvshmem.init()
        others = []

        def put():
            try:
                nvshmem.barrier_all()
            except nvshmem.NvshmemInvalid as error:
                others.append(str(error))

        thread = threading.Thread(target=put)
        thread.start()
        thread.join()
        assert others and "own thread" in others[0]
        nvshmem.finalize()

    ts.launch(1, body)


def test_values_are_whole_and_fit():
    def body(me, n):
        x, u, i = nvshmem.array(4, "int64"), nvshmem.array(2, "uint64"), nvshmem.array(1, "int32")
        wrong = [
            (lambda: nvshmem.put(x, x, 0.9), "integer, not 0.9"),
            (lambda: nvshmem.put(x, x, 2**40), "out of range"),
            (lambda: nvshmem.put(x, x, None), "integer, not None"),
            (lambda: nvshmem.test(x, EQ, 0.9), "integer, not 0.9"),
            (lambda: nvshmem.test(i, EQ, 2**32), "does not fit"),
            (lambda: nvshmem.signal_op(u, 1.5, SET, 0), "integer, not 1.5"),
            (lambda: nvshmem.signal_op(u, -1, SET, 0), "does not fit"),
            (lambda: nvshmem.test_all(x, EQ, [0.9, 1, 2, 3]), "integer, not 0.9"),
            (lambda: nvshmem.test_all(x, EQ, np.zeros(4)), "integer, not 0.0"),
            (lambda: nvshmem.barrier(0.5), "integer, not 0.5"),
            (lambda: nvshmem.reduce(1.7, x, x, "sum"), "integer, not 1.7"),
            (lambda: nvshmem.reduce(0, x, x, ""), "reduction ''"),
            (lambda: nvshmem.get([0, 0], x, 0), "not a list|read-only|symmetric"),
            (lambda: nvshmem.free(None), "not a NoneType"),
            (lambda: nvshmem.signal_op(nvshmem.array((2, 3), "uint64", release=True).T, 1, SET, 0), "side by side"),
            (lambda: nvshmem.collective_on_buffer("reduce", 0, nvshmem.buffer(7), nvshmem.buffer(7), "float", "sum"), "7"),
        ]
        for call, text in wrong:
            with pytest.raises(nvshmem.NvshmemInvalid, match=text):
                call()
        u[:] = [2**63, 9]
        assert nvshmem.test_some(u, EQ, [2**63 + 1, 5]) == [] and nvshmem.test_some(u, EQ, [2**63, 5]) == [0]
        assert nvshmem.array(np.int64(3)).shape == (3,)

    as_pes(1, body)


def test_get_into_what_is_no_array():
    def body(me, n):
        x = nvshmem.array(2, "int64")
        kept = [0, 0]
        with pytest.raises(nvshmem.NvshmemInvalid, match="not a list"):
            nvshmem.get(kept, x, 0)

    as_pes(1, body)


def test_parts_that_are_not_of_one_size():
    def body(me, n):
        x, y = nvshmem.array(7, "int64"), nvshmem.array(7, "int64")
        with pytest.raises(nvshmem.NvshmemInvalid, match="7 elements cannot be cut into 2 parts"):
            nvshmem.alltoall(0, x, y)
        d = nvshmem.array(8, "int64")
        with pytest.raises(nvshmem.NvshmemInvalid, match="f64"):
            nvshmem.fcollect(0, d, d.view("float64")[4 * me : 4 * me + 4])

    as_pes(2, body)


def test_arrays_without_elements():
    def body(me, n):
        for _ in range(100):
            x = nvshmem.array(0)
            nvshmem.put(x, x, me)
            nvshmem.free_array(x)
        nvshmem.free(nvshmem.buffer(0))

    as_pes(2, body)


def test_names_of_teams():
    def body(me, n):
        T = nvshmem.Teams
        first = nvshmem.team_split_strided(0, 0, 1, n, new_team_name="TEAM_7")
        with pytest.raises(nvshmem.NvshmemInvalid, match=f"'TEAM_7' belongs to team {first}"):
            nvshmem.team_split_strided(0, 0, 1, n, new_team_name="TEAM_7")
        others = [nvshmem.team_split_strided(0, 0, 1, n) for _ in range(3)]
        assert len({first, *others}) == 4 and set(others) <= set(T.values())
        for team in (first, *others):
            nvshmem.team_destroy(team)
        assert "TEAM_7" not in T

    as_pes(2, body)


def test_ranks_that_allocate_other_elements_are_named():
    def body(me, n):
        names = {"int32": "i32", "float32": "f32", "uint8": "u8", "bool": "bool8", "int64": "i64", "complex64": "c64"}
        for dtypes in (("int32", "float32"), ("uint8", "bool"), ("int64", "complex64")):
            with pytest.raises(ts.Mismatch) as caught:
                nvshmem.array(4, dtypes[me])
            for dtype in dtypes:
                assert names[dtype] in str(caught.value)
        assert nvshmem.array(4, "int32").sum() == 0

    as_pes(2, body)


def test_team_init_of_some_ranks_says_what_to_call():
    def body(me, n):
        split = r"all 3 ranks call team_split_strided\(Teams.TEAM_WORLD, start, stride, 2\)"
        with pytest.raises(ts.Unsupported, match=split):
            nvshmem.team_init(None, 0, 2, me)
        with pytest.raises(ts.Unsupported, match=rf"rank {me} at place {(me + 1) % n}.*its place is {me}"):
            nvshmem.team_init(None, 0, 3, (me + 1) % n)
        with pytest.raises(nvshmem.NvshmemInvalid, match="4 members, in a world of 3"):
            nvshmem.team_init(None, 0, 4, me)
        team = nvshmem.team_init(None, 0, 3, me)
        assert nvshmem.team_n_pes(team) == 3

    as_pes(3, body)


def test_compiled_calls_refuse_what_python_refuses():
    numba = pytest.importorskip("numba")
    device = pytest.importorskip("tranship.nvshmem.core.device.numba")
    jit = numba.njit

    @jit
    def put(dst, src, pe):
        device.put(dst, src, pe)

    @jit
    def add(x, value, pe):
        return device.atomic_fetch_add(x, value, pe)

    @jit
    def signal(x, value, op, pe):
        device.signal_op(x, value, op, pe)

    @jit
    def test(x, value):
        return device.test(x, 0, value)

    @jit
    def all_of(x, values):
        return device.test_all(x, 0, values)

    @jit
    def some_of(x, values, status):
        return device.test_some(x, 0, values, status)

    @jit
    def reduce(to, source):
        device.reduce(0, to, source, "sum")

    @jit
    def barrier(team):
        device.barrier(team)

    def body(me, n):
        x, y, i = nvshmem.array(4, "int64"), nvshmem.array(4, "int64"), nvshmem.array(2, "int32")
        u = nvshmem.array(2, "uint64")
        frozen = x.view()
        frozen.flags.writeable = False
        for call, text in [
            (lambda: put(x, y, 2**32), "4294967296 is out of range"),
            (lambda: put(x, y, 0.9), "pe is an integer, not float64"),
            (lambda: put(x, y, y), "pe is an integer, not array"),
            (lambda: barrier(0.5), "team is an integer, not float64"),
            (lambda: barrier(2**32), "out of range"),
            (lambda: add(i, 2**40, 0), "does not fit"),
            (lambda: add(x, 1.5, 0), "int64 takes an integer, not float64"),
            (lambda: add(x, y, 0), "int64 takes an integer, not array"),
            (lambda: add(x[4:], 1, 0), "the array has 0 elements"),
            (lambda: signal(u[:0], 1, 9, 0), "the array has 0 elements"),
            (lambda: signal(u, -1, 9, 0), "does not fit"),
            (lambda: signal(u, 1.5, 9, 0), "not float64"),
            (lambda: signal(frozen, 1, 9, 0), "read-only"),
            (lambda: add(frozen, 1, 0), "read-only"),
            (lambda: reduce(frozen, y), "read-only"),
            (lambda: test(i, 2**32), "does not fit"),
            (lambda: all_of(x[::2], 0), "side by side"),
            (lambda: all_of(x, np.zeros(3, "int64")), "3 values for 4 variables"),
            (lambda: all_of(i, 2**40), "does not fit"),
            (lambda: all_of(i, np.array([0, 2**40])), "does not fit"),
            (lambda: all_of(x, 0.5), "not float64"),
            (lambda: all_of(np.zeros(4, "int64"), 0), "symmetric"),
            (lambda: all_of(nvshmem.array(4, "int16"), 0), "not i16"),
            (lambda: all_of(nvshmem.array(4, "float32"), 0), "not float32"),
            (lambda: some_of(x, 0, np.zeros(3, "int8")), "skip has 3 entries for 4 variables: give one for each"),
            (lambda: some_of(x, 0, 5), "status must be an array"),
        ]:
            with pytest.raises((ValueError, numba.TypingError), match=text):
                call()
        x[:] = [1, 2, 3, 4]
        assert all_of(x, np.array([1, 2, 3, 4])) and not all_of(x, np.array([1, 2, 3, 5]))
        assert test(u, 0) and add(i, -5, 0) == 0 and i[0] == -5

    as_pes(1, body)


def test_operations_in_parallel_loops_are_not_lost_silently():
    numba = pytest.importorskip("numba")
    device = pytest.importorskip("tranship.nvshmem.core.device.numba")

    @numba.njit(parallel=True)
    def scatter(a, b):
        for i in numba.prange(a.size):
            device.put(a[i : i + 1], b[i : i + 1], 0)

    @numba.njit
    def quiet():
        device.quiet()

    def body(world):
        if numba.get_num_threads() < 2:
            pytest.skip("there is one thread")
        nvshmem.init()
        a, b = nvshmem.array(6400, "int64"), nvshmem.array(6400, "int64")
        b[:] = 1
        scatter(a, b)
        if not (a == 1).all():  # another thread has had a part of it
            with pytest.raises(nvshmem.NvshmemInvalid, match="parallel loop"):
                quiet()
        quiet()
        nvshmem.finalize()

    ts.launch(1, body, ranks="processes")


def test_sources_are_released():
    numba = pytest.importorskip("numba")
    device = pytest.importorskip("tranship.nvshmem.core.device.numba")

    @numba.njit
    def quiet():
        device.quiet()

    def body(me, n):
        x, source = nvshmem.array(8), np.zeros(8, "float32")
        before = sys.getrefcount(source)
        for _ in range(200):
            nvshmem.put_nbi(x, source, me)
        quiet()
        gc.collect()
        assert sys.getrefcount(source) == before

    as_pes(1, body)


def test_what_is_given_says_the_method():
    id_ = nvshmem.get_unique_id()
    nvshmem.init(uid=id_, rank=0, nranks=1)
    assert nvshmem.n_pes() == 1
    nvshmem.finalize()
    with pytest.raises(nvshmem.NvshmemInvalid, match="needs an id"):
        nvshmem.init(heap_bytes=1 << 20)

    class Communicator:
        def Get_rank(self):
            return 0

        def Get_size(self):
            return 2

        def allgather(self, mine):
            return [mine, (mine[0], True)]

    with pytest.raises(nvshmem.NvshmemInvalid, match=r"called before by ranks \[1\] of the communicator's 2"):
        nvshmem.init(mpi_comm=Communicator())
