// A program to simulate, compiled twice: as it is, and with tranship::race_hooks.
#pragma once

namespace tranship {
class World;
}

namespace simulated {

/// A sum over the cells of `steps` steps of a five-point stencil, by rows of ranks, in symmetric memory of `size` by
/// `size` cells for each rank. Collective.
double stencil_plain(tranship::World& world, int size, int steps);
double stencil_hooked(tranship::World& world, int size, int steps);

}  // namespace simulated
