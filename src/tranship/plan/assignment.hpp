// Private: The assignment problem: which rank takes which part, so that all together gain the most. Solved exactly.
#pragma once

#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// The column of each row of a square matrix (`gains`, row-major, none negative), each column once, such that the sum
/// of the gains is the largest; of such assignments the one with the most rows in the column of their own number. The
/// result is the same on every machine. Takes time in proportion to the size of the matrix times some dozens, at worst
/// times its rows; and memory for a few rows, or for a second matrix where gains are above 2^61 / rows^2 or so.
std::vector<Index> best_assignment(const std::vector<Index>& gains, Index rows);

}  // namespace tranship
