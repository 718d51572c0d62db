# Shows the slopes of an elevation model, computed on four ranks with a halo and checked against one rank.
# Prints the steepest cell and three messages; writes who sent what to whom (halo.svg) and a trace (run.json).
# Run: python examples/elevation.py [ELEVATION.npy [DIRECTORY]]

import pathlib
import sys
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

import tranship as ts

Heights = NDArray[np.float64]


def slopes(z: NDArray[Any]) -> NDArray[Any]:
    """Slopes of all cells but the outermost ones, by central differences."""
    down, right = z[2:, 1:-1] - z[:-2, 1:-1], z[1:-1, 2:] - z[1:-1, :-2]
    steepness: NDArray[Any] = np.hypot(down, right) / 2
    return steepness


def main(heights: Heights) -> tuple[ts.Plans, ts.Trace, Optional[Heights]]:
    cells = ts.distribution(heights.shape, grid=(2, 2), overlap=1, edge="replicate")

    def of_rank(world: ts.World) -> tuple[Any, Optional[Heights]]:
        z, steepness = ts.array(world, cells, name="z"), ts.array(world, cells, name="steepness")
        for where, mine in z.slices():
            mine[...] = heights[where]
        halo = ts.halo(z)
        halo()
        steepness.owned()[...] = slopes(z.local)
        return halo.plan, ts.gather(steepness)

    with ts.tracing() as trace:
        results = ts.launch(4, of_rank)
    return ts.Plans(plan for plan, _ in results), trace, results[0][1]


def refuse(why: str) -> None:
    print(f"elevation.py: {why}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not pathlib.Path(sys.argv[1]).is_file():
        refuse(f"there is no file {sys.argv[1]}")
    if len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).is_dir():
        refuse(f"there is no directory {sys.argv[2]} to write halo.svg and run.json to")
    i, j = np.ogrid[:120, :160]
    heights = np.load(sys.argv[1]).astype("f8") if len(sys.argv) > 1 else 50 * np.sin(i / 17) * np.cos(j / 23)
    plans, trace, steepness = main(heights)
    assert steepness is not None and np.array_equal(steepness, slopes(np.pad(heights, 1, mode="edge")))
    steepest = np.unravel_index(int(steepness.argmax()), steepness.shape)
    print(f"the steepest cell is ({steepest[0]}, {steepest[1]}), on four ranks and on one")
    for source, target, size in plans.messages[:3]:
        print(f"  rank {source} sent rank {target} {size} bytes of ghosts")
    if len(sys.argv) > 2:
        folder = pathlib.Path(sys.argv[2])
        (folder / "halo.svg").write_text(plans.svg())
        trace.save(folder / "run.json")
        print(f"{folder / 'halo.svg'} shows who sent what to whom, {folder / 'run.json'} when (open it in ui.perfetto.dev)")
