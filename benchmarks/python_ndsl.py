"""NDSL's halos: packing and unpacking beside NumPy as NDSL uses it, and whole updates of a cube beside Open MPI.

usage: python python_ndsl.py --command TRANSHIP [--rounds 11] [--json FILE] [--no-peers] [--quick]

A quantity has 192 by 192 by 79 doubles and 3 halo points; "k fastest" and "i fastest" say how its dimensions (i, j, k)
lie in memory. All eight boundaries are packed, each quantity after the other, and payload counts once. NumPy slices,
rotates, flattens and assigns. The limit is NumPy's copy of as many contiguous bytes; the bound is that copy's rate of
cache lines, for the lines that the blocks and the messages touch: of i fastest, three elements of a line of eight are
sent. Where data is cold, the caches are overwritten before each act. Contestants take turns; figures are medians.

The cube has six ranks, all of them processes. Ours are updates of tranship.ndsl, of which a model may write all cells
between start() and wait(), and exchanges on a tiling in memory that World.zeros gave, which are copied once, from array
to array. The others pack, send and unpack by mpi4py over Open MPI (mpi_yield_when_idle), once with NumPy and once with
our packing. The rows of sets in turn are of fields so small that the call is what takes time.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import timeit

import numpy as np
import python_peers as programs

N, K, HALO = 192, 79, 3
DIMS = ("i", "j", "k")
BOUNDARIES = [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)]
OURS = "updater", "in place"
OPEN_MPI, OUR_PACKING = "Open MPI, NumPy", "Open MPI, our packing"


def quantity(fastest):
    shape = (N + 2 * HALO, N + 2 * HALO, K + 1)
    memory = np.random.default_rng(1).random(shape)
    return memory if fastest == "k" else np.asfortranarray(memory)


def spec_of(array):
    from tranship._core import HaloSpec

    return HaloSpec("f8", array.shape, array.strides, DIMS, (HALO, HALO, 0), (N, N, K), HALO)


def numpy_pack(buffer, quantities, slices, rotation):
    at = 0
    for array, (sent, _) in zip(quantities, slices):
        block = array[sent]
        flat = (np.rot90(block, -rotation, axes=(1, 0)) if rotation else block).flatten()
        buffer[at : at + flat.size] = flat
        at += flat.size


def numpy_unpack(buffer, quantities, slices):
    at = 0
    for array, (_, received) in zip(quantities, slices):
        block = array[received]
        block[:] = buffer[at : at + block.size].reshape(block.shape)
        at += block.size


def lines_touched(array, slices):
    """How many cache lines hold elements of a block."""
    block = array[slices]
    offsets = sum(np.ix_(*[np.arange(n) * s for n, s in zip(block.shape, block.strides)]))
    return np.unique((block.__array_interface__["data"][0] + offsets) // 64).size


def medians(acts, data, rounds, caches):
    seconds = [[] for _ in acts]
    for number in range(rounds + 1):
        for place in range(len(acts)):
            which = (place + number) % len(acts)
            if data == "cold":
                caches += 1
            begin = time.perf_counter()
            acts[which]()
            if number > 0:
                seconds[which].append(time.perf_counter() - begin)
    return [statistics.median(one) for one in seconds]


def packing(fastest, count, rotation, rounds, caches):
    from tranship._core import HaloTransformer

    quantities = [quantity(fastest) for _ in range(count)]
    specs = [spec_of(array) for array in quantities]
    slices = [[spec.slices(way) for spec in specs] for way in BOUNDARIES]
    transformers = [HaloTransformer.at_boundaries(specs, [], [(way, rotation)]) for way in BOUNDARIES]
    ours = [np.empty(t.nbytes // 8) for t in transformers]
    theirs = [np.empty_like(buffer) for buffer in ours]
    bound = [t.bind(quantities, (), buffer, buffer) for t, buffer in zip(transformers, ours)]
    total = sum(buffer.nbytes for buffer in ours)
    copied = 2 * total // 64
    lines = [
        total // 64 + sum(lines_touched(array, cut[side]) for cuts in slices for array, cut in zip(quantities, cuts))
        for side in (0, 1)
    ]
    source, target = np.ones(total // 8), np.empty(total // 8)

    def pack():
        for one in bound:
            one.pack()

    def unpack():
        for one in bound:
            one.unpack()

    def pack_with_numpy():
        for buffer, cut in zip(theirs, slices):
            numpy_pack(buffer, quantities, cut, rotation)

    def unpack_with_numpy():
        for buffer, cut in zip(theirs, slices):
            numpy_unpack(buffer, quantities, cut)

    pack()
    pack_with_numpy()
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs))
    goals = [(1.5, 0.7), (1.0, 1.0)] if fastest == "k" else [(3.0, None), (1.0, None)]
    for data in ("warm", "cold"):
        names = (("pack", pack, pack_with_numpy), ("unpack", unpack, unpack_with_numpy))
        acts = [act for _, mine, other in names for act in (mine, other)] + [lambda: np.copyto(target, source)]
        rates = [total / took * 1e-9 for took in medians(acts, data, rounds, caches)]
        for place, ((name, *_), (numpy_goal, copy_goal)) in enumerate(zip(names, goals)):
            mine, other = rates[2 * place : 2 * place + 2]
            yield {
                "case": f"{name}, {count} quantit{'y' if count == 1 else 'ies'}, {fastest} fastest, rotation {rotation}",
                "data": data, "unit": "GB/s", "better": "higher", "ours": mine, "limit": rates[-1],
                "bound": rates[-1] * copied / lines[place],
                "peers": {"NumPy": other}, "goals": {"NumPy": numpy_goal, "limit": copy_goal},
            }  # fmt: skip


def per_call_us(call, number, repeats=9):
    return statistics.median(timeit.repeat(call, number=number, repeat=repeats)) / number * 1e6


def calls():
    """Calls on quantities that are small enough for the call itself to take most of the time."""
    from tranship._core import HaloSpec, HaloTransformer

    small = np.zeros((12, 12, 4))
    spec = HaloSpec("f8", small.shape, small.strides, DIMS, (3, 3, 0), (6, 6, 4), 1)
    for count in (1, 7):
        transformer = HaloTransformer.at_boundaries([spec] * count, [], [((0, 1), 0)])
        buffer, arrays = np.zeros(transformer.nbytes // 8), [small] * count
        bound = transformer.bind(arrays, (), buffer, buffer)
        text = f"{count} small quantit{'y' if count == 1 else 'ies'}"
        goal = 2.0 if count == 1 else None
        yield {"case": f"pack(buffer, …) of {text}", "unit": "µs", "better": "lower", "target": goal,
               "ours": per_call_us(lambda: transformer.pack(buffer, arrays), 10_000)}  # fmt: skip
        yield {"case": f"pack() of {text}, bound before", "unit": "µs", "better": "lower", "target": 2.0,
               "ours": per_call_us(bound.pack, 10_000)}  # fmt: skip

    def build():
        for way in BOUNDARIES:
            HaloTransformer.at_boundaries([spec] * 7, [], [(way, 1)])

    yield {"case": "transformers of 7 quantities and 8 neighbours", "unit": "µs", "better": "lower", "target": 100.0,
           "ours": per_call_us(build, 100)}  # fmt: skip


def sets_in_turn():
    """An updater of small fields that is started with a growing number of sets in turn, on ranks that are threads."""
    import tranship as ts
    from tranship.ndsl import CubedSphereCommunicator, Quantity

    def main(world, count):
        ranks = CubedSphereCommunicator.from_layout(world, (1, 1))
        sets = [
            Quantity(np.zeros((10, 10, 4)), ["j", "i", "k"], "", origin=(2, 2, 0), extent=(6, 6, 4), number_of_halo_points=2)
            for _ in range(count)
        ]
        updater = ranks.get_scalar_halo_updater([sets[0].halo_spec(2)])
        times = []
        for repeat in range(10):
            world.barrier()
            begin = time.perf_counter()
            for step in range(120):
                updater.update([sets[step % count]])
            if repeat > 0:
                times.append(time.perf_counter() - begin)
        return statistics.median(times) / 120 * 1e6

    for count in (1, 4, 5, 12):
        took = max(ts.launch(6, lambda world, count=count: main(world, count)))
        yield {"case": f"an update of a small cube, {count} sets of fields in turn", "unit": "µs", "better": "lower",
               "ours": took}  # fmt: skip


# The cube: rank t holds tile t.


def cube_quantity(rank, number, zeros=np.zeros):
    array = zeros((N + 2 * HALO, N + 2 * HALO, K + 1))
    i, j, k = np.ogrid[:N, :N, :K]
    array[HALO:-HALO, HALO:-HALO, :K] = ((rank * 256.0 + i) * 256 + j) * 128 + k + number
    return array


def count_wrong(rank, number, array):
    """Ghosts of the lowest level that are not what their owners have."""
    import tranship as ts

    cube, wrong = ts.cubed_sphere(N), 0
    for i in range(-HALO, N + HALO):
        for j in range(-HALO, N + HALO):
            if 0 <= i < N and 0 <= j < N:
                continue
            found = cube.locate(rank, (j, i))
            expected = 0.0
            if found is not None:
                tile, (y, x) = found
                expected = ((tile * 256.0 + x) * 256 + y) * 128 + number
            wrong += array[i + HALO, j + HALO, 0] != expected
    return wrong


def as_updaters(world):
    from tranship.ndsl import CubedSphereCommunicator, Quantity

    ranks, works = CubedSphereCommunicator.from_layout(world, (1, 1)), {}
    for count in (1, 7):
        arrays = [cube_quantity(world.rank, number) for number in range(count)]
        quantities = [
            Quantity(array, DIMS, "", origin=(HALO, HALO, 0), extent=(N, N, K), number_of_halo_points=HALO)
            for array in arrays
        ]
        updater = ranks.get_scalar_halo_updater([q.halo_spec(HALO) for q in quantities])

        def update(updater=updater, quantities=quantities):
            updater.update(quantities)

        update()
        assert not any(count_wrong(world.rank, number, array) for number, array in enumerate(arrays))
        works[f"cube{count}"] = (arrays[0], update)
    return world.rank, world.barrier, works


def as_exchanges(world):
    import tranship as ts

    works = {}
    for count in (1, 7):
        arrays = [cube_quantity(world.rank, number, world.zeros) for number in range(count)]
        fields = []
        for array in arrays:
            tiles = []
            for tile in range(6):
                d = ts.distribution((N, N, K), ts.grid(1, 1, 1, ranks=[tile]), overlap=[HALO, HALO, 0], edge="open")
                tiles.append(ts.wrap(world, d, array[:, :, :K]) if tile == world.rank else ts.array(world, d, "f8"))
            fields.append(tiles)
        halo = ts.TiledHaloExchange(ts.cubed_sphere(N), *fields, tile_dims=(1, 0))
        halo()
        assert not any(count_wrong(world.rank, number, array) for number, array in enumerate(arrays))
        works[f"cube{count}"] = (arrays[0], halo)
    return world.rank, world.barrier, works


def neighbours(tile):
    """For each boundary (j, i), the tile beyond it and the clockwise rotations."""
    if tile % 2 == 0:
        steps = {(0, -1): (-2, 1), (0, 1): (1, 0), (1, 0): (2, 3), (-1, 0): (-1, 0)}
    else:
        steps = {(0, -1): (-1, 0), (0, 1): (2, 1), (1, 0): (1, 0), (-1, 0): (-2, 3)}
    return [(way, (tile + step) % 6, rotation) for way, (step, rotation) in steps.items()]


def as_mpi(comm, is_ours):
    from tranship._core import HaloTransformer

    works = {}
    for count in (1, 7):
        arrays = [cube_quantity(comm.rank, number) for number in range(count)]
        specs = [spec_of(array) for array in arrays]
        sides = []
        for way, peer, rotation in neighbours(comm.rank):
            transformer = HaloTransformer.at_boundaries(specs, [], [(way, rotation)])
            sent, received = np.empty(transformer.nbytes // 8), np.empty(transformer.nbytes // 8)
            bound = transformer.bind(arrays, (), sent, received)
            sides.append((peer, rotation, [spec.slices(way) for spec in specs], sent, received, bound))

        def update(sides=sides, arrays=arrays):
            receives = [comm.Irecv(received, peer) for peer, _, _, _, received, _ in sides]
            for _, rotation, slices, sent, _, bound in sides:
                bound.pack() if is_ours else numpy_pack(sent, arrays, slices, rotation)
            sends = [comm.Isend(sent, peer) for peer, _, _, sent, _, _ in sides]
            for request in sends:
                request.wait()
            for request in receives:
                request.wait()
            for _, _, slices, _, received, bound in sides:
                bound.unpack() if is_ours else numpy_unpack(received, arrays, slices)

        update()
        assert not any(count_wrong(comm.rank, number, array) for number, array in enumerate(arrays))
        works[f"cube{count}"] = (arrays[0], update)
    return comm.rank, comm.Barrier, works


def be(contestant):
    if contestant in OURS:
        import tranship as ts

        make = as_updaters if contestant == OURS[0] else as_exchanges
        ts.launch(lambda world: programs.serve(*make(world)))
    else:
        from mpi4py import MPI

        programs.serve(*as_mpi(MPI.COMM_WORLD, contestant == "ours"))


def cubes(arguments):
    me = [sys.executable, os.path.abspath(__file__), "--be"]
    mpirun = ["mpirun", "--oversubscribe", "-n", "6", *me]
    entered = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for name, words in (
                *((name, [arguments.command, "launch", "-n", "6", *me, name]) for name in OURS),
                (OPEN_MPI, [*mpirun, "numpy"]),
                (OUR_PACKING, [*mpirun, "ours"]),
            ):
                entered.append(programs.Contestant(name, words, 6, [], folder))
            for work, count in (("cube1", 1), ("cube7", 7)):
                for data in ("warm", "cold"):
                    seconds = {c.name: [] for c in entered}
                    for number in range(arguments.rounds + 2):
                        for c in entered:
                            took = c.act(work, data)
                            if number >= 2:
                                seconds[c.name].append(took)
                    ms = {name: statistics.median(all_of) * 1e3 for name, all_of in seconds.items()}
                    quantities = f"{count} quantit{'y' if count == 1 else 'ies'}"
                    ours = [ms.pop(name) for name in OURS]
                    for way, goal, took in zip(("by an updater", "in place"), (2.0, 3.0), ours):
                        yield {
                            "case": f"update of a cube, {quantities}, {way}, 6 ranks", "data": data, "unit": "ms",
                            "better": "lower", "ours": took, "peers": ms, "goals": {OPEN_MPI: goal},
                        }  # fmt: skip
        finally:
            for c in entered:
                c.end()


def times_better(row, other):
    return row["ours"] / other if row["better"] == "higher" else other / row["ours"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--be")
    parser.add_argument("--command")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.be:
        return be(arguments.be)
    if arguments.rounds < 9:
        parser.error(f"{arguments.rounds} rounds: medians need 9 or more")
    caches = np.ones(64 << 20, np.uint8)
    rows = list(calls()) + list(sets_in_turn())
    for fastest in "ki":
        for count in (1,) if arguments.quick else (1, 7):
            for rotation in (0, 1):
                rows.extend(packing(fastest, count, rotation, arguments.rounds, caches))
    if not arguments.no_peers:
        rows.extend(cubes(arguments))
    print("| case | data | ours | unit | others: times as good | goals met |\n|---|---|---|---|---|---|")
    for row in rows:
        others = {**({name: row[name] for name in ("limit", "bound") if name in row}), **row.get("peers", {})}
        ratios = {name: times_better(row, other) for name, other in others.items()}
        goals = {name: goal for name, goal in row.get("goals", {}).items() if goal is not None}
        met = [ratios[name] >= goal for name, goal in goals.items()]
        if row.get("target"):
            met.append(row["ours"] <= row["target"])
        row["met"] = all(met) if met else None
        text = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        said = "" if row["met"] is None else "yes" if row["met"] else "no"
        print(f"| {row['case']} | {row.get('data', '')} | {row['ours']:.3g} | {row['unit']} | {text} | {said} |")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"rows": rows}, file, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
