// Private: the words that layout texts and layout JSON share, in both directions.
#pragma once

#include <optional>
#include <string_view>

#include <tranship/layout/partition.hpp>

namespace tranship {

inline constexpr PartitionKind partition_kinds[] = {PartitionKind::whole, PartitionKind::block, PartitionKind::cyclic,
                                                    PartitionKind::irregular};
inline constexpr Remainder remainders[] = {Remainder::low, Remainder::high, Remainder::ceil};
inline constexpr EdgePolicy edge_policies[] = {EdgePolicy::truncate,  EdgePolicy::toroidal,        EdgePolicy::zero,
                                               EdgePolicy::replicate, EdgePolicy::replicate_local, EdgePolicy::open};

/// Returns the value among `all` whose name is `word`.
template <class Enum, std::size_t n>
std::optional<Enum> named(const Enum (&all)[n], std::string_view word) {
  for (const Enum value : all)
    if (word == name_of(value)) return value;
  return std::nullopt;
}

/// "whole, block, cyclic or irregular"
template <class Enum, std::size_t n>
std::string listing(const Enum (&all)[n]) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += (i == 0 ? "" : i + 1 < n ? ", " : " or ") + std::string(name_of(all[i]));
  return out;
}

}  // namespace tranship
