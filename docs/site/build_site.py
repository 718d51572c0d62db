#!/usr/bin/env python3
"""Builds the site of the documentation, which is read without a network.

usage: build_site.py PYTHON_PACKAGE WORK

PYTHON_PACKAGE is a folder with tranship and the stub of its compiled module; WORK gets the pages as MkDocs takes them
(pages), what Doxygen says (doxygen), the configuration, and the site itself (site). `./do docs` calls it.

A page of the repository keeps its text. Links are turned to where pages go, and a link to another file of the repository,
such as an example or a notebook, leads to a page that shows it. Whatever MkDocs or Doxygen warns of is an error, as is a link of the
finished site that leads nowhere and anything that a browser would load from the network.
"""

import html
import json
import posixpath
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

sys.dont_write_bytecode = True
import cpp_reference  # noqa: E402
import python_reference  # noqa: E402

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
# A list that follows a line of text: GitHub takes it for a list, Markdown proper wants an empty line between them.
CLOSE_LIST = re.compile(r"^(?!\s*(?:[-*|>]|\d+\.)\s|\s*$|  )(.*\n)(?=(?:[-*]|1\.) )", re.MULTILINE)
# A lambda in what a compiler has said: "[](int x)".
NO_LINK = re.compile(r"\](?=\([^)\s\"]+ [^)\"]*\))")
# In the cell of a table, GitHub wants a backslash before the bar of a code span, and Python's Markdown shows it.
ROW = re.compile(r"^\|.*$", re.MULTILINE)
# In the finished site: what can be linked to, what is linked to, and what a browser loads by itself.
ANCHOR = re.compile(r'\b(?:id|name)="([^"]*)"')
LINKED = re.compile(r'<a\b[^>]*\bhref="([^"]*)"')
LOADED = re.compile(r'<(?:(?:script|img|iframe|source)\b[^>]*\bsrc|link\b[^>]*\bhref)="([^"]*)"')
# Two or more columns of code, which GitHub shows side by side: here tabs.
TABLE = re.compile(r"<table>\n<tr>(<th>.*?)</tr>\n<tr><td>\n\n(.*?)\n\n</td></tr>\n</table>", re.DOTALL)
LANGUAGES = {".ipynb": "json", ".cpp": "cpp", ".hpp": "cpp", ".c": "c", ".h": "c", ".py": "python", ".json": "json", ".txt": "text", ".sh": "sh"}
# Tables for people who look something up in them; a search for a word of another page shall not end here.
NOT_SEARCHED = {"docs/gpu-results.md"}
FILE_BYTES_MAX = 100_000


def place_of(path):
    """Where a file or a folder of the repository goes, below the folder of pages."""
    named = {"README.md": "index.md", "ARCHITECTURE.md": "internals/architecture.md",
             "CONTRIBUTING.md": "internals/contributing.md", "CHANGELOG.md": "changelog.md",
             "docs/internals/README.md": "internals/index.md"}
    if path in named:
        return named[path]
    if path.startswith("docs/") and path.endswith((".md", ".png", ".svg")):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"files/{path}/index.md"
    if path.endswith(".md"):
        return f"files/{path}"
    return f"files/{path}.md"


class Pages:
    def __init__(self, folder):
        self.folder = folder
        self.written = set()
        self.waiting = []

    def add(self, path):
        """Writes a page and all that it links to."""
        self.waiting.append(path)
        while self.waiting:
            path = self.waiting.pop()
            if path not in self.written:
                self.written.add(path)
                self.write(path)

    def write(self, path):
        source, target = ROOT / path, self.folder / place_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            target.write_text(self.listing(path), encoding="utf-8")
        elif path.endswith((".png", ".svg")):
            target.write_bytes(source.read_bytes())
        elif path.endswith(".md"):
            text = source.read_text(encoding="utf-8")
            front = "---\nsearch:\n  exclude: true\n---\n" if path in NOT_SEARCHED else ""
            target.write_text(front + self.page(path, text), encoding="utf-8")
        elif path.endswith(".ipynb"):
            target.write_text(self.page(path, notebook(source, path)), encoding="utf-8")
        elif re.search(r"\.[1-8]$", path):
            target.write_text(manual(source), encoding="utf-8")
        else:
            text = source.read_text(encoding="utf-8")
            if len(text) > FILE_BYTES_MAX:
                sys.exit(f"./do docs: {path} has {len(text)} bytes, at most {FILE_BYTES_MAX} are shown: do not link to it")
            fence = f"````{LANGUAGES.get(source.suffix, 'text')}"
            target.write_text(f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n{fence}\n{text.rstrip()}\n````\n", encoding="utf-8")

    def listing(self, path):
        lines = ["---\nsearch:\n  exclude: true\n---", f"# {path}\n"]
        for child in sorted((ROOT / path).iterdir()):
            name = f"{path}/{child.name}"
            if child.is_file() and child.suffix in LANGUAGES and child.name != "CMakeLists.txt":
                self.waiting.append(name)
                lines.append(f"- [{child.name}]({posixpath.relpath(place_of(name), f'files/{path}')})")
        return "\n".join(lines) + "\n"

    def page(self, path, text):
        text = TABLE.sub(tabs, text)
        text = outside(FENCE, text, lambda part: CLOSE_LIST.sub(r"\1\n", part))
        text = outside(CODE, text, lambda part: LINK.sub(lambda match: self.turned(path, match), part))
        text = outside(CODE, text, lambda part: NO_LINK.sub(r"\]", part))
        return ROW.sub(lambda row: re.sub(r"`[^`]*`", lambda code: code.group(0).replace("\\|", "|"), row.group(0)), text)

    def turned(self, path, match):
        name = match.group(2)
        if not name or re.match(r"[a-z]+:", name):
            return match.group(0)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if not (ROOT / target).exists():
            sys.exit(f"./do docs: {path} links to {name}, which does not exist")
        self.waiting.append(target)
        there = posixpath.relpath(place_of(target), posixpath.dirname(place_of(path)) or ".")
        return f"{match.group(1)}{there}{match.group(3) or ''}{match.group(4)}"


def outside(pattern, text, change):
    """Changes what lies between the matches of a pattern."""
    parts, at = [], 0
    for match in pattern.finditer(text):
        parts += [change(text[at : match.start()]), match.group(0)]
        at = match.end()
    return "".join([*parts, change(text[at:])])


def tabs(match):
    titles = re.findall(r"<th>(.*?)</th>", match.group(1))
    cells = match.group(2).split("\n\n</td><td>\n\n")
    made = []
    for title, cell in zip(titles, cells):
        made.append(f'=== "{title}"\n\n' + "\n".join(f"    {line}" if line else "" for line in cell.splitlines()) + "\n")
    return "\n".join(made)


def notebook(source, path):
    """The cells of a notebook, which is saved without outputs, as Markdown."""
    cells = []
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        cells.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    cells.insert(1, f"This page shows the cells of `{path}` without their outputs. Open that file with Jupyter to run them.")
    return "\n\n".join(cells) + "\n"


def manual(source):
    done = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", str(source)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"./do docs: {source} cannot be shown: {done.stderr.strip()}")
    text = re.sub(r"\n\s*\n", "\n", done.stdout)
    return f"# {source.name}\n\n<div class=\"manual\">\n{text}\n</div>\n"


def navigation(pages, cpp, python):
    """The navigation for MkDocs; every page of docs/ is in it."""
    named = set()

    def made_of(entry):
        (title, value), = entry.items()
        if isinstance(value, list):
            return {title: [made_of(inner) for inner in value]}
        if value == "cpp":
            return {title: below("reference/cpp", cpp)}
        if value == "python":
            return {title: below("reference/python", python)}
        if value == "internals":
            layers = sorted(path.stem for path in (ROOT / "docs/internals").glob("*.md") if path.name != "README.md")
            for layer in layers:
                pages.add(f"docs/internals/{layer}.md")
            pages.add("docs/internals/README.md")
            return {title: ["internals/index.md", *({layer: f"internals/{layer}.md"} for layer in layers)]}
        path = value.lstrip("/") if value.startswith("/") else f"docs/{value}"
        if not (ROOT / path).is_file():
            sys.exit(f"./do docs: docs/site/nav.yml names {path}, which does not exist")
        if path in named:
            sys.exit(f"./do docs: docs/site/nav.yml names {path} twice")
        named.add(path)
        pages.add(path)
        return {title: place_of(path)}

    made = [made_of(entry) for entry in yaml.safe_load((SITE / "nav.yml").read_text(encoding="utf-8"))]
    missing = sorted({f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - named)
    if missing:
        sys.exit(f"./do docs: docs/site/nav.yml does not name {', '.join(missing)}")
    return made


def below(folder, entries):
    return [{title: below(folder, value) if isinstance(value, list) else f"{folder}/{value}"} for title, value in entries]


def check(site):
    """Returns the faults of the links of the finished site."""
    texts = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(ANCHOR.findall(text)) for path, text in texts.items()}
    problems = []
    for path, text in sorted(texts.items()):
        problems += [f"{path}: {address} is loaded from the network" for address in set(LOADED.findall(text)) if "//" in address]
        if path == "404.html":
            continue  # its addresses are those of a server
        for link in sorted(set(LINKED.findall(text) + LOADED.findall(text))):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path))) if parts.path else path
            target = "index.html" if target == "." else target
            if target not in texts and not (site / target).is_file():
                problems.append(f"{path}: {link} leads nowhere")
            elif target in texts and parts.fragment and unquote(parts.fragment) not in anchors[target]:
                problems.append(f"{path}: {link}: the page has no such anchor")
    return problems


def main(package, work):
    work = Path(work).resolve()
    folder = work / "pages"
    for name in ("pages", "site", "doxygen"):
        shutil.rmtree(work / name, ignore_errors=True)
    folder.mkdir(parents=True)
    pages = Pages(folder)
    cpp = cpp_reference.make(folder / "reference/cpp", work / "doxygen")
    python = python_reference.make(Path(package), folder / "reference/python")
    nav = navigation(pages, cpp, python)
    for name in ("style.css", "iframe-worker.js"):
        shutil.copy(SITE / name, folder)
    handler = {"paths": [str(Path(package).resolve())], "options": {"extensions": [f"{SITE / 'python_reference.py'}:Docstrings"]}}
    # JSON is YAML as well.
    (work / "mkdocs.yml").write_text(json.dumps({
        "INHERIT": str(SITE / "mkdocs.yml"), "docs_dir": str(folder), "site_dir": str(work / "site"), "nav": nav,
        "plugins": {"mkdocstrings": {"handlers": {"python": handler}}},
    }, indent=1), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(work / "mkdocs.yml")],
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode:
        sys.exit("./do docs: the site was not built")
    problems = check(work / "site")
    if problems:
        sys.exit("\n".join(problems[:50]) + f"\n./do docs: {len(problems)} links of the site are wrong")
    print(work / "site/index.html")


if __name__ == "__main__":
    main(*sys.argv[1:3])
