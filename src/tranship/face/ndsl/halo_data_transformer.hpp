// HaloDataTransformer: NDSL's packing of many quantities into one network buffer, byte for byte. It packs and unpacks;
// the caller transports the buffers. See docs/ndsl.md.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <tranship/base/strided_view.hpp>
#include <tranship/face/ndsl/halo_spec.hpp>

namespace tranship {
class Devices;
class Pool;
}  // namespace tranship

namespace tranship::ndsl {

/// Counts of the buffers that all transformers of the process have taken from one device's pool.
struct BufferCounts {
  std::int64_t allocations = 0;
  std::int64_t reuses = 0;        ///< allocations that a buffer which another transformer returned has served
  std::int64_t in_use_bytes = 0;  ///< bytes of buffers that transformers hold
  std::int64_t kept_bytes = 0;    ///< bytes of buffers that wait to be used again
};
BufferCounts buffer_counts(Device device = Device::host());
/// Limit of kept_bytes: beyond it, returned buffers are freed.
inline constexpr std::int64_t kept_buffer_bytes_max = std::int64_t(256) << 20;

struct TransformerOptions {
  /// The devices whose streams do the work; null: those of the process.
  Devices* devices = nullptr;
  /// The pool of the buffers; null: the pool of buffer_counts(), or with `devices` a pool of these.
  Pool* pool = nullptr;
};

/// Packs the cells that one rank sends to another, of scalars or of vectors, in NDSL's wire format: for each exchange
/// in turn (for a vector x, then y) the pack slices, rotated, in row-major order of the dimensions, without headers or
/// padding. Unpacking reads the same list, which is already rotated, into the unpack slices.
///
/// The work is enqueued on a stream of the quantities' device and is complete when synchronize() returns; on the host
/// it completes at once. Until then neither the quantities nor the buffers may be touched, and the memory of the
/// quantities must exist. Making a transformer costs about a microsecond per exchange; calls allocate at most a few
/// hundred bytes. One thread at a time may use it.
class HaloDataTransformer {
 public:
  /// Makes a transformer for scalars, or for vectors if `exchange_descriptors_y` has one entry for each x. Throws
  /// `invalid_use` for an empty list, lists of different lengths, entries that contradict each other, slices that leave
  /// the array, slices that send cells outside the compute domain or overwrite cells inside it, quantities without
  /// exactly one i and one j dimension, pairs whose components lie along different dimensions, and vectors of bools
  /// that are rotated; `unsupported` for several dtypes or devices; `no_memory`.
  static HaloDataTransformer get(std::span<const HaloExchangeSpec> exchange_descriptors_x,
                                 std::span<const HaloExchangeSpec> exchange_descriptors_y = {},
                                 const TransformerOptions& options = {});
  /// Calls finalize().
  ~HaloDataTransformer();
  HaloDataTransformer(HaloDataTransformer&&) noexcept;
  HaloDataTransformer& operator=(HaloDataTransformer&&) = delete;

  /// Fills the pack buffer from one quantity per exchange, in their order. Throws `invalid_use`, before any effect, for
  /// another number of quantities, another dtype or another shape than the specs say, and after finalize(). Strides may
  /// differ from those of the specs: the first call with other strides lowers the exchanges again.
  void async_pack(std::span<const StridedView> quantities_x, std::span<const StridedView> quantities_y = {});
  /// Writes the cells of all unpack slices from the unpack buffer, and no other byte. Throws as async_pack() does.
  void async_unpack(std::span<const StridedView> quantities_x, std::span<const StridedView> quantities_y = {});
  /// Waits for all work. Throws `timeout` after the devices' wait timeout, and `device_lost`.
  void synchronize();

  /// Returns true while there are buffers, that is until finalize().
  bool ready() const noexcept;
  /// Return the bytes to send and the place for the bytes received. Both synchronize first. Throw `invalid_use` after
  /// finalize().
  std::span<std::byte> get_pack_buffer();
  std::span<std::byte> get_unpack_buffer();
  /// Returns the buffers to the pool, which reuses them once the work on them has completed.
  void finalize() noexcept;

 private:
  struct State;
  explicit HaloDataTransformer(std::unique_ptr<State> state);
  State& living(const char* what) const;
  std::unique_ptr<State> state_;
};

}  // namespace tranship::ndsl
