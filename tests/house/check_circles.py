#!/usr/bin/env python3
"""Checks that the modules of the Python package import each other in no circle.

usage: check_circles.py REPOSITORY

An import counts wherever it stands: at the top, in a function, or for type checkers alone. Each of them says that one
module needs to know the other. What many modules ask for, such as the rank that calls, belongs into a module that
imports none of them.
"""

import ast
import sys
from pathlib import Path

PACKAGE = "python/tranship"
COMPILED = "._core"  # no file of the source


def modules_of(repository):
    """The path of each module by its name; a package has the name of its folder."""
    root = Path(repository) / PACKAGE
    out = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


def imports_of(name, path, modules):
    """The modules that a module imports, each with the line where it does so first."""
    is_package = path.name == "__init__.py"
    found = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")
            above = above[: len(above) - node.level + is_package] if node.level else []
            source = ".".join(above + ([node.module] if node.module else []))
            # "from . import x" needs the module x, or else what the package itself defines or has compiled.
            inside = [f"{source}.{alias.name}" for alias in node.names]
            named = [one if one in modules or one.endswith(COMPILED) else source for one in inside]
        else:
            continue
        for one in named:
            if one in modules and one != name:
                found[one] = min(node.lineno, found.get(one, node.lineno))
    return found


def circles(edges):
    """Lists of modules that reach each other."""
    number, lowest, stack, out = {}, {}, [], []

    def visit(at):
        number[at] = lowest[at] = len(number)
        stack.append(at)
        for to in sorted(edges[at]):
            if to not in number:
                visit(to)
            if to in stack:
                lowest[at] = min(lowest[at], lowest[to])
        if lowest[at] == number[at]:
            circle = stack[stack.index(at) :]
            del stack[stack.index(at) :]
            if len(circle) > 1:
                out.append(circle)

    for one in sorted(edges):
        if one not in number:
            visit(one)
    return out


def check(repository):
    modules = modules_of(repository)
    edges = {name: imports_of(name, path, modules) for name, path in modules.items()}
    problems = []
    for circle in circles(edges):
        for name in sorted(circle):
            for to, line in sorted(edges[name].items()):
                if to in circle:
                    path = modules[name].relative_to(repository)
                    problems.append(f"{path}:{line}: {name} imports {to}, which needs {name}")
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) if found else "no modules import each other in a circle")
    sys.exit(1 if found else 0)
