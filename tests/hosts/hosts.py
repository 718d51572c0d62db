#!/usr/bin/env python3
"""Makes test hosts on this machine, and runs a command over a matrix of MPI jobs on them. See README.md.

    hosts.py up COUNT [--wire RATE_MBIT,DELAY_US]    makes hosts h1 .. hCOUNT, which stay until `down`
    hosts.py run HOST COMMAND...                     runs a command on a host, or on "front", where jobs are started
    hosts.py cut HOST | heal HOST                    unplugs a host, plugs it in again
    hosts.py counters                                the bytes that each interface has sent and received
    hosts.py down
    hosts.py test [options] -- COMMAND...            makes hosts, and runs the command as MPI jobs of every shape

Exit status of `test`: 0 passed, 1 failed, 2 usage, 77 what could run has passed, and the rest is skipped by name.
"""
import argparse
import collections
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time

import jobs
import namespaces
from jobs import Mpi, Outcome, launch  # noqa: F401, what tests in Python use
from namespaces import Hosts

STATE = namespaces.BUILD / "hosts" / "up.json"  # each clone has its own hosts
TAIL_LINES = 40
SKIPPED = 77

Cell = collections.namedtuple("Cell", "mpi hosts ranks place")


def shown(cell):
    where = "the bare machine" if cell.hosts == 0 else f"{cell.hosts} host{'s' if cell.hosts > 1 else ''}, {cell.place}"
    return f"{cell.mpi.name}, {cell.ranks} rank{'s' if cell.ranks > 1 else ''}, {where}"


def matrix(mpis, hosts, ranks, places):
    """Returns all cells, without those that would start the same job as another: fewer ranks than hosts leave hosts idle, and
    on one host, or with one rank on each, there is one placement."""
    found = []
    for count, mpi, of, place in itertools.product(hosts, mpis, ranks, places):
        if of >= count and (place == places[0] or (count > 1 and of > count)):
            found.append(Cell(mpi, count, of, place))
    return found


def cell_of(text, mpis):
    """Parses MPI/HOSTS/RANKS/PLACE."""
    words = text.rsplit("/", 3)
    if len(words) != 4 or words[3] not in ("block", "round"):
        raise ValueError(f"'{text}' is no cell: MPI/HOSTS/RANKS/block or MPI/HOSTS/RANKS/round, as openmpi/2/4/block")
    mpi = mpis.setdefault(words[0], Mpi(words[0]))
    return Cell(mpi, int(words[1]), int(words[2]), words[3])


class Matrix:
    """Runs cells, says how each has ended, and counts."""

    def __init__(self, command, options):
        self.command, self.options = command, options
        self.ended = collections.Counter()
        self.skipped = collections.OrderedDict()  # what is skipped, and why

    def run(self, cells):
        started = time.monotonic()
        cells = self._possible(cells)
        for count, of in itertools.groupby(sorted(cells, key=lambda cell: cell.hosts), key=lambda cell: cell.hosts):
            if count == 0:
                self._run_on(None, of)
                continue
            with Hosts(count, wire=self.options.wire) as hosts:
                self._run_on(hosts, of)
        return self._summary(time.monotonic() - started)

    def _possible(self, cells):
        why = namespaces.why_no_hosts() if any(cell.hosts for cell in cells) else None
        possible = []
        for cell in cells:
            missing = cell.mpi.why_missing()
            if missing:
                self.skipped[f"jobs of {cell.mpi.name}"] = missing
            elif why and cell.hosts:
                self.skipped["jobs over test hosts"] = why
            else:
                possible.append(cell)
        return possible

    def _run_on(self, hosts, cells):
        for cell in cells:
            command = [word.replace("{mpi}", cell.mpi.family) for word in self.command]
            outcome = launch(cell.mpi, hosts, cell.ranks, cell.place, command, self.options.timeout, label_ranks=True,
                             pin=self.options.pin)
            self.ended[outcome.status] += 1
            print(f"{outcome.status:<22} {outcome.seconds:6.1f} s  {shown(cell)}", flush=True)
            if self.options.show or outcome.status in (jobs.FAILED, jobs.TIMED_OUT):
                self._print_output(outcome, cell)

    def _print_output(self, outcome, cell):
        lines = outcome.output.splitlines()
        if not self.options.show and len(lines) > TAIL_LINES:
            print(f"    ... {len(lines) - TAIL_LINES} lines before these are left out")
            lines = lines[-TAIL_LINES:]
        print("".join(f"    {line}\n" for line in lines), end="")
        if outcome.status == jobs.FAILED:
            how = "its ranks failed, and then MPI hung" if outcome.exit_status is None else f"exit status {outcome.exit_status}"
            print(f"    {how}")
        if outcome.status == jobs.TIMED_OUT:
            print(f"    killed: not ended after {self.options.timeout:g} s")
        if outcome.status in (jobs.FAILED, jobs.TIMED_OUT):
            print(f"    again: --cell {cell.mpi.name}/{cell.hosts}/{cell.ranks}/{cell.place}", flush=True)

    def _summary(self, seconds):
        good = self.ended[jobs.PASSED] + self.ended[jobs.FINALISE_HANGS]
        bad = self.ended[jobs.FAILED] + self.ended[jobs.TIMED_OUT]
        hung = self.ended[jobs.FINALISE_HANGS]
        hung = f" ({hung} of them: {jobs.FINALISE_HANGS})" if hung else ""
        print(f"{good + bad} job{'s' if good + bad != 1 else ''} in {seconds:.1f} s: {good} passed{hung}, {bad} failed")
        for what, why in self.skipped.items():
            print(f"{'failed' if self.options.require_hosts else 'skipped'}: {what}: {why}")
        if bad or (self.skipped and self.options.require_hosts):
            return 1
        return SKIPPED if self.skipped else 0


def wire_of(text):
    rate_mbit, comma, delay_us = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"'{text}' is no wire: RATE_MBIT,DELAY_US, as 1000,200")
    return float(rate_mbit), float(delay_us)


def list_of(parse):
    return lambda text: [parse(word) for word in text.split(",") if word]


def arguments(words):
    command = []
    if words[:1] == ["test"] and "--" in words:
        words, command = words[:words.index("--")], words[words.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=pathlib.Path, default=STATE, help="the file that says which hosts are up")
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up")
    up.add_argument("count", type=int)
    up.add_argument("--wire", type=wire_of, metavar="RATE_MBIT,DELAY_US")
    run = verbs.add_parser("run")
    run.add_argument("host")
    run.add_argument("command", nargs=argparse.REMAINDER)
    for verb in ("cut", "heal"):
        verbs.add_parser(verb).add_argument("host")
    verbs.add_parser("counters")
    verbs.add_parser("down")
    test = verbs.add_parser("test")
    test.add_argument("--mpi", type=list_of(str), default=["openmpi", "mpich"], metavar="LIST",
                      help="openmpi, mpich, openmpi=FOLDER, mpich=FOLDER")
    test.add_argument("--hosts", type=list_of(int), default=[1, 2, 3], metavar="LIST", help="0 is the bare machine")
    test.add_argument("--ranks", type=list_of(int), default=[1, 2, 3, 4, 8], metavar="LIST")
    test.add_argument("--place", type=list_of(str), default=["block", "round"], metavar="LIST")
    test.add_argument("--cell", action="append", metavar="MPI/HOSTS/RANKS/PLACE", help="this job only; may be repeated")
    test.add_argument("--wire", type=wire_of, metavar="RATE_MBIT,DELAY_US")
    test.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="of each job (60)")
    test.add_argument("--pin", action="store_true", help="all ranks of host K run on core K-1")
    test.add_argument("--show", action="store_true", help="print what passed jobs print, too")
    test.add_argument("--require-hosts", action="store_true", help="what would be skipped has failed")
    chosen = parser.parse_args(words)
    if chosen.verb == "test":
        chosen.command = command
        if not command:
            parser.error("test takes a command after --")
        if any(place not in ("block", "round") for place in chosen.place):
            parser.error(f"ranks are placed 'block' or 'round', not '{','.join(chosen.place)}'")
    return chosen


def test(chosen):
    mpis = {}
    if chosen.cell:
        cells = [cell_of(text, mpis) for text in chosen.cell]
    else:
        cells = matrix([Mpi(text) for text in chosen.mpi], chosen.hosts, chosen.ranks, chosen.place)
    return Matrix(chosen.command, chosen).run(cells)


def up(chosen):
    if Hosts.load(chosen.state):
        sys.exit(f"hosts.py: hosts are up already ({chosen.state}); `down` ends them")
    why = namespaces.why_no_hosts()
    if why:
        print(f"skipped: test hosts: {why}")
        return SKIPPED
    hosts = Hosts(chosen.count, wire=chosen.wire, outlive=True)
    hosts.save(chosen.state)
    print(" ".join(hosts.names))
    return 0


def act(chosen):
    hosts = Hosts.load(chosen.state)
    if chosen.verb == "down":
        if hosts:
            hosts.close()
        chosen.state.unlink(missing_ok=True)
        return 0
    if not hosts:
        sys.exit(f"hosts.py: no hosts are up ({chosen.state})")
    if chosen.verb == "counters":
        for name, interfaces in hosts.counters().items():
            for interface, counter in interfaces.items():
                print(f"{name} {interface} sent {counter.sent_bytes} received {counter.received_bytes}")
        return 0
    if chosen.host not in hosts.names + ([namespaces.FRONT] if chosen.verb == "run" else []):
        sys.exit(f"hosts.py: '{chosen.host}' is not up; there are {' '.join(hosts.names)}")
    if chosen.verb == "run":
        return hosts.run(chosen.host, chosen.command, env={**os.environ, **hosts.environment()}).returncode
    (hosts.cut if chosen.verb == "cut" else hosts.heal)(chosen.host)
    return 0


def main():
    signal.signal(signal.SIGTERM, namespaces.end_with_exception)
    chosen = arguments(sys.argv[1:])
    try:
        return test(chosen) if chosen.verb == "test" else up(chosen) if chosen.verb == "up" else act(chosen)
    except (OSError, ValueError, TimeoutError, subprocess.CalledProcessError) as error:
        print(f"hosts.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
