#!/usr/bin/env python3
"""Checks that no static variable of the library is destroyed when the program ends.

usage: check_statics.py NM OBJECT...

A destructor of a program's own static variable may use the library after the library's static variables would be gone:
the order in which they go is the order in which they were first used. An object file that has a static variable with a
destructor names the function that registers it.
"""

import os
import re
import subprocess
import sys

REGISTERS = re.compile(r"^(?P<object>.*?):?\s+U (?P<name>__cxa_atexit|__cxa_thread_atexit(?:_impl)?|atexit)\b")

# One for each thread, which gives its memory back when the thread ends. A flag tells when it is destroyed.
ALLOWED = {("fiber.cpp", "__cxa_thread_atexit"), ("ranks.cpp", "__cxa_thread_atexit")}
# MPI is finalised when the process ends, where this library has initialised it. The folder's sources are one object.
ALLOWED |= {("mpi.cpp", "atexit"), ("mpi_world.cpp", "atexit")}


def problems_in(listing):
    found = []
    for line in listing.splitlines():
        match = REGISTERS.match(line)
        if not match:
            continue
        source = re.sub(r"\.o(bj)?$", "", match["object"].rsplit("/", 1)[-1])
        if (source, match["name"]) not in ALLOWED:
            found.append(f"{source}: a static variable has a destructor ({match['name']}): make it live as long as the process")
    return found


def main(nm, objects):
    listing = ""
    objects = [path for path in objects if os.path.exists(path)]  # a build of some layers has not all of them
    for first in range(0, len(objects), 100):
        run = subprocess.run([nm, "-A", "-u", *objects[first : first + 100]], capture_output=True, text=True)
        if run.returncode != 0:
            print(f"{nm} cannot read the objects: {run.stderr.strip()[:200]}")
            return 77
        listing += run.stdout
    problems = problems_in(listing)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
