// Private: agree, by which an error on one member of a team becomes an error on all of them. Members must agree before
// they make the next collective call, else those that go on would wait for one that has failed.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>

#include <tranship/base/error.hpp>
#include <tranship/base/result.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

namespace detail {
Error no_memory_to(const char* purpose);
}

/// Runs `f` and gives the Error that it throws; `no_memory` where it runs out of memory, which other ranks must learn,
/// too. `purpose` completes "no memory to ...".
template <class F>
Result<void> tried(const char* purpose, F&& f) {
  try {
    f();
    return {};
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return detail::no_memory_to(purpose);
  }
}

/// Values that must be equal on all members that bring one. Combined by joined(), this names the lowest member that
/// brings a value, and the lowest one whose value differs from it.
template <class T>
struct Alike {
  T first{};
  T other{};
  int first_member = -1;  ///< -1: no member brings a value
  int other_member = -1;  ///< -1: all values are equal

  static Alike of(int member, const T& value) { return {.first = value, .first_member = member}; }
  bool differ() const { return other_member >= 0; }

  friend Alike joined(const Alike& a, const Alike& b) {
    if (b.first_member < 0) return a;
    if (a.first_member < 0 || b.first_member < a.first_member) return a.first_member < 0 ? b : joined(b, a);
    Alike out = a;
    const auto consider = [&](const T& value, int member) {
      if (member < 0 || value == a.first || (out.other_member >= 0 && out.other_member < member)) return;
      out.other = value;
      out.other_member = member;
    };
    consider(b.first, b.first_member);
    consider(b.other, b.other_member);
    return out;
  }
};

namespace detail {

/// The lowest member that has failed.
struct Failure {
  int member = -1;
  int code = 0;
  std::uint64_t message_bytes = 0;

  static Failure of(const Team& team, const Result<void>& mine);
  friend Failure joined(const Failure& a, const Failure& b) {
    if (a.member < 0 || b.member < 0) return a.member < 0 ? b : a;
    return a.member < b.member ? a : b;
  }
};
[[noreturn]] void fail_together(Team& team, const Failure& failure, const Result<void>& mine, std::string_view cannot,
                                CallSite where);

}  // namespace detail

/// Collective: the terms of all members, combined as Team::reduce does. Where `mine` is an error on some member, throws
/// on all: on those that have failed their own error, on the others that of the lowest of these. `cannot` completes
/// "rank 3 ..." in their message; where it is empty, they throw the error as it is. One reduction where no member has
/// failed.
template <Gatherable T, class Combine>
T agree(Team& team, const Call& call, const Result<void>& mine, const T& terms, Combine&& combine,
        std::string_view cannot, CallSite where) {
  struct Record {
    detail::Failure failure;
    T terms;
  };
  const Record all = team.reduce(
      call, Record{detail::Failure::of(team, mine), terms},
      [&](const Record& a, const Record& b) {
        return Record{joined(a.failure, b.failure), combine(a.terms, b.terms)};
      },
      where);
  if (all.failure.member >= 0) detail::fail_together(team, all.failure, mine, cannot, where);
  return all.terms;
}
/// The same without terms.
void agree(Team& team, const Call& call, const Result<void>& mine, std::string_view cannot, CallSite where);

}  // namespace tranship
