"""Exchanges from Python beside the same ones in C++, and beside mpi4py and mpi4py-fft, in one run.

usage: python python_peers.py --command TRANSHIP --twin TWIN [--ranks 4] [--rounds 11] [--json FILE]

Contestants are programs of as many ranks, each in a process group of its own. They take turns: one act of one of them
after the other, round by round, and sleep on a pipe while others are timed. Results are checked before that. The source
is rewritten before each act; where data is cold, the caches are then overwritten, too.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

TURN_EXTENT, HALO_EXTENT, WIDTH = 4096, 128, 3
WORK = {"turn": f"{TURN_EXTENT}² doubles, rows → columns", "halo": f"periodic halo of {HALO_EXTENT}³ doubles, width {WIDTH}"}


def value(*cells):
    out = 0.0
    for one in cells:
        out = out * 4096 + one
    return out


# Contestants: each gives its rank and size, a barrier, and for each work the array that is rewritten and the act.


def as_tranship(world):
    import tranship as ts

    n, p = TURN_EXTENT, world.size
    a = ts.array(world, ts.distribution((n, n), (p, 1)))
    b = ts.array(world, ts.distribution((n, n), (1, p)))
    rows = p // 2 if p % 2 == 0 else p
    cells = ts.distribution((HALO_EXTENT,) * 3, (rows, p // rows, 1), overlap=WIDTH, edge="toroidal")
    u = ts.array(world, cells)
    turn, halo = ts.Redistribution(a, b), ts.halo(u)
    a.fill(value)
    turn()
    u.fill(value)
    halo()
    assert b.count_wrong(value) == u.count_wrong(value) == 0
    return world.rank, world.barrier, {"turn": (a.local, turn), "halo": (u.local, halo)}


def parts(extent, count):
    """The first cell and the number of cells of each part; the first parts have one cell more."""
    sizes = [extent // count + (i < extent % count) for i in range(count)]
    return [(sum(sizes[:i]), sizes[i]) for i in range(count)]


def as_mpi4py(comm):
    from mpi4py import MPI

    n, p, r = TURN_EXTENT, comm.size, comm.rank
    cut = parts(n, p)
    (first, mine) = cut[r]
    a, b = np.empty((mine, n)), np.zeros((n, mine))

    def blocks(shape, boxes):
        types = [MPI.DOUBLE.Create_subarray(shape, extents, starts).Commit() for starts, extents in boxes]
        return [1] * p, [0] * p, types

    sends = [a, *blocks(a.shape, [((0, c), (mine, m)) for c, m in cut])]
    receives = [b, *blocks(b.shape, [((c, 0), (m, mine)) for c, m in cut])]

    def turn():
        comm.Alltoallw(sends, receives)

    a[...] = value(*np.ogrid[first : first + mine, :n])
    turn()
    assert np.array_equal(b, value(*np.ogrid[:n, first : first + mine]))

    rows = p // 2 if p % 2 == 0 else p
    cart = comm.Create_cart((rows, p // rows, 1), periods=(True,) * 3)
    assert cart.rank == r
    cuts = [parts(HALO_EXTENT, count)[at] for count, at in zip((rows, p // rows, 1), cart.coords)]
    u = np.zeros([size + 2 * WIDTH for _, size in cuts])
    inner = tuple(slice(WIDTH, -WIDTH) for _ in range(3))

    def side(dim, begin, end):
        at = [slice(None)] * 3
        at[dim] = slice(begin, end)
        return tuple(at)

    steps = []
    for dim in range(3):
        low, high = cart.Shift(dim, 1)
        for to, frm, taken, given in (
            (low, high, side(dim, WIDTH, 2 * WIDTH), side(dim, -WIDTH, None)),
            (high, low, side(dim, -2 * WIDTH, -WIDTH), side(dim, 0, WIDTH)),
        ):
            steps.append((to, frm, u[taken], u[given], np.empty(u[taken].shape), np.empty(u[given].shape)))

    def halo():
        # One dimension after the other, with the ghosts of the earlier ones: corners need no messages of their own.
        for to, frm, taken, given, packed, arrived in steps:
            if to == r:
                given[...] = taken
                continue
            packed[...] = taken
            cart.Sendrecv(packed, to, recvbuf=arrived, source=frm)
            given[...] = arrived

    u[inner] = value(*np.ogrid[tuple(slice(f, f + m) for f, m in cuts)])
    halo()
    stored = [(np.arange(f - WIDTH, f + m + WIDTH) % HALO_EXTENT) for f, m in cuts]
    assert np.array_equal(u, value(*np.ix_(*stored)))
    return r, comm.Barrier, {"turn": (a, turn), "halo": (u, halo)}


def as_mpi4py_fft(comm):
    from mpi4py_fft.pencil import Pencil, Subcomm

    rows = Pencil(Subcomm(comm, [0, 1]), (TURN_EXTENT, TURN_EXTENT), axis=1)
    columns = rows.pencil(0)
    transfer = rows.transfer(columns, "d")
    a, b = np.empty(rows.subshape), np.zeros(columns.subshape)

    def cells(pencil):
        return value(*np.ogrid[tuple(slice(f, f + m) for f, m in zip(pencil.substart, pencil.subshape))])

    a[...] = cells(rows)
    transfer.forward(a, b)
    assert np.array_equal(b, cells(columns))
    return comm.rank, comm.Barrier, {"turn": (a, lambda: transfer.forward(a, b))}


def serve(rank, barrier, work):
    """Obeys the commands of this rank's pipe; rank 0 prints the times. Waiting on a pipe takes no time on a core."""
    caches = np.ones(64 << 20, np.uint8)
    with open(pathlib.Path(os.environ["PIPES"]) / str(rank)) as commands:
        for command in commands:
            name, *data = command.split()
            if name == "end":
                return
            source, act = work[name]
            source += 1
            if data == ["cold"]:
                caches += 1
            barrier()
            begin = time.perf_counter()
            act()
            barrier()
            if rank == 0:
                print(f"{time.perf_counter() - begin:.9f}", flush=True)


def be(contestant):
    if contestant == "tranship":
        import tranship as ts

        ts.launch(lambda world: serve(*as_tranship(world)))
    else:
        from mpi4py import MPI

        serve(*{"mpi4py": as_mpi4py, "mpi4py-fft": as_mpi4py_fft}[contestant](MPI.COMM_WORLD))


# The driver, which sends commands to the contestants.


class Contestant:
    def __init__(self, name, words, ranks, works, folder):
        self.name, self.works = name, works
        pipes = pathlib.Path(folder) / name
        pipes.mkdir()
        for rank in range(ranks):
            os.mkfifo(pipes / str(rank))
        environment = {
            **os.environ, "PIPES": str(pipes), "TURN_EXTENT": str(TURN_EXTENT), "HALO_EXTENT": str(HALO_EXTENT),
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        self.errors = open(pipes / "errors", "w+")
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
        self.commands = []
        try:
            for rank in range(ranks):
                self.commands.append(self._open(pipes / str(rank)))
        except BaseException:
            self.end()
            raise

    def _open(self, pipe):
        """Waits until the rank reads, for as long as its program runs and a minute at most."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "w")
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.errors.seek(0)
                    raise RuntimeError(f"{self.name} has not started: {self.errors.read()[-2000:]}") from None
                time.sleep(0.01)

    def act(self, work, data):
        for pipe in self.commands:
            print(work, data, file=pipe, flush=True)
        said = self.process.stdout.readline()
        if not said:
            self.errors.seek(0)
            raise RuntimeError(f"{self.name} has ended: {self.errors.read()[-2000:]}")
        return float(said)

    def end(self):
        with contextlib.suppress(OSError):
            for pipe in self.commands:
                print("end", file=pipe, flush=True)
        try:
            self.process.wait(10 if self.commands else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def contestants(arguments, folder):
    me = [sys.executable, os.path.abspath(__file__), "--be"]
    ours = [arguments.command, "launch", "-n", str(arguments.ranks)]
    mpirun = ["mpirun", "--oversubscribe", "-n", str(arguments.ranks)]
    entered, absent = [], {}
    for name, words, works, package in (
        ("tranship", [*ours, *me, "tranship"], ["turn", "halo"], "tranship"),
        ("C++", [*ours, arguments.twin], ["turn", "halo"], None),
        ("mpi4py", [*mpirun, *me, "mpi4py"], ["turn", "halo"], "mpi4py"),
        ("mpi4py-fft", [*mpirun, *me, "mpi4py-fft"], ["turn"], "mpi4py_fft"),
    ):
        if package and importlib.util.find_spec(package) is None:
            absent[name] = "not installed"
        elif words[0] == "mpirun" and shutil.which("mpirun") is None:
            absent[name] = "no mpirun"
        else:
            try:
                entered.append(Contestant(name, words, arguments.ranks, works, folder))
            except RuntimeError as error:
                absent[name] = str(error)
    return entered, absent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--be")
    parser.add_argument("--command")
    parser.add_argument("--twin")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.be:
        return be(arguments.be)
    if arguments.rounds < 9:
        parser.error(f"{arguments.rounds} rounds: medians need 9 or more")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        entered, absent = contestants(arguments, folder)
        try:
            if not entered or entered[0].name != "tranship":
                sys.exit(f"python_peers: {absent['tranship']}")
            for work, title in WORK.items():
                for data in ("warm", "cold"):
                    taking_part = [c for c in entered if work in c.works]
                    seconds = {c.name: [] for c in taking_part}
                    for number in range(arguments.rounds + 2):
                        for c in taking_part:
                            took = c.act(work, data)
                            if number >= 2:
                                seconds[c.name].append(took)
                    ours, *peers = ((name, statistics.median(all_of)) for name, all_of in seconds.items())
                    rows.append({"case": title, "data": data, "ranks": arguments.ranks, "unit": "ms", "better": "lower",
                                 "ours": ours[1] * 1e3, "peers": {name: median * 1e3 for name, median in peers}})  # fmt: skip
        finally:
            for c in entered:
                c.end()
    names = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    print(f"| {arguments.ranks} processes | data | ms | " + " | ".join(f"{name}, times as long" for name in names) + " |")
    print("|---" * (3 + len(names)) + "|")
    for row in rows:
        ratios = [f"{row['peers'][name] / row['ours']:.2f}" if name in row["peers"] else "–" for name in names]
        print(f"| {row['case']} | {row['data']} | {row['ours']:.3g} | {' | '.join(ratios)} |")
    for name, why in absent.items():
        print(f"\n{name} is absent: {why}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"rows": rows, "absent": absent}, file, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
