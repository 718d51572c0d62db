// One-sided operations on views of symmetric memory, as Python calls them. The views name this rank's own memory;
// Context checks that it is symmetric.
#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <tranship/base/strided_view.hpp>
#include <tranship/kernels/word.hpp>

#include "rank_handle.hpp"

namespace tranship::python {

/// `owner` keeps the memory of a transfer that does not block.
void put_view(RankHandle& rank, const StridedView& target, const StridedView& source, Rank peer, bool blocking,
              nb::handle owner);
void get_view(RankHandle& rank, const StridedView& target, const StridedView& source, Rank peer, bool blocking,
              nb::handle owner);
struct SignalArgs {
  const StridedView& word;  ///< its first element is the signal
  nb::int_ value;
  SignalOp op;
};
void put_signal_view(RankHandle& rank, const StridedView& target, const StridedView& source, const SignalArgs& signal,
                     Rank peer, bool blocking, nb::handle owner);
void signal_view(RankHandle& rank, const SignalArgs& signal, Rank peer);

/// These use the first element of a view of i4, u4, i8 or u8; all atomics except compare_swap also take f4 and f8.
nb::object wait_for_view(RankHandle& rank, const StridedView& variable, Comparison comparison, const nb::int_& value);
bool test_view(RankHandle& rank, const StridedView& variable, Comparison comparison, const nb::int_& value);
std::vector<Index> several(RankHandle& rank, const std::string& what, const StridedView& variables,
                           Comparison comparison, const std::vector<nb::int_>& values, const std::vector<int>& skip);
nb::object update_view(RankHandle& rank, const StridedView& at, const std::string& op, const nb::object& value,
                       const nb::object& compare, Rank peer);

Comparison comparison_named(const std::string& name);
SignalOp signal_op_named(const std::string& name);

}  // namespace tranship::python
