// Devices that are written in Python: each is one object, which makes arrays and copies between them and the host.
//
// A stream calls the object while a buffer is locked. So no thread waits for a buffer while it has the interpreter's
// lock (with_buffers), and the object must not use buffers itself.
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

/// Makes the kind known to Devices. Once.
void register_python_devices();

/// The array that a device has made for a buffer's copy, as a lease of the view shows it; invalid where the device is
/// none that is written in Python.
nanobind::object array_of_python_device(const Devices* devices, const StridedView& view, Access access);

/// No devices are those of the process, none of which is.
bool is_python_device(const Devices* devices, Device device);

/// Whether there are such devices in this process: only then can a buffer's lock be held by who waits for the
/// interpreter's.
bool has_python_devices() noexcept;

/// Throws `invalid_use` in the code of such a device.
void check_outside_of_devices();
/// Whether this thread runs it.
bool is_inside_of_device() noexcept;
/// A lease that goes there is closed when the call that has led there is over. Its devices outlive it.
void close_later(std::shared_ptr<Devices> devices, Lease lease);
/// Closes these.
void close_what_waits() noexcept;

/// Calls `f()`, which uses buffers, without the interpreter's lock where another thread that uses them may wait for it.
template <class F>
auto with_buffers(F&& f) -> std::invoke_result_t<F> {
  if (!has_python_devices()) return f();
  check_outside_of_devices();
  struct Closing {
    ~Closing() { close_what_waits(); }
  } closing;
  return without_gil(f);
}
/// The same of what waits for devices in any case.
template <class F>
auto waiting_with_buffers(F&& f) -> std::invoke_result_t<F> {
  if (!has_python_devices()) return without_gil(f);
  return with_buffers(f);
}

void bind_python_devices(nanobind::module_& module);

}  // namespace tranship::python
