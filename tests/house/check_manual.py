#!/usr/bin/env python3
"""Checks that docs/man/dri.h.3 shows the calls that dri.h declares, as they are declared, and names its return codes.

usage: check_manual.py REPOSITORY
"""

import re
import sys
from pathlib import Path

HEADER = "src/tranship/face/dri/dri.h"
PAGE = "docs/man/dri.h.3"
CALL = re.compile(r"^(?:int|void \*|const char \*)\s*(DRI_\w+)\([^;]*\);", re.MULTILINE)
CODE = re.compile(r"\bDRI_(?:SUCCESS|ERR_\w+)")


def calls(text):
    return {match.group(1): " ".join(match.group(0).split()) for match in CALL.finditer(text)}


def check(repository):
    header = re.sub(r"/\*.*?\*/", "", (Path(repository) / HEADER).read_text(encoding="utf-8"), flags=re.DOTALL)
    page = (Path(repository) / PAGE).read_text(encoding="utf-8")
    declared, shown = calls(header), calls(page)
    problems = [f"{HEADER}: no calls found"] if not declared else []
    for name in sorted(declared.keys() | shown.keys()):
        if declared.get(name) != shown.get(name):
            problems.append(f"{name}: declared as {declared.get(name)}, but {PAGE} shows {shown.get(name)}")
    codes = set(CODE.findall(header))
    described = set(filter(CODE.fullmatch, re.findall(r"^\.TP\n\.B (\w+)", page, re.MULTILINE)))
    problems += [f"{PAGE}: {code} is missing" for code in sorted(codes - described)]
    problems += [f"{PAGE}: {code} is no return code" for code in sorted(described - codes)]
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) if found else "the manual shows what dri.h declares")
    sys.exit(1 if found else 0)
