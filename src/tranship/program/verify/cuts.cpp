#include "tranship/program/verify/cuts.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::verification {
namespace {

/// Keeps all places of the largest chunks tried in 64 bits: turns of 1 GiB.
constexpr Index turn_units_max = Index(1) << 26;
constexpr Index semaphore_max = 4096;
/// Limits of the sizes that are compared, of the boundaries visited for the small ones, and of the boundaries visited
/// for the mandatory ones.
constexpr Index sizes_max = 4096, boundaries_max = 20'000'000, boundaries_most = 200'000'000;

Index round_up_division(Index a, Index b) {
  return (a + b - 1) / b;
}

/// Properties that decide how many sizes differ.
struct Extremes {
  Index shares = 1;  ///< least common multiple of all
  Index shares_max = 1;
  Index semaphore_max = 0;
  Index operands = 0;
  const Pipeline* loop = nullptr;  ///< any loop: verify() refuses programs whose loops take different numbers of turns
};

Extremes extremes_of(const Program& program) {
  Extremes out;
  const auto look = [&](const Step& step, const Pipeline* loop) {
    constexpr Index shares_max = 720'720;
    if (step.shares > 0) out.shares = std::min(shares_max, std::lcm(out.shares, Index(step.shares)));
    out.shares_max = std::max(out.shares_max, Index(step.shares));
    out.operands += static_cast<Index>(step.operands.size());
    if (!loop) return;
    out.loop = loop;
    constexpr Index chunks_max = Index(1) << 22;  // of any buffer
    if (loop->chunks > chunks_max)
      throw_error(ErrorCode::unsupported, "cannot verify loops over {}: the limit is {}", amount(loop->chunks, "chunk"),
                  chunks_max);
    if (turn_units(*loop) > turn_units_max)
      throw_error(ErrorCode::unsupported, "cannot verify loops in turns of {}: the limit is {}",
                  amount(loop->unit_bytes, "byte"), turn_units_max * cut_unit_bytes);
  };
  for (const RankProgram& rank : program.ranks) {
    for_each_step(rank, look);
    for (const Index initial : rank.semaphores) out.semaphore_max = std::max(out.semaphore_max, initial);
  }
  if (out.loop && out.semaphore_max > semaphore_max)
    throw_error(ErrorCode::unsupported, "cannot verify loops with a semaphore that begins at {}: the limit is {}",
                out.semaphore_max, semaphore_max);
  return out;
}

/// A hash of the order of all boundaries that steps touch, and of the lengths between them.
class Order {
 public:
  Order(const Program& program, Cut cut) : program_(program), cut_(cut) {
    for (Rank rank = 0; rank < static_cast<Rank>(program.ranks.size()); ++rank)
      for_each_step(program.ranks[static_cast<std::size_t>(rank)], [&](const Step& step, const Pipeline* loop) {
        const Index turns = loop ? turns_of(*loop, cut) : 1;
        hash_ = splitmix64(hash_ + static_cast<std::uint64_t>(turns));  // also for loops that move nothing
        for (Index turn = 0; turn < turns && !step.operands.empty(); ++turn) add(rank, step, loop, turn);
      });
    for (auto& [memory, places] : places_) rank(places);
    rank(lengths_);
  }
  std::uint64_t number() const { return hash_; }

 private:
  void add(Rank own, const Step& step, const Pipeline* loop, Index turn) {
    const StepShape& shape = shape_of(step.kind);
    const auto sources = static_cast<std::size_t>(step.sources);
    const auto [begin, end] = part_of(step, loop, turn, cut_);
    lengths_.push_back(end - begin);
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const Operand& operand = step.operands[i];
      const Where where = (i < sources ? shape_of_source(shape, i) : shape_of_target(shape, i - sources)).where;
      const RankProgram& rank = program_.ranks[static_cast<std::size_t>(own)];
      const auto via = static_cast<std::size_t>(operand.via);
      if (where == Where::here) add(own, operand, begin, end);
      if (where == Where::peer) add(rank.remote_buffers[via].rank, operand, begin, end);
      if (where == Where::group)
        for (const Rank member : rank.switches[via].ranks) add(member, operand, begin, end);
    }
  }
  void add(Rank rank, const Operand& operand, Index begin, Index end) {
    const BufferPlace place = place_of(program_, rank, operand.buffer);
    const Index base = (place.first_chunk + operand.first) * cut_.units;
    auto& places = places_[{rank, place.memory}];
    places.insert(places.end(), {base, base + begin, base + end, base + operand.count * cut_.units});
  }
  void rank(std::vector<Index>& of) {
    std::vector<Index> sorted = of;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const Index one : of) {
      const auto at = std::lower_bound(sorted.begin(), sorted.end(), one) - sorted.begin();
      hash_ = splitmix64(hash_ ^ (static_cast<std::uint64_t>(at) * 0x9e3779b97f4a7c15u));
    }
    // Length 0 is a case of its own, because such a step does nothing.
    hash_ = splitmix64(hash_ + (!sorted.empty() && sorted.front() == 0 ? 1 : 0));
  }

  const Program& program_;
  const Cut cut_;
  std::map<std::pair<Rank, int>, std::vector<Index>> places_;
  std::vector<Index> lengths_;
  std::uint64_t hash_ = 0;
};

}  // namespace

Index turn_units(const Pipeline& loop) noexcept {
  return loop.unit_bytes / cut_unit_bytes + (loop.unit_bytes % cut_unit_bytes != 0);
}
Index turns_of(const Pipeline& loop, Cut cut) noexcept {
  return std::max<Index>(1, round_up_division(loop.chunks * cut.units, turn_units(loop)));
}

Part part_of(const Step& step, const Pipeline* loop, Index turn, Cut cut) noexcept {
  Part part{0, step.operands.empty() ? 0 : step.operands[0].count * cut.units};
  if (loop) {
    part.begin = std::min(part.end, turn * turn_units(*loop));
    part.end = std::min(part.end, part.begin + turn_units(*loop));
  }
  if (step.shares > 0) {
    const UnitRange own = share_of(part.end - part.begin, step.share, step.shares);
    part.begin += own.first;
    part.end = part.begin + own.count;
  }
  return part;
}

std::vector<Cut> cuts_of(const Program& program) {
  const Extremes extremes = extremes_of(program);
  if (extremes.shares == 1 && !extremes.loop) return {{.units = 1}};
  const auto boundaries = [&](Index units) {
    const Index turns = extremes.loop ? turns_of(*extremes.loop, {.units = units}) : 1;
    return turns > boundaries_most ? turns : 4 * extremes.operands * turns;
  };
  // Beyond this size, boundaries at different fractions of a chunk are too far apart for remainders to change their
  // order.
  const Index stable = extremes.shares == 1 ? 1 : extremes.shares * (extremes.shares_max / 2 + 1);
  std::set<Index> sizes = {extremes.shares, 2 * extremes.shares + 1};
  if (extremes.loop) {
    const Index turn = turn_units(*extremes.loop), chunks = extremes.loop->chunks;
    const auto add = [&](Index turns, Index last) {
      sizes.insert(round_up_division((turns - 1) * turn + std::min(last, turn), chunks));
    };
    const Index many = extremes.semaphore_max + 2;
    for (const Index turns : {Index(1), Index(2), Index(3), many})
      for (const Index last : {Index(1), std::max<Index>(1, turn - 1), turn}) add(turns, last);
    for (const Index turns : {1, 2, 3})
      for (Index last = 2; last <= 2 * std::min(extremes.shares_max, sizes_max) && extremes.shares > 1; ++last)
        add(turns, last);
  }
  Index looked_at = 0;
  for (const Index units : sizes) looked_at += boundaries(units);
  if (looked_at > boundaries_most)
    throw_error(ErrorCode::unsupported, "verification would examine {} of shares and turns: the limit is {}",
                amount(looked_at, "boundary", "boundaries"), boundaries_most);
  for (Index units = 1; units <= std::min(stable, sizes_max) && looked_at < boundaries_max; ++units)
    if (sizes.insert(units).second) looked_at += boundaries(units);
  std::vector<Cut> out;
  std::set<std::uint64_t> orders;
  for (const Index units : sizes)
    if (orders.insert(Order(program, {.units = units}).number()).second) out.push_back({.units = units});
  return out;
}

}  // namespace tranship::verification
