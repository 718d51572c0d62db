"""Messages about arguments of wrong types have the name of the argument and both types, and nothing of the binding."""

import inspect

import numpy as np
import pytest

import tranship as ts


class Wrong:
    """A type that no function takes."""


BINDING = ("incompatible function", "Invoked with", "nanobind", "_core", "has no attribute")
STARTERS = {"launch", "simulate", "join", "current_world"}
HANDLES = {"Array", "Exchange", "Lease", "Distribution", "Partition", "TransferPlan"}  # are not made by calling the class


def said(call, *args, **named):
    try:
        call(*args, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_no_message_speaks_of_the_binding():
    def body(world):
        d = ts.distribution((4, 4), (1, 1), overlap=1)
        a, b, s = ts.array(world, d), ts.Buffer(4), ts.symmetric(world, 4)
        known = {"world": world, "source": a, "target": a, "tiling": ts.cubed_sphere(4), "spec": a.spec}
        calls = {name: getattr(ts, name) for name in set(ts.__all__) - STARTERS - HANDLES}
        for one in (a, b, s, ts.halo(a), d, world, ts.grid(2, 2), ts.Devices()):
            for name in dir(type(one)):
                is_collective = isinstance(one, ts.World) or isinstance(one, ts.HaloExchange)
                if not name.startswith("_") and not is_collective and callable(getattr(one, name, None)):
                    calls[f"{type(one).__name__}.{name}"] = getattr(one, name)
        tried = 0
        for name, call in calls.items():
            if not callable(call) or (isinstance(call, type) and issubclass(call, BaseException)):
                continue
            try:
                parameters = list(inspect.signature(call).parameters)
            except ValueError:
                parameters = ["first", "second"]
            for count in range(1, len(parameters) + 1):
                before = [known.get(parameter, d) for parameter in parameters[: count - 1]]
                for value in (Wrong(), "x", 1.5, None):
                    text = said(call, *before, value)
                    assert not any(word in text for word in BINDING), (name, count, text)
                    tried += text != ""
        assert tried > 300

    ts.launch(1, body)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda w, d: d.owner("x"), ["'cell'", "tuple[int, ...]", "not str"]),
        (lambda w, d: d.owner(rank=1), ["no argument 'rank'"]),
        (lambda w, d: d.owner(), ["'cell' is missing"]),
        (lambda w, d: d.owner((1, 2), 3), ["2 arguments", "at most 1"]),
        (lambda w, d: d.cell_of(0, local=Wrong()), ["'local'", "tuple[int, ...]", "not Wrong"]),
        (lambda w, d: d.local_of(1.5, (0, 0)), ["'rank' is int, not float"]),
        (lambda w, d: d.local_of(2**40, (0, 0)), ["out of range", "'rank' is int"]),
        (lambda w, d: ts.cyclic("x"), ["'block_size' is int, not str"]),
        (lambda w, d: ts.ArraySpec("f64", 5), ["'distribution' is Distribution, not int"]),
        (lambda w, d: ts.ArraySpec(np.float64(1), d), ["'type' is str, not float64"]),
        (lambda w, d: ts.array(d, d), ["'world' is World, not Distribution"]),
        (lambda w, d: ts.array(w, d, devices=5), ["'devices' is Devices, not int"]),
        (lambda w, d: ts.halo(d), ["'array' is Array, not Distribution"]),
        (lambda w, d: ts.Buffer(3).state(1), ["'device' is str, not int"]),
        (lambda w, d: w.is_reachable("x"), ["'peer' is int, not str"]),
        (lambda w, d: ts.symmetric(w, 4)[:1].put(1.0, None), ["'peer' is int, not None"]),
        (lambda w, d: ts.symmetric(w, 4).all_gather(np.zeros(4)), ["'source' is Symmetric, not ndarray"]),
    ],
)
def test_the_argument_and_both_types_are_named(call, words):
    def body(world):
        text = said(call, world, ts.distribution((4, 4), (1, 1), overlap=1))
        assert text.startswith(("TypeError: ", "InvalidUse: ")) and all(word in text for word in words), text

    ts.launch(1, body)
