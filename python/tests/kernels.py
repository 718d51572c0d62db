"""Kernels under Numba's CUDA simulator, run by test_nvshmem_kernels.py as programs of their own: the simulator is chosen
before Numba is imported, and runs in one thread of a process. usage: kernels.py CASE:RANKS..."""

import os
import sys

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
os.environ["NUMBA_CUDA_ENABLE_NRT"] = "1"  # as NVSHMEM4Py asks for, of views of peers in kernels

import numpy as np
from numba import cuda

import tranship as ts
import tranship.nvshmem as nvshmem
import tranship.nvshmem.core.device.numba as device
from tranship.nvshmem import Device as cudaDevice

ADD, SET = nvshmem.SignalOp.SIGNAL_ADD, nvshmem.SignalOp.SIGNAL_SET
GE, EQ = nvshmem.ComparisonType.CMP_GE, nvshmem.ComparisonType.CMP_EQ


def refused(kernel, threads, *args):
    try:
        kernel[1, threads](*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("nothing was raised")


# The example of NVSHMEM4Py's documentation; only its imports are others.


@cuda.jit
def rma_kernel(src, dst, remote_buf, pe):
    tid = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if tid == 0:
        device.put(remote_buf, src, pe)
        device.get(dst, remote_buf, pe)


def example():
    dev = cudaDevice()
    dev.set_current()
    stream = dev.create_stream()
    nvshmem.init(dev=dev, initializer_method="", stream=stream)
    me, n_pes = nvshmem.my_pe(), nvshmem.n_pes()
    pe = (me + 1) % n_pes
    src = nvshmem.array((1,), dtype=np.int32)
    dst = nvshmem.array((1,), dtype=np.int32)
    remote_buf = nvshmem.array((1,), dtype=np.int32)
    src[:] = me + 10
    rma_kernel[1, 1](src, dst, remote_buf, pe, stream=int(stream.handle))
    nvshmem.barrier_all()
    assert dst[0] == me + 10 and remote_buf[0] == (me - 1) % n_pes + 10
    nvshmem.finalize(dev=dev, stream=stream)


# Transfers.


@cuda.jit
def every_transfer(inbox, mine, back, strided, pe):
    device.put_block(inbox[0], mine, pe)
    device.put_warp(inbox[1], mine, pe)
    if cuda.threadIdx.x == 0:
        device.put(inbox[2], mine, pe)
        device.put_nbi(inbox[3], mine, pe)
        device.p(inbox[6], mine[1], pe)
    device.put_nbi_block(inbox[4], mine, pe)
    device.put_nbi_warp(inbox[5], mine, pe)
    device.put_block(strided[::2, 1], mine[::-1], pe)
    device.quiet_block()
    device.barrier_all_block()
    device.get_block(back[0], inbox[0], pe)
    device.get_nbi_warp(back[1], inbox[1], pe)
    device.quiet_warp()
    if cuda.threadIdx.x == 0:
        device.get(back[2], inbox[2], pe)
        back[3][0] = device.g(inbox[6], pe)


def transfers():
    nvshmem.init()
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    for dtype in ("int8", "uint16", "int32", "uint64", "float32", "float64"):
        inbox, mine = nvshmem.array((7, 4), dtype), nvshmem.array(4, dtype)
        strided = nvshmem.array((8, 3), dtype)
        back = np.zeros((4, 4), dtype)
        mine[:] = np.arange(4) + 10 * me
        every_transfer[1, 64](inbox, mine, back, strided, (me + 1) % n)
        nvshmem.barrier_all()
        theirs = (np.arange(4) + 10 * ((me - 1) % n)).astype(dtype)
        assert (inbox[:6] == theirs).all() and inbox[6, 0] == theirs[1] and not inbox[6, 1:].any()
        assert (strided[::2, 1] == theirs[::-1]).all() and not strided[:, ::2].any() and not strided[1::2].any()
        assert (back[:3] == mine).all() and back[3, 0] == mine[1], back
        nvshmem.barrier_all()
    nvshmem.finalize()


# Signals, waits, atomics.


@cuda.jit
def ring(data, mine, sig, counts, pe):
    device.put_signal_block(data, mine, sig, 1, ADD, pe)
    device.signal_wait_block(sig, GE, 1)
    tid = cuda.threadIdx.x
    if tid < data.size:
        data[tid] += 1
    cuda.syncthreads()
    device.atomic_add(counts[0:1], 1, pe)
    device.atomic_inc(counts[1:2], pe)
    if tid == 0:
        counts[6] = device.atomic_fetch_add(counts[2:3], 5, pe)
        device.atomic_set(counts[3:4], 77, pe)
        device.atomic_or(counts[4:5], 6, pe)
        device.atomic_and(counts[4:5], 3, pe)
        device.atomic_xor(counts[4:5], 1, pe)
        device.atomic_compare_swap(counts[5:6], 0, 9, pe)
        device.atomic_compare_swap(counts[5:6], 0, 10, pe)
        device.signal_op(sig, 5, SET, pe)
    device.signal_wait_warp(sig, EQ, 5)
    device.barrier_all_block()


@cuda.jit
def several(flags, values, pe, out):
    if cuda.threadIdx.x == 0:
        out[0] = device.test_all(flags, EQ, values)
        device.barrier_all()
        for i in range(flags.size):
            device.p(flags[i : i + 1], values[i], pe)
        device.wait_until_all(flags, EQ, values)
        out[1] = device.wait_until_any(flags, EQ, values)
        out[2] = len(device.wait_until_some(flags, EQ, values))
        out[3] = device.test(flags[2:], EQ, values[2])
        out[4] = device.wait_until(flags, GE, 1)
        out[5] = device.signal_fetch(flags.view(np.uint64)[:1])


def signals():
    nvshmem.init()
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    data, mine = nvshmem.array(10, "float64"), nvshmem.array(10, "float64")
    sig, counts = nvshmem.array(1, "uint64"), nvshmem.array(7, "int32")
    mine[:] = me
    ring[1, 48](data, mine, sig, counts, (me + 1) % n)
    nvshmem.barrier_all()
    assert (data == (me - 1) % n + 1).all(), data
    assert counts.tolist() == [48, 48, 5, 77, 3, 9, 0], counts
    flags, values, out = nvshmem.array(4, "int64"), np.array([3, 5, 7, 9]), np.zeros(6, "int64")
    several[1, 3](flags, values, (me + 1) % n, out)
    assert out.tolist() == [0, 0, 4, 1, 3, 3], out
    nvshmem.finalize()


# Collective operations.


@cuda.jit
def all_of_them(team, a, b, wide, other, out):
    device.reduce_block(team, b, a, "sum")
    if cuda.threadIdx.x == 0:
        out[0] = b[1]
    device.broadcast_warp(team, b, a, 1)
    if cuda.threadIdx.x == 0:
        out[1] = b[1]
        device.alltoall(team, other, wide)
        out[2] = other[0]
        device.fcollect(team, other, a[:2])
        out[3] = other[2]
        device.reducescatter(team, b[:1], wide, "max")
        out[4] = b[0]
        device.sync(team)
        device.barrier(team)
    device.sync_all_block()
    out[5] = device.team_my_pe(team) + 10 * device.team_n_pes(team) + 100 * device.my_pe() + 1000 * device.n_pes()


def collectives():
    nvshmem.init()
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    a, b = nvshmem.array(3, "int32"), nvshmem.array(3, "int32")
    wide, other = nvshmem.array(n, "int32"), nvshmem.array(2 * n, "int32")
    a[:], wide[:] = np.arange(3) + 10 * me, np.arange(n) + 100 * me
    out = np.zeros(6, "int64")
    all_of_them[1, 32](nvshmem.Teams.TEAM_WORLD, a, b, wide, other, out)
    total = n + 10 * n * (n - 1) // 2
    assert out.tolist() == [total, 11, me, 10, 100 * (n - 1) + me, me + 10 * n + 100 * me + 1000 * n], out
    nvshmem.finalize()


@cuda.jit
def by_loads(x, pe, out):
    tid = cuda.threadIdx.x
    there = device.get_peer_array(x, pe)
    there[tid] = 100 + tid
    device.barrier_all_block()
    everywhere = device.get_multicast_array(0, x)
    out[tid] = everywhere.load_reduce("sum")[tid]
    device.barrier_all_block()
    if device.my_pe() == 0 and tid == 0:
        everywhere[2] = 5
    device.barrier_all_block()


def memory():
    nvshmem.init()
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    x, out = nvshmem.array(4, "int32"), np.zeros(4, "int32")
    by_loads[1, 4](x, (me + 1) % n, out)
    assert out.tolist() == [n * (100 + i) for i in range(4)] and x[2] == 5, (out, x)
    nvshmem.finalize()


@cuda.jit
def every_form(scope, x, y, flags, values, sig, pe, out):
    """One operation after another, by a warp or a block: each does what its name says in every scope."""
    op = lambda name: getattr(device, name + scope)  # noqa: E731
    n = device.n_pes()
    for name in ("put", "put_nbi"):
        op(name)(x, y, pe)
        op("quiet")()
        op("barrier")(0)
    op("fence")()
    for i, name in enumerate(("put_signal", "put_signal_nbi")):
        op(name)(x, y, sig, 1, ADD, pe)
        op("signal_wait")(sig, GE, i + 1)
        op("barrier_all")()
    op("signal_op")(sig, 9, SET, pe)
    op("signal_wait")(sig, EQ, 9)
    out[0] = op("signal_fetch")(sig)
    op("get")(y, x, pe)
    op("get_nbi")(y, x, pe)
    op("quiet")()
    op("sync")(0)
    if cuda.threadIdx.x == 0:
        for i in range(3):
            device.p(flags[i : i + 1], i + 1, pe)
    out[1] = op("wait_until")(flags, EQ, 1)
    op("wait_until_all")(flags, EQ, values)
    out[2] = op("wait_until_any")(flags, EQ, values)
    out[3] = len(op("wait_until_some")(flags, EQ, values))
    out[4] = op("test")(flags, EQ, 1) + 2 * op("test_all")(flags, EQ, values)
    out[5] = op("test_any")(flags, EQ, values) + 10 * len(op("test_some")(flags, EQ, values))
    op("sync_all")()
    op("reduce")(0, y, x, "sum")
    op("broadcast")(0, y, x, 0)
    op("reducescatter")(0, y[: y.size // n], x, "max")
    op("fcollect")(0, y, x[: y.size // n])
    op("alltoall")(0, y, x)
    op("barrier_all")()


def forms():
    nvshmem.init()
    me, n = nvshmem.my_pe(), nvshmem.n_pes()
    for scope, threads in (("", 1), ("_warp", 32), ("_block", 40)):
        x, y = nvshmem.array(2 * n, "int32"), nvshmem.array(2 * n, "int32")
        flags, sig, out = nvshmem.array(3, "int64"), nvshmem.array(1, "uint64"), np.zeros(6, "int64")
        y[:] = np.arange(2 * n) + 100 * me
        every_form[1, threads](scope, x, y, flags, np.array([1, 2, 3]), sig, (me + 1) % n, out)
        assert out.tolist() == [9, 1, 0, 3, 3, 30], out
        of = lambda pe: np.arange(2 * n) + 100 * ((pe - 1) % n)  # noqa: E731
        assert (x == of(me)).all() and (y == np.concatenate([of(pe)[2 * me : 2 * me + 2] for pe in range(n)])).all()
        nvshmem.barrier_all()
    nvshmem.finalize()


# Threads that diverge, and other misuse.


@cuda.jit
def one_ends(dst, src, pe):
    if cuda.threadIdx.x != 1:
        device.put_block(dst, src, pe)


@cuda.jit
def two_operations(dst, src, pe):
    if cuda.threadIdx.x == 1:
        device.get_block(dst, src, pe)
    else:
        device.put_block(dst, src, pe)


@cuda.jit
def other_arguments(dst, src, pe):
    device.put_warp(dst, src, cuda.threadIdx.x % 2)


@cuda.jit
def one_at_syncthreads(dst, src, pe):
    if cuda.threadIdx.x != 1:
        device.put_block(dst, src, pe)
    cuda.syncthreads()


@cuda.jit
def only_one_warp(dst, src, pe):
    if cuda.threadIdx.x < 32:
        device.put_warp(dst, src, pe)


@cuda.jit
def waits_for_ever(sig):
    device.signal_wait(sig, EQ, 77)


@cuda.jit
def puts_wrongly(dst, src, pe):
    device.put(dst, src, pe)


@cuda.jit
def puts_a_value(dst, value):
    device.p(dst, value, 0)


def misuse():
    nvshmem.init()
    me = nvshmem.my_pe()
    dst, src, sig = nvshmem.array(4, "int32"), nvshmem.array(4, "int32"), nvshmem.array(1, "uint64")
    text = refused(one_ends, 4, dst, src, 0)
    assert "put_block(int32[4] at" in text and "thread 1 has ended" in text, text
    text = refused(two_operations, 4, dst, src, 0)
    assert "diverged" in text and "put_block" in text and "get_block" in text, text
    text = refused(other_arguments, 4, dst, src, 0)
    assert "threads of a warp have diverged" in text, text
    text = refused(one_at_syncthreads, 4, dst, src, 0)
    assert "thread 1 is at syncthreads" in text, text
    only_one_warp[1, 64](dst, src, 0)
    ts.current_world().timeout = 0.2
    text = refused(waits_for_ever, 2, sig)
    assert "TimeoutError" in text and "sees 0" in text and "77" in text, text
    ts.current_world().timeout = 60
    for wrong, what in [
        ((dst, np.zeros(4, "int64"), 0), "i64"),
        ((np.zeros(4, "int32"), np.ones(4, "int32"), 0), "symmetric heap"),
        ((dst, src, 99), "no rank 99"),
        ((dst.reshape(2, 2)[:, :1], src[:3], 0), "equal"),
    ]:
        text = refused(puts_wrongly, 1, *wrong)
        assert "InvalidUse" in text and what in text, text
    small = nvshmem.array(1, "int8")
    for value, what in [(300, "does not fit"), (1.5, "takes an integer, not float64"), (True, "takes an integer, not bool")]:
        text = refused(puts_a_value, 1, small, value)
        assert "InvalidUse" in text and what in text and small[0] == 0, text
    nvshmem.barrier_all()
    puts_a_value[1, 1](small, -5)
    nvshmem.barrier_all()
    if me == 0:
        assert small[0] == -5
    nvshmem.barrier_all()
    nvshmem.finalize()


@cuda.jit
def waits(sig):
    device.signal_wait_block(sig, EQ, 1)


def lost_peer():
    nvshmem.init()
    sig = nvshmem.array(1, "uint64")
    if nvshmem.my_pe() == 1:
        os.kill(os.getpid(), 9)
    text = refused(waits, 4, sig)
    assert "PeerLost" in text and "rank 1" in text, text
    os._exit(0)


def threads_are_refused():
    """Ranks that are threads share one simulator."""

    def main(world):
        nvshmem.init()
        x = nvshmem.array(4, "int32")
        try:
            if world.rank == 0:
                text = refused(puts_wrongly, 1, x, x, 0)
                assert "kernels need ranks that are processes" in text, text
            return True
        finally:
            world.barrier()
            nvshmem.finalize()

    assert ts.launch(2, main) == [True, True]


def run(name, ranks):
    case = globals()[name]
    if ranks == 0:
        case()
        return
    try:
        ts.launch(ranks, lambda world: case(), ranks="processes")
    except ts.PeerLost:
        assert case is lost_peer


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        name, ranks = argument.split(":")
        run(name, int(ranks))
    print("done")
