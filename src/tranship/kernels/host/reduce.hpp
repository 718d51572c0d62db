// Private: combining one array into another, element by element, as collective operations do.
#pragma once

#include <cstddef>

#include <tranship/base/element_type.hpp>
#include <tranship/base/reduction.hpp>

namespace tranship::detail {

/// Complex numbers have sums only; only integers and bools have bits.
bool can_reduce(Reduction reduction, ElementType type) noexcept;

/// Each element of `to` becomes itself combined with that of `from`. Which one comes first matters for no reduction.
void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, Reduction reduction, ElementType type);

}  // namespace tranship::detail
