#include "tranship/memory/device/devices.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include <tranship/base/amounts.hpp>
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
  std::vector<Stream*> idle;  // streams of destroyed LentStreams, free to be lent again
};

struct Memory {
  Memory(Processor& o, Stream& stream, PoolOptions options)
      : owner(o),
        copy_stream(&stream),
        pinned(*o.driver),
        pool(std::make_unique<Pool>(*o.driver, options)),
        pinned_pool(std::make_unique<Pool>(pinned, options)) {}
  Processor& owner;
  std::atomic<Stream*> copy_stream;
  PinnedDriver pinned;
  std::unique_ptr<Pool> pool, pinned_pool;
};

/// A list that one thread extends while others read it; elements never move.
template <class T, std::size_t count_max>
class Growing {
 public:
  std::size_t size() const noexcept { return count_.load(std::memory_order_acquire); }
  T& operator[](std::size_t at) const noexcept { return *all_[at]; }
  /// One thread at a time may call this, after it has checked that there is room.
  void add(std::unique_ptr<T> one) noexcept {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    all_[count] = std::move(one);
    count_.store(count + 1, std::memory_order_release);
  }

 private:
  std::array<std::unique_ptr<T>, count_max> all_;
  std::atomic<std::size_t> count_ = 0;
};

constexpr std::size_t memories_max = 64;  // the bits of a detail::MemorySet
constexpr std::size_t devices_max = 256;

/// Returns true when work on the stream will never complete.
bool is_lost(Stream& stream) {
  return lost_with(stream.event()).has_value();
}

std::vector<DeviceFamily>& families() {
  static auto& all = *new std::vector<DeviceFamily>{fake_devices};
  return all;
}

const DeviceFamily& family_of(std::string_view kind) {
  std::vector<std::string_view> names;
  for (const DeviceFamily& family : families()) {
    if (family.kind == kind) return family;
    names.push_back(family.kind);
  }
  throw_error(ErrorCode::invalid_use, "this build has no devices of kind '{}'; it has {}", kind,
              join_text(names, ", "));
}

/// The reason why a Devices has no device of a kind: the kind's own note, or that it was made without.
std::string why_none(DeviceKind kind) {
  const std::string_view name = name_of(kind);
  const auto family =
      std::find_if(families().begin(), families().end(), [&](const DeviceFamily& one) { return one.kind == name; });
  if (family == families().end())
    return fmt::format("no library that the program is linked with has devices of kind {}{}", name,
                       kind == DeviceKind::cuda ? "; tranship::cuda has them, from the beginning of main on" : "");
  const DeviceFamilyState state = family->state ? family->state() : DeviceFamilyState();
  if (state.count > 0)
    return fmt::format("this process has {} of kind {}, and these were made without", amount(state.count, "device"),
                       name);
  return state.note;
}

DevicesOptions standard_options() {
  DevicesOptions out;
  for (const DeviceFamily& family : families())
    if (std::optional<DevicesOfKind> all = family.standard()) out.kinds.push_back(*std::move(all));
  return out;
}

}  // namespace

struct Devices::State {
  class LentStream;

  explicit State(const DevicesOptions& options);

  void add(const DevicesOfKind& devices);
  void add_all_of(DeviceSet& set);
  Processor* find(Device device) const;
  Processor& processor_of(Device device) const;
  [[noreturn]] void refuse(Device device) const;
  std::unique_ptr<Stream> make_stream(Processor& processor);
  /// Call with streams_mutex held.
  Stream& add_stream(Processor& processor);
  Stream& stream_in(std::atomic<Stream*>& place, Processor& processor);
  Stream& borrow(Processor& processor);
  void give_back(Processor& processor, Stream& stream) noexcept;
  void finish_all();

  std::int64_t wait_timeout_ns;
  CopyLedger ledger;
  Residents residents;
  std::atomic<int> losses = 0;
  std::mutex sets_mutex;  // serialises add() and steps()
  std::vector<std::unique_ptr<DeviceSet>> sets;
  Growing<Processor, devices_max> processors;
  std::vector<std::unique_ptr<Stream>> streams;  // every stream ever made, because callers may still hold its events
  std::mutex streams_mutex;
  Growing<Memory, memories_max> memories;
};

/// The stream that make_stream() returns. The inner stream does the work and outlives it, so its events stay valid.
class Devices::State::LentStream final : public Stream {
 public:
  LentStream(State& state, Processor& processor, Stream& inner) : state_(state), processor_(processor), inner_(inner) {}
  ~LentStream() override {
    try {
      tranship::finish(inner_.event(), Deadline::after_ns(state_.wait_timeout_ns));
    } catch (const Error&) {
      // The next borrower's work comes after the work that hangs.
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
  void copy_list(std::span<const StreamCopy> copies) override { inner_.copy_list(copies); }
  std::shared_ptr<const PreparedMoves> prepare(std::span<const BlockMove> moves,
                                               std::span<const int> alignments) override {
    return inner_.prepare(moves, alignments);
  }
  void move_list(const std::shared_ptr<const PreparedMoves>& moves, std::span<std::byte* const> bases) override {
    inner_.move_list(moves, bases);
  }
  void* native_handle() noexcept override { return inner_.native_handle(); }
  bool is_over(std::uint64_t number) override { return inner_.is_over(number); }
  std::optional<Device> lost_with(std::uint64_t number) override { return inner_.lost_with(number); }
  bool is_at_rest(std::uint64_t number) override { return inner_.is_at_rest(number); }
  void finish(std::uint64_t number, Deadline deadline) override { inner_.finish(number, deadline); }

 private:
  State& state_;
  Processor& processor_;
  Stream& inner_;
};

/// The host as a DeviceSet of one device.
class HostSet final : public DeviceSet {
 public:
  explicit HostSet(std::int64_t wait_timeout_ns) : wait_timeout_ns_(wait_timeout_ns) {}
  int count() const noexcept override { return 1; }
  Device device(int) const noexcept override { return Device::host(); }
  std::unique_ptr<Driver> make_driver(int) override { return std::make_unique<HostDriver>(wait_timeout_ns_); }

 private:
  std::int64_t wait_timeout_ns_;
};

Devices::State::State(const DevicesOptions& options) : wait_timeout_ns(options.wait_timeout_ns) {
  sets.push_back(std::make_unique<HostSet>(wait_timeout_ns));
  add_all_of(*sets.back());
  for (const DevicesOfKind& kind : options.kinds) add(kind);
}

void Devices::State::add(const DevicesOfKind& devices) {
  const Lock lock(sets_mutex);
  try {
    sets.push_back(family_of(devices.kind()).make(devices.options(), {wait_timeout_ns, losses}));
  } catch (const std::bad_any_cast&) {
    throw_error(ErrorCode::invalid_use, "devices of kind '{}' take options of another type", devices.kind());
  }
  try {
    add_all_of(*sets.back());
  } catch (...) {
    sets.pop_back();
    throw;
  }
}

/// Makes everything before it adds anything, so a failure changes nothing.
void Devices::State::add_all_of(DeviceSet& set) {
  const PoolOptions pool_options{.wait_timeout_ns = wait_timeout_ns};
  const auto count = std::size_t(set.count());
  std::vector<std::unique_ptr<Processor>> new_processors;
  std::vector<std::unique_ptr<Memory>> new_memories;
  std::vector<std::unique_ptr<Stream>> new_streams;
  const auto new_stream = [&](Processor& processor) -> Stream& {
    return *new_streams.emplace_back(make_stream(processor));
  };
  if (processors.size() + count > devices_max)
    throw_error(ErrorCode::invalid_use, "cannot add {} to the {} that exist: the limit is {}",
                amount(Index(count), "device"), processors.size(), devices_max);
  for (std::size_t i = 0; i < count; ++i) {
    auto processor = std::make_unique<Processor>();
    processor->device = set.device(int(i));
    if (find(processor->device))
      throw_error(ErrorCode::invalid_use, "there is a device {} already", to_string(processor->device));
    processor->driver = set.make_driver(int(i));
    processor->stream = &new_stream(*processor);
    if (const auto owner = std::size_t(set.memory_of(int(i))); owner != i) {
      processor->memory = new_processors[owner]->memory;
    } else {
      processor->memory = MemoryId(memories.size() + new_memories.size());
      if (std::size_t(processor->memory) == memories_max)
        throw_error(ErrorCode::invalid_use, "{} would need memory number {}: the limit is {}",
                    to_string(processor->device), memories_max + 1, memories_max);
      new_memories.push_back(std::make_unique<Memory>(*processor, new_stream(*processor), pool_options));
    }
    new_processors.push_back(std::move(processor));
  }
  {
    const Lock lock(streams_mutex);
    streams.reserve(streams.size() + new_streams.size());
    for (auto& stream : new_streams) streams.push_back(std::move(stream));
  }
  // Memories first: a device that can be found must have its memory.
  for (auto& memory : new_memories) memories.add(std::move(memory));
  for (auto& processor : new_processors) processors.add(std::move(processor));
}

Processor* Devices::State::find(Device device) const {
  const std::size_t count = processors.size();
  for (std::size_t i = 0; i < count; ++i)
    if (processors[i].device == device) return &processors[i];
  return nullptr;
}

Processor& Devices::State::processor_of(Device device) const {
  if (Processor* const processor = find(device)) return *processor;
  refuse(device);
}

void Devices::State::refuse(Device device) const {
  std::vector<std::string> names;
  const std::size_t count = processors.size();
  bool has_kind = false;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(to_string(processors[i].device));
    has_kind |= processors[i].device.kind() == device.kind();
  }
  const std::string why = has_kind ? std::string() : why_none(device.kind());
  throw_error(
      ErrorCode::invalid_use, "there is no {}; {} {}{}{}", to_string(device),
      names.size() == 1 ? std::string("the only device is") : fmt::format("the {} are", amount(names.size(), "device")),
      join_text(names, ", "), why.empty() ? "" : ": ", why);
}

std::unique_ptr<Stream> Devices::State::make_stream(Processor& processor) {
  std::unique_ptr<Stream> stream = processor.driver->make_stream();
  stream->home_ = this;
  return stream;
}

Stream& Devices::State::add_stream(Processor& processor) {
  streams.push_back(make_stream(processor));
  return *streams.back();
}

/// Returns the stream in `place`. A lost stream is replaced first, unless its own device is lost.
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
  // So that give_back() cannot fail.
  processor.idle.reserve(streams.size());
  return stream;
}

void Devices::State::give_back(Processor& processor, Stream& stream) noexcept {
  const Lock lock(streams_mutex);
  processor.idle.push_back(&stream);
}

/// Streams may wait for each other, so all must finish before one is destroyed.
void Devices::State::finish_all() {
  const Deadline deadline = Deadline::after_ns(wait_timeout_ns);
  for (const auto& stream : streams) settle(stream->event(), deadline);
}

Devices::Devices(const DevicesOptions& options) : state_(std::make_unique<State>(options)) {}

Devices::~Devices() {
  try {
    state_->finish_all();
    state_->residents.release_kept();
    for (const auto& set : state_->sets) set->stop();
    // Streams of other memories have used blocks of these pools, so all pools go while every stream still exists.
    for (std::size_t i = 0; i < state_->memories.size(); ++i) state_->memories[i].pool.reset();
    for (std::size_t i = 0; i < state_->memories.size(); ++i) state_->memories[i].pinned_pool.reset();
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
  const std::size_t count = state_->processors.size();
  for (std::size_t i = 0; i < count; ++i) devices.push_back(state_->processors[i].device);
  return devices;
}

void Devices::add(const DevicesOfKind& devices) {
  state_->add(devices);
}

std::string_view Devices::kind_of(MemoryId memory) const noexcept {
  return name_of(device_of(memory).kind());
}

Driver& Devices::driver(MemoryId memory) const noexcept {
  return *state_->memories[std::size_t(memory)].owner.driver;
}

Pool& Devices::pool(MemoryId memory) const noexcept {
  return *state_->memories[std::size_t(memory)].pool;
}

Pool& Devices::pinned_pool(MemoryId memory) const noexcept {
  return *state_->memories[std::size_t(memory)].pinned_pool;
}

Stream& Devices::copy_stream(MemoryId memory) const {
  Memory& one = state_->memories[std::size_t(memory)];
  return state_->stream_in(one.copy_stream, one.owner);
}

std::unique_ptr<Stream> Devices::make_stream(Device device) const {
  Processor& processor = state_->processor_of(device);
  auto stream = std::make_unique<State::LentStream>(*state_, processor, state_->borrow(processor));
  stream->home_ = state_.get();
  return stream;
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
  const Lock lock(state_->sets_mutex);
  for (const auto& set : state_->sets) out += set->steps(count - out);
  return out;
}

void register_devices(const DeviceFamily& family) {
  for (const DeviceFamily& other : families())
    if (other.kind == family.kind)
      throw_error(ErrorCode::invalid_use, "devices of kind '{}' are registered already", family.kind);
  if (!family.make || !family.standard)
    throw_error(ErrorCode::invalid_use, "devices of kind '{}' are registered without a function that {}", family.kind,
                family.make ? "finds the devices of this process" : "makes them");
  families().push_back(family);
}

std::span<const DeviceFamily> device_families() {
  return families();
}

void* Driver::allocate_pinned(std::size_t size_bytes) {
  return allocate_on_host(size_bytes);
}

void Driver::deallocate_pinned(void* memory, std::size_t) noexcept {
  free_on_host(memory);
}

}  // namespace tranship
