#!/usr/bin/env python3
"""Checks that one header compiles alone, may be included twice, and (weight "light") pulls nothing heavy in.

usage: check_header.py --compiler CXX --include FOLDER --weight light|any --stamp FILE HEADER

Touches FILE where nothing is wrong, and writes FILE.d: what it depends on, as compilers say it.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# What a public header must not bring along, directly or through others: names of standard headers, folders of libraries.
HEAVY_STANDARD = ["iostream", "functional", "thread", "chrono", "regex", "fstream", "filesystem", "future"]
HEAVY_FOLDERS = ["fmt", "nlohmann", "CLI", "gtest", "boost"]

HEAVY = re.compile(
    rf"/c\+\+/(?:v?\d+(?:\.\d+)*/)?(?:{'|'.join(HEAVY_STANDARD)})$|/include/(?:{'|'.join(HEAVY_FOLDERS)})/"
)


def check(compiler, folder, header, weight):
    """What is wrong with `header`, as a text that is empty when nothing is, and the files that it includes."""
    compiled = subprocess.run(
        [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-unused-function",
         "-fsyntax-only", "-H", "-I", folder, "-x", "c++", "-"],
        input=f"#include <{header}>\n#include <{header}>\n",
        capture_output=True,
        text=True,
    )
    # -H writes one line of dots and a path for every header entered; the rest are diagnostics.
    lines = compiled.stderr.splitlines()
    entered = [line for line in lines if re.match(r"^\.+ ", line)]
    if compiled.returncode != 0:
        diagnostics = [line for line in lines if not re.match(r"^(\.+ |Multiple include guards|/)", line) or ": error" in line]
        return f"<{header}> does not compile alone and twice:\n" + "\n".join(diagnostics), []
    if not any(line.endswith("/" + header) for line in entered):
        return f"the compiler did not say that it entered <{header}>: no includes to check", []
    for at, line in enumerate(entered):
        if weight == "light" and HEAVY.search(line):
            return f"<{header}> pulls in {line.lstrip('. ')}, by way of:\n" + "\n".join(chain(entered[: at + 1])), []
    return "", sorted({line.lstrip(". ") for line in entered})


def chain(entered):
    """The includes that lead to the last of `entered`, outermost first."""
    path, depth = [], len(entered[-1]) + 1
    for line in reversed(entered):
        dots = len(line) - len(line.lstrip("."))
        if dots < depth:
            path.insert(0, line)
            depth = dots
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--weight", choices=["light", "any"], required=True)
    parser.add_argument("--stamp", type=Path, required=True)
    parser.add_argument("header")
    given = parser.parse_args()
    wrong, included = check(given.compiler, given.include, given.header, given.weight)
    if wrong:
        sys.exit(wrong)
    given.stamp.parent.mkdir(parents=True, exist_ok=True)
    rule = " \\\n".join(str(path).replace(" ", "\\ ") for path in [f"{given.stamp}:", *included])
    Path(f"{given.stamp}.d").write_text(rule + "\n", encoding="utf-8")
    given.stamp.touch()
