"""Back-ends under test: one body, run as ranks of each."""

import os
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


# Where this chooses the stub of hosts, ranks are its processes, and tests of other ranks are left out.
CHOSEN = os.environ.get("TRANSHIP_BACKEND")
if CHOSEN:
    BACKENDS = {"processes": BACKENDS["processes"]}


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
