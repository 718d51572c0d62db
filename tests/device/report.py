"""Writes what a run on a card has found, to files that are whole at any time: results.json, gpu-results.md, and the
log."""
import json
import pathlib
import sys
import threading
import time

import stages


# If there are more checks than this, those that are right share one row.
CHECKS_SHOWN = 16


ROOT = str(pathlib.Path(__file__).resolve().parents[2])


def cell(text):
    """Formats text for a table; the path of the tree is shortened because it carries no information."""
    return str(text).replace(ROOT, ".").replace("|", "\\|").replace("\n", " ").strip()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(" --- " for _ in head) + "|"]
    return lines + ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows] + [""]


def number(value):
    return f"{value:.4g}" if abs(value) < 1e5 else f"{value:.6g}"


def shown(checks):
    """Groups the checks into the rows of their table."""
    if len(checks) <= CHECKS_SHOWN:
        return checks
    wrong = [f for f in checks if f["wrong"]]
    right = [f for f in checks if not f["wrong"]]
    return wrong + [{"check": f"{len(right)} checks: {right[0]['check']}, ..., {right[-1]['check']}",
                     "cases": sum(f["cases"] for f in right), "wrong": 0}]


class StepResults:
    """Holds the findings of one step."""

    def __init__(self, stage, step, save):
        self.stage, self.step, self.save = stage, step, save
        self.findings, self.is_saved = [], True
        self.status, self.why, self.seconds = "running", "", 0

    def add(self, finding):
        self.findings.append(finding)
        self.is_saved = False

    def save_new(self):
        """Writes the findings since the last call."""
        if not self.is_saved:
            self.is_saved = True
            self.save()

    def value(self):
        return {"stage": self.stage.number, "step": self.step.name, "status": self.status, "why": self.why,
                "seconds": round(self.seconds, 2), "findings": self.findings}

    def lines(self):
        out = [f"### {self.step.name}", "", self.step.about, ""]
        if self.status != "run":
            out += [f"**{self.status}**" + (f": {self.why}" if self.why else "") + ".", ""]
        figures = [f for f in self.findings if "figure" in f]
        answers = [f for f in self.findings if "answer" in f]
        checks = [f for f in self.findings if "check" in f]
        if figures:
            out += table(["what", "median", "lowest to highest", "unit", "goal", "note"], [self.figure(f) for f in figures])
        if answers:
            out += table(["what", "answer", "note"], [(f["answer"], f["value"], f.get("note", "")) for f in answers])
        if checks:
            out += table(["check", "cases", "wrong", "note"],
                         [(f["check"], f["cases"], f["wrong"], f.get("note", "")) for f in shown(checks)])
        out += [f"Fault: {f['fault']}\n" for f in self.findings if "fault" in f]
        return out

    def figure(self, f):
        goal = stages.goal_of(self.step.name, f["figure"])
        reached = ""
        if goal:
            met = f["value"] >= goal[1] if goal[0] == ">=" else f["value"] <= goal[1]
            reached = f"{goal[0]} {goal[1]:g}: {'reached' if met else 'missed'}"
        return (f["figure"], number(f["value"]), f"{number(f['low'])} to {number(f['high'])} ({f['samples']})", f["unit"], reached,
                f.get("note", ""))


class Report:
    def __init__(self, folder, facts):
        self.folder, self.facts = folder, facts
        folder.mkdir(parents=True, exist_ok=True)
        self.steps = []
        self.lock = threading.RLock()
        self.began = time.monotonic()
        self.trouble = None
        self.log_file = (folder / "log").open("w", buffering=1)

    def log(self, line):
        with self.lock:
            if not self.log_file.closed:  # once it is closed, only a build that was stopped still logs
                self.try_to(self.log_file.write, f"{time.monotonic() - self.began:7.1f} {line}\n")

    def try_to(self, write, *arguments):
        """Reports an error of the disk once; a full disk keeps no step from running."""
        try:
            write(*arguments)
        except OSError as error:
            if not self.trouble:
                self.trouble = error
                print(f"results cannot be written: {error}", file=sys.stderr)

    def close(self):
        self.save()
        with self.lock:
            self.try_to(self.log_file.close)

    def begin(self, stage, step):
        results = StepResults(stage, step, self.save)
        with self.lock:
            self.steps.append(results)
        return results

    def end(self, results, status, why, seconds):
        results.status, results.why, results.seconds = status, why, seconds
        self.log(f"{results.step.name}: {status} {why} ({seconds:.1f} s)")
        self.save()

    def counts(self):
        out = {}
        for step in self.steps:
            out[step.status] = out.get(step.status, 0) + 1
        return out

    def save(self):
        with self.lock:
            self.try_to(self.write)

    def write(self):
        self.replace("results.json", json.dumps({**self.facts, "steps": [step.value() for step in self.steps]}, indent=1))
        self.replace("gpu-results.md", "\n".join(self.lines()) + "\n")

    def replace(self, name, text):
        part = self.folder / (name + ".part")
        part.write_text(text)
        part.replace(self.folder / name)

    def lines(self):
        facts = self.facts
        out = ["# Results on a card", "",
               "Written by `./do device`, which builds and runs `tests/device`; CONTRIBUTING.md says how.", "",
               f"Card: {facts['card']}, driver {facts['driver'] or 'none'}, {facts['cores']} cores beside it; {facts['date']}; "
               f"commit {facts['commit']}. Figures are medians; the number of samples stands in brackets.", ""]
        out += table(["stage", "step", "result", "seconds"],
                     [(f"{s.stage.number}. {s.stage.name}", s.step.name, s.status + (f": {s.why}" if s.why else ""), f"{s.seconds:.1f}")
                      for s in self.steps])
        for stage in stages.STAGES:
            steps = [s for s in self.steps if s.stage is stage]
            if steps:
                out += [f"## {stage.number}. {stage.name}", "", stage.about, ""]
            for step in steps:
                out += step.lines()
        return out
