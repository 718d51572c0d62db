"""The cost of calls from Python: a halo, a lease, a put, an atomic; and a redistribution as a share of memcpy.

usage: python python_calls.py [--json FILE] [--twin TWIN]
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import time
import timeit

import numpy as np

import tranship as ts

# Microseconds.
GOALS = {"start and finish": 1.5, "lease": 1.0, "put of 8 bytes": 0.5, "slice of a symmetric array": 0.5}
# Nanoseconds.
COMPILED_GOALS = {"put_signal": 5, "g": 7}


def per_call_us(call, number=20_000, repeats=9):
    return statistics.median(timeit.repeat(call, number=number, repeat=repeats)) / number * 1e6


def calls(world):
    d = ts.distribution((8, 8), (1, 1), overlap=1, edge="toroidal")
    halo = ts.halo(ts.array(world, d))
    word, value = ts.symmetric(world, 1), np.ones(1)
    counter, rows = ts.symmetric(world, 1, "i8"), ts.symmetric(world, (100, 4))
    buffer = ts.Buffer(64)
    me = world.rank

    def lease():
        with buffer.read():
            pass

    return {
        "start and finish": per_call_us(halo),
        "lease": per_call_us(lease),
        "put of 8 bytes": per_call_us(lambda: word.put(value, me)),
        "slice of a symmetric array": per_call_us(lambda: rows[3:5]),
        "put of a number": per_call_us(lambda: word.put(1.0, me)),
        "add": per_call_us(lambda: counter.add(me)),
        "test": per_call_us(lambda: counter.test("==", -1)),
        "barrier of one": per_call_us(world.barrier),
    }


def redistribution(world, n=4096):
    """Rows to columns, both ranks at once, beside a copy of as many bytes by each."""
    a = ts.array(world, ts.distribution((n, n), (world.size, 1)))
    b = ts.array(world, ts.distribution((n, n), (1, world.size)))
    turn = ts.Redistribution(a, b)
    mine, copy = np.ones_like(a.local), np.empty_like(a.local)
    moved, copied = [], []
    for _ in range(11):
        world.barrier()
        begin = time.perf_counter()
        turn()
        world.barrier()
        moved.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        np.copyto(copy, mine)
        world.barrier()
        copied.append(time.perf_counter() - begin)
    return statistics.median(copied[2:]) / statistics.median(moved[2:])


def compiled_ns(world, count=1_000_000, rounds=15):
    """Operations on 8 bytes by functions that Numba has compiled."""
    from numba import njit

    import tranship.nvshmem as nvshmem
    import tranship.nvshmem.core.device.numba as device

    @njit
    def put(target, source, signal, pe, count):
        for _ in range(count):
            device.put(target, source, pe)

    @njit
    def put_signal(target, source, signal, pe, count):
        for i in range(count):
            device.put_signal(target, source, signal, i, 9, pe)

    @njit
    def g(target, source, signal, pe, count):
        for _ in range(count):
            source[0] += device.g(target, pe)

    nvshmem.init()
    target, signal, source = nvshmem.array(1, "float64"), nvshmem.array(1, "uint64"), np.ones(1)
    out = {}
    for run in (put, put_signal, g):
        run(target, source, signal, 0, 1)
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            run(target, source, signal, 0, count)
            times.append((time.perf_counter() - begin) / count * 1e9)
        out[run.__name__] = statistics.median(times)
    nvshmem.free_array(target)
    nvshmem.free_array(signal)
    nvshmem.finalize()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--twin", help="the program python_twin, for the same in C++")
    arguments = parser.parse_args()
    rows = [
        {"case": case, "us": us, "goal_us": GOALS.get(case)} for case, us in ts.launch(1, calls)[0].items()
    ]
    share = ts.launch(2, redistribution)[0]
    print("| call | µs | goal |\n|---|---|---|")
    for row in rows:
        goal = "" if row["goal_us"] is None else f"{row['goal_us']}"
        print(f"| {row['case']} | {row['us']:.2f} | {goal} |")
    print(f"\nredistribution of 4096x4096 on 2 threads: {share:.2f} of NumPy's copy of the same bytes")
    puts = {}
    if importlib.util.find_spec("numba"):
        compiled = ts.launch(1, compiled_ns)[0]
        print("\n| of 8 bytes, compiled by Numba | ns | goal |\n|---|---|---|")
        for name, ns in compiled.items():
            print(f"| {name} | {ns:.1f} | {COMPILED_GOALS.get(name, '')} |")
        puts = {"compiled": compiled, "compiled_put_ns": compiled["put"]}
        if arguments.twin:
            done = subprocess.run([arguments.twin, "puts"], capture_output=True, text=True, check=True)
            puts["put_in_cpp_ns"] = float(done.stdout)
            ratio = puts["compiled_put_ns"] / puts["put_in_cpp_ns"]
            print(f"\nThe put takes {ratio:.2f} of the time of the one in C++ (goal: 2).")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"calls": rows, "redistribution_to_copy": share, **puts}, file, indent=1)


if __name__ == "__main__":
    main()
