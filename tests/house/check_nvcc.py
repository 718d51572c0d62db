#!/usr/bin/env python3
"""Checks that one header of kernels/, or one .cu file, compiles with nvcc; skips (77) where there is no nvcc.

usage: check_nvcc.py --include FOLDER HEADER|FILE.cu
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def check(nvcc, folder, name):
    """What nvcc says against a header or source; empty when it compiles without a warning."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(name)
        if source.suffix != ".cu":
            source = Path(scratch) / "alone.cu"
            source.write_text(f"#include <{name}>\n#include <{name}>\n", encoding="utf-8")
        compiled = subprocess.run(
            [nvcc, "-std=c++20", "-Werror", "all-warnings", "-c", "-I", folder, "-o", str(Path(scratch) / "alone.o"), str(source)],
            capture_output=True,
            text=True,
        )
    return "" if compiled.returncode == 0 else compiled.stdout + compiled.stderr


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("name")
    given = parser.parse_args()
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not found:
        print("skipped: nvcc is neither on PATH nor in /usr/local/cuda/bin")
        sys.exit(77)
    wrong = check(found, given.include, given.name)
    print(wrong or f"{given.name} compiles with {found}")
    sys.exit(1 if wrong else 0)
