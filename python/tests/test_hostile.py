"""Cases that a reviewer broke, and that must not break again."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import tranship as ts
from tranship import pyop3 as op3


def test_a_wrapped_array_keeps_the_view_and_not_only_its_owner():
    class Fresh:
        def __dlpack__(self, **options):
            return np.arange(1000.0).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    def body(world):
        d = ts.distribution(1000, 1)
        a = ts.wrap(world, d, Fresh())
        gc.collect()
        junk = [np.full(1000, -1.0) for _ in range(50)]
        assert a.local[5] == 5 and junk
        memory = bytearray(1000)
        b = ts.wrap(world, ts.distribution(1000, 1), memory)
        with pytest.raises(BufferError):
            memory.extend(b"x" * (1 << 26))
        b.local[5] = 7
        assert memory[5] == 7
        import array

        c = ts.wrap(world, ts.distribution(3, 1), array.array("d", [1, 2, 3]))
        assert c.local.tolist() == [1, 2, 3]

    ts.launch(1, body)


def test_read_only_memory_is_never_written():
    def body(world):
        x = np.zeros(8)
        x.flags.writeable = False
        a = ts.wrap(world, ts.distribution(8, 1, overlap=1, edge="truncate"), x)
        for use in (a.write, a.read_write, a.accumulate, lambda: a.read("stored"), lambda: a.read("ghosts")):
            with pytest.raises(ts.InvalidUse, match="read-only"):
                use()
        with a.read() as view:
            assert not view.any()

    ts.launch(1, body)


def test_what_does_not_block_keeps_its_operands(run):
    def body(world):
        s = ts.symmetric(world, 1000)
        other = (world.rank + 1) % world.size
        s.put(7.0, other, nbi=True)
        junk = [np.full(1000, -1.0) for _ in range(20)]
        world.quiet()
        world.barrier()
        assert np.all(s.local == 7) and junk
        world.barrier()
        s.get(other, np.empty(1000), nbi=True)
        gc.collect()
        junk = [np.full(1000, -1.0) for _ in range(20)]
        world.quiet()
        assert all(np.all(j == -1) for j in junk)
        world.barrier()

    run(2, body)


def test_strides_that_are_no_elements_are_refused():
    x = np.zeros(6, [("a", "f8"), ("b", "i4")])
    with pytest.raises(ts.InvalidUse, match="multiples"):
        ts.Buffer(data=x["a"])
    with pytest.raises(ts.InvalidUse, match="multiples"):
        op3.ArrayBuffer(x["a"])
    with pytest.raises(ts.InvalidUse, match="share memory"):
        ts.Buffer(data=np.lib.stride_tricks.as_strided(np.zeros(3), (5,), (0,)))
    with pytest.raises(ts.InvalidUse, match="share memory"):
        ts.Buffer(data=np.lib.stride_tricks.as_strided(np.zeros(8), (3, 3), (16, 8)))
    y = np.arange(24.0).reshape(4, 6)[::-2, ::3]
    with ts.Buffer(data=y).read() as view:
        assert np.array_equal(view, y)


def test_words_outside_are_refused():
    def body(world):
        s = ts.symmetric(world, 4, "u8")
        with pytest.raises(ts.InvalidUse):
            s[4:4].signal(0)
        assert not s.local.any()
        small = ts.symmetric(world, 1, "i4")
        for call in (
            lambda: s.add(0, -1),
            lambda: s.add(0, 1 << 64),
            lambda: small.add(0, 1 << 40),
            lambda: s.wait_until(">=", -1),
        ):
            with pytest.raises(ts.InvalidUse, match="does not fit"):
                call()
        with pytest.raises(TypeError):
            s.add(0, 1.5)
        small.set(0, np.int32(3))
        assert small.local[0] == 3
        assert ts.symmetric(world, ())[()].shape == ()

    ts.launch(1, body)


@pytest.mark.parametrize("kind", ["threads", "sim", "processes"])
def test_exceptions_that_cannot_be_said_come_all_the_same(kind):
    class Silent(Exception):
        def __str__(self):
            raise KeyError("no words")

    def body(world, error):
        if world.rank == 1:
            raise error
        world.barrier()

    numbered = ts.InvalidUse("odd")
    numbered.rank = "one"
    for error in (ValueError("\ud800"), Silent(), numbered):
        expected = ts.Error if kind == "processes" else type(error)
        with pytest.raises(expected):
            ts.launch(2, lambda world: body(world, error), ranks=kind)


def test_processes_in_a_simulation():
    def body(world):
        return ts.launch(2, lambda inner: inner.all_gather(inner.rank), ranks="processes")

    assert ts.simulate(2, body) == [[[0, 1], [0, 1]]] * 2


def test_programs_that_are_simulated(command, tmp_path):
    program = tmp_path / "ring.py"
    program.write_text(
        "import tranship as ts\n"
        "def main(world):\n"
        "    a = ts.symmetric(world, 1)\n"
        "    a.put(float(world.rank), (world.rank + 1) % world.size)\n"
        "    world.barrier()\n"
        "    assert a.local[0] == (world.rank - 1) % world.size\n"
        "ts.launch(main)\n"
    )
    done = subprocess.run(
        [command, "simulate", "-n", "3", "--seeds", "20", sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_timeouts_that_are_none(timeout):
    with pytest.raises(ts.InvalidUse, match="timeout"):
        ts.launch(1, lambda world: None, timeout=timeout)
    with pytest.raises(ts.InvalidUse, match="timeout"):
        ts.simulate(1, lambda world: None, timeout=timeout)


def test_arguments_of_other_kinds():
    def body(world):
        d = ts.distribution(8, 1, overlap=1, edge="toroidal")
        a = ts.array(world, d)
        for call in (
            lambda: world.split(0, 0),
            lambda: ts.halo(a, adjoint=True, combine="max", schedule="bogus"),
            lambda: ts.halo(a, combine="max"),
            lambda: a.read(region=5),
            lambda: op3.ArrayBuffer([1.0]),
            lambda: ts.Buffer(data=[1.0]),
            lambda: ts.symmetric(world, 3).get(0, out=[1, 2, 3]),
        ):
            with pytest.raises(ts.InvalidUse):
                call()
        x = op3.ArrayBuffer(np.zeros(3))
        x.reduce_leaves_to_roots_begin(op3.MAX)
        with pytest.raises(op3.BadOrderingException):
            x.reduce_leaves_to_roots_end(op3.MIN)
        x.reduce_leaves_to_roots_end(op3.MAX)

    ts.launch(1, body)
