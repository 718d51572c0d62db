// Detail: ArrayRef, the type-erased handle behind Array<T>: one rank's local array as a view of owned or foreign
// memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/memory/buffer.hpp>

namespace tranship {

class Coherence;

/// A distributed array as plans and exchanges see it: its world, its layout, where this rank's part lies on the host,
/// and the Coherence that knows its copies elsewhere. Copies of an ArrayRef share these.
struct ArrayRef {
  World* world = nullptr;
  std::shared_ptr<const ArraySpec> spec;
  StridedView view;
  std::shared_ptr<void> memory;  ///< set if allocate_array made it
  std::shared_ptr<Coherence> coherence;
  /// How many of the last dimensions of `spec` and `view` are the inside of one element (records.hpp).
  int inner_dims = 0;
  /// True if the program gave const memory: no exchange writes it.
  bool is_const = false;
};

/// Returns the array's name in messages, such as "array 'u' f64[8,8] @ 2x1 : block, whole".
std::string describe(const ArrayRef& array);

/// Returns the world that all these arrays belong to. Throws `invalid_use` for an empty list and for two worlds.
World& common_world(std::span<const ArrayRef> arrays);
std::vector<Coherence*> coherence_of(const std::vector<ArrayRef>& arrays);

/// Allocates memory for this rank's part, zeroed, aligned to 64 bytes and laid out as Distribution::storage says.
/// Throws `no_memory`, and `invalid_use` when the grid needs more ranks than the world has (so do the next two).
ArrayRef allocate_array(World& world, ArraySpec spec, const BufferOptions& options = {});
/// Wraps foreign memory that is laid out as Distribution::storage says. `data` points to the start of the allocation;
/// for split complex arrays to the plane of real parts, and `imaginary` to the other. Throws `invalid_use` for null
/// pointers.
ArrayRef wrap_array(World& world, ArraySpec spec, void* data, void* imaginary = nullptr,
                    const BufferOptions& options = {});
/// Wraps foreign memory with the strides of `view`. Throws `mismatch` unless its extents are the local extents and its
/// type is the array's, `invalid_use` for a view without memory or with strides or planes that do not fit,
/// `unsupported` for memory of a device.
ArrayRef wrap_array(World& world, ArraySpec spec, const StridedView& view, const BufferOptions& options = {});

/// Calls `f(local, cell)` for every element of the rank's local array that the rank owns, in row-major order of local
/// indices.
void for_each_owned(const Distribution& distribution, Rank rank,
                    FunctionRef<void(const Indices& local, const Indices& cell)> f);
/// Calls `f(local, cell)` for every stored element; `cell` may lie outside [0, extent).
void for_each_stored(const Distribution& distribution, Rank rank,
                     FunctionRef<void(const Indices& local, const Distribution::Cell& cell)> f);

/// Returns the cell of the array that a stored cell copies: beyond a toroidal edge, the cell at the other end; beyond
/// any other edge, none.
std::optional<Indices> cell_in_array(const Distribution& distribution, Indices at);

namespace detail {
/// Returns true. Throws `invalid_use` when the indices are not those of an element, or when its parts lie in two
/// planes.
bool check_element(std::span<const Index> local, const Indices& extents, const void* imaginary = nullptr);

// Calls of Array that its Coherence answers.
Lease open_lease(const ArrayRef& array, Intent intent, Combine combine, const ArrayAccess& access, CallSite where);
HostCells read_on_host(const ArrayRef& array, CallSite where);
Lease write_on_host(const ArrayRef& array, CallSite where);
Region local_region(const ArrayRef& array, const ArrayAccess& access);
std::string explain_lease(const ArrayRef& array, Intent intent, const ArrayAccess& access, CallSite where);
GhostCounts ghost_counts(const ArrayRef& array) noexcept;
const Buffer& buffer_of(const ArrayRef& array);
}  // namespace detail

}  // namespace tranship
