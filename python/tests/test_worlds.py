"""Ranks: results, failures, deadlines, interrupts, and the lock of the interpreter."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tranship as ts


def test_results_come_in_the_order_of_ranks(run):
    assert run(4, lambda world: (world.rank, world.size)) == [(r, 4) for r in range(4)]
    assert run(1, lambda world: None) == [None]


def test_gather_and_broadcast_any_object(run):
    def body(world):
        everything = world.all_gather({"rank": world.rank, "text": "x" * (10 * world.rank)})
        assert [len(e["text"]) for e in everything] == [10 * r for r in range(world.size)]
        return world.broadcast("salt" if world.rank == 2 else None, root=2)

    assert run(3, body) == ["salt"] * 3


def test_the_current_world(run):
    def body(world):
        return ts.current_world() is world

    assert run(2, body) == [True, True]
    with pytest.raises(ts.InvalidUse):
        ts.current_world()


def test_memory_that_peers_reach(run):
    def body(world):
        a = world.zeros((3, 2), np.float32, order="F")
        b = world.empty(5, "i8")
        assert a.shape == (3, 2) and a.flags.f_contiguous and a.dtype == np.float32 and not a.any()
        assert b.shape == (5,) and b.ctypes.data % 64 == 0
        assert world.zeros(()).shape == () and world.empty((0, 3)).size == 0
        assert world.zeros(np.array([3, 2])).shape == (3, 2) and world.zeros(np.array([4])).shape == (4,)
        assert world.zeros(np.int64(3)).shape == world.zeros(np.array(3)).shape == (3,)
        assert world.zeros(2, [("x", "f8"), ("n", "i4")]).tolist() == [(0.0, 0)] * 2
        for shape, dtype in (((-1, 2), "f8"), (3, object)):
            with pytest.raises(ts.InvalidUse):
                world.empty(shape, dtype)
        with pytest.raises(TypeError):
            world.empty(2.5)
        for extents in ((1 << 60,), (sys.maxsize,), (1 << 32, 1 << 32), (1 << 64) - 1, (1 << 40, 1 << 40)):
            with pytest.raises(ts.NoMemory, match=str(math.prod(np.atleast_1d(np.array(extents, object))))):
                world.empty(extents, "u1")
        return b, world.rank

    # It outlives the world.
    for b, rank in run(2, body):
        b[:] = rank
        assert b.tolist() == [rank] * 5


@pytest.mark.parametrize("ranks", ["threads", "processes"])
def test_exchanges_of_memory_that_peers_reach_are_direct(ranks):
    def body(world):
        rows = ts.distribution((8, 6), ts.grid(2, 1), [ts.block(), ts.whole()])
        columns = ts.distribution((8, 6), ts.grid(1, 2), [ts.whole(), ts.block()])
        schedules = []
        for make in (world.zeros, np.zeros):
            source, target = make((4, 6), "f8"), make((8, 3), "f8")
            source[...] = world.rank
            turn = ts.Redistribution(ts.wrap(world, rows, source), ts.wrap(world, columns, target))
            turn()
            assert target.tolist() == [[0.0] * 3] * 4 + [[1.0] * 3] * 4
            schedules.append(turn.explain().split()[1])
        return schedules

    wanted = ["direct", "direct" if ranks == "threads" else "staged"]
    assert ts.launch(2, body, ranks=ranks) == [wanted, wanted]


class Spilled(RuntimeError):
    pass


@pytest.mark.parametrize("kind", ["threads", "sim"])
def test_the_exception_of_the_first_rank_that_failed_comes_as_it_was(kind):
    seen = []

    def body(world):
        if world.rank == 1:
            raise Spilled("the salt")
        try:
            world.barrier()
        except ts.PeerLost as error:
            seen.append(error)
            raise

    with pytest.raises(Spilled, match="the salt"):
        ts.launch(3, body, ranks=kind)
    assert len(seen) == 2
    for error in seen:
        assert error.code == "peer_lost" and error.peer == 1
        assert "Spilled: the salt" in str(error)
        assert isinstance(error, ConnectionError)


def test_of_a_process_its_type_and_text_come():
    def body(world):
        if world.rank == 1:
            raise Spilled("the salt")
        world.barrier()

    with pytest.raises(ts.UserException, match="Spilled: the salt") as error:
        ts.launch(2, body, ranks="processes")
    assert error.value.rank == 1


def test_a_killed_process_is_named():
    def body(world):
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        world.barrier()

    with pytest.raises(ts.PeerLost, match=r"process \d+ \(rank 1\) was killed by signal 9") as error:
        ts.launch(2, body, ranks="processes")
    assert error.value.rank == 1


def test_a_deadline_says_who_waits_on_whom_and_from_where(run):
    def body(world):
        if world.rank == 0:
            world.timeout = 0.05
            with pytest.raises(ts.TimeoutError) as error:
                world.barrier()
            assert isinstance(error.value, TimeoutError)
            assert "rank 1" in str(error.value) and "test_worlds.py" in str(error.value)
            return str(error.value)
        symbols = ts.symmetric  # the other rank waits for what never comes
        return symbols is not None and world.activity_of(0) is not None

    try:
        run(2, body)
    except ts.Error:
        pass  # a world that has timed out can only be left


POLLS = {
    "test": lambda f: f[:1].test("==", 1),
    "get": lambda f: f.get(1)[0] == 1,
    "get_of_one": lambda f: f[:1].get(1)[0] == 1,
    "get_of_a_box": lambda f: f[::8].get(1)[0] == 1,
    "fetch": lambda f: f[:1].fetch(1) == 1,
    "compare_swap": lambda f: f[:1].compare_swap(1, 1, 2) == 1,
}


@pytest.mark.parametrize("poll", POLLS)
def test_loops_that_poll_end_at_their_deadline(poll):
    def body(world):
        f = ts.symmetric(world, 1000, "u8")
        world.barrier()
        if world.rank == 0:
            world.timeout = 0.2
            with pytest.raises(ts.TimeoutError, match="nothing new"):
                while not POLLS[poll](f):
                    pass

    ts.launch(2, body)


def test_loops_that_compute_between_polls_end_too():
    def body(world):
        f = ts.symmetric(world, 1, "u8")
        world.timeout = 0.1
        with pytest.raises(ts.TimeoutError, match="nothing new"):
            while not f.test("==", 1):
                assert sum(range(50_000)) > 0

    ts.launch(1, body)


def test_loops_over_what_changes_do_not_end():
    def body(world):
        f = ts.symmetric(world, 1, "u8")
        world.timeout = 0.05
        for step in range(100):
            assert sum(range(100_000)) > 0
            f.local[0] = step
            assert f.get(0)[0] == step

    ts.launch(1, body)


def test_calls_that_differ_fail_on_all(run):
    def body(world):
        with pytest.raises(ts.Mismatch):
            ts.symmetric(world, 3 if world.rank else 4)

    run(3, body)


@pytest.mark.parametrize(
    "error, built_in",
    [
        (ts.BadFile, ValueError),
        (ts.BadText, ValueError),
        (ts.DeviceLost, RuntimeError),
        (ts.Internal, RuntimeError),
        (ts.InvalidUse, ValueError),
        (ts.IoError, OSError),
        (ts.Mismatch, ValueError),
        (ts.NoMemory, MemoryError),
        (ts.Overflow, OverflowError),
        (ts.PeerLost, ConnectionError),
        (ts.Race, RuntimeError),
        (ts.TimeoutError, TimeoutError),
        (ts.Unsupported, NotImplementedError),
        (ts.UserException, RuntimeError),
    ],
)
def test_errors_are_also_those_of_python(error, built_in):
    assert issubclass(error, ts.Error) and issubclass(error, built_in)
    raised = error("words")
    assert str(raised) == "words" and raised.rank is None


def test_bad_launches():
    for call in (
        lambda: ts.launch(0, lambda world: None),
        lambda: ts.launch(-1, lambda world: None),
        lambda: ts.launch(2, "not a function"),
        lambda: ts.launch(2, lambda world: None, ranks="fibers"),
        lambda: ts.simulate(2, lambda world: None, peers="far"),
    ):
        with pytest.raises(ts.InvalidUse):
            call()


def test_ranks_wait_while_others_hold_the_interpreter():
    def body(world):
        counter = 0
        for _ in range(20):
            if world.rank == 0:
                end = time.monotonic() + 0.005
                while time.monotonic() < end:  # holds the lock but for switches
                    counter += 1
            world.barrier()
        return counter

    assert ts.launch(4, body)[0] > 0


def test_other_threads_run_while_ranks_wait():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:

        def body(world):
            if world.rank == 0:
                time.sleep(0.2)
            world.barrier()

        ts.launch(2, body)
    finally:
        stop.set()
        thread.join()
    assert len(ticks) > 20


WAITING = """
import sys, time
import tranship as ts
def body(world):
    word = ts.symmetric(world, 1, "u8")
    if world.rank == 0:
        print("ready", flush=True)
        {first}
    word.wait_until("==", 1)
try:
    ts.launch(3, body, ranks="{kind}")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
"""


@pytest.mark.parametrize(
    "kind, first",
    [
        ("threads", "while True: pass"),
        ("threads", "world.barrier()"),
        ("processes", "while True: pass"),
        ("processes", "world.barrier()"),
        ("processes", "time.sleep(60)"),  # a thread that sleeps cannot be woken
        ("sim", "while True: pass"),
    ],
)
@pytest.mark.parametrize("interrupt", [os.killpg, os.kill])  # as a terminal does; as a notebook does
def test_ctrl_c_ends_all_ranks(kind, first, interrupt):
    program = WAITING.format(kind=kind, first=first)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        interrupt(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "interrupted" in out and process.returncode == 3, out


INTERRUPTED = """
import os, sys
import tranship as ts
def body(world):
    word = ts.symmetric(world, 1, "u8")
    world.barrier()
    try:
        os.write(1, b"ready\\n")
        if world.rank == 1:
            while True: pass
        word.wait_until("==", 1)
    except BaseException as error:
        for _ in range(100000): pass  # it comes once
        os.write(1, f"{type(error).__name__} in {world.rank}\\n".encode())
        raise
try:
    ts.launch(3, body, ranks=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("interrupt", [os.killpg, os.kill])
@pytest.mark.parametrize("kind", ["threads", "processes", "sim"])
def test_ctrl_c_is_a_keyboard_interrupt_on_all_ranks(kind, interrupt):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, kind], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    ranks = [0, 1, 2]
    try:
        waits = ranks[:2] if kind == "sim" else ranks  # the one that computes keeps the others from it
        for _ in waits[: 1 if kind == "sim" else None]:
            assert process.stdout.readline() == "ready\n"
        interrupt(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    for rank in ranks:
        assert f"KeyboardInterrupt in {rank}\n" in out or kind == "sim", out
    assert out.endswith("interrupted\n"), out


DEAF = """
import os, signal
import tranship as ts
def body(world):
    if world.rank == 1:
        signal.signal(signal.SIGINT, lambda *_: os.write(1, b"deaf\\n"))
    world.barrier()
    os.write(1, b"ready\\n")
    while True: pass
try:
    ts.launch(2, body, ranks="processes")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_a_second_ctrl_c_kills_ranks_that_are_deaf_to_it():
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "deaf\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=9)  # without the second one it is 10 s
        assert out == "interrupted\n" and process.returncode == 0
    finally:
        process.kill()


def test_ctrl_c_ends_a_simulation_whose_other_ranks_have_not_begun():
    program = (
        "import tranship as ts\n"
        "def body(world):\n"
        "    print('ready', flush=True)\n"
        "    while True: pass\n"
        "try:\n"
        "    ts.simulate(3, body)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert out.endswith("interrupted\n"), out


@pytest.mark.parametrize("kind", ["threads", "sim"])
@pytest.mark.parametrize("body", ["word.wait_until('>=', 1)", "while True: world.rank", "while True: word.get(0)"])
def test_a_program_ends_while_another_thread_runs_ranks(kind, body):
    program = (
        "import threading\n"
        "import tranship as ts\n"
        "ready = threading.Event()\n"
        "def main(world):\n"
        "    word = ts.symmetric(world, 1, 'u8')\n"
        "    ready.set()\n"
        f"    {body}\n"
        f"threading.Thread(target=lambda: ts.launch(2, main, ranks={kind!r}), daemon=True).start()\n"
        "ready.wait()\n"
        "print('at its end', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout == "at its end\n", done.stderr


def test_children_of_ranks_are_no_ranks():
    def main(world):
        word, a = ts.symmetric(world, 1), ts.array(world, ts.distribution(8, world.size, overlap=1))
        halo = ts.halo(a)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for call in (lambda: word.put(1.0, 0), world.barrier, halo, lambda: world.rank):
                try:
                    call()
                except ts.InvalidUse as error:
                    said.append("child of rank" in str(error))
            os.write(writer, repr(said).encode())
            os._exit(0)
        os.close(writer)
        said = os.read(reader, 100).decode()
        os.waitpid(child, 0)
        halo()
        world.barrier()
        return said

    assert ts.launch(2, main, ranks="processes") == ["[True, True, True, True]"] * 2


def test_programs_that_the_command_starts(command, tmp_path):
    program = tmp_path / "ring.py"
    program.write_text(
        "import tranship as ts\n"
        "def main(world):\n"
        "    return world.all_gather(world.rank * 10)\n"
        "print(ts.launch(main), flush=True)\n"
    )
    done = subprocess.run(
        [command, "launch", "-n", "3", sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[0, 10, 20]") == 3
    alone = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert alone.stdout == "[0]\n"


def test_a_simulation_replays():
    def body(world):
        word = ts.symmetric(world, 1, "i8")
        order = []
        for _ in range(5):
            order.append(word.fetch_add(0, 1))
            world.barrier()
        return order

    runs = [ts.simulate(4, body, seed=seed) for seed in (7, 7, 8)]
    assert runs[0] == runs[1]


def test_a_simulation_finds_a_missing_wait():
    def body(world):
        data = ts.symmetric(world, 4)
        flag = ts.symmetric(world, 1, "u8")
        if world.rank == 0:
            data.put([1, 2, 3, 4], 1)
            flag.signal(1)  # ordered after nothing
        else:
            flag.wait_until("==", 1)
            data.get(1)
        world.barrier()

    with pytest.raises(ts.Race, match="test_worlds.py"):
        for seed in range(1, 20):
            ts.simulate(2, body, seed=seed)


def test_a_simulation_finds_loads_and_stores_that_are_announced():
    cells = lambda world: ts.distribution(8, grid=2, overlap=1, edge="toroidal")
    missing = []

    def halo(touch):
        def body(world):
            u = ts.array(world, cells(world), name="u")
            exchange = ts.halo(u)
            with exchange:
                touch(world, u)
            world.reads(u.local, u)

        return body

    def put(waits, touch):
        def body(world):
            x = ts.symmetric(world, (4, 3))
            if world.rank == 0:
                x[1:3, ::2].put(np.ones((2, 2)), 1)
            if waits:
                world.barrier()
            if world.rank == 1:
                touch(world, x.local)
            world.barrier()

        return body

    races = [
        halo(lambda world, u: world.writes(u.local[1:2])),
        halo(lambda world, u: world.reads(u.local[:1])),
        halo(lambda world, u: world.writes(u)),
        put(False, lambda world, x: world.reads(x[1])),
        put(False, lambda world, x: world.writes(x[::-1, 2])),
    ]
    for number, body in enumerate(races):
        with pytest.raises(ts.Race, match=r"test_worlds.py.*simulated with seed 3$"):
            ts.simulate(2, body, seed=3)
            missing.append(number)
    assert not missing
    orders = [
        halo(lambda world, u: world.writes(u.local[2:-2])),
        halo(lambda world, u: world.reads(u.local[1:-1])),
        put(False, lambda world, x: world.writes(x[:, 1], x[0], x[1:1])),
        put(True, lambda world, x: world.writes(x)),
    ]
    for body in orders:
        ts.simulate(2, body, seed=3)
        ts.launch(2, body)


def test_a_simulation_sees_leases_of_arrays():
    def body(world, early):
        data = ts.symmetric(world, 6)
        u = ts.wrap(world, ts.distribution(12, grid=2), data.local, name="u")
        if early and world.rank == 0:
            data.put(np.ones(6), 1)
        if not early:
            world.barrier()
        with u.read():
            pass
        world.barrier()
        if not early and world.rank == 0:
            data.put(np.ones(6), 1)
        world.barrier()

    with pytest.raises(ts.Race, match="a lease to read"):
        ts.simulate(2, lambda world: body(world, True))
    ts.simulate(2, lambda world: body(world, False))


def test_a_simulation_learns_from_a_variable_that_is_polled():
    def body(world):
        data, flag = ts.symmetric(world, 4), ts.symmetric(world, 1, "u8")
        if world.rank == 0:
            data.put([1, 2, 3, 4], 1, signal=flag)
        else:
            while not flag.test("!=", 0):
                pass
            world.acquires(flag)
            world.reads(data)
        world.barrier()

    ts.simulate(2, body)
    with pytest.raises(ts.InvalidUse, match="symmetric"):
        ts.launch(1, lambda world: world.acquires(np.zeros(1)))


def test_what_a_simulated_rank_raises_names_the_seed():
    def body(world):
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        ts.simulate(2, body, seed=11)
    assert caught.value.args == ("mine",)
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["simulated with seed 11"]

    def misuse(world):
        world.broadcast(1, root=9)

    with pytest.raises(ts.InvalidUse, match="; simulated with seed 11$"):
        ts.simulate(2, misuse, seed=11)


FACES = {
    "launch": "ts.launch(lambda world: None)",
    "join": "ts.join()",
    "nvshmem": "import tranship.nvshmem as nvshmem; nvshmem.init()",
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    "variables", [{"OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_SIZE": "3", "PMI_RANK": "0"}, {"SLURM_STEP_NUM_TASKS": "4"}]
)
def test_no_face_becomes_many_worlds_of_one_rank(face, variables):
    def run(**more):
        environment = {**os.environ, **variables, **more}
        program = f"import tranship as ts\n{FACES[face]}\nprint('done')"
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment, check=False
        )

    refused = run()
    assert refused.returncode != 0 and "done" not in refused.stdout
    for name, value in variables.items():
        assert f"{name}={value}" in refused.stderr
    assert "Unsupported" in refused.stderr and "tranship launch -n" in refused.stderr
    assert run(TRANSHIP_SEPARATE_WORLDS="1").stdout.splitlines()[-1:] == ["done"]
    assert run(**{name: "1" if "RANK" not in name else "0" for name in variables}).stdout.splitlines()[-1:] == ["done"]


@pytest.mark.parametrize("kind", ["threads", "processes", "sim"])
def test_a_rank_ends_all_ranks_with_one_status(kind):
    program = """
import sys
import tranship as ts

def main(world):
    sys.stdout.write(f"rank{world.rank}\\n")
    if world.rank == 1:
        world.global_exit(43)
    world.barrier()

try:
    ts.launch(3, main, ranks=sys.argv[1])
except ts.Error as error:
    assert "global_exit(43)" in str(error), error
    sys.exit(43)
"""
    ended = subprocess.run([sys.executable, "-c", program, kind], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 43, ended.stderr
    assert "rank1" in ended.stdout


def test_as_many_teams_as_the_launch_says():
    def body(world):
        teams = [world.split(heap_bytes=1 << 16) for _ in range(80)]
        return [team.all_gather(7) for team in teams][-1]

    assert ts.launch(2, body, teams_max=100) == [[7, 7]] * 2
    with pytest.raises(ts.Unsupported, match="TRANSHIP_TEAMS"):
        ts.launch(2, body)
