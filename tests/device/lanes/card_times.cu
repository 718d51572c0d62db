// Measures what the operations of the headers cost on a card whose ranks are blocks of one cooperative grid: copies by
// a block, a warp and a thread, a signal there and back, barriers and reductions.
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

enum class Timed { put_thread, put_warp, put_block, round_trip, barrier, reduce };

struct TimedArgs {
  unsigned char* const* heaps;  ///< by rank
  int ranks;
  int rounds;
  long long count;  ///< in elements
};

constexpr int lanes_of(Timed timed) {
  return timed == Timed::put_block ? 1024 : timed == Timed::reduce ? 512 : 256;
}

/// Block r is rank r.
template <Timed timed>
__global__ void __launch_bounds__(lanes_of(timed)) timed_kernel(TimedArgs args) {
  const int rank = static_cast<int>(blockIdx.x);
  unsigned char* const base = args.heaps[rank];
  const HeapView heap{{.own = base,
                       .size_bytes = timed_heap_bytes,
                       .direct = args.heaps,
                       .count = args.ranks,
                       .is_complete = true,
                       .spacing_bytes = timed_heap_bytes,
                       .first = args.heaps[0]},
                      rank,
                      args.ranks};
  TeamView team;
  team.count = args.ranks;
  team.member = heap.rank;
  team.words = reinterpret_cast<unsigned long long*>(base);
  auto* const signal = reinterpret_cast<unsigned long long*>(base + timed_words);
  const CudaLane lane;
  using Element = float;
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
  } else if constexpr (timed == Timed::round_trip) {
    for (int round = 1; round <= args.rounds; ++round) {
      if (heap.rank == 0) heap.signal(lane.block(), signal, 1, SignalOp::add, 1);
      heap.signal_wait(lane.block(), signal, Comparison::greater_equal, round);
      if (heap.rank == 1) heap.signal(lane.block(), signal, 1, SignalOp::add, 0);
    }
  } else if constexpr (timed == Timed::barrier) {
    for (int round = 0; round < args.rounds; ++round) barrier(lane.block(), heap, team);
  } else {
    for (int round = 0; round < args.rounds; ++round) reduce(lane.block(), heap, team, target, source, Reduction::sum);
  }
}

class Timer {
 public:
  Timer(cudaStream_t stream, Watchdog& watchdog)
      : stream_(stream), watchdog_(watchdog), heaps_(8 * timed_heap_bytes), table_(8) {
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
  template <Timed timed>
  Samples us(int ranks, int lanes, long long count, int rounds, const std::string& what) {
    watchdog_.begin(what);
    reset();
    TimedArgs args{table_.data(), ranks, rounds, count};
    void* arguments[] = {&args};
    const auto* const kernel = reinterpret_cast<const void*>(&timed_kernel<timed>);
    const Samples samples = card_us(stream_, 11, [&] {
      // Signals count from zero in each launch; the words of a team keep their counts.
      for (int rank = 0; timed == Timed::round_trip && rank < ranks; ++rank)
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

void time_reduce(Timer& timer, int ranks, long long count, int lanes) {
  const std::string what = "reduce of " + std::to_string(count * 4) + " bytes, " + std::to_string(ranks) +
                           " ranks as blocks of " + std::to_string(lanes) + " lanes";
  figure(what, timer.us<Timed::reduce>(ranks, lanes, count, 100, what), "us");
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
  Timer timer(parts_->streams[0], watchdog_);
  for (const int lanes : {256, 1024}) time_put<Timed::put_block>(timer, "put by a block", lanes, 20);
  time_put<Timed::put_warp>(timer, "put by a warp", 32, 5);
  time_put<Timed::put_thread>(timer, "put by a thread", 1, 1);
  for (const int lanes : {32, 256}) {
    const std::string what = "signal there and back, blocks of " + std::to_string(lanes) + " lanes";
    figure(what, timer.us<Timed::round_trip>(2, lanes, 0, 500, what), "us");
  }
  for (const int ranks : {2, 4, 8}) {
    const std::string what = "barrier, " + std::to_string(ranks) + " ranks as blocks of 256 lanes";
    figure(what, timer.us<Timed::barrier>(ranks, 256, 0, 200, what), "us");
  }
  for (const int ranks : {2, 4, 8})
    for (const long long count : {2ll, 256ll, 16384ll}) time_reduce(timer, ranks, count, 256);
  time_reduce(timer, 8, 1, 256);
  time_reduce(timer, 8, 256, 64);
  time_reduce(timer, 8, 16384, 512);
}

}  // namespace tranship::device
