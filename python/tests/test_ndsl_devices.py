"""NDSL's names where CuPy is installed: with a device and without one, by a module that stands in for it."""

import numpy as np
import pytest
from cupy_like import install

import tranship as ts
from tranship.ndsl import CubedSphereCommunicator, LocalComm, Quantity, TileCommunicator
from tranship.ndsl.buffer import BUFFER_CACHE
from tranship.ndsl.utils import device_synchronize


class Recording(LocalComm):
    """Ranks of one thread that write down where their messages lie."""

    def Isend(self, sendbuf, dest, tag=0, **kwargs):
        self.kinds.add(type(sendbuf).__module__)
        return super().Isend(sendbuf, dest, tag, **kwargs)

    def Irecv(self, recvbuf, source, tag=0, **kwargs):
        self.kinds.add(type(recvbuf).__module__)
        return super().Irecv(recvbuf, source, tag, **kwargs)

    def Scatter(self, sendbuf, recvbuf, root=0, **kwargs):
        self.kinds.add(type(recvbuf).__module__)
        super().Scatter(sendbuf, recvbuf, root, **kwargs)

    def Gather(self, sendbuf, recvbuf, root=0, **kwargs):
        self.kinds.add(type(sendbuf).__module__)
        super().Gather(sendbuf, recvbuf, root, **kwargs)


def test_cupy_without_a_device_is_not_used(monkeypatch):
    """Importable CuPy is no sign of a device: NumPy's quantities are updated, and nothing is asked of the device."""
    cupy = install(monkeypatch, devices=0)
    device_synchronize()

    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 2))
        q = Quantity(np.full((4, 4), 1.0 + world.rank), ["j", "i"], "", origin=(1, 1), extent=(2, 2))
        updater = tile.get_scalar_halo_updater([_spec(q)])
        updater.update([q])
        tile.halo_update(q, 1)
        return q.data[1, 0]

    assert ts.launch(2, body) == [2.0, 1.0]
    shared = {}
    ranks = [TileCommunicator.from_layout(LocalComm(r, 2, shared), (1, 2)) for r in range(2)]
    mine = [Quantity(np.full((4, 4), 1.0 + r), ["j", "i"], "", origin=(1, 1), extent=(2, 2)) for r in range(2)]
    for one in [c.start_halo_update(q, 1) for c, q in zip(ranks, mine)]:
        one.wait()
    assert mine[0].data[1, 0] == 2.0
    assert set(cupy.calls) == {"getDeviceCount"}


def test_a_device_that_is_there_is_waited_for(monkeypatch):
    cupy = install(monkeypatch, devices=1)
    for _ in range(3):
        device_synchronize()
    assert cupy.calls.count("deviceSynchronize") == 3 and cupy.calls.count("getDeviceCount") == 1


def _spec(q):
    from tranship.ndsl.quantity.quantity import halo_spec_of

    return halo_spec_of(q, 1)


def _host(q):
    return q.data if isinstance(q.data, np.ndarray) else q.data.get()


@pytest.mark.parametrize("force_cpu", [False, True])
def test_messages_of_device_arrays_lie_where_they_are_asked_to(monkeypatch, force_cpu):
    """Scalars, vectors that turn, shared points, scatter and gather leave what NumPy's arrays get; with force_cpu no
    message lies on the device, and without it every one does."""
    cupy = install(monkeypatch, devices=1)
    dims = {"c": ["j", "i", "k"], "x": ["j_interface", "i", "k"], "y": ["j", "i_interface", "k"]}

    def quantity(rank, kind, on_device):
        shape = [6 + ("interface" in dim) if dim != "k" else 2 for dim in dims[kind]]
        data = np.random.default_rng([rank, ord(kind)]).random(shape)
        data = cupy.asarray(data) if on_device else data
        extent = [n - 2 if dim != "k" else n for n, dim in zip(shape, dims[kind])]
        return Quantity(data, dims[kind], "K", origin=(1, 1, 0), extent=extent)

    def run(on_device):
        BUFFER_CACHE.clear()
        shared, kinds = {}, set()
        comms = [Recording(r, 6, shared) for r in range(6)]
        for comm in comms:
            comm.kinds = kinds
        ranks = [CubedSphereCommunicator.from_layout(comm, (1, 1), force_cpu=force_cpu) for comm in comms]
        out = []
        for kinds_of, start in (
            ("c", lambda c, q: c.start_halo_update(q, 1)),
            ("cc", lambda c, x, y: c.start_vector_halo_update(x, y, 1)),
            ("xy", lambda c, x, y: c.start_synchronize_vector_interfaces(x, y)),
        ):
            mine = [[quantity(r + 6 * n, kind, on_device) for n, kind in enumerate(kinds_of)] for r in range(6)]
            for one in [start(c, *q) for c, q in zip(ranks, mine)]:
                one.wait()
            out += [_host(q) for of_rank in mine for q in of_rank]
        data = np.arange(6.0 * 4 * 4).reshape(6, 4, 4)
        whole = Quantity(cupy.asarray(data) if on_device else data, ["tile", "j", "i"], "K")
        parts = [c.scatter(whole if c.rank == 0 else None) for c in ranks]
        gathered = [c.gather(part) for c, part in reversed(list(zip(ranks, parts)))][-1]
        assert all(type(q.data) is type(whole.data) for q in (*parts, gathered))
        BUFFER_CACHE.clear()
        return [*out, *map(_host, parts), _host(gathered)], kinds

    expected, _ = run(False)
    found, kinds = run(True)
    assert kinds == {"numpy" if force_cpu else "cupy"}
    for one, like in zip(found, expected):
        assert np.array_equal(one, like)


def test_a_world_exchanges_arrays_of_numpy(monkeypatch):
    cupy = install(monkeypatch, devices=1)

    def body(world):
        q = Quantity(cupy.zeros((4, 4)), ["j", "i"], "", origin=(1, 1), extent=(2, 2))
        for force_cpu in (False, True):
            tile = TileCommunicator.from_layout(world, (1, 1), force_cpu=force_cpu)
            with pytest.raises(NotImplementedError, match="its ranks exchange arrays of NumPy"):
                tile.halo_update(q, 1)
        return True

    assert ts.launch(1, body) == [True]
