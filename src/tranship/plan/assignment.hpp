// Private: The assignment problem: decides which rank takes which part, so that the sum of the gains is the largest.
#pragma once

#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// Returns the column of each row of a square matrix (`gains`, row-major, none negative). Each column is used once, and
/// the sum of the gains is the largest possible. Among such assignments it chooses one with the most rows in the column
/// of their own number, and the same one on every machine. Time is the size of the matrix times a few dozen, at worst
/// times its rows. Memory is a few rows, or a second matrix if gains exceed about 2^61 / rows^2.
std::vector<Index> best_assignment(const std::vector<Index>& gains, Index rows);

}  // namespace tranship
