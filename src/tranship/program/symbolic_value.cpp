#include "tranship/program/symbolic_value.hpp"

#include <algorithm>
#include <set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>

namespace tranship {
namespace {

constexpr Index inputs_max = Index(1) << 61;  // twice this can be counted without overflow
constexpr std::uint64_t prime = (std::uint64_t(1) << 61) - 1;
constexpr std::uint64_t points[2] = {0x1c3a5e7f9b2d4861u % prime, 0x0f1e2d3c4b5a6978u % prime};

__extension__ using Product = unsigned __int128;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  const Product product = Product(a) * b;
  const std::uint64_t sum = (static_cast<std::uint64_t>(product) & prime) + static_cast<std::uint64_t>(product >> 61);
  return sum >= prime ? sum - prime : sum;
}
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return a + b >= prime ? a + b - prime : a + b;
}
/// `point` to the power of `exponent`, which may be negative: powers repeat with period prime - 1.
std::uint64_t power(std::uint64_t point, Index exponent) {
  constexpr auto period = static_cast<Index>(prime - 1);
  std::uint64_t out = 1;
  for (auto e = static_cast<std::uint64_t>((exponent % period + period) % period); e > 0; e /= 2) {
    if (e % 2 == 1) out = times(out, point);
    point = times(point, point);
  }
  return out;
}

}  // namespace

ValueTable::ValueTable() {
  entries_.emplace_back();  // entry 0: undefined
}

std::size_t ValueTable::CombinationHash::operator()(const Combination& one) const noexcept {
  const std::uint64_t entries = (std::uint64_t(std::uint32_t(one.a)) << 32) | std::uint32_t(one.b);
  return splitmix64(splitmix64(entries) + 31 * static_cast<std::uint64_t>(one.between) +
                    static_cast<std::uint64_t>(one.reduction));
}

std::int32_t ValueTable::input(Rank rank, int launch) {
  const auto [at, is_new] = inputs_.emplace(std::pair(rank, launch), static_cast<std::int32_t>(entries_.size()));
  if (!is_new) return at->second;
  Entry entry;
  entry.rank = rank;
  entry.launch = launch;
  entry.inputs = 1;
  entries_.push_back(entry);
  return at->second;
}

ValueTable::Hash ValueTable::hash_of(std::int32_t entry, Reduction reduction, Index displacement) const {
  Hash hash = of(entry).hash;
  if (is_leaf(entry, reduction)) {
    const auto seed = static_cast<std::uint64_t>(entry);
    hash = {splitmix64(seed ^ 0x243f6a8885a308d3u) % prime, splitmix64(seed ^ 0x13198a2e03707344u) % prime};
  }
  if (displacement == 0) return hash;
  return {times(hash.first, power(points[0], displacement)), times(hash.second, power(points[1], displacement))};
}

std::vector<ValueTable::Leaf> ValueTable::leaves_of(const Value& value, Reduction reduction,
                                                    std::size_t count_max) const {
  std::vector<Leaf> out, open = {{value.entry, value.displacement}};
  std::set<Leaf> seen;
  while (!open.empty() && out.size() < count_max && seen.size() < 4 * leaves_max) {
    const auto [entry, displacement] = open.back();
    open.pop_back();
    if (!seen.insert({entry, displacement}).second) continue;
    if (is_leaf(entry, reduction)) {
      out.emplace_back(entry, displacement);
      continue;
    }
    open.emplace_back(of(entry).b, displacement + of(entry).between);
    open.emplace_back(of(entry).a, displacement);
  }
  return out;
}

Value ValueTable::combine(Reduction reduction, const Value& a, const Value& b) {
  if (a.is_undefined() || b.is_undefined()) return {};
  const Index between = b.displacement - a.displacement;
  const auto [at, is_new] =
      combined_.emplace(Combination{reduction, a.entry, b.entry, between}, static_cast<std::int32_t>(entries_.size()));
  if (is_new) {
    const auto inputs = [&](std::int32_t entry) { return is_leaf(entry, reduction) ? 1 : of(entry).inputs; };
    Entry entry;
    entry.reduction = reduction;
    entry.inputs = std::min(inputs_max, inputs(a.entry) + inputs(b.entry));
    const Hash first = hash_of(a.entry, reduction, 0), second = hash_of(b.entry, reduction, between);
    entry.hash = {plus(first.first, second.first), plus(first.second, second.second)};
    entry.a = a.entry;
    entry.b = b.entry;
    entry.between = between;
    entries_.push_back(entry);
  }
  return {at->second, a.displacement};
}

std::int32_t ValueTable::all_inputs(Reduction reduction, Rank ranks, int launch) {
  const auto [at, is_new] = all_.emplace(std::tuple(reduction, ranks, launch), 0);
  if (is_new) {
    Value sum{.entry = input(0, launch)};
    for (Rank rank = 1; rank < ranks; ++rank) sum = combine(reduction, sum, {.entry = input(rank, launch)});
    at->second = sum.entry;
  }
  return at->second;
}

bool ValueTable::are_equal(const Value& a, const Value& b) const {
  if (a.is_undefined() || b.is_undefined()) return false;
  if (a == b) return true;
  const Entry &one = of(a.entry), &other = of(b.entry);
  if (one.inputs == 1 && other.inputs == 1) return false;
  if (one.inputs > 1 && other.inputs > 1 && one.reduction != other.reduction) return false;
  const Reduction reduction = one.inputs > 1 ? one.reduction : other.reduction;
  if (one.inputs == other.inputs && one.inputs < inputs_max &&
      hash_of(a.entry, reduction, a.displacement) == hash_of(b.entry, reduction, b.displacement))
    return true;
  if (reduction != Reduction::minimum && reduction != Reduction::maximum) return false;
  std::vector<Leaf> mine = leaves_of(a, reduction, leaves_max), theirs = leaves_of(b, reduction, leaves_max);
  if (mine.size() != theirs.size() || mine.size() == leaves_max) return false;
  std::sort(mine.begin(), mine.end());
  std::sort(theirs.begin(), theirs.end());
  return mine == theirs;
}

std::string ValueTable::text(const Value& value, Index at, Index units, int launch) const {
  if (value.is_undefined()) return "made of what nothing has written";
  const Entry& entry = of(value.entry);
  const auto place = [&](Index displacement) { return (at + displacement) / units; };
  const auto input_text = [&](const Entry& one, Index displacement) {
    return fmt::format("input[{}] of rank {}{}", place(displacement), one.rank,
                       one.launch == launch ? "" : fmt::format(" of launch {}", one.launch));
  };
  if (entry.inputs == 1) return input_text(entry, value.displacement);
  constexpr std::size_t shown_max = 16;
  std::vector<std::string> parts;
  for (const auto& [leaf, displacement] : leaves_of(value, entry.reduction, shown_max))
    parts.push_back(of(leaf).rank >= 0 ? input_text(of(leaf), displacement)
                                       : "a " + std::string(name_of(of(leaf).reduction)));
  if (const Index others = entry.inputs - static_cast<Index>(parts.size()); others > 0)
    parts.push_back(fmt::format("{}", amount(others, "other")));
  return fmt::format("the {} of {}", name_of(entry.reduction), join_text(parts, ", "));
}

}  // namespace tranship
