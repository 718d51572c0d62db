#!/usr/bin/env python3
"""Kernels that Numba compiles use tranship's one-sided operations: `numba_seed.py LIBRARY.ltoir --sources SRC [--compile]`.

Two ranks share one card and one process: each has a half of one allocation as its heap, a stream, and its own copy of
every kernel, because the HeapView that library.cu looks at belongs to a module. The kernel `rma_kernel` comes from
NVSHMEM's documentation; only its launch differs. All memory is compared afterwards with what NumPy computes.

SRC is the folder that has tranship/, for a library made while the program runs. --compile needs no card: it compiles
and links for sm_90. Findings are lines of JSON (support/findings.hpp).
"""
import argparse
import gc
import importlib.metadata
import os
import pathlib
import sys
import time
import warnings

from card import RANKS, Driver, Library, World
import findings
from findings import answer, attempt, check, say, shortened
from linking import LIBRARY, compiled, kernel_name_in, library_by_nvrtc, linked_by_core, linked_by_nvjitlink, of_core
from operations import SCALARS, SCOPES, make_kernels, make_operations, of_numba, signatures


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def compile_without_card(libraries, numba_cuda, kernels):
    types = of_numba("types", "Array")
    for source, library in libraries.items():
        for name, signature in signatures(types).items():
            part = attempt(f"{name} is compiled", compiled, numba_cuda, kernels, name, signature, (9, 0))
            for way, link in (("cuda.core", linked_by_core), ("nvJitLink", linked_by_nvjitlink)):
                cubin = attempt(f"{name}, {source}, linked by {way}", link, [part, library], "sm_90")
                has_all = cubin is not None and b"ts_heap\0" in cubin and bool(kernel_name_in(cubin, kernels[name].__name__))
                check(f"cubin of {name}, {source}, {way}", 1, not has_all, f"{len(cubin)} bytes" if cubin else "none")


class Ranks:
    """Holds one function compiled by Numba for each rank, with the library linked in."""

    def __init__(self, world, function, library):
        from numba.cuda.cudadrv.linkable_code import LTOIR
        self.world, self.setups, self.kernels = world, 0, []
        for rank in range(RANKS):
            link = LTOIR(library, name="tranship", setup_callback=self.setup_of(rank))
            self.kernels.append(world.cuda.jit(link=[link], lto=True)(function))

    def setup_of(self, rank):
        def setup(module):
            self.setups += 1
            self.world.driver.write_global(module, self.world.view(rank))
        return setup

    def launch(self, rank, lanes, *arguments):
        self.kernels[rank][1, lanes, self.world.numba_stream(rank)](*arguments)


def run_seed(world, name, launch):
    """Calls launch(rank, src, dst, remote_buf, pe) on both ranks at once."""
    np = world.np
    wrong, cases, notes = 0, 0, []
    for count in (1, 1, 7, 1000):
        world.begin()
        src, dst, remote = (world.symmetric((count,), np.int32) for _ in range(3))
        for rank in range(RANKS):
            launch(rank, src[rank], dst[rank], remote[rank], (rank + 1) % RANKS)
        world.driver.wait(*world.streams)
        for rank in range(RANKS):
            value = world.expected(src[rank])
            world.expected(remote[(rank + 1) % RANKS])[:] = value
            world.expected(dst[rank])[:] = value
        bad, note = world.wrong_bytes()
        cases, wrong = cases + 1, wrong + (bad > 0)
        if bad:
            notes.append(f"{count} elements: {bad} bytes, {note}")
    check(name, cases, wrong, notes[0] if notes else "")


def run_transfers(world, kernels, library):
    np = world.np
    ranks = Ranks(world, kernels["transfers"], library)
    cases, wrong, first = 0, 0, ""
    for scope, (name, lanes) in enumerate(SCOPES.items()):
        for later in (0, 1):
            for count in (0, 1, 15, 64, 333, 20000):
                for shifts in ((0, 0, 0), (1, 1, 1), (3, 8, 6), (4, 12, 0)):
                    world.begin()
                    target, source, back = (world.symmetric((count,), np.uint8, shift) for shift in shifts)
                    ranks.launch(0, lanes, target[0], source[0], back[0], 1, scope, later)
                    world.driver.wait(world.streams[0])
                    world.expected(target[1])[:] = world.expected(source[0])
                    world.expected(back[0])[:] = world.expected(source[0])
                    bad, note = world.wrong_bytes()
                    cases, wrong = cases + 1, wrong + (bad > 0)
                    if bad and not first:
                        first = f"{name}, nbi {later}, {count} bytes, shifts {shifts}: {bad} bytes, {note}"
    check("Numba: put and get of bytes at three scopes, any alignment", cases, wrong, first)


def run_scalars(world, library, functions, name):
    np = world.np
    my_pe, n_pes, p_4, p_8, g_4, g_8, add_8 = (functions[of] for of in SCALARS)

    def scalars(out, at, pe):
        out[0] = my_pe()
        out[1] = n_pes()
        out[2] = g_4(at, pe)
        out[3] = g_8(at + 8, pe)
        p_4(at + 16, 0x12345678, pe)
        p_8(at + 24, 0x123456789abcdef0, pe)
        out[4] = add_8(at + 32, 5, pe)
    ranks = Ranks(world, scalars, library)
    wrong, note = 0, ""
    for rank in range(RANKS):
        world.begin()
        words, out = world.symmetric((5,), np.uint64), world.symmetric((5,), np.uint64)
        peer = (rank + 1) % RANKS
        ranks.launch(rank, 1, out[rank], np.int64(words[rank].address), peer)
        world.driver.wait(world.streams[rank])
        there = world.expected(words[peer])
        world.expected(out[rank])[:] = [rank, RANKS, there[:1].view(np.uint32)[0], there[1], there[4]]
        there[2:3].view(np.uint32)[0] = 0x12345678
        there[3] = 0x123456789abcdef0
        there[4] += np.uint64(5)
        bad, where = world.wrong_bytes()
        wrong += bad > 0
        note = note or where
    check(f"Numba: my_pe, n_pes, p, g, fetch_add by {name}", RANKS, wrong, note)


def run_declared(world, library):
    """Declares the functions of the library by their signatures and the ABI of C."""
    declare = world.cuda.declare_device
    functions = {name: declare("ts_" + name, f"{kinds[0]}({', '.join(kinds[1:])})", abi="c") for name, kinds in SCALARS.items()}
    run_scalars(world, library, functions, "declare_device(abi='c')")


def run_exchange(world, kernels, library, scope):
    """Sends rows both ways between the ranks at once; each row that arrives is kept and compared."""
    np, driver = world.np, world.driver
    ranks = Ranks(world, kernels[f"exchange_{scope}"], library)
    groups = {"thread": 8, "warp": 2, "block": 1}[scope]
    lanes, rounds, count = groups * SCOPES[scope], 100, 64
    rows = [world.private((groups, rounds, count), np.int32) for _ in range(RANKS)]
    arrived = [world.private((groups, rounds, count), np.int32) for _ in range(RANKS)]
    seen = [world.private((groups, rounds), np.uint64) for _ in range(RANKS)]
    times_us, wrong, first, lost = [], 0, "", 0
    for sample in range(-2, 11):
        world.begin()
        inbox, signals = world.symmetric((groups, 2, count), np.int32), world.symmetric((groups, 1), np.uint64)
        for rank in range(RANKS):
            world.expected(signals[rank])[:] = 0
        driver.write(world.base, world.heaps)
        sent = [world.random.integers(-2**31, 2**31, rows[0].shape, np.int32) for _ in range(RANKS)]
        for rank in range(RANKS):
            driver.write(rows[rank].address, sent[rank])
            driver.write(arrived[rank].address, ~sent[1 - rank])
            driver.write(seen[rank].address, np.zeros(seen[rank].shape, np.uint64))
        if sample == -2:  # Both are compiled and loaded before either waits for the other.
            for rank in range(RANKS):
                ranks.launch(rank, lanes, rows[rank], inbox[rank], arrived[rank], signals[rank], seen[rank], 1 - rank, 0)
            driver.wait(*world.streams)
        begin = time.perf_counter()
        for rank in range(RANKS):
            ranks.launch(rank, lanes, rows[rank], inbox[rank], arrived[rank], signals[rank], seen[rank], 1 - rank, rounds)
        driver.wait(*world.streams)
        if sample >= 0:
            times_us.append((time.perf_counter() - begin) * 1e6 / rounds)
        for rank in range(RANKS):
            came, values = np.empty(rows[0].shape, np.int32), np.empty(seen[0].shape, np.uint64)
            driver.read(arrived[rank].address, came)
            driver.read(seen[rank].address, values)
            wanted = np.arange(1, rounds + 1, dtype=np.uint64)
            lost += int((values < wanted).any())
            bad = int((came != sent[1 - rank]).any(axis=2).sum() + ((values < wanted) | (values > wanted + np.uint64(1))).sum())
            wrong += bad > 0
            if bad and not first:
                places = np.argwhere((came != sent[1 - rank]).any(axis=2))
                first = f"rank {rank}: {bad} rows or signals, first (group, round) {places[0].tolist() if len(places) else None}"
            world.expected(inbox[rank])[:] = sent[1 - rank][:, rounds - 2:]
            world.expected(signals[rank])[:] = rounds
        bad, where = world.wrong_bytes()
        wrong += bad > 0
        first = first or (where and f"heaps: {bad} bytes, {where}")
        if lost:
            break  # Every further wait would take its whole time limit, too.
    name = f"Numba: put_signal and signal_wait both ways, {groups} groups of {SCOPES[scope]} lanes"
    check(name, 13 * (RANKS + 1), wrong, first)
    if lost:
        say(fault=f"{name}: a wait was given up after 2 s")
    elif len(times_us) >= 9:
        times_us.sort()
        say(figure=f"Numba exchange of 256 B, {scope}, a round", value=round(times_us[len(times_us) // 2], 3), unit="us",
            low=round(times_us[0], 3), high=round(times_us[-1], 3), samples=len(times_us), note="with 1/100 of a launch")


def parameters(np, arrays, scalars):
    """Returns the parameters of a kernel as Numba lays them out.

    An array is two null pointers, its element count, their size, its address, its extents, its strides.
    """
    out = []
    for array in arrays:
        out += [0, 0, array.size, array.dtype.itemsize, array.address, *array.shape, *array.strides()]
    return [np.array(value, np.uint64 if value >= 0 else np.int64) for value in [*out, *scalars]]


def run_linked(world, numba_cuda, kernels, library):
    """Runs the seed without Numba's launcher: Numba compiles it, and other tools link and launch it."""
    types = of_numba("types", "Array")
    np, driver = world.np, world.driver
    architecture = "sm_%d%d" % driver.capability
    signature = signatures(types)["rma_kernel"]
    part = attempt("numba.cuda.compile to LTO-IR",
                   compiled, numba_cuda, kernels, "rma_kernel", signature, driver.capability)
    if part is None:
        return
    cubins = [attempt(f"linked by {way}", link, [part, library], architecture)
              for way, link in (("cuda.core", linked_by_core), ("nvJitLink", linked_by_nvjitlink))]
    cubin = cubins[0] or cubins[1]
    if not cubin:
        return
    name = kernel_name_in(cubin, "rma_kernel")

    def by_driver():
        loaded = [Library(driver, cubin) for _ in range(RANKS)]
        for rank in range(RANKS):
            driver.write_global(loaded[rank], world.view(rank))

        def launch(rank, *arguments):
            loaded[rank].launch(name, 1, world.streams[rank], parameters(np, arguments[:3], arguments[3:]))
        run_seed(world, "seed linked, launched by the driver", launch)

    def by_core():
        device = of_core("Device")(0)
        device.set_current()
        start, config, Stream = of_core("launch"), of_core("LaunchConfig")(grid=1, block=1), of_core("Stream")
        loaded = [of_core("ObjectCode").from_cubin(cubin) for _ in range(RANKS)]
        streams = [Stream.from_handle(stream) for stream in world.streams]
        for rank in range(RANKS):
            driver.write_global(loaded[rank], world.view(rank))
        found = [code.get_kernel(name.decode()) for code in loaded]

        def launch(rank, *arguments):
            words = [np.uint64(word) for word in parameters(np, arguments[:3], arguments[3:])]
            start(streams[rank], config, found[rank], *words)
        run_seed(world, "seed linked, launched by cuda.core", launch)

    attempt("launched by the driver", by_driver)
    attempt("launched by cuda.core", by_core)


def run_jit(world, kernels, library, name):
    ranks = Ranks(world, kernels["rma_kernel"], library)
    run_seed(world, name, lambda rank, *arguments: ranks.launch(rank, 1, *arguments))
    check(f"{name}: each module is set up once", 1, ranks.setups != RANKS, f"{ranks.setups} setups")


def run_source(world, kernels):
    """Tests the library as source that Numba itself gives to NVRTC, in the version of C++ that Numba chooses."""
    from numba.cuda.cudadrv.linkable_code import CUSource
    source = CUSource(LIBRARY.read_text(), name="library.cu")
    kernel = world.cuda.jit(link=[source], lto=True)(kernels["rma_kernel"])
    world.begin()
    arrays = [world.symmetric((1,), world.np.int32)[0] for _ in range(3)]
    kernel.specialize(*arrays, 1) if hasattr(kernel, "specialize") else kernel.compile("(int32[::1],int32[::1],int32[::1],int64)")


def run_on_card(libraries, cuda, operations, kernels):
    import numpy as np
    driver = Driver()
    world = World(np, driver, cuda)
    answer("compute capability", "%d.%d" % driver.capability)
    for source, library in libraries.items():
        attempt(f"numba.cuda.jit(link=[LTOIR], lto=True), {source}",
                run_jit, world, kernels, library, f"seed by numba.cuda.jit, {source}")
    library = next(iter(libraries.values()))
    attempt("compiled, linked and launched apart", run_linked, world, cuda, kernels, library)
    for scope in SCOPES:
        attempt(f"Numba kernels that exchange, {scope}", run_exchange, world, kernels, library, scope)
    scalars = {name: getattr(operations, name) for name in SCALARS}
    attempt("scalars by @intrinsic", run_scalars, world, library, scalars, "@intrinsic")
    attempt("scalars by declare_device", run_declared, world, library)
    attempt("Numba kernels that put and get", run_transfers, world, kernels, library)
    attempt("numba.cuda.jit(link=[CUSource])", run_source, world, kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library", type=pathlib.Path, help="device_library_sm90.ltoir")
    parser.add_argument("--sources", type=pathlib.Path, help="the folder that has tranship/")
    parser.add_argument("--compile", action="store_true", help="compile and link for sm_90, without a card")
    chosen = parser.parse_args()
    if chosen.sources:
        os.environ.setdefault("NUMBA_CUDA_NVRTC_EXTRA_SEARCH_PATHS", str(chosen.sources))
    gc.disable()  # The driver may wait for kernels when a module is unloaded, and these may wait for each other.
    warnings.filterwarnings("ignore")  # hides the warning that a grid of one block is small
    try:
        import numba
        import numpy
        if not hasattr(numpy, "row_stack"):  # NumPy 2.5 dropped this name, which numba-cuda up to 0.30 needs
            numpy.row_stack = numpy.vstack
            answer("numpy.row_stack", "put back", f"NumPy {numpy.__version__} has none")
        from numba import cuda
        answer("numba", numba.__version__, "numba-cuda " + version_of("numba-cuda"))
    except Exception as error:  # numba-cuda and numba may not fit together
        say(fault=f"numba-cuda is needed: {error}")
        return 3

    libraries = {}
    if chosen.library.is_file():
        libraries["library by nvcc"] = chosen.library.read_bytes()
    else:
        answer("library by nvcc", "no", f"no {chosen.library.name}")
    if chosen.sources:
        made = attempt("library by NVRTC", library_by_nvrtc, chosen.sources, "sm_90")
        if made:
            libraries["library by NVRTC"] = made
    if not libraries:
        say(fault="there is no library to link")
        return 3
    try:
        operations = make_operations(SCOPES)
        kernels = make_kernels(cuda, operations)
        if chosen.compile:
            compile_without_card(libraries, cuda, kernels)
        else:
            run_on_card(libraries, cuda, operations, kernels)
        if not findings.checks:
            say(fault="no kernel could be compiled, linked and run in any way")
            return 3
    except Exception as error:
        say(fault=shortened(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    code = main()
    # While Python ends, modules of a lost card would report errors.
    sys.stdout.flush()
    os._exit(code)
