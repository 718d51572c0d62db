// Detail: WaitNote, what a wait says of itself when it takes long: on the board to other ranks, and in its failure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

/// "==", ">=" ...
const char* symbol_of(Comparison comparison) noexcept;

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

  /// The flag that is awaited, if it is one: index -1 where there is none. For flags in the symmetric heap the index is
  /// the offset in bytes from the start of the heap.
  Rank flag_rank = -1;
  std::int64_t flag_index = -1;
  Comparison comparison = Comparison::greater_equal;
  /// Whether `wanted` and `seen` are signed.
  bool is_signed = false;
  std::uint64_t wanted = 0;
  std::uint64_t seen = 0;
  /// What is said of the flag: what is wanted and seen, what is seen alone, or where it lies.
  enum class Shows : std::uint8_t { comparison, value, place } shows = Shows::comparison;

  template <class T>
  void wants(Comparison how, T value) noexcept {
    comparison = how;
    is_signed = std::is_signed_v<T>;
    wanted = static_cast<std::uint64_t>(std::int64_t(value));
  }
  template <class T>
  void sees(T value) noexcept {
    seen = static_cast<std::uint64_t>(std::int64_t(value));
  }
};

/// "barrier (rank 1, flag 0 >= 3, sees 2; rank 1 should raise it)".
std::string to_string(const WaitNote& note);
/// "halo.cpp", without folders.
std::string_view file_name(CallSite where);
/// "halo.cpp:12"; of line 0, which stands for a function of an interface in C, its name.
std::string short_name(CallSite where);

}  // namespace tranship
