// Private: forecast_of, which computes the work of a reshard from layouts and headers alone. Nothing is written.
#pragma once

#include <span>
#include <string>

#include <tranship/file/reshard.hpp>
#include <tranship/file/store/new_arrays.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// Throws `invalid_use` as a run would for too little memory. Does not touch the files of `sources`; `inflated_bytes`
/// of them are made first. Costs the plan of every part.
ReshardForecast forecast_of(std::span<const StoredParts> sources, const NewArrays& made, const std::string& target,
                            Index inflated_bytes, Index memory_bytes, int threads);

}  // namespace tranship
