"""Makes pages of the Python reference, one for each part of the package, and the extension that reads its docstrings.

Docstrings are read from the sources, and what is compiled from its stub; nothing is imported. They say :class:`Array` for
a link and show doctests among their text: `Docstrings`, an extension of Griffe that mkdocs.yml names, turns both into
Markdown.
"""

import re

import griffe

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?([^`]+)`")
DOCTEST = re.compile(r"(?:^[ \t]*>>> .*\n(?:^[ \t]*\S.*\n)*)+", re.MULTILINE)
# Packages with the names of other systems, each on a page of its own.
SYSTEMS = {"ndsl": "NDSL", "nvshmem": "NVSHMEM4Py", "mscclpp": "MSCCL++", "pyop3": "pyop3"}


class Docstrings(griffe.Extension):
    def on_package(self, *, pkg, **kwargs):
        for thing in everything(pkg):
            if thing.is_class:
                thing.bases = [base for base in thing.bases if not str(base).startswith("_")]
            if thing.docstring is not None:
                thing.docstring.value = as_markdown(thing, thing.docstring.value)


def everything(parent):
    yield parent
    for member in list(parent.members.values()):
        if not member.is_alias:
            yield from everything(member)


def as_markdown(thing, text):
    text = ROLE.sub(lambda match: link(thing, match.group(1)), text)
    parts = re.split(r"(?m)^(Examples\n-{3,}\n)", text, maxsplit=1)
    # Doctests of a section are known as such; those before it are not.
    parts[0] = DOCTEST.sub(lambda match: f"```pycon\n{match.group(0)}```\n", parts[0] + "\n").rstrip("\n")
    return parts[0] + "\n\n" * (len(parts) > 1) + "".join(parts[1:])


def link(thing, name):
    """A link to what `name` means where it is written, or the name as code."""
    scope = thing
    while scope is not None:
        found = find(scope, name)
        if found:
            return f"[`{name}`][{found}]"
        scope = scope.parent
    return f"`{name}`"


def find(scope, name):
    for part in name.removeprefix("tranship.").split("."):
        if part.startswith("_") or part not in scope.members:
            return None
        scope = scope.members[part]
        if scope.is_alias:
            try:
                scope = scope.final_target
            except griffe.AliasResolutionError:
                return None
    return scope.path


def make(package, target):
    """Writes the pages into the folder `target`; returns the navigation, [(title, page)]."""
    loaded = griffe.load("tranship", search_paths=[str(package)], resolve_aliases=True, allow_inspection=False)
    target.mkdir(parents=True, exist_ok=True)
    pages, index = [], []
    for name, module in sorted(loaded.modules.items()):
        names = [str(one) for one in module.exports or [] if str(one) in loaded.members]
        if not name.startswith("_") or not names:
            continue
        title = name.removeprefix("_").capitalize()
        page = f"{name.removeprefix('_')}.md"
        said = module.docstring.value if module.docstring else ""
        text = [f"# {title}\n", as_markdown(module, said) + "\n"]
        text += [f"::: tranship.{one}\n" for one in names]
        (target / page).write_text("\n".join(text), encoding="utf-8")
        pages.append((title, page))
        index.append(f"\n## [{title}]({page})\n\n{said.splitlines()[0] if said else ''}\n")
        index += [entry(loaded, one) for one in names]
    for name, title in SYSTEMS.items():
        page = f"{name}.md"
        front = f"---\nsearch:\n  boost: 0.5\n---\n# tranship.{name}\n\n"
        (target / page).write_text(front + "\n".join(system_page(loaded.modules[name])), encoding="utf-8")
        pages.append((title, page))
        said = loaded.modules[name].docstring
        index.append(f"\n## [tranship.{name}]({page})\n\n{said.value.splitlines()[0] if said else ''}\n")
    (target / "index.md").write_text(
        "# Python names\n\nWhat `import tranship as ts` has, part by part.\n" + "\n".join(index), encoding="utf-8")
    return [("All names", "index.md"), *pages]


def entry(loaded, name):
    thing = loaded.members[name]
    said = ""
    try:
        thing = thing.final_target if thing.is_alias else thing
        said = thing.docstring.value.split("\n\n")[0] if thing.docstring else ""
        said = said or (f"the same as `{thing.value}`" if thing.is_attribute and thing.value else "")
    except griffe.AliasResolutionError:
        pass
    said = ROLE.sub(lambda match: f"`{match.group(1)}`", " ".join(said.split()))
    first = re.split(r"(?<=[.;:])\s", said)[0].rstrip(":;.")
    return f"- [`{name}`][{thing.path}]" + (f": {first}" if first else "")


def system_page(module):
    """All public modules of a package, each with its own names."""
    yield f"::: {module.path}\n    options:\n      members: {own_names(module)}\n      show_root_heading: false\n      heading_level: 1\n"
    for name, inner in sorted(module.modules.items()):
        if not name.startswith("_"):
            yield from inner_page(inner)


def inner_page(module):
    names = own_names(module)
    if names:
        yield f"\n## {module.path.removeprefix('tranship.')}\n"
        yield f"::: {module.path}\n    options:\n      members: {names}\n      show_root_heading: false\n      heading_level: 2\n"
    for name, inner in sorted(module.modules.items()):
        if not name.startswith("_"):
            yield from inner_page(inner)


def own_names(module):
    return [name for name, member in module.members.items()
            if not name.startswith("_") and not member.is_alias and not member.is_module]
