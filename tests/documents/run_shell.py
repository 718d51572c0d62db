#!/usr/bin/env python3
"""Runs the shell blocks of the documents in empty folders, and compares what they print with what the pages show.

usage: run_shell.py REPOSITORY TRANSHIP

TRANSHIP is the command. Its options, and the commands of `./do`, are checked in all blocks, those that are fragments too.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import blocks

SECONDS_MAX = 60
LINE = re.compile(r"(?:[^\n\\]|\\.|\\\n)+")


class Commands:
    """What `tranship` and `./do` take."""

    def __init__(self, repository, tranship):
        self.tranship = tranship
        self.help = {}
        listed = subprocess.run(["bash", str(Path(repository) / "do"), "help"], capture_output=True, text=True, check=True).stdout
        self.of_do = set(re.findall(r"^  ([a-z]+)", listed, re.MULTILINE))

    def help_of(self, command):
        if command not in self.help:
            done = subprocess.run([self.tranship, command, "--help"], capture_output=True, text=True)
            self.help[command] = done.stdout if done.returncode == 0 else None
        return self.help[command]

    def problems(self, block):
        for line in LINE.finditer(block.text):
            number = block.text.count("\n", 0, line.start())
            try:
                words = shlex.split(line.group(0), comments=True)
            except ValueError:
                continue  # a text of several lines
            for at, word in enumerate(words):
                place = f"{block.page}:{block.line + number}"
                if word == "./do" and at + 1 < len(words) and words[at + 1] not in self.of_do:
                    yield f"{place}: ./do has no command {words[at + 1]}"
                if word == "tranship" and (at == 0 or words[at - 1] in {"&&", "|", ";", "do"}):
                    yield from self.problems_of(place, words[at + 1 :])

    def problems_of(self, place, words):
        if not words or words[0].startswith("-"):
            return
        listed = self.help_of(words[0])
        if listed is None:
            yield f"{place}: tranship has no command {words[0]}"
            return
        known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", listed))
        for word in words[1:]:
            if word in {"|", "&&", ";", ">", "--"}:
                break
            option = word.split("=")[0]
            if re.match(r"--?[A-Za-z]", option) and option not in known:
                yield f"{place}: tranship {words[0]} has no option {option}"
            if words[0] in {"launch", "simulate"} and not word.startswith("-") and not word.isdigit():
                break  # the program, and its own options


def run_page(found, tranship, repository):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PATH": f"{Path(tranship).parent}:{os.environ['PATH']}", "REPOSITORY": str(Path(repository).resolve())}
        for one in found:
            if one.language != "sh" or (isinstance(one, blocks.Block) and not one.runs()):
                continue
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", one.text], cwd=folder, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX)
            place = f"{one.page}:{one.line - 1}"
            if done.returncode:
                yield f"{place}: has failed with {done.returncode}:\n{done.stdout}"
                return
            output = getattr(one, "output", None)
            if output is not None and not blocks.matches(done.stdout, output.text):
                yield f"{place}: prints\n{done.stdout}but {output} shows\n{output.text}"


def main(repository, tranship):
    tranship = str(Path(tranship).resolve())
    commands = Commands(repository, tranship)
    problems = []
    for page in blocks.pages(repository):
        found, wrong = blocks.read(repository, page)
        problems += wrong
        for block in found:
            if isinstance(block, blocks.Block) and block.language == "sh":
                problems += commands.problems(block)
        problems += run_page(found, tranship, repository)
    return problems


if __name__ == "__main__":
    failed = main(*sys.argv[1:3])
    print("\n".join(failed) if failed else "the shell blocks of the documents run")
    sys.exit(1 if failed else 0)
