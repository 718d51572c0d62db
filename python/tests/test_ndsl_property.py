"""NDSL's names against loops over cells, and messages against the exchanges of a World, on random layouts."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_ndsl import MODULES

import tranship as ts
from tranship.ndsl import (
    CubedSphereCommunicator,
    CubedSpherePartitioner,
    HaloDataTransformer,
    HaloExchangeSpec,
    LocalComm,
    Quantity,
    QuantityHaloSpec,
    TileCommunicator,
    TilePartitioner,
    Timer,
)
from tranship.ndsl.halo.rotate import rotate_scalar_data, rotate_vector_data

# For each tile, the axis through its centre, and the axes along i and along j: 1 is x, -1 is -x.
TILES = [(+1, +2, +3), (+2, -1, +3), (+3, -1, -2), (-1, -3, -2), (-2, -3, +1), (-3, +2, +1)]
SIMULATED = {"sim": {}, "messaged": {"peers": "messaged"}, "hosts": {"ranks_per_host": 2}}
KINDS = {"i": "i", "j": "j", "i_interface": "i", "j_interface": "j"}

quick = settings(max_examples=60, deadline=None)
slow = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# Rotations, from the definition.


def turned(block, dims, r):
    """A block as a neighbour sees it across a boundary with ``r`` rotations, element by element; both dims exist."""
    y = next(n for n, dim in enumerate(dims) if dim[0] == "j")
    x = next(n for n, dim in enumerate(dims) if dim[0] == "i")
    shape = list(block.shape)
    if r % 2:
        shape[x], shape[y] = shape[y], shape[x]
    out = np.empty(shape, block.dtype)
    ny, nx = block.shape[y], block.shape[x]
    for index in np.ndindex(*shape):
        a, b = index[y], index[x]
        source = list(index)
        source[y], source[x] = {
            0: (a, b),
            1: (ny - 1 - b, a),
            2: (ny - 1 - a, nx - 1 - b),
            3: (b, nx - 1 - a),
        }[r]
        out[index] = block[tuple(source)]
    return out


def message_of(blocks, rotations, dims):
    """The message that a transformer packs by definition: pairs of components, or blocks with None."""
    parts = []
    for (x, y), r in zip(blocks, rotations):
        if y is None:
            parts.append(turned(x, dims, r))
        else:
            a, b = turned(x, dims, r), turned(y, dims, r)
            with np.errstate(all="ignore"):
                parts += {0: lambda: [a, b], 1: lambda: [-b, a], 2: lambda: [-a, -b], 3: lambda: [b, -a]}[r]()
    return b"".join(part.tobytes() for part in parts)


@st.composite
def memories(draw, shape, dtype):
    """An array of a shape, with strides of any order and sign, and gaps."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    base = np.empty([shape[axis] * abs(steps[axis]) for axis in order], dtype)
    seed = draw(st.integers(0, 2**31))
    raw = np.random.default_rng(seed).integers(0, 255, base.nbytes, np.uint8)
    if dtype == "?":
        raw &= 1
    base.view(np.uint8).reshape(-1)[:] = raw
    view = base.transpose(np.argsort(order))[tuple(slice(None, None, step) for step in steps)]
    assert view.shape == tuple(shape)
    return view


@st.composite
def exchanges(draw):
    """Quantities with blocks of theirs."""
    is_vector = draw(st.booleans())
    dtype = draw(st.sampled_from(["f8", "f4", "i4", "u1", "i8", "c16", "f2"] + ([] if is_vector else ["?"])))
    dims = draw(st.sampled_from(list(itertools.permutations(["i", "j", "k"])) + [("i", "j"), ("j", "i")]))
    n = draw(st.integers(1, 3))
    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        shape = [draw(st.integers(2 * n + 3, 9)) if dim != "k" else draw(st.integers(1, 4)) for dim in dims]
        origin = [n if dim != "k" else 0 for dim in dims]
        extent = [length - 2 * n if dim != "k" else length for dim, length in zip(dims, shape)]
        cut = []
        for dim, o, e in zip(dims, origin, extent):
            start = draw(st.integers(0, e - 1)) if dim != "k" else 0
            cut.append(slice(o + start, o + (draw(st.integers(start + 1, e)) if dim != "k" else e)))
        # The received block has as many cells, in a halo.
        where = draw(st.sampled_from([d for d, dim in enumerate(dims) if dim != "k"]))
        r = draw(st.integers(0, 3))
        x = draw(memories(shape, dtype))
        y = draw(memories(shape, dtype)) if is_vector else None
        quantities = [None if m is None else Quantity(m, dims, "", origin=origin, extent=extent) for m in (x, y)]
        blocks.append((quantities, tuple(cut), r, where))
    return dims, min(n, 1), blocks, is_vector


@quick
@given(exchanges(), st.sampled_from(sorted(MODULES)))
def test_packing_is_what_its_definition_says(case, module):
    dims, n, blocks, is_vector = case

    def spec_of(q):
        return QuantityHaloSpec(
            n, q.data.strides, q.data.itemsize, q.shape, q.origin, q.extent, q.dims, MODULES[module], q.dtype
        )

    x = [HaloExchangeSpec(spec_of(q[0]), cut, r, cut) for q, cut, r, _ in blocks]
    y = [HaloExchangeSpec(spec_of(q[1]), cut, r, cut) for q, cut, r, _ in blocks] if is_vector else None
    transformer = HaloDataTransformer.get(MODULES[module], x, y)
    transformer.async_pack([q[0] for q, *_ in blocks], [q[1] for q, *_ in blocks] if is_vector else None)
    expected = message_of(
        [(q[0].data[cut], None if q[1] is None else q[1].data[cut]) for q, cut, *_ in blocks],
        [r for _, _, r, _ in blocks],
        dims,
    )
    assert transformer.get_pack_buffer().array.tobytes() == expected


@quick
@given(st.integers(-9, 9), st.permutations(["i", "j_interface", "k"]), st.data())
def test_rotations_follow_the_definition(turns, dims, data):
    shape = [data.draw(st.integers(1, 4)) for _ in dims]
    x, y = data.draw(memories(shape, "f8")), data.draw(memories(shape, "f8"))
    r = -turns % 4
    assert rotate_scalar_data(x, dims, np, turns).tobytes() == turned(x, dims, r).tobytes()
    assert b"".join(v.tobytes() for v in rotate_vector_data(x, y, turns, dims, np)) == message_of([(x, y)], [r], dims)
    back = rotate_scalar_data(rotate_scalar_data(x, dims, np, turns), dims, np, -turns)
    assert back.tobytes() == x.tobytes() and np.shares_memory(back, x)


# Whole updates.


class Ranks:
    """A communicator, a random partition, and quantities with distinct values on every rank."""

    def __init__(self, draw, on_cube, dims_of, *, even=False):
        edge = draw(st.integers(1, 3)) if on_cube else 0
        self.layout = (edge, edge) if on_cube else (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
        ratio = 1.0 if even else draw(st.sampled_from([1.0, 1.0, 0.5, 2.0]))
        self.n = draw(st.integers(1, 3))
        per_rank = draw(st.integers(self.n, self.n + 2))
        cells = [2 * count * (per_rank + 1) for count in self.layout]
        if on_cube:
            cells = [cells[0]] * 2
        tile = TilePartitioner(self.layout, ratio)
        self.partitioner = CubedSpherePartitioner(tile) if on_cube else tile
        self.kind = CubedSphereCommunicator if on_cube else TileCommunicator
        self.size = self.partitioner.total_ranks
        self.cells = cells
        self.dims_of = dims_of
        self.spare = draw(st.integers(0, 2))  # halo points that are allocated and not exchanged
        self.seed = draw(st.integers(0, 2**31))

    def cut(self, rank, dims):
        extents = [self.length(dim) for dim in dims]
        return self.partitioner.tile.subtile_slice(rank, dims, extents, overlap=True)

    def length(self, dim):
        return 2 if dim == "k" else self.cells[0 if dim[0] == "j" else 1] + ("interface" in dim)

    def quantity(self, rank, number):
        """Random bits in everything that is stored; the same for the same rank and number."""
        dims = self.dims_of[number]
        extent = [c.stop - c.start for c in self.cut(rank, dims)]
        width = [self.n + self.spare if dim in KINDS else 0 for dim in dims]
        shape = [e + 2 * w for e, w in zip(extent, width)]
        data = np.random.default_rng([self.seed, rank, number]).integers(-(2**62), 2**62, shape)
        return Quantity(data, dims, "", origin=width, extent=extent)

    def quantities(self, rank):
        return [self.quantity(rank, number) for number in range(len(self.dims_of))]

    def local(self):
        shared = {}
        return [self.kind(LocalComm(r, self.size, shared), self.partitioner, timer=Timer()) for r in range(self.size)]

    def meddle(self, rank, mine):
        """Acts as a model between start() and wait(): writes new values in any of its cells, owned ones and ghosts."""
        random = np.random.default_rng([self.seed, rank, 1000])
        for q in mine:
            chosen = random.random(q.data.shape) < random.choice([0.1, 0.5, 1.0])
            q.data[chosen] = random.integers(-(2**62), 2**62, int(chosen.sum()))

    def by_messages(self, start, meddle=False):
        """Returns the quantities of each rank after ``start(communicator, quantities)``, played by one thread."""
        everyone = [self.quantities(rank) for rank in range(self.size)]
        waiting = [start(communicator, mine) for communicator, mine in zip(self.local(), everyone)]
        for rank, one in enumerate(waiting):
            if meddle:
                self.meddle(rank, everyone[rank])
            one.wait()
        return everyone

    def by_a_world(self, start, where="threads", meddle=False):
        def body(world):
            mine = self.quantities(world.rank)
            request = start(self.kind(world, self.partitioner), mine)
            if meddle:
                self.meddle(world.rank, mine)
            request.wait()
            return [q.data for q in mine]

        if where in ("threads", "processes"):
            return ts.launch(self.size, body, ranks=where, timeout=60)
        return ts.simulate(self.size, body, seed=self.seed % 1000, **SIMULATED[where])

    def draw_world(self, draw):
        """Draws a kind of world in which ``size`` ranks run quickly."""
        return draw(st.sampled_from(["threads", "processes", *SIMULATED] if self.size <= 6 else ["threads"]))


DIMS = [("j", "i"), ("i", "j"), ("i", "j", "k"), ("k", "j", "i"), ("j", "k", "i")]


@slow
@given(st.data(), st.booleans(), st.lists(st.sampled_from(DIMS), min_size=1, max_size=3))
def test_scalars_come_from_where_the_surface_says(data, on_cube, dims_of):
    """Against a walk over the surface by the tiling, which knows nothing of ranks."""
    ranks = Ranks(data.draw, on_cube, dims_of)
    n = ranks.n
    tiling = ts.cubed_sphere(ranks.cells[0]) if on_cube else ts.doubly_periodic(*ranks.cells)
    per_tile = ranks.layout[0] * ranks.layout[1]
    for number, dims in enumerate(dims_of):
        y, x = dims.index("j"), dims.index("i")
        whole = []
        for tile in range(6 if on_cube else 1):
            field = np.zeros([ranks.length(dim) for dim in dims], "i8")
            for part in range(per_tile):
                q = ranks.quantity(tile * per_tile + part, number)
                field[ranks.cut(part, dims)] = q.field
            whole.append(field)
        after = ranks.by_messages(lambda c, mine: c.start_halo_update(mine, n))
        for rank, mine in enumerate(after):
            found, before = mine[number].data, ranks.quantity(rank, number)
            expected = before.data.copy()
            cut = ranks.cut(rank, dims)
            for index in np.ndindex(*found.shape):
                cell = [i - o + c.start for i, o, c in zip(index, before.origin, cut)]
                outside = [max(cell[d] - cut[d].stop + 1, cut[d].start - cell[d], 0) for d in (y, x)]
                if max(outside) in range(1, n + 1):
                    at = tiling.locate(rank // per_tile, (cell[y], cell[x]))
                    if at is not None:
                        cell[y], cell[x] = at[1]
                        expected[index] = whole[at[0]][tuple(cell)]
            assert np.array_equal(found, expected), (rank, dims, ranks.layout)


def test_vectors_turn_as_the_faces_of_a_cube_do():
    """Against the axes of its faces: an axis that leaves a face goes on along the one beyond."""
    n = 3
    shared = {}
    ranks = [CubedSphereCommunicator.from_layout(LocalComm(r, 6, shared), (1, 1)) for r in range(6)]

    def field(rank, component):
        return Quantity(np.full((n + 2, n + 2), 100.0 * component + rank + 1), ["j", "i"], "", origin=(1, 1), extent=(n, n))

    vectors = [(field(rank, 1), field(rank, 2)) for rank in range(6)]
    updaters = [r.start_vector_halo_update(x, y, 1) for r, (x, y) in zip(ranks, vectors)]
    for updater in updaters:
        updater.wait()
    edges = {"east": (2, n + 1, 1, -1), "west": (2, 0, 1, +1), "north": (n + 1, 2, 2, -1), "south": (0, 2, 2, +1)}
    for rank, (x, y) in enumerate(vectors):
        through, *axes = TILES[rank]
        for name, (row, column, moving, sign) in edges.items():
            beyond_centre = axes[moving - 1] * -sign  # the face that the step leads to
            beyond = next(t for t in range(6) if TILES[t][0] == beyond_centre)
            axes_there = list(axes)
            axes_there[moving - 1] = sign * through
            for quantity, direction in ((x, axes_there[0]), (y, axes_there[1])):
                component = [abs(a) for a in TILES[beyond]].index(abs(direction))
                expected = (100 * component + beyond + 1) * np.sign(direction) * np.sign(TILES[beyond][component])
                assert quantity.data[row, column] == expected, (rank, name)


STAGGERED = [("j_interface", "i"), ("j", "i_interface"), ("j_interface", "i_interface"), ("i_interface", "k", "j")]
SQUARE = [("j_interface", "i_interface"), ("i_interface", "k", "j_interface"), ("j", "i")]


def same(by_messages, by_a_world):
    for rank, (mine, theirs) in enumerate(zip(by_messages, by_a_world)):
        for number, (q, data) in enumerate(zip(mine, theirs)):
            assert np.array_equal(q.data, data), (rank, number, np.argwhere(q.data != data)[:3].tolist())


@slow
@given(st.data(), st.booleans())
def test_messages_and_a_world_leave_the_same_scalars(data, on_cube):
    """Staggered ones too, whose shared points differ from rank to rank."""
    dims_of = data.draw(st.lists(st.sampled_from(SQUARE if on_cube else STAGGERED + DIMS), min_size=1, max_size=3))
    ranks = Ranks(data.draw, on_cube, dims_of)

    def start(communicator, mine):
        return communicator.start_halo_update(mine, ranks.n)

    meddle = data.draw(st.booleans())
    same(ranks.by_messages(start, meddle), ranks.by_a_world(start, ranks.draw_world(data.draw), meddle))


@slow
@given(st.data(), st.booleans())
def test_messages_and_a_world_leave_the_same_vectors(data, on_cube):
    order = data.draw(st.sampled_from(["jik", "ijk", "kji", "jki", "ij"]))
    x_stagger, y_stagger = data.draw(st.sampled_from([("", ""), ("i", "j"), ("j", "i"), ("ij", "ij")]))

    def dims(stagger):
        return tuple(d + ("_interface" if d in stagger else "") for d in order)

    count = data.draw(st.integers(1, 2))
    ranks = Ranks(data.draw, on_cube, [dims(x_stagger)] * count + [dims(y_stagger)] * count)

    def start(communicator, mine):
        return communicator.start_vector_halo_update(mine[:count], mine[count:], ranks.n)

    meddle = data.draw(st.booleans())
    same(ranks.by_messages(start, meddle), ranks.by_a_world(start, ranks.draw_world(data.draw), meddle))


@slow
@given(st.data(), st.booleans(), st.sampled_from(["ji", "ijk", "kji", "ikj"]))
def test_messages_and_a_world_synchronize_the_same(data, on_cube, order):
    def dims(stagger):
        return tuple(d + ("_interface" if d == stagger else "") for d in order)

    ranks = Ranks(data.draw, on_cube, [dims("j"), dims("i")])

    def start(communicator, mine):
        return communicator.start_synchronize_vector_interfaces(*mine)

    meddle = data.draw(st.booleans())
    after = ranks.by_messages(start, meddle)
    same(after, ranks.by_a_world(start, ranks.draw_world(data.draw), meddle))
    if not on_cube and not meddle:  # no sign: neighbours now hold the same on what they share
        for rank, (x, y) in enumerate(after):
            north = after[ranks.partitioner.boundary(2, rank).to_rank][0]
            top, bottom = ([slice(None)] * len(order) for _ in range(2))
            top[order.index("j")], bottom[order.index("j")] = -1, 0
            assert np.array_equal(x.field[tuple(top)], north.field[tuple(bottom)])


class AnyElements(Ranks):
    """Ranks with quantities of any dtype, in memory that NumPy takes: each element has bytes of its own."""

    def __init__(self, on_cube, dims_of, dtype, memory):
        self.layout = (1, 1) if on_cube else (2, 1)
        tile = TilePartitioner(self.layout)
        self.partitioner = CubedSpherePartitioner(tile) if on_cube else tile
        self.kind = CubedSphereCommunicator if on_cube else TileCommunicator
        self.size = self.partitioner.total_ranks
        self.n, self.spare, self.cells, self.dims_of, self.seed = 2, 1, [4, 4], dims_of, 7
        self.dtype, self.memory = np.dtype(dtype), memory

    def quantity(self, rank, number):
        q = super().quantity(rank, number)
        values = self.values(q.data)
        shape = (*q.data.shape[:-1], q.data.shape[-1] + 1)
        if self.memory == "plain":
            data = np.empty(q.data.shape, self.dtype)
        elif self.memory == "gaps":
            data = np.empty(shape, self.dtype)[..., 1:]
        elif self.memory == "address":
            room = np.empty(q.data.size * self.dtype.itemsize + 1, np.uint8)
            data = room[1:].view(self.dtype).reshape(q.data.shape)
        else:
            packed = np.dtype({"names": ["a"], "formats": [self.dtype], "offsets": [3], "itemsize": self.dtype.itemsize + 5})
            data = np.empty(q.data.shape, packed)["a"]
        data[...] = values
        return Quantity(data, q.dims, "", origin=q.origin, extent=q.extent)

    def values(self, numbers):
        if self.dtype.names is None:
            return (numbers % 251).astype(self.dtype)
        out = np.empty(numbers.shape, self.dtype)
        for n, name in enumerate(self.dtype.names):
            out[name] = (numbers >> n) % 251
        return out

    def meddle(self, rank, mine):
        random = np.random.default_rng([self.seed, rank, 1000])
        for q in mine:
            chosen = random.random(q.data.shape) < 0.5
            q.data[chosen] = self.values(random.integers(0, 2**62, q.data.shape))[chosen]


NUMBERS = ["f8", ">f8", ">i4", "u2", ">c16", "f2", "g", "m8[s]", ">m8[s]"]
OTHERS = ["?", "U3", ">U2", "S5", "M8[s]", [("a", "f4"), ("b", "u2")], np.dtype([("a", "i1"), ("b", ">f8")], align=True)]


def result_of(call):
    """Returns the quantities after a call, or the error by which it fails."""
    try:
        return [[repr((q if isinstance(q, np.ndarray) else q.data).tolist()) for q in mine] for mine in call()]  # no padding
    except ts.PeerLost:
        raise
    except Exception as error:
        return type(error).__name__, str(error).partition("; simulated with seed ")[0]


@pytest.mark.parametrize("of", ["scalar", "vector", "synchronization"])
@pytest.mark.parametrize("on_cube", [True, False])
@pytest.mark.parametrize("dtype", NUMBERS + OTHERS, ids=str)
def test_messages_and_a_world_take_and_refuse_the_same_elements(dtype, on_cube, of):
    for memory in ("plain", "gaps", "address", "strides"):
        dims_of = [("j_interface", "i"), ("j", "i_interface")] if of == "synchronization" else [("j", "i", "k")] * 2
        ranks = AnyElements(on_cube, dims_of, dtype, memory)

        def start(communicator, mine):
            if of == "scalar":
                return communicator.start_halo_update(mine, ranks.n)
            if of == "vector":
                return communicator.start_vector_halo_update(mine[:1], mine[1:], ranks.n)
            return communicator.start_synchronize_vector_interfaces(*mine)

        by_messages = result_of(lambda: ranks.by_messages(start, True))
        assert result_of(lambda: ranks.by_a_world(start, "sim", True)) == by_messages
        is_refused = isinstance(by_messages, tuple)
        assert is_refused == (dtype in OTHERS and (of == "synchronization" or (of == "vector" and on_cube)))
        if is_refused:
            assert "have no sign to change" in by_messages[1], by_messages


def test_synchronization_does_not_depend_on_the_order_of_dimensions():
    """Where k comes first, too: NDSL reverses the levels there."""
    results = {}
    for order in ("jik", "kji", "jki"):
        shared, started = {}, []
        for rank in range(6):
            quantities = []
            for stagger in "ji":
                lengths = {"j": 4, "i": 4, "k": 3}
                lengths[stagger] += 1
                canonical = np.random.default_rng([rank, ord(stagger)]).random([lengths[d] for d in "jik"])
                data = canonical.transpose(["jik".index(d) for d in order]).copy()
                dims = [d + ("_interface" if d == stagger else "") for d in order]
                quantities.append(Quantity(data, dims, ""))
            ranks = CubedSphereCommunicator.from_layout(LocalComm(rank, 6, shared), (1, 1))
            started.append((ranks.start_synchronize_vector_interfaces(*quantities), quantities))
        for request, _ in started:
            request.wait()
            request.wait()
        results[order] = [
            [q.data.transpose([order.index(d) for d in "jik"]).copy() for q in quantities] for _, quantities in started
        ]
    for order in ("kji", "jki"):
        for mine, like in zip(results[order], results["jik"]):
            assert all(np.array_equal(a, b) for a, b in zip(mine, like))


@pytest.mark.parametrize("edge", [2, 3])
def test_layouts_are_transparent(edge):
    """Halos at every point of a tile's rim, and across the parts, are those of one rank a tile."""
    n, cells = 2, 12

    def rims(layout):
        shared, out = {}, {}
        size = 6 * layout**2
        partitioner = CubedSpherePartitioner(TilePartitioner((layout, layout)))
        ranks = [CubedSphereCommunicator(LocalComm(r, size, shared), partitioner) for r in range(size)]
        m = cells // layout
        held = []
        for rank in range(size):
            tile = partitioner.tile_index(rank)
            cut = partitioner.tile.subtile_slice(rank, ["j", "i"], (cells, cells))
            whole = np.random.default_rng(tile).random((2, cells, cells))
            pair = []
            for component in range(2):
                data = np.zeros((m + 2 * n, m + 2 * n))
                data[n:-n, n:-n] = whole[component][cut]
                pair.append(Quantity(data, ["j", "i"], "", origin=(n, n), extent=(m, m)))
            held.append(pair)
        updaters = [r.start_vector_halo_update(*pair, n) for r, pair in zip(ranks, held)]
        for updater in updaters:
            updater.wait()
        for rank, pair in enumerate(held):
            tile = partitioner.tile_index(rank)
            j, i = (c.start for c in partitioner.tile.subtile_slice(rank, ["j", "i"], (cells, cells)))
            for a, b in np.ndindex(m + 2 * n, m + 2 * n):
                at = tile, j + a - n, i + b - n
                values = tuple(q.data[a, b] for q in pair)
                if max(a - n - m + 1, n - a, 0) and max(b - n - m + 1, n - b, 0) and values == (0.0, 0.0):
                    continue  # beyond a corner of the cube
                assert out.setdefault(at, values) == values
        return out

    one = rims(1)
    assert {at: v for at, v in rims(edge).items() if at in one} == one


def test_several_updaters_in_flight_over_a_world(run):
    """Started one after the other, waited for in another order, again and again, with arrays that come and go."""

    def body(world):
        tile = TileCommunicator.from_layout(world, (2, 2))

        def quantity(value):
            return Quantity(np.full((7, 7), value + world.rank), ["j", "i"], "", origin=(2, 2), extent=(3, 3))

        updaters = [tile.get_scalar_halo_updater([halo_spec(quantity(0), n)]) for n in (1, 2, 1)]
        kept = [quantity(0) for _ in updaters]
        for step in range(12):
            if step % 3 == 2:
                kept = [quantity(0) for _ in updaters]  # more sets than an updater keeps exchanges for
            for number, (updater, q) in enumerate(zip(updaters, kept)):
                q.view[:] = 1000 * step + 100 * number + world.rank
                updater.start([q])
            for number in (1, 2, 0):
                updaters[number].wait()
                expected = 1000 * step + 100 * number + (world.rank ^ 1)
                assert kept[number].data[3, 1] == kept[number].data[3, 5] == expected
        return True

    assert run(4, body) == [True] * 4


@pytest.mark.parametrize("ranks", ["threads", "processes"])
def test_a_rank_may_come_with_memory_of_its_own(ranks):
    """One rank starts with new arrays in every step, in another order of memory, and another one never does; one of
    two updaters is started first here, and last there. No rank waits for another one to start."""

    def body(world):
        tile = TileCommunicator.from_layout(world, (2, 2))

        def quantity(order="C"):
            return Quantity(np.zeros((7, 7, 2), order=order), ["j", "i", "k"], "", origin=(2, 2, 0), extent=(3, 3, 2))

        updaters = [tile.get_scalar_halo_updater([halo_spec(quantity(), n)]) for n in (1, 2)]
        kept = [quantity() for _ in updaters]
        for step in range(9):
            fresh = world.rank == 0 or (world.rank == 1 and step % 3 == 2)
            mine = [quantity("CF"[step % 2]) for _ in updaters] if fresh else kept
            order = (0, 1) if world.rank % 2 else (1, 0)
            for number in order:
                mine[number].view[:] = 100 * step + 10 * number + world.rank
                updaters[number].start([mine[number]])
                mine[number].data[:] = -1
            for number in order:
                updaters[number].wait()
                expected = 100 * step + 10 * number + (world.rank ^ 1)
                assert (mine[number].data[3, [1, 5], :] == expected).all()
        return True

    assert ts.launch(4, body, ranks=ranks, timeout=10) == [True] * 4


def test_an_updater_plans_once_for_any_number_of_fields(monkeypatch):
    """A program may update any number of sets of fields in turn, and shared points: only the first one plans."""
    made = []
    for name in ("make_halo_update", "make_tiled_halo"):
        make = getattr(ts._core, name)
        monkeypatch.setattr(ts._core, name, lambda *given, make=make: made.append(0) or make(*given))

    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 3))

        def quantity(dims=("j", "i")):
            shape = [5 + ("interface" in dim) for dim in dims]
            return Quantity(np.zeros(shape), dims, "", origin=(1, 1), extent=[n - 2 for n in shape])

        updater = tile.get_scalar_halo_updater([halo_spec(quantity(), 1)])
        sets = [quantity() for _ in range(11)]
        winds = [[quantity(("j_interface", "i")), quantity(("j", "i_interface"))] for _ in range(3)]
        tile.synchronize_vector_interfaces(*winds[0])
        tile.halo_update(sets[0], 1)
        updater.update([sets[0]])
        world.barrier()
        before = len(made)
        world.barrier()
        for step in range(33):
            mine = sets[step % len(sets)]
            mine.view[:] = 10 * step + world.rank
            updater.update([mine])
            tile.synchronize_vector_interfaces(*winds[step % 3])
            tile.halo_update(mine, 1)
            assert mine.data[2, 0] == 10 * step + (world.rank - 1) % 3
        world.barrier()
        return len(made) - before

    assert ts.launch(3, body) == [0] * 3 and made


def test_one_shot_updates_of_a_world_share_what_all_ranks_have():
    """Some ranks come with the same arrays again, others with new ones; then with an updater that is kept."""

    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 3))

        def quantity():
            return Quantity(np.zeros((5, 5)), ["j", "i"], "", origin=(1, 1), extent=(3, 3))

        kept = [quantity() for _ in range(3)]
        for step in range(20):
            mine = kept[step % 3] if (world.rank + step // 4) % 2 else quantity()
            mine.view[:] = 10 * step + world.rank
            if step % 5 == 4:
                updater = tile.get_scalar_halo_updater([halo_spec(mine, 1)])
                updater.update([mine])
            else:
                tile.halo_update(mine, 1)
            west, east = ((world.rank + step_i) % 3 for step_i in (-1, 1))
            assert (mine.data[2, 0], mine.data[2, 4]) == (10 * step + west, 10 * step + east)
        for n in range(12):  # more memory layouts than a communicator keeps
            for _ in range(2):
                wide = Quantity(np.full((5, 5 + n), world.rank), ["j", "i"], "", origin=(1, 1), extent=(3, 3 + n))
                tile.halo_update(wide, 1)
                assert wide.data[2, 0] == (world.rank - 1) % 3
        return True

    assert ts.launch(3, body, timeout=30) == [True] * 3


class ForeignQuantity:
    """An object with as much of NDSL's Quantity as the halo layer needs."""

    def __init__(self, data, dims, origin, extent):
        self.data, self.dims, self.origin, self.extent = data, dims, origin, extent


class ForeignRanks:
    """Ranks with four methods, and requests that can only wait."""

    def __init__(self, inner):
        self.Get_rank, self.Get_size = inner.Get_rank, inner.Get_size
        self.Isend, self.Irecv = inner.Isend, inner.Irecv


def test_foreign_quantities_over_foreign_ranks():
    shared = {}
    partitioner = CubedSpherePartitioner(TilePartitioner((1, 1)))
    ranks = [CubedSphereCommunicator(ForeignRanks(LocalComm(r, 6, shared)), partitioner) for r in range(6)]
    foreign = [ForeignQuantity(np.full((6, 6), float(r)), ("j", "i"), [1, 1], [4, 4]) for r in range(6)]
    ours = [Quantity(np.full((6, 6), float(r)), ("j", "i"), "", origin=(1, 1), extent=(4, 4)) for r in range(6)]
    for fields in (foreign, ours):
        updaters = [communicator.start_halo_update(field, 1) for communicator, field in zip(ranks, fields)]
        for updater in updaters:
            updater.wait()
    assert all(np.array_equal(a.data, b.data) for a, b in zip(foreign, ours))
    assert ours[0].data[2, 0] == 4.0

    def body(world):
        mine = ForeignQuantity(np.full((6, 6), float(world.rank)), ("j", "i"), [1, 1], [4, 4])
        CubedSphereCommunicator(world, partitioner).halo_update(mine, 1)
        return mine.data

    assert all(np.array_equal(a, b.data) for a, b in zip(ts.launch(6, body), ours))


def halo_spec(q, n):
    return QuantityHaloSpec(n, q.data.strides, q.data.itemsize, q.shape, q.origin, q.extent, q.dims, np, q.dtype)


@pytest.mark.parametrize("kind, ratio", [("local", 1.0), ("threads", 1.0), ("threads", 0.5), ("processes", 2.0)])
def test_scatter_then_gather_is_the_identity(kind, ratio):
    """Staggered and centred quantities in any order, with halos, in parts of equal and of unequal sizes."""
    layout, cells = (3, 4), (12, 16 if kind == "local" else 18)  # 18 columns are 4, 5, 5 and 4, even with a ratio of 1
    tile = TilePartitioner(layout, ratio)

    def whole(dims, dtype):
        lengths = {"j": cells[0], "i": cells[1], "j_interface": cells[0] + 1, "i_interface": cells[1] + 1, "k": 2}
        data = np.arange(np.prod([lengths[d] + 2 for d in dims])).reshape([lengths[d] + 2 for d in dims]).astype(dtype)
        return Quantity(data, dims, "K", origin=[1] * len(dims), extent=[lengths[d] for d in dims])

    cases = [(("j", "i"), "f8"), (("i_interface", "k", "j"), "f4"), (("j_interface", "i_interface"), "i2")]

    def body(ranks):
        out = []
        for dims, dtype in cases:
            everything = whole(dims, dtype) if ranks.rank == 0 else None
            part = ranks.scatter(everything)
            cut = tile.subtile_slice(ranks.rank, dims, whole(dims, dtype).extent, overlap=True)
            assert np.array_equal(part.field, whole(dims, dtype).field[cut]) and part.units == "K"
            out.append(part)
        return out

    if kind == "local":
        shared = {}
        ranks = [TileCommunicator(LocalComm(r, 12, shared), tile) for r in range(12)]
        parts = [body(one) for one in ranks]
        for number, (dims, dtype) in enumerate(cases):
            target = whole(dims, dtype)
            target.view[:] = 0
            got = None
            for one in reversed(ranks):
                got = one.gather(parts[one.rank][number], target if one.rank == 0 else None)
            assert got is target and np.array_equal(target.data, whole(dims, dtype).data)
        return

    def in_world(world):
        ranks = TileCommunicator(world, tile)
        for number, part in enumerate(body(ranks)):
            dims, dtype = cases[number]
            target = whole(dims, dtype)
            target.view[:] = 0
            got = ranks.gather(part, target if world.rank == 0 else None)
            new = ranks.gather(part)
            assert (got is None) == (new is None) == (world.rank > 0)
            if got is not None and new is not None:
                assert np.array_equal(got.data, whole(dims, dtype).data)
                assert np.array_equal(new.data, whole(dims, dtype).field) and new.dims == dims
        return True

    assert ts.launch(12, in_world, ranks=kind) == [True] * 12


def test_a_cube_over_a_world_scatters_gathers_and_has_tiles():
    def body(world):
        cube = CubedSphereCommunicator.from_layout(world, (1, 2) if world.size == 12 else (1, 1))
        data = np.arange(6.0 * 16).reshape(6, 4, 4)
        mine = cube.scatter_state({"t": Quantity(data, ["tile", "j", "i"], "K"), "time": 5} if cube.rank == 0 else None)
        assert mine["time"] == 5
        assert np.array_equal(mine["t"].data, data[cube.partitioner.tile_index(cube.rank)][:, mine_columns(cube)])
        back = cube.gather_state(mine, transfer_type=np.float32)
        assert (back is None) == (cube.rank > 0)
        if back is not None:
            assert back["t"].dtype == np.float32 and back["t"].dims == ("tile", "j", "i")
            assert np.array_equal(back["t"].data, data)
        assert cube.tile is cube.tile and cube.tile.size == world.size // 6
        return cube.tile.rank

    def mine_columns(cube):
        width = 4 // cube.partitioner.layout[1]
        i = cube.rank % cube.partitioner.layout[1]
        return slice(i * width, (i + 1) * width)

    assert ts.launch(6, body) == [0] * 6
    assert ts.launch(12, body) == [0, 1] * 6


def test_reductions_over_a_world():
    from tranship.ndsl.comm import ReductionOperator

    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 3))
        q = Quantity(np.full((4, 4), 1.0 + world.rank), ["j", "i"], "", origin=(1, 1), extent=(2, 2))
        total = tile.all_reduce(q, ReductionOperator.SUM)  # NDSL's, of whole arrays
        assert total.metadata == q.metadata and total is not q
        other = Quantity(np.zeros((4, 4)), ["k", "z"], "K")
        assert tile.all_reduce(q, ReductionOperator.PROD, other) is other and other.metadata == q.metadata
        for wrong in (np.zeros((4, 5)), np.zeros((4, 4), "f4")):
            with pytest.raises(TypeError, match="all_reduce: an output of"):
                tile.all_reduce(q, ReductionOperator.SUM, Quantity(wrong, ["j", "i"], ""))
        tile.all_reduce_per_element_in_place(q, ReductionOperator.MAX)
        return total.data[0, 0], total.field.sum(), other.data[3, 3], q.data[0, 0]

    assert ts.launch(3, body) == [(6.0, 24.0, 6.0, 3.0)] * 3


def test_timers_have_ndsls_keys():
    keys = {"halo_exchange_global", "Irecv", "pack", "Isend", "wait", "unpack"}
    timer = Timer()
    shared = {}
    ranks = TileCommunicator(LocalComm(0, 1, shared), TilePartitioner((1, 1)), timer=timer)
    q = Quantity(np.zeros((4, 4)), ["j", "i"], "", origin=(1, 1), extent=(2, 2))
    ranks.halo_update(q, 1)
    assert set(timer.times) == keys and all(seconds > 0 for seconds in timer.times.values())

    def body(world):
        timer = Timer()
        TileCommunicator(world, TilePartitioner((1, 1)), timer=timer).halo_update(q, 1)
        return set(timer.times)

    assert ts.launch(1, body) == [keys]
