#!/usr/bin/env python3
"""Runs the Python of one page of the documents, block by block, and compares what it prints with what the page shows.

usage: run_python.py REPOSITORY PAGE
"""

import contextlib
import io
import sys

import blocks
import tranship as ts


def run(of, names):
    printed = io.StringIO()
    code = compile("\n" * (of.line - 1) + of.text, of.page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    output = getattr(of, "output", None)
    if output is not None and not blocks.matches(printed.getvalue(), output.text):
        sys.exit(f"{of}: prints\n{printed.getvalue()}but {output} shows\n{output.text}")


def main(repository, page):
    found, problems = blocks.read(repository, page)
    if problems:
        sys.exit("\n".join(problems))
    names = {"__name__": "documents", "ts": ts}
    groups = {}
    for one in found:
        if one.language == "python" and (isinstance(one, blocks.Prologue) or one.runs()):
            prologue = one if isinstance(one, blocks.Prologue) else one.prologue
            groups.setdefault(prologue, [])
            if one is not prologue:
                groups[prologue].append(one)
    for prologue, group in groups.items():
        parts = ([prologue] if prologue is not None else []) + group
        if prologue is not None and prologue.ranks:

            def on_a_rank(world, parts=parts):
                mine = {**names, "world": world}
                for part in parts:
                    exec(compile("\n" * (part.line - 1) + part.text, part.page, "exec"), mine)

            ts.launch(prologue.ranks, on_a_rank)
        else:
            for part in parts:
                run(part, names)


if __name__ == "__main__":
    main(*sys.argv[1:3])
