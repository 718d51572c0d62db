// Buffers: one array on many devices, copied only when a stale copy is read.
#include <algorithm>

#include <nanobind/nanobind.h>

#include <tranship/base/device.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/ledger.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "leases.hpp"
#include "python_devices.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

constexpr const char* lease_text =
    R"(Access to a buffer in one memory: ``with x.write("fake:0") as a``, where ``a`` is a NumPy array of that memory.

Closing it commits what was written. A block that is left by an exception abandons it: what it would have written has
no value until it is written again, and reading it raises ``InvalidUse``. A lease that is not closed closes when it and
what was made of its ``array`` are collected. ``a`` must not be used after it was closed: it becomes read-only, and
what it shows is this memory's copy, which later writes elsewhere do not change. Views of it stay as they are. While one
is there, the memory is compared at each use of the buffer, which costs reading it: what was written through a view
raises ``InvalidUse`` there.)";

/// A buffer, the devices that it lies on, and the owner of memory that was imported.
struct BufferHandle {
  BufferHandle(DevicesHandle d, Buffer b) : devices(std::move(d)), buffer(std::move(b)) {}
  BufferHandle(BufferHandle&&) = default;
  BufferHandle& operator=(BufferHandle&&) = delete;
  ~BufferHandle() {
    // A thread that waits for the interpreter's lock may hold the buffer's. In a device's code, the buffer's is free.
    if (!is_inside_of_device()) without_gil([&] { const Buffer gone = std::move(buffer); });
  }
  DevicesHandle devices;
  Buffer buffer;
};

}  // namespace

bool LeaseViews::Base::is_written_by_others() {
  if (key % 2 == 1) return false;  // it is read-only
  std::erase_if(handed_out, [](const nb::object& one) { return Py_REFCNT(one.ptr()) == 1; });
  if (Py_REFCNT(array.ptr()) > 1 + Py_ssize_t(handed_out.size())) return true;
  // A variable refers to the array itself, which is read-only by now. Any other reference may have taken its address.
  return std::any_of(handed_out.begin(), handed_out.end(),
                     [](const nb::object& one) { return Py_REFCNT(one.ptr()) > 2; });
}

namespace {

/// Guarded by the interpreter's lock.
bool grants_writes = false;

/// Tells NumPy that memory may be written: NumPy asks before it makes an array writable. Shows no memory.
int grant_writes(PyObject* self, Py_buffer* view, int flags) {
  if (grants_writes && (flags & PyBUF_WRITABLE) != 0) {
    static char nothing[1];
    return PyBuffer_FillInfo(view, self, nothing, 0, 0, flags);
  }
  PyErr_SetString(PyExc_BufferError,
                  "this object keeps memory alive and shows none: use the array that was made of it");
  view->obj = nullptr;
  return -1;
}
PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&grant_writes)}, {0, nullptr}};

void make_writable(const nb::object& array) {
  grants_writes = true;
  try {
    array.attr("setflags")("write"_a = true);
  } catch (...) {
    grants_writes = false;
    throw;
  }
  grants_writes = false;
}

}  // namespace

nb::object LeaseViews::shown_as_elements(const nb::object& base) const {
  if (!dtype_.is_valid()) return base.attr("view")();
  nb::object array = base.attr("view")(dtype_);
  if (!are_structs_) return array;
  if (nb::cast<Py_ssize_t>(array.attr("size")) > 0) return array[nb::make_tuple(nb::ellipsis(), 0)];
  const nb::object extents = array.attr("shape");  // a rank without a part has 0 of everything
  return array.attr("reshape")(extents[nb::slice(nb::int_(0), nb::int_(-1), nb::none())]);
}

nb::object LeaseViews::hand_out(const ShownMemory& shown) {
  const std::uintptr_t key =
      2 * reinterpret_cast<std::uintptr_t>(shown.view.data) + (shown.access == Access::read_only ? 1 : 0);
  auto base = std::find_if(bases_.begin(), bases_.end(), [&](const Base& one) { return one.key == key; });
  if (base == bases_.end()) {
    constexpr std::size_t bases_max = 16;
    if (bases_.size() >= bases_max)
      std::erase_if(bases_, [](Base& one) { return !one.is_written_by_others() && one.handed_out.empty(); });
    bases_.push_back({key, nb::module_::import_("numpy").attr("asarray")(nb::cast(shown)), {}});
    base = bases_.end() - 1;
  }
  nb::object array = shown_as_elements(base->array);
  if (shown.access == Access::writable) {
    make_writable(array);
    base->handed_out.push_back(array);
  }
  return array;
}

bool LeaseViews::outlives(nb::handle base) {
  for (Base& one : bases_)
    if (one.array.is(base)) {
      const bool outlives = one.is_written_by_others();
      were_there_ |= outlives;
      return outlives;
    }
  return false;
}

bool LeaseViews::outlives(nb::object base, nb::object array) {
  Base ended{0, std::move(base), {}};
  ended.handed_out.push_back(std::move(array));
  if (!ended.is_written_by_others()) return false;
  bases_.push_back(std::move(ended));
  return were_there_ = true;
}

bool LeaseViews::outlive(nb::list arrays) {
  nb::object array = arrays[0];
  nb::object base = arrays[1];
  arrays.clear();
  return outlives(std::move(base), std::move(array));
}

bool LeaseViews::are_there() {
  bool any = original_ && original_->are_there();
  if (!any) original_.reset();
  for (Base& base : bases_) any = (base.is_written_by_others()) || any;
  std::erase_if(bases_, [](Base& base) { return base.key == 0 && !base.is_written_by_others(); });
  return any;
}

bool LeaseViews::are_gone() {
  const bool were_there = were_there_ || original_;
  if (!were_there || are_there()) return false;
  were_there_ = false;
  return true;
}

LeaseMemory::~LeaseMemory() {
  if (!lease_ || !has_python_devices()) return;
  if (is_inside_of_device())
    close_later(shown_.devices, std::move(lease_));
  else
    without_gil([&] { lease_ = Lease(); });
}

bool LeaseMemory::is_of_python_device() const {
  return is_python_device(shown_.devices.get(), lease_.device());
}

nb::object LeaseHandle::array() {
  const ShownMemory& shown = memory_->shown();
  if (!array_.is_valid()) array_ = array_of_python_device(shown.devices.get(), shown.view, shown.access);
  if (!array_.is_valid()) {
    base_ = nb::module_::import_("numpy").attr("asarray")(nb::cast(memory_));
    array_ = views_->shown_as_elements(base_);
    if (shown.access == Access::writable) make_writable(array_);
  }
  return array_;
}

nb::object LeaseHandle::enter() {
  const ShownMemory& shown = memory_->shown();
  if (!array_.is_valid()) array_ = array_of_python_device(shown.devices.get(), shown.view, shown.access);
  if (!array_.is_valid()) array_ = views_->hand_out(shown);
  return array_;
}

void LeaseHandle::end(Ending ending) {
  if (!memory_->is_open()) return;
  check_outside_of_devices();
  bool outlives = false;
  if (memory_->is_of_python_device()) {
    // Only NumPy's arrays have this flag. Programs that keep other arrays must not use them.
    if (array_.is_valid() && nb::isinstance(array_, nb::module_::import_("numpy").attr("ndarray")))
      array_.attr("setflags")("write"_a = false);
  } else if (array_.is_valid() && memory_->shown().access == Access::writable) {
    array_.attr("setflags")("write"_a = false);
    if (base_.is_valid()) {
      outlives = views_->outlives(std::move(base_), std::move(array_));
    } else {
      const nb::handle base = array_.attr("base").ptr();  // which `views_` has
      array_.reset();
      outlives = views_->outlives(base);
    }
  }
  base_.reset();
  array_.reset();
  waiting_with_buffers([&] {
    Lease& lease = memory_->lease();
    if (outlives) lease.note_pointers();
    ending == Ending::committed ? lease.close() : lease.abandon();
  });
}

void bind_buffers(nb::module_& module) {
  module.def(
      "device_name", [](const std::string& name) { return to_string(device_named(name)); }, "name"_a,
      "The name of a device as it is always written. Whether there is such a device, its memories know.");
  nb::class_<Devices>(module, "Devices",
                      "The host and the devices of a process, with what has been copied between them.")
      .def(nb::new_([](int fake, std::int64_t capacity_bytes) {
             return std::make_shared<Devices>(
                 DevicesOptions{.kinds = {FakeDevices{.count = fake, .capacity_bytes = capacity_bytes}}});
           }),
           "fake"_a = 0, "capacity_bytes"_a = INT64_MAX)
      .def(
          "add",
          [](Devices& self, const std::string& kind, int ordinal, nb::object calls) {
            self.add(PythonDevices(Device::of(device_kind(kind), ordinal), std::move(calls)));
          },
          "kind"_a, "ordinal"_a, "calls"_a, "Adds a device that is written in Python.")
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

  nb::class_<ShownMemory>(module, "ShownMemory", nb::type_slots(memory_slots))
      .def_prop_ro("__array_interface__",
                   [](const ShownMemory& self) { return array_interface(self.view, Access::read_only); });
  nb::class_<LeaseMemory>(module, "LeaseMemory", nb::type_slots(memory_slots))
      .def_prop_ro("__array_interface__",
                   [](const LeaseMemory& self) { return array_interface(self.shown().view, Access::read_only); });
  nb::class_<LeaseViews>(module, "LeaseViews", "The arrays that leases of one buffer have shown.")
      .def(nb::new_([](nb::object dtype, bool are_structs) {
             return std::make_shared<LeaseViews>(dtype.is_none() ? nb::object() : std::move(dtype), are_structs);
           }),
           "dtype"_a.none(), "are_structs"_a)
      .def("outlive", &LeaseViews::outlive, "arrays"_a)
      .def("of_duplicate", [](const std::shared_ptr<LeaseViews>& self) { return std::make_shared<LeaseViews>(self); });
  nb::class_<LeaseHandle>(module, "Lease", lease_text)
      .def_prop_ro("array", &LeaseHandle::array, nb::sig("def array(self) -> numpy.typing.NDArray[typing.Any]"),
                   "The memory of the lease; of a buffer all of it, of which only the cells of the lease may be used. "
                   "While this array or a view of it is there, the lease stays open.")
      .def(
          "close", [](LeaseHandle& self) { self.end(LeaseHandle::Ending::committed); },
          "Ends the access. Again: nothing happens.")
      .def(
          "abandon", [](LeaseHandle& self) { self.end(LeaseHandle::Ending::abandoned); },
          "Ends it without a commit: what it would have written has no value, on any device, until it is written "
          "again; reading it raises ``InvalidUse``.")
      .def("__enter__", &LeaseHandle::enter, nb::sig("def __enter__(self) -> numpy.typing.NDArray[typing.Any]"))
      .def(
          "__exit__",
          [](LeaseHandle& self, nb::handle type, nb::handle /*error*/, nb::handle /*trace*/) {
            self.end(type.is_none() ? LeaseHandle::Ending::committed : LeaseHandle::Ending::abandoned);
          },
          nb::arg("type").none(), nb::arg("error").none(), nb::arg("trace").none());

  nb::class_<BufferHandle>(module, "BufferMemory")
      .def(
          "__init__",
          [](BufferHandle* self, const DevicesHandle& devices, const Indices& extents, const std::string& type,
             const std::string& name, bool zeros) {
            const BufferOptions options{
                .name = name, .contents = zeros ? Contents::zeros : Contents::undefined, .devices = devices.get()};
            new (self) BufferHandle(
                devices, with_buffers([&] { return Buffer(element_type_of_numpy(type).value(), extents, options); }));
          },
          "devices"_a, "extents"_a, "type"_a, "name"_a, "zeros"_a)
      .def_static(
          "wrap",
          [](const DevicesHandle& devices, std::uintptr_t data, const std::string& type, const Indices& extents,
             const Indices& strides, const nb::object& owner, const std::string& name, bool are_zeros) {
            const StridedView view = view_at(data, type, extents, strides);
            const std::shared_ptr<void> held(owner.inc_ref().ptr(), [](void* object) {
              const nb::gil_scoped_acquire acquire;
              nb::handle(static_cast<PyObject*>(object)).dec_ref();
            });
            const BufferOptions options{.name = name, .devices = devices.get()};
            return BufferHandle(devices, with_buffers([&] {
                                  return are_zeros ? Buffer::import_zeros(view, options, held)
                                                   : Buffer::import(view, options, held);
                                }));
          },
          "devices"_a, "data"_a, "type"_a, "extents"_a, "strides"_a, "owner"_a, "name"_a, "are_zeros"_a)
      .def_prop_ro("extents", [](const BufferHandle& self) { return self.buffer.extents(); })
      .def_prop_ro("numpy_type", [](const BufferHandle& self) { return std::string(numpy_kind(self.buffer.type())); })
      .def_prop_ro("name", [](const BufferHandle& self) { return self.buffer.name(); })
      .def_prop_ro("version",
                   [](const BufferHandle& self) { return with_buffers([&] { return self.buffer.version(); }); })
      .def_prop_ro("is_frozen",
                   [](const BufferHandle& self) { return with_buffers([&] { return self.buffer.is_frozen(); }); })
      .def(
          "open",
          [](BufferHandle& self, const std::string& intent, const std::string& device, const std::string& combine,
             const std::optional<std::vector<std::pair<Indices, Indices>>>& boxes,
             const std::shared_ptr<LeaseViews>& views) {
            const CallSite where = python_call_site();
            const bool are_gone = views->are_gone();
            const Intent how = intent_named(intent);
            const Combine by = combine_named(combine);
            const Device on = device_named(device);
            auto memory = waiting_with_buffers([&] {
              ::tranship::Access access;
              access.device = on;
              if (const auto region = region_of(boxes)) access.region = *region;
              Buffer& buffer = self.buffer;
              Lease lease = how == Intent::read         ? buffer.read(access, where)
                            : how == Intent::write      ? buffer.write(access, where)
                            : how == Intent::read_write ? buffer.read_write(access, where)
                                                        : buffer.accumulate(by, access, where);
              if (are_gone) lease.forget_pointers();
              return std::make_shared<LeaseMemory>(self.devices, std::move(lease));
            });
            return LeaseHandle(std::move(memory), views);
          },
          "intent"_a, "device"_a, "combine"_a, "boxes"_a.none(), "views"_a)
      .def(
          "state",
          [](const BufferHandle& self, const std::string& device) {
            const Device on = device_named(device);
            return with_buffers([&] { return name_of(self.buffer.state(on)); });
          },
          "device"_a)
      .def(
          "explain",
          [](const BufferHandle& self, const std::string& intent, const std::string& device) {
            ::tranship::Access access;
            access.device = device_named(device);
            const Intent how = intent_named(intent);
            const CallSite where = python_call_site();
            return with_buffers([&] { return self.buffer.explain(how, access, where); });
          },
          "intent"_a, "device"_a)
      .def("freeze",
           [](BufferHandle& self) {
             const CallSite where = python_call_site();
             with_buffers([&] { self.buffer.freeze(where); });
           })
      .def("duplicate",
           [](const BufferHandle& self) {
             const CallSite where = python_call_site();
             return BufferHandle(self.devices, with_buffers([&] { return self.buffer.duplicate(where); }));
           })
      .def("duplicate_empty", [](const BufferHandle& self) {
        return BufferHandle(self.devices, with_buffers([&] { return self.buffer.duplicate_empty(); }));
      });
}

}  // namespace tranship::python
