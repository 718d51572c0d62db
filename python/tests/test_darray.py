"""Distributions against MPI's: the elements that ``MPI_Type_create_darray`` selects for each rank, and their order."""

import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

import tranship as ts


def random_case(draw, extents, is_fortran, ranks_max=24):
    """A case of at most `ranks_max` ranks; dimensions may be smaller than their grids, so that ranks are empty."""
    grid, cuts = [], []
    for extent in extents:
        kind = draw.choice(["none", "block", "block", "cyclic", "cyclic"])
        parts = 1 if kind == "none" else draw.randint(1, min(7, max(1, ranks_max // int(np.prod(grid, initial=1)))))
        size = None
        if kind == "block" and draw.random() < 0.4:
            size = -(-extent // parts) + draw.randint(0, 3)  # MPI refuses blocks that do not cover the dimension
        elif kind == "cyclic" and draw.random() < 0.8:
            size = draw.randint(1, extent + 2)
        grid.append(parts)
        cuts.append((kind, size))
    return {"extents": extents, "grid": grid, "cuts": cuts, "is_fortran": is_fortran}


def partition_of(extent, parts, kind, size):
    if kind == "none":
        return ts.whole()
    if kind == "cyclic":
        return ts.cyclic(size or 1)
    if size is None:
        return ts.block("ceil")
    return ts.irregular([min(part * size, extent) for part in range(parts + 1)])


def distribution_of(case, first=0):
    cuts = [partition_of(n, parts, *cut) for n, parts, cut in zip(case["extents"], case["grid"], case["cuts"])]
    order = range(len(cuts))
    # The grid of processes is row-major in both orders.
    grid = ts.grid(*case["grid"], first=first)
    return ts.distribution(case["extents"], grid, cuts, order=order[::-1] if case["is_fortran"] else order)


def selected_by_mpi(cases):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: there is no darray to compare with")
    script = pathlib.Path(__file__).parent / "darray_elements.py"
    command = [sys.executable, str(script)]
    ran = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, timeout=100)
    if ran.returncode == 77:
        pytest.skip(ran.stderr.strip())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def random_extents(draw):
    return [draw.randint(1, [60, 16, 9][dims]) for dims in [draw.randrange(3)] for _ in range(dims + 1)]


def random_pair(draw):
    extents = random_extents(draw)
    return [random_case(draw, extents, draw.random() < 0.4, ranks_max=6) for _ in range(2)]


DRAW = random.Random(2002)
SINGLE = [random_case(DRAW, random_extents(DRAW), DRAW.random() < 0.4) for _ in range(400)]
PAIRS = [random_pair(DRAW) for _ in range(60)]
BLOCKS = {"extents": [5], "grid": [4], "cuts": [("block", None)], "is_fortran": False}


@pytest.fixture(scope="module")
def selected():
    """The elements of each rank of the cases SINGLE, of PAIRS, and of BLOCKS; MPI begins once."""
    elements = iter(selected_by_mpi(SINGLE + [case for pair in PAIRS for case in pair] + [BLOCKS]))
    singles = [next(elements) for _ in SINGLE]
    return singles, [[next(elements) for _ in pair] for pair in PAIRS], next(elements)


def elements_of(case, distribution, rank):
    """The elements that MPI must select, in the order in which they lie in the local array's memory."""
    order = "F" if case["is_fortran"] else "C"
    whole = np.arange(np.prod(case["extents"])).reshape(case["extents"], order=order)
    extents, strides = distribution.local_extents(rank), distribution.local_strides(rank)
    memory = np.full(distribution.storage_elements(rank), -1)
    local = np.lib.stride_tricks.as_strided(memory, extents, [stride * memory.itemsize for stride in strides])
    for one in distribution.slices(rank):
        local[one["local_owned"]] = whole[one["owned"]]
    return memory.tolist()


def test_ranks_have_the_elements_that_darray_selects(selected):
    ranks = empty = 0
    for case, expected in zip(SINGLE, selected[0]):
        distribution = distribution_of(case)
        for rank, elements in enumerate(expected):
            assert elements_of(case, distribution, rank) == elements, (case, rank)
            ranks += 1
            empty += not elements
    assert ranks > 1500 and empty > 100


def test_balanced_blocks_are_not_those_of_darray(selected):
    assert selected[2] == [[0, 1], [2, 3], [4], []]
    balanced = ts.distribution([5], 4)
    assert [elements_of(BLOCKS, balanced, rank) for rank in range(4)] == [[0, 1], [2], [3], [4]]


@pytest.mark.parametrize("is_disjoint", [False, True])
def test_pipes_deliver_the_elements_that_darray_selects(selected, is_disjoint):
    """Senders put down the local arrays that MPI packs from frames; receivers must get those that MPI packs."""
    for k in range(is_disjoint, len(PAIRS), 2):
        pair = PAIRS[k]
        order = ["F" if one["is_fortran"] else "C" for one in pair]
        extents = pair[0]["extents"]
        # An element has one number on both sides, that of C order.
        numbers = [np.arange(np.prod(extents)).reshape(extents).ravel(side) for side in order]
        sizes = [int(np.prod(one["grid"])) for one in pair]
        first = sizes[0] if is_disjoint else 0
        source, target = distribution_of(pair[0]), distribution_of(pair[1], first)

        def packed(side, part, shape, frame):
            values = numbers[side][selected[1][k][side][part]] + 10000 * frame
            return values.reshape(shape, order=order[side])

        def body(world):
            pipe = ts.Pipe(world, source, target, dtype="i4")
            compared = 0
            for frame in range(3):
                if pipe.sends:
                    with pipe.sender as out:
                        out.local[...] = packed(0, world.rank, out.local.shape, frame)
                if pipe.receives:
                    with pipe.receiver as got:
                        expected = packed(1, world.rank - first, got.local.shape, frame)
                        assert np.array_equal(got.local, expected), (pair, world.rank, frame)
                        compared += got.local.size
            if pipe.sends:
                pipe.sender.drain()
            world.barrier()
            return compared

        world_size = first + sizes[1] if is_disjoint else max(sizes)
        compared = ts.simulate(world_size, body, seed=k) if k % 4 < 2 else ts.launch(world_size, body)
        assert sum(compared) == 3 * np.prod(extents)
