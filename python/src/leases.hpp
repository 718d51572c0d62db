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

/// Memory that leases show, whichever of them is open: what views of it are made of.
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

/// The arrays that leases of one buffer have shown. NumPy makes the views of an array views of its base, so each array
/// that is handed out is a view of a base that only this knows, and who else refers to the base is a view. An array
/// becomes read-only when its lease ends, but its views do not. NumPy makes an array writable where its base is, or
/// where the memory below says so. Bases are read-only, and the memory says so to hand_out() and array() alone: an
/// array that is read-only stays so.
class LeaseViews {
 public:
  /// `dtype` is that of the elements where NumPy must be told; those of structs are the insides of the memory's last
  /// dimension.
  LeaseViews(nanobind::object dtype, bool are_structs) : dtype_(std::move(dtype)), are_structs_(are_structs) {}
  /// Of a duplicate, which shares memory with the buffer that it was made of.
  explicit LeaseViews(std::shared_ptr<LeaseViews> original)
      : dtype_(original->dtype_), are_structs_(original->are_structs_), original_(std::move(original)) {}

  /// A new view of a base.
  nanobind::object shown_as_elements(const nanobind::object& base) const;
  /// One lease after another shows the same memory: a view of the first one's array is made in a tenth of the time.
  nanobind::object hand_out(const ShownMemory& shown);
  /// Returns whether memory of the base can still be written through what was made of these arrays. The caller has no
  /// reference to the array any more.
  bool outlives(nanobind::handle base);
  /// An array with a base of its own, whose lease has ended. Returns the same.
  bool outlives(nanobind::object base, nanobind::object array);
  /// An array and its base, of which `arrays` has the last references of the caller. Returns the same, and leaves the
  /// list empty.
  bool outlive(nanobind::list arrays);
  /// Returns whether what outlived its lease is gone, and was there when this was last asked.
  bool are_gone();

 private:
  struct Base {
    std::uintptr_t key;  ///< of its memory and access; 0: not to be shown again
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
  /// Sooner there, and for a block that closes the lease: does not keep it open.
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
