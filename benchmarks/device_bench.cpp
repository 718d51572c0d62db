// device: prepared lists of moves on a card, one launch each: NDSL's halo regions, transposes and corner turns. On a
// real card it measures times, beside a copy of as many bytes by the card and beside a launch for each region. On a
// software card (TRANSHIP_CUDA=software), whose times mean nothing, it counts launches, and sectors of 32 bytes beside
// the fewest that hold the data. `./do device` measures other libraries.
#if defined(TRANSHIP_BENCH_CARDS)

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>

#include <tranship/base/error.hpp>
#include <tranship/cuda/cuda_devices.hpp>
#include <tranship/cuda/software/software_card.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>

namespace {

using namespace tranship;
using bench::Better;

struct Region {
  long long i, j, i_count, j_count;
};

/// A work: moves between bases, of which base i has `base_bytes[i]` bytes.
struct Work {
  std::string name;
  std::vector<BlockMove> moves;
  std::vector<long long> base_bytes;
  long long payload_bytes = 0;
};

CopyBlock block_of(std::initializer_list<std::array<long long, 3>> loops) {
  CopyBlock out;
  for (const auto& [extent, source, target] : loops) {
    out.extents[out.dims] = extent;
    out.source_strides[out.dims] = source;
    out.target_strides[out.dims++] = target;
  }
  return out;
}

/// Quantities of 192 x 192 x 79 doubles with a halo of 3: the regions for four edges and four corners, packed for the
/// neighbours, or unpacked from them.
Work ndsl(bool is_k_fastest, int quantities, bool unpacks) {
  constexpr long long halo = 3, along = 192, all = along + 2 * halo, levels = 79;
  const long long strides[3] = {is_k_fastest ? all * levels * 8 : 8, is_k_fastest ? levels * 8 : all * 8,
                                is_k_fastest ? 8 : all * all * 8};
  const auto at = [&](long long edge) { return unpacks ? (edge < 0 ? 0 : along + halo) : (edge < 0 ? halo : along); };
  Work out{.name = fmt::format("NDSL {}, {} fastest, {} quantit{}", unpacks ? "unpack" : "pack",
                               is_k_fastest ? "k" : "i", quantities, quantities == 1 ? "y" : "ies")};
  out.base_bytes.assign(std::size_t(quantities), all * all * levels * 8);
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j) {
      if (i == 0 && j == 0) continue;
      const Region region{i == 0 ? halo : at(i), j == 0 ? halo : at(j), i == 0 ? along : halo, j == 0 ? along : halo};
      const long long bytes = region.i_count * region.j_count * levels * 8;
      for (int q = 0; q < quantities; ++q) {
        BlockMove move{
            .source_base = unsigned(q),
            .source_offset = region.i * strides[0] + region.j * strides[1],
            .target_base = unsigned(out.base_bytes.size()),
            .target_offset = q * bytes,
            .block = with_dense_target(
                block_of({{region.i_count, strides[0], 0}, {region.j_count, strides[1], 0}, {levels, strides[2], 0}}),
                8),
            .width = 8};
        if (unpacks) {
          std::swap(move.source_base, move.target_base);
          std::swap(move.source_offset, move.target_offset);
          for (int d = 0; d < 3; ++d) std::swap(move.block.source_strides[d], move.block.target_strides[d]);
        }
        out.moves.push_back(move);
        out.payload_bytes += bytes;
      }
      out.base_bytes.push_back(quantities * bytes);
    }
  return out;
}

Work one_move(std::string name, const CopyBlock& block, int width) {
  const long long bytes = element_count(block) * width;
  return {.name = std::move(name),
          .moves = {{.source_base = 0, .target_base = 1, .block = block, .width = width}},
          .base_bytes = {bytes, bytes},
          .payload_bytes = bytes};
}

class CardBench {
 public:
  CardBench(bench::Report& report, bool is_software)
      : report_(report),
        is_software_(is_software),
        devices_({.kinds = {CudaDevices{.cards = {0}}}}),
        stream_(devices_.make_stream(Device::cuda(0))),
        driver_(devices_.driver(devices_.memory_of(Device::cuda(0)))) {}

  void run(const Work& work) {
    if (!report_.wants(work.name)) return;
    report_.announce(work.name);
    const Memories memories(driver_, work);
    const std::vector<int> alignments(work.base_bytes.size(), 16);
    const auto list = stream_->prepare(work.moves, alignments);
    const auto act = [&] {
      stream_->move_list(list, memories.bases);
      finish(stream_->event(), Deadline::after_seconds(60));
    };
    if (is_software_)
      count(work, act);
    else
      time(work, act, memories);
  }

 private:
  struct Memories {
    Memories(Driver& of, const Work& work) : driver(of), bytes(work.base_bytes) {
      for (const long long size : bytes) bases.push_back(static_cast<std::byte*>(driver.allocate(std::size_t(size))));
      for (const std::byte* base : bases)
        if (!base) throw Error(ErrorCode::no_memory, "the card has no room for " + work.name);
    }
    ~Memories() {
      for (std::size_t i = 0; i < bases.size(); ++i)
        if (bases[i]) driver.deallocate(bases[i], std::size_t(bytes[i]));
    }
    Memories(const Memories&) = delete;
    Memories& operator=(const Memories&) = delete;
    Driver& driver;
    std::vector<long long> bytes;
    std::vector<std::byte*> bases;
  };

  void count(const Work& work, const std::function<void()>& act) {
    const auto counted = [] {
      cuda::software::KernelCounts all;
      for (const char* kernel : {"tranship_move_lean", "tranship_move_deep", "tranship_move_tiled"})
        all.add(cuda::software::counts_of(0, kernel));
      return all;
    };
    const cuda::software::KernelCounts before = counted();
    act();
    const cuda::software::KernelCounts after = counted();
    const double sectors =
        double(after.loads.sectors - before.loads.sectors + after.stores.sectors - before.stores.sectors);
    const double fewest = double(after.loads.sectors_fewest - before.loads.sectors_fewest +
                                 after.stores.sectors_fewest - before.stores.sectors_fewest);
    report_.add({.name = work.name + ", launches",
                 .unit = "launches",
                 .ours = double(after.launches - before.launches),
                 .target = 1});
    report_.add({.name = work.name + ", sectors of the fewest", .unit = "ratio", .ours = sectors / fewest});
    // A launch whose lanes have one or two elements each costs the lanes and little else.
    if (work.payload_bytes > 64 * 1024) return;
    const double ns = bench::medians_ns({{act}}, report_.measure_options())[0];
    report_.add({.name = work.name + ", for each 1,000 lanes",
                 .unit = "ms",
                 .ours = ns * 1e-3 / double(after.lanes - before.lanes),
                 .target = 1});
  }

  void time(const Work& work, const std::function<void()>& act, const Memories& memories) {
    const long long half = work.payload_bytes;
    const Memories plain(driver_, {.name = work.name, .base_bytes = {half, half}});
    const auto copy = [&] {
      stream_->copy(row_of(half, 1), 1, plain.bases[0], plain.bases[1]);
      finish(stream_->event(), Deadline::after_seconds(60));
    };
    const auto one_by_one = [&] {
      for (const BlockMove& move : work.moves)
        stream_->copy(move.block, move.width, memories.bases[move.source_base] + move.source_offset,
                      memories.bases[move.target_base] + move.target_offset);
      finish(stream_->event(), Deadline::after_seconds(60));
    };
    const auto ns = bench::medians_ns({{act}, {copy}, {one_by_one}}, report_.measure_options());
    const auto rate = [&](std::size_t i) { return double(work.payload_bytes) / ns[i]; };
    report_.add({.name = work.name,
                 .unit = "GB/s",
                 .better = Better::higher,
                 .ours = rate(0),
                 .limit = rate(1),
                 .peers = {{"a launch for each region", rate(2)}}});
  }

  bench::Report& report_;
  bool is_software_;
  Devices devices_;
  std::unique_ptr<Stream> stream_;
  Driver& driver_;
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
  card->run(one_move("one launch, 64 KiB", block_of({{4096, 16, 16}}), 16));
  const long long n = is_software ? 96 : 384, m = is_software ? 512 : 8192;
  card->run(one_move(fmt::format("{0} x {0} x {0} doubles, ijk to kji", n),
                     block_of({{n, n * n * 8, 8}, {n, n * 8, n * 8}, {n, 8, n * n * 8}}), 8));
  card->run(one_move(fmt::format("{0} x {0} x {0} doubles, ijk to jki", n),
                     block_of({{n, n * n * 8, 8}, {n, n * 8, n * n * 8}, {n, 8, n * 8}}), 8));
  card->run(one_move(fmt::format("{0} x {0} floats, corner turn", m), block_of({{m, m * 4, 4}, {m, 4, m * 4}}), 4));
  card->run(one_move(fmt::format("{0} x {0} bytes, corner turn", m), block_of({{m, m, 1}, {m, 1, m}}), 1));
}

#endif
