#!/usr/bin/env python3
"""usage: run_bench.py PROGRAM [OPTION...]

Runs the device benchmark, part by part so that findings are kept as they come, and reports each of its rows: ours, the
card's own copy of as many bytes, and each other contestant.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
import findings  # noqa: E402

PARTS = ("NDSL pack, k", "NDSL unpack, k", "NDSL pack, i", "NDSL unpack, i", "64 KiB", "doubles", "corner turn")
ROUNDS = 9  # of which the benchmark takes the median


def figure(name, value, unit, note=""):
    findings.say(figure=name, value=value, unit=unit, low=value, high=value, samples=ROUNDS, note=note)


def report(row):
    case, unit = row["case"], row["unit"]
    figure(case, row["ours"], unit)
    if row["limit"]:
        figure(f"{case}: a copy of as many bytes by the card", row["limit"], unit)
    if row["limit"] and unit == "GB/s":
        figure(f"{case}, of the device copy", row["ours"] / row["limit"], "")
    for peer, value in row["peers"].items():
        figure(f"{case}: {peer}", value, unit)


def main(program, *options):
    rows = 0
    for part in PARTS:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "rows.json")
            run = subprocess.run([program, "device", "--filter", part, "--json", str(out), *options],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            print(run.stdout[-4000:], flush=True)
            if run.returncode:
                findings.say(fault=f"{part}: status {run.returncode}: {(run.stdout.strip().splitlines() or [''])[-1]}")
                continue
            for row in json.loads(out.read_text()):
                report(row)
                rows += 1
    if not rows:
        findings.say(fault="the benchmark has measured nothing")


if __name__ == "__main__":
    main(*sys.argv[1:])
