// Makes random jobs for device_kernels, in two buffers that all of them share, and computes their results on the CPU:
// by the plain loops of kernels/, by the fast ones of kernels/host, and by brute force.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/card.hpp"

namespace tranship::device {

using Bytes = std::vector<unsigned char>;

struct MoveJobs {
  std::vector<MoveJob> jobs;
  Bytes source, target;
};
struct IndexedJobs {
  std::vector<IndexedJob> jobs;
  std::vector<long long> rows;
  Bytes source, target;
};

/// Selects the machine, because a device does not compute with long double.
enum class For { host, card };
/// Returns all moves of all arithmetics in turn, on blocks of 0 to 8 dimensions whose bases and strides are often odd.
MoveJobs random_moves(std::uint64_t seed, int count, For whom);
IndexedJobs random_rows(std::uint64_t seed, int count, For whom);
/// Returns contiguous rows of `count` numbers, for every move that combines, of every arithmetic.
MoveJobs rows_of_all(std::uint64_t seed, int count, For whom);
/// Returns a write_identity() job for every identity.
MoveJobs all_identities(std::uint64_t seed, For whom);

enum class Loops { plain, fast, brute_force };
inline const char* name_of(Loops loops) {
  return loops == Loops::plain ? "plain loops" : loops == Loops::fast ? "kernels/host" : "brute force";
}
Bytes moved(const MoveJobs& all, Loops loops);
Bytes moved(const IndexedJobs& all, Loops loops);
/// Runs rows_of_all() by reduce_into().
Bytes reduced(const MoveJobs& rows);
Bytes filled(const MoveJobs& all);
std::vector<MoveJob> canonical(std::vector<MoveJob> jobs);
Bytes identities(const MoveJobs& all);

/// Describes the first difference of two target buffers and its job; empty if they agree.
std::string difference(const std::vector<MoveJob>& jobs, const Bytes& wanted, const Bytes& found);
std::string difference(const std::vector<IndexedJob>& jobs, const Bytes& wanted, const Bytes& found);
std::string difference(const std::vector<MoveJob>& wanted, const std::vector<MoveJob>& found);

}  // namespace tranship::device
