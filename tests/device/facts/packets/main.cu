// device_facts_packets measures what running a program as one kernel relies on. This source has the options, and tests
// whether packets are ever seen torn: one block of a pair stores packets with growing flags as fast as it can, and the
// other keeps looking at them and checks that data and flag belong together. Read next: hops.cu, reductions.cu.
#include "facts/packets/packets.hpp"

namespace tranship::device {
namespace {

constexpr int writer_lanes = 256;
constexpr unsigned flags_max = 1 << 21;  // a writer ends after this many stores even if its reader has not

/// Returns four bytes of data that are unique to this flag, place and half.
__device__ unsigned data_for(unsigned flag, unsigned place, unsigned half) {
  unsigned x = flag * 0x9e3779b1u ^ (place * 2 + half) * 0x85ebca6bu;
  x ^= x >> 15;
  x *= 0xc2b2ae35u;
  return x ^ x >> 13;
}
__device__ Word packet_for(unsigned flag, unsigned place, unsigned half) {
  return packet(data_for(flag, place, half), flag);
}

struct Seen {
  Word looks;         ///< at units that were written at least once
  Word changes;       ///< looks that found another flag than the look before
  Word flags_differ;  ///< of 16 bytes: the halves are of two stores; of a line: it is of two or more stores
  Word halves_wrong;  ///< 8 bytes whose data is not that of their flag
  Word stale;         ///< of a line: some of its data is older than its flag
  Word sectors;       ///< of a line: 32 bytes that are of two stores
};

__device__ void add(Seen* to, const Seen& mine) {
  atomicAdd(&to->looks, mine.looks);
  atomicAdd(&to->changes, mine.changes);
  atomicAdd(&to->flags_differ, mine.flags_differ);
  atomicAdd(&to->halves_wrong, mine.halves_wrong);
  atomicAdd(&to->stale, mine.stale);
  atomicAdd(&to->sectors, mine.sectors);
}

/// Calls `write(flag)` until the reader of this pair is done.
template <class Write>
__device__ void write_on(const Word* done, const Write& write) {
  for (unsigned flag = 1; flag < flags_max; ++flag) {
    write(flag);
    if (flag % 64 == 0 && load_relaxed_gpu(done) != 0) return;
  }
}
/// Tells the writer that the reader is done; all its lanes call this.
__device__ void stop_writer(Word* done) {
  __syncthreads();
  if (threadIdx.x == 0) store_relaxed_gpu(done, 1);
}

/// Blocks 2p and 2p + 1 are the writer and the reader of pair p; `spread` is odd and permutes the units of the reader.
template <Access writing, Access reading>
__global__ void watch_vectors(Vector* units, Word* done, int looks, unsigned spread, Seen* out) {
  const unsigned pair = blockIdx.x / 2;
  Vector* const mine = units + pair * writer_lanes;
  if (blockIdx.x % 2 == 0) {
    const unsigned place = threadIdx.x;
    write_on(done + pair * 16, [&](unsigned flag) {
      store16<writing>(mine + place, {packet_for(flag, place, 0), packet_for(flag, place, 1)});
    });
    return;
  }
  const unsigned place = threadIdx.x * spread % writer_lanes;
  Seen seen = {};
  unsigned last = 0;
  for (int look = 0; look < looks; ++look) {
    const Vector v = load16<reading>(mine + place);
    if ((v.x | v.y) == 0) continue;
    const unsigned first = flag_of(v.x), second = flag_of(v.y);
    ++seen.looks;
    seen.changes += second != last;
    last = second;
    seen.flags_differ += first != second;
    seen.halves_wrong += v.x != packet_for(first, place, 0);
    seen.halves_wrong += v.y != packet_for(second, place, 1);
  }
  add(out, seen);
  stop_writer(done + pair * 16);
}

/// Watches packets of 8 bytes, stored as two words of 4, as watch_vectors does.
__global__ void watch_words(Word* units, Word* done, int looks, unsigned spread, Seen* out) {
  const unsigned pair = blockIdx.x / 2;
  Word* const mine = units + pair * writer_lanes;
  if (blockIdx.x % 2 == 0) {
    const unsigned place = threadIdx.x;
    write_on(done + pair * 16, [&](unsigned flag) {
      asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(mine + place), "r"(data_for(flag, place, 0)), "r"(flag)
                   : "memory");
    });
    return;
  }
  const unsigned place = threadIdx.x * spread % writer_lanes;
  Seen seen = {};
  unsigned last = 0;
  for (int look = 0; look < looks; ++look) {
    unsigned data, flag;
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(data), "=r"(flag) : "l"(mine + place) : "memory");
    if ((data | flag) == 0) continue;
    ++seen.looks;
    seen.changes += flag != last;
    last = flag;
    seen.halves_wrong += data != data_for(flag, place, 0);
  }
  add(out, seen);
  stop_writer(done + pair * 16);
}

/// Watches lines as watch_vectors does. All 16 words of a line carry the flag in their upper half, which tells a torn
/// line from a line whose flag came first.
template <Access writing, Access reading>
__global__ void watch_lines(Vector* units, Word* done, int looks, Seen* out) {
  const unsigned pair = blockIdx.x / 2, place = threadIdx.x, lane = threadIdx.x % 32;
  Vector* const mine = units + pair * writer_lanes + place;
  if (blockIdx.x % 2 == 0) {
    write_on(done + pair * 16, [&](unsigned flag) {
      store16<writing>(mine, {packet_for(flag, place, 0), packet_for(flag, place, 1)});
    });
    return;
  }
  const unsigned line_lanes = 0xffu << (lane & 24);
  Seen seen = {};
  unsigned last = 0;
  for (int look = 0; look < looks; ++look) {
    const Vector v = load16<reading>(mine);
    const unsigned first = flag_of(v.x), second = flag_of(v.y);
    const unsigned flag = __shfl_sync(~0u, second, int(lane | 7));
    const unsigned beside = __shfl_xor_sync(~0u, second, 1);
    const unsigned torn = __ballot_sync(~0u, first != flag || second != flag);
    const unsigned stale = __ballot_sync(~0u, int(first - flag) < 0 || int(second - flag) < 0);
    const unsigned sectors = __ballot_sync(~0u, first != second || second != beside);
    if ((v.x | v.y) != 0) {
      seen.halves_wrong += v.x != packet_for(first, place, 0);
      seen.halves_wrong += v.y != packet_for(second, place, 1);
    }
    if (lane % 8 != 7 || flag == 0) continue;
    ++seen.looks;
    seen.changes += flag != last;
    last = flag;
    seen.flags_differ += (torn & line_lanes) != 0;
    seen.stale += (stale & line_lanes) != 0;
    seen.sectors += (sectors & line_lanes) != 0;
  }
  add(out, seen);
  stop_writer(done + pair * 16);
}

class Watch {
 public:
  explicit Watch(const Options& options)
      : pairs_(std::max(1, std::min(multiprocessors() / 2, options.quick() ? 2 : 60))),
        looks_(options.quick() ? 200 : 4000),
        units_(std::size_t(pairs_) * writer_lanes),
        done_(std::size_t(pairs_) * 16),
        seen_(1) {}

  /// Launches one of the kernels by `launch(blocks, looks)`.
  template <class Launch>
  Seen see(const Launch& launch) {
    units_.fill(0);
    done_.fill(0);
    seen_.fill(0);
    launch(unsigned(pairs_ * 2), looks_);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    return seen_.read()[0];
  }
  template <Access writing, Access reading>
  void vectors() {
    for (const unsigned spread : {1u, 37u}) {
      const Seen seen = see([&](unsigned blocks, int looks) {
        launch_together(watch_vectors<writing, reading>, blocks, writer_lanes, nullptr, units_.data(), done_.data(),
                        looks, spread, seen_.data());
      });
      const std::string name = std::string("LL16, st ") + words_of(writing) + ", ld " + words_of(reading) +
                               (spread == 1 ? "" : ", read in another order");
      answer("torn packets, " + name, std::to_string(seen.flags_differ), counts(seen) + "expected: none");
      check("the data of a packet of 8 bytes is that of its flag, " + name, (long long)seen.looks * 2,
            (long long)seen.halves_wrong);
    }
  }
  void words() {
    for (const unsigned spread : {1u, 37u}) {
      const Seen seen = see([&](unsigned blocks, int looks) {
        launch_together(watch_words, blocks, writer_lanes, nullptr, reinterpret_cast<Word*>(units_.data()),
                        done_.data(), looks, spread, seen_.data());
      });
      const std::string name =
          std::string("LL8, st.v2.u32, ld.volatile.v2.u32") + (spread == 1 ? "" : ", read in another order");
      answer("torn packets, " + name, std::to_string(seen.halves_wrong), counts(seen) + "expected: none");
    }
  }
  template <Access writing, Access reading>
  void lines() {
    const Seen seen = see([&](unsigned blocks, int looks) {
      launch_together(watch_lines<writing, reading>, blocks, writer_lanes, nullptr, units_.data(), done_.data(), looks,
                      seen_.data());
    });
    const std::string name = std::string("LL128, st ") + words_of(writing) + ", ld " + words_of(reading);
    answer("torn lines, " + name, std::to_string(seen.flags_differ),
           counts(seen) + std::to_string(seen.stale) + " with data older than the flag, " +
               std::to_string(seen.sectors) + " torn within 32 bytes; expected: none");
    check("the data of 8 bytes of a line is of one store, " + name, (long long)seen.looks * 16,
          (long long)seen.halves_wrong);
  }

 private:
  static std::string counts(const Seen& seen) {
    return "of " + std::to_string(seen.looks) + " looks, of which " + std::to_string(seen.changes) +
           " found a new flag; ";
  }

  int pairs_, looks_;
  CardArray<Vector> units_;
  CardArray<Word> done_;
  CardArray<Seen> seen_;
};

void torn(const Options& options) {
  Watch watch(options);
  watch.words();
  watch.vectors<Access::plain_v4, Access::volatile_v4>();
  watch.vectors<Access::volatile_v4, Access::volatile_v4>();
  watch.vectors<Access::relaxed_sys_v2, Access::relaxed_sys_v2>();
  watch.vectors<Access::relaxed_sys_b128, Access::relaxed_sys_b128>();
  watch.vectors<Access::relaxed_gpu_b128, Access::relaxed_gpu_b128>();
  watch.lines<Access::plain_v4, Access::volatile_v4>();
  watch.lines<Access::volatile_v4, Access::volatile_v4>();
  watch.lines<Access::relaxed_gpu_b128, Access::relaxed_gpu_b128>();
}

void run(const Options& options) {
  multiprocessors();  // reports it when there is no card
  struct Part {
    const char* name;
    void (*run)(const Options&);
  };
  const Part parts[] = {{"torn", torn},
                        {"hops", packet_hops},
                        {"streams", packet_streams},
                        {"barriers", block_barriers},
                        {"clusters", cluster_hops},
                        {"steps", step_lists},
                        {"reductions", packet_reductions},
                        {"host", host_memory},
                        {"ports", port_channels}};
  const std::string wanted = options.text("--part", "");
  for (const Part& part : parts) {
    if (!wanted.empty() && wanted != part.name) continue;
    const double begin = now_us();
    part.run(options);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    figure(std::string("the part ") + part.name + " of this program", Samples{{(now_us() - begin) * 1e-6}}, "s");
  }
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
