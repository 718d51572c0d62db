#!/usr/bin/env python3
"""Tests of the test hosts and of the jobs on them.

    hosts_test.py [--require-hosts] [unittest option...]

Exit status 77: skipped, because this user cannot make hosts here. With --require-hosts that is a failure.
"""
import contextlib
import functools
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import hosts as command
import jobs
import namespaces
from hosts import Hosts, Mpi, launch

GOOD = (jobs.PASSED, jobs.FINALISE_HANGS)
TIMEOUT_S = 60
HERE = str(namespaces.HERE)
# Servers take one connection after the other, and answer with as many bytes as they are asked for.
SERVER = """
import socket
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    while True:
        with server.accept()[0] as peer:
            peer.sendall(b"x" * int(peer.recv(64)))
"""
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], 5000), timeout=float(sys.argv[3])) as peer:
    peer.sendall(sys.argv[2].encode())
    received = 0
    while more := len(peer.recv(1 << 20)):
        received += more
    print(received)
"""


def python(text, *words):
    return [sys.executable, "-c", text, *map(str, words)]


@contextlib.contextmanager
def serving(hosts, name):
    process = subprocess.Popen(hosts.enter(name, python(SERVER)), stdout=subprocess.PIPE,
                               preexec_fn=namespaces.die_with_parent())
    try:
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        os.kill(namespaces.only_descendant(process.pid), signal.SIGKILL)
        process.wait()
        process.stdout.close()


def asked(hosts, source, target, count, timeout_s=10):
    """Returns how many bytes a host gets from the server on another, or None if it cannot reach it in time."""
    client = hosts.run(source, python(CLIENT, target, count, timeout_s), capture_output=True, text=True)
    return int(client.stdout) if client.returncode == 0 else None


class TestOfHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.outside = sorted(os.listdir("/sys/class/net"))
        cls.hosts = Hosts(2)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()

    def test_a_host_has_its_own_name_processes_and_shared_memory(self):
        seen = self.hosts.run("h2", ["sh", "-c", "hostname; ls /dev/shm; echo $$; cat /proc/1/comm; touch /dev/shm/mine"],
                              capture_output=True, text=True).stdout.split()
        self.assertEqual(seen[0], "h2")
        self.assertLess(int(seen[1]), 100)
        self.assertEqual(seen[2:], ["sleep"])
        self.assertTrue((self.hosts.shared_memory("h2") / "mine").exists())
        self.assertFalse((self.hosts.shared_memory("h1") / "mine").exists())
        self.assertFalse(pathlib.Path("/dev/shm/mine").exists())

    def test_hosts_reach_each_other_by_name_and_counters_tell_the_wire_from_the_loop(self):
        with serving(self.hosts, "h2"):
            before = self.hosts.counters()
            self.assertEqual(asked(self.hosts, "h1", "h2", 1000000), 1000000)
            between = self.hosts.counters()
            self.assertEqual(asked(self.hosts, "h2", "h2", 1000000), 1000000)
            after = self.hosts.counters()
        self.assertGreater(between["h2"]["eth0"].sent_bytes - before["h2"]["eth0"].sent_bytes, 1000000)
        self.assertGreater(between["h1"]["eth0"].received_bytes - before["h1"]["eth0"].received_bytes, 1000000)
        self.assertEqual(between["h2"]["lo"], before["h2"]["lo"])
        self.assertGreater(after["h2"]["lo"].sent_bytes - between["h2"]["lo"].sent_bytes, 1000000)
        self.assertLess(after["h2"]["eth0"].sent_bytes - between["h2"]["eth0"].sent_bytes, 1000)

    def check_cut_and_heal(self, hosts):
        with serving(hosts, "h2"):
            self.assertEqual(asked(hosts, "h1", "h2", 1), 1)
            hosts.cut("h2")
            self.assertIsNone(asked(hosts, "h1", "h2", 1, timeout_s=0.5))
            hosts.heal("h2")
            self.assertEqual(asked(hosts, "h1", "h2", 1), 1)

    def test_a_host_can_be_cut_off_and_healed(self):
        self.check_cut_and_heal(self.hosts)

    @unittest.skipUnless(os.path.exists("/dev/net/tun"), "no /dev/net/tun")
    def test_a_shaped_wire_keeps_its_rate_and_can_be_cut(self):
        with Hosts(2, wire=(1000, 200)) as hosts:
            self.check_cut_and_heal(hosts)
            timed = "import time; begin = time.monotonic()\n" + CLIENT + "\nprint(time.monotonic() - begin)"
            with serving(hosts, "h2"):
                client = hosts.run("h1", python(timed, "h2", 10000000, 10), capture_output=True, text=True)
        received, seconds = client.stdout.split()
        self.assertEqual(int(received), 10000000)
        self.assertGreater(float(seconds), 0.08)

    def test_two_sets_of_hosts_do_not_meet_and_have_no_names_outside(self):
        with Hosts(1) as others:
            with serving(others, "h1"):
                self.assertEqual(asked(others, "h1", "h1", 1), 1)
                self.assertIsNone(asked(self.hosts, "h2", "h1", 1))
            self.assertEqual(sorted(os.listdir("/sys/class/net")), self.outside)

    def test_hosts_end_with_their_process_even_if_it_is_killed(self):
        program = ("import hosts, signal; of = hosts.Hosts(2); print(*of.pids.values(), flush=True); "
                   "of.run('h1', ['sleep', '600'])")
        process = subprocess.Popen([sys.executable, "-B", "-c", program], cwd=HERE, stdout=subprocess.PIPE, text=True,
                                   preexec_fn=namespaces.die_with_parent())
        pids = [int(word) for word in process.stdout.readline().split()]
        self.assertEqual(len(pids), 3)
        process.kill()
        process.wait()
        process.stdout.close()
        namespaces.wait_until(lambda: not any(namespaces.is_running(pid) for pid in pids), 20, "the hosts end")

    def test_hosts_that_stay_are_used_and_ended_by_other_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            verb = [sys.executable, "-B", f"{HERE}/hosts.py", "--state", f"{folder}/up.json"]

            def said(*words):
                return subprocess.run([*verb, *words], capture_output=True, text=True)

            try:
                self.assertEqual(said("up", "2").stdout, "h1 h2\n")
                self.assertEqual(said("up", "2").returncode, 1)
                self.assertEqual(said("run", "h2", "hostname").stdout, "h2\n")
                self.assertEqual(said("run", "h2", "sh", "-c", "exit 7").returncode, 7)
                self.assertEqual(len(said("counters").stdout.splitlines()), 4)
                self.assertEqual(said("cut", "h2").returncode, 0)
                self.assertIn("there are h1 h2", said("heal", "h9").stderr)
            finally:
                self.assertEqual(said("down").returncode, 0)
            self.assertEqual(said("counters").returncode, 1)


def of_each_mpi(test):
    """A test that is made once with each MPI."""

    @functools.wraps(test)
    def tested(self):
        for mpi in self.mpis:
            with self.subTest(mpi=mpi.name):
                test(self, mpi)

    return tested


class TestOfJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.mpis = [mpi for mpi in map(Mpi, ("openmpi", "mpich")) if not mpi.why_missing()]
        for mpi in cls.mpis:
            subprocess.run([f"mpicc.{mpi.family}", "-Wall", "-Wextra", "-Werror", "-o", str(cls.ring(mpi)), f"{HERE}/ring.c"],
                           check=True)
        cls.hosts = Hosts(2)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.close()
        shutil.rmtree(cls.folder)

    @classmethod
    def ring(cls, mpi):
        return cls.folder / f"ring_{mpi.family}"

    def launch(self, mpi, hosts, ranks, way="", placement="block", timeout=TIMEOUT_S, **options):
        return launch(mpi, hosts, ranks, placement, [str(self.ring(mpi)), way], timeout, **options)

    @of_each_mpi
    def test_ranks_lie_in_blocks_or_round_and_get_variables(self, mpi):
        where = {"block": "ring of 5 around: h1 h1 h1 h2 h2\n", "round": "ring of 5 around: h1 h2 h1 h2 h1\n"}
        for placement, line in where.items():
            outcome = self.launch(mpi, self.hosts, 5, placement=placement, environment={"RING_WORD": "around"})
            self.assertIn(outcome.status, GOOD, outcome.output)
            self.assertIn(line, outcome.output)

    @of_each_mpi
    def test_jobs_run_on_the_bare_machine(self, mpi):
        outcome = self.launch(mpi, None, 3)
        self.assertIn(outcome.status, GOOD, outcome.output)
        self.assertIn("ring of 3", outcome.output)

    @of_each_mpi
    def test_messages_within_a_host_do_not_cross_the_wire(self, mpi):
        bytes_of_one = 1000000
        for placement, crossing in (("block", 1), ("round", 2)):  # from each of the two hosts
            outcome = self.launch(mpi, self.hosts, 4, f"says-{bytes_of_one}", placement)
            self.assertIn(outcome.status, GOOD, outcome.output)
            for host, sent in outcome.sent_bytes.items():
                self.assertGreater(sent, crossing * bytes_of_one, host)
                self.assertLess(sent, (crossing + 0.5) * bytes_of_one, host)

    @of_each_mpi
    def test_a_failed_rank_fails_the_job(self, mpi):
        outcome = self.launch(mpi, self.hosts, 2, "fails")
        self.assertEqual(outcome.status, jobs.FAILED, outcome.output)
        self.assertIn(outcome.exit_status, (3, None))  # None: MPI_Finalize has hung

    @of_each_mpi
    def test_hanging_work_is_killed_and_leaves_nothing(self, mpi):
        for hosts in (self.hosts, None):
            outcome = self.launch(mpi, hosts, 3, "hangs", timeout=2)
            self.assertEqual(outcome.status, jobs.TIMED_OUT, outcome.output)
            self.assertIsNone(outcome.exit_status)
            self.assertEqual([pid for pid in namespaces.processes() if self.runs(pid, mpi)], [])
        for name in self.hosts.names:
            self.assertEqual(list(self.hosts.shared_memory(name).iterdir()), [])
        self.assertEqual(list(pathlib.Path(tempfile.gettempdir()).glob(f"{jobs.FOLDER_PREFIX}-{os.getpid()}-*")), [])

    def runs(self, pid, mpi):
        try:
            return os.readlink(f"/proc/{pid}/exe") == str(self.ring(mpi))
        except OSError:
            return False

    @of_each_mpi
    def test_a_hang_after_the_work_is_told_apart(self, mpi):
        outcome = self.launch(mpi, self.hosts, 2, "hangs-in-finalise", grace=0.5)
        self.assertEqual(outcome.status, jobs.FINALISE_HANGS, outcome.output)
        self.assertLess(outcome.seconds, TIMEOUT_S / 2)

    @of_each_mpi
    def test_an_abort_of_mpi_after_the_work_is_told_apart(self, mpi):
        done, fails = 'echo 0 >"$TRANSHIP_TEST_DONE_DIR/0"; ', "exit 1"
        aborts = "echo Error in system call pthread_mutex_destroy; echo PMPI_Finalize; exit 1"
        for script, status in ((done + aborts, jobs.FINALISE_HANGS), (aborts, jobs.FAILED), (done + fails, jobs.FAILED)):
            outcome = launch(mpi, self.hosts, 1, "block", ["sh", "-c", script], TIMEOUT_S)
            self.assertEqual(outcome.status, status, (script, outcome.output))

    @of_each_mpi
    def test_a_hang_after_work_that_failed_is_a_failure(self, mpi):
        script = 'echo 1 >"$TRANSHIP_TEST_DONE_DIR/0"; sleep 600'
        self.assertEqual(launch(mpi, self.hosts, 1, "block", ["sh", "-c", script], TIMEOUT_S, grace=0.1).status, jobs.FAILED)


class TestOfTheCommand(unittest.TestCase):
    def said(self, *words):
        """Returns the exit status of `hosts.py test` and what it prints."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = command.test(command.arguments(["test", *words]))
        return status, printed.getvalue()

    def test_the_matrix_names_each_job_once(self):
        mpi = Mpi("mpich")
        cells = command.matrix([mpi], [0, 1, 2, 3], [1, 2, 4], ["block", "round"])
        self.assertEqual([cell[1:] for cell in cells],
                         [(0, 1, "block"), (0, 2, "block"), (0, 4, "block"), (1, 1, "block"), (1, 2, "block"), (1, 4, "block"),
                          (2, 2, "block"), (2, 4, "block"), (2, 4, "round"), (3, 4, "block"), (3, 4, "round")])

    def test_ranks_are_placed_evenly(self):
        self.assertEqual(jobs.placed(["h1", "h2", "h3"], 8, "block"), {"h1": [0, 1, 2], "h2": [3, 4, 5], "h3": [6, 7]})
        self.assertEqual(jobs.placed(["h1", "h2", "h3"], 4, "round"), {"h1": [0, 3], "h2": [1], "h3": [2]})
        self.assertEqual(jobs.placed(["h1", "h2"], 1, "block"), {"h1": [0]})

    def test_a_failed_cell_fails_and_shows_its_end(self):
        status, printed = self.said("--cell", "mpich/2/2/block", "--", "sh", "-c", "seq 100; exit 3")
        self.assertEqual(status, 1)
        self.assertRegex(printed, r"failed .* mpich, 2 ranks, 2 hosts, block\n")
        self.assertRegex(printed, r"\n    \.\.\. 160 lines before these are left out\n")
        self.assertIn("again: --cell mpich/2/2/block\n", printed)
        self.assertIn("1 job in", printed)

    def test_cells_that_pass_take_a_line_each(self):
        status, printed = self.said("--mpi", "mpich", "--hosts", "0,2", "--ranks", "2", "--", "true")
        self.assertEqual(status, 0)
        self.assertEqual(len(printed.splitlines()), 3)

    def test_without_rights_hosts_are_skipped_by_name_or_required(self):
        words = ["--mpi", "mpich", "--hosts", "0,2", "--ranks", "2", "--", "true"]
        with mock.patch.object(namespaces, "why_no_hosts", lambda: "only root may make them"):
            status, printed = self.said(*words)
            self.assertEqual(status, command.SKIPPED)
            self.assertIn("passed", printed)
            self.assertIn("skipped: jobs over test hosts: only root may make them\n", printed)
            self.assertEqual(self.said("--require-hosts", *words)[0], 1)

    def test_an_mpi_that_is_not_installed_is_skipped_by_name(self):
        status, printed = self.said("--mpi", "openmpi=/nowhere", "--hosts", "0", "--ranks", "1", "--", "true")
        self.assertEqual(status, command.SKIPPED)
        self.assertIn("skipped: jobs of openmpi=/nowhere: /nowhere/bin/mpirun is not installed\n", printed)


class Result(unittest.TextTestResult):
    """Stops after the test that a signal has ended, which unittest takes for one that failed."""

    def addError(self, test, err):
        super().addError(test, err)
        self._stop_after(err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self._stop_after(err)

    def _stop_after(self, err):
        if err and issubclass(err[0], SystemExit):
            self.stop()


def main():
    required = "--require-hosts" in sys.argv
    words = [word for word in sys.argv if word != "--require-hosts"]
    why = namespaces.why_no_hosts()
    if not why and (missing := [reason for mpi in ("openmpi", "mpich") if (reason := Mpi(mpi).why_missing())]):
        why = "; ".join(missing)
    if why:
        print(f"{'failed' if required else 'skipped'}: tests of the test hosts: {why}")
        return 1 if required else command.SKIPPED
    # A signal also leaves the `with` blocks and class fixtures in order.
    signal.signal(signal.SIGTERM, namespaces.end_with_exception)
    runner = unittest.TextTestRunner(resultclass=Result)
    return 0 if unittest.main(argv=words, exit=False, testRunner=runner).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
