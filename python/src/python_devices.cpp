#include "python_devices.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <sys/mman.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/strided_copy.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/host_device.hpp>

#include "casters.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

std::atomic<bool> any_devices = false;
thread_local int calls_of_thread = 0;

struct WaitingLease {
  std::shared_ptr<Devices> devices;
  Lease lease;
};
thread_local std::vector<WaitingLease> leases_to_close;

/// Python references that were dropped without the interpreter's lock, and wait for a thread that has it.
class Dropped {
 public:
  static Dropped& all() {
    static auto& dropped = *new Dropped;
    return dropped;
  }
  void add(nb::object object) {
    {
      const std::lock_guard lock(mutex_);
      objects_.push_back(object.release().ptr());
    }
    // When Python has no room for a pending call, the next call of a device releases the objects.
    Py_AddPendingCall([](void*) { return all().release(), 0; }, nullptr);
  }
  /// Call it with the interpreter's lock.
  void release() {
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(mutex_);
      objects.swap(objects_);
    }
    for (PyObject* const object : objects) Py_DECREF(object);
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> objects_;
};

/// Memory of the host in the form that NumPy takes.
struct HostCells {
  StridedView view;
  Access access;
};

}  // namespace

/// The arrays that a device's object has made. They have no addresses that C++ may use, so each gets a range of
/// reserved addresses that cannot be accessed.
class PythonMemory {
 public:
  struct Entry {
    std::uintptr_t first = 0;
    std::size_t reserved_bytes = 0;
    ElementType type{};
    Index count = 0;
    nb::object array;
    int item() const { return size_bytes(type); }
  };

  PythonMemory(Device device, nb::object calls) : device_(device), calls_(std::move(calls)) {}
  ~PythonMemory() {
    for (auto& [first, entry] : entries_) Dropped::all().add(std::move(entry.array));
    Dropped::all().add(std::move(calls_));
  }
  PythonMemory(const PythonMemory&) = delete;
  PythonMemory& operator=(const PythonMemory&) = delete;

  Device device() const noexcept { return device_; }

  /// Calls `f` with the device's object and the interpreter's lock, and marks the thread as inside of a device's code.
  template <class F>
  auto call(F f) {
    const nb::gil_scoped_acquire gil;
    Dropped::all().release();
    struct Call {
      Call() { ++calls_of_thread; }
      ~Call() { --calls_of_thread; }
    } const inside;
    return f(calls_);
  }

  /// Makes an array and returns its first reserved address. Throws `no_memory`, or the exception of the device.
  void* make(ElementType type, Index count) {
    const auto page = std::size_t(4096);
    const std::size_t bytes = std::size_t(std::max<Index>(count, 1)) * std::size_t(size_bytes(type));
    const std::size_t reserved = (bytes + page - 1) / page * page;
    nb::object array = call([&](const nb::object& calls) {
      try {
        return nb::object(calls.attr("allocate")(count, std::string(numpy_kind(type))));
      } catch (nb::python_error& error) {
        if (!error.matches(PyExc_MemoryError)) throw;
        throw_error(ErrorCode::no_memory, "no room on {} for {} of {}: {}", to_string(device_),
                    amount(count, "element"), amount(size_bytes(type), "byte"), error_of(error).message());
      }
    });
    void* const first = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (first == MAP_FAILED) {
      Dropped::all().add(std::move(array));
      throw_error(ErrorCode::no_memory, "no addresses are left for {} of {}", amount(Index(bytes), "byte"),
                  to_string(device_));
    }
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    const std::lock_guard lock(mutex_);
    entries_[at] = {at, reserved, type, count, std::move(array)};
    return first;
  }
  void drop(void* first) noexcept {
    Entry gone;
    {
      const std::lock_guard lock(mutex_);
      const auto at = entries_.find(reinterpret_cast<std::uintptr_t>(first));
      gone = std::move(at->second);
      entries_.erase(at);
    }
    ::munmap(first, gone.reserved_bytes);
    Dropped::all().add(std::move(gone.array));
  }
  /// Returns the entry of the array that has `address`, null for memory of the host. Valid until the array is dropped.
  const Entry* find(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    auto next = entries_.upper_bound(at);
    if (next == entries_.begin()) return nullptr;
    const Entry& entry = (--next)->second;
    return at - entry.first < entry.reserved_bytes ? &entry : nullptr;
  }

 private:
  Device device_;
  nb::object calls_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Entry> entries_;
};

namespace {

/// A nest of loops over whole elements of a device's array and of the host's memory.
struct Loops {
  struct Loop {
    Index extent, device_stride, host_stride;  // strides in bytes
  };
  std::vector<Loop> all;
};

enum class Way : bool { to_device, to_host };

/// The loops of a block whose elements have `width` bytes, over elements of `item` bytes.
Loops loops_of(const CopyBlock& block, int width, int item, Way way) {
  Loops out;
  const auto add = [&](Index extent, Index device, Index host) {
    if (extent == 1) return;
    if (!out.all.empty()) {
      Loops::Loop& last = out.all.back();
      if (last.device_stride == device * extent && last.host_stride == host * extent) {
        last = {last.extent * extent, device, host};
        return;
      }
    }
    out.all.push_back({extent, device, host});
  };
  for (int d = 0; d < block.dims; ++d)
    way == Way::to_device ? add(block.extents[d], block.target_strides[d], block.source_strides[d])
                          : add(block.extents[d], block.source_strides[d], block.target_strides[d]);
  if (width > item) add(width / item, item, item);
  if (width < item) {  // parts of elements, which lie together
    TRANSHIP_ASSERT(!out.all.empty() && out.all.back().device_stride == width && out.all.back().host_stride == width);
    Loops::Loop part = out.all.back();
    out.all.pop_back();
    add(part.extent * width / item, item, item);
  }
  return out;
}

class PythonStream final : public EagerStream {
 public:
  PythonStream(std::shared_ptr<PythonMemory> memory, std::int64_t wait_timeout_ns)
      : EagerStream(memory->device(), wait_timeout_ns), memory_(std::move(memory)) {}

  void copy(const CopyBlock& block, int width, const void* source, void* target) override {
    check_width(width);
    move(block, width, source, target);
  }
  void fill(const CopyBlock& block, int width, const void* element, void* target) override {
    check_width(width);
    if (!memory_->find(target)) return EagerStream::fill(block, width, element, target);
    std::vector<std::byte> cells(bytes_of(block, width));
    CopyBlock dense = with_dense_target(block, width);
    fill_on_host(dense, width, element, cells.data());
    move(with_dense_source(block, width), width, cells.data(), target);
  }
  void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) override {
    detail::check_combination(how, type);
    const int width = size_bytes(type);
    std::vector<std::byte> from(bytes_of(block, width)), to(bytes_of(block, width));
    move(with_dense_target(block, width), width, source, from.data());
    move(with_dense_target(of_target(block), width), width, target, to.data());
    detail::combine_block(how, type, row_of(element_count(block), width), from.data(), to.data());
    move(with_dense_source(block, width), width, to.data(), target);
  }
  void run(std::unique_ptr<Kernel>) override {
    throw_error(ErrorCode::unsupported, "{} is written in Python: its streams run no functions of the host",
                to_string(device()));
  }

 private:
  static std::size_t bytes_of(const CopyBlock& block, int width) {
    return std::size_t(element_count(block)) * std::size_t(width);
  }
  /// Returns a block that reads the cells which `block` writes.
  static CopyBlock of_target(CopyBlock block) {
    std::copy_n(block.target_strides, block.dims, block.source_strides);
    return block;
  }

  /// Copies elements of any width.
  void move(const CopyBlock& block, int width, const void* source, void* target) {
    if (element_count(block) == 0) return;
    const PythonMemory::Entry* const from = memory_->find(source);
    const PythonMemory::Entry* const to = memory_->find(target);
    if (from && to) {
      std::vector<std::byte> between(bytes_of(block, width));
      move(with_dense_target(block, width), width, source, between.data());
      return move(with_dense_source(block, width), width, between.data(), target);
    }
    if (from) return transfer(*from, block, width, source, target, Way::to_host);
    if (to) return transfer(*to, block, width, target, const_cast<void*>(source), Way::to_device);
    CopyBlock bytes = block;
    bytes.extents[bytes.dims] = width;
    bytes.source_strides[bytes.dims] = bytes.target_strides[bytes.dims] = 1;
    ++bytes.dims;
    copy_on_host(bytes, 1, source, target);
  }

  void transfer(const PythonMemory::Entry& entry, const CopyBlock& block, int width, const void* on_device, void* host,
                Way way) {
    Loops loops = loops_of(block, width, entry.item(), way);
    if (loops.all.empty()) loops.all.push_back({1, entry.item(), entry.item()});
    const Loops::Loop inner = loops.all.back();
    loops.all.pop_back();
    const Index first = Index(reinterpret_cast<std::uintptr_t>(on_device) - entry.first);
    memory_->call([&](const nb::object& calls) {
      const nb::object function = calls.attr(way == Way::to_device ? "copy_in" : "copy_out");
      transfer_all(loops.all, 0, first, static_cast<std::byte*>(host),
                   [&](Index at, std::byte* cells) { transfer_row(entry, inner, at, cells, way, function); });
    });
  }
  template <class F>
  static void transfer_all(const std::vector<Loops::Loop>& loops, std::size_t depth, Index at, std::byte* cells,
                           const F& f) {
    if (depth == loops.size()) return f(at, cells);
    for (Index i = 0; i < loops[depth].extent; ++i)
      transfer_all(loops, depth + 1, at + i * loops[depth].device_stride, cells + i * loops[depth].host_stride, f);
  }
  void transfer_row(const PythonMemory::Entry& entry, Loops::Loop row, Index at, std::byte* cells, Way way,
                    const nb::object& function) const {
    if (row.device_stride < 0) {
      at += (row.extent - 1) * row.device_stride;
      cells += (row.extent - 1) * row.host_stride;
      row.device_stride = -row.device_stride;
      row.host_stride = -row.host_stride;
    }
    const int item = entry.item();
    const StridedView view{
        .data = cells, .type = entry.type, .extents = {row.extent}, .strides = {row.host_stride / item}};
    nb::object host = nb::module_::import_("numpy").attr("asarray")(
        nb::cast(HostCells{view, way == Way::to_device ? Access::read_only : Access::writable}));
    const Index start = at / item, step = std::max<Index>(row.device_stride / item, 1);
    function(entry.array, nb::slice(nb::int_(start), nb::int_(start + (row.extent - 1) * step + 1), nb::int_(step)),
             host);
    // The memory belongs to the buffer, which may release or change it afterwards.
    if (Py_REFCNT(host.ptr()) > 1)
      throw_error(ErrorCode::invalid_use, "device '{}' has kept the array of the host that {} was given",
                  to_string(device()), way == Way::to_device ? "copy_from_host" : "copy_to_host");
  }

  std::shared_ptr<PythonMemory> memory_;
};

class PythonDriver final : public Driver {
 public:
  PythonDriver(std::shared_ptr<PythonMemory> memory, std::int64_t wait_timeout_ns)
      : memory_(std::move(memory)), wait_timeout_ns_(wait_timeout_ns) {}

  Device device() const noexcept override { return memory_->device(); }
  /// Memory for other uses than a copy of a buffer is an array of bytes.
  void* allocate(std::size_t size_bytes) override { return memory_->make(ElementType::u8, Index(size_bytes)); }
  void deallocate(void* memory, std::size_t) noexcept override { memory_->drop(memory); }
  std::optional<DeviceArray> make_array(ElementType type, Index count) override {
    void* const first = memory_->make(type, count);
    return DeviceArray{first, {first, [memory = memory_](void* gone) { memory->drop(gone); }}};
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<PythonStream>(memory_, wait_timeout_ns_); }
  bool reaches(Device other) const noexcept override { return other.is_host(); }
  bool is_host_memory() const noexcept override { return false; }
  bool runs_host_functions() const noexcept override { return false; }

  PythonMemory& memory() const noexcept { return *memory_; }

 private:
  std::shared_ptr<PythonMemory> memory_;
  std::int64_t wait_timeout_ns_;
};

class PythonSet final : public DeviceSet {
 public:
  PythonSet(const PythonDevices& one, std::int64_t wait_timeout_ns)
      : memory_(one.memory), wait_timeout_ns_(wait_timeout_ns) {}
  int count() const noexcept override { return 1; }
  Device device(int) const noexcept override { return memory_->device(); }
  std::unique_ptr<Driver> make_driver(int) override {
    return std::make_unique<PythonDriver>(memory_, wait_timeout_ns_);
  }

 private:
  std::shared_ptr<PythonMemory> memory_;
  std::int64_t wait_timeout_ns_;
};

}  // namespace

PythonDevices::PythonDevices(Device d, nb::object calls)
    : device(d), memory(std::make_shared<PythonMemory>(d, std::move(calls))) {
  any_devices.store(true, std::memory_order_relaxed);
}

void register_python_devices() {
  register_devices(
      {.kind = PythonDevices::kind,
       .make = [](const std::any& kind_options, const DeviceSetOptions& options) -> std::unique_ptr<DeviceSet> {
         return std::make_unique<PythonSet>(std::any_cast<const PythonDevices&>(kind_options), options.wait_timeout_ns);
       },
       .standard = []() -> std::optional<DevicesOfKind> { return {}; }});
}

bool has_python_devices() noexcept {
  return any_devices.load(std::memory_order_relaxed);
}

bool is_inside_of_device() noexcept {
  return calls_of_thread > 0;
}

void check_outside_of_devices() {
  if (is_inside_of_device())
    throw Error(ErrorCode::invalid_use, "the code of a device must not use a buffer while it copies one");
}

void close_later(std::shared_ptr<Devices> devices, Lease lease) {
  leases_to_close.push_back({std::move(devices), std::move(lease)});
}

void close_what_waits() noexcept {
  if (leases_to_close.empty() || is_inside_of_device()) return;
  without_gil([] { leases_to_close.clear(); });
}

namespace {

const PythonDriver* python_driver_of(const Devices* devices, Device device) {
  if (!has_python_devices() || devices == nullptr) return nullptr;
  return dynamic_cast<const PythonDriver*>(&devices->driver(devices->memory_of(device)));
}

}  // namespace

bool is_python_device(const Devices* devices, Device device) {
  return python_driver_of(devices, device) != nullptr;
}

nb::object array_of_python_device(const Devices* devices, const StridedView& view, Access access) {
  const PythonDriver* const driver = python_driver_of(devices, view.device);
  if (!driver) return {};
  const PythonMemory::Entry* const entry = driver->memory().find(view.data);
  if (!entry) throw Error(ErrorCode::internal, "no array of " + to_string(view.device) + " has this address");
  const Index start = Index(reinterpret_cast<std::uintptr_t>(view.data) - entry->first) / entry->item();
  return driver->memory().call([&](const nb::object& calls) {
    return nb::object(calls.attr("show")(entry->array, start, view.extents, view.strides, access == Access::read_only));
  });
}

void bind_python_devices(nb::module_& module) {
  nb::class_<HostCells>(module, "HostCells").def_prop_ro("__array_interface__", [](const HostCells& self) {
    return array_interface(self.view, self.access);
  });
}

}  // namespace tranship::python
