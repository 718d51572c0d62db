"""`tranship reshard` beside a loop over stripes in NumPy, and beside rechunker, with the same memory.

usage: python reshard_peers.py --command TRANSHIP [--rounds 9] [--json FILE] [--quick] [--filter TEXT] [--dir DIR]

The loop is what one would write by hand for the pair of layouts: it reads the source in stripes of that memory, once,
or once for every share of the target that the memory holds where the orders differ, and writes each part as it goes.
rechunker has as much memory, moves the same array between stores of zarr without compression, with chunks
as large as parts where it admits those, and runs on dask's threads; where it has no answer within the limit, that is what the table says. All three end
with a sync of the file system; sources lie in the page cache; the start of our process is counted, that of Python is
not. Contestants take turns; figures are medians, of rechunker of a third of the rounds.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

MIB = 1 << 20
RECHUNKER_SECONDS_MAX = 120


def bounds(extent, parts):
    """Where blocks begin: the first ones are longer by one."""
    base, more = divmod(extent, parts)
    return [i * base + min(i, more) for i in range(parts + 1)]


def boxes(shape, grid):
    cuts = [bounds(n, parts) for n, parts in zip(shape, grid)]
    for at in itertools.product(*map(range, grid)):
        yield tuple(slice(c[i], c[i + 1]) for c, i in zip(cuts, at))


def extents(box):
    return tuple(s.stop - s.start for s in box)


def layout(dtype, shape, grid, order=""):
    name = {"float64": "f64", "float32": "f32"}[str(dtype)]
    kinds = ", ".join("block" if parts > 1 else "whole" for parts in grid)
    return f"{name}[{','.join(map(str, shape))}] @ {'x'.join(map(str, grid))} : {kinds}{order}"


class Parts:
    """A directory of .npy files to be written piece by piece, in the order of their elements."""

    def __init__(self, folder, dtype, shape, grid, fortran=False):
        self.boxes = list(boxes(shape, grid))
        self.folder = Path(folder)
        self.dtype = dtype
        shutil.rmtree(folder, ignore_errors=True)
        self.folder.mkdir()
        few = len(self.boxes) <= 512
        self.open = {}
        for i, box in enumerate(self.boxes):
            file = open(self.path(i), "wb")
            header = dict(descr=np.dtype(dtype).str, fortran_order=fortran, shape=extents(box))
            np.lib.format.write_array_header_1_0(file, header)
            if few:
                self.open[i] = file
            else:
                file.close()

    def path(self, i):
        return self.folder / f"part-{i:05}.npy"

    def append(self, i, piece):
        if i in self.open:
            self.open[i].write(np.ascontiguousarray(piece).data)
        else:
            with open(self.path(i), "ab") as file:
                file.write(np.ascontiguousarray(piece).data)

    def end(self):
        for file in self.open.values():
            file.close()
        os.sync()


class Case:
    def __init__(self, name, dtype, shape, source, target, transposed=False):
        self.name, self.dtype, self.shape = name, np.dtype(dtype), shape
        self.source, self.target, self.transposed = source, target, transposed
        self.bytes = int(np.prod(shape)) * self.dtype.itemsize

    def make_source(self, command, folder):
        rng = np.random.default_rng(1)
        whole = folder / "whole.npy"
        array = np.lib.format.open_memmap(whole, "w+", self.dtype, self.shape)
        for i in range(self.shape[0]):
            array[i] = rng.random(self.shape[1:], dtype=self.dtype)
        del array
        self.path = folder / "source"
        shutil.rmtree(self.path, ignore_errors=True)
        to = layout(self.dtype, self.shape, self.source)
        subprocess.run([command, "reshard", whole, self.path, "--to", to], check=True, stdout=subprocess.DEVNULL)
        self.whole = whole

    def ours(self, command, target, memory):
        to = layout(self.dtype, self.shape, self.target, " | order(1,0)" if self.transposed else "")
        subprocess.run(
            [command, "reshard", self.path, target, "--to", to, "--memory", str(memory)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stripe(self, rows):
        """Some rows of the whole array, out of the parts of the source."""
        out = np.empty((rows.stop - rows.start, *self.shape[1:]), self.dtype)
        for path, box in self.source_parts:
            lower, upper = max(rows.start, box[0].start), min(rows.stop, box[0].stop)
            if lower >= upper:
                continue
            row = int(np.prod(extents(box)[1:]))
            part = np.fromfile(path, self.dtype, (upper - lower) * row, offset=128 + (lower - box[0].start) * row * self.dtype.itemsize)
            out[(slice(lower - rows.start, upper - rows.start), *box[1:])] = part.reshape(upper - lower, *extents(box)[1:])
        return out

    def loop(self, target, memory):
        names = sorted(self.path.glob("part-*.npy"))
        self.source_parts = list(zip(names, boxes(self.shape, self.source)))
        parts = Parts(target, self.dtype, self.shape, self.target, self.transposed)
        row_bytes = self.bytes // self.shape[0]
        if not self.transposed:
            # A stripe, and a copy of what goes to one part.
            rows = max(1, memory * 3 // 4 // row_bytes)
            for begin in range(0, self.shape[0], rows):
                stripe = slice(begin, min(begin + rows, self.shape[0]))
                cells = self.stripe(stripe)
                for i, box in enumerate(parts.boxes):
                    lower, upper = max(stripe.start, box[0].start), min(stripe.stop, box[0].stop)
                    if lower < upper:
                        parts.append(i, cells[(slice(lower - begin, upper - begin), *box[1:])])
        else:
            # Half of the memory holds columns of the target, a quarter a stripe.
            columns = max(1, memory // 2 // (self.bytes // self.shape[1]))
            rows = max(1, memory // 4 // row_bytes)
            for first in range(0, self.shape[1], columns):
                share = slice(first, min(first + columns, self.shape[1]))
                held = np.empty((share.stop - first, self.shape[0]), self.dtype)
                for begin in range(0, self.shape[0], rows):
                    stripe = slice(begin, min(begin + rows, self.shape[0]))
                    held[:, stripe] = self.stripe(stripe)[:, share].T
                for i, box in enumerate(parts.boxes):
                    lower, upper = max(first, box[1].start), min(share.stop, box[1].stop)
                    if lower < upper:
                        parts.append(i, held[lower - first : upper - first])
        parts.end()

    def chunks(self, grid, memory):
        """Chunks as large as the largest part, but no larger than rechunker admits and leaves room for."""
        out = [-(-n // parts) for n, parts in zip(self.shape, grid)]
        while np.prod(out) * self.dtype.itemsize > memory // 2:
            out[0] = -(-out[0] // 2)
        return tuple(out)

    def make_zarr(self, folder, memory):
        import zarr

        self.zarr = folder / "source.zarr"
        shutil.rmtree(self.zarr, ignore_errors=True)
        store = zarr.open(str(self.zarr), mode="w", shape=self.shape, chunks=self.chunks(self.source, memory), dtype=self.dtype, compressor=None)
        array = np.load(self.whole, mmap_mode="r")
        step = store.chunks[0]
        for begin in range(0, self.shape[0], step):
            store[begin : begin + step] = array[begin : begin + step]

    def rechunker(self, target, memory):
        shutil.rmtree(target, ignore_errors=True)
        chunks = repr(self.chunks(self.target, memory))
        # A process of its own, for it may have to be ended; it says when it begins.
        code = (
            "import sys, time, os, shutil, zarr\n"
            "from rechunker import rechunk\n"
            f"source = zarr.open({str(self.zarr)!r}, mode='r')\n"
            "begin = time.perf_counter()\n"
            f"plan = rechunk(source, {chunks}, {memory}, {str(target)!r}, temp_store={str(target) + '-temp'!r},"
            " target_options={'compressor': None}, temp_options={'compressor': None})\n"
            "plan.execute()\n"
            "os.sync()\n"
            "print(time.perf_counter() - begin)\n"
        )
        try:
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, timeout=RECHUNKER_SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            return None
        finally:
            shutil.rmtree(str(target) + "-temp", ignore_errors=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return float(done.stdout)


def cases(quick):
    rows, columns = (2048, 4096) if quick else (8192, 16384)
    out = [
        Case(f"rows to {parts:,} columns", "f8", (rows, columns), (1, 1), (1, parts))
        for parts in ((64, 1024) if quick else (4, 64, 256, 1024, 4096))
    ]
    steps = 400 if quick else 4000
    climate = (steps, 180, 360)
    out += [
        Case("climate, steps to series", "f4", climate, (steps // 100, 1, 1), (1, 18, 36)),
        Case("climate, series to steps", "f4", climate, (1, 18, 36), (steps // 100, 1, 1)),
        Case("rows to columns, transposed", "f8", (rows, columns), (1, 1), (1, 16), transposed=True),
    ]
    cube, tiles, pencils = (192, 3, 12) if quick else (512, 8, 16)
    out.append(Case("tiles to pencils", "f8", (cube,) * 3, (tiles,) * 3, (1, pencils, pencils)))
    return out


def checked(case, command, folder):
    """Checks that the loop's parts and ours hold the same values."""
    case.ours(command, folder / "ours", 64 * MIB)
    case.loop(folder / "loop", 64 * MIB)
    for path in sorted((folder / "loop").glob("*.npy")):
        if not np.array_equal(np.load(path), np.load(folder / "ours" / path.name)):
            raise RuntimeError(f"{case.name}: {path.name} differs")


def timed(act):
    begin = time.perf_counter()
    return act() or time.perf_counter() - begin


def measured(case, memory, arguments, folder):
    acts = {"ours": lambda: case.ours(arguments.command, folder / "ours", memory),
            "NumPy": lambda: case.loop(folder / "loop", memory)}
    seconds = {"ours": [], "NumPy": [], "rechunker": []}
    absent = None
    for turn in range(arguments.rounds):
        names = list(acts)
        for name in names[turn % 2 :] + names[: turn % 2]:
            for made in ("ours", "loop", "zarr"):
                shutil.rmtree(folder / made, ignore_errors=True)
            os.sync()
            seconds[name].append(timed(acts[name]))
        if absent or turn % 3:
            continue
        try:
            took = case.rechunker(folder / "zarr", memory)
            absent = None if took else f"no end within {RECHUNKER_SECONDS_MAX} s"
            if took:
                seconds["rechunker"].append(took)
        except RuntimeError as error:
            absent = str(error)
    row = {"case": case.name, "memory_bytes": memory, "unit": "s"}
    row |= {name: statistics.median(taken) if taken else None for name, taken in seconds.items()}
    row["absent"] = absent if not seconds["rechunker"] else None
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--dir", default="build/bench/reshard-peers")
    arguments = parser.parse_args()
    arguments.command = str(Path(arguments.command).resolve())
    folder = Path(arguments.dir).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print("| case | memory | ours | NumPy loop | rechunker |\n|---|---|---|---|---|")
    try:
        for case in cases(arguments.quick):
            if arguments.filter not in case.name:
                continue
            print(f"measuring {case.name}", file=sys.stderr)
            case.make_source(arguments.command, folder)
            checked(case, arguments.command, folder)
            memories = (4, 16) if arguments.quick else (16, 64, 256, 1024)
            case.make_zarr(folder, memories[0] * MIB)
            case.whole.unlink()
            for memory in memories:
                row = measured(case, memory * MIB, arguments, folder)
                rows.append(row)
                cells = [f"{row['ours']:.2f} s"]
                for peer in ("NumPy", "rechunker"):
                    took = row[peer]
                    cells.append(f"{took:.2f} s ({row['ours'] / took:.2f})" if took else f"- ({row['absent']})")
                print(f"| {case.name} | {memory} MiB | {' | '.join(cells)} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
