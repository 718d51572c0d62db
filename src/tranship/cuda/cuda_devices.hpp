// CudaDevices, the options of devices that are cards, driven by the driver of CUDA. Linking tranship::cuda registers
// the kind; a machine without a driver or a card has none, and `tranship info` says why.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tranship {

/// An element of DevicesOptions::kinds.
struct CudaDevices {
  static constexpr std::string_view kind = "cuda";
  /// By device: the number of its card. Devices of one card have memories that are counted apart. Empty: a device for
  /// each card.
  std::vector<int> cards = {};
  std::int64_t capacity_bytes = INT64_MAX;  ///< of each, where the card has as much
};

}  // namespace tranship
