"""Packs NDSL's halo regions by slices of CuPy arrays, as NDSL does without its kernel. This is the peer of ndsl.cu.

Quantities have 192 x 192 x 79 doubles with a halo of 3; each of the four edges and four corners goes to the buffer of
its neighbour in C order of (i, j, k). Prints the lines of support/findings.hpp.
"""

import json
import statistics
import sys

HALO, ALONG, LEVELS = 3, 192, 79
SIZE = ALONG + 2 * HALO
ROUNDS = 21

LOW, HIGH, ALL = slice(HALO, 2 * HALO), slice(ALONG, ALONG + HALO), slice(HALO, HALO + ALONG)
# For N, S, W, E, NW, NE, SW, SE: the (i, j) of the region that is sent there. North has the highest j.
REGIONS = [(ALL, HIGH), (ALL, LOW), (LOW, ALL), (HIGH, ALL), (LOW, HIGH), (HIGH, HIGH), (LOW, LOW), (HIGH, LOW)]


def tell(**line):
    print(json.dumps(line), flush=True)


def figure(name, samples, note=""):
    tell(figure=name, value=statistics.median(samples), unit="us", low=min(samples), high=max(samples),
         samples=len(samples), note=note)


try:
    import cupy
    import numpy
except Exception as error:  # a broken CUDA library raises other errors than ImportError
    tell(fault=f"cupy_slices: no cupy: {type(error).__name__}: {error}")
    sys.exit(3)


def points(region):
    return (region[0].stop - region[0].start) * (region[1].stop - region[1].start) * LEVELS


class Case:
    """Holds quantities in one memory layout, and for each neighbour a buffer with the regions of all quantities."""

    def __init__(self, layout, count):
        self.name = f"ndsl pack, {layout}, {count} " + ("quantity" if count == 1 else "quantities")
        shape = (SIZE, SIZE, LEVELS)
        self.quantities = []
        for q in range(count):
            array = cupy.empty(shape, order="F" if layout == "i fastest" else "C")
            array[...] = cupy.random.random(shape)
            self.quantities.append(array)
        self.buffers = [cupy.full(count * points(region), cupy.nan) for region in REGIONS]

    def ravelled(self):
        for q, quantity in enumerate(self.quantities):
            for buffer, region in zip(self.buffers, REGIONS):
                size = points(region)
                buffer[q * size:(q + 1) * size] = quantity[region].ravel()

    def assigned(self):
        """Packs by one copy: it assigns to a view of the buffer in the region's shape."""
        for q, quantity in enumerate(self.quantities):
            for buffer, region in zip(self.buffers, REGIONS):
                size = points(region)
                source = quantity[region]
                buffer[q * size:(q + 1) * size].reshape(source.shape)[...] = source

    def wrong_regions(self):
        wrong = 0
        for q, quantity in enumerate(self.quantities):
            host = cupy.asnumpy(quantity)
            for buffer, region in zip(self.buffers, REGIONS):
                size = points(region)
                wrong += not numpy.array_equal(cupy.asnumpy(buffer[q * size:(q + 1) * size]), host[region].ravel())
        return wrong

    def poison(self):
        for buffer in self.buffers:
            buffer.fill(cupy.nan)


def microseconds(stream, enqueue, rounds=ROUNDS):
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    out = []
    for number in range(-3, rounds):
        begin.record(stream)
        enqueue()
        end.record(stream)
        end.synchronize()
        if number >= 0:
            out.append(1e3 * cupy.cuda.get_elapsed_time(begin, end))
    return out


def measure(case, stream):
    checked = wrong = 0
    for name, pack in (("CuPy, ravel", case.ravelled), ("CuPy, one assignment", case.assigned)):
        name = f"{case.name}: {name}"
        case.poison()
        pack()
        stream.synchronize()
        if len(case.quantities) < 28:
            checked += len(case.quantities) * len(REGIONS)
            wrong += case.wrong_regions()
        rounds = ROUNDS if len(case.quantities) < 28 else 11
        figure(f"{name}, stream, alone", microseconds(stream, pack, rounds))
        try:
            stream.begin_capture()
            try:
                pack()
            finally:
                graph = stream.end_capture()
            case.poison()
            graph.launch(stream)
            stream.synchronize()
        except Exception as error:
            tell(answer=f"{name}, graph", value="no", note=f"{type(error).__name__}: {error}")
            continue
        if len(case.quantities) < 28:
            checked += len(case.quantities) * len(REGIONS)
            wrong += case.wrong_regions()
        figure(f"{name}, graph, alone", microseconds(stream, lambda: graph.launch(stream), rounds))
    return checked, wrong


def main():
    tell(answer="cupy", value=cupy.__version__, note=f"CUDA runtime {cupy.cuda.runtime.runtimeGetVersion()}")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        checked = wrong = 0
        for layout in ("k fastest", "i fastest"):
            for count in (1, 7, 28):
                case = Case(layout, count)
                stream.synchronize()
                c, w = measure(case, stream)
                checked, wrong = checked + c, wrong + w
                del case
                cupy.get_default_memory_pool().free_all_blocks()
        tell(check="ndsl: regions by CuPy slices against NumPy", cases=checked, wrong=wrong, note="")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        tell(fault=f"cupy_slices: {type(error).__name__}: {error}")
        sys.exit(3)
