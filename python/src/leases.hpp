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

/// An open lease, as memory that NumPy can view: work of the device on it is over when a call returns.
class LeaseMemory {
 public:
  LeaseMemory(std::shared_ptr<Devices> devices, Lease lease)
      : devices_(std::move(devices)), lease_(std::move(lease)), view_(lease_.view()), intent_(lease_.intent()) {
    if (const Event event = lease_.stream().event(); !is_over(event)) finish(event, Deadline::after_seconds(60));
  }

  const StridedView& view() const {
    if (!lease_) throw Error(ErrorCode::invalid_use, "the lease is closed");
    return view_;
  }
  Access access() const { return intent_ == Intent::read ? Access::read_only : Access::writable; }
  bool is_open() const { return bool(lease_); }
  void close() noexcept { lease_.close(); }

 private:
  std::shared_ptr<Devices> devices_;
  Lease lease_;
  StridedView view_;
  Intent intent_;
};

/// A lease as a context: the array that Python uses, until it is closed.
class LeaseHandle {
 public:
  /// `views` has the arrays that were made of this buffer's memories before, by their addresses.
  LeaseHandle(std::shared_ptr<LeaseMemory> memory, nanobind::dict views);

  nanobind::object array() const;
  void close();

 private:
  std::shared_ptr<LeaseMemory> memory_;
  nanobind::object array_;
  bool is_written_ = false;
};

}  // namespace tranship::python
