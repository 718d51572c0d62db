"""Ranks that are recorded, and recordings that are replayed; names of back-ends."""

import io
import pickle

import numpy as np
import pytest

import tranship as ts
from tranship.ndsl import Allocator, Backend, CubedSphereCommunicator, LocalComm, Quantity, TileCommunicator
from tranship.ndsl.comm import (
    CachingCommData,
    CachingCommReader,
    CachingCommWriter,
    CachingRequestReader,
    CachingRequestWriter,
    ReductionOperator,
)
from tranship.ndsl.comm.caching_comm import NullRequest
from tranship.ndsl.config import (
    BackendFramework,
    BackendLoopOrder,
    BackendStrategy,
    BackendTargetDevice,
    backend_cpu,
    backend_gpu,
    backend_python,
)
from tranship.ndsl.optional_imports import cupy
from tranship.ndsl.types import Number


def replayed(writer):
    file = io.BytesIO()
    writer.dump(file)
    file.seek(0)
    return CachingCommReader.load(file)


def fields(ranks):
    out = []
    for rank in range(ranks):
        data = np.full((7, 7), -1.0)
        data[2:5, 2:5] = rank + np.arange(9).reshape(3, 3) / 10
        out.append(Quantity(data, ["j", "i"], "", origin=(2, 2), extent=(3, 3), number_of_halo_points=2))
    return out


def test_a_halo_update_is_replayed():
    shared = {}
    writers = [CachingCommWriter(LocalComm(rank, 6, shared)) for rank in range(6)]
    recorded, played = fields(6), fields(6)
    ranks = [CubedSphereCommunicator.from_layout(writer, (1, 1)) for writer in writers]
    requests = [r.start_halo_update(q, 2) for r, q in zip(ranks, recorded)]
    for request in requests:
        request.wait()
    for rank, (writer, q, expected) in enumerate(zip(writers, played, recorded)):
        alone = CubedSphereCommunicator.from_layout(replayed(writer), (1, 1))
        assert (alone.rank, alone.size) == (rank, 6)
        alone.halo_update(q, 2)
        assert np.array_equal(q.data, expected.data)
        with pytest.raises(RuntimeError, match=f"of rank {rank} holds 4 received buffers, and all were replayed"):
            alone.halo_update(q, 2)


def test_messages_are_replayed_in_the_order_of_their_receives():
    """Also when they were waited for in another one."""
    shared = {}
    a, b = (CachingCommWriter(LocalComm(rank, 2, shared)) for rank in (0, 1))
    for n in range(3):
        a.Isend(np.array([float(n)]), dest=1, tag=n)
    buffers = [np.zeros(1) for _ in range(3)]
    requests = [b.Irecv(buffer, source=0, tag=n) for n, buffer in enumerate(buffers)]
    for request in reversed(requests):
        request.wait()
        request.wait()  # is recorded once
    again = replayed(b)
    out = [np.zeros(1) for _ in range(3)]
    for request in [again.Irecv(buffer, source=0, tag=n) for n, buffer in enumerate(out)]:
        request.wait()
    assert [one[0] for one in out] == [0.0, 1.0, 2.0] == [one[0] for one in buffers]
    again = replayed(b)
    with pytest.raises(RuntimeError, match=r"a message of float64\[1\] was recorded for a buffer of float32\[1\]"):
        again.Recv(np.zeros(1, "f4"), source=0)


def test_other_calls_are_replayed():
    shared = {}
    writers = [CachingCommWriter(LocalComm(rank, 2, shared)) for rank in (0, 1)]
    parts = [np.zeros(2) for _ in writers]
    whole = np.zeros((2, 2))

    def calls(comms, send):
        for rank, comm in enumerate(comms):
            comm.Scatter(send if rank == 0 else None, parts[rank])
            comm.barrier()
            comm.Barrier()
        for rank in (1, 0):
            comms[rank].Gather(parts[rank] + 1, whole if rank == 0 else None)
        out = [comm.bcast({"time": 3} if rank == 0 else None) for rank, comm in enumerate(comms)]
        out += [comm.allreduce(rank + 1, ReductionOperator.SUM) for rank, comm in enumerate(comms)]
        total = np.zeros(1)
        for rank, comm in enumerate(comms):
            comm.Allreduce(np.array([rank + 1.0]), total, ReductionOperator.SUM)
        out.append(float(total[0]))
        inplace = np.ones(1)
        for comm in comms:
            comm.Allreduce_inplace(inplace, ReductionOperator.PROD)
        halves = [comm.Split(0, rank) for rank, comm in enumerate(comms)]
        halves[0].Send(np.array([5.0]), dest=1)
        received = np.zeros(1)
        halves[1].Recv(received, source=0)
        return out, float(received[0])

    recorded = calls(writers, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert np.array_equal(whole, [[2, 3], [4, 5]]) and recorded[1] == 5.0
    assert recorded[0] == [{"time": 3}, {"time": 3}, 1, 3, 3.0]
    for part in parts:
        part[:] = 0
    whole[:] = 0
    assert calls([replayed(writer) for writer in writers], None) == recorded
    assert np.array_equal(whole, [[2, 3], [4, 5]])
    with pytest.raises(NotImplementedError, match="sendrecv"):
        writers[0].sendrecv(None, 1)
    with pytest.raises(NotImplementedError, match="sendrecv"):
        replayed(writers[0]).sendrecv(None, 1)


def test_what_is_no_recording_is_refused():
    with pytest.raises(TypeError, match="the file holds a dict"):
        CachingCommReader.load(io.BytesIO(pickle.dumps({})))
    with pytest.raises(TypeError, match="derived from `comm_abc.Comm`"):
        CachingCommWriter("mpi")

    def body(world):
        with pytest.raises(TypeError, match="ranks of a World exchange arrays"):
            CachingCommWriter(world)
        return True

    assert ts.launch(1, body) == [True]


def test_parts_of_a_recording():
    data = CachingCommData(rank=1, size=2, bcast_objects=["a"], generic_obj_buffers=[3])
    assert (data.get_bcast(), data.get_generic_obj()) == ("a", 3)
    for take, what in ((data.get_bcast, "1 broadcasts"), (data.get_split, "0 communicators")):
        with pytest.raises(RuntimeError, match=f"the recording of rank 1 holds {what}"):
            take()
    kept, out = [], np.zeros(2)
    request = CachingRequestWriter(NullRequest(), np.array([1.0, 2.0]), kept)
    assert kept == []
    request.wait()
    CachingRequestReader(out, kept[0]).wait()
    assert np.array_equal(out, [1, 2])


def test_an_allgather_is_replayed():
    class Alone(LocalComm):
        def allgather(self, sendobj):
            return [sendobj]

    writer = CachingCommWriter(Alone(0, 1, {}))
    tile = TileCommunicator.from_layout(writer, (1, 1))
    field = fields(1)[0]
    expected = tile.gather(field).data  # asks all ranks for their extents
    assert np.array_equal(TileCommunicator.from_layout(replayed(writer), (1, 1)).gather(field).data, expected)


def test_back_ends_are_names():
    backend = Backend("st:numpy:cpu:IJK")
    assert backend == "st:numpy:cpu:IJK" and backend == Backend("st:numpy:cpu:IJK") and backend != backend_gpu
    assert len({backend, Backend("st:numpy:cpu:IJK"), Backend.gpu()}) == 2 and backend != 3
    assert str(backend) == repr(backend) == backend.as_humanly_readable() == "st:numpy:cpu:IJK"
    assert backend.as_safe_for_path() == "st_numpy_cpu_IJK"
    assert (Backend.python(), Backend.cpu(), Backend.gpu()) == (backend_python, backend_cpu, backend_gpu)
    assert backend.is_stencil() and not backend.is_orchestrated() and Backend.cpu().is_orchestrated()
    assert Backend.gpu().is_gpu_backend() and Backend.gpu().device is BackendTargetDevice.GPU
    assert backend.framework is BackendFramework.NUMPY and backend.loop_order is BackendLoopOrder.IJK
    assert BackendStrategy("st") is BackendStrategy.STENCIL
    q = Quantity(np.zeros(3), ["i"], "", backend=backend)
    assert q.backend is backend and q.metadata.backend is backend
    for wrong, kind, message in (
        ("numpy", ValueError, "has 4 parts, and this one 1"),
        ("st:numpy:tpu:IJK", ValueError, "'tpu' is none of cpu, gpu"),
        (3, TypeError, "is a str, not a int"),
    ):
        with pytest.raises(kind, match=message):
            Backend(wrong)


def test_names_for_other_modules():
    assert cupy is None or hasattr(cupy, "ndarray")
    allocator: Allocator = np.zeros
    assert allocator((2,), "f8").shape == (2,)
    number: Number = np.float32(2)
    assert number == 2
