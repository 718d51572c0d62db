"""Arrays on every back-end, against NumPy."""

import contextlib
import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tranship as ts
from test_layouts import distributions

EXTENTS = (7, 5)


def value_of(i, j):
    return 100 * i + j


def model(d):
    """The global array that value_of fills."""
    return np.fromfunction(value_of, d.extents)


def require_stored(array, whole, policies=("truncate", "toroidal", "zero", "replicate")):
    """Every stored cell of a rank, overlap included, by NumPy's own indexing."""
    d = array.distribution
    for local in np.ndindex(*array.local.shape):
        cell, owned = d.cell_of(array.world.rank, local)
        inside = all(0 <= c < n for c, n in zip(cell, d.extents))
        if inside:
            assert array.local[local] == whole[cell], (local, cell)
        else:
            assert not owned


def test_redistribute_there_and_back(run):
    def body(world):
        rows = ts.distribution(EXTENTS, (world.size, 1))
        tiles = ts.distribution(EXTENTS, (1, world.size), ["whole", "cyclic(2)"])
        a, b, c = ts.array(world, rows), ts.array(world, tiles), ts.array(world, rows)
        a.fill(value_of)
        there, back = ts.Redistribution(a, b), ts.Redistribution(b, c)
        for _ in range(3):
            there()
            with back:
                pass
        require_stored(b, model(rows))
        require_stored(c, model(rows))
        whole = ts.gather(b, root=world.size - 1)
        return None if whole is None else whole.tolist()

    results = run(3, body)
    assert results[:2] == [None, None]
    assert results[2] == np.fromfunction(value_of, EXTENTS).tolist()


def test_snapshots_are_what_cells_held_at_the_start(run):
    """Whatever ranks write between start and finish: halos, shared points and redistributions."""

    def body(world):
        n = world.size
        ring = ts.distribution((4 * n, 3), (n, 1), overlap=[1, 0], edge="toroidal")
        u, v = ts.array(world, ring), ts.array(world, ring, dtype="i4")
        points = ts.array(
            world, ts.distribution((2 * n + 1, 2), (n, 1), interfaces=[True, False], overlap=[1, 0], edge="toroidal")
        )
        columns = ts.array(world, ts.distribution((4 * n, 3), (1, n), "block"))
        halo = ts.halo(u, v, snapshot=True)
        agree = ts.InterfaceExchange(points, snapshot=True)
        turn = ts.Redistribution(u, columns, snapshot=True)
        west, east = (world.rank - 1) % n, (world.rank + 1) % n
        for step in range(4):
            for a in (u, v, points):
                a.local[:] = 10 * step + world.rank
            for exchange in (halo, agree, turn):
                exchange.start()
            for a in (u, v, points, columns):
                a.local[:] = -1
            for exchange in (turn, halo, agree):
                exchange.finish()
            for a in (u, v):
                assert (a.local[0] == 10 * step + west).all() and (a.local[-1] == 10 * step + east).all()
                assert (a.local[1:-1] == -1).all()
            assert (points.local[3] == 10 * step + east).all() and (points.local[:3] == -1).all()
            owner = np.repeat(np.arange(n), 4)
            assert (columns.local == (10 * step + owner)[:, None]).all()
        assert halo.schedule == ("staged" if n > 1 else "direct") and "packed by start()" in halo.explain()
        with pytest.raises(ts.Unsupported, match="takes no snapshot"):
            ts.halo(u, adjoint=True, snapshot=True)
        with pytest.raises(ts.Unsupported, match="takes no snapshot"):
            ts.halo(u, adjoint=True, combine="max", snapshot=True)
        with pytest.raises(ts.InvalidUse, match="is staged: schedule direct is not possible"):
            ts.halo(u, schedule="direct", snapshot=True)
        return True

    for n in (1, 3):
        assert run(n, body) == [True] * n


def test_halo_of_several_arrays(run):
    def body(world):
        d = ts.distribution((8, 6), (world.size, 1), overlap=1, edge="toroidal")
        u, v = ts.array(world, d, "f4", name="u"), ts.array(world, d, "i8", name="v")
        u.fill(value_of)
        v.fill(lambda i, j: -value_of(i, j))
        exchange = ts.halo(u, v)
        with exchange:
            pass
        rows = np.arange(-1, u.local.shape[0] - 1) + d.slices(world.rank)[0]["owned"][0].start
        want = value_of(rows[:, None] % 8, np.arange(-1, 7)[None, :] % 6)
        assert np.array_equal(u.local, want.astype("f4"))
        assert np.array_equal(v.local, -want)
        assert "message" in exchange.explain()
        return exchange.schedule

    assert len(run(2, body)) == 2


def test_adjoint_adds_what_was_copied(run):
    def body(world):
        d = ts.distribution(12, world.size, overlap=1, edge="toroidal")
        u = ts.array(world, d)
        u.local[...] = 1
        ts.halo(u, adjoint=True)()
        return u.owned().sum(), u.local.sum()

    results = run(3, body)
    assert sum(owned for owned, _ in results) == 12 + 6
    assert sum(stored for _, stored in results) == 12 + 6


def test_foreign_memory_in_any_layout(run):
    def body(world):
        rows = ts.distribution(EXTENTS, (world.size, 1))
        columns = ts.distribution(EXTENTS, (1, world.size))
        mine = np.zeros(rows.local_extents(world.rank)[::-1], "f4").T  # Fortran order
        theirs = np.full((*columns.local_extents(world.rank), 3), -1, "f4")[..., 1]  # every third element
        a, b = ts.wrap(world, rows, mine), ts.wrap(world, columns, theirs)
        a.fill(value_of)
        assert np.shares_memory(a.local, mine)
        ts.Redistribution(a, b)()
        require_stored(b, model(columns))
        read_only = mine.copy()
        read_only.flags.writeable = False
        c = ts.wrap(world, rows, read_only)
        assert not c.local.flags.writeable
        ts.Redistribution(c, b)()
        with pytest.raises(ts.InvalidUse):
            ts.Redistribution(b, c)
        world.barrier()

    run(2, body)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_layout_to_any_other(data):
    extents = tuple(data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=3)))
    source, target = (data.draw(distributions(extents=extents)) for _ in range(2))
    dtype = data.draw(st.sampled_from(["f8", "i2", "c16", "?", "u1"]))
    ranks = max(source.grid.size, target.grid.size)
    whole = (np.arange(np.prod(extents)).reshape(extents) * 37 % 251).astype(dtype)

    def body(world):
        a, b = ts.array(world, source, dtype), ts.array(world, target, dtype)
        for cells, view in a.slices():
            view[...] = whole[cells]
        ts.Redistribution(a, b)()
        require_stored(b, whole)

    kind = data.draw(st.sampled_from(["threads", "sim"]))
    ts.launch(ranks, body, ranks=kind)


def test_several_pairs_and_parts(run):
    def body(world):
        rows = ts.distribution((6, 6), (world.size, 1))
        a, b = ts.array(world, rows), ts.array(world, rows)
        c, d = ts.array(world, rows), ts.array(world, rows)
        a.fill(value_of)
        b.fill(lambda i, j: 1 + value_of(i, j))
        ts.Redistribution([(a, c), (b, d)])()
        require_stored(c, model(rows))
        require_stored(d, 1 + model(rows))
        c.fill(-1)
        ts.Redistribution(a, c, part=((0, 1), (3, 2), (2, 3)))()
        want = np.full((6, 6), -1.0)
        want[3:5, 2:5] = model(rows)[0:2, 1:4]
        require_stored(c, want)

    run(2, body)


def test_views_keep_memory_alive_after_the_world():
    kept = []

    def body(world):
        a = ts.array(world, ts.distribution(1000, world.size))
        a.fill(lambda i: i)
        kept.append((world.rank, a.local, a))

    ts.launch(2, body)
    gc.collect()
    for rank, view, array in kept:
        assert np.array_equal(view, np.arange(500 * rank, 500 * (rank + 1)))
        assert np.array_equal(np.asarray(array), view)
        with pytest.raises(ts.InvalidUse):
            array.world.barrier()
        with pytest.raises(ts.InvalidUse):
            ts.halo(array)


def test_buffer_protocol_and_dlpack():
    def body(world):
        a = ts.array(world, ts.distribution((4, 3), (1, 1), order=(1, 0)), "i4")
        a.fill(lambda i, j: 10 * i + j)
        view = memoryview(a._core)
        assert view.shape == (4, 3) and view.strides == (4, 16)
        there = np.from_dlpack(a)
        assert np.shares_memory(there, a.local)
        # Before 2.0, NumPy takes all that comes by DLPack for read-only, and copies where it was asked not to.
        is_old = np.lib.NumpyVersion(np.__version__) < "2.0.0"
        (a.local if is_old else there)[2, 1] = 99
        assert a.local[2, 1] == there[2, 1] == 99
        assert np.asarray(a, dtype="f8").dtype == np.dtype("f8")
        if not is_old:
            with pytest.raises(ValueError):
                np.array(a, dtype="f8", copy=False)
        copied = np.array(a, copy=True)
        copied[...] = 0
        assert a.local[2, 1] == 99

    ts.launch(1, body)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def body(world):
        a = ts.array(world, ts.distribution(8, world.size), ml_dtypes.bfloat16)
        a.fill(lambda i: i / 2)
        b = ts.redistribute(a, ts.distribution(8, world.size, "cyclic"))
        assert b.local.dtype == np.dtype(ml_dtypes.bfloat16)
        assert b.local.astype("f4").tolist() == [i / 2 for i in range(world.rank, 8, 2)]

    ts.launch(2, body)


def test_refusals_name_both_numbers():
    def body(world):
        d = ts.distribution((6, 4), (world.size, 1))
        with pytest.raises(ts.Mismatch, match="7"):
            ts.wrap(world, d, np.zeros((7, 4)))
        with pytest.raises(ts.InvalidUse, match="3"):
            ts.array(world, ts.distribution(6, 3))
        with pytest.raises(ts.InvalidUse):
            ts.array(world, d, "O")
        with pytest.raises(ts.InvalidUse):
            ts.array(world, d, ">f8")
        with pytest.raises(ts.InvalidUse):
            ts.wrap(world, d, [[1.0] * 4] * 3)
        a = ts.array(world, d, "f8")
        with pytest.raises(ts.Mismatch):
            ts.Redistribution(a, ts.array(world, d, "f4"))
        ts.halo(a)()  # no overlap, nothing moves
        with pytest.raises(ts.InvalidUse):
            ts.halo()
        with pytest.raises(ts.InvalidUse, match="fast"):
            ts.Redistribution(a, ts.array(world, d), schedule="fast")
        with pytest.raises(ts.InvalidUse, match="test_arrays.py"):
            exchange = ts.Redistribution(a, ts.array(world, d))
            exchange.start()
            try:
                exchange.start()
            finally:
                exchange.finish()
        world.barrier()

    ts.launch(2, body)


def test_sub_worlds(run):
    def body(world):
        odd = world.split(1, 2, 2)
        if odd is None:
            return None
        a = ts.array(odd, ts.distribution(EXTENTS, (2, 1)))
        a.fill(value_of)
        b = ts.redistribute(a, ts.distribution(EXTENTS, (1, 2)))
        require_stored(b, model(b.distribution))
        return odd.all_gather(world.rank)

    assert run(5, body) == [None, [1, 3], None, [1, 3], None]


def test_leases_exchange_what_is_stale(run):
    def body(world):
        devices = ts.Devices(fake=1)
        d = ts.distribution(12, world.size, overlap=2, edge="toroidal")
        u = ts.array(world, d, name="u", devices=devices)
        first = d.slices(world.rank)[0]["owned"][0].start
        n = 12 // world.size
        for step in range(1, 4):
            with u.write() as a:
                a[2:-2] = step * np.arange(first, first + n)
            with u.read("stored", device="fake:0") as a:
                assert np.array_equal(a, step * (np.arange(first - 2, first + n + 2) % 12))
        before = u.ghost_counts
        assert before[0] == 3 and before[1] == 12
        with u.read("stored", device="fake:0", depth=1):
            pass
        assert u.ghost_counts == before
        assert "fake:0" in u.explain(device="fake:0")
        with u.accumulate("stored", device="fake:0") as a:
            a[...] += 1
        with u.read() as a:
            assert a[2:-2].sum() == 3 * sum(range(first, first + n)) + n + 4
        with pytest.raises(ts.InvalidUse):
            u.read("all")
        world.barrier()

    run(3, body)


@pytest.mark.parametrize("early", [False, True])
def test_sums_in_ghosts_are_combined_before_an_exchange(run, early):
    def body(world):
        d = ts.distribution(4 * world.size, world.size, "block", 1, "toroidal")
        u, v = ts.array(world, d, name="u"), ts.array(world, d, name="v")
        halo = ts.halo(u) if early else None
        with u.accumulate("stored") as a:
            a[...] += 1
        # All ranks combine here, so none may keep others from running Python meanwhile.
        (halo or ts.halo(u))()
        ts.Redistribution(u, v)()
        for array in (u, v):
            with array.read("stored") as a:
                assert a.tolist() == [2, 2, 1, 1, 2, 2]
        world.barrier()

    run(2, body)


def test_staggered_points_agree(run):
    def body(world):
        d = ts.distribution(9, world.size, interfaces=True)
        u = ts.array(world, d, "i8")
        u.local[...] = world.rank
        ts.InterfaceExchange(u)()
        return u.local.tolist()

    assert run(2, body) == [[0, 0, 0, 0, 1], [1, 1, 1, 1, 1]]


def expected_ghosts(array, whole, depths, before):
    """A rank's cells after a halo of these depths, by the edges of the array; ``before`` where nothing is filled."""
    d, out = array.distribution, before.copy()
    [one] = d.slices(array.world.rank)
    edges = [d.partition(k).edges for k in range(d.dims)]
    for local in np.ndindex(*out.shape):
        cell, beyond = [], []
        for k, (at, stored, owned, n) in enumerate(zip(local, one["stored"], one["owned"], d.extents)):
            x = stored.start + at
            beyond.append(x - owned.start if x < owned.start else max(0, x - owned.stop + 1))
            edge = edges[k][x >= 0]
            if not 0 <= x < n:
                x = {"toroidal": x % n, "replicate": min(max(x, 0), n - 1)}.get(edge, edge)
            cell.append(x)
        fills = all(-low <= b <= high for b, (low, high) in zip(beyond, depths))
        if any(beyond) and fills and "open" not in cell:
            out[local] = 0 if "zero" in cell else whole[tuple(cell)]
    return out


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_halos_of_depths_by_sides_dimensions_and_fields(data):
    fields = []
    for _ in range(data.draw(st.integers(1, 3))):
        extents = [data.draw(st.integers(1, 6)) for _ in range(data.draw(st.integers(1, 2)))]
        side = st.tuples(st.integers(0, 3), st.integers(0, 3))
        overlap = [data.draw(side) for _ in extents]
        names = st.sampled_from(["truncate", "toroidal", "zero", "replicate", "open"])
        edges = [(data.draw(names), data.draw(names)) for _ in extents]
        depths = [(data.draw(st.integers(0, low)), data.draw(st.integers(0, high))) for low, high in overlap]
        grid = [data.draw(st.integers(1, 2)), 1][: len(extents)]
        fields.append((ts.distribution(extents, grid, "block", overlap, edges), depths))

    def body(world):
        arrays, expected = [], []
        for d, depths in fields:
            u = ts.array(world, d, "i8")
            u.local[...] = -1
            if u.slices():
                u.fill(lambda *cells: 1 + sum(10**k * c for k, c in enumerate(cells)))
                whole = np.fromfunction(lambda *cells: 1 + sum(10**k * c for k, c in enumerate(cells)), d.extents)
                expected.append(expected_ghosts(u, whole, depths, u.local))
            else:
                expected.append(u.local.copy())
            arrays.append(ts.HaloField(u, depth=depths))
        if len(arrays) == 1:
            ts.halo(arrays[0].array, depth=fields[0][1])()
        else:
            ts.halo(*arrays)()
        for field, after in zip(arrays, expected):
            assert np.array_equal(field.array.local, after), (field.array, field.depth)

    ts.launch(2, body)


def test_fields_of_a_halo_have_options_of_their_own(run):
    def body(world):
        d = ts.distribution((4, 4), (world.size, 1), overlap=2, edge="toroidal")
        u, v, w, x = (ts.array(world, d, "i8") for _ in range(4))
        for a in (u, v, w, x):
            a.local[...] = 0
            a.fill(1)
        ts.halo(u, ts.HaloField(v), ts.HaloField(w, 1, "star"), ts.HaloField(x, region=(slice(0, 1), slice(3, 4))), depth=1)()
        low, rows = d.slices(world.rank)[0]["stored"][0].start, u.owned().shape[0]
        inner = np.zeros(u.local.shape, bool)
        inner[2:-2, 2:-2] = True
        assert u.local.sum() == (rows + 2) * 6 and v.local.sum() == v.local.size
        assert w.local.sum() == rows * 4 + 2 * rows + 2 * 4
        cells = np.ix_((low + np.arange(rows + 4)) % 4, np.arange(-2, 6) % 4)
        asked = np.zeros((4, 4), bool)
        asked[0, 3] = True
        assert np.array_equal(x.local == 1, inner | asked[cells])
        with pytest.raises(ts.InvalidUse, match="array 1: the halo reaches 3 cells"):
            ts.halo(u, ts.HaloField(v, [(0, 3), 0]))
        with pytest.raises(ts.InvalidUse, match="not list"):
            ts.halo(ts.HaloField([1, 2]))
        world.barrier()

    for n in (1, 2):
        run(n, body)


def test_regions_of_indexed_halos_are_ids():
    def body(world):
        parts = [([0, 2, 4], [1, 3, 5]), ([1, 3, 5], [0, 2, 4])]
        a = ts.array(world, ts.indexed((3, 2, 2), parts, indexed_dims=2), "i8")
        a.local[...] = -1
        a.owned()[...] = 7
        ts.halo(a, region=slice(2, 4))()
        return [int(row[0]) for row in a.local[3:]]

    assert ts.launch(2, body) == [[-1, 7, -1], [-1, 7, -1]]


@pytest.mark.parametrize("combine", ["sum", "product", "min", "max"])
def test_adjoints_have_depths_and_stencils(combine):
    """Against the ghosts that an update fills: each is combined with the cell that it would be read from."""
    function = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}[combine]
    nothing = {"sum": 0, "product": 1, "min": 2**63 - 1, "max": -(2**63)}[combine]
    d = ts.distribution((6, 5), (2, 1), overlap=[(2, 1), 2], edge=["toroidal", ("replicate", "toroidal")])
    for options in ({}, {"depth": 1}, {"depth": [(2, 0), (1, 2)], "stencil": "star"}, {"stencil": [(-2, 1), (0, -1)]}):
        if "stencil" in options and options["stencil"] != "star":
            d = ts.distribution((6, 5), (2, 1), overlap=[(2, 1), 2], edge=["toroidal", "toroidal"])

        def body(world):
            u, v = ts.array(world, d, "i8"), ts.array(world, d, "i8")
            number = np.arange(30).reshape(6, 5)
            u.local[...] = -1
            u.fill(lambda i, j: number[i, j])
            ts.halo(u, **options)()  # ghosts know whose copies they are
            v.local[...] = np.arange(v.local.size).reshape(v.local.shape) % 7 + world.rank + 1
            before, names = v.local.copy(), u.local.copy()
            ts.halo(v, adjoint=True, combine=combine, **options)()
            return before, names, v.local.copy()

        found = ts.launch(2, body)
        whole = np.zeros(30, "i8")
        own = (slice(2, -1), slice(2, -2))
        for before, names, _ in found:
            whole[names[own].ravel()] = before[own].ravel()
        for before, names, after in found:
            ghost = np.ones(names.shape, bool)
            ghost[own] = False
            filled = ghost & (names >= 0)
            for name, value in zip(names[filled], before[filled]):
                whole[name] = function(whole[name], value)
            assert (after[filled] == nothing).all() and (after[ghost & ~filled] == before[ghost & ~filled]).all()
        for _, names, after in found:
            assert np.array_equal(after[own].ravel(), whole[names[own].ravel()]), options


def test_plans_are_saved_loaded_and_run(run, tmp_path):
    """Each rank writes its plans to files, and another run of the program reads them."""
    rows = ts.distribution((8, 6), (2, 1), overlap=[1, 0], edge="toroidal")
    columns = ts.distribution((8, 6), (1, 2))

    def exchanges(world, plans):
        u, v, w = ts.array(world, rows), ts.array(world, rows), ts.array(world, columns, "f8")
        made = {
            "halo": lambda plan: ts.halo(u, v, **({"depth": 1} if plan is None else {"plan": plan})),
            "turn": lambda plan: ts.Redistribution(u, w, plan=plan),
            "add": lambda plan: ts.RedistributionAdjoint(u, w, plan=plan),
            "give": lambda plan: ts.halo(u, **({"adjoint": True, "combine": "max"} if plan is None else {"plan": plan})),
        }
        u.fill(value_of)
        v.fill(lambda i, j: -value_of(i, j))
        w.fill(0)
        said = []
        for name, make in made.items():
            exchange = make(plans(name, None))
            exchange()
            said.append((name, exchange.plan, u.local.tolist(), v.local.tolist(), w.local.tolist()))
        return said

    def save(world):
        said = exchanges(world, lambda name, _: None)
        for name, plan, *_ in said:
            (tmp_path / f"{name}.{world.rank}").write_text(ts.save_plan(plan))
        return said

    def load(world):
        return exchanges(world, lambda name, _: ts.load_plan((tmp_path / f"{name}.{world.rank}").read_text()))

    saved = run(2, save)
    assert run(2, load) == saved
    assert saved[0][0][2] != saved[0][3][2]  # the exchanges have done something

    def misuse(world):
        plans = {name: ts.load_plan((tmp_path / f"{name}.{world.rank}").read_text()) for name in ("halo", "turn", "give")}
        u, w = ts.array(world, rows), ts.array(world, columns)
        other = ts.array(world, ts.distribution((8, 6), (2, 1), "cyclic(4)", overlap=[1, 0]))
        for call, error, words in (
            (lambda: ts.halo(u, plan=plans["turn"]), ts.Mismatch, "kind redistribution"),
            (lambda: ts.Redistribution(u, w, plan=plans["halo"]), ts.Mismatch, "kind halo"),
            (lambda: ts.halo(other, plan=plans["halo"]), ts.Mismatch, "the plan was made for an array of type f64"),
            (lambda: ts.Redistribution(w, u, plan=plans["turn"]), ts.Mismatch, "the plan was made for a source of type f64"),
            (lambda: ts.halo(u, plan=plans["halo"], depth=1), ts.InvalidUse, "these or a plan, not both"),
            (lambda: ts.halo(u, plan=plans["give"], adjoint=True), ts.InvalidUse, "these or a plan, not both"),
            (lambda: ts.Redistribution(u, w, plan=plans["turn"], part=((0, 0), (0, 0), (1, 1))), ts.InvalidUse, "part"),
            (lambda: ts.halo(ts.HaloField(u), plan=plans["halo"]), ts.InvalidUse, "HaloField"),
            (lambda: ts.halo(u, combine="max"), ts.InvalidUse, "applies to an adjoint"),
        ):
            with pytest.raises(error, match=words):
                call()

    run(2, misuse)


def test_a_plan_of_another_rank_is_refused(run):
    def body(world):
        d = ts.distribution(8, world.size, overlap=1, edge="toroidal")
        u = ts.array(world, d)
        with pytest.raises(ts.Error):
            ts.halo(u, plan=ts.plan_halo([u.spec], (world.rank + 1) % world.size))

    run(2, body)


def test_tiled_halos_have_depths_and_combinations():
    def body(world):
        torus, d = ts.doubly_periodic(4, 6), ts.distribution((4, 6), (1, 2), overlap=2, edge="open")
        ring = ts.distribution((4, 6), (1, 2), overlap=2, edge="toroidal")
        for options in ({}, {"depth": 1}, {"depth": [(1, 0), 2], "stencil": "star"}, {"stencil": [(1, -2)]}):
            for how in ({}, {"adjoint": True}, {"adjoint": True, "combine": "max"}, {"adjoint": True, "combine": "product"}):
                u, v = ts.array(world, d), ts.array(world, ring)
                for a in (u, v):
                    a.local[...] = np.arange(a.local.size).reshape(a.local.shape) % 5 + world.rank
                ts.TiledHaloExchange(torus, [u], **options, **how)()
                ts.halo(v, **options, **how)()
                assert np.array_equal(u.local, v.local), (options, how)

    ts.launch(2, body)


def test_halos_of_a_cube(run):
    n = 4

    def body(world):
        cube = ts.cubed_sphere(n)
        assert (cube.tiles, cube.dims, cube.extents(5)) == (6, 2, (n, n))
        owner = [ts.distribution((n, n), ts.grid(1, 1, ranks=[t % world.size]), overlap=1, edge="open") for t in range(6)]
        fields = [ts.array(world, d, "i8") for d in owner]
        for tile, field in enumerate(fields):
            if field.local.size:
                field.fill(lambda y, x: 100 * tile + 10 * y + x)
        ts.TiledHaloExchange(cube, fields)()
        for tile, field in enumerate(fields):
            for local in np.ndindex(*field.local.shape):
                cell = (local[0] - 1, local[1] - 1)
                found = cube.locate(tile, cell)
                if found is not None:
                    at, (y, x) = found
                    assert field.local[local] == 100 * at + 10 * y + x, (tile, cell)

    run(2, body)


def test_vectors_turn_over_edges():
    n = 3

    def body(world):
        cube = ts.cubed_sphere(n)
        d = ts.distribution((n, n), (1, 1), overlap=1, edge="open")
        u, v = ([ts.array(world, d) for _ in range(6)] for _ in range(2))
        for tile in range(6):
            u[tile].fill(1.0)
            v[tile].fill(2.0)
        ts.TiledHaloExchange(cube, u, v, vectors=[{0: 1, 1: 0}])()
        seen = {abs(float(x)) for a in u for x in a.local[0, 1:-1]}
        assert seen == {1.0, 2.0}  # beyond some edges, x is the other tile's y

    ts.launch(1, body)


def test_other_tilings():
    assert ts.doubly_periodic(3, 4).locate(0, (-1, 4)) == (0, (2, 0))
    assert ts.folded(3, 4).locate(0, (3, 0)) == (0, (2, 3))
    assert ts.periodic((5,), (0,)).locate(0, (-1,)) == (0, (4,))
    assert ts.periodic((5,), ()).locate(0, (-1,)) is None
    assert isinstance(ts.cubed_sphere(2), ts.Tiling)


def test_a_tiling_of_ones_own(run):
    """Two tiles beside each other; the outer sides are joined upside down, as on a Moebius strip."""
    strip = ts.Tiling(
        [(4, 5), (4, 6)], [((0, 1, "high"), (1, 1, "low")), ((1, 1, "high"), (0, 1, "low"), [0], [-1])]
    )
    assert strip.locate(0, (1, 5)) == (1, (1, 0)) and strip.locate(1, (0, 6)) == (0, (3, 0))
    assert strip.locate(0, (-1, 0)) is None

    def body(world):
        tiles = [ts.distribution(strip.extents(t), (1, 2), overlap=2, edge="open") for t in range(2)]
        found = ts.check_halo(world, strip, *tiles)
        assert isinstance(found, ts.HaloCheck) and (found.wrong, found.first_wrong) == (0, "")
        return found.ghosts, found.untouched

    ghosts, untouched = (sum(counts) for counts in zip(*run(2, body)))
    assert ghosts == 4 * 2 * 4 * 2  # of four parts, each with two sides that are four cells long
    assert untouched == 2 * 2 * (5 + 6 + 4 * 4)  # below and above, with the corners
    for edges, kind, message in (
        ([((0, 1, "up"), (1, 1, "low"))], ts.InvalidUse, "a side 'up' of a tile: needs 'low' or 'high'"),
        ([((0, 1, "low"),)], ts.InvalidUse, "an edge of 1 item"),
        ([((0, 7, "low"), (1, 1, "low"))], ts.InvalidUse, "7"),
        ([((0, 0, "low"), (1, 0, "low"))], ts.InvalidUse, "5.*6|6.*5"),
        ([((0, 1, "low"), (1, 1, "low"), "a", 3)], TypeError, "sequences of ints"),
        ([3], TypeError, "an edge is a tuple"),
        ([(3, 4)], TypeError, "a side of a tile is a tuple"),
    ):
        with pytest.raises(kind, match=message):
            ts.Tiling([(4, 5), (4, 6)], edges)

    def wrong(world):
        with pytest.raises(ts.InvalidUse, match="tile"):
            ts.check_halo(world, strip, ts.distribution((4, 5), (1, 1), overlap=2, edge="open"))
        return True

    assert ts.launch(1, wrong) == [True]


def test_wrong_cells_are_counted(run):
    """Against a loop over all stored elements."""

    def body(world):
        counts = []
        for edge in ("toroidal", "zero", "truncate"):
            d = ts.distribution((7, 5), (2, 2), ["block", "cyclic(2)"], overlap=[2, (1, 0)], edge=edge)
            a = ts.array(world, d, "i8")
            a.local[...] = np.arange(a.local.size).reshape(a.local.shape) % 3
            expected = 0
            for local in np.ndindex(a.local.shape):
                cell, _ = d.cell_of(world.rank, local)
                if edge == "toroidal":
                    cell = tuple(c % n for c, n in zip(cell, d.extents))
                if all(0 <= c < n for c, n in zip(cell, d.extents)):
                    expected += int(a.local[local] != (cell[0] + cell[1]) % 3)
            counts.append((a.count_wrong(lambda i, j: (i + j) % 3), expected, a.count_wrong(a.local.max() + 1)))
            a.fill(lambda i, j: 5 * i + j)
            ts.halo(a)()
            assert a.count_wrong(lambda i, j: 5 * i + j) == 0
        return counts

    for counts in run(4, body):
        for found, expected, all_cells in counts:
            assert found == expected <= all_cells


def test_wrong_interfaces_beyond_toroidal_edges_are_counted(run):
    def body(world):
        a = ts.array(world, ts.distribution(7, world.size, overlap=8, edge="toroidal", interfaces=True))
        a.fill(lambda i: 1 + i)
        before = a.count_wrong(lambda i: 1 + i)
        ts.halo(a)()
        after = a.count_wrong(lambda i: 1 + i)
        a.local[[0, -1]] = -1
        return before, after, a.count_wrong(lambda i: 1 + i)

    assert run(2, body) == [(16, 0, 2)] * 2


def test_a_depth_beyond_the_overlap_is_refused(run):
    def body(world):
        deep, flat = (ts.array(world, ts.distribution(8, world.size, overlap=n)) for n in (3, 1))
        ts.halo(deep, flat, depth=1)()
        with pytest.raises(ts.InvalidUse, match="array 1: the halo reaches 3 .* stores 1"):
            ts.halo(deep, flat, depth=3)

    run(2, body)


def test_an_exchange_that_a_block_leaves_by_an_exception_can_be_used_again(run):
    def value(i, j):
        return 10 * i + j

    def body(world):
        u = ts.array(world, ts.distribution((8, 6), (2, 1), overlap=1, edge="toroidal"))
        halo = ts.halo(u)
        for turn in range(3):
            u.fill(lambda i, j: value(i, j) + turn)
            if turn == 1 and world.rank == 0:
                with pytest.raises(ZeroDivisionError):
                    with halo:
                        1 / 0
            else:
                with halo:
                    pass
            assert u.count_wrong(lambda i, j: value(i, j) + turn) == 0
            world.barrier()

    run(2, body)


def test_a_block_that_raises_abandons_the_write_of_an_array(run):
    def body(world):
        u = ts.array(world, ts.distribution((8, 6), (2, 1), overlap=1), devices=ts.Devices(fake=1))
        with u.write("stored") as a:
            a[...] = 1
        with pytest.raises(ZeroDivisionError):
            with u.write(device="fake:0") as a:
                a[:2] = 7
                1 / 0
        with pytest.raises(ts.InvalidUse, match="abandoned.*must be written again"):
            u.read()
        with u.write("stored") as a:
            a[...] = world.rank + 1
        with u.read("stored", device="fake:0") as a:
            assert set(np.unique(a)) == {world.rank + 1}
        world.barrier()

    run(2, body)


def test_views_of_leases_and_halos_of_the_same_array(run):
    """A halo changes memory of which a view outlives its lease, and is no write of the view."""

    def body(world):
        u = ts.array(world, ts.distribution((8, 6), (2, 1), overlap=1), devices=ts.Devices(fake=1))
        halo = ts.halo(u)
        for turn in range(3):
            with u.write("stored", device=("host", "fake:0")[turn % 2]) as a:
                a[...] = world.rank + turn
                row = a[2]
            halo()
            with u.read("stored") as a:
                assert set(np.unique(a)) == {turn, turn + 1}
        row[0] = 5
        with pytest.raises(ts.InvalidUse, match="has been kept"):
            u.read()
        world.barrier()

    run(2, body)


def test_a_peer_of_a_rank_without_values_names_the_programs_line():
    texts = []

    def body(world):
        u = ts.array(world, ts.distribution(8, world.size, overlap=1, edge="toroidal"), name="u")
        with u.write() as a:
            a[...] = 1
        try:
            with u.write():
                if world.rank == 0:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        try:
            u.read("stored")
        except ts.Error as error:
            texts.append(str(error))
            raise

    with pytest.raises(ts.InvalidUse):
        ts.launch(2, body)
    assert len(texts) == 2
    for text in texts:
        assert "test_arrays.py" in text and ".cpp" not in text, text


@pytest.mark.parametrize("dtype", [[("a", "f4"), ("b", "u2")], [("a", "f8"), ("b", "i8")], "f8", "?"])
@pytest.mark.parametrize("dims", [1, 3])
def test_ranks_outside_of_the_grid_wrap_nothing(run, dtype, dims):
    def body(world):
        dtype_ = np.dtype(dtype)
        d = ts.distribution((4,) * dims, (2,) + (1,) * (dims - 1))
        data = np.zeros((2,) + (4,) * (dims - 1) if world.rank < 2 else (0,) * dims, dtype_)
        a = ts.wrap(world, d, data)
        assert a.local.shape == data.shape and a.local.dtype == dtype_
        b = ts.array(world, d, dtype_)
        b.fill(np.ones((), dtype_)[()])
        ts.Redistribution(b, a)()
        assert np.array_equal(data, np.ones(data.shape, dtype_))

    run(3, body)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(np.arange(4.0), [False, True, False, False])

    def body(world):
        d = ts.distribution(4, 1)
        x = ts.symmetric(world, 4)
        for call in (
            lambda: ts.wrap(world, d, masked),
            lambda: ts.Buffer(data=masked),
            lambda: x.put(masked, 0),
            lambda: x.get(0, masked),
        ):
            with pytest.raises(ts.InvalidUse, match="mask"):
                call()
        ts.wrap(world, d, masked.filled())

    ts.launch(1, body)


def test_masked_sources_of_files_are_refused(tmp_path):
    masked = np.ma.masked_array(np.arange(4.0), [False, True, False, False])
    with pytest.raises(ts.InvalidUse, match="masked elements"):
        ts.reshard(masked, tmp_path / "out", to="@ 2 : block")
    ts.reshard(np.ma.masked_array(np.arange(4.0), False), tmp_path / "out2", to="@ 2 : block")


def test_a_block_of_contextlib_is_not_the_place_of_an_exchange():
    def body(world):
        u = ts.array(world, ts.distribution(8, 1, overlap=1, edge="toroidal"), name="u")
        halo = ts.halo(u)
        with u.write():
            with pytest.raises(ts.InvalidUse) as error, contextlib.ExitStack() as stack:
                stack.enter_context(halo)
        assert str(error.value).count("test_arrays.py") == 2 and "contextlib" not in str(error.value), str(error.value)

    ts.launch(1, body)


PAIRS = [[("a", "f4"), ("b", "i4")], [("a", "i4"), ("b", "f4")], [("a", "u4", (2,))]]


@pytest.mark.parametrize(
    "make",
    [
        lambda u, v: ts.halo(u),
        lambda u, v: ts.halo(v, u),
        lambda u, v: ts.halo(u, snapshot=True),
        lambda u, v: ts.Redistribution(u, ts.array(u.world, ts.distribution((4, 4), (1, 2)), u.dtype)),
        lambda u, v: ts.redistribute(u, ts.distribution((4, 4), (1, 2))),
        lambda u, v: ts.gather(u),
        lambda u, v: ts.Pipe(u.world, [u], [ts.array(u.world, u.distribution, u.dtype)]),
        lambda u, v: u.read("stored"),
    ],
)
@pytest.mark.parametrize("other", PAIRS[1:])
def test_ranks_with_other_structs_of_one_size_all_fail(run, make, other):
    def body(world):
        d = ts.distribution((4, 4), (2, 1), overlap=1, edge="toroidal")
        u = ts.array(world, d, PAIRS[0] if world.rank == 0 else other, name="u")
        v = ts.array(world, d, "f8", name="v")
        try:
            make(u, v)
        except ts.Mismatch as error:
            return str(error)
        return ""

    for text in run(2, body):
        assert "'a'" in text and "on rank 0 and" in text and "on rank 1" in text, text


def test_ranks_with_the_same_structs_agree(run):
    def body(world):
        d = ts.distribution((4, 4), (2, 1), overlap=1, edge="toroidal")
        a, b = (ts.array(world, d, pair, name="u") for pair in PAIRS[:2])
        ts.halo(a, b)()

    run(2, body)


def test_an_exception_in_a_block_is_not_held_up_by_peers_that_never_start(run):
    class Boom(Exception):
        pass

    def body(world):
        u = ts.array(world, ts.distribution((12,), grid=(2,), overlap=1, edge="toroidal"))
        halo = ts.halo(u)
        if world.rank == 0:
            world.barrier()
        with halo:
            raise Boom("in the block")

    with pytest.raises(Exception, match="in the block"):
        run(2, body)


@pytest.mark.parametrize("ranks", ["threads", "processes"])
def test_an_exchange_that_an_exception_has_left_in_flight_is_completed_first(ranks):
    def body(world):
        u = ts.array(world, ts.distribution((8,), grid=(2,), overlap=1, edge="toroidal"))
        halo = ts.halo(u)
        u.fill(lambda i: i + 1.0)
        if world.rank == 0:
            with pytest.raises(ZeroDivisionError):
                with halo:
                    1 / 0
        world.barrier()  # only now does rank 1 start
        if world.rank == 1:
            halo()
        world.barrier()
        u.fill(lambda i: i + 2.0)
        halo()
        return u.count_wrong(lambda i: i + 2.0)

    assert ts.launch(2, body, ranks=ranks) == [0, 0]


@pytest.mark.parametrize("peers", ["reachable", "messaged"])
def test_the_exception_of_a_simulated_rank_comes_before_what_it_causes(peers):
    class Boom(Exception):
        pass

    def main(world):
        a, b = (ts.array(world, ts.distribution((12, 12), grid=g)) for g in ((3, 1), (1, 3)))
        move = ts.Redistribution(a, b)
        move()
        if world.rank == 1:
            raise Boom("first")
        move()
        world.barrier()

    for seed in range(1, 201):
        with pytest.raises(Boom):
            ts.simulate(3, main, seed=seed, peers=peers)


def test_ghosts_are_stale_after_an_adjoint_once_their_owners_are_written(run):
    def body(world):
        u = ts.array(world, ts.distribution((8,), grid=(2,), overlap=1, edge="toroidal"), devices=ts.Devices(fake=2))
        adjoint = ts.halo(u, adjoint=True)
        with u.read_write("stored") as a:
            a[0] = a[-1] = 2
        adjoint()
        with u.write() as a:
            a[1:-1] = 1
        first = u.count_wrong(lambda i: i * 0)
        u.fill(5)
        return first, u.count_wrong(lambda i: i * 0)

    assert run(2, body) == [(6, 6)] * 2


def test_a_dtype_beside_an_array_spec_is_the_same():
    def body(world):
        spec = ts.layout("int32[8] @ 2 : block")
        assert ts.array(world, spec).local.dtype == np.int32
        assert ts.array(world, spec, dtype=np.int32).local.dtype == np.int32
        with pytest.raises(ts.Mismatch, match="dtype is float64, but the layout says int32"):
            ts.array(world, spec, dtype="f8")

    ts.simulate(2, body)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_has_64_bits(seed):
    with pytest.raises(ts.InvalidUse, match=f"seed={seed}: needs 0 to 18446744073709551615"):
        ts.simulate(1, lambda world: None, seed=seed)


def test_fills_and_looks_at_cells_in_flight_are_found():
    cells = ts.distribution((8,), ts.grid(2), [ts.block().with_overlap(1, 1, "toroidal")])

    def body(world, between):
        u = ts.array(world, cells)
        u.fill(lambda i: i)
        h = ts.halo(u)
        h.start()
        between(u)
        h.finish()
        u.fill(lambda i: 2.0 * i)

    for between in (lambda u: u.fill(lambda i: 0.0 * i), lambda u: u.count_wrong(lambda i: i)):
        with pytest.raises(ts.Race):
            ts.simulate(2, lambda world: body(world, between))
    ts.simulate(2, lambda world: body(world, lambda u: None))


def test_exchanges_of_lists_are_checked_by_the_cells_that_move():
    listed = ts.indexed(6, [([0, 1, 2], [3]), ([3, 4, 5], [0])])

    def body(world, first, last):
        a = ts.array(world, listed)
        with ts.halo(a):
            world.reads(a.local[first:last])

    ts.simulate(2, lambda world: body(world, 0, 3))
    with pytest.raises(ts.Race):
        ts.simulate(2, lambda world: body(world, 3, 4))


def test_a_rank_that_lists_nothing_takes_part():
    def body(world):
        return ts.gather(ts.array(world, ts.indexed(8, [([0, 2, 4, 6, 1, 3, 5, 7], []), ([], [])])), root=0)

    assert ts.simulate(2, body)[0].tolist() == [0.0] * 8
