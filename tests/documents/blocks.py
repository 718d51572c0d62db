#!/usr/bin/env python3
"""The blocks of code in the documents, and what runs them.

usage: blocks.py check REPOSITORY      says which blocks nothing runs
       blocks.py sources REPOSITORY FOLDER [c]
                                       writes documents.cpp, all C++ of all pages (and documents.c, all C), into FOLDER and
                                       prints the programs in it, each as name,page,line

What runs a block depends on its language, and on HTML comments, which no reader sees:

- cpp: a block with `int main(` is a program, which runs. Any other one is compiled as the body of a function.
- c: is compiled as the body of a function.
- python: runs, after all others of its page and in one namespace with them.
- sh: runs in a folder that all shell blocks of a page share, and its commands must have the options that they are given.
- json: is parsed. Blocks in no language, `text` and `ebnf` are for people.

`<!-- prologue LANGUAGE` and, from the next line on, code: goes before the blocks that follow, up to the next prologue of that
language. C++ and C: declarations before the functions. `<!-- prologue python ranks=4` and `<!-- prologue cpp ranks=4`: the
blocks are one function that runs on each of so many ranks, with `world`; the code of the prologue is its beginning.

Directly above a block:

`<!-- output -->`: it is the output of the block before; a line `...` stands for any lines. (`<!-- prints` below a block, and
from the next line on what it prints, says the same without showing it.)
`<!-- from: PATH -->`: its lines are lines of this file of the repository, which something else runs.
`<!-- fragment: REASON -->`: nothing runs it. The options of commands in it are checked all the same.
"""

import json
import re
import sys
from pathlib import Path

FOR_PEOPLE = {"", "text", "ebnf"}
RUN = {"cpp", "c", "python", "sh", "json"}

FENCE = re.compile(r"```([\w+-]*)\s*$")
COMMENT = re.compile(r"<!--\s*(output|from|fragment)\b:?\s*(.*?)\s*-->\s*$")
PRINTS = re.compile(r"<!--\s*prints\s*$")
PROLOGUE = re.compile(r"<!--\s*prologue (\w+)(?: ranks=(\d+))?\s*$")
MAIN = re.compile(r"^int main\(", re.MULTILINE)
INCLUDE = re.compile(r"^#include [<\"].*$", re.MULTILINE)


class Block:
    def __init__(self, page, line, language, text):
        self.page = page
        self.line = line  # of its first line of code
        self.language = language
        self.text = text
        self.mark = self.said = ""
        self.prologue = None  # the one that holds for it
        self.output = None  # the block with what it prints

    def __str__(self):
        return f"{self.page}:{self.line - 1}"

    def is_program(self):
        return self.language == "cpp" and MAIN.search(self.text) is not None

    def has_output(self):
        ranks = self.prologue is not None and self.prologue.ranks
        return self.runs() and (self.is_program() if self.language == "cpp" else self.language in {"python", "sh"} and not ranks)

    def runs(self):
        """Whether something compiles or runs it."""
        return self.language in RUN and not self.mark


class Prologue:
    def __init__(self, page, line, language, ranks, text):
        self.page, self.line, self.language, self.ranks, self.text = page, line, language, ranks, text


def blocks_of(page, text):
    """The blocks and the prologues of a page, in their order, and what is wrong with them."""
    found, problems, prologues = [], [], {}
    mark = ("", "")
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        begin = PROLOGUE.match(line) or PRINTS.match(line)
        fence = FENCE.match(line)
        if begin or fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n] == ("-->" if begin else "```")), None)
            if end is None:
                problems.append(f"{page}:{at + 1}: has no end")
                break
            inside = "".join(f"{one}\n" for one in lines[at + 1 : end])
            if fence:
                block = Block(page, at + 2, fence.group(1), inside)
                block.mark, block.said = mark
                block.prologue = prologues.get(block.language)
                found.append(block)
            elif begin.re is PROLOGUE:
                language, ranks = begin.groups()
                prologues[language] = Prologue(page, at + 2, language, int(ranks or 0), inside)
                found.append(prologues[language])
                if language not in RUN - {"json"}:
                    problems.append(f"{page}:{at + 1}: there are no prologues of {language}")
            if begin and begin.re is PRINTS or fence and mark[0] == "output":
                before = next((one for one in reversed(found[: -1 if fence else None]) if isinstance(one, Block)), None)
                if before is None or not before.has_output():
                    problems.append(f"{page}:{at + 1}: the block before is not run, and has no output")
                else:
                    before.output = block if fence else Block(page, at + 2, "", inside)
            mark = ("", "")
            at = end
        elif COMMENT.match(line):
            mark = COMMENT.match(line).groups()
        elif line.strip():
            mark = ("", "")
        at += 1
    return found, problems


def pages(repository):
    root = Path(repository)
    names = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (root / "docs").glob("*.md"))]
    return [name for name in names if (root / name).is_file()]


def read(repository, page):
    return blocks_of(page, (Path(repository) / page).read_text(encoding="utf-8"))


def check(repository):
    problems = []
    for page in pages(repository):
        found, wrong = read(repository, page)
        problems += wrong
        for block in found:
            if isinstance(block, Block):
                problems += check_block(Path(repository), block)
    return problems


def check_block(root, block):
    if block.mark == "fragment" and not block.said:
        yield f"{block}: a fragment has a reason"
    elif block.mark == "from":
        path = root / block.said
        if not path.is_file():
            yield f"{block}: {block.said} is no file of the repository"
        elif not contains(path.read_text(encoding="utf-8"), block.text):
            yield f"{block}: {block.said} does not have these lines"
    elif not block.mark and block.language not in RUN | FOR_PEOPLE:
        yield f"{block}: nothing runs {block.language}: say where it is from, or why it is a fragment"
    elif block.runs() and block.language == "c" and MAIN.search(block.text):
        yield f"{block}: programs in C are not run: show lines of one in examples/, with a comment that says from where"
    elif block.runs() and block.language == "json":
        try:
            json.loads(block.text)
        except ValueError as error:
            yield f"{block}: {error}"


def contains(text, part):
    """Whether the lines of `part` follow each other in `text`, wherever they are indented to."""
    lines, wanted = [one.strip() for one in text.splitlines()], [one.strip() for one in part.strip().splitlines()]
    return any(lines[n : n + len(wanted)] == wanted for n in range(len(lines)))


def matches(output, wanted):
    """Whether an output is the one that a page shows, in which a line "..." stands for any lines."""
    pieces = [re.escape(one.rstrip()) if one.strip() != "..." else None for one in wanted.strip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if piece is None else piece + r"[ \t]*\n" for piece in pieces)
    return re.fullmatch(pattern, output.strip("\n") + "\n") is not None


def identifier(page):
    return re.sub(r"\W", "_", page.removeprefix("docs/").removesuffix(".md").lower())


class Source:
    """One source of all blocks of a language: compilers read the headers once."""

    def __init__(self, language):
        self.language = language
        self.includes = set()
        self.parts = []
        self.programs = []  # (name, page, line)

    def code(self, of, text=None):
        text = of.text if text is None else text
        self.includes.update(INCLUDE.findall(text))
        return f'#line {of.line} "{of.page}"\n' + INCLUDE.sub("", text)

    def add_page(self, page, blocks):
        blocks = [block for block in blocks if isinstance(block, Block) and block.language == self.language and block.runs()]
        groups = {}
        for block in blocks:
            if block.is_program():
                self.add_program(block)
            else:
                groups.setdefault(block.prologue, []).append(block)
        for number, (prologue, group) in enumerate(groups.items(), 1):
            name = f"{identifier(page)}_{number}"
            if prologue is not None and prologue.ranks:
                self.add_ranks(name, prologue, group)
            else:
                self.add_bodies(name, prologue, group)

    def add_program(self, block):
        name = f"{identifier(block.page)}_line_{block.line}"
        main = MAIN.search(block.text).start()
        end = re.compile(r"^\}", re.MULTILINE).search(block.text, main).start()
        # A function that is called main, but is not the main one, has to return something.
        text = block.text[:end] + "return 0;" + block.text[end:]
        self.parts.append(f"namespace {name} {{\n{self.code(block, text)}}}\n")
        self.programs.append((name, block.page, block.line))

    def add_ranks(self, name, prologue, group):
        body = self.code(prologue) + "".join(self.code(block) for block in group)
        self.parts.append(
            f"namespace {name} {{\nint main() {{\n  tranship::launch({prologue.ranks}, [](tranship::World& world) {{\n"
            f"static_cast<void>(world);\n{body}  }});\n  return 0;\n}}\n}}\n"
        )
        self.programs.append((name, group[0].page, group[0].line))

    def add_bodies(self, name, prologue, group):
        # What no program calls leaves no code, so what a prologue declares needs no definition.
        before = self.code(prologue) if prologue is not None else ""
        inline = "inline" if self.language == "cpp" else "static inline"
        parameters = "" if self.language == "cpp" else "void"
        functions = "".join(
            f"{inline} void {name}_line_{block.line}({parameters}) {{\n{self.code(block)}}}\n" for block in group
        )
        self.parts.append(f"namespace {name} {{\n{before}{functions}}}\n" if self.language == "cpp" else before + functions)

    def text(self):
        start = "".join(f"{one}\n" for one in sorted(self.includes))
        if self.language == "c":
            return start + "".join(self.parts)
        calls = "".join(f'  if (name == "{name}") return call({name}::main);\n' for name, _, _ in self.programs)
        return (
            "#include <iostream>\n#include <string_view>\n#include <tranship/tranship.hpp>\n" + start + "".join(self.parts)
            + '#line 1 "documents.cpp"\n'
            "static int call(int (*program)()) { return program(); }\n"
            "int main(int argc, char** argv) {\n  const std::string_view name = argc == 2 ? argv[1] : \"\";\n" + calls +
            "  std::cerr << \"no such program: \" << name << '\\n';\n  return 2;\n}\n"
        )


def write_sources(repository, folder, languages):
    for language in languages:
        source = Source(language)
        for page in pages(repository):
            source.add_page(page, read(repository, page)[0])
        path, text = Path(folder) / f"documents.{language}", source.text()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for program in source.programs:
            print(*program, sep=",")


if __name__ == "__main__":
    if sys.argv[1] == "sources":
        write_sources(sys.argv[2], sys.argv[3], ["cpp", *sys.argv[4:]])
    else:
        wrong = check(sys.argv[2])
        print("\n".join(wrong) if wrong else "something runs every block of the documents, or it says why not")
        sys.exit(1 if wrong else 0)
