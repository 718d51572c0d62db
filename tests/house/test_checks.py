#!/usr/bin/env python3
"""A check that cannot fail is no check: every rule of the house is broken here on purpose and must be caught."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_amounts
import check_circles
import check_fatbin
import check_header
import check_includes
import check_manual
import check_public
import check_signposts
import check_statics
import check_words

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "documents"))

import blocks  # noqa: E402
import run_shell  # noqa: E402


class Folder(unittest.TestCase):
    """Gives every test a folder of files of its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Statics(unittest.TestCase):
    def test_a_destructor_at_exit(self):
        listing = "a/b.cpp.o:                 U malloc\na/b.cpp.o:                 U __cxa_atexit\n"
        found = check_statics.problems_in(listing)
        self.assertEqual(len(found), 1, found)
        self.assertIn("b.cpp: a static variable", found[0])

    def test_a_destructor_of_each_thread(self):
        self.assertEqual(len(check_statics.problems_in("b.cpp.o:   U __cxa_thread_atexit@GLIBC_2.18\n")), 1)
        self.assertEqual(check_statics.problems_in("x/fiber.cpp.o:   U __cxa_thread_atexit\n"), [])

    def test_others_are_fine(self):
        self.assertEqual(check_statics.problems_in("b.cpp.o:   U atexit_of_mine\nb.cpp.o:   U __cxa_guard_acquire\n"), [])


class Fatbin(unittest.TestCase):
    @staticmethod
    def fatbin(*entries):
        body = b"".join(check_fatbin.ENTRY.pack(kind, 257, 64, 8, 0, 0, 0, 0, architecture) + bytes(64 - check_fatbin.ENTRY.size + 8)
                        for kind, architecture in entries)
        return check_fatbin.FILE.pack(check_fatbin.MAGIC, 1, 16, len(body)) + body

    def test_all_is_there(self):
        self.assertEqual(check_fatbin.problems_in(self.fatbin((2, 80), (1, 80), (2, 90), (1, 90)), ("80", "90")), [])

    def test_code_of_an_architecture_is_missing(self):
        found = check_fatbin.problems_in(self.fatbin((2, 80), (1, 80), (1, 90)), ("80", "90"))
        self.assertEqual(found, ["there is no code for 90; it has PTX for 80, PTX for 90, code for 80"])

    def test_other_files(self):
        for data in (b"", b"x" * 100, self.fatbin((2, 80))[:-1], check_fatbin.FILE.pack(check_fatbin.MAGIC, 1, 16, 40) + bytes(40)):
            with self.assertRaises(ValueError):
                check_fatbin.problems_in(data, ("80",))


class Includes(Folder):
    def problems(self, name, *includes):
        self.write(f"src/tranship/{name}", "#pragma once\n" + "".join(f"#include {i}\n" for i in includes))
        return check_includes.check(self.root)

    def assert_caught(self, name, include, words):
        found = self.problems(name, include)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"src/tranship/{name}:2: ", found[0])
        self.assertIn(words, found[0])

    def test_downward_is_fine(self):
        self.assertEqual(self.problems("plan/a.hpp", "<vector>", "<tranship/layout/b.hpp>", "<tranship/base/c.hpp>"), [])
        self.assertEqual(self.problems("run/a.cpp", "<tranship/plan/b.hpp>", "<tranship/fabric/threads/c.hpp>"), [])
        self.assertEqual(self.problems("file/a.cpp", "<tranship/lower/b.hpp>"), [])
        self.assertEqual(self.problems("cli/main.cpp", "<tranship/tranship.hpp>", "<tranship/file/format/npy.hpp>"), [])
        self.assertEqual(self.problems("tranship.hpp", "<tranship/array/b.hpp>"), [])
        self.assertEqual(self.problems("fabric/mpi/world.cpp", "<mpi.h>"), [])
        self.assertEqual(self.problems("base/json.cpp", "<nlohmann/json.hpp>"), [])

    def test_upward(self):
        self.assert_caught("base/a.hpp", "<tranship/layout/b.hpp>", "upward")

    def test_upward_within_a_column(self):
        self.assert_caught("layout/a.cpp", "<tranship/plan/b.hpp>", "upward")

    def test_array_does_not_know_files(self):
        self.assert_caught("array/a.cpp", "<tranship/file/b.hpp>", "upward")

    def test_files_have_no_world(self):
        self.assert_caught("file/a.cpp", "<tranship/run/b.hpp>", "upward")

    def test_what_is_lowered_has_no_ranks(self):
        self.assert_caught("lower/a.cpp", "<tranship/fabric/b.hpp>", "upward")

    def test_pictures_are_of_values(self):
        self.assert_caught("view/a.cpp", "<tranship/kernels/b.hpp>", "upward")

    def test_from_left_to_right(self):
        self.assert_caught("plan/a.cpp", "<tranship/kernels/b.hpp>", "the other column")

    def test_from_right_to_left(self):
        self.assert_caught("fabric/a.hpp", "<tranship/layout/b.hpp>", "the other column")

    def test_umbrella_below_itself(self):
        self.assert_caught("array/a.hpp", "<tranship/tranship.hpp>", "umbrella")

    def test_unknown_layer(self):
        self.assert_caught("plan/a.hpp", "<tranship/misc/b.hpp>", "no layer")
        self.assertIn("no layer", "".join(self.problems("misc/b.hpp", "<vector>")))

    def test_quotes(self):
        self.assert_caught("base/a.cpp", '"a.hpp"', "write <tranship/...>")

    def test_own_header_first(self):
        own = '"tranship/base/a.hpp"'
        self.write("src/tranship/base/a.hpp", "#pragma once\n")
        self.assertEqual(self.problems("base/a.cpp", own, "<vector>"), [])
        for includes in (["<vector>", own], ["<tranship/base/a.hpp>"], ["<vector>", "<tranship/base/a.hpp>"]):
            found = self.problems("base/a.cpp", *includes)
            self.assertEqual(len(found), 1, found)
            self.assertIn('write #include "tranship/base/a.hpp", before all others', found[0])

    def test_a_header_that_may_be_entered_twice(self):
        self.write("src/tranship/base/a.hpp", "struct A {};\n")
        self.assertEqual(check_includes.check(self.root), ["src/tranship/base/a.hpp:1: no '#pragma once'"])

    def test_vendor_headers(self):
        self.assert_caught("fabric/world.cpp", "<mpi.h>", "a folder named mpi")

    def test_heavy_headers(self):
        self.assert_caught("file/format/manifest.cpp", "<nlohmann/json.hpp>", "only base/json.cpp may")

    def test_vendor_headers_of_a_device(self):
        self.assert_caught("kernels/copy.hpp", "<cuda_runtime.h>", "a folder named cuda")


class Public(Folder):
    """One public header, which includes a detail, which includes another and a table; and a private header."""

    def setUp(self):
        super().setUp()
        self.header("a.hpp", "// A.\n#include <tranship/b.hpp>\n")
        self.header("b.hpp", "// Detail: b.\n#include <tranship/c.hpp>\n#include <tranship/d.def>\n")
        self.header("c.hpp", "// Detail: c.\n")
        self.header("d.def", "// Detail: d.\n")
        self.header("e.hpp", "// Private: e.\n#include <tranship/a.hpp>\n")
        self.list("# Values\ntranship/a.hpp: all of it\n")

    def header(self, name, text):
        self.write(f"src/tranship/{name}", text)

    def list(self, text):
        self.write(check_public.LIST, text)

    def assert_caught(self, *words, installed=None):
        found = check_public.check(self.root, installed)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_all_agree(self):
        self.assertEqual(check_public.check(self.root), [])

    def test_listed_but_missing(self):
        self.list("tranship/a.hpp: all of it\ntranship/z.hpp: not there\n")
        self.assert_caught("tranship/z.hpp", "does not exist")

    def test_a_line_without_a_purpose(self):
        self.list("tranship/a.hpp: all of it\ntranship/e.hpp\n")
        self.assert_caught("public_headers.txt:2:", "purpose")

    def test_listed_twice(self):
        self.list("tranship/a.hpp: all of it\ntranship/a.hpp: again\n")
        self.assert_caught("public_headers.txt:2:", "twice")

    def test_public_but_marked(self):
        self.header("a.hpp", "// Private: a.\n#include <tranship/b.hpp>\n")
        self.assert_caught("src/tranship/a.hpp", "listed as public")

    def test_private_but_included(self):
        self.header("c.hpp", "// Private: c.\n")
        self.assert_caught("src/tranship/c.hpp", "tranship/b.hpp includes it", "Private")

    def test_included_without_a_mark(self):
        self.header("d.def", "// Table.\n")
        self.assert_caught("src/tranship/d.def", "tranship/b.hpp includes it", "no mark")

    def test_detail_that_no_header_needs(self):
        self.header("f.hpp", "// Detail: f.\n")
        self.assert_caught("src/tranship/f.hpp", "no public header needs it")

    def test_no_mark_and_not_listed(self):
        self.header("f.hpp", "// F.\n")
        self.assert_caught("src/tranship/f.hpp", "no mark")

    def test_options(self):
        self.header("a.hpp", "#include <tranship/b.hpp>\nstruct AOptions {\n  int a = 0;\n  /// b;\n  B b = {};\n};\n")
        self.assertEqual(check_public.check(self.root), [])
        self.header("a.hpp", "#include <tranship/b.hpp>\nstruct AOptions : B {\n  int a = 0;\n  std::vector<int> b;\n};\n")
        self.assert_caught("src/tranship/a.hpp:4: AOptions::b has no initialiser")
        self.header("a.hpp", "#include <tranship/b.hpp>\nstruct Options {\n  std::optional<FunctionRef<int()>> b = {};\n};\n")
        self.assert_caught("src/tranship/a.hpp:3: Options keeps a FunctionRef")

    def test_an_installed_copy(self):
        for name in ["a.hpp", "b.hpp", "c.hpp"]:
            self.write(f"include/tranship/{name}", "")
        self.assert_caught("tranship/d.def is not installed", installed=self.root / "include")
        self.write("include/tranship/d.def", "")
        self.assertEqual(check_public.check(self.root, self.root / "include"), [])
        self.write("include/tranship/e.hpp", "")
        self.assert_caught("tranship/e.hpp is installed", installed=self.root / "include")


class Signposts(Folder):
    def test_files_and_symbols(self):
        self.write("src/tranship/plan/halo.cpp", "void plan_halo() {}")
        self.write("docs/internals/plan.md", "`plan_halo` in `plan/halo.cpp`")
        for text, faults in [
            ("see `plan/halo.cpp`, `halo.cpp` and `src/tranship/plan/halo.cpp`", []),
            ("`plan_halo` in `plan/halo.cpp`", []),
            ("fine\nsee `plan/halo.hpp`", ["ARCHITECTURE.md:2: `plan/halo.hpp` is no file of the repository"]),
            ("`o.cpp`", ["ARCHITECTURE.md:1: `o.cpp` is no file of the repository"]),
            ("`plan` in `halo.cpp`", ["ARCHITECTURE.md:1: `halo.cpp` does not contain `plan`"]),
        ]:
            with self.subTest(text):
                self.write("ARCHITECTURE.md", text)
                self.assertEqual(check_signposts.check(self.root), faults)
        self.write("docs/internals/plan.md", "`o.cpp`")
        self.write("ARCHITECTURE.md", "")
        self.assertEqual(check_signposts.check(self.root), ["docs/internals/plan.md:1: `o.cpp` is no file of the repository"])

    def test_links(self):
        self.write("docs/b.md", "# One, two\n```\n# none\n```\n[up](../README.md) [here](#one-two)")
        for text, faults in [
            ("[b](docs/b.md) [docs](docs) [b](docs/b.md#one-two) [web](https://example.com/x.md) `[x](y)`", []),
            ("```\n[x](y)\n```\n[b](b.md)", ["README.md:4: the link to b.md leads nowhere"]),
            ("[b](docs/b.md#none)", ["README.md:1: docs/b.md has no heading '#none'"]),
            ("[here](#there)", ["README.md:1: README.md has no heading '#there'"]),
            ('<img src="c.png">', ["README.md:1: the link to c.png leads nowhere"]),
            ('<a href="docs/b.md#one-two">', []),
        ]:
            with self.subTest(text):
                self.write("README.md", text)
                self.assertEqual(check_signposts.check(self.root), faults)

    def test_each_layer_has_a_page(self):
        self.write("src/tranship/plan/halo.cpp", "")
        self.assertEqual(check_signposts.check(self.root), ["docs/internals: the layer plan has no page"])
        self.write("docs/internals/plan.md", "# plan")
        self.assertEqual(check_signposts.check(self.root), [])

    def test_architecture_has_a_limit(self):
        self.write("ARCHITECTURE.md", "x" * check_signposts.ARCHITECTURE_BYTES_MAX)
        self.assertEqual(check_signposts.check(self.root), [])
        self.write("ARCHITECTURE.md", "x" * (check_signposts.ARCHITECTURE_BYTES_MAX + 1))
        self.assertIn("16385 bytes", "".join(check_signposts.check(self.root)))


class Circles(Folder):
    def test_imports_wherever_they_stand(self):
        self.write("python/tranship/__init__.py", "from ._a import *\nfrom . import _core, _b\n")
        self.write("python/tranship/_b.py", "from . import _core\n")
        self.write("python/tranship/face/__init__.py", "from .x import f\n")
        self.write("python/tranship/face/x.py", "from ... import nothing\nfrom .._b import g\nimport tranship._b\n")
        for text, names in [
            ("from . import _core\nimport os", []),
            ("from ._b import g", []),
            ("from . import version", ["tranship", "tranship._a"]),
            ("def f():\n    from . import version", ["tranship", "tranship._a"]),
            ("if TYPE_CHECKING:\n    import tranship", ["tranship", "tranship._a"]),
        ]:
            with self.subTest(text):
                self.write("python/tranship/_a.py", text)
                found = check_circles.check(self.root)
                self.assertEqual([line.split(": ")[1].split(" ")[0] for line in found], names, found)

    def test_longer_circles_and_their_lines(self):
        self.write("python/tranship/__init__.py", "")
        self.write("python/tranship/a.py", "import os\nfrom . import b\n")
        self.write("python/tranship/b.py", "from tranship.face import c\n")
        self.write("python/tranship/d.py", "from . import a\n")
        self.write("python/tranship/face/__init__.py", "")
        self.write("python/tranship/face/c.py", "def f():\n    from ..a import x\n")
        self.assertEqual(
            check_circles.check(self.root),
            [
                "python/tranship/a.py:2: tranship.a imports tranship.b, which needs tranship.a",
                "python/tranship/b.py:1: tranship.b imports tranship.face.c, which needs tranship.b",
                "python/tranship/face/c.py:2: tranship.face.c imports tranship.a, which needs tranship.face.c",
            ],
        )


class Words(unittest.TestCase):
    def test_each_pattern(self):
        # Spelled in two halves, so that this file passes the check itself.
        for first, second in [
            ("see /wor", "k/notes"),
            ("../", "shared/x"),
            ("the pro", "mpt says"),
            ("an Age", "nt wrote"),
            ("http://deb.debian.", "org/debian"),
            ("https://pypi.", "org/simple"),
            ("https://proxy.golang.", "org/"),
        ]:
            with self.subTest(first + second):
                found = check_words.check_text("docs/a.md", "fine\n" + first + second)
                self.assertEqual(len(found), 1, found)
                self.assertIn("docs/a.md:2: ", found[0])

    def test_every_pattern_is_tried(self):
        self.assertEqual(len(check_words.PATTERNS), 7)
        self.assertEqual(len(check_words.RIDDLES), 3)
        self.assertEqual(len(check_words.PLAIN), 4)
        self.assertEqual(len(check_words.BEGINNINGS), 1)

    def test_documents_name_their_subjects(self):
        for words in ["nobody", "Somebody", "anybody", "everybody", "Whoever", "of none", "of\nnone"]:
            with self.subTest(words):
                found = check_words.check_text("docs/a.md", f"fine\n{words} waits")
                self.assertEqual(len(found), 1, found)
                self.assertIn("docs/a.md:2: ", found[0])
                self.assertEqual(check_words.check_text("tests/a.cpp", f"fine\n{words} waits"), [])
                self.assertEqual(len(check_words.check_text("src/a.hpp", f"fine\n{words} waits")), 1)
        self.assertEqual(check_words.check_text("docs/a.md", "no body; nonetheless; some bodies of nonempty boxes"), [])

    def assert_found_in(self, text, *names):
        for name in names:
            with self.subTest(text, name=name):
                found = check_words.check_text(name, f"fine\n{text}")
                self.assertEqual(len(found), 1, found)
                self.assertIn(f"{name}:2: ", found[0])

    SOURCES = (
        "src/a.hpp",
        "python/tranship/a.py",
        "python/src/a.cpp",
        "benchmarks/a.cpp",
        "examples/a.c",
        "docs/site/a.py",
        "do",
    )

    def test_sources_have_sentences(self):
        for text in [
            "/// What it has.",
            "//The same of others.",
            "int a;  ///< Of both.",
            "// Whether it waits.",
            "# As before.",
            '''"""What it has."""''',
        ]:
            self.assert_found_in(text, *self.SOURCES)
            for name in ("tests/a.cpp", "docs/a.md", "README.md", "does.py"):
                self.assertEqual(check_words.check_text(name, text), [])
        fine = "/// Whatever waits; asks. Returns what it has, as before, of both.\n// Officially; it is too much.\n"
        self.assertEqual(check_words.check_text("src/a.hpp", fine), [])

    def test_sources_and_documents_have_plain_words(self):
        for text in ["takes so much", "as so many ranks", "Likewise for others", "it lets them let go", "what is to be sent"]:
            self.assert_found_in(text, *self.SOURCES, "docs/a.md", "README.md")
            for name in ("tests/a.cpp", "does.py"):
                self.assertEqual(check_words.check_text(name, text), [])

    def test_an_enumerator_is_no_pronoun(self):
        self.assertEqual(check_words.check_text("benchmarks/a.cpp", "case Rivals::everybody:"), [])
        self.assertEqual(check_words.check_text("benchmarks/harness/contest_row.hpp", "everybody,"), [])
        self.assertEqual(len(check_words.check_text("benchmarks/a.cpp", "everybody waits")), 1)

    def test_a_repository_with_a_riddle_fails(self):
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["git", "init", "-q", scratch], check=True)
            for name, text, status in [("a.md", "The rank waits.\n", 0), ("b.md", "Nobody waits.\n", 1)]:
                (Path(scratch) / name).write_text(text, encoding="utf-8")
                run = subprocess.run(
                    [sys.executable, "-B", check_words.__file__, scratch], capture_output=True, text=True, check=False
                )
                self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn("b.md:1: 'Nobody' is a pronoun", run.stdout)

    def test_plain_words_pass(self):
        self.assertEqual(check_words.check_text("a.md", "promptly; reagent; build/work/x; a shared page"), [])

    def test_one_file_may_look_outside(self):
        text = "../" + "shared/x"
        self.assertEqual(check_words.check_text(".ci/run", text), [])
        self.assertEqual(len(check_words.check_text("do", text)), 1)


class Amounts(unittest.TestCase):
    def test_a_number_takes_its_noun_from_amount(self):
        for text in [
            'throw_error(code, "needs {} bytes, has {}", n, m);',
            'fmt::format("{0} open files", n)',
            'fail("{}: {} entries", where, n);',
            'fmt::format("{}{}", what, n == 1 ? "" : "s")',
            'const char* unit = n == 1 ? "cell" : "cells";',
            'amount(n, "halo axis")',
        ]:
            with self.subTest(text):
                found = check_amounts.check_text("src/tranship/a.cpp", "\n" + text)
                self.assertEqual(len(found), 1, found)
                self.assertIn("src/tranship/a.cpp:2: ", found[0])

    def test_counts_in_python_are_found(self):
        for text in [
            'raise E(f"{len(a)} entries of {b}")',
            "return f'<{self.n} halo points>'",
            "f\"{amount(len(a), 'entry')}\"",
        ]:
            with self.subTest(text):
                self.assertEqual(len(check_amounts.check_text("python/tranship/a.py", text)), 1)
        for text in ['"""All {n} entries."""', "f\"{amount(len(a), 'entry', 'entries')} of {b}\"", 'f"at most {n} bytes"']:
            with self.subTest(text):
                self.assertEqual(check_amounts.check_text("python/tranship/a.py", text), [])

    def test_limits_names_and_comments_pass(self):
        for text in [
            'throw_error(code, "more than {} keys; a name has 1 to {} characters", keys_max, characters_max);',
            'throw_error(code, "{} of bytes that {} has elements of", name, other);',
            '// "{} bytes"',
            'amount(n, "byte")',
            'amount(n, "array") + amount(n, "axis", "axes")',
        ]:
            with self.subTest(text):
                self.assertEqual(check_amounts.check_text("src/tranship/a.cpp", text), [])


class Headers(Folder):
    compiler = os.environ.get("CXX", "c++")

    def alone(self, text):
        self.write("tranship/base/a.hpp", text)
        return check_header.check_alone(self.compiler, self.root, "tranship/base/a.hpp", self.root / "a b")

    def weight(self, *texts):
        names = [f"tranship/base/{chr(ord('a') + at)}.hpp" for at in range(len(texts))]
        for name, text in zip(names, texts):
            self.write(name, f"#pragma once\n{text}")
        return check_header.check_weight(self.compiler, self.root, names, self.root / "a b")

    def test_what_it_depends_on(self):
        self.write("tranship/base/b.hpp", "#pragma once\n")
        _, paths = self.alone("#pragma once\n#include <tranship/base/b.hpp>\n")
        own = sorted(path for path in paths if path.endswith(".hpp"))
        self.assertEqual(own, [f"{self.root}/tranship/base/{name}.hpp" for name in "ab"])
        _, paths = self.weight("#include <tranship/base/b.hpp>\n", "")
        self.assertEqual(sorted(path for path in paths if path.endswith(".hpp")), own)

    def test_a_good_header(self):
        good = "#include <vector>\ninline std::vector<int> a;\n"
        self.assertEqual(self.alone(good)[0], "")
        self.assertEqual(self.weight(good, "#include <tranship/base/a.hpp>\n")[0], "")

    def test_needs_another_header(self):
        self.assertIn("does not compile alone", self.alone("inline std::vector<int> a;\n")[0])

    def test_every_heavy_standard_header(self):
        for name in check_header.HEAVY_STANDARD:
            with self.subTest(name):
                self.assertIn(f"/{name}", self.weight("", f"#include <{name}>\n")[0])

    def test_heavy_by_way_of_another(self):
        self.write("tranship/base/z.hpp", "#pragma once\n#include <iostream>\n")
        wrong, _ = self.weight("", "#include <tranship/base/z.hpp>\n", "#include <iostream>\n")
        self.assertIn("/iostream", wrong)
        self.assertIn("tranship/base/z.hpp", wrong)
        self.assertIn("tranship/base/b.hpp pulls in", wrong)

    def test_heavy_library(self):
        self.assertIn("/fmt/", self.weight("#include <fmt/format.h>\n")[0])


class Manual(Folder):
    def problems(self, header, page):
        self.write(check_manual.HEADER, header)
        self.write(check_manual.PAGE, page)
        return check_manual.check(self.root)

    def test_differences_are_caught(self):
        header = "enum { DRI_SUCCESS = 0 };\n/* of the world */\nint DRI_Init(int *argc,\n             char ***argv);\n"
        page = ".nf\nint DRI_Init(int *argc, char ***argv);\n.fi\n.TP\n.B DRI_SUCCESS\nDone.\n"
        self.assertEqual(self.problems(header, page), [])
        for wrong in (page.replace("***", "**"), page.replace("Init", "Start"), page.replace("SUCCESS", "ERR_NONE")):
            self.assertTrue(self.problems(header, wrong), wrong)
        self.assertIn("DRI_Launch", self.problems(header + "int DRI_Launch(int ranks);\n", page)[0])
        self.assertTrue(self.problems("", ""))


class Blocks(Folder):
    def problems(self, text):
        self.write("docs/a.md", text)
        return blocks.check(self.root)

    def source(self, text, language="cpp"):
        source = blocks.Source(language)
        source.add_page("docs/a.md", blocks.blocks_of("docs/a.md", text)[0])
        return source

    def test_blocks_that_nothing_runs(self):
        self.write("src/a.cpp", "int f() {\n  g();\n  h();\n}\n")
        for text, said in [
            ("```cpp\nf();\n```", []),
            ("```cmake\nx()\n```", ["docs/a.md:1: nothing runs cmake: say where it is from, or why it is a fragment"]),
            ("<!-- fragment: needs a card -->\n```cmake\nx()\n```", []),
            ("<!-- fragment: -->\n```cmake\nx()\n```", ["docs/a.md:2: a fragment has a reason"]),
            ("<!-- fragment: needs a card -->\nText.\n```cmake\nx()\n```",
             ["docs/a.md:3: nothing runs cmake: say where it is from, or why it is a fragment"]),
            ("<!-- from: src/a.cpp -->\n```js\ng();\nh();\n```", []),
            ("<!-- from: src/a.cpp -->\n```cpp\nh();\ng();\n```", ["docs/a.md:2: src/a.cpp does not have these lines"]),
            ("<!-- from: src/b.cpp -->\n```cpp\ng();\n```", ["docs/a.md:2: src/b.cpp is no file of the repository"]),
            ("```json\n{1}\n```", ["docs/a.md:1: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"]),
            ("```c\nint main(void) {}\n```",
             ["docs/a.md:1: programs in C are not run: show lines of one in examples/, with a comment that says from where"]),
            ("```cpp\nf();\n", ["docs/a.md:1: has no end"]),
            ("<!-- prologue rust\nx\n-->", ["docs/a.md:1: there are no prologues of rust"]),
            ("```cpp\nf();\n```\n<!-- output -->\n```\n1\n```", ["docs/a.md:5: the block before is not run, and has no output"]),
            ("```python\nf()\n```\n<!-- output -->\n```\n1\n```", []),
        ]:
            with self.subTest(text=text):
                self.assertEqual(self.problems(text), said)

    def test_outputs(self):
        for output, wanted, same in [
            ("a\nb\n", "a\nb\n", True),
            ("a  \nb\n", "a\nb\n", True),
            ("a\nb\n", "a\n", False),
            ("a\nx\ny\nb\n", "a\n...\nb\n", True),
            ("a\nb\n", "a\n...\nb\n", True),
            ("a\nx\n", "a\n...\nb\n", False),
            ("1.5\n", "1x5\n", False),
        ]:
            self.assertEqual(blocks.matches(output, wanted), same, (output, wanted))

    def test_sources(self):
        program = self.source("```cpp\n#include <a.hpp>\nint main() {\n  f();\n}\n```")
        self.assertEqual(program.programs, [("a_line_2", "docs/a.md", 2)])
        self.assertIn('#line 2 "docs/a.md"\n\nint main() {\n  f();\nreturn 0;}\n', program.text())
        self.assertIn("#include <a.hpp>\n", program.text())
        ranks = self.source("<!-- prologue cpp ranks=3\nint n = 1;\n-->\n```cpp\nf(n);\n```\n```cpp\ng(n);\n```").text()
        self.assertIn("tranship::launch(3, ", ranks)
        self.assertLess(ranks.index("int n = 1;"), ranks.index("f(n);"))
        self.assertLess(ranks.index("f(n);"), ranks.index("g(n);"))
        bodies = self.source("```cpp\nf();\n```\n<!-- prologue cpp\nvoid f();\n-->\n```cpp\nf();\n```")
        self.assertEqual(bodies.programs, [])
        self.assertIn("namespace a_1 {\ninline void a_1_line_2() {", bodies.text())
        self.assertIn('namespace a_2 {\n#line 5 "docs/a.md"\nvoid f();\ninline void a_2_line_8() {', bodies.text())

    def test_options_of_commands(self):
        self.write("do", "echo '  build  builds'")
        self.write("tranship", "#!/bin/sh\n[ $1 = plan ] && echo '  --from TEXT, -o FILE'")
        os.chmod(self.root / "tranship", 0o755)
        self.write("docs/a.md", "<!-- fragment: is long -->\n```sh\n./do build\n./do buidl\ntranship plan --from 'a --b' -o c # --d\n"
                                "tranship plan \\\n  --form x\ntranship plna\n```\n")
        self.assertEqual(run_shell.main(self.root, self.root / "tranship"), [
            "docs/a.md:4: ./do has no command buidl",
            "docs/a.md:6: tranship plan has no option --form",
            "docs/a.md:8: tranship has no command plna",
        ])

    def test_shell_blocks_run(self):
        self.write("do", "")
        self.write("docs/a.md", "<!-- prologue sh\necho x >file\n-->\n```sh\ncat file\n```\n<!-- output -->\n```\ny\n```\n"
                                "```sh\nfalse\n```\n")
        failed = run_shell.main(self.root, "/bin/true")
        self.assertEqual(failed, ["docs/a.md:4: prints\nx\nbut docs/a.md:8 shows\ny\n", "docs/a.md:11: has failed with 1:\n"])


if __name__ == "__main__":
    unittest.main()
