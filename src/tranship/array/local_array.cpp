#include "tranship/array/local_array.hpp"

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/extent_limits.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

void check_world(const World& world, const ArraySpec& spec) {
  if (spec.distribution.grid().world_size_min() > world.size())
    throw_error(ErrorCode::invalid_use, "the grid needs {}, the world has {}",
                amount(spec.distribution.grid().world_size_min(), "rank"), world.size());
  if (spec.distribution.memory().parts == ComplexParts::split && !is_complex(spec.type))
    throw_error(ErrorCode::invalid_use, "a layout in 2 planes needs complex elements, the array has {}",
                name_of(spec.type));
}

bool is_split(const ArraySpec& spec) {
  return spec.distribution.memory().parts == ComplexParts::split && is_complex(spec.type);
}

StridedView view_of(const ArraySpec& spec, const Storage& storage, void* data, void* imaginary) {
  const bool split = is_split(spec);
  const int unit = split ? size_bytes(part_of(spec.type)) : size_bytes(spec.type);
  auto first = [&](void* base) { return base ? static_cast<std::byte*>(base) + storage.offset * unit : nullptr; };
  return {.data = first(data),
          .type = spec.type,
          .extents = storage.extents,
          .strides = storage.strides,
          .imaginary = split ? first(imaginary) : nullptr};
}

ArrayRef array_of(World& world, ArraySpec spec, const StridedView& view, std::shared_ptr<void> memory,
                  const BufferOptions& options) {
  ArrayRef out{.world = &world, .spec = {}, .view = view, .memory = std::move(memory), .coherence = {}};
  out.spec = std::make_shared<const ArraySpec>(std::move(spec));
  out.coherence = std::make_shared<Coherence>(world, out.spec, view, out.memory, options);
  return out;
}

}  // namespace

World& common_world(std::span<const ArrayRef> arrays) {
  if (arrays.empty()) throw_error(ErrorCode::invalid_use, "an exchange of 0 arrays; at least 1 is needed");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].world || !arrays[i].spec)
      throw_error(ErrorCode::invalid_use, "array {} of {} has not been made by allocate_array or wrap_array", i,
                  arrays.size());
    if (arrays[i].world != arrays[0].world)
      throw_error(ErrorCode::invalid_use, "the arrays belong to two worlds, of {} and {}", arrays[0].world->size(),
                  amount(arrays[i].world->size(), "rank"));
  }
  return *arrays[0].world;
}

std::string describe(const ArrayRef& array) {
  const std::string& name = array.coherence->name();
  return fmt::format("array {}{}", name == "array" ? "" : fmt::format("'{}' ", name), to_text(*array.spec));
}

std::vector<Coherence*> coherence_of(const std::vector<ArrayRef>& arrays) {
  std::vector<Coherence*> out;
  for (const ArrayRef& array : arrays) out.push_back(array.coherence.get());
  return out;
}

namespace detail {

Lease open_lease(const ArrayRef& array, Intent intent, Combine combine, const ArrayAccess& access, CallSite where) {
  return array.coherence->open(intent, combine, access, where);
}

HostCells read_on_host(const ArrayRef& array, CallSite where) {
  return array.coherence->read_on_host(where);
}

Lease write_on_host(const ArrayRef& array, CallSite where) {
  return array.coherence->write_on_host(where);
}

Region local_region(const ArrayRef& array, const ArrayAccess& access) {
  return array.coherence->local_region(access);
}

std::string explain_lease(const ArrayRef& array, Intent intent, const ArrayAccess& access, CallSite where) {
  return array.coherence->explain(intent, access, where);
}

GhostCounts ghost_counts(const ArrayRef& array) noexcept {
  return array.coherence->counts();
}

const Buffer& buffer_of(const ArrayRef& array) {
  return array.coherence->buffer();
}

}  // namespace detail

ArrayRef allocate_array(World& world, ArraySpec spec, const BufferOptions& options) {
  check_world(world, spec);
  check_bytes(spec.type, spec.distribution.extents());
  const Storage storage = spec.distribution.storage(world.rank());
  const Index bytes = checked_multiply(storage.elements, size_bytes(spec.type));
  std::shared_ptr<void> memory;
  if (bytes > 0) {
    memory = world.local_memory(std::size_t(bytes), MemoryContent::zeros);
    if (!memory)
      throw_error(ErrorCode::no_memory, "rank {} cannot get {} for its part of an array", world.rank(),
                  amount(bytes, "byte"));
  }
  // Split complex: the plane of imaginary parts is the second half.
  std::byte* base = static_cast<std::byte*>(memory.get());
  const StridedView view = view_of(spec, storage, base, base ? base + bytes / 2 : nullptr);
  return array_of(world, std::move(spec), view, std::move(memory), options);
}

ArrayRef wrap_array(World& world, ArraySpec spec, void* data, void* imaginary, const BufferOptions& options) {
  check_world(world, spec);
  const Storage storage = spec.distribution.storage(world.rank());
  if (storage.elements > 0 && !data)
    throw_error(ErrorCode::invalid_use, "rank {} passes null memory for a part of {}", world.rank(),
                amount(storage.elements, "element"));
  if (storage.elements > 0 && is_split(spec) && !imaginary)
    throw_error(ErrorCode::invalid_use, "rank {} passes 1 plane; split complex numbers need 2", world.rank());
  const StridedView view = view_of(spec, storage, data, imaginary);
  return array_of(world, std::move(spec), view, nullptr, options);
}

ArrayRef wrap_array(World& world, ArraySpec spec, const StridedView& view, const BufferOptions& options) {
  check_world(world, spec);
  const Indices extents = spec.distribution.local_extents(world.rank());
  if (!(view.extents == extents))
    throw_error(ErrorCode::mismatch, "the view has extents [{}], the part has local extents [{}] (rank {})",
                to_string(view.extents), to_string(extents), world.rank());
  if (view.type != spec.type)
    throw_error(ErrorCode::mismatch, "the view has elements {}, the array {} (rank {})", name_of(view.type),
                name_of(spec.type), world.rank());
  if (view.strides.size() != view.extents.size())
    throw_error(ErrorCode::invalid_use, "the view has {} and {}: give one stride per extent (rank {})",
                amount(view.extents.size(), "extent"), amount(view.strides.size(), "stride"), world.rank());
  if (view.imaginary && !is_complex(view.type))
    throw_error(ErrorCode::invalid_use, "a view of {} cannot have an imaginary plane (rank {})", name_of(view.type),
                world.rank());
  if (!view.device.is_host())
    throw_error(ErrorCode::unsupported,
                "the view shows memory of {}: arrays lie on the host, and leases bring them to devices (rank {})",
                to_string(view.device), world.rank());
  if (!view.data && checked_product(view.extents) > 0)
    throw_error(ErrorCode::invalid_use, "the view of {} has null memory (rank {})",
                amount(checked_product(view.extents), "element"), world.rank());
  return array_of(world, std::move(spec), view, nullptr, options);
}

void for_each_stored(const Distribution& distribution, Rank rank,
                     FunctionRef<void(const Indices& local, const Distribution::Cell& cell)> f) {
  const Indices extents = distribution.local_extents(rank);
  if (distribution.is_indexed()) {
    for_each_coordinate(extents, [&](const Indices& local) { f(local, distribution.cell_of(rank, local)); });
    return;
  }
  const std::optional<Place> place = distribution.grid().place_of(rank);
  if (!place) return;
  // One table per dimension instead of a search per cell.
  std::vector<std::vector<LocalCell>> cells(distribution.dims());
  for (int d = 0; d < distribution.dims(); ++d)
    for (const SliceFamily& family : distribution.axis(d).slices(place->coordinates[d]))
      for (Index k = 0; k < family.count; ++k)
        for (Index i = -family.left; i < family.length + family.right; ++i)
          cells[d].push_back({family.start + k * family.period + i, i >= 0 && i < family.length});
  Distribution::Cell cell{.at = Indices::filled(distribution.dims(), 0), .owned = true};
  for_each_coordinate(extents, [&](const Indices& local) {
    cell.owned = true;
    for (int d = 0; d < local.size(); ++d) {
      cell.at[d] = cells[d][local[d]].cell;
      cell.owned &= cells[d][local[d]].owned;
    }
    f(local, cell);
  });
}

std::optional<Indices> cell_in_array(const Distribution& distribution, Indices at) {
  for (int d = 0; d < at.size(); ++d) {
    const Index extent = distribution.extents()[d];
    if (at[d] >= 0 && at[d] < extent) continue;
    const AxisParts& axis = distribution.axis(d);
    const Partition& partition = axis.partition();
    const bool low = at[d] < 0;
    if ((low ? partition.overlap.left : partition.overlap.right).edge != EdgePolicy::toroidal) return {};
    // Interfaces 0 and `period` are the same point. Cells on the left count down from it, cells on the right up.
    const Index first = !low && partition.points == Points::interfaces ? 1 : 0;
    at[d] = first + floor_modulo(at[d] - first, axis.period());
  }
  return at;
}

void for_each_owned(const Distribution& distribution, Rank rank,
                    FunctionRef<void(const Indices& local, const Indices& cell)> f) {
  for_each_stored(distribution, rank, [&](const Indices& local, const Distribution::Cell& cell) {
    if (cell.owned) f(local, cell.at);
  });
}

bool detail::check_element(std::span<const Index> local, const Indices& extents, const void* imaginary) {
  const auto refuse = [&](const char* why) {
    throw_error(ErrorCode::invalid_use, "indices ({}) of a local array of extents [{}]: {}", to_string(Indices(local)),
                to_string(extents), why);
  };
  if (int(local.size()) != extents.size()) refuse("give one index per dimension");
  for (int d = 0; d < extents.size(); ++d)
    if (local[std::size_t(d)] < 0 || local[std::size_t(d)] >= extents[d]) refuse("out of range");
  if (imaginary) refuse("complex numbers in 2 planes: use get() and put()");
  return true;
}

}  // namespace tranship
