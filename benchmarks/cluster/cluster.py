"""Two ranks on two hosts, with tranship, MPI and a bare stream in turn.

usage: cluster.py --programs FOLDER [--rounds 11] [--json FILE] [--wire RATE_MBIT,DELAY_US] [--mpi openmpi,mpich]

Needs root, for test hosts (tests/hosts). Prints a table for each MPI: seconds of tranship, how many times as long the
others take, and what the interfaces of both hosts send for a byte of an exchange.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "hosts"))

import hosts as test_hosts  # noqa: E402
import jobs  # noqa: E402
import namespaces  # noqa: E402


def amount(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rows_of(mpi, hosts, program, rounds):
    outcome = jobs.launch(mpi, hosts, 2, "block", [str(program), str(rounds)], 600)
    if outcome.status not in (jobs.PASSED, jobs.FINALISE_HANGS):
        sys.exit(f"cluster.py: {mpi.name}: {outcome.status}\n{outcome.output}")
    return [json.loads(line) for line in outcome.output.splitlines() if line.startswith("{")]


def table(rows):
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"] if name != "tranship"))
    columns = ["work", "tranship", *(f"{name}, times as long" for name in names), "sent, times the data"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        ours = row["seconds"]["tranship"]
        others = [f"{row['seconds'][name] / ours:.2f}" if name in row["seconds"] else "" for name in names]
        others.append(f"{row['sent']:.4f}" if "sent" in row else "")
        lines.append(f"| {row['row']} | {amount(ours)} | " + " | ".join(others) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--wire", type=test_hosts.wire_of)
    parser.add_argument("--mpi", default="openmpi,mpich")
    chosen = parser.parse_args()
    why = namespaces.why_no_hosts()
    if why:
        sys.exit(f"cluster.py: no test hosts: {why}")
    found = {}
    for name in chosen.mpi.split(","):
        mpi = jobs.Mpi(name)
        with namespaces.Hosts(2, wire=chosen.wire) as hosts:
            found[name] = rows_of(mpi, hosts, chosen.programs.resolve() / f"contestant_cluster_{mpi.family}", chosen.rounds)
        print(f"\n{name}, 2 hosts with 1 rank each\n\n{table(found[name])}", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
