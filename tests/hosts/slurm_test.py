#!/usr/bin/env python3
"""Ranks as the processes of a step of srun, in a Slurm of one node that this test starts and ends.

    slurm_test.py PROGRAM [unittest option...]

PROGRAM joins by itself (tests/cli/joins_by_itself.cpp). Exit status 77: skipped, because Slurm is not installed, or this user
is not root.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import namespaces

TIMEOUT_S = 60
RANKS = 4
TOOLS = "slurmctld", "slurmd", "srun", "sinfo"
CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}
StateSaveLocation={folder}
NodeName=node NodeHostname=localhost NodeAddr=127.0.0.1 CPUs={ranks} State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


class Steps(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tranship-slurm-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        configuration = pathlib.Path(cls.folder) / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(folder=cls.folder, ranks=RANKS, controller_port=free_port(),
                                                      node_port=free_port()))
        cls.environment = {**os.environ, "SLURM_CONF": str(configuration)}
        for daemon in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "node"]):
            process = subprocess.Popen(daemon, env=cls.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       preexec_fn=namespaces.die_with_parent())
            cls.addClassCleanup(process.wait)
            cls.addClassCleanup(process.terminate)
        deadline = time.monotonic() + TIMEOUT_S
        while "idle" not in cls.said(["sinfo", "-h", "-o", "%T"]).stdout:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Slurm has no idle node after {TIMEOUT_S} s")
            time.sleep(0.1)

    @classmethod
    def said(cls, words, **variables):
        return subprocess.run(words, env={**cls.environment, **variables}, capture_output=True, text=True, timeout=TIMEOUT_S)

    def step(self, plugin, **variables):
        return self.said(["srun", "-Q", f"--mpi={plugin}", "-n", str(RANKS), "-O", self.program, "returns"], **variables)

    def meets(self, plugin, **variables):
        """Rank 1 returns 3 where it has met the others; a rank alone returns 0."""
        listed = self.said(["srun", "--mpi=list"])
        if plugin not in listed.stdout + listed.stderr:
            self.skipTest(f"this Slurm has no plugin {plugin}")
        ended = self.step(plugin, **variables)
        self.assertEqual(ended.returncode, 3, ended.stdout + ended.stderr)

    def test_processes_with_pmix_are_ranks_over_open_mpi(self):
        self.meets("pmix")

    def test_processes_with_pmi_are_ranks_over_mpich(self):
        self.meets("pmi2")

    def test_processes_with_another_mpi_than_the_launcher_expects_are_told_so(self):
        ended = self.step("pmix", TRANSHIP_MPI="libmpich.so.12")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("launcher and library belong to different MPIs", ended.stderr)

    def test_processes_that_cannot_meet_are_told_what_is_missing(self):
        ended = self.step("none")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("`srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH)", ended.stderr)


def why_skipped():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"these programs are missing: {' '.join(missing)}"
    return None if os.geteuid() == 0 else f"only root may start a node of Slurm, and this is user {os.geteuid()}"


if __name__ == "__main__":
    why = why_skipped()
    if why:
        print(f"skipped: steps of srun: {why}")
        sys.exit(77)
    Steps.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
