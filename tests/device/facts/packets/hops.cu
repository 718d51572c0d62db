// Measures what a message from one block to another costs as packets, beside plain data with a signal behind it: the
// time of a hop for small messages, and the rate of one block that streams a MiB to another, which unpacks it. A hop
// ends when all lanes of the receiving block know that the message is there. Read next: reductions.cu.
#include "facts/packets/packets.hpp"

namespace tranship::device {
namespace {

enum class Format { ll8, ll16_sys, ll16_gpu, ll128, signal_gpu, signal_sys };

const char* words_of(Format format) {
  switch (format) {
    case Format::ll8:
      return "LL8 (.relaxed.sys)";
    case Format::ll16_sys:
      return "LL16 (.relaxed.sys.b128)";
    case Format::ll16_gpu:
      return "LL16 (.relaxed.gpu.b128)";
    case Format::ll128:
      return "LL128 (.relaxed.sys.b128)";
    case Format::signal_gpu:
      return "data, fence.acq_rel.gpu, st.relaxed";
    case Format::signal_sys:
      return "data, fence.acq_rel.sys, st.relaxed";
  }
  return "";
}
__host__ __device__ constexpr bool is_signal(Format format) {
  return format == Format::signal_gpu || format == Format::signal_sys;
}
__host__ __device__ constexpr Access access_of(Format format) {
  return format == Format::ll16_gpu ? Access::relaxed_gpu_b128 : Access::relaxed_sys_b128;
}

// A line has 15 words of 8 bytes and the flag; lane k of its 8 lanes holds words 2k and 2k + 1.
constexpr unsigned line_words = 15;

template <Format format>
__device__ void raise(Word* at, Word value) {
  if constexpr (format == Format::signal_sys) {
    fence_sys();
    store_relaxed_sys(at, value);
  } else {
    fence_gpu();
    store_relaxed_gpu(at, value);
  }
}
template <Format format>
__device__ void await_signal(const Word* at, Word value, bool& lost) {
  if constexpr (format == Format::signal_sys) {
    await_ready(lost, [&] { return load_relaxed_sys(at) == value; });
    load_acquire_sys(at);
  } else {
    await_ready(lost, [&] { return load_relaxed_gpu(at) == value; });
    load_acquire_gpu(at);
  }
}

// ---- hops ----

constexpr unsigned message_bytes_max = 4096;

struct Table {
  Vector room[2][2 * message_bytes_max / 16];  ///< one for each player; packets take twice the room
  Word signals[2][16];
  Word elapsed_ns, wrong, lost;
};

/// Returns word `w`, of 4 bytes, of the message.
__device__ unsigned word_of(unsigned round, int player, unsigned w) {
  return (round * 0x9e3779b1u ^ w * 0x85ebca6bu) + unsigned(player);
}
__device__ Word pair_of(unsigned round, int player, unsigned pair) {
  return Word(word_of(round, player, 2 * pair + 1)) << 32 | word_of(round, player, 2 * pair);
}

template <Format format>
__device__ void send(Vector* room, Word* signal, unsigned bytes, unsigned round, int me) {
  if constexpr (format == Format::ll8) {
    Word* const packets = reinterpret_cast<Word*>(room);
    for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x)
      store_relaxed_sys(packets + i, packet(word_of(round, me, i), round));
  } else if constexpr (format == Format::ll128) {
    const unsigned lines = (bytes / 8 + line_words - 1) / line_words, lane = threadIdx.x % 8;
    for (unsigned line = threadIdx.x / 8; line < lines; line += blockDim.x / 8) {
      const unsigned first = line * line_words + lane * 2;
      store16<access_of(format)>(room + line * 8 + lane,
                                 {pair_of(round, me, first), lane == 7 ? Word(round) : pair_of(round, me, first + 1)});
    }
  } else if constexpr (is_signal(format)) {
    for (unsigned i = threadIdx.x; i < (bytes + 15) / 16; i += blockDim.x)
      room[i] = {pair_of(round, me, 2 * i), pair_of(round, me, 2 * i + 1)};
    __syncthreads();
    if (threadIdx.x == 0) raise<format>(signal, Word(round));
  } else {
    for (unsigned i = threadIdx.x; i < bytes / 8; i += blockDim.x)
      store16<access_of(format)>(
          room + i, {packet(word_of(round, me, 2 * i), round), packet(word_of(round, me, 2 * i + 1), round)});
  }
}

/// Waits for the message of player `from` and counts the words that are wrong.
template <Format format>
__device__ void receive(const Vector* room, const Word* signal, unsigned bytes, unsigned round, int from, bool& lost,
                        unsigned& wrong) {
  if constexpr (format == Format::ll8) {
    const Word* const packets = reinterpret_cast<const Word*>(room);
    for (unsigned base = threadIdx.x; base < bytes / 4; base += 4 * blockDim.x) {
      Word held[4];
      await_ready(lost, [&] {
        bool ready = true;
#pragma unroll
        for (unsigned u = 0; u < 4; ++u) {
          const unsigned i = base + u * blockDim.x;
          held[u] = i < bytes / 4 ? load_relaxed_sys(packets + i) : packet(0, round);
        }
#pragma unroll
        for (const Word word : held) ready = ready && flag_of(word) == round;
        return ready;
      });
#pragma unroll
      for (unsigned u = 0; u < 4; ++u) {
        const unsigned i = base + u * blockDim.x;
        wrong += i < bytes / 4 && unsigned(held[u]) != word_of(round, from, i);
      }
    }
  } else if constexpr (format == Format::ll128) {
    // The lanes of a warp look at four lines together and go on when all flags are there.
    const unsigned lines = (bytes / 8 + line_words - 1) / line_words, lane = threadIdx.x % 8;
    for (unsigned base = threadIdx.x / 32 * 4; base < lines; base += blockDim.x / 8) {
      const unsigned line = base + threadIdx.x / 8 % 4;
      Vector held = {0, round};
      await_ready(lost, [&] {
        if (line < lines) held = load16<access_of(format)>(room + line * 8 + lane);
        return __all_sync(~0u, lane != 7 || held.y == round) != 0;
      });
      const unsigned first = line * line_words + lane * 2;
      if (line >= lines) continue;
      wrong += held.x != pair_of(round, from, first);
      wrong += lane != 7 && held.y != pair_of(round, from, first + 1);
    }
  } else if constexpr (is_signal(format)) {
    if (threadIdx.x == 0) await_signal<format>(signal, Word(round), lost);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < (bytes + 15) / 16; i += blockDim.x) {
      const Vector v = room[i];
      wrong += v.x != pair_of(round, from, 2 * i) || v.y != pair_of(round, from, 2 * i + 1);
    }
    return;
  } else {
    for (unsigned base = threadIdx.x; base < bytes / 8; base += 4 * blockDim.x) {
      Vector held[4];
      await_ready(lost, [&] {
        bool ready = true;
#pragma unroll
        for (unsigned u = 0; u < 4; ++u) {
          const unsigned i = base + u * blockDim.x;
          held[u] = i < bytes / 8 ? load16<access_of(format)>(room + i) : Vector{packet(0, round), packet(0, round)};
        }
#pragma unroll
        for (const Vector& v : held) ready = ready && flag_of(v.x) == round && flag_of(v.y) == round;
        return ready;
      });
#pragma unroll
      for (unsigned u = 0; u < 4; ++u) {
        const unsigned i = base + u * blockDim.x;
        wrong += i < bytes / 8 && (unsigned(held[u].x) != word_of(round, from, 2 * i) ||
                                   unsigned(held[u].y) != word_of(round, from, 2 * i + 1));
      }
    }
  }
  // All lanes have their packets before one of them answers.
  __syncthreads();
}

template <Format format>
__global__ void play(Table* table, unsigned bytes, unsigned warm_rounds, unsigned rounds) {
  const int me = int(blockIdx.x);
  bool lost = false;
  unsigned wrong = 0;
  Word begin = 0;
  for (unsigned round = 1; round <= warm_rounds + rounds; ++round) {
    for (int half = 0; half < 2; ++half) {
      if (half == me)
        send<format>(table->room[1 - me], table->signals[1 - me], bytes, round, me);
      else
        receive<format>(table->room[me], table->signals[me], bytes, round, 1 - me, lost, wrong);
    }
    if (round == warm_rounds) begin = global_ns();
  }
  if (wrong != 0) atomicAdd(&table->wrong, Word(wrong));
  if (lost) atomicAdd(&table->lost, 1ull);
  if (me == 0 && threadIdx.x == 0) table->elapsed_ns = global_ns() - begin;
}

template <Format format>
void hops(CardArray<Table>& tables, const Options& options) {
  const unsigned rounds = options.quick() ? 20 : 500;
  const int samples = options.quick() ? 1 : 9;
  long long cases = 0, wrong = 0;
  for (const unsigned bytes : {8u, 64u, 1024u, 4096u})
    for (const unsigned lanes : {32u, 256u}) {
      const std::string name =
          std::string("hop of ") + bytes_text(bytes) + " by " + std::to_string(lanes) + " lanes: " + words_of(format);
      Samples hop_ns;
      for (int sample = -1; sample < samples; ++sample) {
        tables.fill(0xa5);  // no round has this flag
        TRANSHIP_CUDA(cudaMemset(&tables.data()->elapsed_ns, 0, 3 * sizeof(Word)));
        launch_together(play<format>, 2, lanes, nullptr, tables.data(), bytes, rounds / 10 + 1, rounds);
        TRANSHIP_CUDA(cudaDeviceSynchronize());
        const Table table = tables.read()[0];
        if (table.lost != 0) return fault(name + ": a message did not come");
        wrong += (long long)table.wrong;
        cases += 2ll * rounds * (bytes / 4);
        if (sample >= 0) hop_ns.values.push_back(double(table.elapsed_ns) / (2.0 * rounds));
      }
      figure(name, hop_ns, "ns");
    }
  check(std::string("messages of 8 B to 4 KiB come whole, ") + words_of(format), cases, wrong);
}

// ---- streams ----

enum class Streaming { ll8, ll16, ll128, in_place, in_chunks };

const char* words_of(Streaming streaming) {
  switch (streaming) {
    case Streaming::ll8:
      return "as LL8, unpacked";
    case Streaming::ll16:
      return "as LL16, unpacked";
    case Streaming::ll128:
      return "as LL128, unpacked";
    case Streaming::in_place:
      return "copied to its place, a signal at the end";
    case Streaming::in_chunks:
      return "copied to a buffer, a signal each 64 KiB, copied out";
  }
  return "";
}

constexpr unsigned chunk_bytes = 64 << 10;

struct Stream {
  const Vector* source;
  Vector* buffer;  ///< twice the size of the source, for packets
  Vector* target;
  unsigned bytes;
  Word* chunk_signals;  ///< a line each
  Word* back;
  Word* elapsed_ns;
  Word* lost;
};

/// Each lane keeps four vectors in flight.
__device__ void copy_block(const Vector* source, Vector* target, unsigned count) {
  constexpr unsigned depth = 4;
  for (unsigned base = threadIdx.x; base < count; base += depth * blockDim.x) {
    Vector held[depth];
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (base + u * blockDim.x < count) held[u] = source[base + u * blockDim.x];
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (base + u * blockDim.x < count) target[base + u * blockDim.x] = held[u];
  }
}

/// Unit i is a packet of 16 or 8 bytes, which holds a word of 8 or 4 bytes.
template <bool wide>
struct Packing {
  using Packet = std::conditional_t<wide, Vector, Word>;
  using Data = std::conditional_t<wide, Word, unsigned>;
  static __device__ void store(Packet* at, Data data, unsigned flag) {
    if constexpr (wide)
      store16<Access::relaxed_sys_b128>(at, {packet(unsigned(data), flag), packet(unsigned(data >> 32), flag)});
    else
      store_relaxed_sys(at, packet(data, flag));
  }
  static __device__ Packet load(const Packet* at) {
    if constexpr (wide)
      return load16<Access::relaxed_sys_b128>(at);
    else
      return load_relaxed_sys(at);
  }
  static __device__ bool has(const Packet& p, unsigned flag) {
    if constexpr (wide)
      return flag_of(p.x) == flag && flag_of(p.y) == flag;
    else
      return flag_of(p) == flag;
  }
  static __device__ Data data(const Packet& p) {
    if constexpr (wide)
      return Word(unsigned(p.y)) << 32 | unsigned(p.x);
    else
      return unsigned(p);
  }
};

template <bool wide>
__device__ void send_packets(const Stream& s, unsigned flag) {
  using P = Packing<wide>;
  constexpr unsigned depth = 4;
  const auto* const source = reinterpret_cast<const typename P::Data*>(s.source);
  auto* const packets = reinterpret_cast<typename P::Packet*>(s.buffer);
  const unsigned count = s.bytes / unsigned(sizeof(typename P::Data));
  for (unsigned base = threadIdx.x; base < count; base += depth * blockDim.x) {
    typename P::Data held[depth];
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (base + u * blockDim.x < count) held[u] = source[base + u * blockDim.x];
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (base + u * blockDim.x < count) P::store(packets + base + u * blockDim.x, held[u], flag);
  }
}
template <bool wide>
__device__ void take_packets(const Stream& s, unsigned flag, bool& lost) {
  using P = Packing<wide>;
  constexpr unsigned depth = 4;
  auto* const target = reinterpret_cast<typename P::Data*>(s.target);
  const auto* const packets = reinterpret_cast<const typename P::Packet*>(s.buffer);
  const unsigned count = s.bytes / unsigned(sizeof(typename P::Data));
  for (unsigned base = threadIdx.x; base < count; base += depth * blockDim.x) {
    typename P::Packet held[depth];
    await_ready(lost, [&] {
      bool ready = true;
#pragma unroll
      for (unsigned u = 0; u < depth; ++u) held[u] = P::load(packets + min(base + u * blockDim.x, count - 1));
#pragma unroll
      for (unsigned u = 0; u < depth; ++u) ready = ready && P::has(held[u], flag);
      return ready;
    });
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (base + u * blockDim.x < count) target[base + u * blockDim.x] = P::data(held[u]);
  }
}

__device__ void send_lines(const Stream& s, unsigned flag) {
  constexpr unsigned depth = 4;
  const Word* const source = reinterpret_cast<const Word*>(s.source);
  const unsigned words = s.bytes / 8, lines = (words + line_words - 1) / line_words, lane = threadIdx.x % 8;
  const unsigned step = blockDim.x / 8;
  for (unsigned base = threadIdx.x / 8; base < lines; base += depth * step) {
    Vector held[depth];
#pragma unroll
    for (unsigned u = 0; u < depth; ++u) {
      const unsigned first = (base + u * step) * line_words + lane * 2;
      held[u].x = first < words ? source[first] : 0;
      held[u].y = lane != 7 && first + 1 < words ? source[first + 1] : flag;
    }
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (base + u * step < lines) store16<Access::relaxed_sys_b128>(s.buffer + (base + u * step) * 8 + lane, held[u]);
  }
}
__device__ void take_lines(const Stream& s, unsigned flag, bool& lost) {
  constexpr unsigned depth = 4;
  Word* const target = reinterpret_cast<Word*>(s.target);
  const unsigned words = s.bytes / 8, lines = (words + line_words - 1) / line_words, lane = threadIdx.x % 8;
  const unsigned step = blockDim.x / 8;
  // The lanes of a warp go through the loop together.
  for (unsigned base = threadIdx.x / 32 * 4; base < lines; base += depth * step) {
    const unsigned mine = base + threadIdx.x / 8 % 4;
    Vector held[depth];
    await_ready(lost, [&] {
      bool ready = true;
#pragma unroll
      for (unsigned u = 0; u < depth; ++u)
        held[u] = load16<Access::relaxed_sys_b128>(s.buffer + min(mine + u * step, lines - 1) * 8 + lane);
#pragma unroll
      for (unsigned u = 0; u < depth; ++u) ready = ready && (lane != 7 || held[u].y == flag);
      return __all_sync(~0u, ready) != 0;
    });
#pragma unroll
    for (unsigned u = 0; u < depth; ++u) {
      const unsigned first = (mine + u * step) * line_words + lane * 2;
      if (mine + u * step < lines && first < words) target[first] = held[u].x;
      if (mine + u * step < lines && first + 1 < words && lane != 7) target[first + 1] = held[u].y;
    }
  }
}

/// Block 0 sends the source `rounds` times and block 1 takes it; a round begins when the previous one has been taken.
template <Streaming streaming>
__global__ void __launch_bounds__(1024) stream_rounds(Stream s, unsigned rounds) {
  bool lost = false;
  Word begin = 0;
  for (unsigned round = 1; round <= rounds; ++round) {
    if (blockIdx.x == 0) {
      if constexpr (streaming == Streaming::ll8) send_packets<false>(s, round);
      if constexpr (streaming == Streaming::ll16) send_packets<true>(s, round);
      if constexpr (streaming == Streaming::ll128) send_lines(s, round);
      if constexpr (streaming == Streaming::in_place) {
        copy_block(s.source, s.target, s.bytes / 16);
        __syncthreads();
        if (threadIdx.x == 0) raise<Format::signal_gpu>(s.chunk_signals, round);
      }
      if constexpr (streaming == Streaming::in_chunks)
        for (unsigned at = 0; at < s.bytes; at += chunk_bytes) {
          copy_block(s.source + at / 16, s.buffer + at / 16, min(chunk_bytes, s.bytes - at) / 16);
          __syncthreads();
          if (threadIdx.x == 0) raise<Format::signal_gpu>(s.chunk_signals + at / chunk_bytes * 16, round);
        }
      if (threadIdx.x == 0) await_signal<Format::signal_gpu>(s.back, round, lost);
      __syncthreads();
      if (round == 1) begin = global_ns();
    } else {
      if constexpr (streaming == Streaming::ll8) take_packets<false>(s, round, lost);
      if constexpr (streaming == Streaming::ll16) take_packets<true>(s, round, lost);
      if constexpr (streaming == Streaming::ll128) take_lines(s, round, lost);
      if constexpr (streaming == Streaming::in_place)
        if (threadIdx.x == 0) await_signal<Format::signal_gpu>(s.chunk_signals, round, lost);
      if constexpr (streaming == Streaming::in_chunks)
        for (unsigned at = 0; at < s.bytes; at += chunk_bytes) {
          if (threadIdx.x == 0) await_signal<Format::signal_gpu>(s.chunk_signals + at / chunk_bytes * 16, round, lost);
          __syncthreads();
          copy_block(s.buffer + at / 16, s.target + at / 16, min(chunk_bytes, s.bytes - at) / 16);
        }
      __syncthreads();
      if (threadIdx.x == 0) raise<Format::signal_gpu>(s.back, round);
    }
  }
  if (lost) atomicAdd(s.lost, 1ull);
  if (blockIdx.x == 0 && threadIdx.x == 0) *s.elapsed_ns = global_ns() - begin;
}

class Streams {
 public:
  explicit Streams(const Options& options)
      : rounds_(options.quick() ? 3 : 21),
        samples_(options.quick() ? 1 : 9),
        bytes_(options.quick() ? (64 << 10) + 40 * 16 : 1 << 20),
        source_(bytes_ / 8),
        buffer_(bytes_ / 8 + 64),
        target_(bytes_ / 16),
        words_(1024) {
    for (std::size_t i = 0; i < source_.size(); ++i) source_[i] = scrambled(4711 + i);
    card_source_.write(source_);
  }

  template <Streaming streaming>
  void rates() {
    for (const unsigned lanes : {256u, 512u, 1024u}) {
      const std::string name = bytes_text(bytes_) + " from block to block by " + std::to_string(lanes) +
                               " lanes each, " + words_of(streaming);
      Samples rate;
      for (int sample = -1; sample < samples_; ++sample) {
        buffer_.fill(0xa5);
        target_.fill(0xa5);
        words_.fill(0);
        const Stream stream{reinterpret_cast<const Vector*>(card_source_.data()),
                            buffer_.data(),
                            target_.data(),
                            bytes_,
                            words_.data(),
                            words_.data() + 512,
                            words_.data() + 528,
                            words_.data() + 544};
        launch_together(stream_rounds<streaming>, 2, lanes, nullptr, stream, rounds_);
        TRANSHIP_CUDA(cudaDeviceSynchronize());
        const std::vector<Word> words = words_.read();
        if (words[544] != 0) return fault(name + ": a packet or a signal did not come");
        if (sample >= 0) rate.values.push_back(double(bytes_) * (rounds_ - 1) / double(words[528]));
      }
      long long wrong = 0;
      const std::vector<Vector> taken = target_.read();
      for (std::size_t i = 0; i < source_.size(); ++i)
        wrong += source_[i] != (i % 2 == 0 ? taken[i / 2].x : taken[i / 2].y);
      figure(name, rate, "GB/s", "of data; a signal back is waited for each time");
      check("right: " + name, (long long)source_.size(), wrong);
    }
  }

 private:
  unsigned rounds_;
  int samples_;
  unsigned bytes_;
  std::vector<Word> source_;
  CardArray<Word> card_source_{source_.size()};
  CardArray<Vector> buffer_, target_;
  CardArray<Word> words_;
};

}  // namespace

void packet_hops(const Options& options) {
  CardArray<Table> tables(1);
  hops<Format::ll8>(tables, options);
  hops<Format::ll16_sys>(tables, options);
  hops<Format::ll16_gpu>(tables, options);
  hops<Format::ll128>(tables, options);
  hops<Format::signal_gpu>(tables, options);
  hops<Format::signal_sys>(tables, options);
}

void packet_streams(const Options& options) {
  Streams streams(options);
  streams.rates<Streaming::ll8>();
  streams.rates<Streaming::ll16>();
  streams.rates<Streaming::ll128>();
  streams.rates<Streaming::in_place>();
  streams.rates<Streaming::in_chunks>();
}

}  // namespace tranship::device
