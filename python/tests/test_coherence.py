"""Operations of arrays on the host and leases on devices see the values of one array."""

import gc
import random

import numpy as np
import pytest

import tranship as ts

EXTENTS = (6, 4)
PLACES = ["host", "fake:0", "fake:1"]


def copies_of(d):
    """How many ghosts of all ranks stand for each cell."""
    out = np.zeros(EXTENTS, "i8")
    for rank in range(d.grid.size):
        for one in d.slices(rank):
            cells = np.ix_(*(np.arange(s.start, s.stop) % n for s, n in zip(one["stored"], EXTENTS)))
            np.add.at(out, cells, 1)
    return out - 1


class Model:
    """The array, and what is known of its ghosts: all are copies of their cells, or none has a value."""

    def __init__(self, world, rng):
        self.world, self.rng = world, rng
        self.d = ts.distribution(EXTENTS, (world.size, 1), overlap=1, edge="toroidal")
        self.u = ts.array(world, self.d, "i8", name="u", devices=ts.Devices(fake=2))
        self.v = ts.array(world, ts.distribution(EXTENTS, (1, world.size), overlap=1), "i8", name="v")
        self.halo, self.adjoint = ts.halo(self.u), ts.halo(self.u, adjoint=True)
        self.away, self.back = ts.Redistribution(self.u, self.v), ts.Redistribution(self.v, self.u)
        [one] = self.d.slices(world.rank)
        self.own = one["local_owned"]
        self.owned = np.ix_(*(np.arange(s.start, s.stop) for s in one["owned"]))
        self.stored = np.ix_(*(np.arange(s.start, s.stop) % n for s, n in zip(one["stored"], EXTENTS)))
        self.ghosts = self.u._local.size - self.u._local[self.own].size
        self.whole = np.zeros(EXTENTS, "i8")
        self.is_fresh, self.is_leased, self.is_pending, self.has_value = False, False, False, True

    def new(self):
        """Values that no step has had, alike on all ranks."""
        return np.array([self.rng.randrange(1, 10**9) for _ in range(self.whole.size)]).reshape(EXTENTS)

    def place(self):
        """A device, and another one on each rank."""
        return PLACES[(self.rng.randrange(3) + self.world.rank) % 3]

    def fill(self):
        self.whole, self.is_pending, self.has_value = self.new(), False, True
        self.is_fresh = False
        self.u.fill(lambda i, j: self.whole[i, j])

    def refuses(self, call):
        if self.is_pending or not self.has_value:
            with pytest.raises(ts.InvalidUse):
                call()
            return True
        return False

    def count(self):
        def call():
            return self.u.count_wrong(lambda i, j: self.whole[i, j])

        if self.refuses(call):
            return
        if self.is_leased:
            assert call() == (0 if self.is_fresh else self.ghosts)
        else:
            ghosts_wrong = np.count_nonzero(self.u.local != self.whole[self.stored])
            assert call() == ghosts_wrong

    def look(self):
        if self.refuses(lambda: self.u.local):
            return
        for show in (lambda: self.u.local, lambda: np.asarray(self.u), lambda: np.asarray(memoryview(self.u))):
            shown = show()
            assert np.array_equal(shown[self.own], self.whole[self.owned])
            assert not self.is_fresh or np.array_equal(shown, self.whole[self.stored])
        assert np.array_equal(self.u.owned(), self.whole[self.owned])

    def write_in_place(self):
        """Into the memory itself, where the array has had no lease; then it cannot be done."""
        if self.refuses(lambda: self.u.local):
            return
        if self.is_leased:
            for view in (self.u.local, self.u.owned(), self.u.slices()[0][1], np.asarray(self.u)):
                with pytest.raises(ValueError):
                    view[...] = 1
                with pytest.raises(ValueError):
                    view.flags.writeable = True
        else:
            self.whole = self.new()
            self.u.owned()[...] = self.whole[self.owned]
            self.is_fresh = False

    def read(self, cells):
        if not self.has_value:
            with pytest.raises(ts.InvalidUse):
                self.u.read(cells, device=self.place())
            return
        with self.u.read(cells, device=self.place()) as a:
            assert np.array_equal(a[self.own], self.whole[self.owned])
            if cells == "stored":
                assert np.array_equal(a, self.whole[self.stored])
        self.is_fresh = cells == "stored" or (self.is_fresh and not self.is_pending)
        self.is_leased, self.is_pending = True, False

    def write(self, cells):
        self.whole, self.is_pending, self.has_value = self.new(), False, True
        with self.u.write(cells, device=self.place()) as a:
            if cells == "stored":
                a[...] = self.whole[self.stored]
            else:
                a[self.own] = self.whole[self.owned]
        self.is_fresh, self.is_leased = cells == "stored", True

    def read_write(self):
        if not self.has_value:
            return
        with self.u.read_write(device=self.place()) as a:
            a[self.own] += 3
        self.whole = self.whole + 3
        self.is_fresh, self.is_leased, self.is_pending = False, True, False

    def accumulate(self):
        if not self.has_value:
            return
        with self.u.accumulate("stored", device=self.place()) as a:
            a[...] += 1
        self.whole = self.whole + 1 + copies_of(self.d)
        self.is_fresh, self.is_leased, self.is_pending = False, True, True

    def abandon(self):
        with pytest.raises(ZeroDivisionError):
            with self.u.write(device=self.place()):
                1 / 0
        self.has_value, self.is_fresh, self.is_leased, self.is_pending = False, False, True, False

    def exchange(self):
        if not self.has_value:
            return
        self.halo()
        self.is_fresh, self.is_pending = True, False

    def add_ghosts(self):
        if not (self.is_fresh and self.has_value):
            return
        self.adjoint()
        self.whole = self.whole * (1 + copies_of(self.d))
        self.is_fresh = False

    def redistribute(self):
        if not self.has_value:
            return
        self.away()
        assert self.v.count_wrong(lambda i, j: self.whole[i, j]) == 0
        self.whole = self.new()
        self.v.fill(lambda i, j: self.whole[i, j])
        self.back()
        self.is_fresh, self.is_pending = True, False

    def refuse_while_a_lease_is_open(self):
        if not self.has_value:
            return
        with self.u.read_write(device=self.place()) as a:
            for call in (lambda: self.u.local, lambda: self.u.fill(1), lambda: self.u.count_wrong(1)):
                with pytest.raises(ts.InvalidUse, match="test_coherence.py.*test_coherence.py"):
                    call()
            a[self.own] -= 1
        self.whole = self.whole - 1
        self.is_fresh, self.is_leased, self.is_pending = False, True, False

    def explain(self):
        """One rank alone asks for an explanation, at any time, which changes nothing."""
        device, rank = self.place(), self.rng.randrange(self.world.size)
        if self.world.rank == rank:
            assert "array 'u'" in self.u.explain("read", "stored", device=device)

    def steps(self):
        return [
            self.fill, self.fill, self.count, self.count, self.look, self.look, self.write_in_place,
            lambda: self.read("owned"), lambda: self.read("stored"), lambda: self.write("owned"),
            lambda: self.write("stored"), self.read_write, self.accumulate, self.abandon, self.exchange,
            self.add_ghosts, self.redistribute, self.refuse_while_a_lease_is_open, self.explain,
        ]  # fmt: skip


def walk(world, seed):
    model = Model(world, random.Random(seed))
    for _ in range(40):
        model.rng.choice(model.steps())()
    world.barrier()


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_operations_has_the_values_of_one_array(ranks, seed):
    ts.simulate(ranks, lambda world: walk(world, seed), seed=seed)


def test_any_sequence_of_operations_of_real_ranks(run):
    run(2, lambda world: walk(world, 100))
    run(3, lambda world: walk(world, 101))


def test_ranks_outside_of_the_grid():
    def body(world):
        u = leased(world, distribution=ts.distribution(4, 2, overlap=1, edge="toroidal"))
        for turn in range(2):
            on_device(u, turn)
            assert u.local.size == (4, 4, 0)[world.rank] and np.all(u.owned() == turn)
            assert u.count_wrong(turn) == (2, 2, 0)[world.rank]
            u.fill(turn + 1)
            with u.read("stored", device="fake:0") as a:
                assert np.all(a == turn + 1)
            assert u.count_wrong(turn + 1) == 0

    ts.simulate(3, body)


def leased(world, dtype="f8", distribution=None):
    """An array whose values a device has."""
    d = ts.distribution((4, 3), (world.size, 1), overlap=1, edge="toroidal") if distribution is None else distribution
    u = ts.array(world, d, dtype, name="u", devices=ts.Devices(fake=1))
    u.fill(0)
    return u


def on_device(u, value):
    with u.write(device="fake:0") as a:
        a[...] = value


@pytest.mark.parametrize("part", [lambda a: a.owned(), lambda a: a.slices()[0][1], memoryview, lambda a: a.local[1:]])
def test_a_write_through_a_view_of_before_the_first_lease_is_said(part):
    def body(world):
        u = leased(world)
        kept = np.asarray(part(u))
        kept[1] = 1
        with u.read(device="fake:0") as a:
            assert a[1:3, 1:4].max() == 1
        kept[1] = 2
        with pytest.raises(ts.InvalidUse, match="has been kept.*test_coherence.py|test_coherence.py.*has been kept"):
            u.read(device="fake:0")
        del kept
        gc.collect()
        on_device(u, 3)
        assert u.count_wrong(3) == u.local.size - u.owned().size

    ts.simulate(2, body)


def test_a_kept_local_array_becomes_read_only_with_the_first_lease():
    for dtype in ("f8", [("a", "i4"), ("b", "f8")]):

        def body(world):
            u = leased(world, dtype)
            kept = u.local
            kept[...] = np.ones(1, dtype)[0]
            on_device(u, np.zeros(1, dtype)[0])
            for array in (kept, u.local):
                with pytest.raises(ValueError):
                    array[...] = kept[0]
                with pytest.raises(ValueError):
                    array.flags.writeable = True
            assert np.array_equal(u.owned(), np.zeros(u.owned().shape, dtype))

        ts.simulate(2, body)


def test_structs_and_indexed_arrays():
    def body(world):
        dtype = np.dtype([("a", "i4"), ("b", "f8")])
        values = np.zeros((4, 3), dtype)
        values["a"], values["b"] = np.arange(12).reshape(4, 3), 0.5
        u = leased(world, dtype)
        for _ in range(2):
            u.fill(lambda i, j: values[i, j])
            ghosts = u.local.size - u.owned().size
            with u.read(device="fake:0") as a:
                assert np.array_equal(a[1:-1, 1:-1], u.owned())
            assert u.count_wrong(lambda i, j: values[i, j]) == ghosts
            ts.halo(u)()
            assert u.count_wrong(lambda i, j: values[i, j]) == 0
            on_device(u, values[0, 0])
            assert u.count_wrong(lambda i, j: values[0, 0]) == ghosts
        parts = [([0, 2, 4], [1]), ([1, 3], [0, 4])]
        v = leased(world, distribution=ts.indexed((5, 2), parts))
        with v.write(device="fake:0") as a:
            a[...] = 7
        assert np.all(v.owned() == 7)
        assert v.count_wrong(7) == 2 * len(parts[world.rank][1])
        v.fill(lambda i, j: 10 * i + j)
        with v.read("stored", device="fake:0") as a:
            ids = [*parts[world.rank][0], *parts[world.rank][1]]
            assert a.tolist() == [[10 * i, 10 * i + 1] for i in ids]
        assert v.count_wrong(lambda i, j: 10 * i + j) == 0

    ts.simulate(2, body)


def test_a_saved_plan_of_a_part_fills_no_other_ghosts():
    def body(world):
        u = leased(world, "i8", ts.distribution(8, world.size, overlap=1, edge="toroidal"))
        source = ts.array(world, ts.distribution(8, world.size), "i8")
        source.fill(lambda i: 100 + i)
        part = ts.Redistribution(source, u, part=((0,), (0,), (2,)))
        saved = ts.Redistribution(source, u, plan=ts.load_plan(ts.save_plan(part.plan)))
        for move in (part, saved):
            with u.write("stored", device="fake:0") as a:
                a[...] = 1
            with u.accumulate(device="fake:0") as a:  # for cell 4 and 7, among others
                a[0] = a[-1] = 5
            move()
            whole = np.array([100, 101, 1, 6, 6, 1, 1, 6])
            with u.read("stored", device="fake:0") as a:
                assert a.tolist() == [whole[i % 8] for i in range(4 * world.rank - 1, 4 * world.rank + 5)]

    ts.simulate(2, body)


@pytest.mark.parametrize("combine", ["sum", "max", "min", "product"])
def test_adjoints_combine_what_devices_hold(combine):
    def body(world):
        u = leased(world, "i8", ts.distribution(8, world.size, overlap=1, edge="toroidal"))
        with u.write("stored", device="fake:0") as a:
            a[...] = [5, 2, 3, 3, 4, 1]
        ts.halo(u, adjoint=True, combine=combine)()
        whole = {"sum": [3, 9], "max": [2, 5], "min": [1, 4], "product": [2, 20]}[combine]
        with u.read(device="fake:0") as a:
            assert a[1:-1].tolist() == [whole[0], 3, 3, whole[1]]

    ts.simulate(2, body)


def test_no_combination_of_structs():
    def body(world):
        u = leased(world, [("a", "i4"), ("b", "i4")])
        with pytest.raises(ts.InvalidUse, match="moved as bytes"):
            ts.halo(u, adjoint=True, combine="max")

    ts.simulate(1, body)


def test_pipes_send_what_devices_hold_and_devices_read_what_pipes_bring():
    def body(world):
        d = ts.distribution((4, 3), (2, 1), overlap=1)
        devices = ts.Devices(fake=1)
        sources, targets = ([ts.array(world, d, "i8", devices=devices) for _ in range(2)] for _ in range(2))
        pipe = ts.Pipe(world, sources, targets)
        for frame in range(6):
            with pipe.sender as out:
                with out.write(device="fake:0") as a:
                    a[...] = frame + 1
            with pipe.receiver as got:
                if frame % 3 == 2:
                    with got.write(device="fake:0") as a:
                        a[...] = -1
                else:
                    with got.read("stored", device="fake:0") as a:
                        assert set(np.unique(a)) <= {0, frame + 1} and np.count_nonzero(a) == 9
                    assert got.count_wrong(frame + 1) == 0
            with pytest.raises(ts.InvalidUse):
                got.fill(1)  # the pipe's
        pipe.close()

    ts.launch(2, body)


def test_values_that_are_on_a_device_when_the_world_ends_are_missed():
    kept = []

    def body(world):
        for ending in ("device", "host", "none"):
            u = leased(world)
            if ending != "none":
                on_device(u, 5)
            if ending == "host":
                u.local
            kept.append(u)

    ts.launch(1, body)
    with pytest.raises(ts.InvalidUse, match="array 'u'.*when its world ended"):
        kept[0].local
    assert np.all(kept[1].local[1:-1, 1:-1] == 5) and not kept[1].local.flags.writeable
    assert kept[2].local.flags.writeable
