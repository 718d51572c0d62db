// Checks that waits for what never comes end: with one error that names rank, block and call, after which the next
// kernel works, and by a trap.
#include <tranship/lanes/cuda_lane.hpp>

#include "lanes/arena.hpp"
#include "lanes/card_parts.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

constexpr int lost_ranks = 3;
constexpr int lost_blocks = 2;

enum class Lost {
  nothing,  ///< all signals come
  signal,   ///< block 1 of rank 2 waits for a signal that nobody sends
  any,      ///< the same for any of several variables, one of which rank 0 raises too little
  all,      ///< all lanes of all blocks wait, each for itself
  member,   ///< rank 1 does not come to a barrier of the team
  reader    ///< blocks look for gave_up() while block 1 of rank 2 waits
};

struct LostArgs {
  unsigned char* heaps;
  WaitGuard* guard;
  Lost lost;
  unsigned long long* left;  ///< counts blocks that have come to their end
};

__global__ void loses(LostArgs args) {
  const CudaLane lane;
  const int rank = lane.block_index() / lost_blocks, block = lane.block_index() % lost_blocks;
  const HeapView heap{{.own = args.heaps + rank * heap_bytes,
                       .size_bytes = heap_bytes,
                       .count = lost_ranks,
                       .is_complete = true,
                       .is_on_one_device = true,
                       .spacing_bytes = heap_bytes,
                       .first = args.heaps},
                      rank,
                      lost_ranks,
                      args.guard};
  auto* const words = reinterpret_cast<unsigned long long*>(heap.heaps.own + signals_at);
  auto* const small = reinterpret_cast<int*>(heap.heaps.own + counters_at);
  const bool is_last = rank == lost_ranks - 1 && block == 1;
  const auto group = lane.block();
  switch (args.lost) {
    case Lost::nothing:
      heap.signal(group, words + block, 1, SignalOp::add, (rank + 1) % lost_ranks);
      heap.signal_wait(group, words + block, Comparison::equal, 1);
      break;
    case Lost::signal:
      if (is_last) heap.signal_wait(group, words + 3, Comparison::equal, 7);
      break;
    case Lost::any:
      if (rank == 0 && block == 0) heap.p(group, small + 1, -5, lost_ranks - 1);
      // The value is there before this wait looks at the clock for the first time.
      if (is_last) heap.wait_until(group, small + 1, Comparison::equal, -5);
      if (is_last) heap.wait_until_any(group, Span<int>(small + 1, 2), Comparison::greater, 0);
      break;
    case Lost::all:
      heap.wait_until(lane.thread(), small + lane.index() % 8, Comparison::not_equal, 0);
      break;
    case Lost::member: {
      TeamView team;
      team.count = lost_ranks;
      team.member = rank;
      team.words = reinterpret_cast<unsigned long long*>(heap.heaps.own + words_at);
      if (rank != 1 && block == 0) barrier(group, heap, team);
      break;
    }
    case Lost::reader:
      if (is_last)
        heap.signal_wait(group, words + 3, Comparison::equal, 7);
      else
        while (!heap.gave_up(group)) {
        }
      break;
  }
  group.sync();
  if (group.lane() == 0) atomicAdd(args.left, 1ull);
}

struct Wanted {
  Lost lost;
  const char* name;
  std::vector<std::string> parts;  ///< what the error says, among other things
};

}  // namespace

void Card::check_lost_waits(double limit_s, int trials) {
  const cudaStream_t stream = parts_->streams[0];
  CardArray<unsigned long long> left(1);
  const std::string place = std::to_string(signals_at + 24), second = std::to_string(counters_at + 4);
  const Wanted cases[] = {
      {Lost::nothing, "no signal", {}},
      {Lost::signal,
       "a signal",
       {"rank 2 waited ", " in block 5 of a kernel for signal_wait (rank 2, flag " + place + " == 7, sees 0)",
        "card_lost_waits.cu:"}},
      {Lost::any, "any of several", {"rank 2 ", "wait_until_any (rank 2, flag " + second + " > 0, sees -5)"}},
      {Lost::all, "each lane's own", {"wait_until (rank ", "!= 0, sees 0)"}},
      {Lost::member, "a member", {"block ", "barrier (rank ", "rank 1 should raise it"}},
      {Lost::reader, "a signal, and others look", {"rank 2 waited ", "signal_wait"}},
  };
  for (const Wanted& wanted : cases) {
    const std::string name = std::string("lost: ") + wanted.name;
    watchdog_.begin(name);
    long long wrong = 0;
    std::string first;
    for (int trial = 0; trial < trials; ++trial) {
      parts_->arm(stream, static_cast<unsigned long long>(limit_s * 1e9));
      TRANSHIP_CUDA(cudaMemsetAsync(parts_->heaps, 0, lost_ranks * heap_bytes, stream));
      TRANSHIP_CUDA(cudaMemsetAsync(left.data(), 0, 8, stream));
      LostArgs args{parts_->heaps, parts_->guard, wanted.lost, left.data()};
      void* arguments[] = {&args};
      TRANSHIP_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&loses), dim3(lost_ranks * lost_blocks),
                                                dim3(64), arguments, 0, stream));
      TRANSHIP_CUDA(cudaStreamSynchronize(stream));
      const std::string error = parts_->lost_wait();
      bool is_right = error.empty() == wanted.parts.empty() && left.read()[0] == lost_ranks * lost_blocks;
      for (const std::string& part : wanted.parts) is_right &= error.find(part) != std::string::npos;
      wrong += !is_right;
      if (!is_right && first.empty())
        first = "'" + error + "', " + std::to_string(left.read()[0]) + " blocks came to their end";
    }
    watchdog_.end();
    check(name + ": the error names who has waited, all blocks end, the next kernel works", trials, wrong, first);
  }
}

void Card::check_trap() {
  const cudaStream_t stream = parts_->streams[0];
  watchdog_.begin("a wait that traps");
  parts_->arm(stream, 3'000'000, true);
  TRANSHIP_CUDA(cudaMemsetAsync(parts_->heaps, 0, lost_ranks * heap_bytes, stream));
  LostArgs args{parts_->heaps, parts_->guard, Lost::all, nullptr};
  void* arguments[] = {&args};
  TRANSHIP_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&loses), dim3(lost_ranks * lost_blocks),
                                            dim3(64), arguments, 0, stream));
  const cudaError_t status = cudaStreamSynchronize(stream);
  watchdog_.end();
  const std::string error = parts_->lost_wait();
  const bool is_right = status != cudaSuccess && error.find("wait_until (rank ") != std::string::npos;
  check("a wait that traps leaves its error in memory of the host", 1, !is_right, error);
  answer("error of a kernel whose wait traps", cudaGetErrorName(status), error);
}

}  // namespace tranship::device
