// Private: HaloMessage, the message that NDSL sends from one rank to another: for each exchange the cells of a scalar,
// or of both components of a vector, rotated into the frame of the receiver, in the order of the sender's dimensions.
// It is lowered when it is made, so packing follows no index lists.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tranship/base/strided_view.hpp>
#include <tranship/face/ndsl/halo_spec.hpp>

namespace tranship::ndsl {

class HaloMessage {
 public:
  /// Describes a message of scalars, or of vectors if `y` is not empty: exchange k then sends the vector of x[k] and
  /// y[k], rotated as x[k] says. Costs about a microsecond per exchange.
  ///
  /// Throws `invalid_use` for an empty list, lists of different lengths, entries that contradict each other, slices
  /// that leave the array, slices that send cells outside the compute domain or overwrite cells inside it, quantities
  /// without exactly one i and one j dimension, pairs whose components lie along different dimensions, and vectors of
  /// bools that are rotated; `unsupported` for several dtypes or devices in one message.
  HaloMessage(std::span<const HaloExchangeSpec> x, std::span<const HaloExchangeSpec> y = {});

  /// Size of the message.
  Index bytes() const noexcept { return bytes_; }
  ElementType dtype() const noexcept { return dtype_; }
  std::size_t exchanges() const noexcept { return exchanges_; }
  bool is_vector() const noexcept { return layouts_.size() > exchanges_; }

  struct Moves;
  /// Arrays to pack from and to unpack to, any number of times while their memory exists. May outlive its HaloMessage.
  class Bound {
   public:
    Index bytes() const noexcept;
    /// Writes the whole message, which needs no alignment.
    void pack(std::byte* message) const;
    /// Reads the whole message and writes all cells of the unpack slices. If these overlap, the later exchange wins.
    void unpack(const std::byte* message) const;

   private:
    friend class HaloMessage;
    std::shared_ptr<const Moves> moves_;
    std::vector<std::byte*> arrays_;
  };
  /// Takes one array per exchange, in their order. Throws `invalid_use` for another number of arrays, another dtype or
  /// another shape than the specs say. For arrays with other strides, the message is lowered again first. One thread at
  /// a time.
  Bound bind(std::span<const StridedView> x, std::span<const StridedView> y = {});

 private:
  struct Blocks;
  std::shared_ptr<const Moves> lowered(const std::vector<StridedView>& layouts) const;

  ElementType dtype_ = ElementType::f64;
  std::size_t exchanges_ = 0;
  std::vector<StridedView> layouts_;  ///< without memory; for vectors in the order x, y, x, y …
  std::shared_ptr<const Blocks> blocks_;
  std::shared_ptr<const Moves> moves_;
  Index bytes_ = 0;
};

}  // namespace tranship::ndsl
