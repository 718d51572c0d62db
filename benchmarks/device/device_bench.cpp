// device: prepared lists of moves on a card, one launch each: NDSL's halo regions, transposes and corner turns. Every
// contestant must first give the bytes of the host, on its stream and as a graph. On a real card, times follow: beside
// a copy of as many bytes by the card, a launch for each region, cuMemcpy3DAsync for each, and one
// cuMemcpy3DBatchAsync. On a software card (TRANSHIP_CUDA=software), whose times mean nothing, launches are counted,
// and sectors of 32 bytes beside those that the work touches. `./do device` measures CuPy and torch.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fmt/core.h>
#include <harness/registry.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/cuda/cuda_devices.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/host_device.hpp>

#include "cuda/contract/calls.hpp"
#include "cuda/works.hpp"

namespace {

using namespace tranship;
using namespace tranship::bench;
using namespace tranship::test;
using cuda::software::AllCalls;

/// Works of more bytes are not compared with the host's, which would take most of the time.
constexpr long long compared_bytes_max = 64ll << 20;
/// A graph repeats its work so often that its launch and the wait for it take a small part of the time.
constexpr int times_in_graph = 16;

const AllCalls& cu() {
  return contract::calls_of_this_process();
}
void ok(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw_error(ErrorCode::internal, "{} says {}", call, int(result));
}
CUdeviceptr address(const std::byte* at) {
  return reinterpret_cast<CUdeviceptr>(at);
}

/// Memory of the card for each base of a work.
class Memories {
 public:
  Memories(Driver& driver, const Work& work) : driver_(driver), bytes_(work.base_bytes) {
    for (const long long size : bytes_) bases.push_back(static_cast<std::byte*>(driver.allocate(std::size_t(size))));
    if (std::find(bases.begin(), bases.end(), nullptr) == bases.end()) return;
    free();
    throw Error(ErrorCode::no_memory, "the card has no room for " + work.name);
  }
  ~Memories() { free(); }
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;

  std::vector<std::byte*> bases;

 private:
  void free() {
    for (std::size_t i = 0; i < bases.size(); ++i)
      if (bases[i]) driver_.deallocate(bases[i], std::size_t(bytes_[i]));
  }
  Driver& driver_;
  std::vector<long long> bytes_;
};

/// A graph of work that is captured on a stream.
class Graph {
 public:
  Graph(CUstream stream, int times, const std::function<void()>& enqueue) {
    ok(cu().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    CUgraph graph = nullptr;
    try {
      for (int i = 0; i < times; ++i) enqueue();
    } catch (...) {
      if (cu().cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS) cu().cuGraphDestroy(graph);
      throw;
    }
    ok(cu().cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    const CUresult made = cu().cuGraphInstantiateWithFlags(&exec_, graph, 0);
    cu().cuGraphDestroy(graph);
    ok(made, "cuGraphInstantiateWithFlags");
  }
  ~Graph() { cu().cuGraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(CUstream stream) const { ok(cu().cuGraphLaunch(exec_, stream), "cuGraphLaunch"); }

 private:
  CUgraphExec exec_ = nullptr;
};

/// A contestant: gives a stream the work.
struct Way {
  std::string name;
  std::function<void()> enqueue;
};

using BatchCall = decltype(&::cuMemcpy3DBatchAsync);

class CardBench {
 public:
  CardBench(Report& report, bool is_software)
      : report_(report),
        is_software_(is_software),
        devices_({.kinds = {CudaDevices{.cards = {0}}}}),
        stream_(devices_.make_stream(Device::cuda(0))),
        native_(static_cast<CUstream>(stream_->native_handle())),
        driver_(devices_.driver(devices_.memory_of(Device::cuda(0)))) {
    CUcontext context = nullptr;
    ok(cu().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    ok(cu().cuCtxSetCurrent(context), "cuCtxSetCurrent");
    // A driver before CUDA 13 has none of this signature, and software cards have none.
    if (void* const driver = is_software ? nullptr : dlopen("libcuda.so.1", RTLD_NOW))
      batch_ = reinterpret_cast<BatchCall>(dlsym(driver, "cuMemcpy3DBatchAsync_v2"));
  }

  void run(const Work& work) {
    if (!report_.wants(work.name)) return;
    report_.announce(work.name);
    const Memories memories(driver_, work);
    // Ours is the first.
    const std::vector<Way> ways = ways_of(work, memories);
    for (const Way& way : ways) {
      compare(work, memories, way.name, way.enqueue);
      const Graph graph(native_, 1, way.enqueue);
      compare(work, memories, way.name + " in a graph", [&] { graph.launch(native_); });
    }
    if (is_software_)
      count(work, ways[0]);
    else
      time(work, ways);
  }

 private:
  void finish() { tranship::finish(stream_->event(), Deadline::after_seconds(60)); }

  std::vector<Way> ways_of(const Work& work, const Memories& memories) {
    const std::vector<int> alignments(work.base_bytes.size(), 16);
    const auto prepared = [&](std::span<const BlockMove> moves) { return stream_->prepare(moves, alignments); };
    std::vector<Way> out;
    out.push_back(
        {"one launch", [this, &memories, list = prepared(work.moves)] { stream_->move_list(list, memories.bases); }});
    if (work.moves.size() > 1) {
      std::vector<std::shared_ptr<const PreparedMoves>> lists;
      for (const BlockMove& move : work.moves) lists.push_back(prepared({&move, 1}));
      out.push_back({"a launch for each region", [this, &memories, lists] {
                       for (const auto& list : lists) stream_->move_list(list, memories.bases);
                     }});
    }
    std::vector<CUDA_MEMCPY3D> copies;
    for (const BlockMove& move : work.moves)
      if (const auto copy = copy_of(move, memories)) copies.push_back(*copy);
    if (copies.size() < work.moves.size()) return out;
    out.push_back({"cuMemcpy3DAsync", [this, copies] {
                     for (const CUDA_MEMCPY3D& copy : copies)
                       ok(cu().cuMemcpy3DAsync(&copy, native_), "cuMemcpy3DAsync");
                   }});
    if (!batch_) return out;
    out.push_back({"cuMemcpy3DBatchAsync", [this, batch = batch_of(copies)]() mutable {
                     ok(batch_(batch.size(), batch.data(), 0, native_), "cuMemcpy3DBatchAsync");
                   }});
    return out;
  }

  /// A move as the driver copies it: rows that are contiguous on both sides, at pitches. Nothing for a transpose.
  static std::optional<CUDA_MEMCPY3D> copy_of(const BlockMove& move, const Memories& memories) {
    CopyBlock block = move.block;
    canonicalise(block, move.width);
    if (block.dims > 3) return {};
    long long extents[3] = {1, 1, 1}, sources[3] = {}, targets[3] = {};
    for (int d = 0; d < block.dims; ++d) {
      const int to = 3 - block.dims + d;
      extents[to] = block.extents[d], sources[to] = block.source_strides[d], targets[to] = block.target_strides[d];
    }
    if (sources[2] != move.width || targets[2] != move.width) return {};
    const auto side = [&](const long long(&strides)[3], unsigned base, long long offset, CUdeviceptr& at, size_t& pitch,
                          size_t& height) {
      const long long row = extents[2] * move.width;
      pitch = size_t(extents[1] > 1 ? strides[1] : row);
      height = extents[0] > 1 ? size_t(strides[0]) / pitch : size_t(extents[1]);
      at = address(memories.bases[base] + offset);
      return extents[0] == 1 || strides[0] % (long long)pitch == 0;
    };
    CUDA_MEMCPY3D out{};
    out.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    out.WidthInBytes = size_t(extents[2] * move.width);
    out.Height = size_t(extents[1]);
    out.Depth = size_t(extents[0]);
    if (!side(sources, move.source_base, move.source_offset, out.srcDevice, out.srcPitch, out.srcHeight) ||
        !side(targets, move.target_base, move.target_offset, out.dstDevice, out.dstPitch, out.dstHeight))
      return {};
    return out;
  }
  static std::vector<CUDA_MEMCPY3D_BATCH_OP> batch_of(const std::vector<CUDA_MEMCPY3D>& copies) {
    std::vector<CUDA_MEMCPY3D_BATCH_OP> out;
    for (const CUDA_MEMCPY3D& copy : copies) {
      CUDA_MEMCPY3D_BATCH_OP one{};
      const auto operand = [](CUdeviceptr at, size_t pitch, size_t height) {
        CUmemcpy3DOperand of{};
        of.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
        of.op.ptr.ptr = at;
        of.op.ptr.rowLength = pitch;
        of.op.ptr.layerHeight = height;
        of.op.ptr.locHint.type = CU_MEM_LOCATION_TYPE_DEVICE;
        return of;
      };
      one.src = operand(copy.srcDevice, copy.srcPitch, copy.srcHeight);
      one.dst = operand(copy.dstDevice, copy.dstPitch, copy.dstHeight);
      one.extent.width = copy.WidthInBytes;
      one.extent.height = copy.Height;
      one.extent.depth = copy.Depth;
      one.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
      out.push_back(one);
    }
    return out;
  }

  /// Throws when a contestant does not give the bytes of the host.
  void compare(const Work& work, const Memories& memories, const std::string& name,
               const std::function<void()>& enqueue) {
    long long bytes = 0;
    for (const long long size : work.base_bytes) bytes += size;
    if (bytes > compared_bytes_max) return;
    std::vector<std::vector<std::byte>> host, card;
    for (std::size_t b = 0; b < work.base_bytes.size(); ++b) {
      auto& base = host.emplace_back(std::size_t(work.base_bytes[b]));
      for (std::size_t i = 0; i < base.size(); i += 8) {
        const unsigned long long value = (i + 1 + (b << 40)) * 0x9e3779b97f4a7c15u;
        std::memcpy(base.data() + i, &value, std::min<std::size_t>(8, base.size() - i));
      }
      stream_->copy(row_of((long long)base.size(), 1), 1, base.data(), memories.bases[b]);
    }
    finish();
    enqueue();
    for (std::size_t b = 0; b < host.size(); ++b) {
      card.emplace_back(host[b].size());
      stream_->copy(row_of((long long)card[b].size(), 1), 1, memories.bases[b], card[b].data());
    }
    finish();
    for (const BlockMove& move : work.moves)
      copy_on_host(move.block, move.width, host[move.source_base].data() + move.source_offset,
                   host[move.target_base].data() + move.target_offset);
    for (std::size_t b = 0; b < host.size(); ++b)
      if (card[b] != host[b])
        throw_error(ErrorCode::internal, "{}: {}: base {} of {} has other bytes than the host's", work.name, name, b,
                    host.size());
  }

  void count(const Work& work, const Way& ours) {
    const auto counted = [] {
      cuda::software::KernelCounts all;
      for (const char* kernel : {"tranship_move_lean", "tranship_move_deep", "tranship_move_tiled"})
        all.add(cuda::software::counts_of(0, kernel));
      return all;
    };
    const auto act = [&] { ours.enqueue(), finish(); };
    const cuda::software::KernelCounts before = counted();
    act();
    const cuda::software::KernelCounts after = counted();
    const double sectors =
        double(after.loads.sectors - before.loads.sectors + after.stores.sectors - before.stores.sectors);
    report_.add({.name = work.name + ", launches",
                 .unit = "launches",
                 .ours = double(after.launches - before.launches),
                 .target = 1});
    report_.add({.name = work.name + ", sectors of those touched",
                 .unit = "ratio",
                 .ours = sectors / double(sectors_touched(work))});
    if (!work.is_bound_by_lanes) return;
    const double ns = medians_ns({{act}}, report_.measure_options())[0];
    report_.add({.name = work.name + ", for each 1,000 lanes",
                 .unit = "ms",
                 .ours = ns * 1e-3 / double(after.lanes - before.lanes),
                 .target = 1});
  }

  void time(const Work& work, const std::vector<Way>& ways) {
    const Memories plain(driver_, {.name = work.name, .base_bytes = {work.payload_bytes, work.payload_bytes}});
    std::vector<Way> all = ways;
    all.push_back({"a copy", [&] {
                     ok(cu().cuMemcpyAsync(address(plain.bases[1]), address(plain.bases[0]),
                                           std::size_t(work.payload_bytes), native_),
                        "cuMemcpyAsync");
                   }});
    std::vector<std::unique_ptr<Graph>> graphs;
    std::vector<Contestant> on_stream, in_graphs;
    for (const Way& way : all) {
      on_stream.push_back({[&] { way.enqueue(), finish(); }});
      graphs.push_back(std::make_unique<Graph>(native_, times_in_graph, way.enqueue));
      in_graphs.push_back({[this, graph = graphs.back().get()] { graph->launch(native_), finish(); }});
    }
    std::vector<double> streamed_us = medians_ns(on_stream, report_.measure_options());
    std::vector<double> in_graph_us = medians_ns(in_graphs, report_.measure_options());
    for (double& us : streamed_us) us *= 1e-3;
    for (double& us : in_graph_us) us *= 1e-3 / times_in_graph;
    const auto add = [&](const std::string& name, const char* unit, Better better, const std::vector<double>& us,
                         const auto& value, std::optional<double> target = {}) {
      Row row{.name = name,
              .unit = unit,
              .better = better,
              .ours = value(us[0]),
              .limit = value(us.back()),
              .target = target};
      for (std::size_t i = 1; i + 1 < all.size(); ++i) row.peers.emplace_back(all[i].name, value(us[i]));
      report_.add(std::move(row));
    };
    const auto itself = [](double us) { return us; };
    const auto rate_of = [](double bytes) { return [bytes](double us) { return bytes * 1e-3 / us; }; };
    add(work.name + ", launched and waited for", "us", Better::lower, streamed_us, itself);
    add(work.name + ", in a graph", "us", Better::lower, in_graph_us, itself, work.graph_us_max);
    add(work.name + ", read and written", "GB/s", Better::higher, in_graph_us,
        rate_of(2.0 * double(work.payload_bytes)));
    report_.add({.name = work.name + ", read and written in sectors",
                 .unit = "GB/s",
                 .better = Better::higher,
                 .ours = rate_of(32.0 * double(sectors_touched(work)))(in_graph_us[0]),
                 .limit = rate_of(2.0 * double(work.payload_bytes))(in_graph_us.back())});
  }

  Report& report_;
  bool is_software_;
  Devices devices_;
  std::unique_ptr<Stream> stream_;
  CUstream native_;
  Driver& driver_;
  BatchCall batch_ = nullptr;
};

}  // namespace

TRANSHIP_BENCH(device, "lists of moves on a card; TRANSHIP_CUDA=software counts without one") {
  const char* const setting = std::getenv("TRANSHIP_CUDA");
  const bool is_software = setting && std::string_view(setting).starts_with("software");
  std::optional<CardBench> card;
  try {
    card.emplace(report, is_software);
  } catch (const Error& error) {
    report.announce(fmt::format("nothing: {}", error.message()));
    return;
  }
  for (const bool is_k_fastest : {true, false})
    for (const int quantities : {1, 7, 28})
      for (const bool unpacks : {false, true})
        if (quantities == 1 || !(report.is_quick() && is_software)) card->run(ndsl(is_k_fastest, quantities, unpacks));
  Work small = one_move("one launch, 64 KiB", block_of({{4096, 16, 16}}), 16);
  small.is_bound_by_lanes = true;
  card->run(small);
  const long long n = is_software ? 96 : 384, m = is_software ? 512 : 8192;
  card->run(one_move(fmt::format("{0} x {0} x {0} doubles, ijk to kji", n),
                     block_of({{n, n * n * 8, 8}, {n, n * 8, n * 8}, {n, 8, n * n * 8}}), 8));
  card->run(one_move(fmt::format("{0} x {0} x {0} doubles, ijk to jki", n),
                     block_of({{n, n * n * 8, 8}, {n, n * 8, n * n * 8}, {n, 8, n * 8}}), 8));
  card->run(one_move(fmt::format("{0} x {0} floats, corner turn", m), block_of({{m, m * 4, 4}, {m, 4, m * 4}}), 4));
  card->run(one_move(fmt::format("{0} x {0} bytes, corner turn", m), block_of({{m, m, 1}, {m, 1, m}}), 1));
}
