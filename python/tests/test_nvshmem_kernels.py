"""Operations of NVSHMEM4Py in kernels: under Numba's CUDA simulator, and in functions that Numba has compiled."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tranship as ts
import tranship.nvshmem as nvshmem

numba = pytest.importorskip("numba")
device = pytest.importorskip("tranship.nvshmem.core.device.numba")

KERNELS = Path(__file__).with_name("kernels.py")


@pytest.mark.parametrize(
    "cases",
    [
        "example:2 transfers:2 signals:3 collectives:3 memory:2 forms:2",
        "misuse:2 lost_peer:2 threads_are_refused:0",
    ],
)
def test_simulated_kernels(cases):
    done = subprocess.run(
        [sys.executable, str(KERNELS), *cases.split()], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


def test_a_thread_that_is_being_started_has_not_ended():
    lanes = pytest.importorskip("tranship.nvshmem.core.device.numba._lanes")

    class Starting:  # it has its number, and does not run yet
        ident, syncthreads_blocked = 1, False

        def is_alive(self):
            return False

    block = lanes._Block((2, 1, 1))
    block.threads[1] = Starting()
    assert block.cannot_come({1}) is None
    block.ended.add(1)
    assert block.cannot_come({1}) == "thread 1 has ended"


def test_every_name_has_a_test():
    tested = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    for name in {*nvshmem.__all__, *device.__all__}:
        base = re.sub("_(warp|block)$", "", name)
        assert re.search(rf"\b{base}\b", tested), name
    # An operation that `forms` calls by name exists in all forms.
    for base in {re.sub("_(warp|block)$", "", name) for name in device.__all__ if re.search("_(warp|block)$", name)}:
        assert {base, base + "_warp", base + "_block"} <= set(device.__all__)
        assert f'"{base}"' in KERNELS.read_text(), base


# Compiled functions.

jit = numba.njit
GE, EQ = 5, 0
SET, ADD = 9, 10


@jit
def compiled_ring(inbox, mine, back, pe):
    device.put(inbox[0], mine, pe)
    device.put_block(inbox[1], mine, pe)
    device.put_nbi_warp(inbox[2], mine, pe)
    device.quiet()
    device.barrier_all()
    device.get(back[0], inbox[0], pe)
    device.get_nbi(back[1], inbox[2], pe)
    device.quiet()
    device.fence()
    return device.my_pe() + 100 * device.n_pes() + 10000 * device.team_my_pe(0) + 1000000 * device.team_n_pes(4)


@jit
def compiled_views(to, source, pe):
    device.put(to, source, pe)
    device.barrier_all()


@jit
def compiled_values(x, value, pe):
    device.p(x, value, pe)
    device.barrier_all()
    return device.g(x, pe)


@jit(nogil=True)
def compiled_signals(data, mine, sig, pe, rounds):
    for i in range(1, rounds + 1):
        mine[:] = i
        device.put_signal(data, mine, sig, 1, ADD, pe)
        if device.signal_wait(sig, GE, i) != i:
            return -i
        if data[0] != i or data[-1] != i:
            return i
        device.signal_op(sig[1:], i, SET, pe)
        device.wait_until(sig[1:], GE, i)
    if not device.test(sig, EQ, rounds) or device.test(sig, EQ, 0):
        return -100
    device.wait_until_all(sig, EQ, rounds)
    return 0 if device.test_all(sig, EQ, rounds) else -101


@jit
def compiled_atomics(c, pe):
    device.atomic_add(c, 5, pe)
    device.atomic_inc(c, pe)
    device.quiet()
    before = device.atomic_fetch_add(c, 2, pe)
    device.atomic_set(c[1:], 12, pe)
    device.quiet()  # updates are not ordered before what fetches
    a = device.atomic_fetch_and(c[1:], 10, pe)
    b = device.atomic_fetch_or(c[1:], 3, pe)
    x = device.atomic_fetch_xor(c[1:], 1, pe)
    s = device.atomic_swap(c[1:], 40, pe)
    q = device.atomic_compare_swap(c[1:], 40, 41, pe)
    r = device.atomic_compare_swap(c[1:], 40, 42, pe)
    i = device.atomic_fetch_inc(c[1:], pe)
    return before, a, b, x, s, q, r, i, device.atomic_fetch(c, pe), device.atomic_fetch(c[1:], pe)


@jit
def compiled_collectives(team, a, b, wide, other):
    device.reduce(team, b, a, "sum")
    total = b[1]
    device.broadcast(team, b, a, 1)
    spread = b[1]
    device.broadcast_block(team, b, a)
    device.alltoall(team, other, wide)
    exchanged = other[0]
    device.fcollect_warp(team, other, a[:2])
    gathered = other[2]
    device.reducescatter(team, b[:1], wide, "max")
    device.sync(team)
    device.barrier_block(team)
    device.sync_all()
    return total, spread, exchanged, gathered, b[0]


@pytest.fixture(params=["threads", "processes", "sim"])
def pes(request):
    def start(n, body):
        def main(world):
            nvshmem.init()
            body(nvshmem.my_pe(), nvshmem.n_pes())
            nvshmem.barrier_all()
            nvshmem.finalize()

        if request.param == "sim":
            return ts.simulate(n, main)
        return ts.launch(n, main, ranks=request.param)

    return start


@pytest.mark.parametrize("dtype", ["uint16", "float32", "int64"])
def test_compiled_transfers(pes, dtype):
    def body(me, n):
        inbox, mine, back = nvshmem.array((3, 5), dtype), nvshmem.array(5, dtype), np.zeros((2, 5), dtype)
        mine[:] = np.arange(5) + 10 * me
        place = compiled_ring(inbox, mine, back, (me + 1) % n)
        assert place == me + 100 * n + 10000 * me + 1000000
        nvshmem.barrier_all()
        theirs = (np.arange(5) + 10 * ((me - 1) % n)).astype(dtype)
        assert (inbox == theirs).all() and (back == mine).all()
        one = nvshmem.array((1, 1), dtype)
        assert compiled_values(one, mine[1], (me + 1) % n) == mine[1]

    pes(2, body)


def test_compiled_transfers_of_views(pes):
    def body(me, n):
        square, line = nvshmem.array((6, 4), "int32"), np.arange(6, dtype="int32")
        compiled_views(square[::2, 1], line[::-2] + 10 * me, (me + 1) % n)
        want = np.zeros((6, 4), "int32")
        want[::2, 1] = line[::-2] + 10 * ((me - 1) % n)
        assert (square == want).all()
        nvshmem.barrier_all()
        compiled_views(square, np.asfortranarray(np.full((6, 4), 7, "int32")), (me + 1) % n)
        assert (square == 7).all()
        nvshmem.barrier_all()
        compiled_views(np.full((6, 4), 8, "int32"), square, (me + 1) % n)  # the symmetric one is the target
        assert (square == 8).all()
        with pytest.raises(nvshmem.NvshmemInvalid, match=r"\[3\], the target \[6, 2\]"):
            compiled_views(square[:, :2], line[:3], 0)
        with pytest.raises(nvshmem.NvshmemInvalid, match="no rank 99"):
            compiled_views(square, square, 99)
        with pytest.raises(nvshmem.NvshmemInvalid, match="symmetric heap"):
            compiled_views(line, line.copy(), 0)
        with pytest.raises(numba.TypingError, match="the source has elements int64, the target int32"):
            compiled_views(square, np.zeros(3, "int64"), 0)
        frozen = np.zeros(3, "int32")
        frozen.flags.writeable = False
        with pytest.raises(numba.TypingError, match="read-only"):
            compiled_views(frozen, square, 0)

    pes(2, body)


def test_compiled_signals(pes):
    def body(me, n):
        data, mine, sig = nvshmem.array(100), nvshmem.array(100), nvshmem.array(2, "uint64")
        assert compiled_signals(data, mine, sig, (me + 1) % n, 20) == 0

    pes(2, body)


@jit
def compiled_several(x, status, values):
    some = device.test_some(x, EQ, 7)
    place = device.test_any_warp(x, EQ, 7)
    none = device.test_any(x, EQ, 8)
    left = device.test_some_block(x, EQ, values, status)
    waited = device.wait_until_some(x, EQ, 7)
    first = device.wait_until_any_block(x, GE, values, status)
    skipped = device.wait_until_any(x, EQ, 99, np.ones(x.size, np.int8))
    device.wait_until_all_warp(x, GE, 0, status)
    all_of = device.test_all(x, EQ, values), device.test_all(x, EQ, values, status), device.test_all(x[:0], EQ, 5)
    return some, place, none, left, waited, first, skipped, all_of


@jit(nogil=True)
def compiled_turns(x, pe, rounds):
    seen = 0
    for i in range(1, rounds + 1):
        device.put(x[i % 3 : i % 3 + 1], np.full(1, i, x.dtype), pe)
        place = device.wait_until_any(x, EQ, i)
        if place is None or place != i % 3:
            return -i
        seen += len(device.wait_until_some(x, EQ, i))
        device.barrier_all()
    return seen


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_compiled_waits_and_tests_of_several(pes, dtype):
    def body(me, n):
        x = nvshmem.array((2, 3), dtype)
        x[:] = [[7, 0, 7], [1, 7, 2]]
        values, status = np.array([7, 0, 6, 1, 7, 2]), np.array([0, 0, 1, 0, 1, 1], "uint8")
        expected = ([0, 2, 4], 0, None, [0, 1, 3], [0, 2, 4], 0, None, (False, True, True))
        assert compiled_several(x, status, values) == compiled_several.py_func(x, status, values) == expected
        assert compiled_several(x, status > 0, values.reshape(3, 2)) == expected
        turns = nvshmem.array(3, dtype)
        nvshmem.barrier_all()
        assert compiled_turns(turns, (me + 1) % n, 12) == 12

    pes(2, body)


@jit
def compiled_peer(x, pe):
    there = device.get_peer_array(x, pe)
    before = there[0, 1]
    there[1, 0] = 100 * before
    return before, there


def test_compiled_views_of_peers():
    def main(world):
        nvshmem.init()
        me, n = nvshmem.my_pe(), nvshmem.n_pes()
        x = nvshmem.array((2, 3), "int64")
        x[:] = 10 * me + np.arange(6).reshape(2, 3)
        nvshmem.barrier_all()
        peer = (me + 1) % n
        before, there = compiled_peer(x, peer)
        assert before == 10 * peer + 1
        nvshmem.barrier_all()
        assert x[1, 0] == 100 * (10 * me + 1)
        assert (there == nvshmem.get_peer_array(x, peer)).all() and there.shape == (2, 3)
        nvshmem.barrier_all()
        compiled_peer(x[:, ::-1], peer)  # a view that begins at its end
        nvshmem.barrier_all()
        assert x[1, 2] == 100 * (10 * me + 1)
        with pytest.raises(nvshmem.NvshmemInvalid, match="no rank 99|99"):
            compiled_peer(x, 99)
        with pytest.raises(nvshmem.NvshmemInvalid, match="symmetric"):
            compiled_peer(np.zeros((2, 2)), peer)
        nvshmem.finalize()

    for ranks in ("threads", "processes"):
        ts.launch(2, main, ranks=ranks)


@jit
def compiled_everywhere(team, x, value):
    everywhere = device.get_multicast_array(team, x)
    everywhere[1, :2] = value
    everywhere[0][2] = value + 1
    everywhere[:, ::-1][1, 0] = value + 2  # the last one
    return everywhere, everywhere.size, len(everywhere), everywhere.shape


@jit
def compiled_combinations(team, x):
    everywhere = device.get_multicast_array(team, x)
    a, b, c = everywhere.load_reduce(), everywhere[0].load_reduce("prod"), everywhere[..., 1].load_reduce("min")
    return a, b, c, everywhere.load_reduce("max"), everywhere.load_reduce("xor")


def test_compiled_stores_to_all_members():
    def main(world):
        nvshmem.init()
        me, n = nvshmem.my_pe(), nvshmem.n_pes()
        x = nvshmem.array((2, 3), "int16")
        other = nvshmem.team_split_strided(nvshmem.Teams.TEAM_WORLD, 0, 2, 2)  # ranks 0 and 2
        if me == 0:
            everywhere, size, length, shape = compiled_everywhere(other, x, 5)
            assert isinstance(everywhere, nvshmem.MulticastArray)
            assert (size, length, shape) == (6, 2, (2, 3)) == (everywhere.size, len(everywhere), everywhere.shape)
            everywhere[0, 0] = -1
        nvshmem.barrier_all()
        assert x.tolist() == ([[0] * 3] * 2 if me == 1 else [[-1, 0, 6], [5, 5, 7]])
        x[:] = np.arange(6).reshape(2, 3) + 10 * (me + 1)
        nvshmem.barrier_all()
        for team in (nvshmem.Teams.TEAM_WORLD, *([other] if me != 1 else [])):
            host, got = nvshmem.get_multicast_array(team, x), compiled_combinations(team, x)
            expected = [host, host[0], host[..., 1], host, host]
            for combined, all_of, op in zip(got, expected, ("sum", "prod", "min", "max", "xor")):
                assert combined.dtype == x.dtype and (combined == all_of.load_reduce(op)).all(), op
        with pytest.raises(nvshmem.NvshmemInvalid, match="no team 99"):
            compiled_everywhere(99, x, 1)
        with pytest.raises(nvshmem.NvshmemInvalid, match="symmetric"):
            compiled_everywhere(0, np.zeros((2, 3)), 1)
        with pytest.raises(numba.TypingError, match="a value at every member"):
            jit(lambda x: device.get_multicast_array(0, x)[0, 0])(x)
        with pytest.raises(numba.TypingError, match="'mean': needs one of sum"):
            jit(lambda x: device.get_multicast_array(0, x).load_reduce("mean"))(x)
        nvshmem.barrier_all()
        nvshmem.finalize()

    for ranks in ("threads", "processes"):
        ts.launch(3, main, ranks=ranks)


@jit
def compiled_one(inbox, value, pe):
    device.put(inbox[1:2], value, pe)
    device.put_nbi(inbox[2:3], value, pe)
    device.p(inbox[3:], value, pe)
    device.quiet()


@jit
def compiled_p(x, value):
    device.p(x, value, 0)


VALUES = [0, 1, -1, 127, 300, 2**40, 0.0, 2.5, 1e300, 3j, True, False]
VALUES += [np.array([v]) for v in (7, -7, 2.5)] + [np.array([9], "uint64"), np.array([True]), np.array([1 + 2j])]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64"])
def test_what_a_value_must_be_is_one_rule(dtype):
    """Compiled, and as the simulator makes it."""

    def main(world):
        nvshmem.init()
        x = nvshmem.array(2, dtype)
        taken = 0
        for value in VALUES:
            seen = []
            for put in (compiled_p, compiled_p.py_func):
                x[:] = 0
                try:
                    put(x, value)
                    seen.append(x.tolist())
                except (ValueError, numba.TypingError) as error:
                    text = str(error)
                    assert not x.any() and ("does not fit" in text or f"an element of {dtype} takes" in text), text
                    seen.append("refused")
            assert repr(seen[0]) == repr(seen[1]), (value, seen)
            taken += seen[0] != "refused"
        assert 0 < taken < len(VALUES)
        nvshmem.free_array(x)
        nvshmem.finalize()

    ts.launch(1, main)


@jit
def compiled_put_signal(data, one, sig, value, op, pe):
    device.put_signal(data, one, sig, value, op, pe)


@pytest.mark.parametrize("dtype", ["int8", "float32", "int64", "complex128"])
def test_compiled_puts_of_one_element_with_a_signal(pes, dtype):
    def body(me, n):
        data, sig, counter = nvshmem.array(5, dtype), nvshmem.array(2, "uint64"), nvshmem.array(1, "int64")
        after = (me + 1) % n
        nvshmem.barrier_all()
        compiled_put_signal(data[2:3], np.array([me + 5], dtype), sig[1:], 7, SET, after)
        compiled_put_signal(data[4:], np.array([me + 6], dtype), counter, -3, ADD, after)
        nvshmem.barrier_all()
        before = (me - 1) % n
        assert data.tolist() == [0, 0, before + 5, 0, before + 6] and sig.tolist() == [0, 7] and counter[0] == -3
        one = np.ones(1, dtype)
        for wrong, what in [
            ((data[:1], one, sig, -1, SET, after), "does not fit"),
            ((data[:1], one, sig, 1, 3, after), "signal operation 3"),
            ((data[:1], one, sig, 1, SET, 99), "no rank 99"),
            ((np.zeros(1, dtype), one, sig, 1, SET, after), "symmetric|heap"),
            ((data[:1], one, np.zeros(1, "uint64"), 1, SET, after), "symmetric|heap"),
            ((data[:1], one, sig[:0], 1, SET, after), "the array has 0 elements"),
        ]:
            with pytest.raises(Exception, match=what):
                compiled_put_signal(*wrong)
        nvshmem.barrier_all()
        assert data[0] == 0 and sig.tolist() == [0, 7]
        nvshmem.barrier_all()

    pes(2, body)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "int64", "float64", "complex64"])
def test_compiled_puts_of_one_element(pes, dtype):
    def body(me, n):
        inbox = nvshmem.array(5, dtype)
        nvshmem.barrier_all()
        compiled_one(inbox, np.array([me + 1], dtype), (me + 1) % n)
        nvshmem.barrier_all()
        sender = (me - 1) % n + 1
        assert inbox.tolist() == [0, sender, sender, sender, 0]
        if np.dtype(dtype).itemsize > 1:  # an element at an odd address
            bytes = nvshmem.array(64, "uint8")
            odd = bytes[1 : 1 + inbox.nbytes].view(dtype)
            compiled_one(odd, np.array([7], dtype), (me + 1) % n)
            nvshmem.barrier_all()
            assert odd.tolist() == [0, 7, 7, 7, 0] and bytes[0] == 0

    pes(2, body)


def test_compiled_puts_of_one_element_go_where_they_may():
    @jit
    def put(target, source, pe):
        device.put(target, source, pe)

    @jit
    def put_many(target, source, pe, n):
        for i in range(n):
            source[0] = i
            device.put(target, source, pe)

    def main(world):
        nvshmem.init()
        me = nvshmem.my_pe()
        x, one = nvshmem.array(4, "int64"), np.ones(1, "int64")
        for pe in (-1, 2, 2**31, 2**32, -(2**63), 2**63 - 1):
            with pytest.raises(nvshmem.NvshmemInvalid, match="no rank|out of range"):
                put(x[:1], one, pe)
        peers = nvshmem.get_peer_array(x, 1 - me)
        for target in (peers, np.zeros(1, "int64")):
            with pytest.raises(nvshmem.NvshmemInvalid, match="symmetric|heap"):
                put(target, one, me)
        first = nvshmem.array(1, "int64")
        heap = x.__array_interface__["data"][0] & ~0xFFF
        for at in (heap - (1 << 40), heap + (1 << 40), 8):  # never looked at
            address = np.lib.stride_tricks.as_strided(first, (1,), (8,)).__array_interface__ | {"data": (at, False)}

            class Nowhere:
                __array_interface__ = address

            with pytest.raises(nvshmem.NvshmemInvalid, match="symmetric|heap"):
                put(np.asarray(Nowhere()), one, me)
        nvshmem.barrier_all()
        assert not x.any()
        put(one, x[:1], me)  # the symmetric side is the target
        assert x[0] == 1
        nvshmem.barrier_all()
        put_many(x[1:2], np.zeros(1, "int64"), 1 - me, 10_000)
        nvshmem.barrier_all()
        assert x.tolist() == [1, 9999, 0, 0]
        put(x[:0], one, 1 - me)
        put(x[2:], one, me)
        assert x.tolist() == [1, 9999, 1, 0]
        nvshmem.finalize()
        with pytest.raises(nvshmem.NvshmemInvalid, match="no rank that has called init"):
            put(x[:1], one, me)

    for ranks in ("threads", "processes"):
        ts.launch(2, main, ranks=ranks)


def test_compiled_puts_are_looked_at_where_blocks_are_checked(tmp_path):
    program = tmp_path / "freed.py"
    program.write_text(
        "import numpy as np, numba\n"
        "import tranship as ts, tranship.nvshmem as nvshmem\n"
        "import tranship.nvshmem.core.device.numba as device\n"
        "@numba.njit\n"
        "def put(target, source, pe):\n"
        "    device.put(target, source, pe)\n"
        "def main(world):\n"
        "    nvshmem.init()\n"
        "    x = nvshmem.array(1, 'int64')\n"
        "    put(x, np.ones(1, 'int64'), 0)\n"
        "    beyond = np.lib.stride_tricks.as_strided(x, (200,), (8,))[199:]\n"
        "    try:\n"
        "        put(beyond, np.ones(1, 'int64'), 0)\n"
        "    except ts.InvalidUse as error:\n"
        "        print('refused', error)\n"
        "ts.launch(1, main)\n"
    )
    for checks, text in (("blocks", "refused"), ("", "")):
        environment = {**os.environ, "TRANSHIP_HEAP_CHECKS": checks, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        if not checks:
            del environment["TRANSHIP_HEAP_CHECKS"]
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, timeout=120, env=environment, check=False
        )
        assert done.returncode == 0 and done.stdout.startswith(text), done.stdout + done.stderr


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_compiled_atomics(pes, dtype):
    def body(me, n):
        c = nvshmem.array(2, dtype)
        assert compiled_atomics(c, (me + 1) % n) == (6, 12, 8, 11, 10, 40, 41, 41, 8, 42)
        f = nvshmem.array(1, "float64")
        assert compiled_swap(f, 2.5, (me + 1) % n) == 0
        nvshmem.barrier_all()
        assert f[0] == 2.5
        with pytest.raises(nvshmem.NvshmemInvalid, match="integers, not f64"):
            compiled_add(f, 1, 0)
        with pytest.raises(nvshmem.NvshmemInvalid, match="not i16"):
            compiled_add(nvshmem.array(1, "int16"), 1, 0)

    pes(2, body)


@jit
def compiled_fetches(c, out, pe):
    device.atomic_fetch_add_nbi(out[0:], c, 5, pe)
    device.atomic_fetch_inc_nbi(out[1:], c, pe)
    device.atomic_fetch_or_nbi(out[2:], c, 8, pe)
    device.atomic_fetch_and_nbi(out[3:], c, 12, pe)
    device.atomic_fetch_xor_nbi(out[4:], c, 1, pe)
    device.atomic_swap_nbi(out[5:], c, 30, pe)
    device.atomic_compare_swap_nbi(out[6:], c, 30, 31, pe)
    device.atomic_fetch_nbi(out[7:], c, pe)
    device.quiet()


def test_fetches_that_do_not_block():
    def main(world):
        nvshmem.init()
        for fetches in (compiled_fetches, compiled_fetches.py_func):
            c, out = nvshmem.array(1, "int32"), np.zeros(8, "int32")
            fetches(c, out, world.rank)
            assert out.tolist() == [0, 5, 6, 14, 12, 13, 30, 31]
        nvshmem.finalize()

    ts.launch(2, main)


@jit
def compiled_swap(c, value, pe):
    return device.atomic_swap(c, value, pe)


@jit
def compiled_add(c, value, pe):
    device.atomic_add(c, value, pe)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_compiled_collectives(pes, dtype):
    def body(me, n):
        a, b = nvshmem.array(3, dtype), nvshmem.array(3, dtype)
        wide, other = nvshmem.array(n, dtype), nvshmem.array(2 * n, dtype)
        a[:], wide[:] = np.arange(3) + 10 * me, np.arange(n) + 100 * me
        results = compiled_collectives(nvshmem.Teams.TEAM_WORLD, a, b, wide, other)
        assert results == (n + 10 * n * (n - 1) / 2, 11, me, 10, 100 * (n - 1) + me)
        with pytest.raises(numba.TypingError, match="'median'"):
            compiled_median(a, b)
        with pytest.raises(nvshmem.NvshmemInvalid, match="no team 99"):
            compiled_collectives(99, a, b, wide, other)

    pes(3, body)


@jit
def compiled_median(a, b):
    device.reduce(0, b, a, "median")


def test_compiled_waits_end_with_their_deadline_and_their_peers():
    @jit(nogil=True)
    def wait(sig):
        device.signal_wait(sig, EQ, 77)

    def late(world):
        nvshmem.init()
        sig = nvshmem.array(1, "uint64")
        world.timeout = 0.05
        with pytest.raises(ts.TimeoutError, match="77"):
            wait(sig)
        world.timeout = 60
        nvshmem.barrier_all()
        nvshmem.finalize()

    ts.launch(2, late)

    @jit(nogil=True)
    def wait_any(x):
        return device.wait_until_any(x, EQ, 77)

    def late_any(world):
        nvshmem.init()
        x = nvshmem.array(3, "int32")
        world.timeout = 0.05
        with pytest.raises(ts.TimeoutError, match="77"):
            wait_any(x)
        world.timeout = 60
        nvshmem.barrier_all()
        nvshmem.finalize()

    ts.launch(2, late_any)

    def lost(world):
        nvshmem.init()
        sig = nvshmem.array(1, "uint64")
        if world.rank == 1:
            raise KeyError("enough")
        wait(sig)

    with pytest.raises(KeyError, match="enough"):
        ts.launch(3, lost)


def test_compiled_functions_outside_of_a_rank():
    @jit
    def put(x):
        device.put(x, x, 0)

    with pytest.raises(nvshmem.NvshmemInvalid, match=r"no rank that has called init"):
        put(np.zeros(3))
