#!/usr/bin/env python3
"""Checks that the documents name files and symbols that exist, and that their links lead somewhere.

usage: check_signposts.py REPOSITORY

In ARCHITECTURE.md, CONTRIBUTING.md, docs/concepts.md and docs/internals, a file name in backticks (`plan/halo.cpp`,
`buffer.hpp`) must be a file of the repository: by its path from the root, or by the end of its path. "`symbol` in `file`"
says that the file contains the symbol.

In every document (*.md), a relative link must lead to a file or a folder, and what follows a "#" must be one of its
headings; so must the addresses of HTML (href, src).

ARCHITECTURE.md is read in one sitting, so its size has a limit. Each layer, a folder below src/tranship, has a page in
docs/internals.
"""

import re
import sys
from pathlib import Path

DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/concepts.md"]
INTERNALS = "docs/internals"
ARCHITECTURE_BYTES_MAX = 16 * 1024
FOLDERS = ["src", "tests", "benchmarks", "examples", "docs", "cmake", "python"]

FILE = re.compile(r"`([\w./-]+\.(?:hpp|cpp|def|cu|py|md|cmake))`")
SYMBOL_IN_FILE = re.compile(r"`(\w+)` in\s+`([\w./-]+\.(?:hpp|cpp|def))`")

CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:\]\(|\b(?:href|src)=\")([^)\s\"]+)[)\"]")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


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


def anchors_of(text):
    """The anchors that a Markdown viewer makes of the headings: lower case, no punctuation, hyphens for spaces."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(without_code)}


def check_links(repository, document, text):
    problems = []
    shown = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group(0)), text)
    for match in LINK.finditer(shown):
        if re.match(r"[a-z]+:", match.group(1)):
            continue
        name, _, anchor = match.group(1).partition("#")
        path = Path(repository) / Path(document).parent / name if name else Path(repository) / document
        line = text.count("\n", 0, match.start()) + 1
        if not path.exists():
            problems.append(f"{document}:{line}: the link to {match.group(1)} leads nowhere")
        elif anchor and path.suffix == ".md" and anchor not in anchors_of(path.read_text(encoding="utf-8")):
            problems.append(f"{document}:{line}: {name or document} has no heading '#{anchor}'")
    return problems


def check(repository):
    root = Path(repository)
    paths = paths_of(repository)
    problems = []
    internals = sorted(p.relative_to(root).as_posix() for p in (root / INTERNALS).glob("*.md"))
    for document in DOCUMENTS + internals:
        path = root / document
        if path.is_file():
            problems += check_text(repository, paths, document, path.read_text(encoding="utf-8"))
    for document in sorted(path for path in paths if path.endswith(".md")):
        problems += check_links(repository, document, (root / document).read_text(encoding="utf-8"))
    for layer in sorted(p.name for p in (root / "src" / "tranship").glob("*") if p.is_dir()):
        if f"{INTERNALS}/{layer}.md" not in internals:
            problems.append(f"{INTERNALS}: the layer {layer} has no page")
    architecture = root / "ARCHITECTURE.md"
    if architecture.is_file() and architecture.stat().st_size > ARCHITECTURE_BYTES_MAX:
        problems.append(
            f"ARCHITECTURE.md:1: has {architecture.stat().st_size} bytes, at most {ARCHITECTURE_BYTES_MAX} are allowed: "
            f"decisions belong to {INTERNALS}"
        )
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) if found else "every signpost leads somewhere")
    sys.exit(1 if found else 0)
