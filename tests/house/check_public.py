#!/usr/bin/env python3
"""Checks that what cmake/public_headers.txt lists, what the sources say, and what is installed are the same.

usage: check_public.py REPOSITORY [INCLUDE_FOLDER]

A header below src/tranship (or a .def table) is
- public: listed, one "path: purpose" a line; its first line bears no mark;
- a detail: a public header includes it, directly or through other details; its first line begins with "// Detail: ";
- private: all others; their first line begins with "// Private: ".

In headers that are not private, structs of options keep nothing that they do not own (a FunctionRef), and every member
has an initialiser, so that a program may name the members that it cares for. (An ArraySpec has no default: a program
that leaves it out does not compile.)

With INCLUDE_FOLDER, the folder "include" of an installed copy, that copy holds the public headers and the details, and
nothing else.
"""

import re
import sys
from pathlib import Path

LIST = "cmake/public_headers.txt"
INCLUDE = re.compile(r"^\s*#\s*include\s*<(tranship/[^>]+)>", re.MULTILINE)
OPTIONS = re.compile(r"^struct (\w*Options)\b[^;{]*\{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^ {2}(?!using |friend |static |return |ArraySpec )[^/\n]*[\w>&*\]] (\w+);", re.MULTILINE)
MARK = re.compile(r"// (Detail|Private): \S")


def listed(repository):
    """The paths of the list, and what is wrong with it."""
    paths, problems = [], []
    text = (Path(repository) / LIST).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        path, _, purpose = line.partition(": ")
        if not purpose.strip():
            problems.append(f"{LIST}:{number}: a line is a path, a colon and a purpose")
        elif path in paths:
            problems.append(f"{LIST}:{number}: {path} is listed twice")
        else:
            paths.append(path)
    return paths, problems


def reached(includes, roots):
    """All that `roots` include, directly or not, each with the path by which it was reached first."""
    via = {}
    waiting = [(root, None) for root in roots]
    while waiting:
        path, by = waiting.pop()
        if path not in via:
            via[path] = by
            waiting += [(next_path, path) for next_path in includes.get(path, [])]
    return via


def options_problems(path, text):
    """What is wrong with the structs of options of a header."""
    problems = []
    for struct in OPTIONS.finditer(text):
        name, body = struct.groups()
        first = text.count("\n", 0, struct.start(2)) + 1
        for member in MEMBER.finditer(body):
            line = first + body.count("\n", 0, member.start())
            problems.append(f"src/{path}:{line}: {name}::{member.group(1)} has no initialiser")
        for use in re.finditer("FunctionRef<", body):
            line = first + body.count("\n", 0, use.start())
            problems.append(f"src/{path}:{line}: {name} keeps a FunctionRef, which owns nothing: use Callback")
    return problems


def check(repository, installed=None):
    source = Path(repository) / "src"
    files = sorted(p for p in (source / "tranship").rglob("*") if p.suffix in {".hpp", ".def"})
    texts = {p.relative_to(source).as_posix(): p.read_text(encoding="utf-8") for p in files}
    includes = {path: INCLUDE.findall(text) for path, text in texts.items()}
    public, problems = listed(repository)
    problems += [f"{LIST}: {path} does not exist" for path in public if path not in texts]
    via = reached(includes, public)
    for path, text in texts.items():
        match = MARK.match(text)
        mark = match.group(1) if match else None
        if path in public:
            if mark:
                problems.append(f"src/{path}:1: is listed as public, but marked '// {mark}:'")
        elif path in via and mark != "Detail":
            said = "is marked '// Private:'" if mark else "has no mark"
            problems.append(
                f"src/{path}:1: {via[path]} includes it, which is installed, but it {said}: include less, or begin it "
                "with '// Detail: '"
            )
        elif path not in via and mark != "Private":
            said = "is marked '// Detail:', but no public header needs it" if mark else f"has no mark and is not in {LIST}"
            problems.append(f"src/{path}:1: {said}: begin it with '// Private: '")
    for path in sorted(via):
        problems += options_problems(path, texts.get(path, ""))
    if installed is not None:
        there = {p.relative_to(installed).as_posix() for p in Path(installed, "tranship").rglob("*") if p.is_file()}
        problems += [f"{path} is installed, but no public header needs it" for path in sorted(there - set(via))]
        problems += [f"{path} is not installed (its mark may be newer than the build's configuration)" for path in sorted(set(via) - there)]
    return problems


if __name__ == "__main__":
    found = check(*sys.argv[1:3])
    print("\n".join(found) if found else "the list, the marks and the includes agree")
    sys.exit(1 if found else 0)
