// device_kernels runs the moves and the arithmetic of kernels/ in real kernels and compares them bit for bit with the
// CPU, on random jobs (jobs.hpp). It also compares conversions and sums of 16-bit floats for all numbers.
//
//   device_kernels [--small] [--seed N]
//   device_kernels --host [--small] [--seed N]     without a card: plain loops, fast loops and brute force agree
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "kernels/card.hpp"
#include "kernels/jobs.hpp"
#include "support/findings.hpp"

namespace tranship::device {
namespace {

struct Options {
  bool host = false;
  bool small = false;
  std::uint64_t seed = 1;
};

using Clock = std::chrono::steady_clock;

void check_one(const std::string& name, std::size_t cases, const std::string& problem) {
  check(name, static_cast<long long>(cases), problem.empty() ? 0 : 1, problem);
}

void run_on_host(const Options& options) {
  const MoveJobs moves = random_moves(options.seed, options.small ? 1000 : 40'000, For::host);
  const Bytes wanted = moved(moves, Loops::brute_force);
  for (const Loops loops : {Loops::plain, Loops::fast})
    check_one(std::string("moves of blocks by ") + name_of(loops), moves.jobs.size(),
              difference(moves.jobs, wanted, moved(moves, loops)));
  MoveJobs canonical_moves = moves;
  canonical_moves.jobs = canonical(moves.jobs);
  check_one("moves of canonical blocks", moves.jobs.size(),
            difference(moves.jobs, wanted, moved(canonical_moves, Loops::plain)));
  const IndexedJobs rows = random_rows(options.seed, options.small ? 1000 : 40'000, For::host);
  check_one("moves of rows", rows.jobs.size(),
            difference(rows.jobs, moved(rows, Loops::brute_force), moved(rows, Loops::plain)));
  const MoveJobs all = rows_of_all(options.seed, options.small ? 500 : 20'000, For::host);
  const Bytes combined = moved(all, Loops::brute_force);
  check_one("reduce_into", all.jobs.size(), difference(all.jobs, combined, reduced(all)));
  check_one("contiguous rows by plain loops", all.jobs.size(),
            difference(all.jobs, combined, moved(all, Loops::plain)));
  // Each identity is moved into all numbers of a row. Only NaNs may change, which become the quiet NaN.
  MoveJobs twice = all;
  twice.target = combined;
  for (const MoveJob& job : twice.jobs) {
    unsigned char identity[16];
    write_identity(job.move, job.arithmetic, identity);
    for (long long i = 0; i < job.block.extents[0]; ++i)
      std::copy(identity, identity + job.width, twice.source.begin() + job.source_at + i * job.width);
  }
  // Sums are left out, because zeros keep no sign in a sum: -0 + 0 is 0.
  std::erase_if(twice.jobs, [](const MoveJob& job) { return job.move == ElementMap::accumulate; });
  check_one("identities", twice.jobs.size(), difference(twice.jobs, combined, moved(twice, Loops::plain)));
}

/// Computes the CPU's part of a comparison of sums, on all its cores.
std::vector<unsigned long long> half_sums_on_host(Halves kind, unsigned first, unsigned step, unsigned count) {
  std::vector<unsigned long long> sums(count);
  std::atomic<unsigned> next{0};
  const auto work = [&] {
    for (unsigned i; (i = next++) < count;) {
      unsigned long long sum = 0;
      const unsigned chunk = first + i * step;
      const auto add = [&]<Halves constant>() {
        for (unsigned low = 0; low < 65536; ++low) sum += term_of(half_result(constant, chunk, low), low);
      };
      if (kind == Halves::f16_to_float) add.operator()<Halves::f16_to_float>();
      if (kind == Halves::bf16_to_float) add.operator()<Halves::bf16_to_float>();
      if (kind == Halves::float_to_f16) add.operator()<Halves::float_to_f16>();
      if (kind == Halves::float_to_bf16) add.operator()<Halves::float_to_bf16>();
      if (kind == Halves::f16_sum) add.operator()<Halves::f16_sum>();
      if (kind == Halves::f16_product) add.operator()<Halves::f16_product>();
      sums[i] = sum;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return sums;
}

void compare_halves(Halves kind, unsigned first, unsigned step, unsigned count) {
  const auto begin = Clock::now();
  const auto wanted = half_sums_on_host(kind, first, step, count);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto found = half_sums_on_card(kind, first, step, count);
  long long wrong = 0;
  std::string note = "the CPU took " + std::to_string(seconds) + " s";
  for (unsigned i = 0; i < count; ++i) {
    if (wanted[i] == found[i] || wrong++ > 0) continue;
    const unsigned chunk = first + i * step;
    const std::vector<unsigned> results = half_results_on_card(kind, chunk);
    for (unsigned low = 0; low < 65536; ++low)
      if (results[low] != half_result(kind, chunk, low)) {
        char text[100];
        std::snprintf(text, sizeof text, "0x%04x and 0x%04x give 0x%x, wanted 0x%x", chunk, low, results[low],
                      half_result(kind, chunk, low));
        note = text;
        break;
      }
  }
  check(std::string(names_of_halves[int(kind)]) + ", chunks of 2^16", count, wrong, note);
}

void run_on_card(const Options& options) {
  const int count = options.small ? 500 : 20'000;
  const MoveJobs moves = random_moves(options.seed, count, For::card);
  const Bytes wanted = moved(moves, Loops::fast);
  check_one("the reference against brute force", moves.jobs.size(),
            difference(moves.jobs, moved(moves, Loops::brute_force), wanted));
  check_one("moves of blocks", moves.jobs.size(),
            difference(moves.jobs, wanted, moved_on_card(moves.jobs, moves.source, moves.target, Threads::many)));
  MoveJobs few = moves;
  few.jobs.resize(std::size_t(options.small ? 50 : 400));
  check_one(
      "moves of blocks by one thread", few.jobs.size(),
      difference(few.jobs, moved(few, Loops::fast), moved_on_card(few.jobs, few.source, few.target, Threads::one)));

  MoveJobs shorter = moves;
  shorter.jobs = canonical_on_card(moves.jobs);
  check_one("canonicalise", moves.jobs.size(), difference(canonical(moves.jobs), shorter.jobs));
  check_one("moves of canonical blocks", moves.jobs.size(),
            difference(moves.jobs, wanted, moved_on_card(shorter.jobs, moves.source, moves.target, Threads::many)));

  MoveJobs fills = moves;
  for (std::size_t i = 0; i < fills.jobs.size(); i += 3) fills.jobs[i].source_at = -1;
  check_one("fill", fills.jobs.size(),
            difference(fills.jobs, filled(fills), filled_on_card(fills.jobs, fills.source, fills.target)));

  const MoveJobs neutral = all_identities(options.seed, For::card);
  check_one("write_identity", neutral.jobs.size(),
            difference(neutral.jobs, identities(neutral), identities_on_card(neutral.jobs, neutral.target)));

  const MoveJobs rows = rows_of_all(options.seed, options.small ? 200 : 20'000, For::card);
  const Bytes combined = moved_on_card(rows.jobs, rows.source, rows.target, Threads::many);
  check_one("contiguous rows, against move_on_host", rows.jobs.size(),
            difference(rows.jobs, moved(rows, Loops::fast), combined));
  check_one("contiguous rows, against reduce_into", rows.jobs.size(), difference(rows.jobs, reduced(rows), combined));

  const IndexedJobs indexed = random_rows(options.seed, count, For::card);
  check_one("moves of rows by lists", indexed.jobs.size(),
            difference(indexed.jobs, moved(indexed, Loops::brute_force),
                       moved_on_card(indexed.jobs, indexed.rows, indexed.source, indexed.target)));

  compare_halves(Halves::f16_to_float, 0, 1, 1);
  compare_halves(Halves::bf16_to_float, 0, 1, 1);
  // The comparison covers all 2^32, or every 1021st chunk, which still reaches each exponent.
  const unsigned step = options.small ? 1021 : 1, chunks = (65535 + step) / step;
  for (const Halves kind : {Halves::float_to_f16, Halves::float_to_bf16, Halves::f16_sum, Halves::f16_product})
    compare_halves(kind, 0, step, chunks);
}

int run(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--host") {
      options.host = true;
    } else if (word == "--small") {
      options.small = true;
    } else if (word == "--seed" && i + 1 < count) {
      options.seed = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      fault("unknown option " + word);
      return 2;
    }
  }
  try {
    if (options.host)
      run_on_host(options);
    else
      run_on_card(options);
  } catch (const std::exception& error) {
    fault(error.what());
    return 3;
  }
  return 0;
}

}  // namespace
}  // namespace tranship::device

int main(int count, char** arguments) {
  return tranship::device::run(count, arguments);
}
