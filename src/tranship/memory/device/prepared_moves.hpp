// Private: the checks that every kind of device makes of lists of moves (Stream::prepare).
#pragma once

#include <cstddef>
#include <span>

#include <tranship/memory/device/stream.hpp>

namespace tranship {

/// Throws `invalid_use` as Stream::prepare does.
void check_moves(std::span<const BlockMove> moves, std::span<const int> alignments);
/// Throws `invalid_use` as Stream::move_list does, for a list of `bases` bases that was made for a device.
void check_prepared(Device made_for, Device device, std::size_t bases, std::size_t given);

}  // namespace tranship
