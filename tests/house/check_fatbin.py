#!/usr/bin/env python3
"""Checks that a fatbin of nvcc has code for each architecture that was asked for, and PTX for newer ones.

usage: check_fatbin.py FATBIN ARCHITECTURE...
"""

import struct
import sys
from pathlib import Path

# A header of a file, and one of each entry, as `fatbinary` writes them: the kind and the architecture are what matters.
FILE = struct.Struct("<IHHQ")
ENTRY = struct.Struct("<HHIQIIHHI")
MAGIC = 0xBA55ED50
KINDS = {1: "PTX", 2: "code"}


def entries(data):
    """Returns {(kind, architecture)}."""
    if len(data) < FILE.size:
        raise ValueError(f"{len(data)} bytes are no fatbin")
    magic, _, at, size = FILE.unpack_from(data)
    if magic != MAGIC or at + size > len(data):
        raise ValueError(f"the magic number {magic:#x} is not {MAGIC:#x}, or {len(data)} bytes are fewer than {at + size}")
    end, out = at + size, set()
    while at + ENTRY.size <= end:
        kind, _, header_size, entry_size, *_, architecture = ENTRY.unpack_from(data, at)
        if header_size < ENTRY.size:
            raise ValueError(f"the entry at byte {at} has a header of {header_size} bytes")
        out.add((KINDS.get(kind, str(kind)), str(architecture)))
        at += header_size + entry_size
    return out


def problems_in(data, wanted):
    found = entries(data)
    missing = [f"{kind} for {architecture}" for architecture in wanted for kind in ("code", "PTX") if (kind, architecture) not in found]
    return [f"there is no {one}; it has {', '.join(sorted(f'{kind} for {of}' for kind, of in found))}" for one in missing]


def main(file, *wanted):
    path = Path(file)
    if not path.exists():
        print(f"there is no {file}: nothing that needs it was built")
        return 77
    problems = problems_in(path.read_bytes(), wanted)
    for problem in problems:
        print(f"{file}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
