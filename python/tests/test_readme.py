"""The Python of the README and of the other documents runs as it stands there."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import tranship as ts

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "documents"))

import blocks  # noqa: E402

README = (ROOT / "README.md").read_text()
FIRST = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)


def test_the_first_lines_run(tmp_path):
    assert README.index("```python") < README.index("```cpp")
    assert len(FIRST.splitlines()) <= 16
    program = tmp_path / "readme.py"
    program.write_text(FIRST)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "wrong cells: 0\n"), done.stderr


def test_the_check_of_the_first_lines_can_fail(tmp_path):
    program = tmp_path / "readme.py"
    without = re.sub(r"\n    halo\(\).*", "", FIRST)
    assert without != FIRST
    program.write_text(without)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and int(done.stdout.removeprefix("wrong cells: ")) > 50_000, done.stderr


PAGES = [page for page in blocks.pages(ROOT) if "```python" in (ROOT / page).read_text()]


@pytest.mark.parametrize("page", PAGES)
def test_pages_run_as_they_stand(page, tmp_path):
    program = str(ROOT / "tests" / "documents" / "run_python.py")
    package = str(pathlib.Path(ts.__file__).absolute().parents[1])  # that of this process, wherever it was named from
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, program, str(ROOT), page], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
