// Measures the halo regions of NDSL: quantities of 192 x 192 x 79 doubles with a halo of 3, for the four edges and the
// four corners, each to the buffer of its neighbour in C order of (i, j, k). One launch moves all, beside a
// cudaMemcpy3DAsync for each region and cudaMemcpy3DBatchAsync. cupy_slices.py measures array slices for the same
// regions.
//
// The card takes times between two events. "queued" has both events and the work in the stream before the first of them
// is reached, which leaves out the host's time; "alone" includes it; "cold" is queued behind a read of more than the
// second-level cache holds. "stream" enqueues each time what "graph" has captured once.
#include <array>
#include <functional>

#include "packing/card_pattern.hpp"
#include "packing/pack.hpp"
#include "packing/packing.hpp"

namespace tranship::device {
namespace {

constexpr int rounds = 21;
constexpr int in_a_row = 20;
constexpr long long halo = 3, along = 192, levels = 79;
constexpr int width = 8;

struct Region {
  long long i, j;  ///< the first point, counted in the array with its halo
  long long i_count, j_count;
};
/// The regions sent to N, S, W, E, NW, NE, SW, SE are the compute points next to that side. North has the highest j.
constexpr std::array<Region, 8> sent = {{
    {halo, along, along, halo},
    {halo, halo, along, halo},
    {halo, halo, halo, along},
    {along, halo, halo, along},
    {halo, along, halo, halo},
    {along, along, halo, halo},
    {halo, halo, halo, halo},
    {along, halo, halo, halo},
}};
/// The regions received are the halo points beyond that side.
constexpr std::array<Region, 8> received = {{
    {halo, along + halo, along, halo},
    {halo, 0, along, halo},
    {0, halo, halo, along},
    {along + halo, halo, halo, along},
    {0, along + halo, halo, halo},
    {along + halo, along + halo, halo, halo},
    {0, 0, halo, halo},
    {along + halo, 0, halo, halo},
}};

struct Memory {
  const char* name;
  long long strides[3];  ///< in bytes, for a step of i, j, k
  long long bytes;       ///< size of a quantity
};
constexpr Memory memories[] = {
    {"k fastest", {198 * 79 * 8, 79 * 8, 8}, 198ll * 198 * 79 * 8},
    {"i fastest", {8, 198 * 8, 198 * 198 * 8}, 198ll * 198 * 79 * 8},
};

long long rounded(long long bytes) {
  return (bytes + 511) / 512 * 512;
}

/// Holds quantities as bases 0 to n - 1 in one arena, and the buffers of the neighbours as the 8 bases behind them.
struct Case {
  const Memory& memory;
  int quantities;

  long long quantity_at(int q) const { return q * rounded(memory.bytes); }
  long long region_bytes(std::size_t r) const { return sent[r].i_count * sent[r].j_count * levels * width; }
  long long buffer_at(std::size_t r) const {
    long long at = 0;
    for (std::size_t before = 0; before < r; ++before) at += rounded(quantities * region_bytes(before));
    return at;
  }
  long long payload_bytes() const {
    long long bytes = 0;
    for (std::size_t r = 0; r < sent.size(); ++r) bytes += quantities * region_bytes(r);
    return bytes;
  }
  std::string name() const {
    return std::string("ndsl pack, ") + memory.name + ", " + std::to_string(quantities) +
           (quantities == 1 ? " quantity" : " quantities");
  }

  /// Returns the move from the quantity to the buffer, or with `unpacks` the reverse.
  BlockMove move(int q, std::size_t r, const Region& region, bool unpacks) const {
    BlockMove out{.source_base = static_cast<unsigned>(q),
                  .source_offset = region.i * memory.strides[0] + region.j * memory.strides[1],
                  .target_base = static_cast<unsigned>(quantities) + static_cast<unsigned>(r),
                  .target_offset = q * region_bytes(r),
                  .block = {},
                  .width = width};
    out.block.dims = 3;
    const long long extents[3] = {region.i_count, region.j_count, levels};
    for (int d = 0; d < 3; ++d) {
      out.block.extents[d] = extents[d];
      out.block.source_strides[d] = memory.strides[d];
    }
    out.block = with_dense_target(out.block, width);
    if (unpacks) {
      std::swap(out.source_base, out.target_base);
      std::swap(out.source_offset, out.target_offset);
      for (int d = 0; d < 3; ++d) std::swap(out.block.source_strides[d], out.block.target_strides[d]);
    }
    return out;
  }
};

class Graph {
 public:
  /// Captures `times` repetitions of what `enqueue` puts into the stream. Returns false, with the error's name, if it
  /// cannot be captured.
  bool capture(cudaStream_t stream, int times, const std::function<cudaError_t()>& enqueue, std::string& why_not) {
    cudaGraph_t graph = nullptr;
    TRANSHIP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < times && status == cudaSuccess; ++i) status = enqueue();
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (status == cudaSuccess) status = ended;
    if (status == cudaSuccess) status = cudaGraphInstantiate(&executable_, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (status == cudaSuccess) status = cudaGraphUpload(executable_, stream);
    cudaGetLastError();
    if (status == cudaSuccess) return true;
    why_not = cudaGetErrorString(status);
    return false;
  }
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  cudaError_t launch(cudaStream_t stream) const { return cudaGraphLaunch(executable_, stream); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class Stopwatch {
 public:
  Stopwatch(const CardArenas& arenas, cudaStream_t stream) : arenas_(arenas), stream_(stream) {
    TRANSHIP_CUDA(cudaEventCreate(&begin_));
    TRANSHIP_CUDA(cudaEventCreate(&end_));
    int device = 0, cache = 0;
    TRANSHIP_CUDA(cudaGetDevice(&device));
    TRANSHIP_CUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
    // The flush reads the end of the sources, which no quantity reaches.
    flush_bytes_ = 4ll * std::max(cache, 32 << 20);
    flush_bytes_ = std::min(flush_bytes_, arenas.bytes - 28 * rounded(memories[0].bytes)) / 256 * 256;
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }

  template <class F>
  Samples queued(const F& enqueue) {
    return sampled(
        enqueue, [&] { delay(40, stream_); }, 1);
  }
  template <class F>
  Samples cold(const F& enqueue) {
    return sampled(
        enqueue, [&] { read_all(arenas_.sources + arenas_.bytes - flush_bytes_, flush_bytes_, stream_); }, 1);
  }
  /// Times one launch between the events; the host enqueues each as it comes.
  template <class F>
  Samples single(const F& enqueue) {
    return sampled(
        enqueue, [] {}, 1);
  }
  /// Times a launch that stands for `count` launches.
  template <class F>
  Samples nodes(const F& enqueue, int count) {
    return sampled(
        enqueue, [&] { delay(40, stream_); }, count);
  }

 private:
  template <class F, class Before>
  Samples sampled(const F& enqueue, const Before& before, int parts) {
    Samples out;
    for (int round = -3; round < rounds; ++round) {
      before();
      TRANSHIP_CUDA(cudaEventRecord(begin_, stream_));
      enqueue();
      TRANSHIP_CUDA(cudaEventRecord(end_, stream_));
      TRANSHIP_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      TRANSHIP_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      if (round >= 0) out.values.push_back(ms * 1e3 / parts);
    }
    return out;
  }

  CardArenas arenas_;
  cudaStream_t stream_;
  cudaEvent_t begin_, end_;
  long long flush_bytes_ = 0;
};

class NdslBench {
 public:
  NdslBench(const CardArenas& arenas, cudaStream_t stream) : arenas_(arenas), stream_(stream), watch_(arenas, stream) {}

  void floors() {
    const auto launch = [&] { empty_launch(stream_); };
    Graph one, many;
    std::string why_not;
    const auto enqueue = [&] {
      empty_launch(stream_);
      return cudaSuccess;
    };
    if (!one.capture(stream_, 1, enqueue, why_not) || !many.capture(stream_, in_a_row, enqueue, why_not))
      return fault("ndsl: an empty launch is not captured: " + why_not);
    const auto replay = [&] { TRANSHIP_CUDA(one.launch(stream_)); };
    figure("ndsl floor: nothing between two events, queued", watch_.queued([] {}), "us");
    figure("ndsl floor: empty kernel, graph, queued", watch_.queued(replay), "us");
    figure("ndsl floor: empty kernel, stream, alone", watch_.single(launch), "us");
    figure("ndsl floor: empty kernel, graph, alone", watch_.single(replay), "us");
    figure("ndsl floor: empty kernel, a node of 20 in one graph",
           watch_.nodes([&] { TRANSHIP_CUDA(many.launch(stream_)); }, in_a_row), "us");
  }

  void measure(const Case& one) {
    measure_launch(one, false);
    measure_launch(one, true);
    if (one.memory.strides[2] != width)
      answer(one.name() + ": cudaMemcpy3D", "no", "it does not transpose");
    else
      measure_copies(one);
  }
  void report_checks() { check("ndsl: regions against the definition", checked_, wrong_, first_wrong_); }

 private:
  unsigned char* base(const Case& one, unsigned number, bool unpacks) const {
    // The input lies in the sources, whose pattern is known.
    unsigned char* const quantities = unpacks ? arenas_.targets : arenas_.sources;
    unsigned char* const buffers = unpacks ? arenas_.sources : arenas_.targets;
    return number < static_cast<unsigned>(one.quantities)
               ? quantities + one.quantity_at(static_cast<int>(number))
               : buffers + one.buffer_at(number - static_cast<unsigned>(one.quantities));
  }

  void poison(const Case& one) {
    TRANSHIP_CUDA(
        cudaMemsetAsync(arenas_.targets, 0xee, static_cast<std::size_t>(one.quantity_at(one.quantities)), stream_));
  }

  void look(const Case& one, bool unpacks, const std::string& name) {
    const int step = one.quantities > 3 ? one.quantities / 3 : 1;
    for (int q = 0; q < one.quantities; q += step)
      for (std::size_t r = 0; r < sent.size(); ++r) {
        const BlockMove move = one.move(q, r, unpacks ? received[r] : sent[r], unpacks);
        const long long position = base(one, move.source_base, unpacks) - arenas_.sources + move.source_offset;
        const long long wrong = wrong_cells(move.block, width, position,
                                            base(one, move.target_base, unpacks) + move.target_offset, stream_);
        ++checked_;
        if (wrong && wrong_++ == 0)
          first_wrong_ = name + ", quantity " + std::to_string(q) + ", region " + std::to_string(r) + ": " +
                         std::to_string(wrong) + " cells";
      }
  }

  void measure_launch(const Case& one, bool unpacks) {
    const std::string name = (unpacks ? "ndsl un" + one.name().substr(5) : one.name()) + ": one launch";
    PieceList made(std::vector<int>(static_cast<std::size_t>(one.quantities) + sent.size(), 16));
    for (int q = 0; q < one.quantities; ++q)
      for (std::size_t r = 0; r < sent.size(); ++r) made.add(one.move(q, r, unpacks ? received[r] : sent[r], unpacks));
    made.lay_out(pack_groups_min());
    UploadedList list;
    list.upload(made);
    Bases bases;
    for (unsigned i = 0; i < static_cast<unsigned>(one.quantities) + sent.size(); ++i)
      bases.few[i] = base(one, i, unpacks);

    poison(one);
    const auto launch = [&] { pack(list, bases, stream_); };
    launch();
    look(one, unpacks, name);
    const auto note_of = [&](const PieceList& laid) {
      char note[160];
      std::snprintf(note, sizeof note, "%.2f MB of payload, %zu pieces, %u groups, %u vectors a lane",
                    static_cast<double>(one.payload_bytes()) / 1e6, laid.pieces().size(), laid.groups(),
                    laid.lane_vectors());
      return std::string(note);
    };
    Graph graph, many;
    std::string why_not;
    const auto enqueue = [&] {
      launch();
      return cudaSuccess;
    };
    if (!graph.capture(stream_, 1, enqueue, why_not) || !many.capture(stream_, in_a_row, enqueue, why_not))
      return fault(name + " is not captured: " + why_not);
    const auto replay = [&] { TRANSHIP_CUDA(graph.launch(stream_)); };
    figure(name + ", graph, queued", watch_.queued(replay), "us", note_of(made));
    if (unpacks) return;
    figure(name + ", graph, queued, cold", watch_.cold(replay), "us");
    figure(name + ", stream, alone", watch_.single(launch), "us");
    figure(name + ", graph, alone", watch_.single(replay), "us");
    figure(name + ", a node of 20 in one graph", watch_.nodes([&] { TRANSHIP_CUDA(many.launch(stream_)); }, in_a_row),
           "us");
    for (const Order order : {Order::shares, Order::strided}) {
      const PackGrid grid{.order = order, .blocks_max = pack_blocks(list)};
      figure(name + ", stream, queued, full grid, " + (order == Order::shares ? "shares" : "strided"),
             watch_.queued([&] { pack(list, bases, stream_, grid); }), "us");
    }
    for (const unsigned vectors : {2u, 4u, 8u}) {
      made.lay_out(0, vectors);
      UploadedList other;
      other.upload(made);
      figure(name + ", stream, queued, " + std::to_string(vectors) + " vectors a lane",
             watch_.queued([&] { pack(other, bases, stream_); }), "us", note_of(made));
    }
  }

  void measure_copies(const Case& one) {
    std::vector<cudaMemcpy3DParms> copies;
    for (int q = 0; q < one.quantities; ++q)
      for (std::size_t r = 0; r < sent.size(); ++r) {
        const BlockMove move = one.move(q, r, sent[r], false);
        cudaMemcpy3DParms copy = {};
        // A row runs along k, rows follow each other along j, and each i has a slice.
        copy.srcPtr = make_cudaPitchedPtr(base(one, move.source_base, false) + move.source_offset,
                                          static_cast<std::size_t>(one.memory.strides[1]), levels * width,
                                          static_cast<std::size_t>(one.memory.strides[0] / one.memory.strides[1]));
        copy.dstPtr = make_cudaPitchedPtr(base(one, move.target_base, false) + move.target_offset, levels * width,
                                          levels * width, static_cast<std::size_t>(sent[r].j_count));
        copy.extent = make_cudaExtent(levels * width, static_cast<std::size_t>(sent[r].j_count),
                                      static_cast<std::size_t>(sent[r].i_count));
        copy.kind = cudaMemcpyDeviceToDevice;
        copies.push_back(copy);
      }
    const auto each = [&] {
      for (const cudaMemcpy3DParms& copy : copies)
        if (const cudaError_t status = cudaMemcpy3DAsync(&copy, stream_); status != cudaSuccess) return status;
      return cudaSuccess;
    };
    measure_peer(one, "cudaMemcpy3DAsync", each);
#if CUDART_VERSION >= 13000
    std::vector<cudaMemcpy3DBatchOp> batch;
    for (const cudaMemcpy3DParms& copy : copies) {
      cudaMemcpy3DBatchOp op = {};
      const auto operand = [](const cudaPitchedPtr& pointer) {
        cudaMemcpy3DOperand out = {};
        out.type = cudaMemcpyOperandTypePointer;
        out.op.ptr.ptr = pointer.ptr;
        out.op.ptr.rowLength = pointer.pitch;
        out.op.ptr.layerHeight = pointer.ysize;
        out.op.ptr.locHint.type = cudaMemLocationTypeDevice;
        return out;
      };
      op.src = operand(copy.srcPtr);
      op.dst = operand(copy.dstPtr);
      op.extent = copy.extent;
      op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      batch.push_back(op);
    }
    measure_peer(one, "cudaMemcpy3DBatchAsync",
                 [&] { return cudaMemcpy3DBatchAsync(batch.size(), batch.data(), 0, stream_); });
#else
    answer(one.name() + ": cudaMemcpy3DBatchAsync", "no", "CUDA before 13");
#endif
  }

  void measure_peer(const Case& one, const std::string& peer, const std::function<cudaError_t()>& enqueue) {
    const std::string name = one.name() + ": " + peer;
    poison(one);
    if (const cudaError_t status = enqueue(); status != cudaSuccess) {
      cudaGetLastError();
      return answer(name, "no", cudaGetErrorString(status));
    }
    look(one, false, name);
    const auto issue = [&] { TRANSHIP_CUDA(enqueue()); };
    figure(name + ", stream, alone", watch_.single(issue), "us");
    Graph graph;
    std::string why_not;
    if (!graph.capture(stream_, 1, enqueue, why_not)) return answer(name + ", graph", "no", why_not);
    figure(name + ", graph, alone", watch_.single([&] { TRANSHIP_CUDA(graph.launch(stream_)); }), "us");
  }

  CardArenas arenas_;
  cudaStream_t stream_;
  Stopwatch watch_;
  long long checked_ = 0, wrong_ = 0;
  std::string first_wrong_;
};

}  // namespace

void measure_ndsl(const CardArenas& arenas, cudaStream_t stream) {
  NdslBench bench(arenas, stream);
  bench.floors();
  for (const Memory& memory : memories)
    for (const int quantities : {1, 7, 28}) bench.measure({memory, quantities});
  bench.report_checks();
}

}  // namespace tranship::device
