"""Processes that were started apart and join one world by an id: programs of their own, as people run them."""

import signal
import subprocess
import sys
import threading

import pytest

import tranship as ts

PROGRAM = """
import os, signal, sys
import tranship as ts

def the_id():
    # The first line of input is the id; an empty one asks this process to make it.
    line = sys.stdin.readline().strip()
    if line:
        return bytes.fromhex(line)
    made = ts.world_id()
    print(made.hex(), flush=True)
    return made

rank, size = int(sys.argv[1]), int(sys.argv[2])
id = the_id()
"""


def ended(process):
    """Returns a process's output since it was last read, and its errors. (communicate() would lose the text that
    readline() has read ahead.)"""
    process.wait(timeout=60)
    return process.stdout.read(), process.stderr.read()


class Ranks:
    """Processes of one program; the one at place ``maker`` makes the id."""

    def __init__(self, count, body, *, maker=0, ranks=None):
        ranks = ranks or range(count)
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM + body, str(rank), str(count)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in ranks
        ]
        makers = self.processes[maker]
        makers.stdin.write("\n")
        makers.stdin.flush()
        self.id = makers.stdout.readline().strip()
        for process in self.processes:
            if process is not makers:
                process.stdin.write(self.id + "\n")
                process.stdin.flush()

    def ends(self):
        """Returns the exit code, the output and the errors of each process."""
        out = []
        for process in self.processes:
            printed, errors = ended(process)
            out.append((process.returncode, printed, errors))
        return out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.communicate()


def run(count, body, **options):
    with Ranks(count, body, **options) as ranks:
        return ranks.ends()


@pytest.mark.parametrize("maker", [0, 2])
def test_programs_join_and_leave(maker):
    body = """
with ts.join(id, rank, size, timeout=30, heap_bytes=1 << 22) as world:
    assert ts.current_world() is world and (world.rank, world.size) == (rank, size)
    assert world.timeout == 30
    rows = ts.distribution((6, 6), grid=(3, 1))
    a = ts.array(world, rows)
    a.fill(lambda i, j: 10 * i + j)
    b = ts.redistribute(a, ts.distribution((6, 6), grid=(1, 3)))
    print(b.local[:, 0].tolist())
for call in (lambda: world.rank, world.barrier, world.leave, ts.current_world, world.__enter__):
    try:
        call()
    except ts.InvalidUse:
        continue
    raise SystemExit("the world was left")
assert b.local[1, 0] >= 10   # views keep the memory
"""
    ends = run(3, body, maker=maker)
    for rank, (code, printed, errors) in enumerate(ends):
        assert code == 0, errors
        assert printed.splitlines()[-1] == str([10.0 * i + 2 * rank for i in range(6)])


def test_leaves_when_the_program_ends():
    body = """
world = ts.join(id, rank, size)
u = ts.array(world, ts.distribution((6,), grid=(3,)))
world.barrier()
if rank != 0:
    raise SystemExit(0)
while not (world.has_ended(1) and world.has_ended(2)):
    pass
print(world.activity_of(1), world.activity_of(2))
"""
    ends = run(3, body)
    assert [code for code, _, _ in ends] == [0, 0, 0], ends
    assert ends[0][1].splitlines()[-1] == "finished finished"


@pytest.mark.parametrize(
    "ending, says",
    [
        ("raise KeyError('salt')", "rank 1 failed: KeyError: 'salt'"),
        ("with world: raise KeyError('salt')", "rank 1 failed: KeyError: 'salt'"),
        ("with world: sys.exit(3)", "rank 1 failed: SystemExit: 3"),
        ("raise KeyboardInterrupt", "rank 1 failed: KeyboardInterrupt"),
        ("os._exit(0)", "rank 1 failed: process "),
        ("os.kill(os.getpid(), signal.SIGKILL)", "has ended without leaving the world"),
        ("with world: sys.exit(0)", "rank 1 has finished, but rank "),
        ("world.leave()", "rank 1 has finished, but rank "),
        ("sys.exit(3)", "rank 1 has finished, but rank "),  # cannot be told from a normal end
    ],
)
def test_the_others_learn_how_a_program_has_ended(ending, says):
    body = f"""
world = ts.join(id, rank, size, timeout=float("inf"))
world.barrier()
if rank == 1:
    {ending}
else:
    try:
        world.barrier()
    except ts.PeerLost as error:
        assert error.peer == 1, error.peer
        print(error)
        world.leave()
"""
    code, printed, errors = run(2, body, maker=1)[0]
    assert code == 0 and says in printed, printed + errors


def test_a_killed_program_is_named_with_its_process():
    body = """
world = ts.join(id, rank, size, timeout=float("inf"))
world.barrier()
print("ready", flush=True)
try:
    world.barrier() if rank != 2 else signal.pause()
except ts.PeerLost as error:
    print(error)
"""
    with Ranks(3, body, maker=2) as ranks:
        for process in ranks.processes:
            assert process.stdout.readline() == "ready\n"
        ranks.processes[2].send_signal(signal.SIGKILL)
        for process in ranks.processes[:2]:
            printed, errors = ended(process)
            says = f"rank 2 failed: process {ranks.processes[2].pid} has ended without leaving the world"
            assert says in printed, printed + errors


def test_ctrl_c_ends_joining():
    body = """
try:
    print("ready", flush=True)
    ts.join(id, rank, size + 1, timeout=float("inf"))
except KeyboardInterrupt:
    print("interrupted")
except ts.PeerLost as error:
    print(error)
"""
    with Ranks(2, body) as ranks:
        for process in reversed(ranks.processes):
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            printed, errors = ended(process)
            # The other one may have heard already that this one has given up.
            assert printed == "interrupted\n" or (rank_1_has_given_up(printed) and process is ranks.processes[0])


def rank_1_has_given_up(printed):
    return "rank 1 (process " in printed and "has ended or given up before all 3 ranks had joined" in printed


def test_ctrl_c_ends_waits():
    body = """
with ts.join(id, rank, size, timeout=float("inf")) as world:
    print("ready", flush=True)
    if rank == 0:
        world.barrier()  # to which rank 1 does not come before rank 0 has ended
    while not world.has_ended(0):
        pass
    try:
        world.barrier()  # to this one rank 0 has come
        world.barrier()
    except ts.PeerLost as error:
        print(error)
"""
    with Ranks(2, body) as ranks:
        for process in ranks.processes:
            assert process.stdout.readline() == "ready\n"
        ranks.processes[0].send_signal(signal.SIGINT)
        ends = [ended(process) for process in ranks.processes]
    assert "KeyboardInterrupt" in ends[0][1], ends
    assert "rank 0 failed: KeyboardInterrupt" in ends[1][0], ends


def test_joins_one_world_after_the_other():
    body = """
world = ts.join(id, rank, size)
next_id = world.broadcast(ts.world_id() if rank == 1 else None, root=1)
world.leave()
with ts.join(next_id, size - 1 - rank, size) as world:
    print(world.all_gather(rank))
for again in (id, next_id):
    try:
        ts.join(again, rank, size)
    except ts.InvalidUse as error:
        assert "an id is used once" in str(error), error
    else:
        raise SystemExit("joined again")
"""
    for code, printed, errors in run(3, body):
        assert code == 0, errors
        assert printed.splitlines()[-1] == "[2, 1, 0]"


def test_missing_and_contradicting_ranks_are_named():
    body = """
print("ready", flush=True)
sys.stdin.readline()
try:
    ts.join(id, rank, 4, timeout=1)
except ts.TimeoutError as error:
    print(error)
"""
    with Ranks(2, body, ranks=[3, 1]) as ranks:
        for process in ranks.processes:
            assert process.stdout.readline() == "ready\n"
        for process in ranks.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        for code, printed, errors in ranks.ends():
            assert "ranks 0 and 2 of 4 have not joined within 1 s" in printed, printed + errors
    body = """
try:
    ts.join(id, 1, 4)
except ts.Mismatch as error:
    print(error)
"""
    for code, printed, errors in run(2, body):
        assert "two processes join as rank 1 of 4: process " in printed, printed + errors


def test_a_child_of_a_rank_is_no_rank():
    body = """
with ts.join(id, rank, size) as world:
    a = ts.array(world, ts.distribution((4,), grid=(2,)))
    a.local[:] = 7
    child = os.fork()
    if child == 0:
        try:
            ts.current_world()
        except ts.InvalidUse:
            del a
            sys.exit(0)   # unwinds the block, and calls what was registered for the end
    assert os.waitpid(child, 0)[1] == 0
    world.barrier()
    print(world.all_gather(a.local.tolist()))
"""
    for code, printed, errors in run(2, body):
        assert code == 0, errors
        assert printed.splitlines()[-1] == "[[7.0, 7.0], [7.0, 7.0]]"


def test_what_tranship_launch_has_started_is_joined_without_an_id(command, tmp_path):
    program = tmp_path / "ring.py"
    program.write_text(
        "import tranship as ts\n"
        "with ts.join(timeout=30) as world:\n"
        "    print(world.all_gather(world.rank * 10), flush=True)\n"
    )
    done = subprocess.run(
        [command, "launch", "-n", "3", sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[0, 10, 20]") == 3
    simulated = subprocess.run(
        [command, "simulate", "-n", "2", sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    assert simulated.returncode != 0 and "launch(f) can be simulated" in simulated.stderr, simulated.stderr


def test_calls_that_are_wrong():
    id = ts.world_id()
    assert isinstance(id, bytes) and len(id) == 64 and id != ts.world_id()
    for arguments in ((None, 0, 1), (None, None, 2), (id,), (id, 0), (id, None, 1), (id, 1, 1), (id, -1, 2), (id, 0, 0)):
        with pytest.raises(ts.InvalidUse):
            ts.join(*arguments)
    for wrong in (b"", id[:-1], id + b"x", bytes(64), bytes(reversed(id))):
        with pytest.raises(ts.InvalidUse):
            ts.join(wrong, 0, 1)
    with pytest.raises(TypeError):
        ts.join(id.hex(), 0, 1)
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ts.InvalidUse):
            ts.join(id, 0, 1, timeout=timeout)
    with pytest.raises(ts.InvalidUse):
        ts.join(heap_bytes=1 << 20)
    with ts.join(id, 0, 1) as world:  # none of that has used it
        with pytest.raises(ts.InvalidUse, match="rank 0 of a world of 1"):
            ts.join()
        errors = []

        def elsewhere():
            for call in (world.leave, ts.join):
                try:
                    call()
                except ts.InvalidUse as error:
                    errors.append(str(error))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert len(errors) == 2, errors
    with pytest.raises(ts.InvalidUse):
        ts.launch(1, lambda world: world.leave())
    with pytest.raises(ts.InvalidUse):
        ts.launch(2, lambda world: ts.join())


def test_what_lives_in_the_world_ends_with_it():
    world = ts.join()
    distribution = ts.distribution((8,), grid=(1,))
    a, b = ts.array(world, distribution), ts.array(world, distribution)
    turn = ts.Redistribution(a, b)
    word = ts.symmetric(world, 1, "i8")
    sub = world.split()
    world.leave()
    for call in (turn, sub.barrier, lambda: word.fetch_add(0, 1), lambda: ts.array(world, distribution)):
        with pytest.raises(ts.InvalidUse):
            call()
    assert not a.local.any()
    assert repr(world) == "<a world that has ended>"
