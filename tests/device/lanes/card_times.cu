// Measures what the operations of the headers cost on a card whose ranks are blocks of one cooperative grid: copies by
// a block, a warp and a thread, a signal there and back, barriers and reductions.
#include <tranship/base/element_type.hpp>
#include <tranship/lanes/cuda_lane.hpp>

#include "lanes/arena.hpp"
#include "lanes/card_parts.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

inline constexpr long long timed_heap_bytes = 5 << 20;
inline constexpr long long timed_words = 4096;
/// The first words of a heap belong to the team.
inline constexpr long long timed_source_at = 64 << 10;
inline constexpr long long timed_target_at = timed_source_at + (2 << 20);

enum class Timed { put_thread, put_warp, put_block, put_rows, round_trip, put_signal, barrier, gather, reduce };

struct TimedArgs {
  unsigned char* const* heaps;  ///< by rank
  int ranks;
  int rounds;
  long long count;  ///< in elements
  bool is_on_one_device;
  WaitGuard* guard;
};

constexpr int lanes_of(Timed timed) {
  return timed == Timed::put_block ? 1024 : timed == Timed::reduce ? 512 : 256;
}
/// Rows of a halo: so many elements, so far apart on both sides.
inline constexpr long long row_count = 64;
inline constexpr long long row_pitch = 128;

/// Block r is rank r.
template <Timed timed, class Element>
__global__ void __launch_bounds__(lanes_of(timed)) timed_kernel(TimedArgs args) {
  const int rank = static_cast<int>(blockIdx.x);
  unsigned char* const base = args.heaps[rank];
  const HeapView heap{{.own = base,
                       .size_bytes = timed_heap_bytes,
                       .direct = args.heaps,
                       .count = args.ranks,
                       .is_complete = true,
                       .is_on_one_device = args.is_on_one_device,
                       .spacing_bytes = timed_heap_bytes,
                       .first = args.heaps[0]},
                      rank,
                      args.ranks,
                      args.guard};
  TeamView team;
  team.count = args.ranks;
  team.member = heap.rank;
  team.words = reinterpret_cast<unsigned long long*>(base);
  auto* const signal = reinterpret_cast<unsigned long long*>(base + timed_words);
  const CudaLane lane;
  const Span<Element> target(reinterpret_cast<Element*>(base + timed_target_at), args.count);
  const Span<const Element> source(reinterpret_cast<const Element*>(base + timed_source_at), args.count);
  const int peer = (heap.rank + 1) % heap.size;

  if constexpr (timed == Timed::put_thread || timed == Timed::put_warp || timed == Timed::put_block) {
    if (heap.rank != 0) return;
    for (int round = 0; round < args.rounds; ++round) {
      if constexpr (timed == Timed::put_thread) heap.put(lane.thread(), target, source, peer);
      if constexpr (timed == Timed::put_warp) heap.put(lane.warp(), target, source, peer);
      if constexpr (timed == Timed::put_block) heap.put(lane.block(), target, source, peer);
    }
  } else if constexpr (timed == Timed::put_rows) {
    if (heap.rank != 0) return;
    StridedSpan<Element> to;
    to.data = target.data;
    to.dims = 2;
    to.extents[0] = args.count / row_count;
    to.extents[1] = row_count;
    to.strides[0] = row_pitch;
    to.strides[1] = 1;
    StridedSpan<const Element> from = to;
    from.data = source.data;
    for (int round = 0; round < args.rounds; ++round) heap.put(lane.block(), to, from, peer);
  } else if constexpr (timed == Timed::put_signal) {
    for (int round = 1; round <= args.rounds; ++round) {
      if (heap.rank == 0) heap.put_signal(lane.block(), target, source, signal, 1, SignalOp::add, 1);
      heap.signal_wait(lane.block(), signal, Comparison::greater_equal, round);
      if (heap.rank == 1) heap.put_signal(lane.block(), target, source, signal, 1, SignalOp::add, 0);
    }
  } else if constexpr (timed == Timed::round_trip) {
    for (int round = 1; round <= args.rounds; ++round) {
      if (heap.rank == 0) heap.signal(lane.block(), signal, 1, SignalOp::add, 1);
      heap.signal_wait(lane.block(), signal, Comparison::greater_equal, round);
      if (heap.rank == 1) heap.signal(lane.block(), signal, 1, SignalOp::add, 0);
    }
  } else if constexpr (timed == Timed::barrier) {
    for (int round = 0; round < args.rounds; ++round) barrier(lane.block(), heap, team);
  } else if constexpr (timed == Timed::gather) {
    const Span<Element> all(target.data, args.count * args.ranks);
    for (int round = 0; round < args.rounds; ++round) fcollect(lane.block(), heap, team, all, source);
  } else {
    for (int round = 0; round < args.rounds; ++round) reduce(lane.block(), heap, team, target, source, Reduction::sum);
  }
}

/// Says how far fences reach: all ranks are on one card, whose fences are the fast ones, or it is as if they were not.
enum class Fences { of_the_card, of_the_machine };
const char* name_of(Fences fences) {
  return fences == Fences::of_the_card ? "" : ", fences for the machine";
}

class Timer {
 public:
  Timer(cudaStream_t stream, Watchdog& watchdog, WaitGuard* guard)
      : stream_(stream), watchdog_(watchdog), guard_(guard), heaps_(8 * timed_heap_bytes), table_(8) {
    // Numbers are near one, so that sums of them stay finite. The words of teams and signals are zero.
    std::vector<float> numbers(8 * timed_heap_bytes / 4);
    unsigned some = 12345;
    for (float& number : numbers)
      number = 1 + static_cast<float>((some = some * 1664525u + 1013904223u) >> 8) * 0x1p-24f;
    random_ = std::move(numbers);
    std::vector<unsigned char*> table;
    for (int rank = 0; rank < 8; ++rank) table.push_back(heaps_.data() + rank * timed_heap_bytes);
    table_.write(table);
  }

  /// Returns microseconds of a round.
  template <Timed timed, class Element = float>
  Samples us(int ranks, int lanes, long long count, int rounds, const std::string& what,
             Fences fences = Fences::of_the_card) {
    watchdog_.begin(what);
    reset();
    TimedArgs args{table_.data(), ranks, rounds, count, fences == Fences::of_the_card, guard_};
    void* arguments[] = {&args};
    const auto* const kernel = reinterpret_cast<const void*>(&timed_kernel<timed, Element>);
    const Samples samples = card_us(stream_, 11, [&] {
      // Signals count from zero in each launch; the words of a team keep their counts.
      constexpr bool uses_signal = timed == Timed::round_trip || timed == Timed::put_signal;
      for (int rank = 0; uses_signal && rank < ranks; ++rank)
        TRANSHIP_CUDA(cudaMemsetAsync(heaps_.data() + rank * timed_heap_bytes + timed_words, 0, 64, stream_));
      TRANSHIP_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(ranks)),
                                                dim3(static_cast<unsigned>(lanes)), arguments, 0, stream_));
    });
    watchdog_.end();
    return samples.mapped([&](double us) { return us / rounds; });
  }
  /// Returns element `i` of the target of a rank.
  float target(int rank, long long i) const {
    float value = 0;
    TRANSHIP_CUDA(cudaMemcpy(&value, heaps_.data() + rank * timed_heap_bytes + timed_target_at + i * 4, 4,
                             cudaMemcpyDeviceToHost));
    return value;
  }
  float source(int rank, long long i) const {
    return random_[static_cast<std::size_t>((rank * timed_heap_bytes + timed_source_at) / 4 + i)];
  }

 private:
  void reset() {
    heaps_.write(bytes_of(random_));
    for (int rank = 0; rank < 8; ++rank)
      TRANSHIP_CUDA(cudaMemset(heaps_.data() + rank * timed_heap_bytes, 0, timed_source_at));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  static std::vector<unsigned char> bytes_of(const std::vector<float>& numbers) {
    const auto* first = reinterpret_cast<const unsigned char*>(numbers.data());
    return {first, first + numbers.size() * 4};
  }

  cudaStream_t stream_;
  Watchdog& watchdog_;
  WaitGuard* guard_;
  CardArray<unsigned char> heaps_;
  CardArray<unsigned char*> table_;
  std::vector<float> random_;
};

template <Timed timed>
void time_put(Timer& timer, const char* name, int lanes, int rounds) {
  constexpr long long count = (1 << 20) / 4;
  const std::string what = std::string(name) + " of 1 MiB, " + std::to_string(lanes) + " lanes";
  const Samples us = timer.us<timed>(2, lanes, count, rounds, what);
  figure(what, us.mapped([](double one) { return (1 << 20) / one * 1e-3; }), "GB/s");
  long long wrong = 0;
  for (const long long i : {0ll, 1ll, count / 3, count - 1}) wrong += timer.target(1, i) != timer.source(0, i);
  check(what + ": bytes", 4, wrong);
}

/// Puts 1 MiB as rows of 256 bytes.
void time_rows(Timer& timer) {
  constexpr long long count = (1 << 20) / 4;
  const std::string what = "put by a block of 256 lanes of 4096 rows of 256 bytes";
  const Samples us = timer.us<Timed::put_rows>(2, 256, count, 5, what);
  figure(what, us.mapped([](double one) { return (1 << 20) / one * 1e-3; }), "GB/s");
  long long wrong = 0;
  for (const long long row : {0ll, 1ll, count / row_count - 1})
    for (const long long i : {0ll, row_count - 1})
      wrong += timer.target(1, row * row_pitch + i) != timer.source(0, row * row_pitch + i);
  check(what + ": bytes", 6, wrong);
}

void time_reduce(Timer& timer, int ranks, long long count, int lanes, Fences fences = Fences::of_the_card) {
  const std::string what = "reduce of " + std::to_string(count * 4) + " bytes, " + std::to_string(ranks) +
                           " ranks as blocks of " + std::to_string(lanes) + " lanes" + name_of(fences);
  figure(what, timer.us<Timed::reduce>(ranks, lanes, count, 100, what, fences), "us");
  long long wrong = 0;
  for (const long long i : {0ll, count / 2, count - 1})
    for (int rank = 0; rank < ranks; ++rank) {
      float sum = timer.source(0, i);
      for (int other = 1; other < ranks; ++other) sum += timer.source(other, i);
      wrong += timer.target(rank, i) != sum;
    }
  check(what + ": sums", 3ll * ranks, wrong);
}

}  // namespace

void Card::measure() {
  parts_->arm(parts_->streams[0], 5'000'000'000);
  Timer timer(parts_->streams[0], watchdog_, parts_->guard);
  for (const int lanes : {256, 1024}) time_put<Timed::put_block>(timer, "put by a block", lanes, 20);
  time_put<Timed::put_warp>(timer, "put by a warp", 32, 5);
  time_put<Timed::put_thread>(timer, "put by a thread", 1, 1);
  time_rows(timer);
  for (const int lanes : {32, 256}) {
    const std::string what = "signal there and back, blocks of " + std::to_string(lanes) + " lanes";
    figure(what, timer.us<Timed::round_trip>(2, lanes, 0, 500, what), "us");
  }
  for (const Fences fences : {Fences::of_the_card, Fences::of_the_machine})
    for (const long long count : {0ll, 256ll}) {
      const std::string what = "put of " + std::to_string(count * 4) +
                               " bytes with a signal there and back, blocks of 256 lanes" + name_of(fences);
      figure(what, timer.us<Timed::put_signal>(2, 256, count, 500, what, fences), "us");
    }
  for (const Fences fences : {Fences::of_the_card, Fences::of_the_machine})
    for (const int ranks : {2, 4, 8}) {
      const std::string what = "barrier, " + std::to_string(ranks) + " ranks as blocks of 256 lanes" + name_of(fences);
      figure(what, timer.us<Timed::barrier>(ranks, 256, 0, 200, what, fences), "us");
    }
  for (const long long count : {256ll, 16384ll}) {
    const std::string what =
        "gather of " + std::to_string(count * 4) + " bytes from each of 8 ranks, blocks of 256 lanes";
    figure(what, timer.us<Timed::gather>(8, 256, count, 100, what), "us");
  }
  for (const int ranks : {2, 4, 8})
    for (const long long count : {2ll, 256ll, 16384ll}) time_reduce(timer, ranks, count, 256);
  time_reduce(timer, 8, 1, 256);
  time_reduce(timer, 8, 256, 64);
  time_reduce(timer, 8, 16384, 512);
  time_reduce(timer, 8, 1 << 18, 512);
  for (const long long count : {256ll, 16384ll}) time_reduce(timer, 8, count, 256, Fences::of_the_machine);
  for (const long long bytes : {1024ll, 65536ll}) {
    const std::string of = " over 8 ranks as blocks of 256 lanes: " + std::to_string(bytes) + " bytes";
    figure("sum of f64" + of, timer.us<Timed::reduce, double>(8, 256, bytes / 8, 100, "f64"), "us");
    figure("sum of f16" + of, timer.us<Timed::reduce, float16>(8, 256, bytes / 2, 100, "f16"), "us");
    figure("sum of i32" + of, timer.us<Timed::reduce, int>(8, 256, bytes / 4, 100, "i32"), "us");
  }
  if (const std::string lost = parts_->lost_wait(); !lost.empty()) fault(lost);
}

}  // namespace tranship::device
