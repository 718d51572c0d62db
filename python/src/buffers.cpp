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

/// A buffer, the devices that it lies on, and the owner of memory that was imported.
struct BufferHandle {
  DevicesHandle devices;
  Buffer buffer;
};

}  // namespace

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

  nb::class_<LeaseHandle>(module, "LeaseMemory")
      .def_prop_ro("__array_interface__",
                   [](const LeaseHandle& self) { return array_interface(self.view(), self.access()); })
      .def_prop_ro(
          "key",
          [](const LeaseHandle& self) {
            return 2 * reinterpret_cast<std::uintptr_t>(self.view().data) +
                   (self.access() == Access::read_only ? 1 : 0);
          },
          "The same for leases that show the same memory in the same way.")
      .def_prop_ro("is_open", &LeaseHandle::is_open)
      .def("close", [](LeaseHandle& self) { without_gil([&] { self.close(); }); });

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
             const std::optional<std::vector<std::pair<Indices, Indices>>>& boxes) {
            const CallSite where = python_call_site();
            const Intent how = intent_named(intent);
            const Combine by = combine_named(combine);
            const Device on = device_named(device);
            return without_gil([&] {
              ::tranship::Access access;
              access.device = on;
              if (const auto region = region_of(boxes)) access.region = *region;
              Buffer& buffer = self.buffer;
              Lease lease = how == Intent::read         ? buffer.read(access, where)
                            : how == Intent::write      ? buffer.write(access, where)
                            : how == Intent::read_write ? buffer.read_write(access, where)
                                                        : buffer.accumulate(by, access, where);
              return LeaseHandle(self.devices, std::move(lease));
            });
          },
          "intent"_a, "device"_a, "combine"_a, "boxes"_a = nb::none())
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
