"""Layouts and plans as Python's values: what they print, that they are pickled and copied, that equal ones are one key;
and what errors know."""

import copy
import pickle

import numpy as np
import pytest

import tranship as ts

VALUES = {
    "distribution": lambda: ts.distribution((8, 6), (2, 1), "cyclic(2)", overlap=[1, 0], edge="toroidal", order=(1, 0)),
    "interfaces": lambda: ts.distribution(9, 2, interfaces=True),
    "indexed": lambda: ts.indexed(8, [([0, 1, 2, 3], [4]), ([4, 5, 6, 7], [3])]),
    "layout": lambda: ts.layout("bf16[8,8] @ 2x2 : block, irregular(0,3,8)"),
    "grid": lambda: ts.grid(2, 2, replicas=2, order=(2, 0, 1)),
    "grid of ranks": lambda: ts.grid(2, ranks=[5, 3]),
    "grid with a stride": lambda: ts.grid(2, 2, first=1, stride=2),
    "whole": ts.whole,
    "cyclic": lambda: ts.cyclic(4),
    "block": lambda: ts.block("ceil"),
    "irregular": lambda: ts.irregular([0, 3, 8]),
    "every rule": lambda: ts.block("high").with_minimum(3).with_modulo(2).with_interfaces().with_overlap(1, 2, "zero"),
    "no rule": lambda: ts.cyclic(0),
    "cubed_sphere": lambda: ts.cubed_sphere(4),
    "folded": lambda: ts.folded(4, 6),
    "periodic": lambda: ts.periodic((4, 6), (0,)),
    "plan": lambda: ts.plan_halo([ts.ArraySpec("f64", ts.distribution(8, 2, overlap=1))], 0),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_pickled_copied_and_hashed(kind):
    value, other = VALUES[kind](), VALUES[kind]()
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value), other):
        assert again == value and hash(again) == hash(value) and repr(again) == repr(value)
    assert len({value, other, copy.copy(value)}) == 1
    assert " object at 0x" not in repr(value)


def test_values_come_back_from_processes():
    def main(world):
        d = ts.distribution((8, 6), (world.size, 1), overlap=1)
        return d, ts.ArraySpec("f32", d), ts.block().with_overlap(1, 1, "toroidal"), ts.cubed_sphere(3)

    for returned in ts.launch(2, main, ranks="processes"):
        assert returned == ts.launch(2, main)[0]


@pytest.mark.parametrize(
    "kind, state",
    [
        (ts.Distribution, '{"extents": [8]}'),
        (ts.Distribution, "nothing"),
        (ts.Partition, (9, 0, 0, [], 0, 1, 0, [0, 0, 0, 0])),
        (ts.Partition, (0, 0, 0, [], 0, 1, 0, [0, 99, 0, 0])),
        (ts.Grid, ((0,), 1, [], 0, 1, [])),
        (ts.Tiling, ([(4, 4)], [((0, 0, "up"), (0, 0, "low"), (), ())])),
        (ts.Tiling, ([], [])),
    ],
)
def test_pickled_values_are_checked(kind, state):
    with pytest.raises(ts.Error):
        kind.__new__(kind).__setstate__(state)


def test_values_print_what_they_are():
    d = ts.distribution((8, 6), (2, 1), ["block", "cyclic(2)"], overlap=[1, 0], edge="toroidal")
    assert repr(d) == "<distribution [8,6] @ 2x1 : block+overlap(1,1,toroidal), cyclic(2)>"
    assert repr(d.partition(0)) == "<partition block+overlap(1,1,toroidal)>"
    assert repr(ts.irregular([0, 3, 8])) == "<partition irregular(0,3,8)>"
    assert repr(ts.cubed_sphere(4)) == "<tiling of 6 tiles, the first of [4, 4]>"
    assert repr(ts.Devices(fake=1)) == "<devices host, fake:0>"
    assert ts.Plans([VALUES["plan"]()]).explain() == VALUES["plan"]().explain()

    def main(world):
        a = ts.array(world, ts.distribution(8, 1, overlap=1, edge="toroidal"))
        return repr(ts.halo(a)), repr(ts.Redistribution(a, ts.array(world, ts.distribution(8, 1))))

    halo, turn = ts.launch(1, main)[0]
    assert halo.startswith("<HaloExchange: ") and turn.startswith("<Redistribution: ")


def test_tilings_are_made_of_their_edges():
    ring = ts.Tiling([(4, 6), (4, 6)], [((0, 1, "high"), (1, 1, "low"), (), ()), ((1, 1, "high"), (0, 1, "low"), (), ())])
    assert ring.tiles == 2 and ring.locate(0, (2, 6)) == (1, (2, 0)) and ring.locate(0, (2, -1)) == (1, (2, 5))
    sphere = ts.cubed_sphere(4)
    assert ts.Tiling([(4, 4)] * 6, sphere.edges) == sphere
    with pytest.raises(ts.InvalidUse, match="'up' of a tile: needs 'low' or 'high'"):
        ts.Tiling([(4, 4)], [((0, 0, "up"), (0, 0, "low"), (), ())])
    with pytest.raises(ts.InvalidUse, match="at least 1 tile, has 0"):
        ts.Tiling([], [])


def test_numbers_of_numpy_are_numbers():
    for extents, grid in ((np.int64(8), np.int32(2)), (np.array([8]), np.array([2])), ([np.uint8(8)], (np.int16(2),))):
        assert ts.distribution(extents, grid) == ts.distribution(8, 2)
    with pytest.raises(ts.Overflow, match="18446744073709551616 does not fit"):
        ts.distribution(2**64, 1)
    for extents in (8.5, (8.5,), "ab", None):
        with pytest.raises(ts.InvalidUse, match="integer"):
            ts.distribution(extents, 1)
    with pytest.raises(ts.InvalidUse, match="edge='round'"):
        ts.block().with_overlap(1, 1, "round")


@pytest.mark.parametrize("ranks", ["threads", "sim"])
def test_errors_of_calls_know_their_rank(ranks):
    def main(world):
        d = ts.distribution(8, world.size)
        for call in (
            lambda: ts.wrap(world, d, np.zeros(5)),  # of C++
            lambda: ts.wrap(world, d, [1, 2]),  # of Python
            lambda: ts.layout("nothing"),
        ):
            with pytest.raises(ts.Error) as raised:
                call()
            assert raised.value.rank == world.rank
            assert pickle.loads(pickle.dumps(raised.value)).rank == world.rank
        return ts.launch(1, lambda inner: ts.InvalidUse("x").rank) + [ts.InvalidUse("x").rank]

    assert ts.launch(3, main, ranks=ranks) == [[0, 0], [0, 1], [0, 2]]
    with pytest.raises(ts.BadText) as raised:
        ts.layout("nothing")
    assert raised.value.rank is None and raised.value.column == 1


def test_an_error_has_its_rank_where_it_is_raised_again():
    def main(world):
        if world.rank == 1:
            raise ts.InvalidUse("of rank 1")
        world.barrier()

    for ranks in ("threads", "processes", "sim"):
        with pytest.raises(ts.InvalidUse) as raised:
            ts.launch(2, main, ranks=ranks)
        assert raised.value.rank == 1 and raised.value.code == "invalid_use"
