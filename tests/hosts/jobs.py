"""MPI jobs on test hosts, or on the bare machine: how each MPI is started, and what became of a job.

A rank's program says when its work is done, because some MPIs hang in MPI_Finalize (MPICH 4.0.2 over UCX does, now and
then): before it finalises, it writes a file into the folder TRANSHIP_TEST_DONE_DIR, with its rank as name and its exit
status as text (no text means 0). A job that hangs although all ranks have done so is not a failure of its work, nor is one
that MPI aborts in MPI_Finalize then (MPICH 4.0.2 finds a mutex of its own busy in about one job of fifty).
"""
import collections
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import namespaces

REMOTE_SHELL = namespaces.HERE / "remote_shell"
DONE_VARIABLE = "TRANSHIP_TEST_DONE_DIR"
FOLDER_PREFIX = "tranship-job"
GRACE_S = 2  # what MPI_Finalize takes on a busy machine, with a margin; to be wrong here costs only the exit status
DEATH_S = 3  # what a launcher takes to end its ranks

PASSED, FAILED, TIMED_OUT, FINALISE_HANGS = "passed", "failed", "timed out", "done, but MPI does not finalise"

# seconds: of the whole job. exit_status: that of the launcher, None if it had to be killed. sent_bytes: {host: bytes that left
# it through eth0 while the job ran}.
Outcome = collections.namedtuple("Outcome", "status exit_status output seconds sent_bytes")


class Mpi:
    """An MPI: "openmpi" or "mpich" as Debian installs it, or "openmpi=FOLDER" or "mpich=FOLDER" for one with FOLDER/bin.

    What is started like MPICH, such as Intel MPI, is an "mpich".
    """

    def __init__(self, text):
        self.family, _, folder = text.partition("=")
        if self.family not in ("openmpi", "mpich"):
            raise ValueError(f"'{text}' names no MPI: openmpi, mpich, openmpi=FOLDER or mpich=FOLDER")
        self.folder = pathlib.Path(folder).resolve() if folder else None
        self.name = text
        starter = "mpirun" if self.family == "openmpi" else "mpiexec"
        self.launcher = str(self.folder / "bin" / starter) if folder else f"{starter}.{self.family}"

    def why_missing(self):
        """Returns why this MPI cannot be started, or None."""
        return None if shutil.which(self.launcher) else f"{self.launcher} is not installed"

    @functools.lru_cache(maxsize=None)
    def major(self):
        said = subprocess.run([self.launcher, "--version"], capture_output=True, text=True).stdout
        version = re.search(r"^mpirun\S* \((?:OpenRTE|Open MPI)\) (\d+)", said)
        if not version:
            raise OSError(f"{self.launcher} --version names no version of Open MPI: {said[:200]}")
        return int(version[1])

    def command(self, hosts, ranks, placement, scratch):
        """Returns the words that start a job, up to the program."""
        if self.family == "mpich":
            return self._hydra(hosts, ranks, placement)
        return self._open_mpi(hosts, ranks, placement, scratch)

    def _open_mpi(self, hosts, ranks, placement, scratch):
        modern = self.major() >= 5
        prefix, shell, folder = ("--prtemca", "plm_ssh_agent", "prte_tmpdir_base") if modern else (
            "--mca", "plm_rsh_agent", "orte_tmpdir_base")
        slots = {"localhost": ranks}
        if hosts:
            slots = {name: len(of) for name, of in placed(hosts.names, ranks, placement).items()}
        # Ranks that wait give up their core, because there are more ranks than cores.
        return [self.launcher, prefix, shell, str(REMOTE_SHELL), prefix, folder, scratch, "--mca", "mpi_yield_when_idle", "1",
                "--bind-to", "none", "--map-by", "node" if placement == "round" else "slot",
                "-H", ",".join(f"{name}:{count}" for name, count in slots.items()), "-np", str(ranks)]

    def _hydra(self, hosts, ranks, placement):
        if not hosts:
            return [self.launcher, "-launcher", "fork", "-n", str(ranks)]
        where = placed(hosts.names, ranks, placement)
        # From a list that is shorter than the ranks, hydra goes round.
        listed = ",".join(where if placement == "round" else [f"{name}:{len(of)}" for name, of in where.items()])
        return [self.launcher, "-launcher", "ssh", "-launcher-exec", str(REMOTE_SHELL), "-hosts", listed, "-n", str(ranks)]

    def environment(self):
        # Variables of one MPI are not shown to programs of the other, which may tell by them who has started them.
        found = {}
        if self.family == "openmpi":
            families = ["OMPI", "PRTE"] if self.major() >= 5 else ["OMPI"]
            found = {f"{family}_ALLOW_RUN_AS_ROOT{end}": "1" for family in families for end in ("", "_CONFIRM")}
        if self.folder:
            found["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return found


def placed(names, ranks, placement):
    """Returns {host: its ranks}, without hosts that get none. Where blocks cannot be equal, the first hosts have one rank more."""
    if placement == "round":
        found = {name: list(range(first, ranks, len(names))) for first, name in enumerate(names)}
    else:
        counts = [len(range(first, ranks, len(names))) for first in range(len(names))]
        begins = [sum(counts[:number]) for number in range(len(names))]
        found = {name: list(range(begin, begin + count)) for name, begin, count in zip(names, begins, counts)}
    return {name: of for name, of in found.items() if of}


def of_job(folder):
    """Returns the processes, on any host, that have the job's folder in their environment."""
    mark = f"{DONE_VARIABLE}={folder}/done".encode()
    found = []
    for pid in namespaces.processes():
        try:
            if mark in pathlib.Path("/proc", str(pid), "environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            pass
    return found


def kill(folder):
    """Ends all processes of a job and waits until they are gone."""

    def none_left():
        left = of_job(folder)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not left

    namespaces.wait_until(none_left, 10, "killed ranks end")


def worst_of(done, ranks):
    """Returns the exit status that the ranks have written, or None as long as one has written none."""
    worst = 0
    for rank in range(ranks):
        file = done / str(rank)
        if not file.exists():
            return None
        worst = worst or int(file.read_text().strip() or 0)
    return worst


def launch(mpi, hosts, ranks, placement, command, timeout, label_ranks=False, pin=False, environment=None, grace=GRACE_S):
    """Runs one job and returns its Outcome. Afterwards no process of it is left.

    hosts: a Hosts, or None for the bare machine. placement: "block" or "round". timeout: seconds for all of the job.
    label_ranks: each line of the output begins with its rank. pin: host hK keeps to core K-1. environment: more variables,
    which all ranks get, as they get those of this process.
    """
    if placement not in ("block", "round"):
        raise ValueError(f"ranks are placed 'block' or 'round', not '{placement}'")
    remove_orphans()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}-{os.getpid()}-"))
    try:
        return Job(mpi, hosts, ranks, folder).run(placement, command, timeout, label_ranks, pin, environment or {}, grace)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_orphans():
    """Removes what killed processes have left of their jobs."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}-*"):
        if not namespaces.is_running(int(folder.name[len(FOLDER_PREFIX):].split("-")[1])):
            shutil.rmtree(folder, ignore_errors=True)


class Job:
    """One job, its folder and its processes."""

    def __init__(self, mpi, hosts, ranks, folder):
        self.mpi, self.hosts, self.ranks, self.folder = mpi, hosts, ranks, folder
        self.done = folder / "done"
        self.done.mkdir()
        self.output = folder / "output"

    def run(self, placement, command, timeout, label_ranks, pin, environment, grace):
        # Open MPI names its scratch folders by process, and processes of different hosts may have one number: so each host has
        # its own place for them.
        scratch = "/dev/shm" if self.hosts else str(self.folder)
        words = self.mpi.command(self.hosts, self.ranks, placement, scratch)
        if label_ranks:
            words += self._labels()
        words += command
        variables = {**os.environ, **self.mpi.environment(), **environment, DONE_VARIABLE: str(self.done)}
        if self.hosts:
            words = self.hosts.enter(namespaces.FRONT, words)
            variables.update(self.hosts.environment(), TRANSHIP_TEST_PIN="1" if pin else "0")
        before = self._sent()
        started = time.monotonic()
        with open(self.output, "wb") as output:
            # On the bare machine the launcher ends its ranks if this process is killed.
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=variables,
                                       start_new_session=True, preexec_fn=namespaces.die_with_parent(signal.SIGTERM))
        try:
            status = self._wait(process, timeout, grace)
            seconds = time.monotonic() - started
            exit_status = process.poll()
        finally:
            self._end(process)
        sent = {name: bytes_now - before[name] for name, bytes_now in self._sent().items()}
        return Outcome(status, exit_status, self.output.read_text(errors="replace"), seconds, sent)

    def _labels(self):
        if self.mpi.family == "mpich":
            return ["-prepend-rank"]
        return ["--output", "tag"] if self.mpi.major() >= 5 else ["--tag-output"]

    def _sent(self):
        return {name: of["eth0"].sent_bytes for name, of in self.hosts.counters().items()} if self.hosts else {}

    def _is_aborted_in_finalise(self):
        said = self.output.read_text(errors="replace")
        return worst_of(self.done, self.ranks) == 0 and "pthread_mutex_destroy" in said and "MPI_Finalize" in said

    def _wait(self, process, timeout, grace):
        deadline = time.monotonic() + timeout
        hangs_at = None
        while time.monotonic() < deadline:
            try:
                if process.wait(0.02) == 0:
                    return PASSED
                return FINALISE_HANGS if self._is_aborted_in_finalise() else FAILED
            except subprocess.TimeoutExpired:
                pass
            if hangs_at is None and worst_of(self.done, self.ranks) is not None:
                hangs_at = time.monotonic() + grace
                deadline = max(deadline, hangs_at + 1)
            if hangs_at is not None and time.monotonic() > hangs_at:
                return FINALISE_HANGS if worst_of(self.done, self.ranks) == 0 else FAILED
        return TIMED_OUT

    def _end(self, process):
        ended = process.poll() is not None
        if not ended:
            # A launcher removes what its ranks have left, if it can.
            launcher = self._launcher_of(process)
            if launcher:
                os.kill(launcher, signal.SIGTERM)
            try:
                process.wait(DEATH_S)
            except subprocess.TimeoutExpired:
                pass
        kill(self.folder)
        process.wait()
        if not ended and self.hosts:
            for name in self.hosts.names:
                for left in self.hosts.shared_memory(name).iterdir():
                    left.unlink() if not left.is_dir() else shutil.rmtree(left, ignore_errors=True)

    def _launcher_of(self, process):
        """The process itself, or below the one that has entered the front."""
        if not self.hosts:
            return process.pid
        children = [pid for pid in namespaces.processes() if (stat := namespaces.stat_of(pid)) and int(stat[1]) == process.pid]
        return children[0] if children else None
