// Devices that are written in Python: each is one object, which makes arrays and copies between them and the host.
//
// A stream calls the object while a buffer is locked. Therefore no thread waits for a buffer while it has the
// interpreter's lock (with_buffers), and the object must not use buffers itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

#include <tranship/base/device.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/devices.hpp>

#include "interpreter.hpp"
#include "views.hpp"

namespace tranship::python {

class PythonMemory;

/// One device, in the options of a Devices. `calls` is a tranship.pyop3._OwnDevice.
struct PythonDevices {
  static constexpr std::string_view kind = "python";
  PythonDevices(Device d, nanobind::object calls);
  Device device;
  std::shared_ptr<PythonMemory> memory;
};

/// Registers the kind with Devices; call it once.
void register_python_devices();

/// Returns the part of a device's array that a lease of `view` shows; an invalid object when the device is not written
/// in Python.
nanobind::object array_of_python_device(const Devices* devices, const StridedView& view, Access access);

/// Returns true when `device` is written in Python. Null `devices` are those of the process, none of which is.
bool is_python_device(const Devices* devices, Device device);

/// Returns true when this process has such devices: only then can a thread hold a buffer's lock while it waits for the
/// interpreter's.
bool has_python_devices() noexcept;

/// Throws `invalid_use` when this thread runs the code of such a device.
void check_outside_of_devices();
/// Returns true when this thread runs the code of such a device.
bool is_inside_of_device() noexcept;
/// Keeps a lease that is dropped in a device's code until close_what_waits(), and its devices, which must outlive it.
void close_later(std::shared_ptr<Devices> devices, Lease lease);
/// Closes the leases of this thread that close_later() has kept.
void close_what_waits() noexcept;

/// Calls `f()`, which uses buffers; without the interpreter's lock when a thread that uses buffers may wait for it.
template <class F>
auto with_buffers(F&& f) -> std::invoke_result_t<F> {
  if (!has_python_devices()) return f();
  check_outside_of_devices();
  struct Closing {
    ~Closing() { close_what_waits(); }
  } closing;
  return without_gil(f);
}
/// Calls `f()`, which uses buffers and may wait for devices, always without the interpreter's lock.
template <class F>
auto waiting_with_buffers(F&& f) -> std::invoke_result_t<F> {
  if (!has_python_devices()) return without_gil(f);
  return with_buffers(f);
}

void bind_python_devices(nanobind::module_& module);

}  // namespace tranship::python
