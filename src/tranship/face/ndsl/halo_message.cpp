#include "tranship/face/ndsl/halo_message.hpp"

#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/tiling.hpp>
#include <tranship/lower/packing.hpp>

namespace tranship::ndsl {

/// Both ends of a message. They do not depend on the strides of the arrays.
struct HaloMessage::Blocks {
  std::vector<PackedBlock> packed, unpacked;
};
struct HaloMessage::Moves {
  Packing pack, unpack;
};

namespace {

void check(const QuantityHaloSpec& spec) {
  const int dims = int(spec.dims.size());
  for (const auto& [name, size] : {std::pair{"strides", spec.strides.size()}, std::pair{"shape", spec.shape.size()},
                                   std::pair{"origin", spec.origin.size()}, std::pair{"extent", spec.extent.size()}})
    if (size != dims)
      throw_error(ErrorCode::invalid_use, "{} has {} for {} [{}]", name, amount(size, "entry", "entries"),
                  amount(dims, "dim"), join_text(spec.dims, ", "));
  if (spec.n_points < 1)
    throw_error(ErrorCode::invalid_use, "cannot perform a halo update on {}; at least 1",
                amount(spec.n_points, "halo point"));
  if (spec.itemsize != size_bytes(spec.dtype))
    throw_error(ErrorCode::invalid_use, "itemsize is {}, but dtype {} has {}", spec.itemsize, name_of(spec.dtype),
                size_bytes(spec.dtype));
  for (int d = 0; d < dims; ++d) {
    if (spec.strides[d] % spec.itemsize != 0)
      throw_error(ErrorCode::invalid_use, "stride {} of dim {} is no multiple of the itemsize {}", spec.strides[d],
                  spec.dims[std::size_t(d)], spec.itemsize);
    if (spec.origin[d] < 0 || spec.extent[d] < 0 || spec.extent[d] > spec.shape[d] - spec.origin[d])
      throw_error(ErrorCode::invalid_use, "dim {}: the compute domain from {} of extent {} leaves the shape {}",
                  spec.dims[std::size_t(d)], spec.origin[d], spec.extent[d], spec.shape[d]);
  }
}

void check(const HaloExchangeSpec& exchange) {
  const QuantityHaloSpec& spec = exchange.specification;
  const int dims = int(spec.dims.size());
  Box domain{spec.origin, spec.origin};
  for (int d = 0; d < dims; ++d) domain.upper[d] += spec.extent[d];
  for (const auto& [name, box] : {std::pair{"pack", &exchange.pack_slices}, {"unpack", &exchange.unpack_slices}}) {
    if (box->lower.size() != dims || box->upper.size() != dims)
      throw_error(ErrorCode::invalid_use, "{} for {}: give one for each",
                  amount(box->lower.size(), fmt::format("{} slice", name)), amount(dims, "dim"));
    for (int d = 0; d < dims; ++d)
      if (box->lower[d] < 0 || box->upper[d] < box->lower[d] || box->upper[d] > spec.shape[d])
        throw_error(ErrorCode::invalid_use, "{} slice [{}, {}) of dim {} leaves its shape {}", name, box->lower[d],
                    box->upper[d], spec.dims[std::size_t(d)], spec.shape[d]);
  }
  const Box& packed = exchange.pack_slices;
  const Box& unpacked = exchange.unpack_slices;
  if (packed.count() != unpacked.count())
    throw_error(ErrorCode::invalid_use,
                "pack slices [{}] have {}, unpack slices [{}] have {}: both must have equally many",
                to_string(packed.extents()), amount(packed.count(), "element"), to_string(unpacked.extents()),
                unpacked.count());
  if (packed.empty()) return;
  for (int d = 0; d < dims; ++d)
    if (packed.lower[d] < domain.lower[d] || packed.upper[d] > domain.upper[d])
      throw_error(ErrorCode::invalid_use,
                  "pack slice [{}, {}) of dim {} leaves the compute domain [{}, {}), as {} of {} do: it would "
                  "send cells of the halo",
                  packed.lower[d], packed.upper[d], spec.dims[std::size_t(d)], domain.lower[d], domain.upper[d],
                  amount(spec.n_points, "point"), spec.extent[d]);
  if (!intersect(unpacked, domain).empty())
    throw_error(ErrorCode::invalid_use, "unpack slices {} overlap the compute domain {}: it would be overwritten",
                to_string(unpacked), to_string(domain));
}

void check_alike(const QuantityHaloSpec& first, const QuantityHaloSpec& other) {
  if (other.dtype != first.dtype)
    throw_error(ErrorCode::unsupported, "the quantities have dtypes {} and {}: a message needs one dtype",
                name_of(first.dtype), name_of(other.dtype));
  if (other.device != first.device)
    throw_error(ErrorCode::unsupported, "the quantities lie on {} and {}: a message needs one device",
                to_string(first.device), to_string(other.device));
}

StridedView layout_of(const QuantityHaloSpec& spec) {
  StridedView out{.type = spec.dtype, .extents = spec.shape, .strides = spec.strides, .device = spec.device};
  for (Index& stride : out.strides) stride /= spec.itemsize;
  return out;
}

void check_count(const char* which, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  const std::string component = which;
  throw_error(ErrorCode::invalid_use, "{} for {}: give one for each",
              amount(given, component + " quantity", component + " quantities"), amount(needed, "exchange"));
}

}  // namespace

HaloMessage::HaloMessage(std::span<const HaloExchangeSpec> x, std::span<const HaloExchangeSpec> y)
    : exchanges_(x.size()) {
  if (x.empty()) throw_error(ErrorCode::invalid_use, "a halo message needs at least 1 exchange");
  if (!y.empty() && y.size() != x.size())
    throw_error(ErrorCode::invalid_use, "{} of x components and {} of y components: both must have equally many",
                amount(x.size(), "exchange"), y.size());
  dtype_ = x[0].specification.dtype;
  Blocks blocks;
  for (auto* const list : {&blocks.packed, &blocks.unpacked}) list->reserve(x.size() + y.size());
  layouts_.reserve(x.size() + y.size());
  const IndexMap as_it_lies = IndexMap::identity(2);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const HaloExchangeSpec* const parts[] = {&x[k], y.empty() ? nullptr : &y[k]};
    const int components = y.empty() ? 1 : 2;
    for (int c = 0; c < components; ++c) {
      check(parts[c]->specification);
      check_alike(x[0].specification, parts[c]->specification);
    }
    const HorizontalDims along = horizontal_dims(x[k].specification);
    if (components == 2) {
      if (parts[0]->specification.dims.size() != parts[1]->specification.dims.size() ||
          horizontal_dims(parts[1]->specification) != along)
        throw_error(ErrorCode::invalid_use,
                    "the components of a vector have dims [{}] and [{}]: their order must be the same",
                    join_text(parts[0]->specification.dims, ", "), join_text(parts[1]->specification.dims, ", "));
      if (floor_modulo(parts[0]->pack_clockwise_rotation, 4) != floor_modulo(parts[1]->pack_clockwise_rotation, 4))
        throw_error(ErrorCode::invalid_use, "the components of a vector turn by {} and {}: both must turn equally",
                    parts[0]->pack_clockwise_rotation, amount(parts[1]->pack_clockwise_rotation, "quarter"));
    }
    for (int c = 0; c < components; ++c) check(*parts[c]);

    // The receiver's frame is the sender's frame after these quarter turns; the map leads from the receiver's to the
    // sender's.
    const IndexMap turn = clockwise_turn(-floor_modulo(x[k].pack_clockwise_rotation, 4));
    const Indices turned{along.j, along.i};
    const int first = int(layouts_.size());
    for (int c = 0; c < components; ++c) {
      layouts_.push_back(layout_of(parts[c]->specification));
      PackedBlock packed;
      if (components == 1) {
        packed = turned_block(first, parts[0]->pack_slices, turn, turned);
      } else {
        // Components are listed x, y, but dimensions of a tile y, x.
        const VectorComponent from = vector_component(turn, 1 - c);
        const int sent = 1 - from.component;
        packed = turned_block(first + sent, parts[sent]->pack_slices, turn, turned);
        if (from.sign < 0) packed.map = ElementMap::negate;
      }
      blocks.packed.push_back(std::move(packed));
      blocks.unpacked.push_back(turned_block(first + c, parts[c]->unpack_slices, as_it_lies, turned));
    }
  }
  blocks_ = std::make_shared<const Blocks>(std::move(blocks));
  moves_ = lowered(layouts_);
  bytes_ = moves_->pack.bytes();
  TRANSHIP_ASSERT(moves_->unpack.bytes() == bytes_);
}

std::shared_ptr<const HaloMessage::Moves> HaloMessage::lowered(const std::vector<StridedView>& layouts) const {
  std::vector<PackedArray> arrays;
  arrays.reserve(layouts.size());
  for (const StridedView& view : layouts) arrays.push_back({view.type, tranship::layout_of(view)});
  return std::make_shared<const Moves>(Moves{Packing(PackDirection::pack, arrays, blocks_->packed),
                                             Packing(PackDirection::unpack, arrays, blocks_->unpacked)});
}

HaloMessage::Bound HaloMessage::bind(std::span<const StridedView> x, std::span<const StridedView> y) {
  check_count("x", x.size(), exchanges_);
  check_count("y", y.size(), is_vector() ? exchanges_ : 0);
  Bound out;
  out.arrays_.reserve(layouts_.size());
  bool lies_so = true;
  const std::size_t components = is_vector() ? 2 : 1;
  for (std::size_t i = 0; i < layouts_.size(); ++i) {
    const StridedView& view = (i % components == 0 ? x : y)[i / components];
    const StridedView& layout = layouts_[i];
    const char* const which = i % components == 0 ? "x" : "y";
    if (view.type != layout.type)
      throw_error(ErrorCode::invalid_use, "{} quantity {} has elements {}, its spec {}", which, i / components,
                  name_of(view.type), name_of(layout.type));
    if (view.extents != layout.extents)
      throw_error(ErrorCode::invalid_use, "{} quantity {} has shape [{}], its spec [{}]", which, i / components,
                  to_string(view.extents), to_string(layout.extents));
    if (view.imaginary != nullptr)
      throw_error(ErrorCode::unsupported, "{} quantity {} has its real and imaginary parts in two planes", which,
                  i / components);
    if (view.device != layout.device)
      throw_error(ErrorCode::invalid_use, "{} quantity {} lies on {}, its spec says {}", which, i / components,
                  to_string(view.device), to_string(layout.device));
    lies_so = lies_so && view.strides == layout.strides;
    out.arrays_.push_back(static_cast<std::byte*>(view.data));
  }
  if (!lies_so) {
    std::vector<StridedView> layouts = layouts_;
    for (std::size_t i = 0; i < layouts.size(); ++i)
      layouts[i].strides = (i % components == 0 ? x : y)[i / components].strides;
    moves_ = lowered(layouts);
    layouts_ = std::move(layouts);
  }
  out.moves_ = moves_;
  return out;
}

Index HaloMessage::Bound::bytes() const noexcept {
  return moves_->pack.bytes();
}

void HaloMessage::Bound::pack(std::byte* message) const {
  moves_->pack.run(arrays_, message);
}

void HaloMessage::Bound::unpack(const std::byte* message) const {
  // Packing::run takes a mutable message for both directions, but unpacking only reads it.
  moves_->unpack.run(arrays_, const_cast<std::byte*>(message));
}

}  // namespace tranship::ndsl
