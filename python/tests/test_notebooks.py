"""The notebooks of examples/notebooks, executed by plain Python: their results are asserted in their cells."""

import ast
import contextlib
import io
import json
import linecache
import os
import pathlib
import re

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(notebook):
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def execute(source, name, names):
    """Executes a cell. A value in its last line is shown, as a notebook does."""
    linecache.cache[name] = len(source), None, source.splitlines(True), name  # so that failures show their line
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is None:
        return
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    show = getattr(value, "_repr_html_", None)
    assert show is None or "<" in show()
    if value is not None:
        print(value)


def test_all_notebooks_are_found():
    assert [path.stem for path in NOTEBOOKS] == ["buffer_ledger", "layouts_and_halos", "program_proved_and_predicted"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_short_and_saved_without_outputs(notebook):
    cells = cells_of(notebook)
    assert 8 <= len(cells) <= 14 and cells[0]["source"][0].startswith("# ")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "assert " in "".join(code[-1]["source"])
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_notebooks_lead_to_files(notebook):
    text = "".join("".join(cell["source"]) for cell in cells_of(notebook) if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\(([^)#\s]+)", text)
    assert links and all((FOLDER / link).is_file() for link in links)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook, monkeypatch, request):
    code = ["".join(cell["source"]) for cell in cells_of(notebook) if cell["cell_type"] == "code"]
    if any('"tranship"' in source for source in code):
        command = pathlib.Path(request.getfixturevalue("command")).resolve()
        monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(notebook.parent)
    names = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for number, source in enumerate(code, 1):
            execute(source, f"{notebook.name}, code cell {number}", names)
    assert said.getvalue()
