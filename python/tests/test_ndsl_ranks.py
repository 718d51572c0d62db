"""NDSL's halo updates against what NDSL answered, over every kind of ranks."""

import base64
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml
import zlib

import numpy as np
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
    """Returns the output of rank 0; skips where the machine has no MPI."""
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
    """A small run of the example, whose results it checks itself. Its picture has six tiles with their names, white around
    them, axes in degrees and a scale in metres."""
    example = pathlib.Path(__file__).parents[2] / "examples" / "shallow_water.py"
    picture = tmp_path / "surface.svg"
    ran = subprocess.run(
        [sys.executable, str(example), "12", "3", str(picture)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert "24 ranks and 6 give the same bits" in ran.stdout
    svg = xml.fromstring(picture.read_text(encoding="utf-8"))
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert [text.partition(":")[0] for text in texts if ": " in text and "tile" in text] == [f"tile {tile}" for tile in range(6)]
    assert "angle along i (degrees)" in texts and "angle along j (degrees)" in texts
    assert any(text.startswith("height of the surface (m), contour lines every") for text in texts)
    heights = [float(text) for text in texts if text.isdigit() and int(text) > 45]
    assert len(heights) > 3 and len({high - low for low, high in zip(heights, heights[1:])}) == 1

    content = base64.b64decode(svg.find("{http://www.w3.org/2000/svg}image").get("href").partition("base64,")[2])
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", content[16:24])
    chunks, start = {}, 8
    while start < len(content):
        length, kind = struct.unpack(">I4s", content[start : start + 8])
        chunks[kind] = content[start + 8 : start + 8 + length]
        start += length + 12
    rows, palette = zlib.decompress(chunks[b"IDAT"]), chunks[b"PLTE"]
    stride = 1 + width
    assert len(rows) == height * stride and (width, height) == (768, 576)
    coloured = []
    for row, column in np.ndindex(3, 4):
        index = rows[(row * 192 + 96) * stride + 1 + column * 192 + 96]
        if palette[3 * index : 3 * index + 3] != b"\xff\xff\xff":
            coloured.append((column, row))
    assert coloured == [(2, 0), (3, 0), (1, 1), (2, 1), (0, 2), (1, 2)]
