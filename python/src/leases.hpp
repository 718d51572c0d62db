// Leases, and the names by which Python opens them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <tranship/base/device.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/device/devices.hpp>

#include "casters.hpp"
#include "views.hpp"

namespace tranship::python {

using DevicesHandle = std::shared_ptr<Devices>;

inline Intent intent_named(const std::string& name) {
  if (name == "read") return Intent::read;
  if (name == "write") return Intent::write;
  if (name == "read_write") return Intent::read_write;
  if (name == "accumulate") return Intent::accumulate;
  throw Error(ErrorCode::invalid_use, "intent '" + name + "': needs 'read', 'write', 'read_write' or 'accumulate'");
}
inline Combine combine_named(const std::string& name) {
  if (name == "sum") return Combine::sum;
  if (name == "min") return Combine::minimum;
  if (name == "max") return Combine::maximum;
  if (name == "product") return Combine::product;
  throw Error(ErrorCode::invalid_use, "combine '" + name + "': needs 'sum', 'product', 'min' or 'max'");
}
inline Device device_named(const std::string& name) {
  const Result<Device> device = parse_device(name);
  if (device) return device.value();
  throw Error(ErrorCode::invalid_use,
              "device '" + printable(name) + "': needs 'host', or a kind and a number: 'fake:0', 'cuda:0'");
}

inline std::optional<Region> region_of(const std::optional<std::vector<std::pair<Indices, Indices>>>& boxes) {
  if (!boxes) return {};
  std::vector<Box> list;
  for (const auto& [lower, upper] : *boxes) list.push_back({lower, upper});
  return Region::boxes(list);
}

/// Memory that leases show, independent of the lease that is open: views of it are made from this.
struct ShownMemory {
  std::shared_ptr<Devices> devices;
  StridedView view;
  Access access;
};

/// An open lease, closed with the last array of its memory: work of the device on it is over when a call returns.
class LeaseMemory {
 public:
  LeaseMemory(std::shared_ptr<Devices> devices, Lease lease)
      : shown_{std::move(devices), lease.view(), lease.intent() == Intent::read ? Access::read_only : Access::writable},
        lease_(std::move(lease)) {
    if (const Event event = lease_.stream().event(); !is_over(event)) finish(event, Deadline::after_seconds(60));
  }
  /// An open lease is closed as LeaseHandle::end closes it, for it may go with its last reference.
  ~LeaseMemory();
  LeaseMemory(const LeaseMemory&) = delete;
  LeaseMemory& operator=(const LeaseMemory&) = delete;

  const ShownMemory& shown() const {
    if (!lease_) throw Error(ErrorCode::invalid_use, "the lease is closed");
    return shown_;
  }
  bool is_open() const { return bool(lease_); }
  bool is_of_python_device() const;
  Lease& lease() { return lease_; }

 private:
  ShownMemory shown_;  // has the devices, which outlive the lease
  Lease lease_;
};

/// The arrays that leases of one buffer have shown. NumPy makes a view of an array a view of the array's base, so each
/// array that is handed out is a view of a base that only this object knows, and any other reference to the base comes
/// from a view. An array becomes read-only when its lease ends, but its views do not. NumPy makes an array writable
/// when its base is writable, or when the memory below allows it. Bases are read-only, and the memory allows it for
/// hand_out() and array() alone, so a program cannot make a read-only array writable again.
class LeaseViews {
 public:
  /// `dtype` is the type of the elements when NumPy must be told. With `are_structs`, the last dimension of the memory
  /// holds the inside of each element.
  LeaseViews(nanobind::object dtype, bool are_structs) : dtype_(std::move(dtype)), are_structs_(are_structs) {}
  /// The arrays of a duplicate, which shares memory with the buffer that it was made of.
  explicit LeaseViews(std::shared_ptr<LeaseViews> original)
      : dtype_(original->dtype_), are_structs_(original->are_structs_), original_(std::move(original)) {}

  /// Returns a new view of a base.
  nanobind::object shown_as_elements(const nanobind::object& base) const;
  /// Returns an array of the memory. When a lease has shown the same memory before, this makes a view of that lease's
  /// array, in a tenth of the time.
  nanobind::object hand_out(const ShownMemory& shown);
  /// Returns true when memory of the base can still be written through views of the arrays that were handed out. The
  /// caller must have no reference to an array any more.
  bool outlives(nanobind::handle base);
  /// Takes an array with a base of its own, whose lease has ended. Returns true as outlives(base) does.
  bool outlives(nanobind::object base, nanobind::object array);
  /// Takes an array and its base, of which `arrays` has the caller's last references, and leaves the list empty.
  /// Returns true as outlives(base) does.
  bool outlive(nanobind::list arrays);
  /// Returns true when arrays outlived their leases at the last call, and all of them are gone now.
  bool are_gone();

 private:
  struct Base {
    std::uintptr_t key;  ///< of its memory and access; 0: no lease shows it again
    nanobind::object array;
    std::vector<nanobind::object> handed_out;
    bool is_written_by_others();
  };
  bool are_there();

  nanobind::object dtype_;
  bool are_structs_;
  std::vector<Base> bases_;
  bool were_there_ = false;
  std::shared_ptr<LeaseViews> original_;
};

/// A lease as a context: the array that Python uses, until it is closed.
class LeaseHandle {
 public:
  LeaseHandle(std::shared_ptr<LeaseMemory> memory, std::shared_ptr<LeaseViews> views)
      : memory_(std::move(memory)), views_(std::move(views)) {}

  /// Keeps the lease open.
  nanobind::object array();
  /// Faster than array(), for a `with` block that closes the lease: the array does not keep the lease open.
  nanobind::object enter();
  enum class Ending : bool { committed, abandoned };
  void end(Ending ending);

 private:
  std::shared_ptr<LeaseMemory> memory_;
  std::shared_ptr<LeaseViews> views_;
  nanobind::object base_;  // of an array that keeps the lease open
  nanobind::object array_;
};

}  // namespace tranship::python
