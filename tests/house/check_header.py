#!/usr/bin/env python3
"""Checks that a header compiles alone, or that headers pull nothing heavy in.

usage: check_header.py --compiler CXX [--launcher CCACHE] --include FOLDER --stamp FILE [--light] HEADER...

Touches FILE where nothing is wrong, and writes FILE.d: what it depends on, as compilers say it. With a compiler cache, what
has been compiled before is not compiled again. With --light, headers are read together, and none may enter what is heavy.
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


def check_alone(compiler, folder, header, work, launcher=()):
    """What is wrong with `header`, as a text that is empty when nothing is, and the files that it includes.

    `work` is a path whose name, with suffixes, the source and what comes of it have.
    """
    source, rule = Path(f"{work}.cpp"), Path(f"{work}.o.d")
    source.write_text(f"#include <{header}>\n", encoding="utf-8")
    command = [*launcher, compiler, *FLAGS, "-I", str(folder), str(source)]
    compiled = subprocess.run(
        [*command, "-c", "-o", f"{work}.o", "-MD", "-MF", str(rule)], capture_output=True, text=True
    )
    if compiled.returncode != 0:
        return f"<{header}> does not compile alone:\n{compiled.stderr}", []
    included = prerequisites(rule.read_text(encoding="utf-8"))
    if not any(path.endswith("/" + header) for path in included):
        return f"the compiler did not say that it entered <{header}>", []
    return "", included


def check_weight(compiler, folder, headers, work):
    """The same for `headers`, which may enter nothing heavy."""
    source = Path(f"{work}.cpp")
    source.write_text("".join(f"#include <{header}>\n" for header in headers), encoding="utf-8")
    # -H writes one line of dots and a path for every header entered.
    command = [compiler, *FLAGS, "-I", str(folder), str(source), "-M", "-H"]
    read = subprocess.run(command, capture_output=True, text=True)
    if read.returncode != 0:
        return f"headers cannot be read:\n{read.stderr}", []
    entered = [line for line in read.stderr.splitlines() if re.match(r"^\.+ ", line)]
    for at, line in enumerate(entered):
        if HEAVY.search(line):
            by_way_of = chain(entered[: at + 1])
            return f"{by_way_of[0].lstrip('. ')} pulls in {line.lstrip('. ')}, by way of:\n" + "\n".join(by_way_of), []
    return "", prerequisites(read.stdout)


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
    parser.add_argument("--stamp", type=Path, required=True)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("headers", nargs="+")
    given = parser.parse_args()
    given.stamp.parent.mkdir(parents=True, exist_ok=True)
    if given.light:
        wrong, included = check_weight(given.compiler, given.include, given.headers, given.stamp)
    else:
        [header] = given.headers
        wrong, included = check_alone(given.compiler, given.include, header, given.stamp, given.launcher)
    if wrong:
        sys.exit(wrong)
    paths = sorted({str(Path(path).absolute()) for path in included} - {f"{given.stamp.absolute()}.cpp"})
    rule = " \\\n".join(path.replace(" ", "\\ ") for path in [f"{given.stamp}:", *paths])
    Path(f"{given.stamp}.d").write_text(rule + "\n", encoding="utf-8")
    given.stamp.touch()
