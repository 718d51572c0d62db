"""Back-ends under test: one body, run as ranks of each."""

import atexit
import os
import pathlib
import signal

import numpy as np
import pytest

import tranship as ts


# Shells start what runs in the background deaf to Ctrl-C, and so would be the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _run_simulated(n, body, **options):
    return [ts.simulate(n, body, seed=seed, **options) for seed in (1, 2, 3)][-1]


BACKENDS = {
    "threads": lambda n, body: ts.launch(n, body),
    "processes": lambda n, body: ts.launch(n, body, ranks="processes"),
    "sim": _run_simulated,
    "messaged": lambda n, body: _run_simulated(n, body, peers="messaged"),
    "hosts": lambda n, body: _run_simulated(n, body, ranks_per_host=2),
}


def _run_in_job(n, body):
    """Runs ranks in the first processes of an MPI job. Each process calls this, and gets the results of all ranks."""
    if n > MPI.COMM_WORLD.size:
        pytest.skip(f"it needs {n} ranks, and the job has {MPI.COMM_WORLD.size} processes")
    rank, result, failed = MPI.COMM_WORLD.rank, None, None
    part = MPI.COMM_WORLD.Split(rank >= n, rank)
    if rank < n:
        try:
            with ts.World.from_mpi(part) as world:
                result = body(world)
        except ts.Error as error:
            failed = (type(error), str(error))
        except Exception as error:
            failed = (ts.UserException, f"{type(error).__name__}: {error}")
    part.Free()
    results, failures = MPI.COMM_WORLD.allgather(result)[:n], MPI.COMM_WORLD.allgather(failed)
    # The other ranks fail because one failed by itself: its error is raised.
    found = sorted((kind is ts.PeerLost, rank) for rank, (kind, _) in ((r, f) for r, f in enumerate(failures) if f))
    if found:
        kind, text = failures[found[0][1]]
        error = kind(text)
        error.rank = found[0][1]
        raise error
    return results


# Where this chooses the stub of hosts, or the MPI job of which this process is a part, ranks are those processes, and tests
# of other ranks are left out.
CHOSEN = os.environ.get("TRANSHIP_BACKEND")
if CHOSEN == "job":
    from mpi4py import MPI

    del os.environ["TRANSHIP_BACKEND"]  # it is one of these tests alone
    BACKENDS = {"job": _run_in_job}
elif CHOSEN:
    BACKENDS = {"processes": BACKENDS["processes"]}


def pytest_sessionfinish(exitstatus):
    if CHOSEN == "job":  # at the end of this process: what is told then is in tests/hosts/README.md
        done = pathlib.Path(os.environ["TRANSHIP_TEST_DONE_DIR"]) / str(MPI.COMM_WORLD.rank)
        atexit.register(done.write_text, str(int(exitstatus)))


def pytest_collection_modifyitems(items):
    if CHOSEN:
        items[:] = [item for item in items if "run" in item.fixturenames]


@pytest.fixture(params=list(BACKENDS))
def run(request):
    """``run(n, body)``: what the ranks return, in their order."""
    return BACKENDS[request.param]


@pytest.fixture
def command():
    """The command that starts programs."""
    path = os.environ.get("TRANSHIP_COMMAND")
    if not path:
        pytest.skip("TRANSHIP_COMMAND does not say where the command is")
    return path


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    doctest_namespace.update(ts=ts, np=np, **{name: getattr(ts, name) for name in ts.__all__})
