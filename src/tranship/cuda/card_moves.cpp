#include "tranship/cuda/card_moves.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <stdexcept>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cuda/list_image.hpp>

namespace tranship::cuda {
namespace {

int alignment_of(const std::byte* base) {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  return address % 16 == 0 ? 16 : int(address & -address);
}

/// Returns true when all numbers of a move are aligned, where the bases are.
bool is_aligned(const BlockMove& move, std::span<const int> alignments) {
  long long all = move.source_offset | move.target_offset;
  for (int d = 0; d < move.block.dims; ++d)
    if (move.block.extents[d] > 1) all |= move.block.source_strides[d] | move.block.target_strides[d];
  return all % move.width == 0 && alignments[move.source_base] % move.width == 0 &&
         alignments[move.target_base] % move.width == 0;
}

void widen(CardMoves::Reach& reach, long long offset, const CopyBlock& block, const long long* strides, int width) {
  long long first = offset, end = offset + width;
  for (int d = 0; d < block.dims; ++d) {
    const long long way = (block.extents[d] - 1) * strides[d];
    (way < 0 ? first : end) += way;
  }
  if (reach.is_empty()) reach = {first, end};
  reach = {std::min(reach.first, first), std::max(reach.end, end)};
}

}  // namespace

std::vector<int> alignments_of(std::span<std::byte* const> bases) {
  std::vector<int> out(bases.size());
  std::transform(bases.begin(), bases.end(), out.begin(), alignment_of);
  return out;
}

CardMoves::CardMoves(Unit& unit, std::span<const BlockMove> moves, std::span<const int> alignments)
    : unit_(unit), alignments_(alignments.begin(), alignments.end()), reaches_(alignments.size()) {
  std::map<Arithmetic, std::vector<BlockMove>> maps;
  std::vector<BlockMove> copies;
  for (const BlockMove& one : moves) {
    if (element_count(one.block) == 0) continue;
    widen(reaches_[one.source_base], one.source_offset, one.block, one.block.source_strides, one.width);
    widen(reaches_[one.target_base], one.target_offset, one.block, one.block.target_strides, one.width);
    if (one.map == ElementMap::copy)
      copies.push_back(one);
    else if (unit.card.parts().kernels.map[std::size_t(one.arithmetic)] && is_aligned(one, alignments))
      maps[one.arithmetic].push_back(one);
    else
      by_host_.push_back(one);
  }
  for (auto& [arithmetic, mapped] : maps) {
    parts_.push_back({.arithmetic = arithmetic, .moves = std::move(mapped)});
    if (parts_.size() > 1) continue;
    parts_.front().moves.insert(parts_.front().moves.end(), copies.begin(), copies.end());
  }
  if (maps.empty() && !copies.empty()) parts_.push_back({.moves = std::move(copies)});
  try {
    for (Part& part : parts_) {
      const Card::Parts& card = unit_.card.parts();
      const packing::PieceList list = list_of(part, alignments_, card.multiprocessors, nullptr);
      part.kernel = moving_kernel(card.kernels, list, part.arithmetic);
      upload(part, list);
    }
  } catch (...) {
    give_back();
    throw;
  }
}

CardMoves::~CardMoves() {
  give_back();
}

bool CardMoves::is_for(std::span<std::byte* const> bases) const noexcept {
  return std::equal(bases.begin(), bases.end(), alignments_.begin(),
                    [](const std::byte* base, int wanted) { return alignment_of(base) >= wanted; });
}

std::shared_ptr<const CardMoves> CardMoves::aligned_to(std::span<const int> alignments) const {
  std::vector<BlockMove> all;
  for (const Part& part : parts_) all.insert(all.end(), part.moves.begin(), part.moves.end());
  all.insert(all.end(), by_host_.begin(), by_host_.end());
  return std::make_shared<const CardMoves>(unit_, all, alignments);
}

packing::PieceList CardMoves::list_of(const Part& part, std::vector<int> alignments, unsigned multiprocessors,
                                      std::vector<BlockMove>* unaligned) {
  const bool has_maps = part.arithmetic != Arithmetic::none;
  packing::PieceLimits limits;
  if (has_maps) limits.transposed_min = LLONG_MAX;  // the kernels that compute have no tiles
  packing::PieceList out(std::move(alignments), limits);
  try {
    for (const BlockMove& one : part.moves)
      if (!unaligned || one.map == ElementMap::copy || is_aligned(one, out.alignments()))
        out.add(one);
      else
        unaligned->push_back(one);
  } catch (const std::invalid_argument& wrong) {
    throw_error(ErrorCode::invalid_use, "a list of moves of a card: {}", wrong.what());
  }
  out.lay_out(multiprocessors, has_maps ? packing::lean_vectors : 0);
  return out;
}

void CardMoves::upload(Part& part, const packing::PieceList& list) {
  if (!ListImage::is_needed(list)) return write_few(list, part.args);
  const ListImage image(list);
  part.size_bytes = image.size_bytes();
  part.pinned = static_cast<std::byte*>(unit_.allocate_pinned(part.size_bytes));
  if (!part.pinned)
    throw_error(ErrorCode::no_memory, "a list of moves needs {} of pinned memory, and there is none",
                amount(Index(part.size_bytes), "byte"));
  image.write(part.pinned);
  part.on_card = static_cast<std::byte*>(unit_.card.allocate(part.size_bytes));
  part.args.list = image.view(part.on_card ? part.on_card : part.pinned);
  if (!part.on_card) return;
  unit_.card.upload(part.on_card, part.pinned, part.size_bytes);
  unit_.deallocate_pinned(part.pinned, part.size_bytes);
  part.pinned = nullptr;
}

void CardMoves::give_back() noexcept {
  for (Part& part : parts_) {
    if (part.on_card) unit_.card.deallocate(part.on_card);
    if (part.pinned) unit_.deallocate_pinned(part.pinned, part.size_bytes);
  }
}

void CapturedRuns::give(Card& card, CUgraph graph, std::unique_ptr<CapturedRun> run) {
  CUuserObject object = nullptr;
  TRANSHIP_CUDA_CALL(card, cuUserObjectCreate, &object, run.get(), &take_back, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  [[maybe_unused]] CapturedRun* const given = run.release();
  const CUresult retained = card.calls().cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (retained != CUDA_SUCCESS) card.calls().cuUserObjectRelease(object, 1);
  card.check(retained, "cuGraphRetainUserObject");
}

void CUDA_CB CapturedRuns::take_back(void* data) {
  auto* const run = static_cast<CapturedRun*>(data);
  const std::shared_ptr<CapturedRuns> home = run->home;
  const std::lock_guard lock(home->mutex_);
  if (home->is_closed_) return;
  run->next = std::exchange(home->returned_, run);
}

void CapturedRuns::sweep() noexcept {
  CapturedRun* all = nullptr;
  {
    const std::lock_guard lock(mutex_);
    all = std::exchange(returned_, nullptr);
  }
  while (all) {
    const std::unique_ptr<CapturedRun> one(all);
    all = one->next;
  }
}

void CapturedRuns::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  sweep();
}

}  // namespace tranship::cuda
