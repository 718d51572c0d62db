// HaloDataTransformer: NDSL's packing of many quantities into one buffer for the network, byte for byte. It packs and
// unpacks; what carries the buffers is the caller's.
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

/// What all transformers of the process took from one device's pool of buffers.
struct BufferCounts {
  std::int64_t allocations = 0;
  std::int64_t reuses = 0;        ///< of these, served by a buffer that another transformer has given back
  std::int64_t in_use_bytes = 0;  ///< of buffers that transformers hold
  std::int64_t kept_bytes = 0;    ///< of buffers that wait to be used again
};
BufferCounts buffer_counts(Device device = Device::host());
/// Beyond it, buffers that come back are freed.
inline constexpr std::int64_t kept_buffer_bytes_max = std::int64_t(256) << 20;

struct TransformerOptions {
  /// Whose stream does the work; null: those of the process.
  Devices* devices = nullptr;
  /// Where buffers come from; null: the pool of buffer_counts(), or with `devices` theirs.
  Pool* pool = nullptr;
};

/// Packs the cells that one rank sends to another one, of scalars or of vectors, in the wire format of NDSL: exchange
/// by exchange (of a vector x, then y) the pack slices, rotated, in row-major order of the dimensions; no headers, no
/// padding. Unpacking reads the same list, where it is already rotated, into the unpack slices.
///
/// Work is given to a stream of the quantities' device and is done when synchronize() returns; on the host it is done
/// at once. Until then neither the quantities nor the buffers may be touched, and the memory of quantities must exist.
/// Making one costs about a microsecond for each exchange, calls allocate no more than a few hundred bytes. Used by one
/// thread at a time.
class HaloDataTransformer {
 public:
  /// Of scalars; of vectors with `exchange_descriptors_y`, one for each x. Throws `invalid_use` for no exchange, lists
  /// of different lengths, entries that contradict each other, slices that leave the array, slices that send other
  /// cells than those of the compute domain or overwrite such cells, quantities without one i and one j dimension,
  /// pairs whose components lie along different dimensions, and vectors of bools that are turned; `unsupported` for
  /// several dtypes or devices; `no_memory`.
  static HaloDataTransformer get(std::span<const HaloExchangeSpec> exchange_descriptors_x,
                                 std::span<const HaloExchangeSpec> exchange_descriptors_y = {},
                                 const TransformerOptions& options = {});
  /// finalize().
  ~HaloDataTransformer();
  HaloDataTransformer(HaloDataTransformer&&) noexcept;
  HaloDataTransformer& operator=(HaloDataTransformer&&) = delete;

  /// Fills the pack buffer from one quantity for each exchange, in their order. Throws `invalid_use`, having done
  /// nothing, for another number of quantities, another dtype or another shape than the specs say, and after
  /// finalize(). Strides may differ from those of the specs: the first call with others lowers the exchanges anew.
  void async_pack(std::span<const StridedView> quantities_x, std::span<const StridedView> quantities_y = {});
  /// Writes the cells of all unpack slices from the unpack buffer, and no other byte. Throws as async_pack().
  void async_unpack(std::span<const StridedView> quantities_x, std::span<const StridedView> quantities_y = {});
  /// Waits for all work, at most as long as the devices' wait timeout (`timeout`). Throws `device_lost`.
  void synchronize();

  /// Whether there are buffers: until finalize().
  bool ready() const noexcept;
  /// What is sent, and what has been received. Both synchronize first. Throw `invalid_use` after finalize().
  std::span<std::byte> get_pack_buffer();
  std::span<std::byte> get_unpack_buffer();
  /// Gives the buffers back to the pool, which hands them out again when the work on them is over.
  void finalize() noexcept;

 private:
  struct State;
  explicit HaloDataTransformer(std::unique_ptr<State> state);
  State& living(const char* what) const;
  std::unique_ptr<State> state_;
};

}  // namespace tranship::ndsl
