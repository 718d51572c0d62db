"""Worlds of MPI's communicators, as jobs of each MPI that is here."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import tranship as ts

PROGRAM = pathlib.Path(__file__).with_name("mpi_worlds.py")
MODULES = pathlib.Path(ts.__file__).parent


@pytest.mark.parametrize("first", ["mpi4py", "tranship"])
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_worlds_of_communicators(mpi, first, tmp_path):
    pytest.importorskip("mpi4py")
    launcher = shutil.which(f"mpirun.{mpi}")
    if launcher is None or not (MODULES / f"tranship_mpi_{mpi}.so").exists():
        pytest.skip(f"there is no mpirun.{mpi}, or no module for it")
    options = ["--oversubscribe", "--allow-run-as-root"] if mpi == "openmpi" else []
    environment = {**os.environ, "MPI4PY_MPIABI": mpi}
    alone = subprocess.run([launcher, *options, "-n", "1", "true"], capture_output=True, text=True, timeout=60, check=False)
    if alone.returncode != 0:
        pytest.skip(f"mpirun.{mpi} starts no process here: {alone.stderr}")
    for library in glob.glob("/usr/lib/*/libmpich.so.12"):  # a wheel of mpi4py wants it by the name that MPICH itself has
        (tmp_path / "libmpi.so.12").symlink_to(library)
        environment["LD_LIBRARY_PATH"] = str(tmp_path)
    job = subprocess.run(
        [launcher, *options, "-n", "4", sys.executable, str(PROGRAM), first],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=environment,
    )
    assert job.returncode == 0 and job.stdout.count("is right") == 4, job.stdout + job.stderr
