// Private: agree: turns an error of one member of a team into an error of all members. Members must agree before they
// make their next collective call; otherwise the others would wait there for a member that has failed.
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

/// Runs `f` and returns the Error that it throws, or `no_memory` if it runs out of memory, since other ranks must learn
/// of that, too. `purpose` completes "no memory to ...".
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

/// Finds out whether all members that bring a value bring the same one. Combined by joined(), it names the lowest
/// member that brings a value, and the lowest one whose value differs from it.
template <class T>
struct Alike {
  T first{};
  T other{};
  int first_member = -1;  ///< -1 if no member brings a value
  int other_member = -1;  ///< -1 if all values are equal

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

/// Names the lowest member that has failed.
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

/// Collective. Returns the terms of all members, combined as in Team::reduce. If `mine` is an error on any member,
/// throws on all: a member that has failed throws its own error, the others throw that of the lowest member that has.
/// `cannot` completes "rank 3 ..." in their message; if it is empty, they throw the error unchanged. Costs one
/// reduction if no member has failed.
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
/// Agrees without terms.
void agree(Team& team, const Call& call, const Result<void>& mine, std::string_view cannot, CallSite where);

}  // namespace tranship
