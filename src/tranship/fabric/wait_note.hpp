// WaitNote: what a wait says of itself when it takes long: shown on the board to other ranks, and in its own failure.
#pragma once

#include <cstdint>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// Passed to every wait. The predicate of a wait may update the note that its caller holds, as what it waits for moves
/// on.
struct WaitNote {
  static constexpr Rank anyone = -1;

  WaitNote(const char* what, Rank who = anyone, CallSite from = CallSite::here())
      : label(what), raised_by(who), where(from) {}

  /// What is awaited, as in "waiting for <label>". Must live until the wait returns; the board copies its first 47
  /// bytes.
  const char* label;
  /// The rank without which the wait cannot end. If that rank's function has returned, the wait fails at once.
  Rank raised_by;
  CallSite where;

  /// The flag that is awaited, if it is one: index -1 where there is none.
  Rank flag_rank = -1;
  int flag_index = -1;
  std::uint64_t wanted = 0;
  std::uint64_t seen = 0;
};

}  // namespace tranship
