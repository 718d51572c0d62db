// Buffers: one array on many devices, copied only when a stale copy is read.
#include <nanobind/nanobind.h>

#include <tranship/base/device.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/ledger.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "leases.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

constexpr const char* lease_text =
    R"(Access to a buffer in one memory: ``with x.write("fake:0") as a``, where ``a`` is a NumPy array of that memory.

Closing it commits what was written. A lease that is not closed closes when it and what was made of its ``array`` are
collected. ``a`` must not be used after it was closed: it becomes read-only, and what it shows is
this memory's copy, which later writes elsewhere do not change.)";

/// A buffer, the devices that it lies on, and the owner of memory that was imported.
struct BufferHandle {
  DevicesHandle devices;
  Buffer buffer;
};

}  // namespace

LeaseHandle::LeaseHandle(std::shared_ptr<LeaseMemory> memory, nb::dict views)
    : memory_(std::move(memory)), views_(std::move(views)) {}

nb::object LeaseHandle::array() {
  memory_->shown();
  if (!array_.is_valid()) array_ = nb::module_::import_("numpy").attr("asarray")(nb::cast(memory_));
  return array_;
}

nb::object LeaseHandle::enter() {
  const ShownMemory& shown = memory_->shown();
  if (array_.is_valid()) return array_;
  // One lease after another shows the same memory: a view of the first one's array is made in a tenth of the time.
  const nb::int_ key(2 * reinterpret_cast<std::uintptr_t>(shown.view.data) +
                     (shown.access == Access::read_only ? 1 : 0));
  nb::object whole = nb::borrow(PyDict_GetItem(views_.ptr(), key.ptr()));
  if (!whole.is_valid()) {
    constexpr std::size_t views_max = 16;
    if (views_.size() >= views_max) views_.clear();
    whole = nb::module_::import_("numpy").attr("asarray")(nb::cast(shown));
    views_[key] = whole;
  }
  array_ = whole.attr("view")();
  return array_;
}

void LeaseHandle::close() {
  if (!memory_->is_open()) return;
  if (array_.is_valid() && memory_->shown().access == Access::writable) array_.attr("setflags")("write"_a = false);
  without_gil([&] { memory_->close(); });
}

void bind_buffers(nb::module_& module) {
  module.def(
      "device_name", [](const std::string& name) { return to_string(device_named(name)); }, "name"_a,
      "The name of a device as it is always written. Whether there is such a device, its memories know.");
  nb::class_<Devices>(module, "Devices",
                      "The host and the devices of a process, with what has been copied between them.")
      .def(
          nb::new_([](int fake, std::int64_t capacity_bytes) {
            return std::make_shared<Devices>(DevicesOptions{.fake = {.count = fake, .capacity_bytes = capacity_bytes}});
          }),
          "fake"_a = 0, "capacity_bytes"_a = INT64_MAX)
      .def("names",
           [](const Devices& self) {
             std::vector<std::string> out;
             for (const Device device : self.list()) out.push_back(to_string(device));
             return out;
           })
      .def(
          "copies",
          [](const Devices& self) {
            nb::list out;
            for (const CopyRecord& record : self.ledger().records()) {
              nb::dict one;
              one["buffer"] = record.buffer;
              one["source"] = to_string(record.source);
              one["target"] = to_string(record.target);
              one["bytes"] = record.bytes;
              one["cause"] = name_of(record.cause);
              one["route"] = name_of(record.route);
              one["seconds"] = double(record.end_ns - record.begin_ns) * 1e-9;
              one["text"] = to_string(record);
              out.append(one);
            }
            return out;
          },
          "Every copy that was made, and why.")
      .def("copied", [](const Devices& self) {
        const auto sums = self.ledger().sums();
        return std::pair(sums.copies, sums.bytes);
      });

  nb::class_<ShownMemory>(module, "ShownMemory").def_prop_ro("__array_interface__", [](const ShownMemory& self) {
    return array_interface(self.view, self.access);
  });
  nb::class_<LeaseMemory>(module, "LeaseMemory").def_prop_ro("__array_interface__", [](const LeaseMemory& self) {
    return array_interface(self.shown().view, self.shown().access);
  });
  nb::class_<LeaseHandle>(module, "Lease", lease_text)
      .def_prop_ro("array", &LeaseHandle::array, nb::sig("def array(self) -> numpy.typing.NDArray[typing.Any]"),
                   "The memory of the lease; of a buffer all of it, of which only the cells of the lease may be used. "
                   "While this array or a view of it is there, the lease stays open.")
      .def("close", &LeaseHandle::close, "Ends the access. Again: nothing happens.")
      .def("__enter__", &LeaseHandle::enter, nb::sig("def __enter__(self) -> numpy.typing.NDArray[typing.Any]"))
      .def(
          "__exit__",
          [](LeaseHandle& self, nb::handle /*type*/, nb::handle /*error*/, nb::handle /*trace*/) { self.close(); },
          nb::arg("type").none(), nb::arg("error").none(), nb::arg("trace").none());

  nb::class_<BufferHandle>(module, "BufferMemory")
      .def(
          "__init__",
          [](BufferHandle* self, const DevicesHandle& devices, const Indices& extents, const std::string& type,
             const std::string& name, bool zeros) {
            const BufferOptions options{
                .name = name, .contents = zeros ? Contents::zeros : Contents::undefined, .devices = devices.get()};
            new (self) BufferHandle{devices, Buffer(element_type_of_numpy(type).value(), extents, options)};
          },
          "devices"_a, "extents"_a, "type"_a, "name"_a, "zeros"_a)
      .def_static(
          "wrap",
          [](const DevicesHandle& devices, std::uintptr_t data, const std::string& type, const Indices& extents,
             const Indices& strides, const nb::object& owner, const std::string& name) {
            const StridedView view = view_at(data, type, extents, strides);
            const std::shared_ptr<void> held(owner.inc_ref().ptr(), [](void* object) {
              const nb::gil_scoped_acquire acquire;
              nb::handle(static_cast<PyObject*>(object)).dec_ref();
            });
            return BufferHandle{devices, Buffer::import(view, {.name = name, .devices = devices.get()}, held)};
          },
          "devices"_a, "data"_a, "type"_a, "extents"_a, "strides"_a, "owner"_a, "name"_a)
      .def_prop_ro("extents", [](const BufferHandle& self) { return self.buffer.extents(); })
      .def_prop_ro("numpy_type", [](const BufferHandle& self) { return std::string(numpy_kind(self.buffer.type())); })
      .def_prop_ro("name", [](const BufferHandle& self) { return self.buffer.name(); })
      .def_prop_ro("version", [](const BufferHandle& self) { return self.buffer.version(); })
      .def_prop_ro("is_frozen", [](const BufferHandle& self) { return self.buffer.is_frozen(); })
      .def(
          "open",
          [](BufferHandle& self, const std::string& intent, const std::string& device, const std::string& combine,
             const std::optional<std::vector<std::pair<Indices, Indices>>>& boxes, nb::dict views) {
            const CallSite where = python_call_site();
            const Intent how = intent_named(intent);
            const Combine by = combine_named(combine);
            const Device on = device_named(device);
            auto memory = without_gil([&] {
              ::tranship::Access access;
              access.device = on;
              if (const auto region = region_of(boxes)) access.region = *region;
              Buffer& buffer = self.buffer;
              Lease lease = how == Intent::read         ? buffer.read(access, where)
                            : how == Intent::write      ? buffer.write(access, where)
                            : how == Intent::read_write ? buffer.read_write(access, where)
                                                        : buffer.accumulate(by, access, where);
              return std::make_shared<LeaseMemory>(self.devices, std::move(lease));
            });
            return LeaseHandle(std::move(memory), std::move(views));
          },
          "intent"_a, "device"_a, "combine"_a, "boxes"_a.none(), "views"_a,
          "`views` keeps the arrays of its leases' memories, by address.")
      .def(
          "state",
          [](const BufferHandle& self, const std::string& device) {
            return name_of(self.buffer.state(device_named(device)));
          },
          "device"_a)
      .def(
          "explain",
          [](const BufferHandle& self, const std::string& intent, const std::string& device) {
            ::tranship::Access access;
            access.device = device_named(device);
            return self.buffer.explain(intent_named(intent), access, python_call_site());
          },
          "intent"_a, "device"_a)
      .def("freeze", [](BufferHandle& self) { self.buffer.freeze(python_call_site()); })
      .def("duplicate",
           [](const BufferHandle& self) {
             return BufferHandle{self.devices, self.buffer.duplicate(python_call_site())};
           })
      .def("duplicate_empty", [](const BufferHandle& self) {
        return BufferHandle{self.devices, self.buffer.duplicate_empty()};
      });
}

}  // namespace tranship::python
