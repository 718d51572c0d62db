// Driver: what one kind of device must offer. A new kind of device implements this and Stream, and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <tranship/memory/stream.hpp>

namespace tranship {

/// One memory. Thread-safe.
class Driver {
 public:
  virtual ~Driver() = default;
  /// The device whose memory this is; of several that share it, the first.
  virtual Device device() const noexcept = 0;
  /// At least 256-byte aligned, contents arbitrary; null when there is no room. `size_bytes` > 0.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void deallocate(void* memory, std::size_t size_bytes) noexcept = 0;
  /// Events of it may not be used after it is destroyed; those of Devices::make_stream may.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Whether a stream of this device may copy from and to the memory of `other`. All reach the host.
  virtual bool reaches(Device other) const noexcept = 0;
  /// Whether host code may load and store in this memory by its address.
  virtual bool is_host_memory() const noexcept = 0;
  /// Why the device does no work any more, and what its memory held is gone; empty while it works.
  virtual std::string loss() const { return {}; }
};

}  // namespace tranship
