#!/usr/bin/env python3
"""Checks that one header compiles alone, may be included twice, and (weight "light") pulls nothing heavy in.

usage: check_header.py --compiler CXX [--launcher CCACHE] --include FOLDER --weight light|any --stamp FILE HEADER

Touches FILE where nothing is wrong, and writes FILE.d: what it depends on, as compilers say it. With a compiler cache, what
has been compiled before is not compiled again.
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

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-unused-function"]


def check(compiler, folder, header, weight, work, launcher=()):
    """What is wrong with `header`, as a text that is empty when nothing is, and the files that it includes.

    `work` is a path whose name, with suffixes, the source and what comes of it have.
    """
    source, rule = Path(f"{work}.cpp"), Path(f"{work}.o.d")
    source.write_text(f"#include <{header}>\n#include <{header}>\n", encoding="utf-8")
    command = [compiler, *FLAGS, "-I", str(folder), str(source)]
    compiled = subprocess.run(
        [*launcher, *command, "-c", "-o", f"{work}.o", "-MD", "-MF", str(rule)], capture_output=True, text=True
    )
    if compiled.returncode != 0:
        return f"<{header}> does not compile alone and twice:\n{compiled.stderr}", []
    included = [str(Path(path).absolute()) for path in prerequisites(rule.read_text(encoding="utf-8"))]
    if not any(path.endswith("/" + header) for path in included):
        return f"the compiler did not say that it entered <{header}>: no includes to check", []
    if weight == "light" and any(HEAVY.search(path) for path in included):
        # -H writes one line of dots and a path for every header entered.
        shown = subprocess.run([*command, "-fsyntax-only", "-H"], capture_output=True, text=True)
        entered = [line for line in shown.stderr.splitlines() if re.match(r"^\.+ ", line)]
        at = next(at for at, line in enumerate(entered) if HEAVY.search(line))
        return f"<{header}> pulls in {entered[at].lstrip('. ')}, by way of:\n" + "\n".join(chain(entered[: at + 1])), []
    return "", sorted({path for path in included if path != str(source.absolute())})


def prerequisites(rule):
    """The paths behind the colon of a rule for make."""
    words = re.findall(r"(?:[^\s\\]|\\[^\n])+", rule.split(": ", 1)[1])
    return [re.sub(r"\\(.)", r"\1", word) for word in words]


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
    parser.add_argument("--launcher", action="append", default=[])
    parser.add_argument("--include", required=True)
    parser.add_argument("--weight", choices=["light", "any"], required=True)
    parser.add_argument("--stamp", type=Path, required=True)
    parser.add_argument("header")
    given = parser.parse_args()
    given.stamp.parent.mkdir(parents=True, exist_ok=True)
    wrong, included = check(given.compiler, given.include, given.header, given.weight, given.stamp, given.launcher)
    if wrong:
        sys.exit(wrong)
    rule = " \\\n".join(str(path).replace(" ", "\\ ") for path in [f"{given.stamp}:", *included])
    Path(f"{given.stamp}.d").write_text(rule + "\n", encoding="utf-8")
    given.stamp.touch()
