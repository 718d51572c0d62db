// Array<T>: a distributed array as its users hold it. The typed edge: everything below works on its erased ArrayRef.
#pragma once

#include <complex>
#include <type_traits>

#include <tranship/array/coherence.hpp>
#include <tranship/array/local_array.hpp>

namespace tranship {

namespace detail {
template <class T>
struct PartOf {
  using type = T;
};
template <class T>
struct PartOf<std::complex<T>> {
  using type = T;
};
}  // namespace detail

/// A rank's part of a distributed array. Copies share the memory. Local indices count stored elements, overlap
/// included, as Distribution says.
template <class T>
class Array {
  static_assert(has_element_type<T>, "tranship moves NumPy's number types and bfloat16");

 public:
  /// Allocates this rank's part, zeroed. Throws `invalid_use` when the grid needs more ranks than the world has. Not
  /// collective.
  Array(World& world, Distribution distribution, const BufferOptions& options = {.name = "array"})
      : ref_(allocate_array(world, {element_type_of<T>, std::move(distribution)}, options)) {}
  /// Foreign memory, laid out as `distribution.storage(world.rank())` says; it must outlive all exchanges.
  Array(World& world, Distribution distribution, T* memory, const BufferOptions& options = {.name = "array"})
      : ref_(wrap_array(world, {element_type_of<T>, std::move(distribution)}, memory, nullptr, options)) {}
  /// Foreign memory in any layout; of split complex arrays the view has both planes.
  Array(World& world, Distribution distribution, const StridedView& view,
        const BufferOptions& options = {.name = "array"})
      : ref_(wrap_array(world, {element_type_of<T>, std::move(distribution)}, view, options)) {}

  const Distribution& distribution() const noexcept { return ref_.spec->distribution; }
  World& world() const noexcept { return *ref_.world; }
  const Indices& extents() const noexcept { return ref_.view.extents; }
  const StridedView& view() const noexcept { return ref_.view; }
  const ArrayRef& ref() const noexcept { return ref_; }
  operator const ArrayRef&() const noexcept { return ref_; }

  // Leases: the array on devices, and ghosts that fetch themselves. Collective: all ranks open the same leases, in the
  // same order, each on a device of its choice. What a lease needs is exchanged and copied, and nothing else: a read of
  // ghosts exchanges those that are stale, straight to the memory that asks; reading owned cells exchanges nothing.
  // From the first lease on, the pointers below see the host's copy only, and nobody sees what they write.
  //
  // Lease::view() is of the local array. Throw as Buffer's, `invalid_use` for regions and depths that are not there,
  // and as exchanges do.
  Lease read(const ArrayAccess& access = {}, CallSite where = CallSite::here()) const {
    return ref_.coherence->open(Intent::read, Combine::sum, access, where);
  }
  /// Ghosts that are written are taken to hold what their owners hold; the others become stale.
  Lease write(const ArrayAccess& access = {}, CallSite where = CallSite::here()) const {
    return ref_.coherence->open(Intent::write, Combine::sum, access, where);
  }
  Lease read_write(const ArrayAccess& access = {}, CallSite where = CallSite::here()) const {
    return ref_.coherence->open(Intent::read_write, Combine::sum, access, where);
  }
  /// Of ghosts: what is combined there is for the owner, who gets it when somebody next needs the value: from all
  /// ranks, in their order, so that sums of floats are always the same. Ghosts begin with the element that changes
  /// nothing.
  Lease accumulate(Combine combine, const ArrayAccess& access = {}, CallSite where = CallSite::here()) const {
    return ref_.coherence->open(Intent::accumulate, combine, access, where);
  }
  /// Where the cells of such a lease lie in this rank's local array.
  Region local_region(const ArrayAccess& access = {}) const { return ref_.coherence->local_region(access); }
  /// What opening such a lease would exchange and copy, on this rank. Changes nothing.
  std::string explain(Intent intent = Intent::read, const ArrayAccess& access = {},
                      CallSite where = CallSite::here()) const {
    return ref_.coherence->explain(intent, access, where);
  }
  /// What leases of this array have exchanged on this rank.
  GhostCounts ghost_counts() const noexcept { return ref_.coherence->counts(); }
  /// This rank's part on all devices. Reading from it exchanges nothing, and refuses ghosts that are stale.
  const Buffer& buffer() const { return ref_.coherence->buffer(); }

  /// First element on the host; null when this rank holds nothing. Not for split complex arrays.
  T* data() const noexcept { return static_cast<T*>(ref_.view.data); }

  /// A local element by its local indices. Not for split complex arrays: use get and put.
  template <class... I>
  T& operator()(I... local) const noexcept {
    const Index at[] = {static_cast<Index>(local)...};
    Index offset = 0;
    for (int d = 0; d < int(sizeof...(I)); ++d) offset += at[d] * ref_.view.strides[d];
    return data()[offset];
  }

  T get(const Indices& local) const noexcept {
    if constexpr (is_split_capable)
      if (ref_.view.imaginary)
        return T(plane(ref_.view.data)[offset_of(local)], plane(ref_.view.imaginary)[offset_of(local)]);
    return data()[offset_of(local)];
  }
  void put(const Indices& local, T value) const noexcept {
    if constexpr (is_split_capable)
      if (ref_.view.imaginary) {
        plane(ref_.view.data)[offset_of(local)] = value.real();
        plane(ref_.view.imaginary)[offset_of(local)] = value.imag();
        return;
      }
    data()[offset_of(local)] = value;
  }

  /// Gives every element that this rank owns the value `f(cell)`.
  template <class F>
  void fill_owned(F&& f) const {
    for_each_owned(distribution(), world().rank(),
                   [&](const Indices& local, const Indices& cell) { put(local, f(cell)); });
  }
  /// Number of stored elements (owned and overlap) that differ from `f(cell)`; cells outside [0, extent) are left out.
  /// The built-in check of a redistribution or of a halo without toroidal edges.
  template <class F>
  Index count_wrong(F&& f) const {
    Index wrong = 0;
    for_each_stored(distribution(), world().rank(), [&](const Indices& local, const Distribution::Cell& cell) {
      for (int d = 0; d < cell.at.size(); ++d)
        if (cell.at[d] < 0 || cell.at[d] >= distribution().extents()[d]) return;
      wrong += !(get(local) == f(cell.at));
    });
    return wrong;
  }

 private:
  using Part = typename detail::PartOf<T>::type;
  static constexpr bool is_split_capable = !std::is_same_v<Part, T>;

  static Part* plane(void* data) noexcept { return static_cast<Part*>(data); }
  Index offset_of(const Indices& local) const noexcept {
    Index offset = 0;
    for (int d = 0; d < local.size(); ++d) offset += local[d] * ref_.view.strides[d];
    return offset;
  }

  ArrayRef ref_;
};

}  // namespace tranship
