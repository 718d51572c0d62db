#!/usr/bin/env python3
"""Checks that messages of one thing do not say "1 bytes".

usage: check_amounts.py REPOSITORY

A number and its noun come from amount(n, "byte") of base/amounts.hpp, and of _amounts.py in Python, and never from
"{} bytes" in a format. A limit
("more than {} keys", "at most {} bytes") is a constant that is larger than 1, so it may stand in the format.
"""

import re
import sys
from pathlib import Path

NOUNS = (
    "accesses|arguments|arrays|axes|bits|blocks|boxes|bytes|cells|channels|characters|chunks|columns|comparisons|copies|"
    "devices|dimensions|dims|domains|edges|elements|entries|fields|files|groups|heaps|hosts|ids|indices|instances|items|"
    "keys|kinds|lanes|lines|lists|members|messages|nodes|numbers|operands|others|pages|parts|peers|pieces|points|"
    "processes|programs|quantities|ranks|records|rounds|rows|seeds|segments|semaphores|shards|sides|signs|slices|slots|"
    "specs|steps|stretches|teams|tensors|threads|tiles|times|transfers|units|values|vectors|walks|windows|words"
)
COUNTED = re.compile(r"(?P<before>[\w\" ]{0,12})\{\d?\} (?P<noun>([a-z]+ )?(" + NOUNS + r"))\b")
COUNTED_IN_PYTHON = re.compile(COUNTED.pattern.replace(r"\d?", r"[^{}\"]+"))
LIMIT = re.compile(r"(more than|at most|up to|\b[01] to) $")
OWN_PLURAL = re.compile(r'== 1 \? "(?P<one>\w*)" : "(?P<several>\w*s)"')
IRREGULAR = re.compile(r"\b(amount|counted|plural)\([^\"']*[\"'](?P<one>[\w ]*(s|x|ch|sh|[^aeiou]y))[\"']\)")
# Words between a number and a noun of another one: "{} of elements", "tensor {} has elements".
JOINTS = {"a", "after", "and", "are", "as", "at", "beyond", "between", "for", "from", "has", "have", "holds", "in", "is"}
JOINTS |= {"leaves", "lists", "makes", "of", "on", "or", "share", "takes", "that", "to", "wants", "with", "writes"}

# The placeholder is no number, or one that is never 1.
ALLOWED = {
    ("python/tranship/_arrays.py", "cells"): "a list of numbers",
    ("python/tranship/_elements.py", "bytes"): "numbers",
    ("python/tranship/_pictures.py", "ranks"): "more than 8",
    ("python/tranship/_views.py", "bytes"): "numbers",
    ("python/tranship/ndsl/comm/communicator.py", "points"): "no number",
    ("python/tranship/ndsl/comm/communicator.py", "ranks"): "the words of NDSL",
    ("python/tranship/ndsl/comm/partitioner.py", "ranks"): "the words of NDSL",
    ("python/tranship/nvshmem/core/_runtime.py", "ranks"): "on several machines",
    ("python/tranship/nvshmem/core/_teams.py", "ranks"): "more than the members of a team",
    ("src/tranship/array/ghosts/coherence.cpp", "cells"): "the name of what is accessed",
    ("src/tranship/cli/demo.cpp", "bytes"): "of a map of the world",
    ("src/tranship/cli/demo.cpp", "cells"): "of a map of the world",
    ("src/tranship/cli/program_measure.cpp", "bytes"): "a constant",
    ("src/tranship/fabric/rank_scope.cpp", "bytes"): "a constant",
    ("src/tranship/fabric/shared/shared_world.cpp", "bytes"): "the size of a type",
    ("src/tranship/fabric/sim/simulate_program.cpp", "bytes"): "the size of a type",
    ("src/tranship/fabric/world.cpp", "bytes"): "the largest number",
    ("src/tranship/file/format/safetensors.cpp", "elements"): "the name of a type",
    ("src/tranship/file/format/zip.cpp", "bytes"): "a constant",
    ("src/tranship/memory/ledger.cpp", "bytes"): "a number below 0",
    ("src/tranship/plan/check_plan.cpp", "dimensions"): "the name of a side",
    ("src/tranship/plan/check_plan.cpp", "cells"): "the name of a side",
    ("src/tranship/plan/tiled_fields.cpp", "points"): "a verb",
    ("src/tranship/program/old_plan_file.cpp", "channels"): "the name of a kind",
    ("src/tranship/program/plan_file.cpp", "channels"): "the name of a kind",
    ("src/tranship/program/program.cpp", "channels"): "the name of a kind",
    ("src/tranship/program/language/pairing.cpp", "channels"): "the name of a kind",
    ("src/tranship/run/exchange_schedule.cpp", "bytes"): "a constant",
    ("src/tranship/run/exchange_schedule.cpp", "times"): "a constant",
    ("src/tranship/run/exchange_setup.cpp", "parts"): "words",
    ("src/tranship/view/program_text.cpp", "channels"): "the name of a kind",
}


def check_text(name, text, used=None):
    """All violations in one source, as "name:line: what is wrong". Adds the exceptions that it has needed to `used`."""
    problems = []
    is_python = name.endswith(".py")
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("//", "#")) or (is_python and not re.search(r"\bf[\"']", line)):
            continue
        for match in (COUNTED_IN_PYTHON if is_python else COUNTED).finditer(line):
            words = match["noun"].split()
            if LIMIT.search(match["before"]) or words[0] in JOINTS:
                continue
            if (name, words[-1]) in ALLOWED:
                if used is not None:
                    used.add((name, words[-1]))
                continue
            problems.append(f"{name}:{number}: '{{}} {match['noun']}' says '1 {match['noun']}': take amount(n, ...)")
        for match in IRREGULAR.finditer(line):
            problems.append(f"{name}:{number}: '{match['one']}' takes more than an s: say its plural, too")
        for match in OWN_PLURAL.finditer(line):
            problems.append(f"{name}:{number}: '{match['several']}' beside '{match['one']}': take plural(n, ...)")
    return problems


def check(repository):
    problems, used = [], set()
    for folder, pattern in (("src/tranship", "*.[ch]pp"), ("python/src", "*.[ch]pp"), ("python/tranship", "*.py")):
        for path in sorted((Path(repository) / folder).rglob(pattern)):
            name = path.relative_to(repository).as_posix()
            problems += check_text(name, path.read_text(encoding="utf-8"), used)
    problems += [f"{name}: an exception for '{noun}' that nothing needs" for name, noun in sorted(set(ALLOWED) - used)]
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) if found else "every number and its noun come from amount()")
    sys.exit(1 if found else 0)
