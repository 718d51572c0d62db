#!/usr/bin/env python3
"""Checks that every include below src/tranship goes downward, and that a source includes its own header first.

usage: check_includes.py REPOSITORY

A layer is a folder below src/tranship. BELOW is the arch of ARCHITECTURE.md: two columns that rise from base and meet
at lower. A layer may include itself and what BELOW lists for it, and nothing else.
"""

import re
import sys
from pathlib import Path

LEFT = ["layout", "plan", "program"]  # where it is, what moves, how it moves
RIGHT = ["kernels", "lanes", "memory", "fabric"]  # how bytes are copied, by lanes too; where they live; who reaches whom
TOP = ["lower", "run", "collectives", "array", "file", "face", "cli"]

BELOW = {"base": {"base"}}
for column in (LEFT, RIGHT):
    for height, name in enumerate(column):
        BELOW[name] = {"base", *column[: height + 1]}
for height, name in enumerate(TOP):
    BELOW[name] = {"base", *LEFT, *RIGHT, *TOP[: height + 1]}
BELOW["lower"] -= {"memory", "fabric"}  # no ranks, no devices: moves between places
BELOW["file"] -= {"run", "collectives", "array"}  # files have no world
BELOW["view"] = {"base", "layout", "plan", "program", "view"}  # pictures
BELOW["cuda"] = {"base", *RIGHT, "cuda"}  # registers itself with memory: no layer includes it
for name in ("face", "cli"):
    BELOW[name].add("view")

UMBRELLA = "tranship.hpp"  # includes every public layer; only the command line, like any user, may include it
BESIDE_UMBRELLA = "mpi.hpp"  # what programs compile with a vendor's header
ABOVE_UMBRELLA = {"cli", "face"}

# A vendor's header, and the folders that may include it.
VENDOR_HEADERS = [
    (re.compile(r"mpi(-ext)?\.h"), {"mpi"}),
    (re.compile(r"(cuda|cuda_.*|cublas.*|nccl|cooperative_groups)(\.h)?|cuda/.*"), {"cuda"}),
    (re.compile(r"fftw3.*\.h"), {"vsip"}),
]

# Headers so large that one file includes them for all others.
HEAVY_HEADERS = [(re.compile(r"nlohmann/.*"), "base/json.cpp")]

INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def check(repository):
    """All violations below `repository`/src/tranship, as "path:line: what is wrong"."""
    root = Path(repository) / "src" / "tranship"
    problems = []
    for path in sorted(p for p in root.rglob("*") if p.suffix in {".hpp", ".cpp", ".def", ".cu", ".cuh", ".h"}):
        parts = path.relative_to(root).parts
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".hpp" and "#pragma once\n" not in text:
            problems.append(f"{path.relative_to(repository)}:1: no '#pragma once'")
        own = f"tranship/{path.relative_to(root).with_suffix('.hpp')}" if path.suffix == ".cpp" else None
        for at, match in enumerate(INCLUDE.finditer(text)):
            if match.group(2) == own:
                # It is then compiled alone, in every build.
                wrong = None if (at, match.group(1)) == (0, '"') else f'write #include "{own}", before all others'
            else:
                wrong = check_include(parts, match.group(1), match.group(2))
            if wrong:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(f"{path.relative_to(repository)}:{line}: {wrong}")
    return problems


def check_include(parts, quote, included):
    """What is wrong with file `parts` (its path below src/tranship) including `included`, or None."""
    layer = parts[0]
    if parts == (BESIDE_UMBRELLA,):
        return None
    if len(parts) == 1 and layer != UMBRELLA:
        return f"a file belongs to a layer; only {UMBRELLA} and {BESIDE_UMBRELLA} lie in src/tranship itself"
    if layer not in BELOW and layer != UMBRELLA:
        return f"'{layer}' is no layer; the layers are {', '.join(BELOW)}"
    for pattern, folders in VENDOR_HEADERS:
        if pattern.fullmatch(included) and not folders & set(parts[:-1]):
            return f"includes <{included}>, which only a folder named {' or '.join(sorted(folders))} may"
    for pattern, owner in HEAVY_HEADERS:
        if pattern.fullmatch(included) and "/".join(parts) != owner:
            return f"includes <{included}>, which only {owner} may"
    if quote == '"':
        return f'includes "{included}"; write <tranship/...> for all but the header of a source'
    if not included.startswith("tranship/"):
        return None
    target = included.split("/")[1]
    if layer == UMBRELLA:
        return f"the umbrella includes {target}/, a user of it" if target in ABOVE_UMBRELLA else None
    if target == UMBRELLA:
        return None if layer in ABOVE_UMBRELLA else f"{layer}/ includes the umbrella <{included}>, which lies above it"
    if target not in BELOW:
        return f"includes <{included}>: '{target}' is no layer"
    if target not in BELOW[layer]:
        crossing = any(layer in a and target in b for a, b in ((LEFT, RIGHT), (RIGHT, LEFT)))
        return f"{layer}/ includes <{included}>: {'the other column' if crossing else 'upward'}"
    return None


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) if found else "all includes go downward")
    sys.exit(1 if found else 0)
