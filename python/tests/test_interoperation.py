"""Other libraries' arrays: their memory moved as it lies, ours lent to them, theirs read block by block."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from neighbours import address_of, needs, numbers, turned

import tranship as ts

# NumPy.


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_numpy_arrays_are_moved_as_they_lie(order):
    data = numbers((6, 8))
    data = np.asfortranarray(data) if order == "F" else data[::2, ::-1] if order == "strided" else data

    def body(world):
        d = ts.distribution(data.shape, (1, 1), "whole")
        assert address_of(ts.wrap(world, d, data).local) == address_of(data)
        return np.array_equal(turned(world, data), data)

    assert ts.launch(1, body) == [True]


def test_numpy_takes_views_by_every_protocol():
    def body(world):
        a = ts.array(world, ts.distribution((3, 4), (1, 1)))

        class Interface:
            __array_interface__ = a.__array_interface__

        views = [np.asarray(a), np.from_dlpack(a), a.local, np.asarray(memoryview(a)), np.asarray(Interface())]
        assert {address_of(view) for view in views} == {address_of(a.local)}
        views[0][1, 2] = 7
        assert views[1][1, 2] == 7
        return views

    assert ts.launch(1, body)[0][0][1, 2] == 7  # the memory outlives its world


def test_the_buffer_of_an_array_keeps_its_memory_and_its_flags():
    def body(world):
        d = ts.distribution((3, 4), (1, 1), order=(1, 0))
        frozen = np.ones((3, 4), order="F")
        frozen.flags.writeable = False
        a, b = ts.array(world, d, "f4"), ts.wrap(world, d, frozen)
        view = memoryview(a)
        assert (view.shape, view.strides, view.format, view.readonly) == ((3, 4), (4, 12), "f", False)
        assert memoryview(b).readonly and not np.asarray(b).flags.writeable
        with pytest.raises((ValueError, BufferError)):
            np.frombuffer(memoryview(b)[::2], "f8")
        assert bytes(memoryview(b)) == frozen.tobytes()
        a.local[1, 2] = 7
        return view

    (view,) = ts.launch(1, body)
    assert view[1, 2] == 7  # the array and its world have gone


# ml_dtypes.


@needs("ml_dtypes")
def test_bfloat16_of_ml_dtypes_is_moved():
    import ml_dtypes

    data = numbers((4, 4)).astype(ml_dtypes.bfloat16)

    def body(world):
        out = turned(world, data)
        return out.dtype == ml_dtypes.bfloat16 and np.array_equal(out.view("u2"), data.view("u2"))

    assert ts.launch(1, body) == [True]


# Arrays with DLPack: jax, torch.


@pytest.mark.skipif(
    not any(map(importlib.util.find_spec, ("jax", "torch"))), reason="without jax and torch: pip install jax"
)
def test_arrays_with_dlpack_in_a_process_of_their_own():
    cases = pathlib.Path(__file__).parent / "dlpack_cases.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr


# Sources of reshard.


class Sliced:
    """An array in chunks that counts what is read of it."""

    def __init__(self, data, chunks):
        self.data, self.chunks, self.shape, self.dtype = data, chunks, data.shape, data.dtype
        self.lock, self.reads, self.largest = threading.Lock(), 0, 0

    def __getitem__(self, box):
        out = self.data[box]
        with self.lock:
            self.reads += 1
            self.largest = max(self.largest, out.nbytes)
        return out


def parts_of(folder, spec):
    """The global array from the parts of a directory."""
    out = np.full(spec.distribution.extents, -1.0)
    for number, rank in enumerate(spec.distribution.grid.ranks):
        part = np.load(folder / f"part-{number:05}.npy")
        for one in spec.distribution.slices(rank):
            out[one["owned"]] = part[one["local_owned"]]
    return out


def check_reshard(source, data, tmp_path, **options):
    to = ts.ArraySpec("f64", ts.distribution(data.shape, (2, 2), ["cyclic(5)", "block"], overlap=[1, 0]))
    report = ts.reshard(source, tmp_path / "parts", to=to, verify=True, **options)
    assert report["verified"] and np.array_equal(parts_of(tmp_path / "parts", to), data)
    return report


@pytest.mark.parametrize("chunks", [None, (7, 9), (40, 30), (1, 30), ((10, 10, 20), (30,))], ids=str)
def test_arrays_are_resharded_block_by_block(chunks, tmp_path):
    data = numbers((40, 30))
    source = Sliced(data, chunks)
    check_reshard(source, data, tmp_path, threads=2)
    assert source.reads > 0
    text = ts.reshard(source, tmp_path / "again", to="@ 1x3 : whole, block")
    assert text["parts_written"] == 3 and "f64[40,30]" in text["target"]


def test_a_source_larger_than_the_memory_is_read_in_pieces(tmp_path):
    source = Sliced(np.ones((3000, 1000)), None)  # 24 MB
    ts.reshard(source, tmp_path / "a.npy", to="@ 1x1 : whole, whole", memory_bytes=4 << 20)
    assert source.largest <= 4 << 20
    assert np.load(tmp_path / "a.npy", mmap_mode="r")[2999, 999] == 1


def test_what_a_source_raises_comes_out_and_leaves_nothing(tmp_path):
    class Broken(Sliced):
        def __getitem__(self, box):
            if self.reads == 2:
                raise LookupError("a chunk is lost")
            return super().__getitem__(box)

    with pytest.raises(LookupError, match="a chunk is lost"):
        ts.reshard(Broken(np.ones((400, 300)), (50, 300)), tmp_path / "parts", to="@ 4x1 : block, whole", threads=2)
    assert os.listdir(tmp_path) == []


def test_sources_that_are_none_are_refused(tmp_path):
    class Wrong(Sliced):
        def __getitem__(self, box):
            return super().__getitem__(box)[:1]

    for source, match in (
        (3, "a int is no source"),
        (np.float64(1), "0 dimensions"),
        (np.array(["a"]), "number types"),
        (np.ones(3, ">f8"), "byte order"),
        (Wrong(np.ones((4, 4)), None), "a slice of the source is"),
    ):
        with pytest.raises(ts.InvalidUse, match=match):
            ts.reshard(source, tmp_path / "parts", to="@ 2x1 : block, whole")
    assert os.listdir(tmp_path) == []


def test_ctrl_c_and_progress_end_a_reshard_of_an_array(tmp_path):
    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ts.reshard(np.ones((4000, 1000)), tmp_path / "parts", to="@ 4x1 : block, whole", memory_bytes=4 << 20, progress=stop)
    assert os.listdir(tmp_path) == []


@needs("dask")
def test_dask_arrays_are_computed_chunk_by_chunk(tmp_path):
    import dask.array

    data, lock, computed = numbers((40, 30)), threading.Lock(), []

    def chunk(block_info=None):
        (rows, columns) = block_info[None]["array-location"]
        with lock:
            computed.append((rows, columns))
        return data[slice(*rows), slice(*columns)]

    source = dask.array.map_blocks(chunk, chunks=((10, 10, 20), (15, 15)), dtype="f8", meta=np.empty((0, 0)))
    ts.reshard(source, tmp_path / "rows", to="@ 2x1 : block, whole")
    assert np.array_equal(np.load(tmp_path / "rows" / "part-00001.npy"), data[20:])
    assert len(set(computed)) == 6
    check_reshard(source, data, tmp_path)


@needs("xarray")
def test_xarray_arrays_are_sources(tmp_path):
    import xarray

    data = numbers((40, 30))
    check_reshard(xarray.DataArray(data, dims=("y", "x")), data, tmp_path)
    if importlib.util.find_spec("dask"):
        lazy = xarray.DataArray(data, dims=("y", "x")).chunk({"y": 16, "x": 30})
        assert lazy.chunks == ((16, 16, 8), (30,))
        check_reshard(lazy * 1.0, data, tmp_path)


@needs("ml_dtypes")
def test_bfloat16_arrays_are_sources(tmp_path):
    import ml_dtypes

    data = numbers((4, 6)).astype(ml_dtypes.bfloat16)
    ts.reshard(data, tmp_path / "a.npy", to="@ 1x1 : whole, whole", verify=True)
    assert np.array_equal(np.load(tmp_path / "a.npy").view("u2"), data.view("u2"))


def test_memory_maps_are_sources(tmp_path):
    np.save(tmp_path / "a.npy", numbers((40, 30)))
    check_reshard(np.load(tmp_path / "a.npy", mmap_mode="r"), numbers((40, 30)), tmp_path)


# MPI.

MPI_PROGRAM = """
import numpy as np
from mpi4py import MPI
import tranship as ts

comm = MPI.COMM_WORLD
me, other = comm.rank, 1 - comm.rank

def one(world):
    a = ts.array(world, ts.distribution((4, 6), (1, 1), order=(1, 0)))
    a.fill(lambda i, j: 100 * me + 10 * i + j)
    got = np.empty_like(a.local)
    comm.Sendrecv(a.local, other, recvbuf=got, source=other)       # the memory itself, in Fortran order
    assert np.array_equal(got, a.local - 100 * me + 100 * other)
    comm.Allreduce(MPI.IN_PLACE, a.local)                          # MPI writes to it
    return a

a, = ts.launch(1, one)                                             # this process is the one rank of its world
assert a.local[3, 5] == 2 * 35 + 100

def ranks(world):
    b = ts.array(world, ts.distribution((6, 6), (2, 1), overlap=1, edge="toroidal"))
    b.fill(lambda i, j: 1000 * me + 6 * i + j)
    ts.halo(b)()
    return b.count_wrong(lambda i, j: 1000 * me + 6 * i + j), b.owned().copy()

(wrong, upper), (also, lower) = ts.launch(2, ranks)                # two ranks that are threads, beside MPI
assert wrong == also == 0
total = comm.allreduce(float(upper.sum() + lower.sum()))
assert total == 2 * sum(range(36)) + 36 * 1000, total
comm.Barrier()
open(f"content.{me}", "x").close()  # what ranks print may come out mixed
"""


@needs("mpi4py")
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="without mpirun: apt-get install openmpi-bin")
def test_mpi_and_tranship_run_in_one_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MPI_PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    oversubscribe = ["--oversubscribe"] if "Open MPI" in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout else []
    done = subprocess.run(
        ["mpirun", *oversubscribe, "-n", "2", sys.executable, str(program)],
        capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path,
    )  # fmt: skip
    if done.returncode and "cannot load MPI library" in done.stderr:
        pytest.skip("mpi4py finds no MPI library: apt-get install openmpi-bin")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("content.*")) == ["content.0", "content.1"]
