// Detail: WaitNote: the description of a wait that takes long, on the board for other ranks and in its error message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

/// Returns "==", ">=" and so on.
const char* symbol_of(Comparison comparison) noexcept;

/// Passed to every wait. The predicate of a wait may update the caller's note while it makes progress.
struct WaitNote {
  static constexpr Rank anyone = -1;

  WaitNote(const char* what, Rank who = anyone, CallSite from = CallSite::here())
      : label(what), raised_by(who), where(from) {}

  /// Completes "waiting for <label>". Must stay valid until the wait returns; the board copies its first 47 bytes.
  const char* label;
  /// The rank without which the wait cannot end. If that rank's function has returned, the wait fails at once.
  Rank raised_by;
  CallSite where;

  /// The flag that the rank waits for; index -1 if it is no flag. For flags in the symmetric heap, the index is the
  /// offset in bytes from the start of the heap.
  Rank flag_rank = -1;
  std::int64_t flag_index = -1;
  Comparison comparison = Comparison::greater_equal;
  /// True if `wanted` and `seen` are signed.
  bool is_signed = false;
  std::uint64_t wanted = 0;
  std::uint64_t seen = 0;
  /// Content of the message about the flag: the wanted and the seen value, the seen value only, or its place.
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

/// Returns a text such as "barrier (rank 1, flag 0 >= 3, sees 2; rank 1 should raise it)".
std::string to_string(const WaitNote& note);
/// Returns a text such as "halo.cpp", without folders.
std::string_view file_name(CallSite where);
/// Returns a text such as "halo.cpp:12"; for line 0, which stands for a function of a C interface, the function's name.
std::string short_name(CallSite where);

}  // namespace tranship
