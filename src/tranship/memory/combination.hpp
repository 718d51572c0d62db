// Private: combines elements on streams and on the host: identity elements, rows, blocks.
#pragma once

#include <tranship/base/combine.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/kernels/host/element_moves.hpp>
#include <tranship/memory/device/stream.hpp>
#include <tranship/memory/region.hpp>

namespace tranship::detail {

/// Writes the identity of a combination to `count` consecutive elements.
void write_identity(Combine combine, ElementType type, Index count, void* target);

/// Enqueues writes of the identity to a region of a view. Needs no kernels of the device.
void fill_identity(Combine combine, const StridedView& view, const Region& region, Stream& stream);

/// target = combine(target, source) for `count` consecutive elements; source and target must not overlap.
void combine_row(Combine combine, ElementType type, Index count, const void* source, void* target);
/// The host implementation of Stream::combine.
void combine_block(Combine combine, ElementType type, const CopyBlock& block, const void* source, void* target);
/// Throws `invalid_use` when can_combine() returns false.
void check_combination(Combine combine, ElementType type);

}  // namespace tranship::detail
