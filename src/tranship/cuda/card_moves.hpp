// Private: CardMoves, a list of moves that lies ready in the memory of a card, or in pinned memory where the card is
// full.
#pragma once

#include <span>
#include <vector>

#include <tranship/cuda/cuda_stream.hpp>
#include <tranship/cuda/kernels.hpp>
#include <tranship/kernels/host/piece_list.hpp>

namespace tranship::cuda {

/// The stream that runs a list holds it until the run has completed.
class CardMoves final : public PreparedMoves {
 public:
  /// The moves of one launch: all copies with the maps of one type of numbers, or the maps of one further type.
  struct Part {
    Arithmetic arithmetic = Arithmetic::none;  ///< none where nothing is mapped
    std::vector<BlockMove> moves;
    CUkernel kernel = nullptr;
    ListArgs args{};
    std::byte* on_card = nullptr;
    std::byte* pinned = nullptr;
    std::size_t size_bytes = 0;
  };

  CardMoves(Unit& unit, std::span<const BlockMove> moves, std::span<const int> alignments);
  ~CardMoves() override;

  const Unit& unit() const noexcept { return unit_; }
  const std::vector<int>& alignments() const noexcept { return alignments_; }
  const std::vector<Part>& parts() const noexcept { return parts_; }
  /// Returns the part's list for bases of these alignments. Throws `invalid_use` where elements are not aligned.
  static packing::PieceList list_of(const Part& part, std::vector<int> alignments, unsigned multiprocessors);

 private:
  void upload(Part& part, const packing::PieceList& list);
  void give_back() noexcept;

  Unit& unit_;
  std::vector<int> alignments_;
  std::vector<Part> parts_;
};

}  // namespace tranship::cuda
