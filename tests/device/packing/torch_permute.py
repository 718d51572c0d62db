"""Packs NDSL's halo regions and transposes arrays with torch, into memory that is there already. This is the peer of
the device benchmark, whose cases it has: NDSL's regions as slices, and transposes as permuted views.

Prints the lines of support/findings.hpp. Each time is that of a CUDA graph of 16 runs, divided by 16.
"""

import json
import statistics
import sys

HALO, ALONG, LEVELS = 3, 192, 79
SIZE = ALONG + 2 * HALO
ROUNDS, TIMES = 11, 16

LOW, HIGH, ALL = slice(HALO, 2 * HALO), slice(ALONG, ALONG + HALO), slice(HALO, HALO + ALONG)
# For N, S, W, E, NW, NE, SW, SE: the (i, j) of the region that is sent there. North has the highest j.
REGIONS = [(ALL, HIGH), (ALL, LOW), (LOW, ALL), (HIGH, ALL), (LOW, HIGH), (HIGH, HIGH), (LOW, LOW), (HIGH, LOW)]


def tell(**line):
    print(json.dumps(line), flush=True)


try:
    import torch
except Exception as error:  # a broken CUDA library raises other errors than ImportError
    tell(fault=f"torch_permute: no torch: {type(error).__name__}: {error}")
    sys.exit(3)


def microseconds(run):
    """The times of a run in a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(TIMES):
                run()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        out = []
        for number in range(-2, ROUNDS):
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            if number >= 0:
                out.append(1e3 * begin.elapsed_time(end) / TIMES)
    return out


def report(name, payload_bytes, run):
    """Measures a run beside a copy of as many bytes."""
    source, target = (torch.empty(payload_bytes, dtype=torch.uint8, device="cuda") for _ in range(2))
    copy_us = statistics.median(microseconds(lambda: target.copy_(source)))
    times = microseconds(run)
    for what, samples, unit in (("in a graph", times, "us"),
                                ("of the device copy", [copy_us / time for time in times], "")):
        tell(figure=f"{name}: torch, {what}", value=statistics.median(samples), unit=unit, low=min(samples), high=max(samples),
             samples=len(samples), note="")


def points(region):
    return (region[0].stop - region[0].start) * (region[1].stop - region[1].start) * LEVELS


def ndsl(fastest, count):
    """Returns the number of regions that are wrong."""
    quantities = []
    for _ in range(count):
        values = torch.rand((SIZE, SIZE, LEVELS), dtype=torch.float64, device="cuda")
        # The order of the dimensions in memory is another one; the indices stay (i, j, k).
        quantities.append(values.permute(2, 1, 0).contiguous().permute(2, 1, 0) if fastest == "i" else values)
    buffers = [torch.zeros(count * points(region), dtype=torch.float64, device="cuda") for region in REGIONS]
    pairs = []
    for q, quantity in enumerate(quantities):
        for buffer, region in zip(buffers, REGIONS):
            size, source = points(region), quantity[region]
            pairs.append((buffer[q * size:(q + 1) * size].view(source.shape), source))

    def run():
        for target, source in pairs:
            target.copy_(source)

    noun = "quantity" if count == 1 else "quantities"
    report(f"NDSL pack, {fastest} fastest, {count} {noun}", 8 * count * sum(map(points, REGIONS)), run)
    return sum(not torch.equal(target, source) for target, source in pairs)


def transpose(name, shape, order, dtype):
    source = torch.arange(shape[0] * shape[1] * (shape[2] if len(shape) > 2 else 1), device="cuda").to(dtype).reshape(shape)
    view = source.permute(order)
    target = torch.zeros(view.shape, dtype=dtype, device="cuda")
    report(name, source.numel() * source.element_size(), lambda: target.copy_(view))
    return int(not torch.equal(target, view))


def main():
    tell(answer="torch", value=torch.__version__, note=f"CUDA {torch.version.cuda}")
    wrong = cases = 0
    for fastest in ("k", "i"):
        for count in (1, 7, 28):
            wrong, cases = wrong + ndsl(fastest, count), cases + count * len(REGIONS)
            torch.cuda.empty_cache()
    for name, shape, order, dtype in (
            ("384 x 384 x 384 doubles, ijk to kji", (384, 384, 384), (2, 1, 0), torch.float64),
            ("384 x 384 x 384 doubles, ijk to jki", (384, 384, 384), (1, 2, 0), torch.float64),
            ("8192 x 8192 floats, corner turn", (8192, 8192), (1, 0), torch.float32),
            ("8192 x 8192 bytes, corner turn", (8192, 8192), (1, 0), torch.uint8)):
        wrong, cases = wrong + transpose(name, shape, order, dtype), cases + 1
    tell(check="torch: regions and transposes", cases=cases, wrong=wrong, note="")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        tell(fault=f"torch_permute: {type(error).__name__}: {error}")
        sys.exit(3)
