// Private: the host as a device. Its streams are eager: work completes inside the call that enqueues it, so every event
// is the default one and streams have no state. Fake devices with FakeTiming::eager work in the same way.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <tranship/memory/device/driver.hpp>

namespace tranship {

/// Allocates from the heap under the contract of Driver::allocate, with huge pages where that pays. Free with
/// free_on_host().
void* allocate_on_host(std::size_t size_bytes) noexcept;
void free_on_host(void* memory) noexcept;

/// From this size on, the heap would also ask the system for separate pages.
inline constexpr std::size_t fresh_pages_bytes_min = std::size_t(32) << 20;
/// Memory of zeros, aligned to huge pages, whose pages the system provides when they are touched; empty where the
/// system refuses. Costs a few system calls, whatever the size.
std::shared_ptr<void> fresh_pages_on_host(std::size_t size_bytes);
/// The bytes of all such memory that the process holds now, touched or not.
std::size_t fresh_bytes_on_host() noexcept;

/// Implements Stream::copy; with fill_on_host for Stream::fill. Blocks need not be canonical.
void copy_on_host(const CopyBlock& block, int width, const void* source, void* target);
/// Returns the elements of a block, packed.
std::vector<std::byte> packed_on_host(const CopyBlock& block, int width, const void* source);
void fill_on_host(const CopyBlock& block, int width, const void* element, void* target);
/// Throws `invalid_use` unless the width is 1, 2, 4, 8 or 16.
void check_width(int width);
/// Throws `invalid_use` for more dimensions than a block has, and for an extent below 0.
void check_extents(const CopyBlock& block);
/// These do what check_extents does, and throw `invalid_use` for null memory of a block that has elements.
void check_target(const CopyBlock& block, const void* target);
void check_memory(const CopyBlock& block, const void* source, const void* target);

/// Throws `invalid_use` for a null pointer.
void check_kernel(const std::unique_ptr<Kernel>& kernel);
/// True while the calling thread runs a kernel, which must not wait.
inline thread_local bool is_in_kernel = false;
/// Runs a kernel and destroys it. The kernel must not throw.
void run_kernel(std::unique_ptr<Kernel> kernel) noexcept;

/// Any number of threads may enqueue work at once.
class EagerStream : public Stream {
 public:
  /// wait() blocks the caller for at most `wait_timeout_ns`.
  EagerStream(Device device, std::int64_t wait_timeout_ns) : device_(device), wait_timeout_ns_(wait_timeout_ns) {}

  Device device() const noexcept override { return device_; }
  Event event() override { return {}; }
  void wait(Event event) override;
  void copy(const CopyBlock& block, int width, const void* source, void* target) override;
  void fill(const CopyBlock& block, int width, const void* element, void* target) override;
  void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) override;
  void run(std::unique_ptr<Kernel> kernel) override;
  bool is_over(std::uint64_t) override { return true; }
  void finish(std::uint64_t, Deadline) override {}

 private:
  Device device_;
  std::int64_t wait_timeout_ns_;
};

class HostDriver final : public Driver {
 public:
  explicit HostDriver(std::int64_t wait_timeout_ns) : wait_timeout_ns_(wait_timeout_ns) {}

  Device device() const noexcept override { return Device::host(); }
  void* allocate(std::size_t size_bytes) override { return allocate_on_host(size_bytes); }
  void deallocate(void* memory, std::size_t) noexcept override { free_on_host(memory); }
  std::unique_ptr<Stream> make_stream() override;
  bool reaches(Device other) const noexcept override { return other.is_host(); }
  bool is_host_memory() const noexcept override { return true; }

 private:
  std::int64_t wait_timeout_ns_;
};

}  // namespace tranship
