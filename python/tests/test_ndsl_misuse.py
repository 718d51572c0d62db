"""Wrong calls of NDSL's names: what NDSL refuses is refused with its types, and what it does wrongly in silence too."""

import copy
import gc
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tranship as ts
from tranship.ndsl import (
    CubedSphereCommunicator,
    CubedSpherePartitioner,
    HaloDataTransformer,
    HaloExchangeSpec,
    HaloUpdater,
    LocalComm,
    MPIComm,
    Quantity,
    QuantityHaloSpec,
    TileCommunicator,
    TilePartitioner,
)
from tranship.ndsl.buffer import BUFFER_CACHE, Buffer, array_buffer, recv_buffer, send_buffer
from tranship.ndsl.comm.local_comm import ConcurrencyError
from tranship.ndsl.constants import EAST, NORTH, WEST
from tranship.ndsl.halo.data_transformer import INDICES_CACHE
from tranship.ndsl.utils import accessor_of, data_of


def quantity(dims=("j", "i"), n=5, halo=2, dtype="f8", extent=None, k=3):
    lengths = {"k": k, "k_interface": k + 1}
    cells = extent or [n + ("interface" in dim) if dim[0] in "ij" else lengths[dim] for dim in dims]
    shape = [e + 2 * halo if dim[0] in "ij" else e for dim, e in zip(dims, cells)]
    origin = [halo if dim[0] in "ij" else 0 for dim in dims]
    data = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    return Quantity(data, dims, "m", origin=origin, extent=cells, number_of_halo_points=halo)


def cube(rank=0, layout=(1, 1), shared=None):
    size = 6 * layout[0] * layout[1]
    return CubedSphereCommunicator.from_layout(LocalComm(rank, size, {} if shared is None else shared), layout)


def all_ranks(communicator, layout):
    size = layout[0] * layout[1] * (6 if communicator is CubedSphereCommunicator else 1)
    shared = {}
    return [communicator.from_layout(LocalComm(rank, size, shared), layout) for rank in range(size)]


def exchange(q=None, rotation=0, n=2, boundary=NORTH):
    q = q or quantity()
    communicator = TileCommunicator.from_layout(LocalComm(0, 1, {}), (1, 1))
    spec = q.halo_spec(n)
    of = communicator.boundaries[boundary]
    return HaloExchangeSpec(spec, of.send_slice(spec), rotation, of.recv_slice(spec))


def is_ours(error, kind):
    assert isinstance(error.value, ts.Error) and isinstance(error.value, kind)


# The transformer.


def test_a_transformer_needs_descriptors_of_one_dtype():
    with pytest.raises(RuntimeError, match="empty halo exchange") as error:
        HaloDataTransformer.get(np, [])
    is_ours(error, ts.InvalidUse)
    with pytest.raises(NotImplementedError, match="mixed precision: float32, float64"):
        HaloDataTransformer.get(np, [exchange(), exchange(quantity(dtype="f4"))])
    with pytest.raises(NotImplementedError, match="mixed precision"):
        HaloDataTransformer.get(np, [exchange()], [exchange(quantity(dtype="f4"))])
    with pytest.raises(RuntimeError, match="same exchange data for X and Y: the lists have 1 and 2"):
        HaloDataTransformer.get(np, [exchange()], [exchange(), exchange()])
    with pytest.raises(NotImplementedError, match="has no HaloDataTransformer implemented: it lacks zeros, negative"):
        HaloDataTransformer.get(sys, [exchange()])


def test_a_transformer_counts_what_it_is_given():
    q = quantity()
    scalar = HaloDataTransformer.get(np, [exchange(q), exchange(q)])
    vector = HaloDataTransformer.get(np, [exchange(q)], [exchange(q)])
    before = q.data.copy()
    for call in (scalar.async_pack, scalar.async_unpack):
        with pytest.raises(RuntimeError, match="count \\(1 is different that edges count 2"):
            call([q])
        with pytest.raises(RuntimeError, match="1 quantity for the components along j"):
            call([q, q], [q])
    for call in (vector.async_pack, vector.async_unpack):  # where NDSL asserts, truncates, or says nothing
        for x, y in (([q], None), ([q], []), ([q], [q, q]), ([q, q], [q]), ([q, q], [q, q])):
            with pytest.raises(RuntimeError, match="specifications count \\(x: 1, y: 1\\)"):
                call(x, y)
    assert np.array_equal(q.data, before)


def test_a_transformer_compares_quantities_with_specifications():
    q = quantity()
    transformer = HaloDataTransformer.get(np, [exchange(q)])
    transformer.get_pack_buffer().array[:] = 7
    wrong = {
        "float32 where the specification says float64": quantity(dtype="f4"),
        "int32 where": quantity(dtype="i4"),
        r"shape \(8, 9\) where the specification says \(9, 9\)": quantity(extent=(4, 5)),
        r"shape \(11, 11\) where": quantity(n=7),
        "dims": quantity(dims=("i", "j")),
        "origin": Quantity(np.zeros((9, 9)), ["j", "i"], "", origin=(1, 2), extent=(5, 5)),
    }
    for message, other in wrong.items():
        for call in (transformer.async_pack, transformer.async_unpack):
            with pytest.raises(RuntimeError, match=message):
                call([other])
    with pytest.raises(TypeError, match="a quantity is needed"):
        transformer.async_pack([np.zeros(3)])
    transformer.async_unpack([q])
    q.data.flags.writeable = False
    transformer.async_pack([q])
    with pytest.raises(RuntimeError, match="read-only"):
        transformer.async_unpack([q])


def test_slices_are_whole_and_inside():
    spec = quantity().halo_spec(2)
    good = (slice(2, 7), slice(2, 4))
    for bad, kind, message in (
        ((slice(2, 7, 2), slice(2, 4)), ValueError, "a step of 2 along j"),
        ((slice(2, 7),), ValueError, "pack_slices has 1 entry"),
        ((slice(2, 10), slice(2, 4)), IndexError, "points 2 to 10 along j, and the array has 0 to 9"),
        ((slice(-2, 3), slice(2, 4)), IndexError, "points -2 to 3"),
        ((slice(7, 2), slice(2, 4)), IndexError, "points 7 to 2"),
        ((3, slice(2, 4)), TypeError, "not 3 for j"),
    ):
        with pytest.raises(kind, match=message):
            HaloExchangeSpec(spec, bad, 0, good)
    for unpack in ((slice(2, 6), slice(2, 4)), (slice(1, 7), slice(2, 4))):
        with pytest.raises(RuntimeError, match="the blocks to pack have 10 elements together, and those to unpack"):
            HaloDataTransformer.get(np, [HaloExchangeSpec(spec, good, 0, unpack)])


def test_what_ndsl_packs_from_a_halo_is_packed():
    """Not a halo update, and allowed: descriptors name any blocks."""
    q = quantity()
    spec = q.halo_spec(2)
    cut = (slice(0, 2), slice(0, 9))
    transformer = HaloDataTransformer.get(np, [HaloExchangeSpec(spec, cut, 0, cut)])
    transformer.async_pack([q])
    assert np.array_equal(transformer.get_pack_buffer().array, q.data[cut].ravel())


def test_components_of_a_vector_fit_each_other():
    x, y = quantity(("j", "i", "k")), quantity(("i", "j", "k"))
    with pytest.raises(RuntimeError, match="dims j, i, k and i, j, k: their order must be the same"):
        HaloDataTransformer.get(np, [exchange(x)], [exchange(y)])
    with pytest.raises(RuntimeError, match="turn by 1 and 2: both must turn equally"):
        HaloDataTransformer.get(np, [exchange(rotation=1)], [exchange(rotation=2)])
    with pytest.raises(TypeError, match="bool have no sign"):
        HaloDataTransformer.get(np, [exchange(quantity(dtype="?"), 1)], [exchange(quantity(dtype="?"), 1)])
    HaloDataTransformer.get(np, [exchange(quantity(dtype="?"), 0)], [exchange(quantity(dtype="?"), 0)])


def test_a_finalized_transformer_is_over():
    q = quantity()
    transformer = HaloDataTransformer.get(np, [exchange(q)])
    transformer.finalize()
    transformer.finalize()
    for call, message in (
        (transformer.get_pack_buffer, "Send buffer can't be retrieved before allocate"),
        (transformer.get_unpack_buffer, "Recv buffer can't be retrieved before allocate"),
        (lambda: transformer.async_pack([q]), "finalized"),
        (lambda: transformer.async_unpack([q]), "finalized"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


# Halo points.


@pytest.mark.parametrize("make", [cube, lambda: TileCommunicator.from_layout(LocalComm(0, 1, {}), (1, 1))])
def test_halo_points_are_some_and_are_there(make):
    communicator = make()
    q = quantity()
    for n in (0, -1):
        with pytest.raises(ValueError, match=f"zero halo points: {n} were asked for"):
            communicator.start_halo_update(q, n)
        with pytest.raises(ValueError, match="zero halo points"):
            communicator.start_vector_halo_update(q, copy.deepcopy(q), n)
    with pytest.raises(IndexError, match="past end of domain on dimension . Needs points|past end of domain"):
        communicator.halo_update(q, 3)
    with pytest.raises(ValueError, match="more halo points \\(3\\) than available on this Quantity \\(2\\)"):
        q.halo_spec(3)
    small = quantity(extent=(1, 5))
    with pytest.raises(ValueError, match="2 halo points of a compute domain of 1 cell along j"):
        communicator.halo_update(small, 2)


def test_quantities_have_both_horizontal_dimensions():
    for dims in (("k",), ("i", "k"), ("j",)):
        q = quantity(dims)
        before = q.data.copy()
        with pytest.raises(ValueError, match="needs one dimension of the kind"):
            cube().halo_update(q, 2)
        assert np.array_equal(q.data, before)
    with pytest.raises(ValueError, match="has 2 of them"):
        cube().halo_update(quantity(("i", "i_interface", "j")), 1)


def test_what_does_not_fit_beyond_an_edge_that_turns_is_refused():
    with pytest.raises(ValueError, match="a scalar on \\(i, j_interface\\).*5 points meet 6"):
        cube().halo_update(quantity(("i", "j_interface")), 1)
    with pytest.raises(ValueError, match="4 points meet 5|5 points meet 4"):
        cube().halo_update(quantity(extent=(4, 5)), 1)
    with pytest.raises(ValueError, match="components of a vector"):
        cube().vector_halo_update(quantity(("i", "j_interface")), quantity(("i", "j_interface")), 1)
    ranks = all_ranks(TileCommunicator, (2, 2))  # nothing turns on a tile
    updaters = [r.start_halo_update(quantity(("i", "j_interface"), extent=(4, 6)), 1) for r in ranks]
    for updater in updaters:
        updater.wait()


# Updaters.


def test_lists_of_specifications():
    communicator = cube()
    spec = quantity().halo_spec(2)
    with pytest.raises(RuntimeError, match="specifications list"):
        communicator.get_scalar_halo_updater([])
    with pytest.raises(RuntimeError, match="specifications list"):
        communicator.get_vector_halo_updater([], [])
    for x, y in (([spec], []), ([], [spec]), ([spec, spec], [spec])):
        with pytest.raises(RuntimeError, match=f"the lists have {len(x)} and {len(y)} specifications"):
            communicator.get_vector_halo_updater(x, y)
    for n_x, n_y, message in ((0, 2, "zero halo points"), (2, 0, "zero halo points"), (1, 2, "1 halo point along i and 2")):
        with pytest.raises(ValueError, match=message):
            communicator.get_vector_halo_updater([quantity().halo_spec(n_x)], [quantity().halo_spec(n_y)])
    other = QuantityHaloSpec(**{**vars(spec), "numpy_module": sys})
    with pytest.raises(NotImplementedError, match="one halo update cannot take arrays of numpy and sys"):
        communicator.get_scalar_halo_updater([spec, other])


def test_updates_come_in_order():
    ranks = all_ranks(CubedSphereCommunicator, (1, 1))
    quantities = [quantity() for _ in ranks]
    updaters = [r.get_scalar_halo_updater([q.halo_spec(2)]) for r, q in zip(ranks, quantities)]
    with pytest.raises(RuntimeError, match='"wait" call before "start"'):
        updaters[0].wait()
    with pytest.raises(RuntimeError, match="x: 2.*x: 1"):
        updaters[0].start(quantities[:2])
    with pytest.raises(RuntimeError, match="x: 1, y: 1"):
        updaters[0].start(quantities[:1], quantities[:1])
    with pytest.raises(RuntimeError, match="where the specification says"):
        updaters[0].start([quantity(n=6)])
    updaters[0].start([quantities[0]])  # what was refused has sent nothing, and nothing is in flight
    with pytest.raises(RuntimeError, match="hasn't been properly finished"):
        updaters[0].start([quantities[0]])
    with pytest.raises(ConcurrencyError, match="rank 0 waits for tag 1 of rank"):
        updaters[0].wait()
    for updater, q in zip(updaters[1:], quantities[1:]):
        updater.start([q])
    for updater in updaters:
        updater.wait()
        with pytest.raises(RuntimeError, match="before"):
            updater.wait()


def test_a_one_shot_update_is_one():
    ranks = all_ranks(CubedSphereCommunicator, (1, 1))
    quantities = [quantity() for _ in ranks]
    updaters = [r.start_halo_update(q, 2) for r, q in zip(ranks, quantities)]
    for updater in updaters:
        updater.wait()
    with pytest.raises(RuntimeError, match="one update only"):
        updaters[0].start([quantities[0]])


def test_an_updater_that_is_deleted_in_flight_says_so():
    BUFFER_CACHE.clear()
    updater = cube().start_halo_update(quantity(), 2)
    with pytest.warns(ResourceWarning, match="deleted between its start"):
        del updater
    assert not any(BUFFER_CACHE.values())  # a peer may still write into its buffers
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del_me = cube().get_scalar_halo_updater([quantity().halo_spec(1)])
        assert isinstance(del_me, HaloUpdater)
        del del_me


def test_tags_count_updaters():
    communicator = cube()
    tags = [communicator.get_scalar_halo_updater([quantity().halo_spec(1)])._tag for _ in range(3)]
    assert tags == [1, 2, 3]
    communicator._last_halo_tag = 32766
    assert communicator.get_scalar_halo_updater([quantity().halo_spec(1)])._tag == 1


# Synchronization.


def test_synchronized_components_lie_on_edges():
    x, y = quantity(("j_interface", "i")), quantity(("j", "i_interface"))
    for a, b in ((y, x), (quantity(), quantity()), (x, x)):
        with pytest.raises(ValueError, match="Arakawa C-grid"):
            cube().synchronize_vector_interfaces(a, b)
    with pytest.raises(RuntimeError, match="their order must be the same"):
        cube().synchronize_vector_interfaces(quantity(("k", "j_interface", "i")), quantity(("j", "i_interface", "k")))
    with pytest.raises(RuntimeError, match="float64 and float32"):
        cube().synchronize_vector_interfaces(x, quantity(("j", "i_interface"), dtype="f4"))
    with pytest.raises(TypeError, match="bool have no sign"):
        cube().synchronize_vector_interfaces(
            quantity(("j_interface", "i"), dtype="?"), quantity(("j", "i_interface"), dtype="?")
        )
    with pytest.raises(ValueError, match="points meet"):
        cube().synchronize_vector_interfaces(
            quantity(("j_interface", "i"), extent=(5, 6)), quantity(("j", "i_interface"), extent=(4, 7))
        )


# Communicators and partitioners.


def test_layouts():
    for bad in ((1, 2, 3), 4, (0, 1), (1.5, 2), "ab"):
        with pytest.raises(ValueError, match="Expected layout to be"):
            TilePartitioner(bad)
    with pytest.raises(ValueError, match="edge_interior_ratio of 0"):
        TilePartitioner((2, 2), 0)
    wide = CubedSpherePartitioner(TilePartitioner((1, 2)))
    with pytest.raises(NotImplementedError, match="only square layouts.* 1 by 2"):
        wide.boundary(NORTH, 0)
    with pytest.raises(ValueError, match="no boundary 8"):
        wide.tile.boundary(8, 0)
    with pytest.raises(ValueError, match="7 ranks: a cube has a multiple of 6"):
        ts.ndsl.get_tile_index(0, 7)
    with pytest.raises(ValueError, match="dimension 'tile'"):
        wide.subtile_slice(0, ["j", "i"], (4, 4))


def test_ranks_of_other_kinds_and_numbers():
    partitioner = CubedSpherePartitioner(TilePartitioner((1, 1)))
    with pytest.raises(ValueError, match="partitioner for 6 ranks but a comm object with only 5"):
        CubedSphereCommunicator(LocalComm(0, 5, {}), partitioner)
    for wrong in (object(), LocalComm, None):
        with pytest.raises(TypeError, match="derived from `comm_abc.Comm`"):
            CubedSphereCommunicator(wrong, partitioner)
    with pytest.raises(TypeError, match="CubedSpherePartitioner is needed, not a TilePartitioner"):
        CubedSphereCommunicator(LocalComm(0, 1, {}), TilePartitioner((1, 1)))


def test_scatter_and_gather():
    ranks = all_ranks(TileCommunicator, (2, 2))
    whole = quantity(n=6, halo=0)
    with pytest.raises(RuntimeError, match="send_quantity is a required argument on the root"):
        ranks[0].scatter()
    with pytest.raises(ValueError, match="odd \\(13\\) gridpoints"):
        all_ranks(TileCommunicator, (2, 2))[0].scatter(quantity(n=13))
    with pytest.raises(RuntimeError, match="extents \\(5, 5\\), its part on \\(j, i\\) with extents \\(3, 3\\)"):
        all_ranks(TileCommunicator, (2, 2))[0].scatter(whole, quantity(n=5))
    with pytest.raises(RuntimeError, match="elements float32, the values float64"):
        all_ranks(TileCommunicator, (2, 2))[0].scatter(whole, quantity(n=3, dtype="f4"))
    with pytest.raises(ConcurrencyError, match="has not called it yet"):
        all_ranks(TileCommunicator, (2, 2))[1].scatter()
    with pytest.raises(RuntimeError, match="the parts have elements float32, the quantity float64"):
        ranks[0].gather(quantity(n=3, dtype="f4"), whole)
    with pytest.raises(RuntimeError, match="rank 0 has extents \\(2, 2\\), but its part of \\(6, 6\\) has \\(3, 3\\)"):
        ranks[0].gather(quantity(n=2), whole)
    with pytest.raises(NotImplementedError, match="Only equal sized subdomains"):
        TileCommunicator(LocalComm(0, 4, {}), TilePartitioner((2, 2), 0.5)).gather(quantity(n=3))


# Quantities and buffers.


def test_quantities_fit_their_arrays():
    data = np.zeros((4, 5))
    for arguments, message in (
        (dict(dims=["j"]), "dims has 1 entry|origin has 1 entry"),
        (dict(dims=["j", "i"], origin=(1,)), "1 entry, and the array 2"),
        (dict(dims=["j", "i"], origin=(1, 1), extent=(4, 4)), "dimension j: points 1 to 5 of an array that has 0 to 4"),
        (dict(dims=["j", "i"], origin=(-1, 0)), "points -1"),
    ):
        with pytest.raises(ValueError, match=message):
            Quantity(data, units="", **arguments)
    with pytest.raises(TypeError, match="an array of NumPy"):
        Quantity([1.0], ["i"], "")
    with pytest.raises(TypeError, match="origin is a sequence of integers"):
        Quantity(data, ["j", "i"], "", origin=("a", 1))
    q = Quantity(data, ["j", "i"], "")
    with pytest.raises(RuntimeError, match="for a quantity of float64"):
        q.data = np.zeros((4, 5), "f4")
    with pytest.raises(ValueError, match="dimension k: this quantity has j, i"):
        q.transpose(["k", "j"])


def test_buffers():
    with pytest.raises(ValueError, match="extents are 0 or more"):
        Buffer.pop_from_cache(np.empty, (-1,), "f8")
    with pytest.raises(ValueError, match="not in C order"):
        Buffer.pop_from_cache(lambda shape, dtype: np.empty(shape, dtype).T, (2, 3), "f8")
    gaps = np.arange(12.0).reshape(3, 4)[:, ::2]
    with send_buffer(np.empty, gaps) as sent:
        assert sent.flags.c_contiguous and np.array_equal(sent, gaps)
    with pytest.raises(KeyError):
        with recv_buffer(np.empty, gaps) as received:
            received[:] = -1
            raise KeyError
    assert gaps.min() == 0  # a block that raises writes nothing
    BUFFER_CACHE.clear()
    with pytest.raises(KeyError):
        with array_buffer(np.empty, (2,), "f8"):
            raise KeyError
    assert not any(BUFFER_CACHE.values())  # a message that was given up may still use it
    with array_buffer(np.empty, (2,), "f8") as first:
        pass
    with array_buffer(np.empty, (2,), "f8") as again:
        assert again.array is first.array


def test_the_pool_is_bounded(monkeypatch):
    monkeypatch.setattr("tranship.ndsl.buffer.BUFFER_CACHE_BYTES_MAX", 100)
    BUFFER_CACHE.clear()
    buffers = [Buffer.pop_from_cache(np.empty, (10,), "u1") for _ in range(20)]
    for buffer in buffers:
        Buffer.push_to_cache(buffer)
    assert sum(len(waiting) for waiting in BUFFER_CACHE.values()) == 10


def test_a_buffer_goes_back_once():
    """Two users of one array would overwrite each other's messages."""
    BUFFER_CACHE.clear()
    first = Buffer.pop_from_cache(np.zeros, (2,), "f8")
    Buffer.push_to_cache(first)
    Buffer.push_to_cache(first)
    second = Buffer.pop_from_cache(np.zeros, (2,), "f8")
    assert second.array is first.array
    Buffer.push_to_cache(first)  # by its former user
    third = Buffer.pop_from_cache(np.zeros, (2,), "f8")
    assert third.array is not second.array
    transformer = HaloDataTransformer.get(np, [exchange()])
    Buffer.push_to_cache(transformer.get_pack_buffer())
    transformer.finalize()
    waiting = [one.array.ctypes.data for kept in BUFFER_CACHE.values() for one in kept]
    assert len(waiting) == len(set(waiting)) > 0


def test_buffers_go_back_in_the_middle_of_a_call():
    """The collector of garbage runs wherever objects are made, also where the pool is locked."""

    class Late:
        def __init__(self):
            self.me, self.buffer = self, Buffer.pop_from_cache(np.zeros, (3,), "f8")

        def __del__(self):
            Buffer.push_to_cache(self.buffer)

    threshold = gc.get_threshold()
    try:
        gc.set_threshold(1, 1, 1)
        for n in range(200):
            Late()
            Buffer.push_to_cache(Buffer.pop_from_cache(np.zeros, (n,), "f8"))
    finally:
        gc.set_threshold(*threshold)


def test_updaters_of_one_layout_are_independent():
    """They share what was planned, and nothing else."""
    ranks = all_ranks(CubedSphereCommunicator, (1, 1))
    a, b = ([quantity() for _ in ranks] for _ in range(2))
    for n, (one, other) in enumerate(zip(a, b)):
        one.data[:], other.data[:] = n, 10 + n
    b = [Quantity(np.asfortranarray(q.data), q.dims, "", origin=q.origin, extent=q.extent) for q in b]
    spec = a[0].halo_spec(2)
    makers = [[r.get_scalar_halo_updater([spec]) for r in ranks] for _ in range(2)]
    for updaters, fields in zip(makers, (a, b)):
        for updater, q in zip(updaters, fields):
            updater.start([q])
    for updaters in reversed(makers):
        for updater in updaters:
            updater.wait()
    for fields, first in ((a, 0), (b, 10)):
        for n, (rank, q) in enumerate(zip(ranks, fields)):
            assert q.data[3, 0] == first + rank.boundaries[WEST].to_rank
            assert q.data[3, 4] == first + n
    deep = [quantity(("j", "i", "k"), k=n).halo_spec(2) for n in range(1, 99)]
    many = [ranks[0].get_scalar_halo_updater([of]) for of in deep]
    assert len(many) == 98 and 0 < len(INDICES_CACHE) <= 64
    with pytest.raises(ValueError, match="4 points meet 5"):  # no plan of another layout takes its place
        ranks[0].get_scalar_halo_updater([quantity(extent=(5, 4)).halo_spec(2)])


def test_mpi_is_asked_for_when_it_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(NotImplementedError, match="MPIComm needs mpi4py"):
        MPIComm()


def test_ndsls_own_quantities_do_not_warn():
    """Their property ``data`` does, on every use."""

    def data(self):
        warnings.warn("Quantity.data accessor is now deprecated", UserWarning, 2)
        return self._data

    theirs = type("Quantity", (), {"data": property(data), "__module__": "ndsl.quantity.quantity"})
    fields = []
    for like in [quantity() for _ in range(6)]:
        q = theirs()
        q._data, q.dims, q.origin, q.extent, q.units = like.data, like.dims, like.origin, like.extent, like.units
        fields.append(q)
    ranks = all_ranks(CubedSphereCommunicator, (1, 1))
    for n, q in enumerate(fields):
        q._data[:] = n
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        updaters = [r.start_halo_update(q, 2) for r, q in zip(ranks, fields)]
        for updater in updaters:
            updater.wait()
    assert fields[0]._data[4, 0] == ranks[0].boundaries[WEST].to_rank


class OtherViews:
    """A quantity that makes a new view of its memory whenever it is asked."""

    def __init__(self, of):
        self._of = of
        self.dims, self.origin, self.extent = of.dims, of.origin, of.extent

    @property
    def data(self):
        return self._of.data[:]


def test_views_of_one_memory_are_the_same_arrays():
    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 2))
        q = quantity()
        other = OtherViews(q)
        updater = tile.get_scalar_halo_updater([q.halo_spec(2)])
        for step in range(8):
            q.data[2:7, 2:7] = 10 * step + world.rank
            updater.update([other if world.rank == step % 2 else q])  # a rank that made a new exchange would be alone
            assert q.data[3, 0] == 10 * step + 1 - world.rank
        return True

    assert in_world(2, body, timeout=5) == [True, True]


def test_messages_have_no_gaps():
    shared = {}
    a, b = LocalComm(0, 2, shared), LocalComm(1, 2, shared)
    gaps = np.zeros((4, 4))[1:3, 1:3]
    for call in (
        lambda: a.Send(gaps, dest=1),
        lambda: a.Isend(gaps, dest=1),
        lambda: b.Recv(gaps, source=0),
        lambda: b.Irecv(gaps, source=0),
        lambda: a.Scatter(None, gaps),
    ):
        with pytest.raises(BufferError, match=r"buffer is not contiguous: strides \(32, 8\) of shape \(2, 2\)") as error:
            call()
        is_ours(error, BufferError)
    q = quantity()
    assert data_of(q) is q.data is accessor_of(Quantity)(q)
    assert data_of(OtherViews(q)) is not q.data


def test_arguments_of_another_kind():
    communicator = cube()
    updater = communicator.get_scalar_halo_updater([quantity().halo_spec(2)])
    for wrong in (quantity(), None, (q for q in [quantity()])):  # a generator would be empty for the second neighbour
        with pytest.raises(TypeError, match="a list of quantities is needed, not a") as error:
            updater.start(wrong)
        is_ours(error, TypeError)
    for wrong in (np.zeros((9, 9)), None):
        with pytest.raises(TypeError, match="a quantity is needed, not a"):
            communicator.halo_update(wrong, 1)
    for wrong in (1.5, None, "2"):
        with pytest.raises(TypeError, match="halo points: an int is needed"):
            communicator.halo_update(quantity(), wrong)
    with pytest.raises(TypeError, match="a QuantityHaloSpec is needed, not a Quantity"):
        communicator.get_scalar_halo_updater([quantity()])
    with pytest.raises(TypeError, match="with an int of n_points is needed, not 1.5"):
        communicator.get_scalar_halo_updater([QuantityHaloSpec(**{**vars(quantity().halo_spec(2)), "n_points": 1.5})])
    with pytest.raises(TypeError, match="objects of this process"):
        communicator.halo_update(quantity(dtype="O"), 1)
    for origin in ((0.5, 0), ("a", 0), (None, 0)):
        with pytest.raises(TypeError, match="origin is a sequence of integers"):
            Quantity(np.zeros((3, 3)), ["j", "i"], "", origin=origin)
    assert Quantity(np.zeros((3, 3)), ["j", "i"], "", origin=(np.int32(1), 1.0)).origin == (1, 1)


def unaligned(value, kind):
    if kind == "address":
        data = np.frombuffer(bytearray(9 * 9 * 8 + 3), "f8", 81, offset=3).reshape(9, 9)
    elif kind == "strides":
        data = np.zeros((9, 9), np.dtype({"names": ["a"], "formats": ["f8"], "offsets": [3], "itemsize": 13}))["a"]
    else:
        data = np.zeros((9, 9), kind)
    data[...] = np.array(value).astype(data.dtype)
    return Quantity(data, ["j", "i"], "", origin=(2, 2), extent=(5, 5), number_of_halo_points=2)


@pytest.mark.parametrize("kind", ["address", "strides", ">f8", "U3", "M8[s]", "g", "?"])
def test_any_memory_of_numpy_is_exchanged(kind):
    """Also where elements do not lie at multiples of their size, and where the library has no such elements."""
    ranks = all_ranks(CubedSphereCommunicator, (1, 1))
    fields = [unaligned(n, kind) for n in range(6)]
    updaters = [r.get_scalar_halo_updater([q.halo_spec(2), q.halo_spec(1)]) for r, q in zip(ranks, fields)]
    for _ in range(2):
        for updater, q in zip(updaters, fields):
            updater.start([q, q])
        for updater in updaters:
            updater.wait()
    for n, (rank, q) in enumerate(zip(ranks, fields)):
        for boundary, cell in ((WEST, (4, 0)), (EAST, (4, 8)), (NORTH, (8, 4))):
            assert q.data[cell] == np.array(rank.boundaries[boundary].to_rank).astype(q.dtype)
        assert (q.data[2:7, 2:7] == np.array(n).astype(q.dtype)).all()
        assert (q.data[:2, :2] == np.array(n).astype(q.dtype)).all()  # beyond a corner of the cube


# Worlds.


def in_world(size, body, timeout=20):
    return ts.launch(size, body, timeout=timeout)


def test_a_world_refuses_what_messages_refuse():
    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 2))
        spec = quantity().halo_spec(2)
        for n, kind in ((0, ValueError), (3, IndexError)):
            with pytest.raises(kind):
                tile.halo_update(quantity(), n)
        with pytest.raises(NotImplementedError, match="mixed precision"):
            tile.halo_update([quantity(), quantity(dtype="f4")], 1)
        with pytest.raises(ValueError, match="needs one dimension of the kind"):
            tile.halo_update(quantity(("k", "i")), 1)
        with pytest.raises(RuntimeError, match="their order must be the same"):
            tile.vector_halo_update(quantity(), quantity(("i", "j")), 1)
        with pytest.raises(NotImplementedError, match="cannot leave out boundaries \\(1 of 8 are given\\)"):
            HaloUpdater.from_scalar_specifications(tile, np, [spec], [tile.boundaries[EAST]], 1)
        with pytest.raises(NotImplementedError, match="over a World: its ranks exchange arrays of NumPy"):
            HaloUpdater.from_scalar_specifications(
                tile, sys, [QuantityHaloSpec(**{**vars(spec), "numpy_module": sys})], tile.boundaries.values(), 1
            )
        updater = tile.get_scalar_halo_updater([spec])
        with pytest.raises(RuntimeError, match="before"):
            updater.wait()
        with pytest.raises(RuntimeError, match="where the specification says"):
            updater.start([quantity(n=6)])
        q = quantity()
        updater.start([q])
        with pytest.raises(RuntimeError, match="hasn't been properly finished"):
            updater.start([q])
        updater.wait()
        q.data.flags.writeable = False
        with pytest.raises(RuntimeError, match="read-only"):
            updater.start([q])
        with pytest.raises(NotImplementedError, match="Isend over a World"):
            tile.comm.Isend(np.zeros(1), 0)
        return True

    assert in_world(2, body) == [True, True]


def test_ranks_of_a_world_that_disagree_all_fail():
    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 2))
        cases = (
            ("float64 on .* on rank 0 and of float32", quantity(dtype="f4" if world.rank else "f8"), 2),
            ("with 2 halo points .* on rank 0 and of .* with 1 halo point", quantity(), 2 - world.rank),
            ("cells along j, and rank 0, in the same row", quantity(extent=(5 + world.rank, 5)), 2),
        )
        for message, q, n in cases:
            with pytest.raises(RuntimeError, match=message):
                tile.halo_update(q, n)
        return True

    assert in_world(2, body) == [True, True]


def test_ranks_of_a_world_scatter_and_gather_together_or_not_at_all():
    def body(world):
        tile = TileCommunicator.from_layout(world, (1, 2))

        def plain(shape, dtype="f8", dims=("j", "i")):
            return Quantity(np.zeros(shape, dtype), list(dims), "")

        odd = world.rank == 1
        whole = plain((4, 6)) if world.rank == 0 else None
        part = tile.scatter(whole)
        cases = (
            (lambda: tile.scatter(whole, plain((4, 5)) if odd else None), "the quantity is on .* with extents|rank 1 has refused"),
            (lambda: tile.gather(part, whole and plain((4, 12))), r"rank 0 has extents \(4, 3\)|rank 0 has refused it"),
            (lambda: tile.gather(part, whole and plain((6, 4), dims=("i", "j"))), "the parts are on .*, the quantity on|rank 0 has refused"),
            (lambda: tile.gather(plain((4, 3), "f4") if odd else part), "part of float64 .* rank 1 one of float32"),
            (lambda: tile.gather(plain((3, 4), dims=("i", "j")) if odd else part), r"on \(j, i\), and rank 1"),
        )
        for call, message in cases:
            with pytest.raises(RuntimeError, match=message) as error:
                call()
            assert isinstance(error.value, ts.Error)
        got = tile.gather(part)
        return got is None or got.shape

    assert in_world(2, body) == [(4, 6), True]


def test_nothing_here_depends_on_assertions():
    """These tests pass with ``python -O``, which drops every assert of the package (pytest keeps those of tests)."""
    if os.environ.get("TRANSHIP_NDSL_OPTIMIZED"):
        assert not __debug__
        return
    ran = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "TRANSHIP_NDSL_OPTIMIZED": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
