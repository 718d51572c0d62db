"""The Python of the README and of the other documents runs as it stands there."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tranship as ts

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "documents"))

import blocks  # noqa: E402

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_first_lines_run(tmp_path):
    assert README.index("```python") < README.index("```cpp")
    assert len(BLOCKS[0].splitlines()) <= 16
    program = tmp_path / "readme.py"
    program.write_text(BLOCKS[0])
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "wrong cells: 0\n"), done.stderr


def test_the_check_of_the_first_lines_can_fail(tmp_path):
    program = tmp_path / "readme.py"
    without = re.sub(r"\n    halo\(\).*", "", BLOCKS[0])
    assert without != BLOCKS[0]
    program.write_text(without)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and int(done.stdout.removeprefix("wrong cells: ")) > 50_000, done.stderr


def run_in_a_world(block, names_of):
    def body(world):
        calls = []
        names = {"ts": ts, "np": np, "world": world, **names_of(calls)}
        exec(block.replace("range(100)", "range(3)"), names)
        return calls, names

    return ts.launch(4, body)


def test_a_halo_overlaps_with_work():
    def names_of(calls):
        return {name: lambda *_, name=name: calls.append(name) for name in ("update_interior", "update_edges")}

    assert run_in_a_world(BLOCKS[1], names_of)[0][0] == ["update_interior", "update_edges"] * 3


def test_a_pipe_streams_frames_to_a_collective():
    def names_of(calls):
        def acquire(part):
            calls.append("acquire")
            part[:] = len(calls)

        def analyse(part):
            calls.append("analyse")
            assert part.shape == (512, 256)
            return part.sum()

        return {"acquire": acquire, "analyse": analyse}

    results = run_in_a_world(BLOCKS[2], names_of)
    assert [calls for calls, _ in results] == [["acquire"] * 3] * 2 + [["analyse"] * 3] * 2
    assert [names["total"].tolist() for _, names in results] == [[512 * 512 * (1 + 2 + 3)]] * 4


def test_no_block_is_left_out():
    assert len(BLOCKS) == 3


PAGES = [page for page in blocks.pages(ROOT) if page not in blocks.LATER and "```python" in (ROOT / page).read_text()]


@pytest.mark.parametrize("page", PAGES)
def test_pages_run_as_they_stand(page, tmp_path):
    program = str(ROOT / "tests" / "documents" / "run_python.py")
    package = str(pathlib.Path(ts.__file__).absolute().parents[1])  # that of this process, wherever it was named from
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, program, str(ROOT), page], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
