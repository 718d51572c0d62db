#include "kernels/jobs.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/host/reduce.hpp>

#include "kernels/reference.hpp"

namespace tranship::device {
namespace {

using reference::Arena;
using reference::below;
using reference::Random;
using reference::Targets;

/// Appends a buffer at a multiple of 16, and returns where its base lies.
long long append(Bytes& to, const Arena& arena) {
  to.resize((to.size() + 15) / 16 * 16);
  const auto at = static_cast<long long>(to.size() + arena.base);
  to.insert(to.end(), arena.bytes.begin(), arena.bytes.end());
  return at;
}

bool can_compute(ElementMap move, Arithmetic arithmetic, For whom) {
  const bool combines = move != ElementMap::copy && move != ElementMap::negate;
  return can_move(move, arithmetic, width_of(arithmetic)) &&
         !(whom == For::card && combines && arithmetic == Arithmetic::f128);
}
/// Returns all valid pairs.
std::vector<std::pair<ElementMap, Arithmetic>> all_moves(For whom) {
  std::vector<std::pair<ElementMap, Arithmetic>> out;
  for (const Arithmetic arithmetic : reference::numbers)
    for (const ElementMap move : reference::moves)
      if (can_compute(move, arithmetic, whom)) out.emplace_back(move, arithmetic);
  return out;
}

/// Adds up to two more dimensions around the block: targets lie apart or coincide, and sources are arbitrary.
void add_dimensions(Random& random, CopyBlock& block, int width, bool adds_targets) {
  for (int more = below(random, 3); more > 0 && block.dims < 8; --more) {
    const reference::Reach reach = reference::reach_of(block, block.target_strides, width);
    const reference::Reach source = reference::reach_of(block, block.source_strides, width);
    for (int d = block.dims; d > 0; --d) {
      block.extents[d] = block.extents[d - 1];
      block.source_strides[d] = block.source_strides[d - 1];
      block.target_strides[d] = block.target_strides[d - 1];
    }
    ++block.dims;
    block.extents[0] = 1 + below(random, 3);
    const long long stride = reach.highest - reach.lowest + below(random, 3);
    block.target_strides[0] = adds_targets && below(random, 3) == 0 ? 0 : below(random, 3) ? stride : -stride;
    const long long from = source.highest - source.lowest;
    block.source_strides[0] = below(random, 3) == 0 ? 0 : below(random, 2) ? from : -from;
  }
}

Reduction reduction_of(ElementMap move) {
  return move == ElementMap::accumulate ? Reduction::sum
         : move == ElementMap::multiply ? Reduction::product
         : move == ElementMap::minimum  ? Reduction::minimum
                                        : Reduction::maximum;
}
ElementType type_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::bool8:
      return ElementType::bool8;
    case Arithmetic::i8:
      return ElementType::i8;
    case Arithmetic::u8:
      return ElementType::u8;
    case Arithmetic::i16:
      return ElementType::i16;
    case Arithmetic::u16:
      return ElementType::u16;
    case Arithmetic::i32:
      return ElementType::i32;
    case Arithmetic::u32:
      return ElementType::u32;
    case Arithmetic::i64:
      return ElementType::i64;
    case Arithmetic::u64:
      return ElementType::u64;
    case Arithmetic::f16:
      return ElementType::f16;
    case Arithmetic::bf16:
      return ElementType::bf16;
    case Arithmetic::f32:
      return ElementType::f32;
    case Arithmetic::f64:
      return ElementType::f64;
    case Arithmetic::f128:
    case Arithmetic::none:
      break;
  }
  return ElementType::f128;
}

template <class Job>
std::string difference_in(const std::vector<Job>& jobs, const Bytes& wanted, const Bytes& found) {
  if (wanted.size() != found.size()) return "the buffers differ in size";
  const auto [a, b] = std::mismatch(wanted.begin(), wanted.end(), found.begin());
  if (a == wanted.end()) return {};
  const auto at = static_cast<long long>(a - wanted.begin());
  // Targets lie one behind the other, with bases in the middle of what they reach, so the nearest base is the right
  // one.
  std::size_t job = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (std::abs(jobs[i].target_at - at) < std::abs(jobs[job].target_at - at)) job = i;
  std::uint64_t want = 0, have = 0;
  const auto rest = std::min<std::size_t>(8, wanted.size() - static_cast<std::size_t>(at));
  std::memcpy(&want, &*a, rest);
  std::memcpy(&have, &*b, rest);
  return fmt::format(
      "byte {} of the targets, near job {} (move {}, arithmetic {}, width {}, base {}): {:#x}, wanted {:#x}", at, job,
      int(jobs[job].move), int(jobs[job].arithmetic), jobs[job].width, jobs[job].target_at, have, want);
}

}  // namespace

MoveJobs random_moves(std::uint64_t seed, int count, For whom) {
  Random random(seed);
  MoveJobs all;
  const auto kinds = all_moves(whom);
  for (int i = 0; i < count; ++i) {
    MoveJob job;
    std::tie(job.move, job.arithmetic) = kinds[static_cast<std::size_t>(i) % kinds.size()];
    job.width = width_of(job.arithmetic);
    const bool is_any = below(random, 2) != 0;
    job.block = reference::random_block(random, job.width, is_any ? Targets::any : Targets::distinct);
    add_dimensions(random, job.block, job.width, is_any);
    const auto kind = job.arithmetic;
    job.source_at =
        append(all.source, reference::arena_for(random, job.block, job.block.source_strides, job.width, kind));
    job.target_at =
        append(all.target, reference::arena_for(random, job.block, job.block.target_strides, job.width, kind));
    all.jobs.push_back(job);
  }
  return all;
}

IndexedJobs random_rows(std::uint64_t seed, int count, For whom) {
  Random random(seed);
  IndexedJobs all;
  const auto kinds = all_moves(whom);
  for (int i = 0; i < count; ++i) {
    IndexedJob job;
    std::tie(job.move, job.arithmetic) = kinds[static_cast<std::size_t>(i) % kinds.size()];
    job.width = width_of(job.arithmetic);
    IndexedBlock& block = job.block;
    block.count = below(random, 12);
    block.row_length = below(random, 5);
    block.source_row_stride = block.row_length * job.width + (below(random, 2) ? 0 : below(random, 20));
    block.target_row_stride = block.row_length * job.width + (below(random, 2) ? 0 : below(random, 20));
    // There are few rows, so that lists often name a row again.
    const int rows = static_cast<int>(block.count) + 1 + below(random, 3);
    const auto list = [&](long long& at) {
      if (below(random, 3) == 0) return;
      at = static_cast<long long>(all.rows.size());
      for (long long row = 0; row < block.count; ++row) all.rows.push_back(below(random, rows));
    };
    list(job.source_rows_at);
    list(job.target_rows_at);
    const auto buffer = [&](Bytes& to, long long stride) {
      Arena arena;
      arena.base = static_cast<std::size_t>(reference::guard_bytes + below(random, 16));
      arena.bytes = reference::random_numbers(
          random, arena.base + static_cast<std::size_t>(rows * stride + job.width) + reference::guard_bytes,
          job.arithmetic);
      return append(to, arena);
    };
    job.source_at = buffer(all.source, block.source_row_stride);
    job.target_at = buffer(all.target, block.target_row_stride);
    all.jobs.push_back(job);
  }
  return all;
}

MoveJobs rows_of_all(std::uint64_t seed, int count, For whom) {
  Random random(seed);
  MoveJobs all;
  for (const auto& [move, arithmetic] : all_moves(whom)) {
    if (move == ElementMap::copy || move == ElementMap::negate || move == ElementMap::accumulate_negated) continue;
    MoveJob job;
    job.move = move;
    job.arithmetic = arithmetic;
    job.width = width_of(arithmetic);
    job.block.dims = 1;
    job.block.extents[0] = count;
    job.block.source_strides[0] = job.block.target_strides[0] = job.width;
    const auto buffer = [&](Bytes& to) {
      Arena arena;
      arena.base = reference::guard_bytes;
      arena.bytes = reference::random_numbers(
          random, static_cast<std::size_t>(2 * reference::guard_bytes + count * job.width), arithmetic);
      return append(to, arena);
    };
    job.source_at = buffer(all.source);
    job.target_at = buffer(all.target);
    all.jobs.push_back(job);
  }
  return all;
}

MoveJobs all_identities(std::uint64_t seed, For whom) {
  MoveJobs all = rows_of_all(seed, 1, whom);
  // An arithmetic that has a difference also has an identity for it.
  for (MoveJob& job : all.jobs)
    if (job.move == ElementMap::accumulate && can_move(ElementMap::accumulate_negated, job.arithmetic, job.width))
      job.move = ElementMap::accumulate_negated;
  return all;
}

Bytes moved(const MoveJobs& all, Loops loops) {
  Bytes target = all.target;
  for (const MoveJob& job : all.jobs) {
    const unsigned char* from = all.source.data() + job.source_at;
    unsigned char* to = target.data() + job.target_at;
    if (loops == Loops::plain) {
      move(job.block, job.move, job.arithmetic, job.width, from, to);
    } else if (loops == Loops::fast) {
      CopyBlock block = job.block;
      canonicalise(block, job.width);
      move_on_host(block, job.move, job.arithmetic, job.width, copy_method(0), from, to);
    } else {
      reference::apply(job.block, job.move, job.arithmetic, job.width, from, to);
    }
  }
  return target;
}

Bytes moved(const IndexedJobs& all, Loops loops) {
  Bytes target = all.target;
  for (const IndexedJob& job : all.jobs) {
    IndexedBlock block = job.block;
    block.source_rows = job.source_rows_at < 0 ? nullptr : all.rows.data() + job.source_rows_at;
    block.target_rows = job.target_rows_at < 0 ? nullptr : all.rows.data() + job.target_rows_at;
    const unsigned char* from = all.source.data() + job.source_at;
    unsigned char* to = target.data() + job.target_at;
    if (loops == Loops::plain) {
      move_indexed(block, job.move, job.arithmetic, job.width, from, to);
      continue;
    }
    for (long long row = 0; row < block.count; ++row)
      for (long long i = 0; i < block.row_length; ++i)
        reference::apply(
            job.move, job.arithmetic, job.width,
            from + (block.source_rows ? block.source_rows[row] : row) * block.source_row_stride + i * job.width,
            to + (block.target_rows ? block.target_rows[row] : row) * block.target_row_stride + i * job.width);
  }
  return target;
}

Bytes reduced(const MoveJobs& rows) {
  Bytes target = rows.target;
  for (const MoveJob& job : rows.jobs)
    detail::reduce_into(reinterpret_cast<std::byte*>(target.data() + job.target_at),
                        reinterpret_cast<const std::byte*>(rows.source.data() + job.source_at),
                        static_cast<std::size_t>(job.block.extents[0] * job.width), reduction_of(job.move),
                        type_of(job.arithmetic));
  return target;
}

Bytes filled(const MoveJobs& all) {
  Bytes target = all.target;
  for (const MoveJob& job : all.jobs) {
    CopyBlock block = job.block;
    const Bytes zeros(16);
    for (int d = 0; d < block.dims; ++d) block.source_strides[d] = 0;
    reference::apply(block, ElementMap::copy, Arithmetic::none, job.width,
                     job.source_at < 0 ? zeros.data() : all.source.data() + job.source_at,
                     target.data() + job.target_at);
  }
  return target;
}

std::vector<MoveJob> canonical(std::vector<MoveJob> jobs) {
  for (MoveJob& job : jobs) canonicalise(job.block, job.width);
  return jobs;
}

Bytes identities(const MoveJobs& all) {
  Bytes target = all.target;
  for (const MoveJob& job : all.jobs) write_identity(job.move, job.arithmetic, target.data() + job.target_at);
  return target;
}

std::string difference(const std::vector<MoveJob>& jobs, const Bytes& wanted, const Bytes& found) {
  return difference_in(jobs, wanted, found);
}
std::string difference(const std::vector<IndexedJob>& jobs, const Bytes& wanted, const Bytes& found) {
  return difference_in(jobs, wanted, found);
}
std::string difference(const std::vector<MoveJob>& wanted, const std::vector<MoveJob>& found) {
  if (wanted.size() != found.size()) return "the jobs differ in number";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const CopyBlock &a = wanted[i].block, &b = found[i].block;
    bool is_same = a.dims == b.dims;
    for (int d = 0; d < block_dims_max; ++d)
      is_same &= a.extents[d] == b.extents[d] && a.source_strides[d] == b.source_strides[d] &&
                 a.target_strides[d] == b.target_strides[d];
    if (!is_same)
      return fmt::format("job {}, width {}: {}, wanted {}", i, wanted[i].width, reference::describe(b),
                         reference::describe(a));
  }
  return {};
}

}  // namespace tranship::device
