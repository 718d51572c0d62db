#!/usr/bin/env python3
"""Tests the runner of `./do device` with steps that go wrong in every way that a step on a card can. Needs no card."""
import contextlib
import dataclasses
import io
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import builds
import device
import stages

CHECK = '{"check": "sums", "cases": 5, "wrong": %d, "note": "first at 3"}'
FIGURE = '{"figure": "rate", "value": 2.5, "unit": "GB/s", "low": 2, "high": 3, "samples": 9, "note": ""}'


class AMachine:
    no_card, cards, is_software, architecture = "", [], False, "90"


def step(name, code, limit_s=20, needs=()):
    return stages.Step(name, f"About {name}.", limit_s, lambda _: [sys.executable, "-c", code], needs)


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name, "out")
        self.kept = stages.STAGES, stages.GOALS

    def tearDown(self):
        stages.STAGES, stages.GOALS = self.kept
        self.folder.cleanup()

    def go(self, *steps, minutes=1, machine=AMachine, only=""):
        stages.STAGES = (stages.Stage(1, "Trials", "About all.", steps),)
        options = device.parse(["--minutes", str(minutes), "--only", only, "--commit", "0123456789"])
        runner = device.Device(options, self.out, machine)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.closing(runner):
            runner.go()
        self.results = {s["step"]: s for s in json.loads((self.out / "results.json").read_text())["steps"]}
        self.page = (self.out / "gpu-results.md").read_text()
        return [self.results[s.name]["status"] for s in steps if s.name in self.results]

    def test_findings_are_kept_and_shown(self):
        stages.GOALS = (("good", "rate", ">=", 3), ("good", "^none$", "<=", 1))
        self.assertEqual(self.go(step("good", f"print('{FIGURE}'); print('{CHECK % 0}'); print('some words')")), ["run"])
        self.assertEqual(len(self.results["good"]["findings"]), 2)
        self.assertIn("| rate | 2.5 | 2 to 3 (9) | GB/s | >= 3: missed |", self.page)
        self.assertIn("| sums | 5 | 0 | first at 3 |", self.page)
        self.assertIn("some words", (self.out / "log").read_text())

    def test_of_many_checks_the_wrong_ones_are_shown(self):
        checks = "".join(f"print('{CHECK % (i == 30)}'.replace('sums', 'sums {i}'));" for i in range(50))
        self.assertEqual(self.go(step("many", checks)), ["failed"])
        self.assertIn("| sums 30 | 5 | 1 | first at 3 |", self.page)
        self.assertIn("| 49 checks: sums 0, ..., sums 49 | 245 | 0 |  |", self.page)
        self.assertEqual(self.page.count("sums"), 3)

    def test_a_step_that_hangs_loses_neither_its_findings_nor_the_others(self):
        hangs = f"import time; print('{FIGURE}', flush=True); time.sleep(600)"
        began = time.monotonic()
        self.assertEqual(self.go(step("hangs", hangs, 1.5), step("next", f"print('{FIGURE}')")), ["timed out", "run"])
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(len(self.results["hangs"]["findings"]), 1)

    def test_what_a_step_has_started_ends_with_it(self):
        starts = ("import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
                  f"print('{FIGURE}'); open(r'{self.folder.name}/pid', 'w').write(str(p.pid))")
        self.assertEqual(self.go(step("starts", starts)), ["run"])
        pid = int(pathlib.Path(self.folder.name, "pid").read_text())
        for _ in range(1000):
            status = pathlib.Path(f"/proc/{pid}/stat")
            if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.01)
        else:
            self.fail("it goes on")

    def test_failures_say_why(self):
        statuses = self.go(step("exit", "import sys; print('{\"answer\": \"a\", \"value\": \"b\"}'); sys.exit('no memory')"),
                           step("wrong", f"print('{CHECK % 2}')"), step("silent", "pass"),
                           step("fault", "print('{\"fault\": \"cudaMalloc: out of memory\"}'); raise SystemExit(3)"))
        self.assertEqual(statuses, ["failed"] * 4)
        self.assertEqual(self.results["exit"]["why"], "exit status 1: no memory")
        self.assertEqual(self.results["wrong"]["why"], "1 of 1 checks found something wrong")
        self.assertEqual(self.results["silent"]["why"], "it ended without a finding")
        self.assertEqual(self.results["fault"]["why"], "cudaMalloc: out of memory")

    def test_a_program_that_cannot_be_started_fails(self):
        missing = stages.Step("missing", "", 5, lambda _: [f"{self.folder.name}/none"])
        self.assertEqual(self.go(missing, step("next", f"print('{FIGURE}')")), ["failed", "run"])

    def test_what_a_step_lacks_is_said(self):
        lacks = step("lacks", "", needs=(stages.module("no_such_module_at_all"),))
        within = stages.module("no_such_package.part")(None)
        self.assertEqual(within, ("skipped", "this Python has no module no_such_package.part"))
        self.assertEqual(self.go(lacks, step("no tool", "", needs=(stages.tool("no-such-tool"),))), ["skipped", "skipped"])
        self.assertIn("no_such_module_at_all", self.results["lacks"]["why"])

    def build(self, *commands, key="1", **more):
        made = builds.Build("trial", pathlib.Path(self.folder.name, "build"), key, commands, lambda _: None, **more)
        self.addCleanup(made.stop)
        return made

    def test_a_program_is_there_or_why_not(self):
        good = self.build(["sh", "-c", f"mkdir -p {self.folder.name}/build/bin; touch {self.folder.name}/build/bin/device_x"])
        path, trouble = good.program("device_x", 60)
        self.assertEqual((path.name, trouble), ("device_x", None))
        # Another build, which fails, does not leave this build's program to be run.
        bad = self.build(["sh", "-c", "echo 'x.cu(3): error: stumbled'; exit 7"])
        self.assertEqual(bad.program("device_x", 60), (None, (
            "failed", "device_x was not built: sh ended with status 7; first: x.cu(3): error: stumbled")))
        self.assertEqual(self.build([f"{self.folder.name}/none"]).program("device_x", 60)[1][0], "failed")
        self.assertEqual(builds.NoBuild("no ninja").program("device_x", 60), (None, ("skipped", "no ninja")))

    def test_a_build_ends_with_the_time(self):
        began = time.monotonic()
        self.assertEqual(self.build(["sleep", "600"]).program("device_x", 0.2)[1], ("skipped", "the build took all the time"))
        self.assertLess(time.monotonic() - began, 30)

    def test_a_build_that_takes_too_long_is_stopped_and_its_steps_are_skipped(self):
        pid = pathlib.Path(self.folder.name, "pid")
        began = time.monotonic()
        made = self.build(["sh", "-c", f"mkdir {self.folder.name}/build/bin; touch {self.folder.name}/build/bin/device_x"],
                          ["sh", "-c", f"echo $$ >{pid}; sleep 600"], ["touch", f"{self.folder.name}/next"], limit_s=1.5)
        self.assertEqual(made.program("device_x", 60), (None, ("skipped", "the build took longer than 1.5 s and was stopped")))
        self.assertLess(time.monotonic() - began, 30)
        self.assertFalse(pathlib.Path("/proc", pid.read_text().strip()).exists())
        self.assertFalse(pathlib.Path(self.folder.name, "next").exists())
        needs = step("needs", f"print('{FIGURE}')", needs=(lambda _: made.program("device_x", 60)[1],))
        self.assertEqual(self.go(needs, step("next", f"print('{FIGURE}')")), ["skipped", "run"])
        self.assertIn("the build took longer than 1.5 s", self.page)

    def test_builds_have_four_of_nine_minutes(self):
        limits = []
        with unittest.mock.patch.object(builds, "start", lambda *words: limits.append(words[-1]) or {}):
            class WithCard(AMachine):
                cards = [{"name": "a card", "driver": "1", "architecture": "90"}]
            for words in ([], ["--minutes", "18"], ["--build-minutes", "1.5"]):
                with contextlib.closing(device.Device(device.parse([*words, "--commit", "x"]), self.out, WithCard)):
                    pass
        self.assertEqual([round(limit) for limit in limits], [240, 480, 90])

    def test_a_build_of_something_else_begins_anew(self):
        kept = pathlib.Path(self.folder.name, "build/kept")
        self.build(["touch", str(kept)]).thread.join()
        self.build(["true"]).thread.join()
        self.assertTrue(kept.exists())
        self.build(["true"], key="2").thread.join()
        self.assertFalse(kept.exists())

    def test_a_checker_that_checks_nothing_has_failed(self):
        nothing = dataclasses.replace(step("checked", f"print('not supported'); print('{CHECK % 0}')"), wanted="SUMMARY")
        self.assertEqual(self.go(nothing), ["failed"])
        self.assertEqual(self.results["checked"]["why"], "none of its checks says SUMMARY")

    def test_time_ends_for_all(self):
        began = time.monotonic()
        slow = f"import time; print('{FIGURE}', flush=True); time.sleep(600)"
        self.assertEqual(self.go(step("slow", slow), step("late", "print()"), minutes=5 / 60), ["timed out", "skipped"])
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(self.results["late"]["why"], "no time was left")

    def test_without_a_card_all_is_skipped(self):
        class NoCard(AMachine):
            no_card = "no card: there is no nvidia-smi"
        self.assertEqual(self.go(step("a", "print()"), step("b", "print()"), machine=NoCard), ["skipped", "skipped"])
        self.assertIn("there is no nvidia-smi", self.page)

    def test_only_some(self):
        self.assertEqual(self.go(step("some", f"print('{FIGURE}')"), step("other", "print()"), only="^some$"), ["run"])

    def test_hostile_lines_are_words(self):
        lines = ['{"figure": "x"}', "{", '{"check": "a"}', "[]", '{"answer": 1}', '{"figure": []', "\\xff", '{"fault": 3}',
                 FIGURE.replace("2.5", '"fast"'), FIGURE.replace("2.5", "NaN"), FIGURE.replace("2.5", "null"),
                 (CHECK % 0).replace("5", "-5"), (CHECK % 0).replace("5", "true")]
        self.assertEqual(self.go(step("words", f"print({lines!r}[0]); [print(l) for l in {lines!r}]; print('{FIGURE}')")), ["run"])
        self.assertEqual(len(self.results["words"]["findings"]), 1)

    def test_floods_are_cut(self):
        floods = f"print('{FIGURE}'); [print('y' * 100) for _ in range(20000)]; print('z' * 10_000_000, end='')"
        self.assertEqual(self.go(step("floods", floods)), ["run"])
        self.assertLess((self.out / "log").stat().st_size, 2_000_000)

    def test_a_full_disk_keeps_no_step_from_running(self):
        self.out.mkdir()
        (self.out / "log").symlink_to("/dev/full")
        (self.out / "results.json.part").mkdir()  # none of the results can be written either
        stages.STAGES = (stages.Stage(1, "Trials", "", (step("a", f"print('{FIGURE}')"), step("b", f"print('{FIGURE}')"))),)
        runner = device.Device(device.parse([]), self.out, AMachine)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            runner.go()
            runner.close()
        self.assertEqual(runner.report.counts(), {"run": 2})
        self.assertEqual(said.getvalue().count("cannot be written"), 1)

    def test_a_sanitizer_is_understood(self):
        self.assertEqual(stages.finding_of("========= ERROR SUMMARY: 3 errors")["wrong"], 3)
        self.assertEqual(stages.finding_of("========= ERROR SUMMARY: 0 errors")["wrong"], 0)
        self.assertEqual(stages.finding_of("========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)")["wrong"], 1)

    def test_a_run_that_is_ended_has_reported(self):
        long = """import time; print('{"answer": "a", "value": "b"}', flush=True); time.sleep(600)"""
        code = f"""if 1:
            import sys
            sys.dont_write_bytecode = True
            sys.path.insert(0, {str(pathlib.Path(device.__file__).parent)!r})
            import device, stages
            step = stages.Step("long", "", 600, lambda _: [sys.executable, "-c", {long!r}])
            stages.STAGES = (stages.Stage(1, "Trials", "", (step,)),)
            class Machine: no_card, cards, is_software, architecture = "", [], False, "90"
            device.Machine = lambda *_: Machine
            sys.exit(device.main(["--out", {str(self.out)!r}, "--commit", "x"]))"""
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
        results = self.out / "results.json"
        deadline = time.monotonic() + 60
        while not (results.exists() and json.loads(results.read_text())["steps"][0]["findings"]):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 143)
        ended = json.loads(results.read_text())["steps"][0]
        self.assertEqual((ended["findings"][0]["answer"], ended["status"], ended["why"]), ("a", "failed", "it was ended from outside"))

    def test_bad_options_are_refused(self):
        for words in (["--minutes", "0"], ["--minutes", "x"], ["--minutes", "-3"], ["--build-minutes", "0"], ["--only", "("], ["--what"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
                device.parse(words)
            self.assertEqual(ended.exception.code, 2, words)

    def test_software_cards_skip_what_is_listed_and_no_more(self):
        skipped = [s.name for stage in stages.STAGES for s in stage.steps if not s.runs_on_software_cards]
        self.assertEqual(skipped, [
            "attributes", "versions", "tools", "mps", "launches", "signals", "packets", "semantics", "copies", "spinning", "waits",
            "vmm", "processes", "processes under MPS", "halves", "golden, shipped kernels", "packing ndsl", "CuPy", "packing figures", "mover",
            "torch", "Numba", *(f"{of} under {checker}" for of in ("lanes", "packing", "kernels")
                       for checker in ("memcheck", "racecheck", "synccheck", "initcheck")),
            *(f"{of} under {checker}" for of in ("plans", "buffers") for checker in ("memcheck", "racecheck"))])

    def test_shipped_kernels_run_under_a_checker(self):
        bin = pathlib.Path(self.folder.name, "bin")
        bin.mkdir()
        suite = {"name": "S", "time": "0s", "testsuite": [{"name": "t", "result": "COMPLETED"}]}
        tests = f"""import json, os, sys
            print("these:", *sys.argv[1:], os.environ["TRANSHIP_TEST_CASES"])
            out = next(word for word in sys.argv if "json:" in word).partition("json:")[2]
            open(out, "w").write(json.dumps({{"testsuites": [{suite}] if "Card" in " ".join(sys.argv) else []}}))"""
        for name, text in (("test_cuda", tests), ("test_memory", tests), ("compute-sanitizer", """import subprocess, sys
            program = next(i for i, word in enumerate(sys.argv) if "/test_" in word)
            print("checks:", *sys.argv[1:program], flush=True)
            code = subprocess.run(sys.argv[program:]).returncode
            print("========= ERROR SUMMARY: 0 errors")
            sys.exit(code)""")):
            (bin / name).write_text(f"#!{sys.executable}\n" + "\n".join(line.strip() for line in text.splitlines()))
            (bin / name).chmod(0o755)
        with unittest.mock.patch.object(builds, "path_of", lambda tool: str(bin / tool)):
            runner = device.Device(device.parse(["--programs", str(bin), "--commit", "x", "--only", "^(plans|buffers) under"]), self.out,
                                   AMachine)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.closing(runner):
                runner.go()
        steps = json.loads((self.out / "results.json").read_text())["steps"]
        # The stand-in for test_memory has no test that matches, which is no success.
        self.assertEqual([(s["step"], s["status"], len(s["findings"])) for s in steps], [
            (f"{of} under {checker}", status, 2) for of, status in (("plans", "run"), ("buffers", "failed"))
            for checker in ("memcheck", "racecheck")])
        self.assertEqual(steps[2]["why"], "no test matches *BufferOn.*/card:*StreamContract.*moves*/card")
        log = (self.out / "log").read_text()
        self.assertIn("checks: --error-exitcode 9 --tool memcheck --report-api-errors no\n", log)
        self.assertIn("checks: --error-exitcode 9 --tool racecheck\n", log)
        self.assertRegex(log, r"these: --gtest_filter=CardPlans\.\* \S+ 40")

    def test_a_step_for_software_cards_runs_another_program(self):
        bin = pathlib.Path(self.folder.name, "bin")
        bin.mkdir()
        for name, says in (("device_x", "real"), ("device_x_host", "software")):
            (bin / name).write_text(f'''#!/bin/sh\necho '{{"answer": "'$TRANSHIP_CUDA $*'", "value": "{says}"}}'\n''')
            (bin / name).chmod(0o755)

        def answers(*words):
            stages.STAGES = (stages.Stage(1, "Trials", "", (
                stages.on_host(stages.runs("x", "", 20, "--card"), "x_host", "--host"), stages.runs("y", "", 20))),)
            runner = device.Device(device.parse(["--programs", str(bin), "--commit", "x", *words]), self.out,
                                   None if words else AMachine)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.closing(runner):
                runner.go()
            steps = json.loads((self.out / "results.json").read_text())["steps"]
            return [(s["status"], s["why"], [(f["answer"], f["value"]) for f in s["findings"]]) for s in steps]
        self.assertEqual(answers("--software"), [("run", "", [("software:2 --host", "software")]),
                                                 ("skipped", "it needs a real card", [])])
        self.assertEqual(answers(), [("run", "", [(" --card", "real")]), ("failed", f"there is no {bin.resolve()}/device_y", [])])

    def test_the_stages_show_themselves(self):
        options = device.parse(["--dry"])
        runner = device.Device(options, self.out)
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.closing(runner):
            runner.go()
        self.assertEqual([s.number for s in stages.STAGES], list(range(1, len(stages.STAGES) + 1)))
        names = [s.name for stage in stages.STAGES for s in stage.steps]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(said.getvalue().count("skipped"), len(names))
        for of, *_ in stages.GOALS:
            self.assertIn(of, names)


if __name__ == "__main__":
    unittest.main()
