#!/usr/bin/env python3
"""Checks that one header of kernels/, or one .cu file, compiles with nvcc; skips (77) where there is no nvcc.

usage: check_nvcc.py --include FOLDER --work FOLDER [--launcher CCACHE] HEADER|FILE.cu
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path


def check(command, folder, name, work):
    """What nvcc says against a header or source; empty when it compiles without a warning."""
    work.mkdir(parents=True, exist_ok=True)
    source = Path(name)
    if source.suffix != ".cu":
        source = work / "alone.cu"
        source.write_text(f"#include <{name}>\n#include <{name}>\n", encoding="utf-8")
    compiled = subprocess.run(
        [*command, "-std=c++20", "-Werror", "all-warnings", "-c", "-I", folder, "-o", str(work / "alone.o"), str(source)],
        capture_output=True,
        text=True,
    )
    return "" if compiled.returncode == 0 else compiled.stdout + compiled.stderr


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--launcher", action="append", default=[])
    parser.add_argument("name")
    given = parser.parse_args()
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not found:
        print("skipped: nvcc is neither on PATH nor in /usr/local/cuda/bin")
        sys.exit(77)
    wrong = check([*given.launcher, found], given.include, given.name, given.work)
    print(wrong or f"{given.name} compiles with {found}")
    sys.exit(1 if wrong else 0)
