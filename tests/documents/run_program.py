#!/usr/bin/env python3
"""Runs one C++ program of the documents, and compares what it prints with what the page shows.

usage: run_program.py REPOSITORY PAGE LINE COMMAND...
"""

import subprocess
import sys

import blocks


def main(repository, page, line, *command):
    block = next(one for one in blocks.read(repository, page)[0] if isinstance(one, blocks.Block) and one.line == int(line))
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, timeout=60)
    if done.returncode:
        sys.exit(f"{block}: has failed with {done.returncode}")
    if block.output is not None and not blocks.matches(done.stdout, block.output.text):
        sys.exit(f"{block}: prints\n{done.stdout}but {block.output} shows\n{block.output.text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
