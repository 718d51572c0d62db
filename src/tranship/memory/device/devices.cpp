#include "tranship/memory/device/devices.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

#include <tranship/base/fail.hpp>
#include <tranship/memory/device/fake_device.hpp>
#include <tranship/memory/device/host_device.hpp>
#include <tranship/memory/pool/pool.hpp>
#include <tranship/memory/pool/residents.hpp>

namespace tranship {
namespace {

using Lock = std::unique_lock<std::mutex>;

struct Processor {
  Device device;
  MemoryId memory = 0;
  std::unique_ptr<Driver> driver;
  std::atomic<Stream*> stream = nullptr;
  std::vector<Stream*> idle;  // lent once, and given back
};

struct Memory {
  Memory(Processor& o, Stream& stream, PoolOptions options)
      : owner(o), copy_stream(&stream), pool(std::make_unique<Pool>(*o.driver, options)) {}
  Processor& owner;
  std::atomic<Stream*> copy_stream;
  std::unique_ptr<Pool> pool;
};

/// Whether what it has been given is never over.
bool is_lost(Stream& stream) {
  return lost_with(stream.event()).has_value();
}

/// In the order in which their devices are listed, behind the host.
std::vector<DeviceFamily>& families() {
  static auto& all = *new std::vector<DeviceFamily>{fake_devices};
  return all;
}

DevicesOptions standard_options() {
  DevicesOptions out;
  for (const DeviceFamily& family : families()) family.ask_for_standard(out);
  return out;
}

}  // namespace

struct Devices::State {
  class LentStream;

  explicit State(const DevicesOptions& options);

  Processor& processor_of(Device device);
  [[noreturn]] void refuse(Device device) const;
  Stream& add_stream(Processor& processor);
  Stream& stream_in(std::atomic<Stream*>& place, Processor& processor);
  Stream& borrow(Processor& processor);
  void give_back(Processor& processor, Stream& stream) noexcept;
  void finish_all();

  std::int64_t wait_timeout_ns;
  CopyLedger ledger;
  Residents residents;
  std::atomic<int> losses = 0;
  std::vector<std::unique_ptr<DeviceSet>> sets;
  std::deque<Processor> processors;
  std::vector<std::unique_ptr<Stream>> streams;  // all, for their events may still be held
  std::mutex streams_mutex;
  std::unique_ptr<Pool> pinned_pool;
  std::deque<Memory> memories;
};

/// What make_stream hands out. The stream that does the work outlives it, for the sake of those who hold its events.
class Devices::State::LentStream final : public Stream {
 public:
  LentStream(State& state, Processor& processor, Stream& inner) : state_(state), processor_(processor), inner_(inner) {}
  ~LentStream() override {
    try {
      tranship::finish(inner_.event(), Deadline::after_ns(state_.wait_timeout_ns));
    } catch (const Error&) {
      // The next one who gets it comes after what hangs.
    }
    state_.give_back(processor_, inner_);
  }

  Device device() const noexcept override { return inner_.device(); }
  Event event() override { return inner_.event(); }
  void wait(Event event) override { inner_.wait(event); }
  void copy(const CopyBlock& block, int width, const void* source, void* target) override {
    inner_.copy(block, width, source, target);
  }
  void fill(const CopyBlock& block, int width, const void* element, void* target) override {
    inner_.fill(block, width, element, target);
  }
  void combine(const CopyBlock& block, Combine how, ElementType type, const void* source, void* target) override {
    inner_.combine(block, how, type, source, target);
  }
  void run(std::unique_ptr<Kernel> kernel) override { inner_.run(std::move(kernel)); }
  bool is_over(std::uint64_t number) override { return inner_.is_over(number); }
  std::optional<Device> lost_with(std::uint64_t number) override { return inner_.lost_with(number); }
  void finish(std::uint64_t number, Deadline deadline) override { inner_.finish(number, deadline); }

 private:
  State& state_;
  Processor& processor_;
  Stream& inner_;
};

Devices::State::State(const DevicesOptions& options) : wait_timeout_ns(options.wait_timeout_ns) {
  const PoolOptions pool_options{.wait_timeout_ns = wait_timeout_ns};
  const auto add = [&](Device device, std::unique_ptr<Driver> driver) -> Processor& {
    Processor& processor = processors.emplace_back();
    processor.device = device;
    processor.driver = std::move(driver);
    processor.stream = &add_stream(processor);
    return processor;
  };
  const auto add_memory = [&](Processor& processor) {
    processor.memory = MemoryId(memories.size());
    memories.emplace_back(processor, add_stream(processor), pool_options);
  };
  Processor& host = add(Device::host(), std::make_unique<HostDriver>(wait_timeout_ns));
  add_memory(host);
  pinned_pool = std::make_unique<Pool>(*host.driver, pool_options);
  for (const DeviceFamily& family : families()) {
    DeviceSet& set = *sets.emplace_back(family.make({options, losses}));
    const std::size_t first = processors.size();
    for (int i = 0; i < set.count(); ++i) {
      Processor& processor = add(set.device(i), set.make_driver(i));
      if (const int owner = set.memory_of(i); owner == i)
        add_memory(processor);
      else
        processor.memory = processors[first + std::size_t(owner)].memory;
    }
  }
}

Processor& Devices::State::processor_of(Device device) {
  for (Processor& processor : processors)
    if (processor.device == device) return processor;
  refuse(device);
}

void Devices::State::refuse(Device device) const {
  std::vector<std::string> names;
  for (const Processor& processor : processors) names.push_back(to_string(processor.device));
  throw_error(ErrorCode::invalid_use, "there is no {}; {} {}", to_string(device),
              names.size() == 1 ? std::string("the only device is") : fmt::format("the {} devices are", names.size()),
              join_text(names, ", "));
}

Stream& Devices::State::add_stream(Processor& processor) {
  streams.push_back(processor.driver->make_stream());
  return *streams.back();
}

/// What stands there, or what takes its place where the device goes on without it.
Stream& Devices::State::stream_in(std::atomic<Stream*>& place, Processor& processor) {
  if (losses.load(std::memory_order_acquire) == 0) return *place.load(std::memory_order_acquire);
  const auto stays = [&] {
    return !is_lost(*place.load(std::memory_order_acquire)) || !processor.driver->loss().empty();
  };
  if (stays()) return *place.load(std::memory_order_acquire);
  const Lock lock(streams_mutex);
  if (!stays()) place.store(&add_stream(processor), std::memory_order_release);
  return *place.load(std::memory_order_acquire);
}

Stream& Devices::State::borrow(Processor& processor) {
  const Lock lock(streams_mutex);
  while (!processor.idle.empty()) {
    Stream* const stream = processor.idle.back();
    processor.idle.pop_back();
    if (!is_lost(*stream)) return *stream;
  }
  Stream& stream = add_stream(processor);
  // Giving it back must not fail.
  processor.idle.reserve(streams.size());
  return stream;
}

void Devices::State::give_back(Processor& processor, Stream& stream) noexcept {
  const Lock lock(streams_mutex);
  processor.idle.push_back(&stream);
}

/// Streams may wait for each other, so none is destroyed before all are done.
void Devices::State::finish_all() {
  const Deadline deadline = Deadline::after_ns(wait_timeout_ns);
  for (const auto& stream : streams) settle(stream->event(), deadline);
}

Devices::Devices(const DevicesOptions& options) : state_(std::make_unique<State>(options)) {}

Devices::~Devices() {
  try {
    state_->finish_all();
    for (const auto& set : state_->sets) set->stop();
    // Blocks of one memory have been used by streams of another.
    for (Memory& memory : state_->memories) memory.pool.reset();
    state_->pinned_pool.reset();
  } catch (const Error&) {
    [[maybe_unused]] State* const kept = state_.release();
  }
}

Devices& Devices::standard() {
  static Devices* const devices = new Devices(standard_options());
  return *devices;
}

int Devices::memory_count() const noexcept {
  return int(state_->memories.size());
}

Devices::Place Devices::place(Device device) const {
  Processor& processor = state_->processor_of(device);
  return {processor.memory, &state_->stream_in(processor.stream, processor)};
}

Device Devices::device_of(MemoryId memory) const noexcept {
  return state_->memories[std::size_t(memory)].owner.device;
}

std::vector<Device> Devices::list() const {
  std::vector<Device> devices;
  for (const Processor& processor : state_->processors) devices.push_back(processor.device);
  return devices;
}

Driver& Devices::driver(MemoryId memory) const noexcept {
  return *state_->memories[std::size_t(memory)].owner.driver;
}

Pool& Devices::pool(MemoryId memory) const noexcept {
  return *state_->memories[std::size_t(memory)].pool;
}

Pool& Devices::pinned_pool() const noexcept {
  return *state_->pinned_pool;
}

Stream& Devices::copy_stream(MemoryId memory) const {
  Memory& one = state_->memories[std::size_t(memory)];
  return state_->stream_in(one.copy_stream, one.owner);
}

std::unique_ptr<Stream> Devices::make_stream(Device device) const {
  Processor& processor = state_->processor_of(device);
  return std::make_unique<State::LentStream>(*state_, processor, state_->borrow(processor));
}

CopyLedger& Devices::ledger() const noexcept {
  return state_->ledger;
}
Residents& Devices::residents() const noexcept {
  return state_->residents;
}

const std::atomic<int>& Devices::losses() const noexcept {
  return state_->losses;
}

int Devices::steps(int count) {
  int out = 0;
  for (const auto& set : state_->sets) out += set->steps(count - out);
  return out;
}

void register_devices(const DeviceFamily& family) {
  families().push_back(family);
}

}  // namespace tranship
