"""Programs of users pass mypy in its strictest mode."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tranship
import tranship as ts

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def test_examples_are_typed():
    pytest.importorskip("mypy")
    package = pathlib.Path(tranship.__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", os.devnull, *map(str, EXAMPLES)],
        env={**os.environ, "MYPYPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example):
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize("example", [*EXAMPLES, *sorted(FOLDER.glob("*.c*"))], ids=lambda path: path.name)
def test_examples_say_what_they_show_print_and_how_to_run_them(example):
    mark = "# " if example.suffix == ".py" else "// "
    lines = example.read_text(encoding="utf-8").splitlines()[:4]
    assert [line.partition(" ")[2].split(" ")[0] for line in lines[:3]] == ["Shows", "Prints", "Run:"]
    assert all(line.startswith(mark) for line in lines[:3]) and not lines[3].startswith(mark.strip() + " ")
    assert example.name in lines[2] or f"example_{example.stem}" in lines[2]


def test_the_elevation_model_writes_its_picture_and_refuses_what_is_missing(tmp_path):
    heights, folder = tmp_path / "heights.npy", tmp_path / "out"
    np.save(heights, np.add.outer(np.arange(20.0) ** 2, np.arange(30.0)))

    def run(*arguments):
        command = [sys.executable, str(FOLDER / "elevation.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    for arguments, missing in (((heights, folder), folder), ((folder, tmp_path), folder)):
        done = run(*arguments)
        assert done.returncode == 2 and not done.stdout
        assert done.stderr.count("\n") == 1 and "there is no " in done.stderr and str(missing) in done.stderr
    folder.mkdir()
    done = run(heights, folder)
    assert done.returncode == 0, done.stderr
    picture = (folder / "halo.svg").read_text()
    assert "from rank" in picture and "to rank" in picture and " B<" in picture
    assert json.loads((folder / "run.json").read_text())["traceEvents"]


def test_what_calls_return_is_public():
    def body(world):
        d = ts.distribution(8, (1,), overlap=1, edge="toroidal")
        a = ts.array(world, d)
        assert isinstance(world, ts.World) and isinstance(a, ts.Array) and isinstance(d, ts.Distribution)
        assert isinstance(a.spec, ts.ArraySpec) and isinstance(d.grid, ts.Grid)
        assert isinstance(ts.whole(), ts.Partition) and isinstance(d.partition(0), ts.Partition)
        exchange = ts.halo(a)
        assert isinstance(exchange, ts.Exchange) and isinstance(exchange, ts.HaloExchange)
        assert ts.plan_halo([a.spec], 0).explain() == exchange.plan.explain()
        adjoint = ts.RedistributionAdjoint(ts.array(world, ts.distribution(8, 1)), a)
        assert isinstance(adjoint, ts.Exchange)
        assert isinstance(ts.symmetric(world, 1), ts.Symmetric)
        with ts.Buffer(3).write() as view:
            view[:] = 0
        assert isinstance(ts.Buffer(3).write(), ts.Lease)

    ts.launch(1, body)


def test_every_public_name_is_documented_and_tested():
    tests = "".join(p.read_text() for p in pathlib.Path(__file__).parent.glob("test_*.py"))
    tests += (ROOT / "examples" / "halo.py").read_text()
    for name in tranship.__all__:
        public = getattr(tranship, name)
        assert public.__doc__, name
        assert f"ts.{name}" in tests or f"tranship.{name}" in tests, name
