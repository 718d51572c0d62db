#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/program/symbolic_value.hpp>

namespace tranship {

ValueTable::ValueTable() {
  entries_.emplace_back();  // undefined
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

/// Of what is alone in a sum: of the leaf and its displacement against the first.
ValueTable::Hash ValueTable::hash_of(std::int32_t entry, Reduction reduction, Index displacement) const {
  const Entry& one = entries_[static_cast<std::size_t>(entry)];
  if (one.inputs > 1 && one.reduction == reduction && displacement == 0) return one.hash;
  std::vector<Leaf> leaves;
  collect(entry, displacement, reduction, leaves);
  Hash sum;
  for (const auto& [leaf, at] : leaves) {
    const std::uint64_t seed =
        splitmix64(static_cast<std::uint64_t>(leaf) + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(at));
    sum.low += splitmix64(seed ^ 0x243f6a8885a308d3u);
    sum.high += splitmix64(seed ^ 0x13198a2e03707344u);
  }
  return sum;
}

void ValueTable::collect(std::int32_t entry, Index displacement, Reduction reduction, std::vector<Leaf>& out) const {
  struct Part {
    std::int32_t entry;
    Index displacement;
  };
  std::vector<Part> open = {{entry, displacement}};
  while (!open.empty()) {
    const Part part = open.back();
    open.pop_back();
    const Entry& one = entries_[static_cast<std::size_t>(part.entry)];
    if (one.inputs <= 1 || one.reduction != reduction) {
      out.emplace_back(part.entry, part.displacement);
      continue;
    }
    open.push_back({one.b, part.displacement + one.between});
    open.push_back({one.a, part.displacement});
  }
}

Value ValueTable::combine(Reduction reduction, const Value& a, const Value& b) {
  if (a.is_undefined() || b.is_undefined()) return {};
  const Index between = b.displacement - a.displacement;
  const auto [at, is_new] =
      combined_.emplace(std::tuple(reduction, a.entry, b.entry, between), static_cast<std::int32_t>(entries_.size()));
  if (is_new) {
    const Entry &left = entries_[static_cast<std::size_t>(a.entry)],
                &right = entries_[static_cast<std::size_t>(b.entry)];
    Entry entry;
    entry.reduction = reduction;
    entry.inputs = (is_of(left, reduction) ? left.inputs : 1) + (is_of(right, reduction) ? right.inputs : 1);
    const Hash first = hash_of(a.entry, reduction, 0), second = hash_of(b.entry, reduction, between);
    entry.hash = {first.low + second.low, first.high + second.high};
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

bool ValueTable::are_equal(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a.is_undefined() || b.is_undefined()) return false;
  const Entry &one = entries_[static_cast<std::size_t>(a.entry)], &other = entries_[static_cast<std::size_t>(b.entry)];
  if (one.inputs == 1 && other.inputs == 1) return false;
  const Reduction reduction = one.inputs > 1 ? one.reduction : other.reduction;
  if ((one.inputs > 1 && other.inputs > 1 && one.reduction != other.reduction)) return false;
  const bool is_idempotent = reduction == Reduction::minimum || reduction == Reduction::maximum;
  // Hashes are relative to the first input, whose place may differ.
  if (a.displacement == b.displacement && one.hash == other.hash && one.inputs == other.inputs) return true;
  if (one.inputs != other.inputs && !is_idempotent) return false;
  std::vector<Leaf> mine, theirs;
  collect(a.entry, a.displacement, reduction, mine);
  collect(b.entry, b.displacement, reduction, theirs);
  for (auto* const leaves : {&mine, &theirs}) {
    std::sort(leaves->begin(), leaves->end());
    if (is_idempotent) leaves->erase(std::unique(leaves->begin(), leaves->end()), leaves->end());
  }
  return mine == theirs;
}

std::string ValueTable::text(const Value& value, Index at, Index units) const {
  if (value.is_undefined()) return "what nothing has written";
  const Entry& entry = entries_[static_cast<std::size_t>(value.entry)];
  const auto place = [&](Index displacement) { return (at + displacement) / units; };
  const auto input_text = [&](const Entry& one, Index displacement) {
    return fmt::format("chunk {} of the input of rank {} (launch {})", place(displacement), one.rank, one.launch);
  };
  if (entry.inputs == 1) return input_text(entry, value.displacement);
  std::vector<Leaf> leaves;
  collect(value.entry, value.displacement, entry.reduction, leaves);
  std::vector<std::string> parts;
  constexpr std::size_t shown_max = 16;
  for (const auto& [leaf, displacement] : leaves) {
    if (parts.size() == shown_max) break;
    const Entry& one = entries_[static_cast<std::size_t>(leaf)];
    parts.push_back(one.rank >= 0 ? input_text(one, displacement) : "a " + std::string(name_of(one.reduction)));
  }
  if (leaves.size() > shown_max) parts.push_back(fmt::format("{} others", leaves.size() - shown_max));
  return fmt::format("the {} of {}", name_of(entry.reduction), join_text(parts, ", "));
}

}  // namespace tranship
