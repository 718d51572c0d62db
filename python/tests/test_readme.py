"""The Python of the README runs as it stands there."""

import pathlib
import re
import subprocess
import sys

import pytest

import tranship as ts

README = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
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


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_other_lines_run_in_a_world(block):
    def body(world):
        calls = []
        names = {name: lambda *arrays, name=name: calls.append(name) for name in ("update_interior", "update_edges")}
        exec(block.replace("range(100)", "range(2)"), {"ts": ts, "world": world, **names})
        return calls

    assert ts.launch(4, body)[0] == ["update_interior", "update_edges"] * 2


def test_programs_as_the_documentation_has_them(tmp_path):
    text = (pathlib.Path(__file__).parents[2] / "docs" / "programs.md").read_text()
    program = tmp_path / "documentation.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ts.Program.read(tmp_path / "swap.json").verify()
