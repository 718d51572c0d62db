"""NDSL's answers, and how a rank repeats them: for tests in this process, over ranks of a World and over MPI.

The answers lie in tests/fixtures/ndsl, or all of them in the folder ndsl of TRANSHIP_CONFORMANCE_DIR.
"""

import json
import os
import pathlib

import numpy as np

from tranship.ndsl import Quantity
from tranship.ndsl.quantity.quantity import halo_spec_of

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"


def folder():
    return pathlib.Path(os.environ.get("TRANSHIP_CONFORMANCE_DIR") or FIXTURES) / "ndsl"


def read_json(name):
    path = folder() / name
    return json.loads(path.read_text()) if path.exists() else {}


def families(name):
    """Returns each family of an index with its cases and its arrays, all read: children of this process share them."""
    out = {}
    for family, content in read_json(name).items():
        with np.load(folder() / content["npz"]) as arrays:
            out[family] = (content["cases"], dict(arrays))
    return out


def cube_cases(ranks):
    """Returns the cases with ``ranks`` ranks, and the arrays of all ranks."""
    for cases, arrays in families("cube_index.json").values():
        if cases and cases[0]["ranks"] == ranks:
            return cases, arrays
    return [], {}


class CubeCase:
    """One case, as one rank repeats it."""

    def __init__(self, case, arrays, rank):
        self.case, self.arrays, self.rank = case, arrays, rank

    def value(self, number, when):
        name = f"{self.case['id']}/q{number}_{when}"
        return self.arrays[name][self.rank] if name in self.arrays else self.arrays[f"{name}_r{self.rank}"]

    def quantity(self, number, when):
        q = self.case["quantities"][number]
        own = (q.get("per_rank") or [q] * self.case["ranks"])[self.rank]
        data = np.array(self.value(number, when), dtype=q["dtype"]).reshape(own["shape"])
        return Quantity(data, q["dims"], "", origin=own["origin"], extent=own.get("extent", q["extent"]))

    def check(self, quantities, when):
        for number, quantity in enumerate(quantities):
            expected = np.asarray(self.value(number, when), dtype=quantity.dtype).reshape(quantity.shape)
            if quantity.data.tobytes() != expected.tobytes():
                wrong = np.argwhere(quantity.data != expected)
                raise AssertionError(
                    f"case {self.case['id']} ({self.case['note']}), rank {self.rank}, quantity {number} {when}: "
                    f"{len(wrong)} wrong, the first at {wrong[:1].tolist()}"
                )

    def steps(self, communicator):
        """A generator that pauses where all ranks must have started before one waits."""
        case = self.case
        count, n, n_x = len(case["quantities"]), case["n_points"], case["n_x"]
        q = [self.quantity(number, "before") for number in range(count)]
        x, y = q[:n_x], q[n_x:]
        if case["op"] == "oneshot":
            if case["vector"]:
                updater = communicator.start_vector_halo_update(x, y, n)
            else:
                updater = communicator.start_halo_update(x, n)
            yield
            updater.wait()
        elif case["op"] == "sync":
            request = communicator.start_synchronize_vector_interfaces(x[0], y[0])
            yield
            request.wait()
        elif case["op"] == "two_in_flight":
            scalar = communicator.start_halo_update(q[0], n)
            vector = communicator.start_vector_halo_update(q[1], q[2], n)
            yield
            for updater in (vector, scalar) if "vector waited for first" in case["note"] else (scalar, vector):
                updater.wait()
        else:
            specs = [halo_spec_of(one, n) for one in q]
            if case["vector"]:
                updater = communicator.get_vector_halo_updater(specs[:n_x], specs[n_x:])
            else:
                updater = communicator.get_scalar_halo_updater(specs)
            for step in range(1, case["steps"] + 1):
                if step > 1:
                    yield  # a rank that runs ahead would send the next step before the last one was received
                    fresh = [self.quantity(number, f"before{step}") for number in range(count)]
                    if "the same Quantity objects" in case["note"]:
                        for one, new in zip(q, fresh):
                            one.data[...] = new.data
                    else:
                        q = fresh
                updater.start(q[:n_x], q[n_x:] if case["vector"] else None)
                yield
                updater.wait()
                self.check(q, "after" if step == 1 else f"after{step}")
            return
        self.check(q, "after")

    def run(self, communicator):
        for _ in self.steps(communicator):
            pass


def is_defect(case):
    """Returns True when a case records a defect of NDSL."""
    return "NDSL defect" in case["note"]
