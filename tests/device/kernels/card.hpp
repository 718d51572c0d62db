// Declares the functions by which device_kernels runs jobs on the card, in terms of the CPU. No header of CUDA is
// needed here.
#pragma once

#include <vector>

#include <tranship/kernels/indexed_copy.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace tranship::device {

/// Describes a block that one thread moves between places of two buffers.
struct MoveJob {
  CopyBlock block;
  ElementMap move = ElementMap::copy;
  Arithmetic arithmetic = Arithmetic::none;
  int width = 1;
  long long source_at = 0;
  long long target_at = 0;
};
/// Describes rows that one thread moves. Lists are places in an array of rows, or -1 if absent.
struct IndexedJob {
  IndexedBlock block;
  long long source_rows_at = -1;
  long long target_rows_at = -1;
  ElementMap move = ElementMap::copy;
  Arithmetic arithmetic = Arithmetic::none;
  int width = 1;
  long long source_at = 0;
  long long target_at = 0;
};

/// Runs the jobs, all at once or one after the other by a single thread, and returns the target buffer.
enum class Threads { many, one };
std::vector<unsigned char> moved_on_card(const std::vector<MoveJob>& jobs, const std::vector<unsigned char>& source,
                                         const std::vector<unsigned char>& target, Threads threads);
std::vector<unsigned char> moved_on_card(const std::vector<IndexedJob>& jobs, const std::vector<long long>& rows,
                                         const std::vector<unsigned char>& source,
                                         const std::vector<unsigned char>& target);
/// Fills each job's target with an element of the source, or with zeros where `source_at` is negative.
std::vector<unsigned char> filled_on_card(const std::vector<MoveJob>& jobs, const std::vector<unsigned char>& source,
                                          const std::vector<unsigned char>& target);
/// Returns the jobs with canonical blocks.
std::vector<MoveJob> canonical_on_card(const std::vector<MoveJob>& jobs);
/// Runs write_identity() for each job at its target.
std::vector<unsigned char> identities_on_card(const std::vector<MoveJob>& jobs,
                                              const std::vector<unsigned char>& target);

/// Each kind computes a result from each of 2^16 numbers: all that there are, or those with the upper bits `chunk`.
enum class Halves { f16_to_float, bf16_to_float, float_to_f16, float_to_bf16, f16_sum, f16_product };
inline constexpr const char* names_of_halves[] = {"f16 to f32",  "bf16 to f32", "f32 to f16",
                                                  "f32 to bf16", "f16 + f16",   "f16 * f16"};
TRANSHIP_SHARED inline unsigned half_result(Halves kind, unsigned chunk, unsigned low) {
  const unsigned all = chunk << 16 | low;
  const auto number = static_cast<unsigned short>(low);
  if (kind == Halves::f16_to_float) return __builtin_bit_cast(unsigned, float_of_f16(number));
  if (kind == Halves::bf16_to_float) return __builtin_bit_cast(unsigned, float_of_bf16(number));
  if (kind == Halves::float_to_f16) return f16_of_float(__builtin_bit_cast(float, all));
  if (kind == Halves::float_to_bf16) return bf16_of_float(__builtin_bit_cast(float, all));
  const float a = float_of_f16(static_cast<unsigned short>(chunk)), b = float_of_f16(number);
  return f16_of_float(kind == Halves::f16_sum ? a + b : a * b);
}
/// Returns what a result adds to the sum of its chunk. One wrong result always changes the sum: a difference times an
/// odd number is not zero in 32 bits.
TRANSHIP_SHARED inline unsigned long long term_of(unsigned result, unsigned low) {
  return static_cast<unsigned long long>(result * (2 * low + 1));
}
/// Returns the sums of terms of chunks first, first + step, ...
std::vector<unsigned long long> half_sums_on_card(Halves kind, unsigned first, unsigned step, unsigned count);
std::vector<unsigned> half_results_on_card(Halves kind, unsigned chunk);

}  // namespace tranship::device
