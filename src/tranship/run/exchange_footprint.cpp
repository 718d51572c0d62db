#include "tranship/run/exchange_footprint.hpp"

#include <algorithm>
#include <cstdint>

#include <tranship/base/fail.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/lower/stretches.hpp>

namespace tranship {
namespace {

using Part = detail::MemoryUse::Part;
using Parts = ExchangeFootprint::Parts;

class Footprint {
 public:
  Footprint(const ExchangeTerms& terms, const ExchangeMessages& messages) : terms_(terms), messages_(messages) {
    names_.reserve(terms.arrays());
    for (const auto& arrays : terms.slots)
      for (const ExchangeArray& array : arrays) names_.push_back(name_of(array));
  }

  ExchangeFootprint make() {
    // For a message to or from a peer, only this rank's side counts; where a block is moved, the other side may have
    // any layout.
    terms_.for_each_receive([&](const auto& t, int from, int to) {
      add(t, from, to, MoveSide::target, targets_);
      if (t.peer == terms_.rank()) add(t, from, to, MoveSide::source, sources_);
    });
    terms_.for_each_send([&](const auto& t, int from, int to) { add(t, from, to, MoveSide::source, sources_); });
    for (const auto* fills : {&terms_.plan.fills_before, &terms_.plan.fills_after})
      for (const LocalFill& fill : *fills) add(fill);
    for (Parts* parts : {&sources_, &targets_, &filled_from_}) merge(*parts);
    for (Part& part : targets_) part.touch = Touch::stores;
    targets_.insert(targets_.end(), filled_from_.begin(), filled_from_.end());
    return {.names = std::move(names_), .sends = std::move(sources_), .receives = std::move(targets_)};
  }

 private:
  static void lower(const Transfer& t, MoveSide, ElementType type, const SlotLayout& source, const SlotLayout& target,
                    std::vector<LoweredMove>& moves) {
    lower_transfer(t, type, source, target, moves);
  }
  /// Lists name places of a layout, so this rank's side is used for both ends.
  static void lower(const IndexedTransfer& t, MoveSide side, ElementType type, const SlotLayout& source,
                    const SlotLayout& target, std::vector<LoweredMove>& moves) {
    IndexedTransfer own = t;
    if (side == MoveSide::source)
      own.target_cells = own.source_cells;
    else
      own.source_cells = own.target_cells;
    const SlotLayout& layout = side == MoveSide::source ? source : target;
    lower_indexed(own, type, layout, layout, moves);
  }

  static std::string name_of(const ExchangeArray& array) {
    std::string name = array.name.starts_with("array") ? "array" : array.name;
    if (!array.label.empty() && array.label != "array") name += fmt::format(" '{}'", array.label);
    if (!array.spec) name = array.name;
    return array.spec ? fmt::format("{} {}", name, to_text(*array.spec)) : name;
  }
  const char* name(int slot, int array) const {
    return names_[messages_.first_card[std::size_t(slot)] + std::size_t(array)].c_str();
  }
  const ArrayCard& card(int slot, int array) const { return messages_.card(messages_.own, terms_.rank(), slot, array); }

  void add(const auto& t, int from, int to, MoveSide side, Parts& parts) {
    const int slot = side == MoveSide::source ? from : to;
    for (int k = 0; k < terms_.arrays_of(slot); ++k) {
      moves_.clear();
      lower(t, side, terms_.type_of(to), card(from, k).layout, card(to, k).layout, moves_);
      for (const LoweredMove& move : moves_) add(move, side, card(slot, k).data, name(slot, k), parts);
    }
  }
  /// A fill may read cells of the array; otherwise it reads constants.
  void add(const LocalFill& fill) {
    for (int k = 0; k < terms_.arrays_of(fill.slot); ++k) {
      const ArrayCard& array = card(fill.slot, k);
      moves_.clear();
      lower_fill(fill, terms_.type_of(fill.slot), array.layout, moves_);
      for (const LoweredMove& move : moves_) {
        add(move, MoveSide::target, array.data, name(fill.slot, k), targets_);
        if (move.source.slot == fill.slot) add(move, MoveSide::source, array.data, name(fill.slot, k), filled_from_);
      }
    }
  }
  static void add(const LoweredMove& move, MoveSide side, const std::byte* base, const char* name, Parts& parts) {
    for_each_stretch(move, side, [&](Index offset, Index bytes) {
      parts.push_back(
          {.first = base + offset, .size_bytes = static_cast<std::size_t>(bytes), .of = name, .of_first = base});
    });
  }

  static std::uintptr_t begin_of(const Part& part) { return reinterpret_cast<std::uintptr_t>(part.first); }
  static void merge(Parts& parts) {
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return begin_of(a) < begin_of(b); });
    std::size_t kept = 0;
    for (const Part& part : parts) {
      if (kept > 0 && part.of == parts[kept - 1].of &&
          begin_of(part) <= begin_of(parts[kept - 1]) + parts[kept - 1].size_bytes)
        parts[kept - 1].size_bytes =
            std::max(parts[kept - 1].size_bytes, begin_of(part) + part.size_bytes - begin_of(parts[kept - 1]));
      else
        parts[kept++] = part;
    }
    parts.resize(kept);
  }

  const ExchangeTerms& terms_;
  const ExchangeMessages& messages_;
  std::vector<std::string> names_;
  std::vector<LoweredMove> moves_;
  Parts sources_, targets_, filled_from_;
};

}  // namespace

ExchangeFootprint footprint_of(const ExchangeTerms& terms, const ExchangeMessages& messages) {
  return Footprint(terms, messages).make();
}

}  // namespace tranship
