// Private: ListImage, a list of pieces as kernels read it, in one piece of memory. Short lists travel as arguments of
// the launch instead (ListArgs).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <tranship/cuda/card.hpp>
#include <tranship/cuda/kernels.hpp>
#include <tranship/kernels/host/piece_list.hpp>

namespace tranship::cuda {

class ListImage {
 public:
  /// The list must outlive the image. It has been laid out.
  explicit ListImage(const packing::PieceList& list) : list_(list), view_(list.view()) {}

  static bool is_needed(const packing::PieceList& list) { return list.pieces().size() > ListArgs::few_max; }

  std::size_t size_bytes() const { return units_at() + (view_.count + 1) * sizeof(unsigned); }
  void write(std::byte* to) const {
    std::memcpy(to, view_.pieces, starts_at());
    std::memcpy(to + starts_at(), list_.starts().data(), units_at() - starts_at());
    std::memcpy(to + units_at(), view_.first_units, size_bytes() - units_at());
  }
  /// Returns the list for a kernel that finds what was written at `at`, aligned to 16 bytes.
  packing::PieceListView view(const std::byte* at) const {
    packing::PieceListView out = view_;
    out.pieces = reinterpret_cast<const packing::Piece*>(at);
    out.starts = view_.starts ? reinterpret_cast<const packing::GroupStart*>(at + starts_at()) : nullptr;
    out.first_units = reinterpret_cast<const unsigned*>(at + units_at());
    return out;
  }

 private:
  std::size_t starts_at() const { return view_.count * sizeof(packing::Piece); }
  std::size_t units_at() const { return starts_at() + list_.starts().size() * sizeof(packing::GroupStart); }

  const packing::PieceList& list_;
  packing::PieceListView view_;
};

/// Returns the kernel that moves a list whose maps, if it has any, are of this arithmetic; none if it only copies.
inline CUkernel moving_kernel(const KernelTable& kernels, const packing::PieceList& list, Arithmetic arithmetic) {
  if (arithmetic != Arithmetic::none) return kernels.map[std::size_t(arithmetic)];
  return list.has_transposed()                         ? kernels.move_tiled
         : list.lane_vectors() > packing::lean_vectors ? kernels.move_deep
                                                       : kernels.move_lean;
}

/// Writes a list that needs no image into the arguments of its launch.
inline void write_few(const packing::PieceList& list, ListArgs& args) {
  args.list = list.view();
  std::copy_n(args.list.pieces, args.list.count, args.few_pieces);
  std::copy_n(args.list.first_units, args.list.count + 1, args.few_first_units);
  args.list.pieces = nullptr;
  args.list.first_units = nullptr;
  args.list.starts = nullptr;
}

}  // namespace tranship::cuda
