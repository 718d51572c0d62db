"""Pipes: streams of arrays between two groups of ranks."""

import numpy as np
import pytest

import tranship as ts


def on(ranks, extents, *grid, **options):
    return ts.distribution(extents, grid=ts.grid(*grid, ranks=ranks), **options)


def value(frame):
    return lambda i, j: 1000 * frame + 10 * i + j


@pytest.mark.parametrize("buffers", [1, 2, (3, 2)])
@pytest.mark.parametrize("schedule", ["automatic", "direct", "staged"])
def test_frames_come_in_order(run, buffers, schedule):
    def body(world):
        rows = on([0, 1], (12, 9), 2, 1)
        tiles = on([3, 1, 2], (12, 9), 1, 3, overlap=[0, 1], edge="toroidal")
        pipe = ts.Pipe(world, rows, tiles, buffers=buffers, schedule=schedule)
        assert pipe.sends == (world.rank < 2) and pipe.receives == (world.rank > 0)
        for frame in range(7):
            if pipe.sends:
                with pipe.sender as out:
                    out.fill(value(frame))
            if pipe.receives:
                got = pipe.receiver.get()
                assert got.count_wrong(value(frame)) == 0
                assert pipe.receiver.held == 1
                pipe.receiver.put()
        if pipe.sends:
            pipe.sender.drain()
            assert pipe.sender.test_drained()
        world.barrier()
        return True

    assert run(4, body) == [True] * 4


def test_a_rank_knows_its_own_side_only(run):
    def body(world):
        sends = world.rank == 0
        mine = on([0], (6, 4), 1, 1) if sends else on([1, 2], (6, 4), 2, 1)
        pipe = ts.Pipe(world, mine if sends else None, None if sends else mine, dtype="i4")
        assert str(pipe.source).startswith("i32[6,4]") and str(pipe.target).startswith("i32[6,4]")
        assert "message" in pipe.explain()
        if sends:
            with pipe.sender as out:
                out.local[...] = np.arange(24).reshape(6, 4)
            pipe.sender.drain()
            return None
        while (got := pipe.receiver.test_get()) is None:
            pass
        return got.local[0, 0].item()

    assert run(3, body) == [None, 0, 12]


def test_buffers_of_the_program(run):
    def body(world):
        rows, columns = ts.distribution((8, 6), grid=(2, 1)), ts.distribution((8, 6), grid=(1, 2))
        memory = np.zeros((4, 2, 8))  # in every other column
        sources = [ts.array(world, rows), ts.wrap(world, rows, np.zeros((4, 6))[:, ::-1])]
        targets = [ts.wrap(world, columns, np.zeros((8, 3)))]
        assert memory.size == 64
        pipe = ts.Pipe(world, sources, targets)
        assert pipe.sender.buffers[1] is sources[1] and len(pipe.receiver.buffers) == 1
        for frame in range(4):
            with pipe.sender as out:
                out.fill(value(frame))
            with pipe.receiver as got:
                assert got is targets[0] and got.count_wrong(value(frame)) == 0
        pipe.sender.drain()
        world.barrier()
        pipe.close()
        with pytest.raises(ts.InvalidUse, match="closed"):
            pipe.sender.get()
        return True

    assert run(2, body) == [True, True]


def test_wrong_programs(run):
    def body(world):
        rows, columns = on([0], (4, 4), 1, 1), on([1], (4, 4), 1, 1)
        pipe = ts.Pipe(world, rows, columns, buffers=1, name="p")
        mine, other = (pipe.sender, pipe.receiver) if pipe.sends else (pipe.receiver, pipe.sender)
        with pytest.raises(ts.InvalidUse, match="no buffer of the"):
            mine.put()
        with pytest.raises(ts.InvalidUse, match="'p'"):
            other.get()
        mine.get()
        with pytest.raises(ts.InvalidUse, match=r"is free \(1 held of 1\)"):
            mine.get()
        with pytest.raises(ZeroDivisionError):
            mine.put()
            with mine:
                raise ZeroDivisionError
        assert mine.held == 1
        mine.put()
        mine.drain()  # where peers are messaged, nothing else moves it until the next call
        world.barrier()
        with pytest.raises(ts.Mismatch, match="4"):
            ts.Pipe(world, rows, on([1], (4, 5), 1, 1))
        with pytest.raises(ts.Mismatch, match="no rank gives"):
            ts.Pipe(world, rows, None)
        with pytest.raises(ts.InvalidUse, match="0 buffers"):
            ts.Pipe(world, rows, columns, buffers=0)
        constant = np.zeros((4, 4))
        constant.flags.writeable = False
        target = [ts.wrap(world, columns, constant if world.rank == 1 else constant[:0, :0])]
        with pytest.raises(ts.InvalidUse, match="read-only"):
            ts.Pipe(world, rows, target, buffers=1)
        return True

    assert run(2, body) == [True, True]


def test_ends_and_pipes_are_public():
    assert ts.PipeEnd.get.__doc__ and ts.Pipe.close.__doc__
