// The methods that tranship brings to contests: its own, and beside it the limit.
#pragma once

#include <contest/methods.hpp>

#include <tranship/tranship.hpp>

namespace contest {

Methods redistribution_methods(tranship::World& world, const Work& work);
Methods stream_methods(tranship::World& world, const Work& work);
Methods halo_methods(tranship::World& world, const Work& work);
/// A halo of one field and a 7-point stencil: overlapped, in sequence, and (the limit) the stencil alone.
Methods stencil_methods(tranship::World& world, const Work& work);
/// A buffer on the host and a fake device.
Methods coherence_methods(const Work& work);
/// Contexts and barriers, and beside them the same by hand (the limit).
Methods one_sided_methods(tranship::World& world, const Work& work);
/// Programs, and beside them the same by hand in the same memory (the limit), and a memcpy of as many bytes.
Methods collective_methods(tranship::World& world, const Work& work);

/// The distribution of one side of a work; that of a halo includes its overlap.
tranship::Distribution distribution_of(const Work& work, Side side);

}  // namespace contest
