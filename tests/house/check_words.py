#!/usr/bin/env python3
"""Checks the words of the repository.

usage: check_words.py REPOSITORY

No file mentions where or how it was written: no folder of a developer's machine, no host of a package registry, no
tools. Every pattern in PATTERNS is written so that it does not match its own text.

Documents (*.md) and sources (PLAIN_FOLDERS and PLAIN_FILES) name their subject: a sentence says "no rank" or "the caller", and not a
pronoun that the reader has to resolve. They avoid the words in RIDDLES and in PLAIN. The comments of the sources also avoid the beginnings
in BEGINNINGS: a comment is a sentence with a subject and a verb, or a noun phrase. Headings of documents may begin so.
"""

import re
import subprocess
import sys
from pathlib import Path

PATTERNS = [
    (r"(?<![\w.$}])/wor[k]/", "a folder of a developer's machine"),
    (r"\.\.[/]shared", "a folder outside the repository"),
    (r"(?i)\bprom[p]t(s|ed|ing)?\b", "a word of the tools"),
    (r"(?i)\bage[n]ts?\b", "a word of the tools"),
    (r"(?i)\b(deb|archive|security|ports|snapshot)\.(debian|ubuntu)[.](org|com)\b", "a package registry"),
    (r"(?i)\b(pypi|files\.pythonhosted|anaconda)[.]org\b", "a package registry"),
    (r"(?i)\b(registry\.npmjs|proxy\.golang|index\.crates)[.](org|io)\b", "a package registry"),
]

# Pronouns, but for the enumerator of the benchmarks.
BODIES = r"(?i)(?<!Rivals::)\b(no|some|any|every)body\b"

# Words that documents and sources may not contain.
RIDDLES = [
    (BODIES, "a pronoun; name the rank, the caller or the memory"),
    (r"(?i)\bwhoever\b", "a pronoun; name the rank, the caller or the memory"),
    (r"(?i)\bof\s+none\b", "a riddle; say that there is no such thing"),
]

PLAIN = [
    (r"(?i)\bso\s+(much|many)\b", "a riddle; name the number"),
    (r"(?i)\blikewise\b", "a riddle; repeat what is meant"),
    (r"(?i)\blet\s+go\b", "no term; say release, leave or end"),
    (r"(?i)\bis\s+to\s+be\b", "no plain verb; say must, or what is expected"),
]

# Beginnings that comments of sources may not have.
BEGINNINGS = [
    (r"(//[/!]?<?|#|\"\"\") *(What|The same|Of|Whether|As)\b", "no beginning of a sentence; give it a subject and a verb"),
]
PLAIN_FOLDERS = ("src/", "python/tranship/", "python/src/", "benchmarks/", "examples/", "docs/")
PLAIN_FILES = ("do",)

# Exceptions, as a name and a pattern. One file looks for a folder beside the repository; one declares an enumerator.
ALLOWED = {(".ci/run", r"\.\.[/]shared"), ("benchmarks/harness/contest_row.hpp", BODIES)}


def files(repository):
    """Tracked files and new ones that are not ignored."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        check=True,
    )
    return sorted(name for name in listing.stdout.decode().split("\0") if name and (Path(repository) / name).is_file())


def check_text(name, text):
    """All violations in one text, as "name:line: what is wrong"."""
    problems = []
    is_document = name.endswith(".md")
    is_source = not is_document and (name.startswith(PLAIN_FOLDERS) or name in PLAIN_FILES)
    words = RIDDLES + PLAIN if is_document or is_source else []
    for pattern, what in PATTERNS + words + (BEGINNINGS if is_source else []):
        if (name, pattern) in ALLOWED:
            continue
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{name}:{line}: '{match.group(0)}' is {what}")
    return problems


def check(repository):
    problems = []
    for name in files(repository):
        problems += check_text(name, name)
        problems += check_text(name, (Path(repository) / name).read_text(encoding="utf-8", errors="replace"))
    return problems


if __name__ == "__main__":
    if not (Path(sys.argv[1]) / ".git").exists():
        print("skipped: not a git work tree, so nothing says which files belong to the project")
        sys.exit(77)
    found = check(sys.argv[1])
    print("\n".join(found) if found else "every file speaks of the project alone, and documents and sources name their subjects")
    sys.exit(1 if found else 0)
