// One-sided operations on views of symmetric memory, as Python calls them. The views name this rank's own memory;
// Context checks that it is symmetric.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>

#include "rank_handle.hpp"

namespace tranship::python {

/// `owner` keeps the memory of a transfer that does not block.
void put_view(RankHandle& rank, const StridedView& target, const StridedView& source, Rank peer, bool blocking,
              nb::handle owner);
void get_view(RankHandle& rank, const StridedView& target, const StridedView& source, Rank peer, bool blocking,
              nb::handle owner);
struct SignalArgs {
  const StridedView& word;  ///< whose first element is meant
  nb::int_ value;
  SignalOp op;
};
void put_signal_view(RankHandle& rank, const StridedView& target, const StridedView& source, const SignalArgs& signal,
                     Rank peer, bool blocking, nb::handle owner);
void signal_view(RankHandle& rank, const SignalArgs& signal, Rank peer);

/// Elements of i4, u4, i8 or u8, of which the first one is meant; atomics but compare_swap also take f4 and f8.
nb::object wait_for_view(RankHandle& rank, const StridedView& variable, Comparison comparison, const nb::int_& value);
bool test_view(RankHandle& rank, const StridedView& variable, Comparison comparison, const nb::int_& value);
/// The waits for several variables, and the tests of them.
enum class Several : std::int32_t { wait_until_all, wait_until_any, wait_until_some, test_all, test_any, test_some };
constexpr const char* several_names[] = {"wait_until_all", "wait_until_any", "wait_until_some",
                                         "test_all",       "test_any",       "test_some"};
/// Puts the places of variables that compare so into `places`, which has room for all, and returns how many there are:
/// none where a test has found none, and all where `all` of them do. `wanted` has one value, or one for each variable,
/// and `skip` is empty or has one number for each, where any but 0 leaves the variable out; else throws `invalid_use`.
template <class T>
Index look_at_several(Context& rma, Several what, Symmetric<T> words, std::span<Index> places, Comparison comparison,
                      std::span<const T> wanted, std::span<const int> skip, CallSite where) {
  const char* const name = several_names[int(what)];
  const auto count = std::size_t(words.size());
  if (wanted.size() != 1 && wanted.size() != count)
    throw_error(ErrorCode::invalid_use, "{} takes one value or one for each variable: {} for {}", name, wanted.size(),
                count);
  if (!skip.empty() && skip.size() != count)
    throw_error(ErrorCode::invalid_use, "{} takes a status for each variable: {} for {}", name, skip.size(), count);
  std::vector<T> each;
  if (wanted.size() != count) {
    each.assign(count, wanted[0]);
    wanted = each;
  }
  const auto first = [&](Index found) { return found < 0 ? 0 : (places[0] = found, 1); };
  switch (what) {
    case Several::wait_until_some:
      return rma.wait_until_some(words, places, comparison, wanted, skip, where);
    case Several::wait_until_any:
      return first(rma.wait_until_any(words, comparison, wanted, skip, where));
    case Several::test_some:
      return rma.test_some(words, places, comparison, wanted, skip, where);
    case Several::test_any:
      return first(rma.test_any(words, comparison, wanted, skip, where));
    case Several::test_all:
      if (!rma.test_all(words, comparison, wanted, skip, where)) return 0;
      break;
    case Several::wait_until_all:
      rma.wait_until_all(words, comparison, wanted, skip, where);
      break;
  }
  std::iota(places.begin(), places.end(), Index(0));
  return words.size();
}
std::vector<Index> several(RankHandle& rank, const std::string& what, const StridedView& variables,
                           Comparison comparison, const std::vector<nb::int_>& values, const std::vector<int>& skip);
nb::object update_view(RankHandle& rank, const StridedView& at, const std::string& op, const nb::object& value,
                       const nb::object& compare, Rank peer);

/// The elements of a view as the library takes them: throws `invalid_use` where they do not lie side by side.
SymmetricSpan span_of(const StridedView& view, const std::string& what);

Comparison comparison_named(const std::string& name);
SignalOp signal_op_named(const std::string& name);

}  // namespace tranship::python
