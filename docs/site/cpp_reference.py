"""Makes pages of the C++ reference: one for each public header and for each header that it brings along.

Doxygen reads the headers and their `///` comments into XML; `make` turns that into Markdown whose text is HTML, so that
types in declarations are links. What `cmake/public_headers.txt` says of a header is on the page of all headers.
"""

import html
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
LINE_LENGTH_MAX = 84

sys.path.insert(0, str(ROOT / "tests" / "house"))
sys.dont_write_bytecode = True
import check_public  # noqa: E402

TAGS = {"computeroutput": "code", "emphasis": "em", "bold": "strong", "itemizedlist": "ul", "orderedlist": "ol",
        "listitem": "li", "verbatim": "pre", "para": "p", "subscript": "sub", "superscript": "sup"}
SIGNS = {"ndash": "–", "mdash": "—", "linebreak": " ", "nonbreakablespace": " "}
# Comparisons that the language makes say nothing.
SILENT = re.compile(r"operator(==|!=|<=>|<)$")


class Header:
    def __init__(self, path, purpose, start):
        text = (SOURCES / path).read_text(encoding="utf-8")
        head = re.match(r"(?://[^\n]*\n)*", text).group(0)
        head = " ".join(line.removeprefix("//").strip() for line in head.splitlines())
        self.path = path
        self.purpose = purpose  # empty for a header that another one brings along
        self.start = start  # what a program includes to have it
        self.head = head.removeprefix("Detail: ")
        self.lines = text.splitlines()
        self.page = re.sub(r"\.hpp$", "", path.removeprefix("tranship/")).replace("/", "_") + ".md"
        self.entities = []  # (line, kind, element)


def headers_to_show():
    """All headers that a program gets, each with the public one to include for it."""
    includes = {
        path.relative_to(SOURCES).as_posix(): check_public.INCLUDE.findall(path.read_text(encoding="utf-8"))
        for path in SOURCES.joinpath("tranship").rglob("*.hpp")
    }
    purposes = {}
    for line in (ROOT / check_public.LIST).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, _, purpose = line.partition(": ")
            purposes[path] = purpose
    start = {}
    for public in purposes:  # the first of the list is the usual start
        for path in check_public.reached(includes, [public]):
            start.setdefault(path, public)
    return [Header(path, purposes.get(path, ""), start[path]) for path in sorted(start) if path in includes]


def run_doxygen(paths, folder):
    folder.mkdir(parents=True, exist_ok=True)
    settings = (ROOT / "docs/site/Doxyfile").read_text(encoding="utf-8")
    settings += f"OUTPUT_DIRECTORY = {folder}\nINPUT = {' '.join('src/' + path for path in paths)}\n"
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True, cwd=ROOT)
    if done.returncode:
        sys.exit(f"Doxygen found faults in comments of the public headers:\n{done.stderr.strip()}")
    return folder / "xml"


def anchor_of(name):
    return re.sub(r"[^\w.]+", "_", name.removeprefix("tranship::").replace("::", "."))


class Reference:
    def __init__(self, headers, xml):
        self.headers = {header.path: header for header in headers}
        self.places = {}  # identifier of Doxygen: (page, anchor)
        self.compounds = {}
        self.names = []  # (name, kind, place, description) for the index
        for compound in ElementTree.parse(xml / "index.xml").getroot():
            kind, name = compound.get("kind"), compound.findtext("name")
            if kind not in {"class", "struct", "union", "namespace"} or "detail" in name.split("::") or "<" in name:
                continue
            element = ElementTree.parse(xml / f"{compound.get('refid')}.xml").getroot().find("compounddef")
            if kind == "namespace":
                self.add_namespace(element)
            elif name.startswith("tranship::"):
                self.compounds[element.get("id")] = element
        for element in list(self.compounds.values()):
            self.add_compound(element)
        for header in headers:
            header.entities.sort(key=lambda entity: entity[0])

    def place(self, element):
        location = element.find("location")
        return (self.headers.get(location.get("file")), int(location.get("line"))) if location is not None else (None, 0)

    def add_namespace(self, element):
        if not element.findtext("compoundname").startswith("tranship"):
            return
        for member in element.iter("memberdef"):
            header, line = self.place(member)
            if header is None or (SILENT.match(member.findtext("name")) and not is_documented(member)):
                continue
            header.entities.append((line, member.get("kind"), member))
            self.note(member, header, member.findtext("qualifiedname") or member.findtext("name"))

    def add_compound(self, element):
        header, line = self.place(element)
        name = element.findtext("compoundname")
        outer = next((c for c in self.compounds.values() if name.rpartition("::")[0] == c.findtext("compoundname")), None)
        if header is None or element.get("prot") == "private":
            del self.compounds[element.get("id")]
            return
        self.places[element.get("id")] = (header.page, anchor_of(name))
        for member in shown_members(element):
            self.note(member, header, f"{name}::{member.findtext('name')}")
        if outer is None:
            header.entities.append((line, element.get("kind"), element))

    def note(self, member, header, name):
        self.places[member.get("id")] = (header.page, anchor_of(name))
        for value in member.findall("enumvalue"):
            self.places[value.get("id")] = (header.page, anchor_of(f"{name}::{value.findtext('name')}"))

    def inside(self, element):
        """HTML of an element of Doxygen's text, without its own tag."""
        parts = [html.escape(element.text or "", quote=False)]
        for child in element:
            parts += [self.of(child), html.escape(child.tail or "", quote=False)]
        return "".join(parts)

    def of(self, element):
        if element.tag in SIGNS:
            return SIGNS[element.tag]
        if element.tag == "ref":
            text = self.inside(element)  # of `halo.finish()`, Doxygen does not know what halo is
            return text if "." in text else self.link(element.get("refid"), text)
        if element.tag == "ulink":
            return f'<a href="{html.escape(element.get("url"))}">{self.inside(element)}</a>'
        if element.tag not in TAGS:
            sys.exit(f"the C++ reference does not know <{element.tag}> of Doxygen, in: {''.join(element.itertext())}")
        return f"<{TAGS[element.tag]}>{self.inside(element).strip()}</{TAGS[element.tag]}>"

    def link(self, identifier, text):
        if identifier not in self.places:
            return text
        page, anchor = self.places[identifier]
        return f'<a href="{page.replace(".md", ".html")}#{html.escape(anchor)}">{text}</a>'

    def description(self, element):
        return "".join(
            self.of(para) for tag in ("briefdescription", "detaileddescription") for para in element.findall(f"{tag}/*")
        )

    def code(self, element):
        """The HTML of a piece of a declaration, spaced as clang-format does it."""
        if element is None:
            return ""
        links, text = [], element.text or ""
        for child in element:
            links.append(child)
            text += f"\ue000{''.join(child.itertext())}\ue001{child.tail or ''}"
        text = re.sub(r"\s+", " ", text).strip()
        text = re.sub(r"< (?=\S)", "<", text)
        text = re.sub(r"(?<=[\w\ue001>)&*.\]]) >", ">", text)
        text = re.sub(r" ([&*]+)(?=\S)", r"\1 ", text) if not text.startswith("=") else text
        text = re.sub(r" ([&*]+)$", r"\1", text)
        text = re.sub(r"\ue001 ::", "\ue001::", text)
        pieces = html.escape(text, quote=False)
        for child in links:
            pieces = re.sub("\ue000(.*?)\ue001", lambda m: self.link(child.get("refid"), m.group(1)), pieces, count=1)
        return pieces

    def template(self, element):
        found = element.find("templateparamlist")
        if found is None:
            return ""
        parameters = []
        for parameter in found.findall("param"):
            text = self.code(parameter.find("type"))
            name = parameter.findtext("declname")
            if name and not re.search(rf"\b{name}$", text):
                text += f" {name}"
            value = parameter.find("defval")
            parameters.append(text + (f" = {self.code(value)}" if value is not None else ""))
        clause = self.code(element.find("requiresclause"))
        return f"template &lt;{', '.join(parameters)}&gt;\n" + (f"  requires {clause}\n" if clause else "")

    def function(self, member):
        words = [word for word in ("static", "explicit") if member.get(word) == "yes"]
        result = re.sub(r"^(constexpr|inline)\b ?", "", self.code(member.find("type")))
        if member.get("constexpr") == "yes" or "constexpr" in (member.findtext("type") or ""):
            words.append("constexpr")
        if member.get("virt") in {"virtual", "pure-virtual"}:
            words.append("virtual")
        start = " ".join([*words, *([result] if result else []), html.escape(member.findtext("name"), quote=False)])
        parameters = []
        for parameter in member.findall("param"):
            text = self.code(parameter.find("type"))
            name, value = parameter.findtext("declname"), parameter.find("defval")
            array = parameter.findtext("array") or ""
            text += (f" {name}" if name else "") + array
            parameters.append(text + (f" = {self.code(value)}" if value is not None else ""))
        end = html.escape(suffix_of(member.findtext("argsstring") or ""), quote=False)
        line = f"{start}({', '.join(parameters)}){end}"
        if plain_length(line) > LINE_LENGTH_MAX and parameters:
            line = f"{start}(\n    " + ",\n    ".join(parameters) + f"){end}"
        return self.template(member) + line

    def declaration(self, kind, element):
        name = html.escape((element.findtext("compoundname") or element.findtext("name")).removeprefix("tranship::"), quote=False)
        if kind in {"class", "struct", "union"}:
            bases = [self.link(base.get("refid"), html.escape((base.text or "").removeprefix("tranship::"), quote=False))
                     for base in element.findall("basecompoundref") if base.get("prot") == "public"]
            return self.template(element) + f"{kind} {name}" + (f" : {', '.join(bases)}" if bases else "")
        if kind == "function":
            return self.function(element)
        if kind == "typedef":
            return f"{self.template(element)}using {name} = {self.code(element.find('type'))}"
        if kind == "enum":
            under = self.code(element.find("type"))
            return f"enum {'class ' if element.get('strong') == 'yes' else ''}{name}" + (f" : {under}" if under else "")
        value = self.code(element.find("initializer"))
        array = re.sub(r"\s+", "", element.findtext("argsstring") or "")
        static = "static " if element.get("static") == "yes" else ""
        return self.template(element) + f"{static}{self.code(element.find('type'))} {name}{array}" + (f" {value}" if value else "")

    def fields(self, pairs):
        """Members or enumerators with what is said of them."""
        items = "".join(f'<dt id="{anchor}"><code>{code}</code></dt><dd>{text}</dd>' for anchor, code, text in pairs)
        return f'<dl class="fields">{items}</dl>\n' if items else ""

    def enumerators(self, element):
        return self.fields(
            (self.places[value.get("id")][1],
             value.findtext("name") + (f" {self.code(value.find('initializer'))}" if value.find("initializer") is not None else ""),
             self.description(value))
            for value in element.findall("enumvalue")
        )

    def compound(self, header, element, level):
        name = element.findtext("compoundname")
        yield heading(level, name.removeprefix("tranship::"), anchor_of(name))
        yield block(self.declaration(element.get("kind"), element)) + self.description(element)
        inherited = self.inherited(element)
        if inherited:
            yield f"<p><small>Inherited: {', '.join(inherited)}.</small></p>\n"
        members = shown_members(element)
        fields = [member for member in members if member.get("kind") == "variable"]
        if fields:
            yield self.fields((self.places[member.get("id")][1], self.declaration("variable", member), self.description(member))
                              for member in fields)
        notes = notes_of(header, element)
        groups, last = [], None
        for member in members:
            if member.get("kind") == "variable":
                continue
            if member.findtext("name") != last or member.get("kind") == "enum":
                groups.append([])
            groups[-1].append(member)
            last = member.findtext("name")
        seen = set()
        for group in groups:
            line = int(group[0].find("location").get("line"))
            while notes and notes[0][0] < line:
                yield '<div class="note-of-members">' + notes.pop(0)[1] + "</div>"
            member_name = group[0].findtext("name")
            title = "Constructors" if member_name == name.rpartition("::")[2] else member_name
            anchor = anchor_of(f"{name}::{member_name}")
            yield heading(level + 1, title, anchor if anchor not in seen else None)
            seen.add(anchor)
            yield self.overloads(group)
        for inner in self.compounds.values():
            if inner.findtext("compoundname").rpartition("::")[0] == name:
                yield from self.compound(header, inner, level + 1)

    def inherited(self, element):
        """Links to the members that its bases declare, by name."""
        found = {}
        for base in element.findall("basecompoundref"):
            parent = self.compounds.get(base.get("refid"))
            if parent is not None and base.get("prot") == "public":
                own = parent.findtext("compoundname").rpartition("::")[2]
                for member in shown_members(parent):
                    if member.findtext("name") != own:
                        name = html.escape(member.findtext("name"), quote=False)
                        found.setdefault(name, self.link(member.get("id"), f"<code>{name}</code>"))
                for link in self.inherited(parent):
                    found.setdefault(re.sub(r"<[^>]+>", "", link), link)
        return list(found.values())

    def overloads(self, group):
        parts = []
        for member in group:
            text = self.description(member)
            parts.append(block(self.declaration(member.get("kind"), member)))
            if text:
                parts.append(text)
            if member.get("kind") == "enum":
                parts.append(self.enumerators(member))
        return "\n".join(parts)

    def page(self, header):
        yield f"# {header.path.removeprefix('tranship/')}\n"
        yield paragraphs(header.head) + block(f"#include &lt;{header.start}&gt;")
        last = None
        pending = []
        seen = set()

        def flush():
            if pending:
                qualified = pending[0].findtext("qualifiedname") or pending[0].findtext("name")
                anchor = anchor_of(qualified)
                yield heading(2, qualified.removeprefix("tranship::"), anchor if anchor not in seen else None)
                seen.add(anchor)
                yield self.overloads(pending)
                pending.clear()

        for _, kind, element in header.entities:
            name = element.findtext("compoundname") or element.findtext("qualifiedname") or element.findtext("name")
            if name != last:
                yield from flush()
            last = name
            if kind in {"class", "struct", "union"}:
                yield from self.compound(header, element, 2)
            else:
                pending.append(element)
        yield from flush()


def suffix_of(arguments):
    """Returns the text after the parameters: const, noexcept, requires; without =default."""
    depth = 0
    for at, sign in enumerate(arguments):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == ")" and depth == 0:
            rest = re.sub(r"\s*=\s*default|\s*->.*$", "", arguments[at + 1 :]).strip()
            return f" {rest}" if rest else ""
    return ""


def is_documented(element):
    return any("".join(element.find(tag).itertext()).strip() for tag in ("briefdescription", "detaileddescription"))


def shown_members(element):
    return sorted(
        (
            member
            for member in element.iter("memberdef")
            if member.get("prot") == "public" and member.get("kind") in {"function", "variable", "typedef", "enum"}
            and not member.findtext("name").startswith("~")
            and not re.match(r"\s*\(.*\)[^)]*=\s*(delete|default)", member.findtext("argsstring") or "")
            and not (SILENT.match(member.findtext("name")) and not is_documented(member))
        ),
        key=lambda member: int(member.find("location").get("line")),
    )


def notes_of(header, element):
    """Comments in a class that stand before several members: (line, HTML)."""
    location = element.find("location")
    first, last = int(location.get("bodystart") or 0), int(location.get("bodyend") or 0)
    notes, lines, at = [], [], first
    for at in range(first, max(first, last)):
        line = header.lines[at] if at < len(header.lines) else ""
        if re.match(r"  //(?!/)", line) and not re.match(r"  // (NOLINT|clang-format)", line):
            lines.append(line[4:].strip())
        else:
            if re.match(r" (private|protected):", line):
                break
            if lines:
                notes.append((at, paragraphs("\n".join(lines))))
            lines = []
    return notes


def paragraphs(text):
    """HTML of a plain comment: `code` in backticks, and an empty line between paragraphs."""
    made = []
    for paragraph in re.split(r"\n\s*\n| {2,}(?=[A-Z])", text.strip()):
        escaped = html.escape(" ".join(paragraph.split()), quote=False)
        made.append("<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped) + "</p>")
    return "".join(made)


def plain_length(text):
    return len(html.unescape(re.sub(r"<[^>]+>", "", text)))


def heading(level, title, anchor):
    escaped = title.replace("<", "&lt;").replace("*", "\\*")
    return f"\n{'#' * min(level, 6)} {escaped}" + (f" {{ #{anchor} }}" if anchor else "") + "\n"


def block(code):
    return f'<pre class="declaration"><code>{code}</code></pre>\n'


def first_sentence(header):
    text = paragraphs(header.head.split(". ")[0].rstrip(".") + ".")
    return text.removeprefix("<p>").removesuffix("</p>")


def make(target, work):
    """Writes the pages into the folder `target`; returns the navigation, [(title, [(title, page)])]."""
    headers = headers_to_show()
    reference = Reference(headers, run_doxygen([header.path for header in headers], work))
    target.mkdir(parents=True, exist_ok=True)
    headers = [header for header in headers if header.entities or header.purpose]
    sections = {}
    for header in headers:
        text = "\n".join(reference.page(header))
        (target / header.page).write_text(text, encoding="utf-8")
        folder = header.path.removeprefix("tranship/").rpartition("/")[0].split("/")[0] or "start"
        sections.setdefault(folder, []).append((header.path.removeprefix("tranship/").partition("/")[2] or header.path, header.page))
    (target / "index.md").write_text(overview(headers), encoding="utf-8")
    (target / "names.md").write_text(all_names(headers), encoding="utf-8")
    start = sections.pop("start", [])
    return [("Headers", "index.md"), ("All names", "names.md"),
            *((path.removeprefix("tranship/"), page) for path, page in start), *sorted(sections.items())]


def overview(headers):
    rows = ["# C++ headers\n", "A program includes these headers; each brings along what its declarations name. Most programs "
            "include `tranship/tranship.hpp` and nothing else. [All names](names.md) lists classes and functions.\n"]
    by_path = {header.path: header for header in headers}
    for line in (ROOT / check_public.LIST).read_text(encoding="utf-8").splitlines():
        path, _, purpose = line.partition(": ")
        if path in by_path:
            if not rows[-1].startswith("- "):
                rows.append("")
            rows.append(f"- [`{path}`]({by_path[path].page}): {html.escape(purpose, quote=False)}")
        elif line.startswith("# ") and len(line) < 60:
            rows.append(f"\n## {line[2:]}\n")
    usual = [header for header in headers if header.start == "tranship/tranship.hpp" and not header.purpose]
    rows += ["\n## Brought along by `tranship/tranship.hpp`\n"]
    rows += [f"- [`{header.path}`]({header.page}): {first_sentence(header)}" for header in usual]
    return "\n".join(rows) + "\n"


def all_names(headers):
    found = {}
    for header in headers:
        for _, kind, element in header.entities:
            name = element.findtext("compoundname") or element.findtext("qualifiedname") or element.findtext("name")
            found.setdefault(name.removeprefix("tranship::"), (kind, header, anchor_of(name)))
    rows = ["# All names\n", "Classes, functions, types and constants of the namespace `tranship`, by name.\n"]
    letter = None
    for name in sorted(found, key=lambda name: (name.lower(), name)):
        if name[0].upper() != letter:
            letter = name[0].upper()
            rows.append(f"\n## {letter}\n")
        kind, header, anchor = found[name]
        kind = {"typedef": "type", "variable": "constant"}.get(kind, kind)
        escaped = name.replace("<", "&lt;").replace("*", "\\*")
        rows.append(f"- [{escaped}]({header.page}#{anchor}) <small>{kind}, {header.path.removeprefix('tranship/')}</small>")
    return "\n".join(rows) + "\n"
