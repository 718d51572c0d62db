# Shows shallow water on the cubed sphere, over the names of NDSL, on 6 and 24 ranks: mass is kept, all bits are equal.
# Prints the errors of a steady flow; writes a picture of the water's surface after it has flowed over a mountain.
# Run: python examples/shallow_water.py [CELLS [HOURS [PICTURE.svg]]]

import base64
import math
import struct
import sys
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tranship as ts
from tranship.ndsl import CubedSphereCommunicator, Quantity, TilePartitioner
from tranship.ndsl.constants import I_DIM, J_DIM, TILE_DIM

Field = NDArray[np.float64]

RADIUS, OMEGA, GRAVITY, DAY = 6.37122e6, 7.292e-5, 9.80616, 86400.0
HALO, USED = 3, 2  # halo points that are allocated, and those that the scheme reads
TILT = math.pi / 4  # of the steady flow, so that it crosses all edges and corners of the cube

# For each tile, the axis through its centre, and the axes along i and along j.
TILES = [(+1, +2, +3), (+2, -1, +3), (+3, -1, -2), (-1, -3, -2), (-2, -3, +1), (-3, +2, +1)]


def axis(signed: int) -> Field:
    out = np.zeros(3)
    out[abs(signed) - 1] = math.copysign(1.0, signed)
    return out


def unit(v: Field) -> Field:
    """Vectors are the first dimension of an array."""
    return v / np.sqrt(dot(v, v))


def dot(a: Field, b: Field) -> Field:
    out: Field = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    return out


def cross(a: Field, b: Field) -> Field:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def on_sphere(tile: int, angle_j: Field, angle_i: Field) -> Field:
    """Points of a tile by their angles, from -pi/4 to pi/4: equal angles between grid lines, which are great
    circles."""
    through, along_i, along_j = (axis(a)[:, None, None] for a in TILES[tile])
    return unit(through + np.tan(angle_i)[None, None, :] * along_i + np.tan(angle_j)[None, :, None] * along_j)


def triangle(a: Field, b: Field, c: Field) -> Field:
    """The area of spherical triangles."""
    out: Field = 2 * np.arctan2(np.abs(dot(a, cross(b, c))), 1 + dot(a, b) + dot(b, c) + dot(c, a))
    return out


class Tile(NamedTuple):
    """The geometry of a tile, or of a rank's part of it."""

    centre: Field
    axis_i: Field
    axis_j: Field
    area: Field
    normal_i: Field  # of the faces across i, times their length
    normal_j: Field

    def part(self, cut: tuple[Any, ...]) -> "Tile":
        j, i = cut
        faces_i, faces_j = (j, slice(i.start, i.stop + 1)), (slice(j.start, j.stop + 1), i)
        cells = [field[(..., j, i)] for field in (self.centre, self.axis_i, self.axis_j, self.area)]
        return Tile(cells[0], cells[1], cells[2], cells[3], self.normal_i[(..., *faces_i)], self.normal_j[(..., *faces_j)])


def tile_geometry(tile: int, cells: int) -> Tile:
    edges = np.linspace(-math.pi / 4, math.pi / 4, cells + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    corner, centre = on_sphere(tile, edges, edges), on_sphere(tile, middles, middles)
    a, b, c, d = corner[:, :-1, :-1], corner[:, :-1, 1:], corner[:, 1:, 1:], corner[:, 1:, :-1]

    def tangent(of: int) -> Field:  # where a step along an axis of the tile leads, on the sphere
        v = np.broadcast_to(axis(TILES[tile][of])[:, None, None], centre.shape)
        return unit(v - dot(v, centre) * centre)

    def normals(start: Field, end: Field) -> Field:
        pole = cross(start, end)
        length = np.sqrt(dot(pole, pole))
        return pole / length * np.arctan2(length, dot(start, end)) * RADIUS

    return Tile(
        centre,
        tangent(1),
        tangent(2),
        RADIUS**2 * (triangle(a, b, c) + triangle(a, c, d)),
        normals(corner[:, 1:, :], corner[:, :-1, :]),
        normals(corner[:, :, :-1], corner[:, :, 1:]),
    )


def flow(centre: Field, tilt: float, depth: float, speed: float) -> tuple[Field, Field, Field]:
    """A rotation of the water about the tilted axis of the planet: its surface, its wind, and the Coriolis
    parameter."""
    pole = np.broadcast_to(np.array([-math.sin(tilt), 0.0, math.cos(tilt)])[:, None, None], centre.shape)
    along = dot(pole, centre)
    surface = depth - (RADIUS * OMEGA * speed + speed**2 / 2) * along**2 / GRAVITY
    return surface, speed * cross(pole, centre), 2 * OMEGA * along


def mountain(centre: Field) -> Field:
    longitude, latitude = np.arctan2(centre[1], centre[0]), np.arcsin(centre[2])
    turned = (longitude + math.pi / 2 + math.pi) % (2 * math.pi) - math.pi
    distance = np.sqrt(np.minimum((math.pi / 9) ** 2, turned**2 + (latitude - math.pi / 6) ** 2))
    height: Field = 2000 * (1 - distance / (math.pi / 9))
    return height


class Case(NamedTuple):
    name: str
    tilt: float
    depth: float
    speed: float
    has_mountain: bool


STEADY = Case("steady flow", TILT, 2.94e4 / GRAVITY, 2 * math.pi * RADIUS / (12 * DAY), False)
MOUNTAIN = Case("flow over a mountain", 0.0, 5960.0, 20.0, True)


def run_rank(world: Any, case: Case, cells: int, layout: int, hours: float) -> Any:
    """Runs one rank by finite volumes, which conserve mass. Returns on rank 0 the mass before and after, and fields of all
    tiles: depth before and after, surface, areas.

    The winds of a cell are components along its own two axes. Beyond an edge of the cube these are the axes of another
    tile: vector halo updates turn the components, and the axes themselves, in the same way."""
    ranks = CubedSphereCommunicator.from_layout(world, (layout, layout))
    tile = ranks.partitioner.tile_index(ranks.rank)
    cut = TilePartitioner((layout, layout)).subtile_slice(ranks.rank, [J_DIM, I_DIM], (cells, cells))
    g = tile_geometry(tile, cells).part(cut)
    n = cells // layout
    inside = (slice(HALO, HALO + n),) * 2

    def quantity(values: Field) -> Quantity:
        data = np.zeros((n + 2 * HALO, n + 2 * HALO))
        data[inside] = values
        return Quantity(data, [J_DIM, I_DIM], "", origin=(HALO, HALO), extent=(n, n), number_of_halo_points=HALO)

    # The axes of cells beyond the edges: each Cartesian component of the two axes is a vector like the wind's two.
    axes_i, axes_j = ([quantity(component) for component in along] for along in (g.axis_i, g.axis_j))
    ranks.vector_halo_update(axes_i, axes_j, USED)
    axis_i, axis_j = (np.stack([q.data for q in along]) for along in (axes_i, axes_j))

    surface, wind, coriolis = flow(g.centre, case.tilt, case.depth, case.speed)
    ground = quantity(mountain(g.centre) if case.has_mountain else np.zeros((n, n)))
    ranks.halo_update(ground, USED)
    h, u, v = (quantity(np.zeros((n, n))) for _ in range(3))
    scalars = ranks.get_scalar_halo_updater([h.halo_spec(USED)])
    vectors = ranks.get_vector_halo_updater([u.halo_spec(USED)], [v.halo_spec(USED)])
    overlap = dot(g.axis_i, g.axis_j)
    scale = 1 - overlap**2

    def tendency(depth: Field, momentum: Field) -> tuple[Field, Field]:
        velocity = momentum / depth
        along_i, along_j = dot(velocity, g.axis_i), dot(velocity, g.axis_j)
        h.data[inside] = depth
        u.data[inside], v.data[inside] = (along_i - overlap * along_j) / scale, (along_j - overlap * along_i) / scale
        scalars.start([h])
        vectors.start([u], [v])
        scalars.wait()
        vectors.wait()
        carried = h.data * (u.data * axis_i + v.data * axis_j)
        level = h.data + ground.data
        d_depth, d_momentum = np.zeros_like(depth), np.zeros_like(momentum)
        for number, normal in enumerate((g.normal_j, g.normal_i)):
            # Cells in a line across the faces, with two halo points at both ends.
            line = [slice(HALO, HALO + n)] * 2
            line[number] = slice(HALO - USED, HALO + n + USED)
            q = np.concatenate([[h.data[tuple(line)], level[tuple(line)]], carried[(slice(None), *line)]])
            q = np.moveaxis(q, 1 + number, -1)
            slope = (q[..., 2:] - q[..., :-2]) / 4
            low, high = q[..., 1:-2] + slope[..., :-1], q[..., 2:-1] - slope[..., 1:]
            face = np.moveaxis(normal, 1 + number, -1)
            length = np.sqrt(dot(face, face))
            through = [dot(side[2:], face) / side[0] for side in (low, high)]
            fastest = np.maximum(
                *(np.abs(w) + length * np.sqrt(GRAVITY * side[0]) for w, side in zip(through, (low, high)))
            )
            mass = (low[0] * through[0] + high[0] * through[1] - fastest * (high[1] - low[1])) / 2
            flux = (low[2:] * through[0] + high[2:] * through[1] - fastest * (high[2:] - low[2:])) / 2
            middle = np.moveaxis(depth, number, -1)
            centre_level = q[1, ..., USED:-USED]
            lift = [
                GRAVITY * middle * ((low[1] + high[1])[..., side] / 2 - centre_level) * face[..., side]
                for side in (slice(1, None), slice(None, -1))
            ]
            d_depth -= np.moveaxis(mass[..., 1:] - mass[..., :-1], -1, number)
            change = flux[..., 1:] - flux[..., :-1] + lift[0] - lift[1]
            d_momentum -= np.moveaxis(change, -1, 1 + number)
        d_momentum = d_momentum / g.area - coriolis * cross(g.centre, momentum)
        return d_depth / g.area, d_momentum - dot(d_momentum, g.centre) * g.centre

    depth = surface - ground.data[inside]
    momentum = depth * wind
    before = depth.copy()
    shortest = math.pi / 2 / cells * RADIUS * 0.7
    steps = max(1, math.ceil(hours * 3600 / (0.6 * shortest / (math.sqrt(GRAVITY * case.depth) + case.speed))))
    dt = hours * 3600 / steps
    for _ in range(steps):  # Runge-Kutta of third order, by convex combinations
        a, b = tendency(depth, momentum)
        depth_1, momentum_1 = depth + dt * a, momentum + dt * b
        a, b = tendency(depth_1, momentum_1)
        depth_2 = 0.75 * depth + 0.25 * (depth_1 + dt * a)
        momentum_2 = 0.75 * momentum + 0.25 * (momentum_1 + dt * b)
        a, b = tendency(depth_2, momentum_2)
        depth = depth / 3 + 2 / 3 * (depth_2 + dt * a)
        momentum = momentum / 3 + 2 / 3 * (momentum_2 + dt * b)

    gathered = [ranks.gather(quantity(f)) for f in (before, depth, ground.data[inside], g.area)]
    if gathered[0] is None:
        return None
    start, end, bottom, area = (q.data for q in gathered if q is not None)
    assert gathered[0].dims[0] == TILE_DIM
    return math.fsum((start * area).ravel()), math.fsum((end * area).ravel()), start, end, end + bottom, area, steps


def run(case: Case, cells: int, layout: int, hours: float) -> Any:
    return ts.launch(6 * layout**2, lambda world: run_rank(world, case, cells, layout, hours))[0]


def norms(found: Field, exact: Field, area: Field) -> tuple[float, float, float]:
    """The normalized errors of Williamson et al.: l1, l2 and the greatest."""
    wrong = found - exact
    return (
        float((np.abs(wrong) * area).sum() / (np.abs(exact) * area).sum()),
        float(np.sqrt((wrong**2 * area).sum() / (exact**2 * area).sum())),
        float(np.abs(wrong).max() / np.abs(exact).max()),
    )


PLACES = ["equator, 0°", "equator, 90° E", "north pole", "equator, 180°", "equator, 90° W", "south pole"]
MIDDLE = 'text-anchor="middle"'
HALO_OF_TEXT = 'stroke="#fff" stroke-width="3" stroke-opacity="0.7" paint-order="stroke"'
COLOURS = np.array([[24, 28, 76], [38, 92, 152], [72, 162, 164], [196, 214, 150], [246, 186, 84], [204, 72, 52]], float)


def finer(field: Field, zoom: int) -> Field:
    """Rows of values, each divided into ``zoom`` by linear interpolation."""
    old = np.arange(field.shape[-1])
    new = (np.arange(field.shape[-1] * zoom) + 0.5) / zoom - 0.5
    return np.apply_along_axis(lambda row: np.interp(new, old, row), -1, field)


def png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """A PNG of indices into the palette."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9)
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"PLTE", palette.tobytes()) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def borders(areas: NDArray[Any]) -> NDArray[np.bool_]:
    """The pixels whose area differs from that of the pixel before, along either axis."""
    found = np.zeros(areas.shape, bool)
    found[1:] |= areas[1:] != areas[:-1]
    found[:, 1:] |= areas[:, 1:] != areas[:, :-1]
    return found


def picture(surface: Field, ground: Field, title: str) -> str:
    """An SVG of six tiles, unfolded into a staircase: each lies east of the one before, or north of it. Each colour is a
    band of heights between two contour lines; the white line is the foot of the mountain."""
    zoom = max(1, 192 // surface.shape[-1])
    size = surface.shape[-1] * zoom
    smooth = [np.swapaxes(finer(np.swapaxes(finer(field, zoom), 1, 2), zoom), 1, 2) for field in (surface, ground)]
    rough = (float(surface.max() - surface.min()) or 1.0) / 20
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough)
    lowest = math.floor(smooth[0].min() / step)
    band = np.floor(smooth[0] / step).astype(int) - lowest
    count = int(band.max()) + 1
    where = (np.arange(count) + 0.5) / count * (len(COLOURS) - 1)
    colours = np.stack([np.interp(where, np.arange(len(COLOURS)), part) for part in COLOURS.T], -1)
    page_colour, frame, foot = 2 * count, 2 * count + 1, 2 * count + 2
    palette = np.concatenate([colours, 0.75 * colours, [[255] * 3, [40] * 3, [255] * 3]]).astype(np.uint8)
    page = np.full((3 * size, 4 * size), page_colour, np.uint8)
    left, top = 76, 24
    texts = []

    def text(x: float, y: float, words: str, more: str = "") -> None:
        texts.append(f'<text x="{x:g}" y="{y:g}" {more}>{words}</text>')

    for tile in range(6):
        column, row = (tile + 1) // 2, 2 - tile // 2
        pixels = band[tile] + count * borders(band[tile])
        pixels[borders(smooth[1][tile] > 1)] = foot
        pixels[[0, -1], :] = pixels[:, [0, -1]] = frame
        page[row * size : (row + 1) * size, column * size : (column + 1) * size] = pixels[::-1]
        text(left + column * size + 6, top + row * size + 16, f"tile {tile}: {PLACES[tile]}", HALO_OF_TEXT)
    bottom = top + 3 * size
    for angle in (-45, 0, 45):
        at = (angle + 45) / 90 * size
        text(left + at, bottom + 16, f"{angle}", MIDDLE)
        text(left - 6, bottom - at + 4, f"{angle}", 'text-anchor="end"')
    text(left + size / 2, bottom + 34, "angle along i (degrees)", MIDDLE)
    text(0, 0, "angle along j (degrees)", f'{MIDDLE} transform="translate({left - 38} {bottom - size / 2:g}) rotate(-90)"')
    for line, words in enumerate((title, "all tiles have the axes of tile 0", "white line: foot of the mountain")):
        text(left, top + 16 + 18 * line, words)
    bar_left, bar_top, width = left + 2 * size + 40, top + 2 * size + 70, (2 * size - 60) / count
    text(bar_left, bar_top - 10, f"height of the surface (m), contour lines every {step:g} m")
    for number, colour in enumerate(palette[:count]):
        texts.append(
            f'<rect x="{bar_left + number * width:.1f}" y="{bar_top}" width="{width + 0.5:.1f}" height="16" '
            f'fill="#{colour.tobytes().hex()}"/>'
        )
    for number in range(0, count + 1, 4):
        text(bar_left + number * width, bar_top + 32, f"{(lowest + number) * step:g}", MIDDLE)
    image = base64.b64encode(png(page, palette)).decode()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 4 * size + 24}" height="{bottom + 48}" '
        f'font-family="sans-serif" font-size="13"><title>{title}</title>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<image x="{left}" y="{top}" width="{4 * size}" height="{3 * size}" href="data:image/png;base64,{image}"/>\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


def main() -> None:
    """Runs two cases of Williamson et al. (1992), "A standard test set for numerical approximations to the shallow water
    equations in spherical geometry". Case 2 is a steady flow, tilted against the cube: what has changed is error. It runs
    with CELLS / 2 and CELLS cells along each edge of the cube, on 6 ranks and on 24, whose results are the same bits.
    Case 5 is the flow over a mountain, and is what the picture shows."""
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    hours = float(sys.argv[2]) if len(sys.argv) > 2 else 12.0
    print(f"{STEADY.name}, {hours:g} hours")
    print("  cells  ranks  steps   mass error        l1        l2      linf")
    results = {}
    for n, layout in ((cells // 2, 1), (cells, 1), (cells, 2)):
        mass, mass_after, start, end, _, area, steps = run(STEADY, n, layout, hours)
        l1, l2, worst = norms(end, start, area)
        error = abs(mass_after - mass) / mass
        print(f"  {n:5}  {6 * layout**2:5}  {steps:5}   {error:10.1e}  {l1:.2e}  {l2:.2e}  {worst:.2e}")
        assert error < 1e-13, "mass is lost"
        results[n, layout] = end, l2
    assert np.array_equal(results[cells, 1][0], results[cells, 2][0]), "24 ranks and 6 give different results"
    assert results[cells, 1][1] < 0.5 * results[cells // 2, 1][1], "a finer grid is no better"
    print("  24 ranks and 6 give the same bits")
    if len(sys.argv) > 3:
        mass, mass_after, _, end, surface, _, steps = run(MOUNTAIN, cells, 1, hours)
        title = f"{MOUNTAIN.name}, after {hours:g} hours"
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            file.write(picture(surface, surface - end, title))
        print(f"{MOUNTAIN.name}, {steps} steps: mass error {abs(mass_after - mass) / mass:.1e}")
        print(f"{sys.argv[3]}: the height of the surface, {surface.min():.0f} to {surface.max():.0f} m")


if __name__ == "__main__":
    main()
