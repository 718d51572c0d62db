"""Distributions against NumPy indexing."""

import itertools
import json
import pickle
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tranship as ts


@st.composite
def distributions(draw, extents=None, ranks_max=6):
    dims = draw(st.integers(1, 3)) if extents is None else len(extents)
    cells = extents or tuple(draw(st.integers(1, 9)) for _ in range(dims))
    parts, cuts, widths, edges = [], [], [], []
    room = ranks_max
    for _ in range(dims):
        parts.append(draw(st.integers(1, min(3, room))))
        room //= parts[-1]
        kind = draw(st.sampled_from(["block", "block(high)", "block(ceil)", "cyclic", "cyclic(2)"]))
        cuts.append(kind)
        widths.append((draw(st.integers(0, 2)), draw(st.integers(0, 2))) if kind.startswith("block") else 0)
        edges.append(draw(st.sampled_from(["truncate", "toroidal", "zero", "replicate"])))
    order = draw(st.permutations(range(dims)))
    return ts.distribution(cells, tuple(parts), cuts, widths, edges, order=order)


@given(distributions())
@settings(max_examples=200, deadline=None)
def test_every_cell_has_one_owner_that_slices_show(d):
    owner = np.full(d.extents, -1)
    for rank in range(d.grid.size):
        for one in d.slices(rank):
            assert np.all(owner[one["owned"]] == -1)
            owner[one["owned"]] = rank
    for cell in np.ndindex(*d.extents):
        assert owner[cell] == d.owner(cell)
        local = d.local_of(int(owner[cell]), cell)
        assert local is not None and d.cell_of(int(owner[cell]), local) == (cell, True)


def test_names_and_objects_say_the_same():
    named = ts.distribution((10, 8), (2, 2), ["block(high)", "cyclic(3)"], [1, 0], "toroidal")
    built = ts.distribution(
        (10, 8),
        ts.grid(2, 2),
        [ts.block("high"), ts.cyclic(3)],
        [(1, 1), 0],
        ["toroidal", "truncate"],
    )
    assert named == built
    assert named != ts.distribution((10, 8), (2, 2))


def test_layout_texts_are_read_and_written():
    text = "f64[10,8] @ 2x1 : block+overlap(1,1,toroidal), whole"
    spec = ts.layout(text)
    assert str(spec) == text
    assert ts.layout(str(spec)) == spec
    with pytest.raises(ts.BadText) as error:
        ts.layout("f64[10,8] @ 2x1 : blok, whole")
    assert error.value.code == "bad_text" and error.value.column == 19
    assert isinstance(error.value, ValueError)


NUMPY_NAMES = "? i1 u1 i2 u2 f2 i4 u4 f4 i8 u8 f8 g c8 c16 G".split()


@pytest.mark.parametrize("name", NUMPY_NAMES)
def test_types_may_be_what_numpy_calls_them(name):
    dtype = np.dtype(name)
    for text in (dtype.str, dtype.name, f" {dtype.str[0]} {dtype.str[1:]}"):
        spec = ts.layout(f"{text}[4] @ 2 : block")
        assert np.dtype(spec.numpy_type) == dtype, text
        assert ts.layout(str(spec)) == spec and str(spec).split("[")[0] == spec.type
        assert text[0] == " " or ts.ArraySpec(text, spec.distribution) == spec
    kind = f"{dtype.kind}{dtype.itemsize}"
    here = {"i8": "i1", "u8": "u1", "f16": "f2"}.get(kind, kind)  # of which we count the bits
    assert np.dtype(ts.layout(f"{kind}[4] @ 2 : block").numpy_type) == np.dtype(here)


def test_types_of_another_byte_order_are_refused():
    foreign = np.dtype("f8").newbyteorder().str
    with pytest.raises(ts.Unsupported, match="byte order.*holds f64") as error:
        ts.layout(f" {foreign}[4] @ 2 : block")
    assert error.value.column == 2
    assert ts.layout(f"{foreign[0]}i1[4] @ 2 : block").type == "i8"  # bytes have no order
    for text in ("<f7", "<", "< [4]", "<f64", "<float64", "<<f8", "<i", "f8f8", "float63", "M8", "V8"):
        with pytest.raises(ts.BadText):
            ts.layout(f"{text}[4] @ 2 : block")


def test_grids_say_who_is_where():
    grid = ts.grid(2, 3, order=(1, 0), replicas=2, first=1)
    d = ts.distribution((2, 3), grid)
    for replica in range(2):
        for cell in np.ndindex(2, 3):
            assert grid.rank_of(cell, replica) == d.owners(cell)[replica]
    for place in ((2, 0), (0, -1), (0,), (0, 0, 0)):
        with pytest.raises(ts.InvalidUse):
            grid.rank_of(place)
    with pytest.raises(ts.InvalidUse, match="replica 2 does not exist: the grid has 2"):
        grid.rank_of((0, 0), replica=2)


def test_edges_of_both_sides():
    cells = ts.distribution((8, 6), (2, 1), overlap=[(2, 1), 1], edge=[("zero", "replicate"), "open"])
    assert str(ts.ArraySpec("f8", cells)) == (
        "f64[8,6] @ 2x1 : block+overlap(2,1,zero,replicate), block+overlap(1,1,open)"
    )
    assert cells.partition(0).edges == ("zero", "replicate") and cells.partition(0).overlap == (2, 1)
    assert cells.partition(0) == ts.block().with_overlap(2, 1, ("zero", "replicate"))
    toroidal = type(ts.block()).with_overlap(ts.block(), 1, 1, "toroidal")
    assert toroidal == ts.block().with_overlap(1, 1, ["toroidal", "toroidal"])
    for call, words in (
        (lambda: ts.distribution(8, 2, overlap=1, edge=[("zero", "open", "zero")]), "edge of 3 sides"),
        (lambda: ts.distribution(8, 2, overlap=[(1, 2, 3)]), "overlap of 3 sides"),
        (lambda: ts.distribution(8, 2, overlap=1, edge=[("zero", "round")]), "round"),
        (lambda: ts.distribution(8, 2, overlap=1, edge=("zero", "open")), "2 entries"),
    ):
        with pytest.raises(ts.InvalidUse, match=words):
            call()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_relabelling_moves_the_fewest_cells(data):
    source = data.draw(distributions(ranks_max=4))
    target = data.draw(distributions(source.extents, ranks_max=4))

    def moved(to):
        return sum(cells for _, _, cells in ts.plan_redistribution(ts.ArraySpec("u8", source), ts.ArraySpec("u8", to)).messages)

    best = ts.relabel(source, target)
    assert isinstance(best, ts.Relabelled)
    assert best.cells_moved_before == moved(target) and best.cells_moved == moved(best.target)
    ranks = target.grid.ranks
    assert sorted(best.target.grid.ranks) == sorted(ranks)
    assert best.cells_moved == min(moved(target.on_ranks(list(order))) for order in itertools.permutations(ranks))


def test_relabelling_other_arrays_is_refused():
    with pytest.raises(ts.Mismatch):
        ts.relabel(ts.distribution(4, 2), ts.distribution(5, 2))
    with pytest.raises(ts.InvalidUse):
        ts.relabel(ts.layout("f64[4] @ 2 : block"), ts.distribution(4, 2))


def test_plans_are_saved_and_loaded(command, tmp_path):
    rows, columns = ts.layout("f64[8,6] @ 2x1 : block, whole"), ts.layout("f64[8,6] @ 1x2 : whole, block")
    for plan in (*ts.plan_redistribution(rows, columns), ts.plan_halo([rows], 1)):
        text = ts.save_plan(plan)
        assert isinstance(plan, ts.TransferPlan) and text.endswith("\n")
        assert ts.load_plan(text) == plan == pickle.loads(pickle.dumps(plan))
    said = subprocess.run([command, "plan", "--from", str(rows), "--to", str(columns), "--rank", "1", "--full"],
                          capture_output=True, text=True, check=True).stdout
    assert ts.load_plan(said) == ts.plan_redistribution(rows, columns, 1)
    with pytest.raises(ts.BadText):
        ts.load_plan("{")
    beyond = json.loads(said)
    beyond["slots"][0]["local_extents"] = [1, 6]
    with pytest.raises(ts.BadFile):
        ts.load_plan(json.dumps(beyond))
    with pytest.raises(ts.InvalidUse):
        ts.save_plan(rows)


def test_plans_of_halos_have_depths_and_stencils():
    u = ts.layout("f64[8,8] @ 2x2 : block+overlap(2,2,toroidal), block+overlap(1,2,toroidal)")

    def received(**options):
        return sum(b for _, to, b in ts.plan_halo([u], **options).messages if to == 0) // 8

    assert received() == 8 * 7 - 16
    assert received(depth=1) == 6 * 6 - 16
    assert received(depth=[(2, 0), (0, 1)]) == 6 * 5 - 16
    assert received(depth=[1, (0, 2)], stencil="star") == 2 * 4 + 2 * 4
    assert received(depth=0) == 0
    assert received(stencil=[(2, 0), (0, -1)]) == 2 * 4 + 4
    for options, words in (
        ({"depth": [3, 0]}, "reaches 3 cells"),
        ({"depth": [1, 1, 1]}, "3 entries"),
        ({"depth": [(1, 2, 3), 0]}, "depth of 3 sides"),
        ({"depth": -1}, "negative"),
        ({"depth": 1.5}, "depth 1.5"),
        ({"depth": "ab"}, "depth 'a'"),
        ({"depth": [(0, -1), 0]}, "negative"),
        ({"stencil": "cross"}, "cross"),
    ):
        with pytest.raises(ts.InvalidUse, match=words):
            ts.plan_halo([u], 0, **options)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ts.distribution((10, 8), (2,)), "2"),
        (lambda: ts.distribution((10,), 2, "blok"), "blok"),
        (lambda: ts.distribution((10,), 2, edge="round", overlap=1), "round"),
        (lambda: ts.distribution((10, 8), (2, 1), ["block"]), "1 entry"),
        (lambda: ts.distribution((10,), 2, overlap=[1, 2]), "2 entries"),
        (lambda: ts.distribution((-1,), 2), "-1"),
        (lambda: ts.distribution((10,), 0), "0"),
        (lambda: ts.irregular([0, 5, 3]) and ts.distribution((10,), 2, ts.irregular([0, 5, 3])), "3"),
        (lambda: ts.block("middle"), "middle"),
        (lambda: ts.ArraySpec("f65", ts.distribution(4, 1)), "f65"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, words):
    with pytest.raises(ts.Error) as error:
        call()
    assert words in str(error.value)
    assert isinstance(error.value, ValueError)


def test_indexed_distributions_list_their_ids():
    d = ts.indexed(6, [([0, 2, 4], [1]), ([1, 3, 5], [0, 4])])
    assert d.is_indexed and d.local_extents(1) == (5,)
    assert d.owner((3,)) == 1


def test_plans_are_explained_without_ranks():
    rows, columns = (ts.ArraySpec("f64", ts.distribution((8, 8), g)) for g in ((2, 1), (1, 2)))
    plan = ts.plan_redistribution(rows, columns, 0)
    assert "128" in plan.explain()
    assert '"received"' in plan.to_json()


def test_pictures():
    spec = ts.layout("f64[10,8] @ 2x2 : block, block")
    assert "0" in ts.picture(spec)
    assert ts.picture(spec, form="svg").lstrip().startswith("<")


@pytest.mark.parametrize(
    "shape, error, text",
    [
        ((1,) * 9, ts.Unsupported, "8 dimensions, got 9"),
        (2**63, ts.Overflow, "9223372036854775808"),
        ((2, 2**63), ts.Overflow, "9223372036854775808"),
        (1.5, ts.InvalidUse, "1.5"),
        ((2, 1.5), ts.InvalidUse, "1.5"),
        ("ab", ts.InvalidUse, "ab"),
        (-1, ts.InvalidUse, "-1"),
    ],
)
def test_shapes_that_are_none(shape, error, text):
    for make in (
        lambda world: ts.distribution(shape, grid=1),
        lambda world: ts.Buffer(shape),
        lambda world: ts.symmetric(world, shape),
    ):
        with pytest.raises(error, match=text):
            ts.launch(1, make)


@pytest.mark.parametrize("shape", [4, np.int64(4), (4,), [np.int8(4)], np.array([4]), np.array(4)])
def test_shapes_of_one_dimension(shape):
    assert ts.Buffer(shape).shape == (4,)
    assert ts.distribution(shape, grid=1).extents == (4,)
    assert ts.launch(1, lambda world: ts.symmetric(world, shape).shape) == [(4,)]
