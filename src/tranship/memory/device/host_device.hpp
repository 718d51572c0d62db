// Private: the host as a device. Its streams are eager: work is over when it has been given, so their events are the
// default one, and they keep nothing. Fake devices of the timing `eager` are the same.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <tranship/memory/device/driver.hpp>

namespace tranship {

/// What Driver::allocate promises, from the heap; huge pages where that pays. Freed by free_on_host.
void* allocate_on_host(std::size_t size_bytes) noexcept;
void free_on_host(void* memory) noexcept;

/// From so many bytes on, the heap would ask the system for pages of their own, too.
inline constexpr std::size_t fresh_pages_bytes_min = std::size_t(32) << 20;
/// Zeros on pages that come when they are touched, aligned to huge pages; empty where there are none. Costs some calls
/// of the system and no time for the bytes.
std::shared_ptr<void> fresh_pages_on_host(std::size_t size_bytes);
/// The bytes of all such pages that the process has now, touched or not.
std::size_t fresh_bytes_on_host() noexcept;

/// What Stream::copy and Stream::fill do. Blocks need not be canonical.
void copy_on_host(const CopyBlock& block, int width, const void* source, void* target);
/// The elements of a block, one after the other.
std::vector<std::byte> packed_on_host(const CopyBlock& block, int width, const void* source);
void fill_on_host(const CopyBlock& block, int width, const void* element, void* target);
/// Throws `invalid_use`: widths are 1, 2, 4, 8 and 16.
void check_width(int width);

/// Runs a kernel and frees it. It may not throw.
void run_kernel(std::unique_ptr<Kernel> kernel) noexcept;

/// Any number of threads may give work at once.
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
