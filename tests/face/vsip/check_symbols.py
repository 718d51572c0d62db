#!/usr/bin/env python3
"""Checks that a library defines every function that vsip.h declares, and no other name of VSIPL.

usage: check_symbols.py COMPILER HEADER LIBRARY
"""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(compiler, header, library):
    text = run(compiler, "-E", "-P", "-x", "c++", header)
    # Inline functions have a body; what is left after removing bodies declares.
    text = re.sub(r"static inline[^{;]*\{[^{}]*\}", "", text)
    # What stands before (* is the result of a function that an argument points to.
    declared = set(re.findall(r"\b((?:tranship_)?vsip_\w+)\s*\((?!\s*\*)", text))
    defined = {
        line.split()[-1] for line in run("nm", "--defined-only", library).splitlines() if re.match(r"\w+ T ", line)
    }
    defined = {name for name in defined if re.match(r"(tranship_)?vsip_", name)}
    problems = [f"{name} is declared and not defined" for name in sorted(declared - defined)]
    problems += [f"{name} is defined and not declared" for name in sorted(defined - declared)]
    if len(declared) < 2000:
        problems.append(f"only {len(declared)} declarations were found in {header}")
    print("\n".join(problems) if problems else f"{len(declared)} functions")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
