#include "programs.hpp"

#include <string>

#include <contest/collective.hpp>

#include <tranship/program/algorithms.hpp>

namespace contest {
namespace {

/// Packets have twice the bytes: for larger parts a meeting costs less.
constexpr std::int64_t packets_bytes_max = 512;
/// Up to this size a copy costs less than a second meeting.
constexpr std::int64_t copies_bytes_max = 16384;
/// Up to this size each of two ranks combines the whole input by itself.
constexpr std::int64_t whole_bytes_max = 1 << 20;

std::string method_for(const Work& work) {
  const std::int64_t part_bytes = sizes_of(work).part * 8;
  if (part_bytes <= packets_bytes_max) return "packets";
  if (part_bytes <= copies_bytes_max) return "copies";
  if (work.collective == Collective::reduce_scatter) return "all_pairs";
  if (work.collective == Collective::all_reduce && (work.ranks > 2 || work.bytes > whole_bytes_max)) return "all_pairs";
  return "reading";
}

}  // namespace

tranship::Program program_of(const Work& work) {
  constexpr const char* names[] = {"allreduce/", "allgather/", "reducescatter/", "alltoall/"};
  return tranship::make_program(names[int(work.collective)] + method_for(work), {.ranks = work.ranks});
}

}  // namespace contest
