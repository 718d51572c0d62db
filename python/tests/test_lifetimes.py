"""Nothing leaks, and nothing is freed too early."""

import gc
import resource
import sys
import weakref

import numpy as np

import tranship as ts


def test_references_of_foreign_memory_come_back():
    memory = np.zeros(8)
    before = sys.getrefcount(memory)

    def body(world):
        d = ts.distribution(8, 1)
        for _ in range(100):
            a = ts.wrap(world, d, memory)
            b = ts.array(world, d)
            ts.Redistribution(a, b)()
            np.asarray(a)
        del a, b

    ts.launch(1, body)
    gc.collect()
    assert sys.getrefcount(memory) == before


def test_worlds_and_arrays_are_freed():
    seen = []

    def body(world):
        a = ts.array(world, ts.distribution(100, world.size))
        seen.append(weakref.ref(world))
        halo = ts.Redistribution(a, ts.array(world, ts.distribution(100, world.size, "cyclic")))
        halo()

    for _ in range(5):
        ts.launch(2, body)
    gc.collect()
    assert all(ref() is None for ref in seen)


def test_ten_thousand_of_everything_take_no_memory():
    def rounds(n):
        def body(world):
            d = ts.distribution((16, 16), (world.size, 1), overlap=1, edge="toroidal")
            source, target = ts.array(world, d), ts.array(world, d)
            word = ts.symmetric(world, 1, "u8")
            for i in range(n):
                a = ts.array(world, d)
                a.fill(1.0)
                if i % 50 == 0:
                    ts.Redistribution(source, target)()
                word.put(i, world.rank)
                str(a.spec)
                try:
                    ts.layout("nothing")
                except ts.BadText:
                    pass

        ts.launch(2, body)

    rounds(1000)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(10_000)
    gc.collect()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} KiB"


def test_launches_do_not_leak_threads_or_files():
    import os

    def files():
        return len(os.listdir("/proc/self/fd"))

    ts.launch(3, lambda world: world.barrier())
    before = files()
    for _ in range(50):
        ts.launch(3, lambda world: world.barrier())
        ts.simulate(3, lambda world: world.barrier())
    ts.launch(2, lambda world: world.barrier(), ranks="processes")
    assert files() <= before
