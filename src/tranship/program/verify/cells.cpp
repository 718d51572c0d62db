#include "tranship/program/verify/cells.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace tranship::verification {
namespace {
// Deeper chains are dropped, since they are destroyed by recursion. That can only lead to a refusal.
constexpr int depth_max = 2048;
constexpr std::size_t looked_at_max = 4096;
}  // namespace

std::map<Index, Cell>::iterator Memory::cut(Index at) {
  auto found = cells_.upper_bound(at);
  if (found == cells_.begin()) return found;
  --found;
  if (found->first == at) return found;
  if (found->second.end <= at) return std::next(found);
  Cell rest = found->second;
  *stamps_ += static_cast<Index>(1 + rest.reads.size() + rest.twins.size());
  found->second.end = at;
  return cells_.emplace_hint(std::next(found), at, std::move(rest));
}

Links followed(const Stamp& writer, const Links& of_writer, Index between) {
  const int depth = of_writer ? of_writer->depth + 1 : 0;
  return std::make_shared<const LinkNode>(LinkNode{.timeline = writer.timeline,
                                                   .time = writer.time,
                                                   .between = between,
                                                   .of_writer = depth > depth_max ? nullptr : of_writer,
                                                   .other = nullptr,
                                                   .depth = depth > depth_max ? 0 : depth});
}

Links joined(const Links& a, const Links& b) {
  if (!a || !b || a == b) return a ? a : b;
  const int depth = std::max(a->depth, b->depth) + 1;
  if (depth > depth_max) return a->depth < b->depth ? a : b;
  return std::make_shared<const LinkNode>(LinkNode{.of_writer = a, .other = b, .depth = depth});
}

bool leads_to(const Links& links, const Stamp& before, Index between, Index& work) {
  if (!links) return false;
  std::vector<std::pair<const LinkNode*, Index>> open = {{links.get(), 0}};
  std::set<std::pair<const LinkNode*, Index>> seen;
  while (!open.empty() && seen.size() < looked_at_max) {
    const auto [node, displacement] = open.back();
    open.pop_back();
    if (!seen.insert({node, displacement}).second) continue;
    ++work;
    if (node->timeline == before.timeline && node->time == before.time && displacement + node->between == between)
      return true;
    if (node->of_writer) open.emplace_back(node->of_writer.get(), displacement + node->between);
    if (node->other) open.emplace_back(node->other.get(), displacement);
  }
  return false;
}

}  // namespace tranship::verification
