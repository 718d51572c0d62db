"""NDSL's halo layer against what NDSL answered, byte for byte; more in test_ndsl_ranks.py and test_ndsl_misuse.py."""

import hashlib
import types

import numpy as np
import pytest
from ndsl_cases import families, read_json

from tranship.ndsl import CubedSpherePartitioner, Quantity, QuantityHaloSpec, TilePartitioner, constants
from tranship.ndsl.comm._boundary_utils import get_boundary_slice
from tranship.ndsl.halo import (
    HaloDataTransformer,
    HaloDataTransformerCPU,
    HaloDataTransformerGPU,
    HaloExchangeSpec,
)
from tranship.ndsl.halo.data_transformer import STREAM_POOL

BOUNDARIES = {
    name: getattr(constants, name)
    for name in ("NORTH", "SOUTH", "WEST", "EAST", "NORTHWEST", "NORTHEAST", "SOUTHWEST", "SOUTHEAST")
}


def module_like_numpy():
    """A module of arrays that is not NumPy, as far as the transformer can see."""
    module = types.ModuleType("arrays_like_numpy")
    for name in ("zeros", "negative"):
        setattr(module, name, getattr(np, name))
    return module


MODULES = {"numpy": np, "like numpy": module_like_numpy()}


class Replay:
    """One case of a transformer."""

    def __init__(self, case, arrays):
        self.case, self.arrays = case, arrays
        self.memories = [np.array(arrays[q["mem"]]) for q in case["quantities"]]
        self.quantities = [self.quantity(q, m) for q, m in zip(case["quantities"], self.memories)]

    def quantity(self, q, memory):
        data = np.lib.stride_tricks.as_strided(
            memory.view(q["dtype"]).reshape(-1)[q["offset_elems"] :], q["shape"], q["strides_bytes"]
        )
        return Quantity(data, q["dims"], "", origin=q["origin"], extent=q["extent"])

    def specification(self, number, module):
        quantity = self.quantities[number]
        return QuantityHaloSpec(
            n_points=self.case["n_points"],
            strides=quantity.data.strides,
            itemsize=quantity.data.itemsize,
            shape=quantity.shape,
            origin=quantity.origin,
            extent=quantity.extent,
            dims=quantity.dims,
            numpy_module=module,
            dtype=quantity.dtype,
        )

    def transformer(self, module):
        def exchange(e, which):
            pack, unpack = (tuple(slice(*cut) for cut in e[f"{what}_{which}"]) for what in ("pack", "unpack"))
            return HaloExchangeSpec(self.specification(e[which], module), pack, e["rotation"], unpack)

        exchanges = self.case["exchanges"]
        x = [exchange(e, "x") for e in exchanges]
        y = [exchange(e, "y") for e in exchanges] if self.case["kind"] == "vector" else None
        return HaloDataTransformer.get(module, x, y)

    def arguments(self):
        exchanges = self.case["exchanges"]
        x = [self.quantities[e["x"]] for e in exchanges]
        y = [self.quantities[e["y"]] for e in exchanges] if self.case["kind"] == "vector" else None
        return x, y


def is_refused(case):
    return case["note"].startswith(("quantity lacks", "n_points > extent"))


TRANSFORMER = families("transformer_index.json")


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("family", TRANSFORMER)
def test_transformers_pack_and_unpack_as_ndsl(family, module):
    cases, arrays = TRANSFORMER[family]
    seen = 0
    for case in cases:
        replay = Replay(case, arrays)
        if is_refused(case):
            with pytest.raises(ValueError, match="halo points of a compute domain|needs one dimension of the kind"):
                replay.transformer(MODULES[module])
            continue
        transformer = replay.transformer(MODULES[module])
        assert transformer.ready()
        transformer.async_pack(*replay.arguments())
        packed = transformer.get_pack_buffer().array
        assert packed.tobytes() == arrays[case["pack"]].tobytes(), (case["id"], case["note"])
        digest = hashlib.sha256(packed.tobytes()).hexdigest()
        assert (digest, packed.nbytes) == (case.get("sha256", digest), case.get("nbytes", packed.nbytes))
        for memory, q in zip(replay.memories, case["quantities"]):
            assert memory.tobytes() == arrays[q["mem"]].tobytes(), f"{case['id']}: packing wrote into a quantity"
        transformer.get_unpack_buffer().assign_from(arrays[case["unpack_in"]].view(packed.dtype).reshape(-1))
        transformer.async_unpack(*replay.arguments())
        transformer.synchronize()
        for memory, q in zip(replay.memories, case["quantities"]):
            assert memory.tobytes() == arrays[q["mem_after"]].tobytes(), (case["id"], case["note"])
        transformer.finalize()
        assert not transformer.ready()
        seen += 1
    assert seen


class RecordedStream:
    """A stream of a device that works when it is waited for: what is done on it is written down."""

    made = 0

    def __init__(self, non_blocking=False):
        assert non_blocking
        RecordedStream.made += 1
        self.acts = []

    def wait_event(self, event):
        self.acts.append(f"waits for {event}")

    def __enter__(self):
        self.acts.append("begins")

    def __exit__(self, *error):
        self.acts.append("ends")

    def synchronize(self):
        self.acts.append("done")


def test_a_gpu_transformer_has_a_stream_of_the_device_of_its_module():
    """With a module that has a device, whose streams this test watches."""
    module = module_like_numpy()
    module.__name__ = "cupy"
    current = types.SimpleNamespace(record=lambda: "the current stream")
    module.cuda = types.SimpleNamespace(get_current_stream=lambda: current, Stream=RecordedStream)
    STREAM_POOL.clear()
    cases, arrays = TRANSFORMER["scalar_dtypes"]
    kinds = set()
    for case in cases:  # among them dtypes that NDSL's own kernels leave unpacked
        replay = Replay(case, arrays)
        transformer = replay.transformer(module)
        assert isinstance(transformer, HaloDataTransformerGPU) and not isinstance(transformer, HaloDataTransformerCPU)
        transformer.async_pack(*replay.arguments())
        stream = transformer._stream
        assert stream.acts == ["waits for the current stream", "begins", "ends"]
        assert transformer.get_pack_buffer().array.tobytes() == arrays[case["pack"]].tobytes()
        assert stream.acts[-1] == "done"
        transformer.finalize()
        transformer.finalize()
        assert STREAM_POOL == [stream]
        stream.acts.clear()
        kinds.add(case["dtype"])
    assert len(kinds) > 2 and RecordedStream.made == 1
    STREAM_POOL.clear()


def test_boundary_slices_are_ndsls():
    cases = read_json("boundary_slices.json")
    assert cases
    seen = 0
    for case in cases:
        for name, expected in case["slices"].items():
            boundary, side = name.split(".")
            arguments = (case["dims"], case["origin"], case["extent"], case["shape"], BOUNDARIES[boundary])
            if isinstance(expected, str) or (isinstance(expected, dict) and "error" in expected):
                with pytest.raises(IndexError, match="Boundary slice extends past end of domain"):
                    get_boundary_slice(*arguments, case["n_points"], side == "send")
            else:
                got = get_boundary_slice(*arguments, case["n_points"], side == "send")
                assert [[cut.start, cut.stop] for cut in got] == expected, (case, name)
            seen += 1
    assert seen > 1000


def test_neighbors_are_ndsls():
    found = read_json("partitioner.json")
    for edge, ranks in found["cube"].items():
        cube = CubedSpherePartitioner(TilePartitioner((int(edge), int(edge))))
        for rank, boundaries in enumerate(ranks):
            for name, expected in boundaries.items():
                boundary = cube.boundary(BOUNDARIES[name], rank)
                got = None if boundary is None else [boundary.to_rank, boundary.n_clockwise_rotations]
                assert got == expected, (edge, rank, name)
    for layout, ranks in found["tile"].items():
        tile = TilePartitioner(tuple(int(n) for n in layout.split("x")))
        for rank, boundaries in enumerate(ranks):
            for name, expected in boundaries.items():
                boundary = tile.boundary(BOUNDARIES[name], rank)
                assert [boundary.to_rank, boundary.n_clockwise_rotations] == expected, (layout, rank, name)
                assert boundary.from_rank == rank and boundary.boundary_type == BOUNDARIES[name]


def test_parts_of_a_tile_are_ndsls():
    """And where NDSL's search ends without a cut that exists, ours is one: parts that follow each other."""
    cases = read_json("partitioner.json")["subtile"]
    refused = 0
    for case in cases:
        tile = TilePartitioner(tuple(case["layout"]), edge_interior_ratio=case["ratio"])
        parts = []
        for rank in range(tile.total_ranks):
            arguments = (rank, case["dims"], case["extent"])
            if "for odd" in case.get("message", ""):
                with pytest.raises(ValueError) as error:
                    tile.subtile_slice(*arguments, overlap=case["overlap"])
                assert str(error.value) == case["message"]
                refused += 1
            else:
                parts.append([[cut.start, cut.stop] for cut in tile.subtile_slice(*arguments, overlap=case["overlap"])])
        if "slices" in case:
            assert parts == case["slices"], case
        elif parts:
            for axis, (dim, extent) in enumerate(zip(case["dims"], case["extent"])):
                cuts = sorted({tuple(part[axis]) for part in parts})
                shared = 1 if case["overlap"] and dim in constants.INTERFACE_DIMS else 0
                assert cuts[0][0] == 0 and cuts[-1][1] == extent
                assert all(a[1] - shared == b[0] and a[1] - a[0] > shared for a, b in zip(cuts, cuts[1:])), case
    assert refused


def test_extents_that_cannot_be_cut():
    with pytest.raises(ValueError, match="Cannot find valid decomposition for 4 gridpoints along 5 ranks"):
        TilePartitioner((5, 1)).subtile_slice(0, ["j", "i"], (4, 4))
