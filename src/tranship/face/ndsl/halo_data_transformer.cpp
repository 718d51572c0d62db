#include "tranship/face/ndsl/halo_data_transformer.hpp"

#include <array>
#include <map>
#include <mutex>

#include <tranship/base/fail.hpp>
#include <tranship/face/ndsl/halo_message.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/stream.hpp>
#include <tranship/memory/pool/pool.hpp>

namespace tranship::ndsl {
namespace {

constexpr std::int64_t wait_timeout_ns = 30'000'000'000;

/// Returns the pool of one device of the process. Pools are never destroyed, like Devices::standard().
Pool& standard_pool(MemoryId memory) {
  static std::mutex mutex;
  static auto& pools = *new std::map<MemoryId, std::unique_ptr<Pool>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Pool>& pool = pools[memory];
  if (!pool)
    pool = std::make_unique<Pool>(Devices::standard().driver(memory),
                                  PoolOptions{.kept_bytes_max = kept_buffer_bytes_max});
  return *pool;
}

}  // namespace

BufferCounts buffer_counts(Device device) {
  const PoolCounts counts = standard_pool(Devices::standard().memory_of(device)).counts();
  return {.allocations = counts.allocations,
          .reuses = counts.reuses,
          .in_use_bytes = counts.in_use_bytes,
          .kept_bytes = counts.kept_bytes};
}

struct HaloDataTransformer::State {
  State(std::span<const HaloExchangeSpec> x, std::span<const HaloExchangeSpec> y, const TransformerOptions& options)
      : message(x, y), device(x[0].specification.device) {
    Devices& devices = options.devices ? *options.devices : Devices::standard();
    const Devices::Place place = devices.place(device);
    pool = options.pool ? options.pool : options.devices ? &devices.pool(place.memory) : &standard_pool(place.memory);
    if (device.is_host()) {
      stream = place.stream;
    } else {
      own_stream = devices.make_stream(device);
      stream = own_stream.get();
    }
  }
  ~State() { give_back(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void give_back() noexcept {
    for (PoolBlock& buffer : buffers) {
      const Event last = stream->event();
      pool->free(buffer, {&last, 1});
      buffer = {};
    }
  }
  std::byte* memory(int which) const { return static_cast<std::byte*>(buffers[std::size_t(which)].memory); }

  HaloMessage message;
  Device device;
  std::unique_ptr<Stream> own_stream;
  Stream* stream = nullptr;
  Pool* pool = nullptr;
  std::array<PoolBlock, 2> buffers;  ///< the pack buffer and the unpack buffer
};

HaloDataTransformer::HaloDataTransformer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HaloDataTransformer::~HaloDataTransformer() = default;
HaloDataTransformer::HaloDataTransformer(HaloDataTransformer&&) noexcept = default;

HaloDataTransformer HaloDataTransformer::get(std::span<const HaloExchangeSpec> exchange_descriptors_x,
                                             std::span<const HaloExchangeSpec> exchange_descriptors_y,
                                             const TransformerOptions& options) {
  auto state = std::make_unique<State>(exchange_descriptors_x, exchange_descriptors_y, options);
  for (PoolBlock& buffer : state->buffers)
    buffer = state->pool->allocate(std::size_t(state->message.bytes()), state->stream);
  return HaloDataTransformer(std::move(state));
}

HaloDataTransformer::State& HaloDataTransformer::living(const char* what) const {
  if (!ready()) throw_error(ErrorCode::invalid_use, "{} of a transformer that has been finalized has no buffer", what);
  return *state_;
}

void HaloDataTransformer::async_pack(std::span<const StridedView> quantities_x,
                                     std::span<const StridedView> quantities_y) {
  State& state = living("async_pack");
  run_on(*state.stream,
         [bound = state.message.bind(quantities_x, quantities_y), buffer = state.memory(0)] { bound.pack(buffer); });
}

void HaloDataTransformer::async_unpack(std::span<const StridedView> quantities_x,
                                       std::span<const StridedView> quantities_y) {
  State& state = living("async_unpack");
  run_on(*state.stream,
         [bound = state.message.bind(quantities_x, quantities_y), buffer = state.memory(1)] { bound.unpack(buffer); });
}

void HaloDataTransformer::synchronize() {
  if (state_) finish(state_->stream->event(), Deadline::after_ns(wait_timeout_ns));
}

bool HaloDataTransformer::ready() const noexcept {
  return state_ && state_->buffers[0].record != nullptr;
}

std::span<std::byte> HaloDataTransformer::get_pack_buffer() {
  const State& state = living("get_pack_buffer");
  synchronize();
  return {state.memory(0), std::size_t(state.message.bytes())};
}

std::span<std::byte> HaloDataTransformer::get_unpack_buffer() {
  const State& state = living("get_unpack_buffer");
  synchronize();
  return {state.memory(1), std::size_t(state.message.bytes())};
}

void HaloDataTransformer::finalize() noexcept {
  if (state_) state_->give_back();
}

}  // namespace tranship::ndsl
