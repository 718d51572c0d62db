#include "tranship/memory/device/stream.hpp"

#include <ctime>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/memory/device/host_device.hpp>
#include <tranship/memory/device/prepared_moves.hpp>

namespace tranship {

namespace {

/// The list of a device whose memory host functions address.
struct ListOfHost final : PreparedMoves {
  ListOfHost(Device of, std::span<const BlockMove> moves, std::size_t count) : device(of), bases(count) {
    for (const BlockMove& one : moves) (one.map == ElementMap::copy ? copies : maps).push_back(one);
  }
  Device device;
  std::size_t bases;
  std::vector<BlockMove> copies, maps;
};

}  // namespace

void check_moves(std::span<const BlockMove> moves, std::span<const int> alignments) {
  for (std::size_t i = 0; i < alignments.size(); ++i)
    if (const int one = alignments[i]; one < 1 || one > 16 || (one & (one - 1)) != 0)
      throw_error(ErrorCode::invalid_use, "the alignment of base {} is {}; it must be 1, 2, 4, 8 or 16", i, one);
  for (const BlockMove& one : moves) {
    for (const unsigned base : {one.source_base, one.target_base})
      if (base >= alignments.size())
        throw_error(ErrorCode::invalid_use, "a move names base {}, but there {} {}", base,
                    plural(alignments.size(), "is", "are"), amount(alignments.size(), "base"));
    if (one.map == ElementMap::copy) check_width(one.width);
    if (one.map > ElementMap::maximum || !can_move(one.map, one.arithmetic, one.width))
      throw_error(ErrorCode::invalid_use, "elements of {} cannot be moved with map {} and arithmetic {}",
                  amount(one.width, "byte"), int(one.map), int(one.arithmetic));
    check_extents(one.block);
  }
}

void check_prepared(Device made_for, Device device, std::size_t bases, std::size_t given) {
  if (made_for != device)
    throw_error(ErrorCode::invalid_use, "a list of moves was prepared for {}, but the stream is of {}",
                to_string(made_for), to_string(device));
  if (given != bases)
    throw_error(ErrorCode::invalid_use, "a list of moves has {}, but {} given", amount(bases, "base"),
                given == 1 ? "1 address is" : fmt::format("{} addresses are", given));
}

void settle(Event event, Deadline deadline) {
  try {
    finish(event, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_lost) throw;
  }
  while (!is_at_rest(event)) {
    if (deadline.passed())
      throw_error(ErrorCode::timeout, "lost work on a stream of {} had not stopped when the deadline passed",
                  to_string(event.stream->device()));
    const std::timespec pause{0, 10'000};
    ::nanosleep(&pause, nullptr);
  }
}

std::shared_ptr<const PreparedMoves> Stream::prepare(std::span<const BlockMove> moves,
                                                     std::span<const int> alignments) {
  check_moves(moves, alignments);
  return std::make_shared<ListOfHost>(device(), moves, alignments.size());
}

void Stream::move_list(const std::shared_ptr<const PreparedMoves>& moves, std::span<std::byte* const> bases) {
  const auto list = std::dynamic_pointer_cast<const ListOfHost>(moves);
  if (!list)
    throw_error(ErrorCode::invalid_use, "a list of moves was not prepared by a stream of {}", to_string(device()));
  check_prepared(list->device, device(), list->bases, bases.size());
  std::vector<StreamCopy> copies;
  for (const BlockMove& one : list->copies)
    copies.push_back({.block = one.block,
                      .width = one.width,
                      .source = bases[one.source_base] + one.source_offset,
                      .target = bases[one.target_base] + one.target_offset});
  if (!copies.empty()) copy_list(copies);
  if (list->maps.empty()) return;
  run_on(*this, [list, at = std::vector<std::byte*>(bases.begin(), bases.end())] {
    for (const BlockMove& one : list->maps)
      move_on_host(one.block, one.map, one.arithmetic, one.width, CopyMethod(), at[one.source_base] + one.source_offset,
                   at[one.target_base] + one.target_offset);
  });
}

}  // namespace tranship
