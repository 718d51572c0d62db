// Private: CardMoves, a list of moves that lies ready in the memory of a card, or in pinned memory where the card is
// full; and CapturedRuns, for the runs of lists that are parts of graphs.
#pragma once

#include <memory>
#include <mutex>
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
  /// Returns true when these bases are aligned as the list expects.
  bool is_for(std::span<std::byte* const> bases) const noexcept;
  /// Returns the same moves, ready for bases of other alignments.
  std::shared_ptr<const CardMoves> aligned_to(std::span<const int> alignments) const;
  /// Moves that compute and that no kernel can make.
  const std::vector<BlockMove>& by_host() const noexcept { return by_host_; }
  /// The bytes of a base that moves use, counted from its address.
  struct Reach {
    long long first = 0, end = 0;
    bool is_empty() const noexcept { return first == end; }
  };
  const std::vector<Reach>& reaches() const noexcept { return reaches_; }
  /// Returns the part's list for bases of these alignments. Adds moves that no kernel can make there to `unaligned`.
  static packing::PieceList list_of(const Part& part, std::vector<int> alignments, unsigned multiprocessors,
                                    std::vector<BlockMove>* unaligned);

 private:
  void upload(Part& part, const packing::PieceList& list);
  void give_back() noexcept;

  Unit& unit_;
  std::vector<int> alignments_;
  std::vector<Part> parts_;
  std::vector<BlockMove> by_host_;
  std::vector<Reach> reaches_;
};

/// Returns the power of two, at most 16, that each base is a multiple of.
std::vector<int> alignments_of(std::span<std::byte* const> bases);

/// A run of a list that was captured into a graph, which holds this.
struct CapturedRun {
  std::shared_ptr<CapturedRuns> home;
  std::shared_ptr<const CardMoves> moves;
  std::shared_ptr<std::byte> many_bases;  ///< pinned; null where the bases are arguments of the launch
  CapturedRun* next = nullptr;
};

/// The captured runs that graphs do not need any more. The driver returns each on a thread of its own, where no call of
/// the driver is allowed, so their memory is given back later.
class CapturedRuns {
 public:
  /// Lets a graph hold a run.
  static void give(Card& card, CUgraph graph, std::unique_ptr<CapturedRun> run);
  /// Gives back the memory of runs that were returned.
  void sweep() noexcept;
  /// A run that is returned from now on keeps its memory: its unit is gone.
  void close() noexcept;

 private:
  static void CUDA_CB take_back(void* run);

  std::mutex mutex_;
  CapturedRun* returned_ = nullptr;
  bool is_closed_ = false;
};

}  // namespace tranship::cuda
