// Detail: The memory side of an array: one rank's local array, erased to a view, owned or foreign.
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

/// A distributed array as plans and exchanges see it: who runs it, how it is laid out, where this rank's part lies on
/// the host, and what is known of its copies elsewhere. Copies share what they point to.
struct ArrayRef {
  World* world = nullptr;
  std::shared_ptr<const ArraySpec> spec;
  StridedView view;
  std::shared_ptr<void> memory;  ///< that allocate_array made
  std::shared_ptr<Coherence> coherence;
  /// Last dimensions of `spec` and `view` that are the inside of one element, which is moved as bytes (records.hpp).
  int inner_dims = 0;
  /// What the program has given as const: no exchange writes it.
  bool is_const = false;
};

/// "array 'u' f64[8,8] @ 2x1 : block, whole": what messages call it.
std::string describe(const ArrayRef& array);

/// The world that all these arrays belong to. Throws `invalid_use` when there is none, or more than one.
World& common_world(std::span<const ArrayRef> arrays);
std::vector<Coherence*> coherence_of(const std::vector<ArrayRef>& arrays);

/// Memory for this rank's part, zeroed, aligned to 64 bytes, laid out as Distribution::storage says. Throws
/// `invalid_use` when the grid needs more ranks than the world has (so do the next two), `no_memory`.
ArrayRef allocate_array(World& world, ArraySpec spec, const BufferOptions& options = {});
/// Foreign memory with the layout that Distribution::storage says: `data` points to the start of the allocation (of
/// split complex arrays to the plane of real parts, `imaginary` to the other). Throws `invalid_use` when there is none.
ArrayRef wrap_array(World& world, ArraySpec spec, void* data, void* imaginary = nullptr,
                    const BufferOptions& options = {});
/// Foreign memory with strides of its own. Throws `mismatch` unless its extents are the local extents and its type is
/// the array's, `invalid_use` when it is no view of so many elements.
ArrayRef wrap_array(World& world, ArraySpec spec, const StridedView& view, const BufferOptions& options = {});

/// Calls `f(local, cell)` for every element of the rank's local array that it owns, in row-major order of local
/// indices.
void for_each_owned(const Distribution& distribution, Rank rank,
                    FunctionRef<void(const Indices& local, const Indices& cell)> f);
/// The same for every stored element; `cell` may lie outside [0, extent).
void for_each_stored(const Distribution& distribution, Rank rank,
                     FunctionRef<void(const Indices& local, const Distribution::Cell& cell)> f);

/// The cell of the array that a stored one stands for: beyond a toroidal edge that at the other end, beyond any other
/// edge none.
std::optional<Indices> cell_in_array(const Distribution& distribution, Indices at);

namespace detail {
/// True; throws `invalid_use` where these are no indices of an element, or its parts lie in two planes.
bool check_element(std::span<const Index> local, const Indices& extents, const void* imaginary = nullptr);

// What Array asks of an array's Coherence.
Lease open_lease(const ArrayRef& array, Intent intent, Combine combine, const ArrayAccess& access, CallSite where);
HostCells read_on_host(const ArrayRef& array, CallSite where);
Lease write_on_host(const ArrayRef& array, CallSite where);
Region local_region(const ArrayRef& array, const ArrayAccess& access);
std::string explain_lease(const ArrayRef& array, Intent intent, const ArrayAccess& access, CallSite where);
GhostCounts ghost_counts(const ArrayRef& array) noexcept;
const Buffer& buffer_of(const ArrayRef& array);
}  // namespace detail

}  // namespace tranship
