"""NDSL's halo updates against what NDSL answered, over every kind of ranks."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import zlib

import pytest
from ndsl_cases import CubeCase, cube_cases, is_defect

import tranship as ts
from tranship.ndsl import CubedSphereCommunicator, LocalComm, Timer

LAYOUTS = {6: (1, 1), 24: (2, 2)}


class Recording(LocalComm):
    """Ranks of one thread that keep a copy of each message."""

    log: list

    def Isend(self, sendbuf, dest, tag=0, **kwargs):
        self.log.append(((self.Get_rank(), dest, tag), sendbuf.tobytes()))
        return super().Isend(sendbuf, dest, tag, **kwargs)


@pytest.mark.parametrize("size", LAYOUTS)
def test_halos_and_messages_are_ndsls(size):
    cases, arrays = cube_cases(size)
    if not cases:
        pytest.skip(f"no cases of {size} ranks: TRANSHIP_CONFORMANCE_DIR has all")
    compared = 0
    for case in cases:
        shared, log = {}, []
        running = []
        for rank in range(size):
            comm = Recording(rank, size, shared)
            comm.log = log
            communicator = CubedSphereCommunicator.from_layout(comm, LAYOUTS[size], timer=Timer())
            running.append(CubeCase(case, arrays, rank).steps(communicator))
        if is_defect(case):
            continue  # compared with other orders of dimensions below
        while running:
            running = [one for one in running if next(one, "done") != "done"]
        if "messages" in case:
            payload = arrays[f"{case['id']}/messages"].tobytes()
            expected = {}
            for source, target, tag, offset, nbytes in case["messages"]:
                expected.setdefault((source, target, tag), []).append(payload[offset : offset + nbytes])
            sent = {}
            for key, message in log:
                sent.setdefault(key, []).append(message)
            assert sent == expected, (case["id"], case["note"])
            compared += 1
    assert compared or "TRANSHIP_CONFORMANCE_DIR" not in os.environ


def body_of(size):
    cases, arrays = cube_cases(size)

    def body(world):
        communicator = CubedSphereCommunicator.from_layout(world, LAYOUTS[size])
        done = 0
        for case in cases:
            if not is_defect(case):
                CubeCase(case, arrays, world.rank).run(communicator)
                done += 1
        return done

    return len(cases), body


def test_halos_of_a_world_are_ndsls(run):
    cases, body = body_of(6)
    if not cases:
        pytest.skip("no cases of 6 ranks: TRANSHIP_CONFORMANCE_DIR has all")
    done = run(6, body)
    assert min(done) == max(done) > 0


@pytest.mark.parametrize("ranks", ["threads", "processes"])
def test_halos_of_a_larger_world_are_ndsls(ranks):
    cases, body = body_of(24)
    if not cases:
        pytest.skip("no cases of 24 ranks: TRANSHIP_CONFORMANCE_DIR has all")
    done = ts.launch(24, body, ranks=ranks)
    assert min(done) == max(done) > 0


def mpirun(size, script, *arguments, timeout=240):
    """What rank 0 prints; skips where the machine has no MPI."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: there are no ranks of MPI")
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun in the path")
    command = ["mpirun", "-n", str(size), "--oversubscribe", "--allow-run-as-root"]
    command += ["--mca", "mpi_yield_when_idle", "1", sys.executable, str(script), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=pathlib.Path(__file__).parent)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("size", LAYOUTS)
def test_halos_over_mpi_are_ndsls(size):
    cases, _ = body_of(size)
    if not cases:
        pytest.skip(f"no cases of {size} ranks: TRANSHIP_CONFORMANCE_DIR has all")
    said = mpirun(size, pathlib.Path(__file__).parent / "ndsl_mpi_ranks.py")
    done = sum(not is_defect(case) for case in cube_cases(size)[0])
    assert f"{2 * done} cases on {size} ranks" in said


def test_the_documentation_runs(tmp_path):
    text = (pathlib.Path(__file__).parents[2] / "docs" / "ndsl.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    program = tmp_path / "documentation.py"
    program.write_text("\n".join(blocks))
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_shallow_water_is_drawn(tmp_path):
    """A small run of the example: what it claims it asserts itself; its picture has six tiles and white around them."""
    example = pathlib.Path(__file__).parents[2] / "examples" / "shallow_water.py"
    picture = tmp_path / "surface.png"
    ran = subprocess.run(
        [sys.executable, str(example), "12", "3", str(picture)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert "24 ranks and 6 give the same bits" in ran.stdout
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", content[16:24])
    start = content.index(b"IDAT")
    (length,) = struct.unpack(">I", content[start - 4 : start])
    rows = zlib.decompress(content[start + 4 : start + 4 + length])
    stride = 1 + 3 * width
    assert len(rows) == height * stride and (width, height) == (768, 576)
    coloured = [
        (column, row)
        for row in range(3)
        for column in range(4)
        if rows[(row * 192 + 96) * stride + 1 + 3 * (column * 192 + 96) :][:3] != b"\xff\xff\xff"
    ]
    assert coloured == [(2, 0), (3, 0), (1, 1), (2, 1), (0, 2), (1, 2)]
