#include "tranship/lower/move_bundle.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>

namespace tranship {

void MoveBundle::add(std::vector<LoweredMove> moves, MoveArrays arrays) {
  if (moves.empty()) return;
  MoveList list(std::move(moves), order_, way_);
  if (list.empty()) return;
  bytes_ += list.bytes() * Index(arrays.count);
  lists_.push_back({std::move(list), arrays, {}});
  cut();
}

void MoveBundle::bind(HostBases bases) {
  for (List& list : lists_) {
    list.bases.clear();
    list.bases.reserve(list.moves.ends() * std::size_t(list.arrays.count));
    for (int k = 0; k < list.arrays.count; ++k) {
      const auto base = [&](MoveSide side, int slot, int array) {
        return bases(side, slot, array) + (slot == staging_slot ? k * list.arrays.staging_pitch_bytes : 0);
      };
      list.moves.bind(base, list.arrays.first + k, list.bases);
    }
  }
}

std::span<std::byte* const> MoveBundle::List::bases_of(int k) const {
  TRANSHIP_ASSERT(!bases.empty());
  return std::span(bases).subspan(std::size_t(k) * moves.ends(), moves.ends());
}

void MoveBundle::run() const {
  for (const List& list : lists_)
    for (int k = 0; k < list.arrays.count; ++k) list.moves.run(list.bases_of(k));
}

void MoveBundle::cut() {
  pieces_.clear();
  cuts_.clear();
  const Index parts = order_ == MoveOrder::any ? MoveList::parts_of(bytes_) : 1;
  if (parts == 1) return;
  Index filled = 0;  // bytes of all pieces so far
  for (std::size_t l = 0; l < lists_.size(); ++l) {
    const MoveList& moves = lists_[l].moves;
    const Index each = ceil_divide(moves.bytes(), moves.parts());
    for (int k = 0; k < lists_[l].arrays.count; ++k)
      for (int part = 0; part < moves.parts(); ++part) {
        pieces_.push_back({l, k, part});
        filled += each;
        if (filled >= ceil_divide(bytes_ * (Index(cuts_.size()) + 1), parts)) cuts_.push_back(pieces_.size());
      }
  }
  if (cuts_.back() != pieces_.size()) cuts_.push_back(pieces_.size());
}

void MoveBundle::run_part(int part) const {
  if (cuts_.empty()) return run();
  for (std::size_t i = part == 0 ? 0 : cuts_[std::size_t(part) - 1]; i < cuts_[std::size_t(part)]; ++i) {
    const Piece& piece = pieces_[i];
    const List& list = lists_[piece.list];
    list.moves.run_part(piece.part, list.bases_of(piece.array));
  }
}

MoveList::Summary MoveBundle::summary() const {
  MoveList::Summary out;
  for (const List& list : lists_) {
    const MoveList::Summary one = list.moves.summary();
    const Index times = Index(list.arrays.count);
    out.run_bytes_min = out.moves == 0 ? one.run_bytes_min : std::min(out.run_bytes_min, one.run_bytes_min);
    out.moves += times * one.moves;
    out.walks += times * one.walks;
    out.runs += times * one.runs;
    for (int shape = 0; shape < 4; ++shape) out.shapes[shape] += times * one.shapes[shape];
  }
  out.run_bytes_mean = out.runs > 0 ? bytes_ / out.runs : 0;
  return out;
}

}  // namespace tranship
