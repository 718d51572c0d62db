#include "tranship/cuda/card_moves.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <stdexcept>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cuda/list_image.hpp>

namespace tranship::cuda {

CardMoves::CardMoves(Unit& unit, std::span<const BlockMove> moves, std::span<const int> alignments)
    : unit_(unit), alignments_(alignments.begin(), alignments.end()) {
  std::map<Arithmetic, std::vector<BlockMove>> maps;
  std::vector<BlockMove> copies;
  for (const BlockMove& one : moves) (one.map == ElementMap::copy ? copies : maps[one.arithmetic]).push_back(one);
  for (auto& [arithmetic, mapped] : maps) {
    parts_.push_back({.arithmetic = arithmetic, .moves = std::move(mapped)});
    if (parts_.size() > 1) continue;
    parts_.front().moves.insert(parts_.front().moves.end(), copies.begin(), copies.end());
  }
  if (maps.empty() && !copies.empty()) parts_.push_back({.moves = std::move(copies)});
  try {
    for (Part& part : parts_) {
      const Card::Parts& card = unit_.card.parts();
      const packing::PieceList list = list_of(part, alignments_, card.multiprocessors);
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

packing::PieceList CardMoves::list_of(const Part& part, std::vector<int> alignments, unsigned multiprocessors) {
  const bool has_maps = part.arithmetic != Arithmetic::none;
  packing::PieceLimits limits;
  if (has_maps) limits.transposed_min = LLONG_MAX;  // the kernels that compute have no tiles
  packing::PieceList out(std::move(alignments), limits);
  try {
    for (const BlockMove& one : part.moves) out.add(one);
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

}  // namespace tranship::cuda
