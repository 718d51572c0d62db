#!/usr/bin/env python3
"""Checks that the documents name files and symbols that exist.

usage: check_signposts.py REPOSITORY

In the tables of ARCHITECTURE.md and in CONTRIBUTING.md, a file name in backticks (`plan/halo.cpp`, `buffer.hpp`) must be
a file of the repository: by its path from the root, or by the end of its path. "`symbol` in `file`" says that the file
contains the symbol.
"""

import re
import sys
from pathlib import Path

DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md"]
FOLDERS = ["src", "tests", "benchmarks", "examples", "docs", "cmake", "python"]

FILE = re.compile(r"`([\w./-]+\.(?:hpp|cpp|def|cu|py|md|cmake))`")
SYMBOL_IN_FILE = re.compile(r"`(\w+)` in\s+`([\w./-]+\.(?:hpp|cpp|def))`")


def paths_of(repository):
    root = Path(repository)
    found = [p.relative_to(root).as_posix() for p in root.glob("*") if p.is_file()]
    for folder in FOLDERS:
        found += [p.relative_to(root).as_posix() for p in (root / folder).rglob("*") if p.is_file()]
    return found


def matches(paths, name):
    return [path for path in paths if path == name or path.endswith("/" + name)]


def check_text(repository, paths, document, text):
    problems = []

    def report(match, what):
        line = text.count("\n", 0, match.start()) + 1
        problems.append(f"{document}:{line}: {what}")

    for match in FILE.finditer(text):
        if not matches(paths, match.group(1)):
            report(match, f"`{match.group(1)}` is no file of the repository")
    for match in SYMBOL_IN_FILE.finditer(text):
        symbol, name = match.groups()
        found = matches(paths, name)
        word = re.compile(rf"\b{symbol}\b")
        if found and not any(word.search((Path(repository) / path).read_text(encoding="utf-8")) for path in found):
            report(match, f"`{name}` does not contain `{symbol}`")
    return problems


def check(repository):
    paths = paths_of(repository)
    problems = []
    for document in DOCUMENTS:
        path = Path(repository) / document
        if path.is_file():
            problems += check_text(repository, paths, document, path.read_text(encoding="utf-8"))
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) if found else "every signpost leads somewhere")
    sys.exit(1 if found else 0)
