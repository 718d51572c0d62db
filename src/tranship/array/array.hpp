// Array<T>: the typed handle by which users hold one rank's part of a distributed array. All layers below work on its
// type-erased ArrayRef (local_array.hpp). Read redistribution.hpp and halo_exchange.hpp next.
#pragma once

#include <complex>
#include <type_traits>

#include <tranship/array/local_array.hpp>
#include <tranship/array/mdspan.hpp>
#include <tranship/array/records.hpp>

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

/// A handle of one rank's part of a distributed array. Copies of the handle share the memory, which lives until the
/// last copy and the last exchange that moves it are destroyed. Local indices count stored elements, overlap included
/// (see Distribution). Only the thread of the rank may use it. The World must outlive it.
///
/// T is one of NumPy's number types, bfloat16, or any other trivially copyable type. Elements of such another type are
/// moved as bytes: they cannot be added or stored in planes, and leases and view() show them with one more dimension,
/// the inside of an element. If T is const, the memory belongs to the program and no exchange writes it.
///
/// Making an Array is not collective and sends nothing. Access to elements, views and descriptions is local and never
/// waits. Only the calls that open leases are collective.
template <class T>
class Array {
  using Value = std::remove_const_t<T>;
  static constexpr bool is_const = std::is_const_v<T>;
  static constexpr bool is_record = !has_element_type<Value>;
  static constexpr RecordSize record_size{sizeof(Value), alignof(Value)};
  static_assert(
      std::is_trivially_copyable_v<Value> && !std::is_pointer_v<Value>,
      "tranship moves NumPy's number types, bfloat16, and as bytes what is trivially copyable and no pointer");

 public:
  /// Allocates this rank's part and zeroes it on the calling thread. The memory is aligned to 64 bytes, and reachable
  /// peers can load and store it. Throws `invalid_use` when the grid needs more ranks than the world has and when
  /// planes are asked for elements that are not complex; `overflow`; `no_memory`.
  Array(World& world, const Distribution& distribution,
        const BufferOptions& options = {.name = "array"}) requires(!is_const)
      : Array(allocate_array(world, spec_of(distribution), options), distribution) {}
  /// Wraps foreign memory that is laid out as `distribution.storage(world.rank())` says. Copies nothing. The memory
  /// must outlive all copies of this handle and all exchanges that move it. If ranks are processes, peers reach only
  /// memory in the symmetric heap; exchanges stage the messages of any other memory. These constructors throw
  /// `invalid_use` for a grid of more ranks than the world has and for missing memory, `mismatch` for a view of other
  /// extents or another type, `unsupported` for memory of a device.
  Array(World& world, const Distribution& distribution, T* memory, const BufferOptions& options = {.name = "array"})
      : Array(wrap_array(world, spec_of(distribution), const_cast<Value*>(memory), nullptr, options), distribution) {}
  /// Wraps foreign memory with the strides of `view`. For split complex arrays, the view has both planes.
  Array(World& world, const Distribution& distribution, const StridedView& view,
        const BufferOptions& options = {.name = "array"})
      : Array(wrap_array(world, spec_of(distribution), view, options), distribution) {}
  /// Wraps the foreign memory that a std::mdspan, or a view like it, shows.
  template <MdspanLike M>
  Array(World& world, const Distribution& distribution, const M& view, const BufferOptions& options = {.name = "array"})
      : Array(wrap_array(world, spec_of(distribution), erased(world, distribution, view), options), distribution) {}

  const Distribution& distribution() const noexcept {
    if constexpr (is_record)
      return *shape_.distribution;
    else
      return ref_.spec->distribution;
  }
  World& world() const noexcept { return *ref_.world; }
  const Indices& extents() const noexcept {
    if constexpr (is_record)
      return shape_.extents;
    else
      return ref_.view.extents;
  }
  /// In elements.
  const Indices& strides() const noexcept {
    if constexpr (is_record)
      return shape_.strides;
    else
      return ref_.view.strides;
  }
  const StridedView& view() const noexcept { return ref_.view; }
  const ArrayRef& ref() const noexcept { return ref_; }
  operator const ArrayRef&() const noexcept { return ref_; }

  /// Returns the local array as a view of type `M`, such as std::mdspan<T, std::dextents<Index, 2>,
  /// std::layout_stride>. Throws `invalid_use` when M has another number of dimensions, or fixed strides that differ
  /// from the array's. Not for split complex arrays.
  template <class M>
  M as() const {
    return detail::make_mdspan<M>(data(), extents(), strides());
  }
#if defined(__cpp_lib_mdspan)
  /// Returns the local array as a std::mdspan of `dims` dimensions; see as().
  template <std::size_t dims>
  auto mdspan() const {
    return as<std::mdspan<T, std::dextents<Index, dims>, std::layout_stride>>();
  }
#endif

  // Leases: access to the array on devices, and to ghosts, which are exchanged when a lease needs them.
  //
  // Opening a lease is collective: all ranks open the same leases in the same order, each on a device of its choice. A
  // lease exchanges and copies only the cells that it needs. A read of ghosts exchanges the stale ones, in one message
  // per pair of neighbours. A read of owned cells exchanges nothing, unless leases have accumulated in ghosts of these
  // cells. A call that exchanges waits for the peers until the world's timeout, and for devices that hold boundary
  // cells; any other call sends nothing and does not wait for peers. The first exchange of a given depth and region
  // plans and allocates; the last 32 plans are kept.
  //
  // Once the array has had a lease, fill_owned() and count_wrong() open leases of their own; fill_owned() then counts
  // as a write() on the host. From the first lease on, pointers, views and elements show only the copy on the host, and
  // the buffer does not notice what is written through them. Lease::view() shows the local array.
  //
  // All throw `invalid_use` for regions and depths that do not exist and when an open lease forbids the access (the
  // message has both call sites); `unsupported` for split complex arrays; `timeout`, `peer_lost`, `device_lost` and
  // `no_memory`.

  // In a staggered array, a region with an interface that two parts share means the interface of each of them: a part
  // reads and writes its own, and a ghost stands for that of the part that is nearest in each dimension.

  /// Opens a lease to read cells. Ghosts among them hold what their owners hold.
  Lease read(const ArrayAccess& access = {}, CallSite where = CallSite::here()) const requires(!is_const) {
    return detail::open_lease(ref_, Intent::read, Combine::sum, access, where);
  }
  /// Opens a lease to write all cells of the access. Ghosts that are written count as fresh; all other ghosts of the
  /// cells become stale.
  Lease write(const ArrayAccess& access = {}, CallSite where = CallSite::here()) const requires(!is_const) {
    return detail::open_lease(ref_, Intent::write, Combine::sum, access, where);
  }
  /// Opens a lease to read cells and then write them. Ghosts among them first hold what their owners hold, then count
  /// as in write().
  Lease read_write(const ArrayAccess& access = {}, CallSite where = CallSite::here()) const requires(!is_const) {
    return detail::open_lease(ref_, Intent::read_write, Combine::sum, access, where);
  }
  /// Opens a lease to combine values into cells. Ghosts among them begin with the identity of the combination. What
  /// they accumulate is combined into their owners when a lease next needs the owners' values, in the order of the
  /// ranks, so sums of floats are the same in every run.
  Lease accumulate(Combine combine, const ArrayAccess& access = {}, CallSite where = CallSite::here()) const
      requires(!is_const && !is_record) {
    return detail::open_lease(ref_, Intent::accumulate, combine, access, where);
  }
  /// Returns where the cells of such a lease lie in this rank's local array. Not collective.
  Region local_region(const ArrayAccess& access = {}) const {
    return detail::local_region(ref_, access);
  }
  /// Describes what opening such a lease would exchange and copy on this rank. Changes nothing. Not collective.
  std::string explain(Intent intent = Intent::read, const ArrayAccess& access = {},
                      CallSite where = CallSite::here()) const {
    return detail::explain_lease(ref_, intent, access, where);
  }
  /// Returns what leases of this array have exchanged on this rank.
  GhostCounts ghost_counts() const noexcept {
    return detail::ghost_counts(ref_);
  }
  /// Returns the buffer that holds this rank's part on all devices. Reading from it exchanges nothing and refuses stale
  /// ghosts. Not collective. Throws `unsupported` for split complex arrays.
  const Buffer& buffer() const {
    return detail::buffer_of(ref_);
  }

  /// Returns the first element on the host, or null when this rank holds nothing. Not for split complex arrays.
  T* data() const noexcept {
    return static_cast<T*>(ref_.view.data);
  }

  /// Returns a local element by its local indices, one per dimension. Not for split complex arrays: use get and put.
  /// All three throw `invalid_use` for indices out of range in builds with costly assertions; other builds do not
  /// check.
  template <class... I>
  T& operator()(I... local) const {
    const Index at[] = {static_cast<Index>(local)...};
    TRANSHIP_ASSERT_COSTLY(detail::check_element(at, extents(), ref_.view.imaginary));
    Index offset = 0;
    for (int d = 0; d < int(sizeof...(I)); ++d) offset += at[d] * strides()[d];
    return data()[offset];
  }

  Value get(const Indices& local) const {
    TRANSHIP_ASSERT_COSTLY(detail::check_element(local, extents()));
    if constexpr (is_split_capable)
      if (ref_.view.imaginary)
        return Value(plane(ref_.view.data)[offset_of(local)], plane(ref_.view.imaginary)[offset_of(local)]);
    return data()[offset_of(local)];
  }
  void put(const Indices& local, const Value& value) const requires(!is_const) {
    TRANSHIP_ASSERT_COSTLY(detail::check_element(local, extents()));
    if constexpr (is_split_capable)
      if (ref_.view.imaginary) {
        plane(ref_.view.data)[offset_of(local)] = value.real();
        plane(ref_.view.imaginary)[offset_of(local)] = value.imag();
        return;
      }
    data()[offset_of(local)] = value;
  }

  /// Sets every element that this rank owns to `f(cell)` and calls `f` once for each. Exchanges nothing and does not
  /// wait for peers. Local at first; once the array has had a lease, all ranks must call it, as they must write().
  template <class F>
  void fill_owned(F&& f, CallSite where = CallSite::here()) const requires(!is_const) {
    const Lease lease = detail::write_on_host(ref_, where);
    for_each_owned(distribution(), world().rank(),
                   [&](const Indices& local, const Indices& cell) { put(local, f(cell)); });
  }
  /// Returns how many of this rank's stored elements (owned and overlap) differ from `f(cell)`: the built-in check of a
  /// redistribution or a halo. An element beyond a toroidal edge is compared with the cell at the other end; elements
  /// beyond other edges are skipped. Local. Values that devices hold are copied to the host first. Once the array has
  /// had a lease, a stale ghost counts as wrong; the first lease makes all ghosts stale. Throws `invalid_use` when an
  /// open lease writes cells, when owned cells have no value, and when ghosts hold values that their owners have yet to
  /// get.
  template <class F>
  Index count_wrong(F&& f, CallSite where = CallSite::here()) const {
    const HostCells here = detail::read_on_host(ref_, where);
    Index wrong = 0;
    for_each_stored(distribution(), world().rank(), [&](const Indices& local, const Distribution::Cell& cell) {
      const std::optional<Indices> at = cell_in_array(distribution(), cell.at);
      if (at) wrong += (!here.missing.empty() && is_missing(here, local)) || !(get(local) == f(*at));
    });
    return wrong;
  }

 private:
  using Part = typename detail::PartOf<Value>::type;
  static constexpr bool is_split_capable = !std::is_same_v<Part, Value>;
  struct Plain {};

  Array(ArrayRef ref, [[maybe_unused]] const Distribution& distribution) : ref_(std::move(ref)) {
    ref_.is_const = is_const;
    if constexpr (is_record) {
      ref_.inner_dims = 1;
      shape_ = shape_of_records(distribution, ref_.view, record_size);
    }
  }

  static ArraySpec spec_of(const Distribution& distribution) {
    if constexpr (is_record)
      return spec_of_records(distribution, record_size);
    else
      return {element_type_of<Value>, distribution};
  }
  template <class M>
  static StridedView erased(const World& world, const Distribution& distribution, const M& view) {
    auto* memory = const_cast<Value*>(view.data_handle());
    const Indices extents = detail::extents_of_mdspan(view), strides = detail::strides_of_mdspan(view);
    if constexpr (is_record)
      return view_of_records(spec_of(distribution), world.rank(), memory, extents, strides);
    else
      return {.data = memory, .type = element_type_of<Value>, .extents = extents, .strides = strides};
  }

  static Part* plane(void* data) noexcept {
    return static_cast<Part*>(data);
  }
  static bool is_missing(const HostCells& here, [[maybe_unused]] Indices local) {
    if constexpr (is_record) local.push_back(0);
    return here.missing.contains(local);
  }
  Index offset_of(const Indices& local) const noexcept {
    Index offset = 0;
    for (int d = 0; d < local.size(); ++d) offset += local[d] * strides()[d];
    return offset;
  }

  ArrayRef ref_;
  [[no_unique_address]] std::conditional_t<is_record, RecordShape, Plain> shape_;
};

}  // namespace tranship
