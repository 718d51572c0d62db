// Leases, and the names by which Python opens them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <tranship/base/device.hpp>
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
  return parse_device(name).value();
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

  const ShownMemory& shown() const {
    if (!lease_) throw Error(ErrorCode::invalid_use, "the lease is closed");
    return shown_;
  }
  bool is_open() const { return bool(lease_); }
  void close() noexcept { lease_.close(); }

 private:
  ShownMemory shown_;  // has the devices, which outlive the lease
  Lease lease_;
};

/// A lease as a context: the array that Python uses, until it is closed.
class LeaseHandle {
 public:
  /// `views` has the arrays that were made of this buffer's memories before, by their addresses.
  LeaseHandle(std::shared_ptr<LeaseMemory> memory, nanobind::dict views);

  /// Keeps the lease open.
  nanobind::object array();
  /// Sooner there, and for a block that closes the lease: does not keep it open.
  nanobind::object enter();
  void close();

 private:
  std::shared_ptr<LeaseMemory> memory_;
  nanobind::dict views_;
  nanobind::object array_;
};

}  // namespace tranship::python
