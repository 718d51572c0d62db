"""Distributions against NumPy indexing."""

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
