# Shows a 3-D periodic halo of three fields on four ranks, which travels while each rank computes.
# Prints the largest value of the result.
# Run: python examples/halo.py

from typing import Optional

import numpy as np

import tranship as ts


def main(world: ts.World) -> Optional[float]:
    grid = ts.distribution((64, 64, 20), grid=(2, 2, 1), partition="block", overlap=3, edge="toroidal")
    u, v, t = (ts.array(world, grid, dtype="f8") for _ in range(3))
    for field in (u, v, t):
        field.fill(lambda i, j, k: np.sin(i) + np.cos(j) * k)
    halo = ts.halo(u, v, t)  # one message per neighbour for all three
    for _ in range(10):
        with halo:  # starts; finishes at the end of the block
            inner = tuple(slice(6, -6) for _ in range(3))
            t.local[inner] += 0.1 * (u.local[inner] - v.local[inner])
    rows = ts.redistribute(t, ts.distribution((64, 64, 20), grid=(4, 1, 1)))
    whole = ts.gather(rows)
    return None if whole is None else float(abs(whole).max())


if __name__ == "__main__":
    print(ts.launch(4, main)[0])
