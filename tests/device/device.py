#!/usr/bin/env python3
"""Learns from the card of this machine in a few minutes: `./do device`.

With --software, the software cards of the library take the card's place in the steps that can run so.

Builds the programs of this folder, runs the steps of stages.py one after the other, each under a time limit, and writes
their findings as they come: gpu-results.md for people, results.json for programs, log for debugging a step. It installs
nothing. A step is `run`, `skipped` (with a reason), `failed` or `timed out`; a step that fails does not keep the others
from running.
"""
import argparse
import datetime
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import builds
import report
import stages

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The builds may take this share of the time: 4 of 9 minutes.
BUILD_SHARE = 4 / 9
# A step does not start when less time than this is left.
USEFUL_S = 3
# A program may take this long to end after SIGTERM, and after SIGKILL. One that hangs in the driver is left behind.
LEAVE_S = 3
DEATH_S = 10
# The findings of a step reach the disk within this time.
SAVED_EVERY_S = 0.5
# These limits bound the output of a step beside its findings.
LOG_LINES_MAX = 4000
LINE_BYTES_MAX = 1 << 16


class Machine:
    """Holds what this machine has, looked up once."""

    def __init__(self, dry, is_software=False):
        self.is_software = is_software
        if dry:
            self.cards, self.no_card = [], "a dry run: no card was looked for"
        elif is_software:
            self.cards, self.no_card = [{"name": f"{stages.SOFTWARE_CARDS} (no real one)", "driver": "none", "architecture": "90"}], ""
        else:
            self.cards, self.no_card = stages.find_cards()
        self.architecture = self.cards[0]["architecture"] if self.cards else None


def end(process):
    """Ends all processes that a step has started: SIGTERM comes first, then SIGKILL."""
    for number, patience_s in ((signal.SIGTERM, LEAVE_S), (signal.SIGKILL, DEATH_S)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        if number == signal.SIGKILL:
            return ""
    return ", and it does not end when it is killed"


class Reader(threading.Thread):
    """Takes the lines of one pipe of a step as they come."""

    def __init__(self, pipe, take):
        super().__init__(daemon=True)
        self.pipe, self.take = pipe, take
        self.start()

    def run(self):
        with self.pipe:
            while line := self.pipe.readline(LINE_BYTES_MAX):
                self.take(line.decode(errors="replace").rstrip("\n"))


class StepRun:
    """Runs one step."""

    def __init__(self, step, results, log, variables):
        self.step, self.results, self.log, self.variables = step, results, log, variables
        self.last_words = []
        self.words = 0

    def take(self, line):
        finding = stages.finding_of(line)
        if finding:
            self.results.add(finding)
        else:
            self.take_words(line)

    def take_words(self, line):
        self.last_words = (self.last_words + [line])[-20:]
        self.words += 1
        if self.words <= LOG_LINES_MAX:
            self.log(f"    {line}" if self.words < LOG_LINES_MAX else "    ... and more, which is not kept")

    def go(self, command, limit_s):
        environment = dict(builds.environment(ROOT), CUDA_DEVICE_ORDER="PCI_BUS_ID", **self.variables)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   cwd=ROOT, env=environment, start_new_session=True)
        readers = [Reader(process.stdout, self.take), Reader(process.stderr, self.take_words)]
        try:
            code = self.wait(process, limit_s)
        finally:
            trouble = end(process)  # also ends what the step has left running
        for reader in readers:
            reader.join(DEATH_S)
        if code is None:
            return "timed out", f"after {limit_s:.0f} s{trouble}"
        return self.verdict(code)

    def wait(self, process, limit_s):
        """Returns the exit status, or None if the step has not ended by the limit. Saves findings while it waits."""
        deadline = time.monotonic() + limit_s
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                return process.wait(min(left_s, SAVED_EVERY_S))
            except subprocess.TimeoutExpired:
                self.results.save_new()
        return None

    def verdict(self, code):
        findings = list(self.results.findings)
        wrong = [f for f in findings if f.get("wrong")]
        faults = [f["fault"] for f in findings if "fault" in f]
        if faults:
            return "failed", faults[0]
        if wrong:
            return "failed", f"{len(wrong)} of {sum('check' in f for f in findings)} checks found something wrong"
        if code != 0:
            words = next((line for line in reversed(self.last_words) if line.strip()), "")
            return "failed", f"exit status {code}" + (f": {words[:200]}" if words else "")
        if not findings:
            return "failed", "it ended without a finding"
        if not any(self.step.wanted in f.get("check", "") for f in findings):
            return "failed", f"none of its checks says {self.step.wanted}"
        return "run", ""


class Device:
    def __init__(self, options, out, machine=None):
        self.options = options
        self.machine = machine or Machine(options.dry, options.software)
        self.deadline = time.monotonic() + options.minutes * 60
        self.report = report.Report(out, self.facts())
        self.builds = {}
        if options.programs:
            self.builds = dict.fromkeys(("alone", "library"), builds.Built(options.programs))
        elif self.machine.cards:
            limit_s = 60 * (options.build_minutes or BUILD_SHARE * options.minutes)
            self.builds = builds.start(ROOT, self.machine.architecture, self.report.log, limit_s)

    def facts(self):
        commit = self.options.commit
        if not commit and shutil.which("git"):
            said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True)
            commit = said.stdout.strip()
        cards = self.machine.cards
        return {
            "card": ", ".join(card["name"] for card in cards) or f"none ({self.machine.no_card})",
            "driver": cards[0]["driver"] if cards else "",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": commit or "not known",
            "cores": os.cpu_count(),
        }

    def left_s(self):
        return self.deadline - time.monotonic()

    def why_not(self, step):
        """Returns (status, reason) if the step is skipped or fails before it starts, or else None."""
        if self.machine.no_card:
            return "skipped", self.machine.no_card
        for need in (Device.has_time, *step.needs, Device.has_time):
            trouble = need(self)
            if trouble:
                return trouble
        return None

    def has_time(self):
        return ("skipped", "no time was left") if self.left_s() < USEFUL_S else None

    def do(self, step, results):
        trouble = self.why_not(step)
        if trouble:
            return trouble
        command = [str(word) for word in step.command(self)]
        self.report.log(f"{step.name}: {' '.join(command)}")
        variables = dict(step.variables, **({"TRANSHIP_CUDA": stages.SOFTWARE_CARDS} if self.machine.is_software else {}))
        return StepRun(step, results, self.report.log, variables).go(command, min(step.limit_s, self.left_s()))

    def go(self):
        wanted = re.compile(self.options.only)
        for stage in stages.STAGES:
            for step in stage.steps:
                if not wanted.search(step.name):
                    continue
                if stage.number > 1:  # Times are measured only while no compiler runs.
                    for build in self.builds.values():
                        build.program("", self.left_s())
                results = self.report.begin(stage, step)
                began = time.monotonic()
                status, why = "failed", "it was ended from outside"
                try:
                    status, why = self.do(step, results)
                except OSError as error:
                    status, why = "failed", str(error)
                finally:
                    self.report.end(results, status, why, time.monotonic() - began)
                print(f"{stage.number}. {step.name}: {status}" + (f" ({why})" if why else "")
                      + (f", {time.monotonic() - began:.1f} s" if status != "skipped" else ""), flush=True)

    def close(self):
        for build in self.builds.values():
            build.stop()
        self.report.close()


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./do device", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=9, help="all of it ends by then (default: 9)")
    parser.add_argument("--build-minutes", type=float, metavar="N",
                        help="a build that takes longer is stopped, and its steps are skipped (default: 4/9 of all minutes)")
    parser.add_argument("--dry", action="store_true", help="show the steps, all of them skipped")
    parser.add_argument("--software", action="store_true", help="on software cards: what needs a real one is skipped")
    parser.add_argument("--programs", type=pathlib.Path, metavar="FOLDER", help="where the programs are, if they have been built")
    parser.add_argument("--only", default="", metavar="REGEX", help="only the steps whose names it is found in")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT") or ROOT / "build/device"),
                        help="where the results go (default: $OUT, or build/device)")
    parser.add_argument("--commit", default="", help="what is said to have run, where there is no git")
    options = parser.parse_args(arguments)
    if not 0 < options.minutes <= 24 * 60:
        parser.error(f"--minutes is between 0 and 1440, not {options.minutes:g}")
    if options.build_minutes is not None and not options.build_minutes > 0:
        parser.error(f"--build-minutes is more than 0, not {options.build_minutes:g}")
    try:
        re.compile(options.only)
    except re.error as error:
        parser.error(f"--only: {error}")
    return options


def stopped(*_):
    raise SystemExit(143)


def main(arguments=None):
    options = parse(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stopped)
    device = Device(options, options.out)
    try:
        device.go()
    finally:
        device.close()
    counts = device.report.counts()
    print(", ".join(f"{count} {status}" for status, count in counts.items()) + f"; {options.out / 'gpu-results.md'}")
    is_good = not counts.get("failed") and not counts.get("timed out") and (options.dry or counts.get("run"))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
