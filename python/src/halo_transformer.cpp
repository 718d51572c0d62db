// NDSL's messages: the cells that one rank's halo transformer packs for another rank, in memory that Python holds.
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/face/ndsl/halo_message.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

using ndsl::BoundaryDirection;
using ndsl::HaloExchangeSpec;
using ndsl::HaloMessage;
using ndsl::QuantityHaloSpec;

/// Slices without a step, which count from the beginning.
Box box_of(nb::handle slices) {
  Box out;
  if (PySequence_Check(slices.ptr()) == 0) throw nb::type_error("a box is a sequence of slices");
  for (nb::handle item : nb::borrow<nb::sequence>(slices)) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    if (PySlice_Check(item.ptr()) == 0) throw Error(ErrorCode::invalid_use, "a box is a sequence of slices");
    if (PySlice_Unpack(item.ptr(), &start, &stop, &step) != 0) throw nb::python_error();
    if (step != 1) throw_error(ErrorCode::invalid_use, "a slice of step {}; the step of halo slices is 1", step);
    out.lower.push_back(start);
    out.upper.push_back(stop);
  }
  return out;
}

nb::tuple slices_of(const Box& box) {
  nb::list out;
  for (int d = 0; d < box.dims(); ++d)
    out.append(nb::steal(PySlice_New(nb::int_(box.lower[d]).ptr(), nb::int_(box.upper[d]).ptr(), nullptr)));
  return nb::tuple(out);
}

const QuantityHaloSpec& spec_of(nb::handle object) {
  if (!nb::isinstance<QuantityHaloSpec>(object)) throw nb::type_error("an exchange needs a HaloSpec");
  return nb::cast<const QuantityHaloSpec&>(object);
}

BoundaryDirection direction_of(nb::handle pair) {
  std::pair<int, int> ways;
  if (!nb::try_cast(pair, ways)) throw nb::type_error("a direction is a pair of ints (j, i)");
  return {.j = ways.first, .i = ways.second};
}

HaloExchangeSpec exchange_of(nb::handle item) {
  if (!nb::isinstance<nb::tuple>(item)) throw nb::type_error("an exchange is a tuple");
  const auto parts = nb::borrow<nb::tuple>(item);
  if (parts.size() != 4)
    throw_error(ErrorCode::invalid_use, "an exchange of {}; needs (spec, rotation, pack slices, unpack slices)",
                amount(parts.size(), "item"));
  int rotation = 0;
  if (!nb::try_cast(parts[1], rotation)) throw nb::type_error("a rotation is an int");
  return {.specification = spec_of(parts[0]),
          .pack_slices = box_of(parts[2]),
          .pack_clockwise_rotation = rotation,
          .unpack_slices = box_of(parts[3])};
}

std::vector<HaloExchangeSpec> exchanges_of(const nb::sequence& items) {
  std::vector<HaloExchangeSpec> out;
  for (nb::handle item : items) out.push_back(exchange_of(item));
  return out;
}

/// Python arrays and references that keep them alive.
class Arrays {
 public:
  Arrays(const nb::sequence& arrays, const char* which, Access access) {
    for (nb::handle array : arrays) {
      const BufferView& held = *held_.emplace_back(std::make_unique<BufferView>(array, access));
      if (!held.view())
        throw_error(ErrorCode::invalid_use,
                    "{} quantity {} does not show {} memory of numbers whose strides are multiples of their size",
                    which, held_.size() - 1, access == Access::writable ? "writable" : "readable");
      views_.push_back(*held.view());
    }
  }
  const std::vector<StridedView>& views() const noexcept { return views_; }

 private:
  std::vector<std::unique_ptr<BufferView>> held_;
  std::vector<StridedView> views_;
};

/// The contiguous memory of a message and a reference that keeps it alive.
class MessageMemory {
 public:
  MessageMemory(nb::handle object, Access access, Index bytes) {
    const int flags = access == Access::writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) throw nb::python_error();
    if (buffer_.len == bytes) return;
    const Index has = buffer_.len;
    PyBuffer_Release(&buffer_);
    throw_error(ErrorCode::invalid_use, "the buffer has {}, the halo message {}", amount(has, "byte"), bytes);
  }
  ~MessageMemory() { PyBuffer_Release(&buffer_); }
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;
  std::byte* data() const noexcept { return static_cast<std::byte*>(buffer_.buf); }

 private:
  Py_buffer buffer_{};
};

void pack(const HaloMessage::Bound& bound, std::byte* message) {
  without_gil_unless(bound.bytes() <= brief_bytes, [&] { bound.pack(message); });
}
void unpack(const HaloMessage::Bound& bound, const std::byte* message) {
  without_gil_unless(bound.bytes() <= brief_bytes, [&] { bound.unpack(message); });
}

/// A message bound to arrays and buffers.
class BoundHalo {
 public:
  BoundHalo(HaloMessage& message, const nb::sequence& x, const nb::sequence& y, nb::handle pack_buffer,
            nb::handle unpack_buffer)
      : x_(x, "x", unpack_buffer.is_none() ? Access::read_only : Access::writable),
        y_(y, "y", unpack_buffer.is_none() ? Access::read_only : Access::writable),
        bound_(message.bind(x_.views(), y_.views())) {
    if (!pack_buffer.is_none()) pack_.emplace(pack_buffer, Access::writable, message.bytes());
    if (!unpack_buffer.is_none()) unpack_.emplace(unpack_buffer, Access::read_only, message.bytes());
  }
  void pack() const {
    if (!pack_) throw Error(ErrorCode::invalid_use, "no pack_buffer was bound");
    python::pack(bound_, pack_->data());
  }
  void unpack() const {
    if (!unpack_) throw Error(ErrorCode::invalid_use, "no unpack_buffer was bound");
    python::unpack(bound_, unpack_->data());
  }

 private:
  Arrays x_, y_;
  std::optional<MessageMemory> pack_, unpack_;
  HaloMessage::Bound bound_;
};

constexpr const char* transformer_doc =
    "The message of one rank's halo transformer to another rank, in NDSL's wire format.\n"
    "\n"
    "``HaloTransformer(exchanges_x, exchanges_y=())``: exchanges are tuples ``(spec, rotation, pack_slices,\n"
    "unpack_slices)`` of a :class:`HaloSpec`, the number of clockwise quarter turns (any int), and one ``slice`` "
    "without\n"
    "a step per dimension. With `exchanges_y` entry k is the vector of ``exchanges_x[k]`` and ``exchanges_y[k]``.\n"
    "``HaloTransformer.at_boundaries(specs_x, specs_y, boundaries)`` makes the same for every boundary\n"
    "``((j, i), rotation)``, j and i in -1, 0, 1 (north and east are 1), then for every spec, with NDSL's slices.\n"
    "\n"
    "Calls take one array per exchange, in their order (an array may come several times); they are objects of the\n"
    "buffer protocol of the specs' dtype and shape, with any strides. Buffers are contiguous memory of `nbytes` "
    "bytes.\n"
    "Copies of more than 16 KiB run without the interpreter's lock. A call is complete when it returns.\n"
    "\n"
    "Raises InvalidUse (a ValueError): no exchange; lists of different lengths; a spec without one i and one j\n"
    "dimension; slices that leave the array, send cells outside of the compute domain, or receive into it; pack and\n"
    "unpack slices of different sizes; components along different dimensions; turned vectors of bools; at calls "
    "another\n"
    "number of arrays, another dtype, shape or buffer size. Unsupported (a NotImplementedError): several dtypes.\n"
    "Nothing is written then.";

}  // namespace

void bind_halo_transformer(nb::module_& module) {
  nb::class_<QuantityHaloSpec>(module, "HaloSpec",
                               "How a quantity lies in memory: NumPy's type ('f8'), shape, strides in bytes, names of\n"
                               "dims, origin and extent of the compute domain, and the halo points to exchange.")
      .def(
          "__init__",
          [](QuantityHaloSpec* self, const std::string& dtype, const Indices& shape, const Indices& strides,
             const std::vector<std::string>& dims, const Indices& origin, const Indices& extent, Index n_points) {
            const ElementType type = element_type_of_numpy(dtype).value();
            new (self) QuantityHaloSpec{.n_points = n_points,
                                        .strides = strides,
                                        .itemsize = size_bytes(type),
                                        .shape = shape,
                                        .origin = origin,
                                        .extent = extent,
                                        .dims = dims,
                                        .dtype = type};
          },
          "dtype"_a, "shape"_a, "strides"_a, "dims"_a, "origin"_a, "extent"_a, "n_points"_a)
      .def(
          "slices",
          [](const QuantityHaloSpec& self, nb::handle direction) {
            const HaloExchangeSpec exchange = exchange_at(self, direction_of(direction), 0);
            return nb::make_tuple(slices_of(exchange.pack_slices), slices_of(exchange.unpack_slices));
          },
          "direction"_a, "The slices that the boundary in direction (j, i) sends, and those that it receives.");

  nb::class_<BoundHalo>(module, "BoundHalo", "A HaloTransformer bound to arrays and buffers, which it keeps.")
      .def("pack", &BoundHalo::pack, "Writes the bound pack buffer.")
      .def("unpack", &BoundHalo::unpack, "Reads the bound unpack buffer.");

  nb::class_<HaloMessage>(module, "HaloTransformer", transformer_doc)
      .def(
          "__init__",
          [](HaloMessage* self, const nb::sequence& x, const nb::sequence& y) {
            new (self) HaloMessage(exchanges_of(x), exchanges_of(y));
          },
          "exchanges_x"_a, "exchanges_y"_a = nb::tuple())
      .def_static(
          "at_boundaries",
          [](const nb::sequence& specs_x, const nb::sequence& specs_y, const nb::sequence& boundaries) {
            const std::size_t count_x = nb::len(specs_x), count_y = nb::len(specs_y);
            if (count_y != 0 && count_y != count_x)
              throw_error(ErrorCode::invalid_use,
                          "{} of x components and {} of y components: both must have equally many",
                          amount(count_x, "spec"), count_y);
            std::vector<HaloExchangeSpec> x, y;
            x.reserve(count_x * nb::len(boundaries));
            y.reserve(count_y * nb::len(boundaries));
            for (nb::handle boundary : boundaries) {
              std::pair<nb::object, int> parts;
              if (!nb::try_cast(boundary, parts)) throw nb::type_error("a boundary is a pair ((j, i), rotation)");
              const BoundaryDirection direction = direction_of(parts.first);
              const int rotation = parts.second;
              for (nb::handle spec : specs_x) x.push_back(exchange_at(spec_of(spec), direction, rotation));
              for (nb::handle spec : specs_y) y.push_back(exchange_at(spec_of(spec), direction, rotation));
            }
            return HaloMessage(x, y);
          },
          "specs_x"_a, "specs_y"_a, "boundaries"_a)
      .def_prop_ro("nbytes", &HaloMessage::bytes, "Bytes of a message.")
      .def_prop_ro("exchanges", &HaloMessage::exchanges, "Arrays that a call takes, of each component.")
      .def(
          "pack",
          [](HaloMessage& self, nb::handle buffer, const nb::sequence& x, const nb::sequence& y) {
            const Arrays held_x(x, "x", Access::read_only), held_y(y, "y", Access::read_only);
            const HaloMessage::Bound bound = self.bind(held_x.views(), held_y.views());
            const MessageMemory message(buffer, Access::writable, self.bytes());
            python::pack(bound, message.data());
          },
          "buffer"_a, "quantities_x"_a, "quantities_y"_a = nb::tuple(), "Writes the whole buffer.")
      .def(
          "unpack",
          [](HaloMessage& self, nb::handle buffer, const nb::sequence& x, const nb::sequence& y) {
            const Arrays held_x(x, "x", Access::writable), held_y(y, "y", Access::writable);
            const HaloMessage::Bound bound = self.bind(held_x.views(), held_y.views());
            const MessageMemory message(buffer, Access::read_only, self.bytes());
            python::unpack(bound, message.data());
          },
          "buffer"_a, "quantities_x"_a, "quantities_y"_a = nb::tuple(),
          "Writes the cells of all unpack slices, and nothing else.")
      .def(
          "bind",
          [](HaloMessage& self, const nb::sequence& x, const nb::sequence& y, nb::handle pack_buffer,
             nb::handle unpack_buffer) { return std::make_unique<BoundHalo>(self, x, y, pack_buffer, unpack_buffer); },
          "quantities_x"_a, "quantities_y"_a = nb::tuple(), "pack_buffer"_a = nb::none(),
          "unpack_buffer"_a = nb::none(),
          "Binds arrays and buffers for many calls of pack() and unpack() without arguments. Arrays must not be\n"
          "resized while it lives.");
}

}  // namespace tranship::python
