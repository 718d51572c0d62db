#!/usr/bin/env python3
"""usage: run_tests.py [--filter FILTER] [--own-cards] [--under COMMAND] PROGRAM

Runs tests of a program of GoogleTest, as far as they match, and reports each of its suites as a check. Tests that were
skipped are an answer, with the reason. With --own-cards, the tests make their software cards themselves. --under runs
the program by a command in one word, "checker --option", whose findings are reported, too.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
import findings  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--filter", default="*")
parser.add_argument("--own-cards", action="store_true")
parser.add_argument("--under", default="")
parser.add_argument("program")
arguments = parser.parse_args()
variables = {name: value for name, value in os.environ.items() if name != "TRANSHIP_CUDA" or not arguments.own_cards}


def why(test):
    """Older versions of GoogleTest do not say."""
    reasons = test.get("skipped") or [{}]
    return (reasons[0].get("message", "").strip().splitlines() or [""])[-1]


with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "tests.json"
    run = subprocess.run([*arguments.under.split(), arguments.program, f"--gtest_filter={arguments.filter}", f"--gtest_output=json:{out}"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=variables)
    print(run.stdout[-6000:])
    if not out.exists():
        findings.say(fault=f"{pathlib.Path(arguments.program).name} ended with status {run.returncode} before its tests had")
        sys.exit(3)
    suites = json.loads(out.read_text())["testsuites"]
    if not suites:
        findings.say(fault=f"no test matches {arguments.filter}")
    for suite in suites:
        tests = suite["testsuite"]
        skipped = [test for test in tests if test["result"] == "SKIPPED"]
        failed = [test for test in tests if test.get("failures")]
        if skipped:
            reasons = collections.Counter(why(test) for test in skipped)
            findings.answer(f"{suite['name']}: skipped", len(skipped), reasons.most_common(1)[0][0])
        first = f"{failed[0]['name']}: {failed[0]['failures'][0]['failure'][:400]}" if failed else suite["time"]
        if len(tests) > len(skipped):
            findings.check(suite["name"], len(tests) - len(skipped), len(failed), first)
    if run.returncode and not any(test.get("failures") for suite in suites
                                  for test in suite["testsuite"]):
        findings.say(fault=f"status {run.returncode}")
