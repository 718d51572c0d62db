// What software cards do beyond the contract of drivers: they catch broken kernels and stray accesses, count sectors
// and bank conflicts, and do what programs have not ordered in any order.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/error.hpp>
#include <tranship/base/random.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/cuda/list_image.hpp>
#include <tranship/cuda/software/lane.hpp>
#include <tranship/kernels/host/piece_list.hpp>
#include <tranship/kernels/strided_copy.hpp>

#include "cuda/contract/cases.hpp"
#include "cuda/contract/kernels.hpp"
#include "cuda/software_cards.hpp"

namespace tranship {
namespace {

using contract::Bench;
using cuda::software::AllCalls;
using cuda::software::KernelCounts;
using cuda::software::SoftwareLane;

struct Words {
  unsigned* words;
  int count;
};
struct Room {
  unsigned words[1024];
};
struct Squares {
  unsigned words[32 * 33];
};

unsigned in_place_of_shared_memory[256];

/// A kernel with `Words` for arguments, and what its failure says.
struct Broken {
  const char* name;
  void (*body)(const SoftwareLane& lane, const Words& args);
  const char* says;
  CUresult error = CUDA_ERROR_LAUNCH_FAILED;
};

const Broken broken_kernels[] = {
    {"reads its neighbour's word without a barrier",
     [](const SoftwareLane& lane, const Words& args) {
       Room& room = lane.shared<Room>();
       lane.store(&room.words[lane.index()], 1u);
       lane.store(args.words + lane.index(), lane.load<unsigned>(&room.words[(lane.index() + 1) % lane.lanes()]));
     },
     "race|no lane has written"},
    {"writes again before its neighbour has read",
     [](const SoftwareLane& lane, const Words& args) {
       Room& room = lane.shared<Room>();
       for (int round = 0; round < 2; ++round) {
         lane.store(&room.words[lane.index()], unsigned(round));
         lane.block().sync();
         lane.store(args.words + lane.index(), lane.load<unsigned>(&room.words[(lane.index() + 1) % lane.lanes()]));
       }
     },
     "a race"},
    {"orders a block by a barrier of warps",
     [](const SoftwareLane& lane, const Words& args) {
       Room& room = lane.shared<Room>();
       lane.store(&room.words[lane.index()], 1u);
       lane.warp().sync();
       lane.store(args.words + lane.index(), lane.load<unsigned>(&room.words[(lane.index() + 32) % lane.lanes()]));
     },
     "race|no lane has written"},
    {"reads shared memory that was not written",
     [](const SoftwareLane& lane, const Words& args) {
       lane.store(args.words + lane.index(), lane.load<unsigned>(&lane.shared<Room>().words[lane.index()]));
     },
     "no lane has written"},
    {"has a static in place of shared memory",
     [](const SoftwareLane& lane, const Words&) { lane.store(&in_place_of_shared_memory[lane.index()], 1u); },
     "memory of the host", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"has a word too many",
     [](const SoftwareLane& lane, const Words& args) { lane.store(args.words + args.count - lane.index(), 1u); },
     "lies in no allocation", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"begins a word too early",
     [](const SoftwareLane& lane, const Words& args) { lane.store(args.words + lane.index() - 1, 1u); },
     "lies in no allocation", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"reads a word of the host",
     [](const SoftwareLane& lane, const Words& args) {
       unsigned host = 1;
       lane.store(args.words + lane.index(), lane.load<unsigned>(&host));
     },
     "memory of the host", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"loads 8 bytes at a multiple of 4",
     [](const SoftwareLane& lane, const Words& args) { lane.load<unsigned long long>(args.words + 1); }, "not aligned",
     CUDA_ERROR_MISALIGNED_ADDRESS},
    {"leaves lanes behind at a barrier",
     [](const SoftwareLane& lane, const Words&) {
       if (lane.index() % 3 != 0) lane.block().sync();
     },
     "ended"},
    {"comes to different barriers",
     [](const SoftwareLane& lane, const Words&) {
       if (lane.index() < 32)
         lane.block().sync();
       else
         lane.block().sync();
     },
     "diverged"},
    {"stands at barriers of different groups",
     [](const SoftwareLane& lane, const Words&) {
       if (lane.index() % 2 == 0)
         lane.block().sync();
       else
         lane.warp().sync();
     },
     "no lane of block 0 can go on"},
    {"shuffles with half of a warp",
     [](const SoftwareLane& lane, const Words&) {
       if (lane.index() % 2 == 0) lane.shuffle(1, 0);
     },
     "ended"},
    {"dereferences null",
     [](const SoftwareLane& lane, const Words& args) {
       // Near null; where exactly, the compiler does not know.
       auto* const none = reinterpret_cast<volatile unsigned*>(std::uintptr_t(args.count) * 4);
       if (lane.index() == 5) *none = 1;
     },
     "plain pointer", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"asks for more shared memory than its twin",
     [](const SoftwareLane& lane, const Words&) {
       lane.shared<Room>();
       lane.shared<Squares>();
     },
     "shared memory"},
};

template <int number>
void run_broken(const SoftwareLane& lane, const void* args) {
  broken_kernels[number].body(lane, *static_cast<const Words*>(args));
}
template <int... numbers>
void register_broken(std::integer_sequence<int, numbers...>) {
  static const std::string names[] = {"contract_broken " + std::to_string(numbers)...};
  (cuda::software::register_kernel({.name = names[numbers].c_str(),
                                    .args_bytes = sizeof(Words),
                                    .run = run_broken<numbers>,
                                    .shared_bytes = sizeof(Room)}),
   ...);
}

/// A transpose of a square by shared memory whose rows are `pitch` words apart.
template <int pitch>
struct Transpose {
  struct Tile {
    unsigned words[32 * pitch];
  };
  void operator()(const SoftwareLane& lane, const Words& args) const {
    Tile& tile = lane.shared<Tile>();
    const int x = lane.index() % 32, y = lane.index() / 32;
    lane.store(&tile.words[y * pitch + x], lane.load<unsigned>(args.words + lane.index()));
    lane.block().sync();
    lane.store(args.words + lane.index(), lane.load<unsigned>(&tile.words[x * pitch + y]));
  }
};

/// Stores `count` words by each lane, or by the first lane of each warp while the others wait for it.
struct ManyStores {
  void operator()(const SoftwareLane& lane, const Words& args) const {
    const bool is_by_all = args.count > 0;
    unsigned* const own = args.words + lane.block_index() * lane.lanes() + lane.index();
    if (is_by_all || lane.warp().lane() == 0)
      for (int i = 0; i < std::abs(args.count); ++i) lane.store(own, unsigned(i));
    lane.block().sync();
  }
};

/// A lane whose block leaves out every second barrier: the first, third and so on, or the others.
class LaxLane : public SoftwareLane {
 public:
  LaxLane(const SoftwareLane& lane, int left_out) : SoftwareLane(lane), left_out_(left_out) {}

  class Block {
   public:
    explicit Block(const LaxLane& lane) : lane_(lane) {}
    void sync(KernelSite where = KernelSite::here()) const {
      if (lane_.barriers_++ % 2 != lane_.left_out_) lane_.SoftwareLane::block().sync(where);
    }

   private:
    const LaxLane& lane_;
  };
  Block block() const { return Block(*this); }

 private:
  int left_out_;
  mutable int barriers_ = 0;
};

struct alignas(16) TileRoom {
  unsigned char bytes[packing::room_bytes];
};
/// The kernel of tiles as the back-end has it, or without one of its two barriers for each tile.
enum class LeftOut { none = -1, before_stores = 0, before_loads = 1 };
template <LeftOut left_out>
struct MoveTiled {
  void operator()(const SoftwareLane& lane, const cuda::MoveArgs& args) const {
    cuda::move_tiled_body(LaxLane(lane, int(left_out)), lane, args, lane.shared<TileRoom>().bytes);
  }
};

/// As many lanes as a launch has, of which each does nothing.
struct Nothing {
  void operator()(const SoftwareLane&, const Words&) const {}
};

[[maybe_unused]] const bool is_registered = [] {
  register_broken(std::make_integer_sequence<int, int(std::size(broken_kernels))>());
  using cuda::software::register_kernel, cuda::software::twin_of;
  register_kernel(twin_of<Words>("contract_transpose32", Transpose<32>(), 1024, sizeof(Transpose<32>::Tile)));
  register_kernel(twin_of<Words>("contract_transpose33", Transpose<33>(), 1024, sizeof(Transpose<33>::Tile)));
  register_kernel(twin_of<Words>("contract_nothing", Nothing()));
  register_kernel(twin_of<Words>("contract_many_stores", ManyStores()));
  const auto tiled = [](const char* name, auto body) {
    register_kernel(twin_of<cuda::MoveArgs>(name, body, packing::pack_lanes, sizeof(TileRoom)));
  };
  tiled("contract_tiled", MoveTiled<LeftOut::none>());
  tiled("contract_tiled without a barrier before stores", MoveTiled<LeftOut::before_stores>());
  tiled("contract_tiled without a barrier before loads", MoveTiled<LeftOut::before_loads>());
  return true;
}();

CUdeviceptr allocated(Bench& bench, std::size_t bytes) {
  CUdeviceptr memory = 0;
  EXPECT_EQ(bench.cu.cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
  return memory;
}

TEST(SoftwareCard, CatchesBrokenKernels) {
  for (int number = 0; number < int(std::size(broken_kernels)); ++number)
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Broken& broken = broken_kernels[number];
      const AllCalls& cu = test::software_calls(seed);
      Bench bench(cu, "no code");
      const CUdeviceptr memory = allocated(bench, 256);
      const Words args{reinterpret_cast<unsigned*>(memory), 64};
      ASSERT_EQ(bench.launch("broken " + std::to_string(number), 2, 64, args, nullptr), CUDA_SUCCESS);
      EXPECT_EQ(cu.cuCtxSynchronize(), broken.error) << "a kernel that " << broken.name << ", seed " << seed;
      const std::string text = cuda::software::failure_of(0);
      bool says = false;
      for (std::string_view rest = broken.says; !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find('|'));
        says |= text.find(one) != std::string::npos;
        rest = one.size() == rest.size() ? std::string_view() : rest.substr(one.size() + 1);
      }
      EXPECT_TRUE(says) << "a kernel that " << broken.name << ": " << text;
      cuda::software::begin_anew(seed);
      EXPECT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
    }
}

TEST(SoftwareCard, EndsHostCodeThatAccessesMemoryOfACard) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const AllCalls& cu = test::software_calls(1);
  Bench bench(cu, "no code");
  const CUdeviceptr memory = allocated(bench, 256);
  EXPECT_DEATH(
      {
        *reinterpret_cast<volatile int*>(memory) = 1;
        std::_Exit(0);
      },
      "");
  ASSERT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
}

TEST(SoftwareCard, CountsSectors) {
  const AllCalls& cu = test::software_calls(1);
  Bench bench(cu, "no code");
  const CUdeviceptr from = allocated(bench, 1 << 20), to = allocated(bench, 1 << 20);
  const auto counts = [&](int stride, std::size_t offset) {
    cuda::software::begin_anew(3);
    const contract::CopyArgs args{reinterpret_cast<const contract::Wide*>(from + offset),
                                  reinterpret_cast<contract::Wide*>(to), 5000, stride};
    EXPECT_EQ(bench.launch("copy", 3, 256, args, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    return cuda::software::counts_of(0, "contract_copy");
  };
  const KernelCounts whole = counts(1, 0);
  EXPECT_EQ(whole.launches, 1);
  EXPECT_EQ(whole.lanes, 3 * 256);
  EXPECT_EQ(whole.loads.bytes, 80000);
  EXPECT_EQ(whole.loads.sectors, 2500);
  EXPECT_EQ(whole.loads.sectors_fewest, 2500);
  EXPECT_EQ(whole.loads.units, 1250);
  EXPECT_EQ(whole.stores.sectors, 2500);
  // 5000 vectors are 156 warps and 8 lanes, and off a sector each of these touches one sector more.
  EXPECT_EQ(counts(1, 16).loads.sectors, 2500 + 157);
  EXPECT_EQ(counts(2, 0).loads.sectors, 5000);
  EXPECT_EQ(counts(2, 0).loads.units, 2500);
  EXPECT_EQ(counts(4, 0).loads.units, 5000);
  EXPECT_EQ(counts(4, 0).loads.sectors_fewest, 2500);
  ASSERT_EQ(cu.cuMemFree(from), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuMemFree(to), CUDA_SUCCESS);
}

TEST(SoftwareCard, CountsBankConflicts) {
  const AllCalls& cu = test::software_calls(2);
  Bench bench(cu, "no code");
  const CUdeviceptr memory = allocated(bench, 4096);
  const Words args{reinterpret_cast<unsigned*>(memory), 1024};
  for (const int pitch : {32, 33}) {
    ASSERT_EQ(bench.launch("transpose" + std::to_string(pitch), 1, 1024, args, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    const KernelCounts counts = cuda::software::counts_of(0, "contract_transpose" + std::to_string(pitch));
    EXPECT_EQ(counts.shared_accesses, 64);
    EXPECT_EQ(counts.shared_passes_fewest, 64);
    EXPECT_EQ(counts.shared_passes, pitch == 32 ? 32 + 32 * 32 : 64);
  }
  ASSERT_EQ(cu.cuMemFree(memory), CUDA_SUCCESS);
}

/// A transpose of elements that one launch of a tiled kernel moves.
class TiledTranspose {
 public:
  TiledTranspose(Bench& bench, int width, long long rows, long long columns)
      : bench_(bench), source_(std::size_t(width * rows * columns)), list_({16, 16}) {
    SplitMix64 random(source_.size());
    for (unsigned char& byte : source_) byte = static_cast<unsigned char>(random.next());
    move_.width = width;
    move_.target_base = 1;
    move_.block.dims = 2;
    move_.block.extents[0] = rows, move_.block.extents[1] = columns;
    move_.block.source_strides[0] = columns * width, move_.block.source_strides[1] = width;
    move_.block.target_strides[0] = width, move_.block.target_strides[1] = rows * width;
    list_.add(move_);
    list_.lay_out(1);
    from_ = allocated(bench, source_.size());
    to_ = allocated(bench, source_.size());
    EXPECT_EQ(bench.cu.cuMemcpy(from_, CUdeviceptr(source_.data()), source_.size()), CUDA_SUCCESS);
    EXPECT_EQ(bench.cu.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  ~TiledTranspose() {
    EXPECT_EQ(bench_.cu.cuMemFree(from_), CUDA_SUCCESS);
    EXPECT_EQ(bench_.cu.cuMemFree(to_), CUDA_SUCCESS);
  }
  TiledTranspose(const TiledTranspose&) = delete;

  packing::PieceKind kind() const { return list_.pieces().at(0).kind; }
  CUresult run(const std::string& kernel, int blocks) const {
    cuda::MoveArgs args = {};
    cuda::write_few(list_, args);
    args.bases.few[0] = reinterpret_cast<unsigned char*>(from_);
    args.bases.few[1] = reinterpret_cast<unsigned char*>(to_);
    EXPECT_EQ(bench_.launch(kernel, blocks, int(packing::pack_lanes), args, nullptr), CUDA_SUCCESS);
    return bench_.cu.cuCtxSynchronize();
  }
  bool is_right() const {
    std::vector<unsigned char> wanted(source_.size()), got(source_.size());
    copy(move_.block, move_.width, source_.data(), wanted.data());
    EXPECT_EQ(bench_.cu.cuMemcpy(CUdeviceptr(got.data()), to_, got.size()), CUDA_SUCCESS);
    return got == wanted;
  }

 private:
  Bench& bench_;
  std::vector<unsigned char> source_;
  packing::PieceList list_;
  BlockMove move_;
  CUdeviceptr from_ = 0, to_ = 0;
};

/// Transposes of several tiles, by elements of all widths and by words.
struct TiledCase {
  int width;
  long long rows, columns;
  packing::PieceKind kind;
};
constexpr TiledCase tiled_cases[] = {
    {1, 201, 150, packing::PieceKind::transposed},       {2, 131, 150, packing::PieceKind::transposed},
    {4, 70, 130, packing::PieceKind::transposed},        {8, 70, 40, packing::PieceKind::transposed},
    {16, 40, 70, packing::PieceKind::transposed},        {1, 200, 260, packing::PieceKind::transposed_words},
    {2, 130, 140, packing::PieceKind::transposed_words},
};

TEST(SoftwareCard, ChecksTheTilesOfTransposes) {
  for (const TiledCase& one : tiled_cases)
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(std::to_string(one.width) + " bytes, seed " + std::to_string(seed));
      Bench bench(test::software_calls(seed), "no code");
      const TiledTranspose transpose(bench, one.width, one.rows, one.columns);
      ASSERT_EQ(transpose.kind(), one.kind);
      for (const int blocks : {1, 3}) {
        EXPECT_EQ(transpose.run("tiled", blocks), CUDA_SUCCESS) << cuda::software::failure_of(0);
        EXPECT_TRUE(transpose.is_right());
      }
      const KernelCounts counts = cuda::software::counts_of(0, "contract_tiled");
      EXPECT_GT(counts.shared_accesses, 0);
      // Elements of less than a word share the words of a bank, and their columns take two passes.
      const bool is_narrow = one.width < 4 && one.kind == packing::PieceKind::transposed;
      EXPECT_EQ(2 * counts.shared_passes, (is_narrow ? 3 : 2) * counts.shared_passes_fewest);
    }
}

TEST(SoftwareCard, CatchesTilesWithoutABarrier) {
  for (const TiledCase& one : tiled_cases)
    for (const char* kernel : {"tiled without a barrier before stores", "tiled without a barrier before loads"})
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        SCOPED_TRACE(std::to_string(one.width) + " bytes, " + kernel + ", seed " + std::to_string(seed));
        Bench bench(test::software_calls(seed), "no code");
        const TiledTranspose transpose(bench, one.width, one.rows, one.columns);
        EXPECT_EQ(transpose.run(kernel, 1), CUDA_ERROR_LAUNCH_FAILED);
        const std::string text = cuda::software::failure_of(0);
        EXPECT_TRUE(text.find("a race") != std::string::npos || text.find("no lane has written") != std::string::npos)
            << text;
        cuda::software::begin_anew(seed);
      }
}

/// The most memory that this process has had.
std::size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return kibibytes << 10;
  return 0;
}

/// Runs as many lanes as a card holds at a time, of which each accesses memory `accesses` times. Ends the process.
[[noreturn]] void measure_lanes(int accesses) {
  constexpr int blocks = 16, lanes = 256;
  constexpr std::size_t bytes = 4ull * blocks * lanes;
  const AllCalls& cu = test::software_calls(1);
  Bench bench(cu, "no code");
  CUdeviceptr memory = 0;
  cu.cuMemAlloc(&memory, bytes);
  bool is_right = true;
  std::int64_t stored = 0;
  for (const int count : {accesses, -accesses}) {
    is_right &= bench.launch("many_stores", blocks, lanes, Words{reinterpret_cast<unsigned*>(memory), count},
                             nullptr) == CUDA_SUCCESS &&
                cu.cuCtxSynchronize() == CUDA_SUCCESS;
    stored += 4ll * blocks * (count > 0 ? lanes : lanes / 32) * accesses;
  }
  const KernelCounts counts = cuda::software::counts_of(0, "contract_many_stores");
  is_right &= counts.stores.bytes == stored && counts.stores.sectors_fewest == counts.stores.sectors;
  const std::size_t peak = peak_bytes(), most = bytes + (std::size_t(64) << 20);
  if (!is_right || peak == 0 || peak > most)
    std::fprintf(stderr, "%s: %zu bytes at the peak, of at most %zu; stored %lld of %lld bytes in %lld sectors\n",
                 is_right ? "too much memory" : "wrong", peak, most, static_cast<long long>(counts.stores.bytes),
                 static_cast<long long>(stored), static_cast<long long>(counts.stores.sectors));
  std::_Exit(is_right && peak > 0 && peak <= most ? 0 : 1);
}

TEST(SoftwareCard, NeedsLittleMemoryForLanesWithManyAccesses) {
#if defined(TRANSHIP_SANITIZED)
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(measure_lanes(2000), testing::ExitedWithCode(0), "");
}

TEST(SoftwareCard, HasNoMoreThanItsCapacity) {
  const AllCalls& cu = test::software_calls(1);
  Bench bench(cu, "no code");
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cu.cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  ASSERT_EQ(free, total);
  ASSERT_EQ(total, std::size_t(64) << 20);
  CUdeviceptr half = 0, most = 0, none = 0;
  ASSERT_EQ(cu.cuMemAlloc(&half, total / 2), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuMemAlloc(&none, total / 2 + 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cu.cuMemAlloc(&most, total / 2), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuMemAlloc(&none, 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cu.cuMemFree(half), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuMemAlloc(&half, total / 2), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuMemFree(half), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuMemFree(most), CUDA_SUCCESS);
}

/// Makes cards that do not reach each other, and tells what is wrong with them. Ends the process.
[[noreturn]] void ask_cards_that_are_apart(std::uint64_t seed) {
  AllCalls cu;
  cuda::software::fill_calls(cu, cuda::software::software_cards("2:apart:seed=" + std::to_string(seed)));
  Bench b(cu, "no code");
  CUcontext context = nullptr;
  b.ok(cu.cuDevicePrimaryCtxRetain(&context, 1), "cuDevicePrimaryCtxRetain");
  int can_access = 1;
  b.ok(cu.cuDeviceCanAccessPeer(&can_access, 0, 1), "cuDeviceCanAccessPeer");
  b.expect(can_access == 0, "no access");
  b.expect(cu.cuCtxEnablePeerAccess(context, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "cuCtxEnablePeerAccess");
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemAccessDesc access = {};
  access.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (const bool has_memory : {true, false}) {
    CUmemoryPool pool = nullptr;
    CUdeviceptr memory = 0;
    b.ok(cu.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
    if (has_memory) b.ok(cu.cuMemAllocFromPoolAsync(&memory, 16, pool, nullptr), "cuMemAllocFromPoolAsync");
    const CUresult set = cu.cuMemPoolSetAccess(pool, &access, 1);
    if (has_memory || set != CUDA_SUCCESS)
      b.expect(set, CUDA_ERROR_INVALID_DEVICE, "cuMemPoolSetAccess");
    else
      b.expect(cu.cuMemAllocFromPoolAsync(&memory, 16, pool, nullptr), CUDA_ERROR_INVALID_DEVICE,
               "cuMemAllocFromPoolAsync after it");
  }
  // The driver copies by way of the host.
  CUdeviceptr here = 0, there = 0;
  unsigned word = 0;
  b.ok(cu.cuMemAlloc(&here, 4), "cuMemAlloc");
  cu.cuCtxPushCurrent(context);
  b.ok(cu.cuMemAlloc(&there, 4), "cuMemAlloc");
  cu.cuCtxPopCurrent(nullptr);
  b.ok(cu.cuMemsetD32Async(here, 7, 1, nullptr), "memset");
  b.ok(cu.cuMemcpyAsync(there, here, 4, nullptr), "a copy from card to card");
  b.ok(cu.cuMemcpyAsync(CUdeviceptr(&word), there, 4, nullptr), "a copy to the host");
  b.expect(word == 7, "what was copied");
  for (const std::string& text : b.wrong) std::fprintf(stderr, "%s\n", text.c_str());
  std::_Exit(b.wrong.empty() ? 0 : 1);
}

TEST(SoftwareCard, ReachesNoOtherCardWhereTheyAreApart) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_EXIT(ask_cards_that_are_apart(seed), testing::ExitedWithCode(0), "") << "seed " << seed;
}

TEST(SoftwareCard, IsChosenByText) {
  const cuda::software::SoftwareCards chosen = cuda::software::software_cards("3:seed=9:memory=2M:punctual");
  EXPECT_EQ(chosen.count, 3);
  EXPECT_EQ(chosen.seed, 9u);
  EXPECT_EQ(chosen.capacity_bytes, std::size_t(2) << 20);
  EXPECT_TRUE(chosen.is_punctual);
  EXPECT_FALSE(chosen.is_apart);
  EXPECT_TRUE(cuda::software::software_cards("2:apart").is_apart);
  EXPECT_TRUE(cuda::software::software_cards("2:stuck").is_stuck);
  EXPECT_EQ(cuda::software::software_cards("").count, 1);
  for (const char* text :
       {"0", "17", "2:3", "seed=x", "slow", "memory=", "2:seed=", "2:", "seed=7:seed=8", "apart:apart"})
    try {
      cuda::software::software_cards(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_text) << text;
      for (const std::string& part :
           {std::string("TRANSHIP_CUDA is 'software:") + text + "'", std::string("expected is")})
        EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    }
}

// Memory that goes to another process.

/// Memory of virtual addresses with access, of one chunk.
struct Mapped {
  Mapped(Bench& of, CUmemGenericAllocationHandle memory, std::size_t size) : bench(of), handle(memory), bytes(size) {
    EXPECT_EQ(bench.cu.cuMemAddressReserve(&at, bytes, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(bench.cu.cuMemMap(at, bytes, 0, handle, 0), CUDA_SUCCESS);
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(bench.cu.cuMemSetAccess(at, bytes, &access, 1), CUDA_SUCCESS);
  }
  ~Mapped() {
    EXPECT_EQ(bench.cu.cuMemUnmap(at, bytes), CUDA_SUCCESS);
    EXPECT_EQ(bench.cu.cuMemAddressFree(at, bytes), CUDA_SUCCESS);
    EXPECT_EQ(bench.cu.cuMemRelease(handle), CUDA_SUCCESS);
  }
  Mapped(const Mapped&) = delete;
  std::vector<unsigned> words() const {
    std::vector<unsigned> out(bytes / 4);
    EXPECT_EQ(bench.cu.cuMemcpy(CUdeviceptr(out.data()), at, bytes), CUDA_SUCCESS);
    return out;
  }
  Bench& bench;
  CUmemGenericAllocationHandle handle;
  std::size_t bytes;
  CUdeviceptr at = 0;
};

constexpr std::size_t chunk_bytes = std::size_t(2) << 20;
/// Where the other process finds the descriptor of the memory.
constexpr int descriptor_of_child = 100;

constexpr const char* mark_of_child = "TRANSHIP_TEST_IMPORTS_MEMORY";

void add_to_memory_of_parent() {
  alarm(60);
  const AllCalls& cu = test::software_calls(2);
  Bench bench(cu, "no code");
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cu.cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(std::intptr_t(descriptor_of_child)),
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  Mapped memory(bench, handle, chunk_bytes);
  EXPECT_EQ(memory.words(), std::vector<unsigned>(chunk_bytes / 4, 5));
  const contract::AddArgs args{reinterpret_cast<unsigned*>(memory.at), int(chunk_bytes / 4), 2};
  EXPECT_EQ(bench.launch("add", 4, 256, args, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(SoftwareCard, SharesMemoryWithAnotherProcess) {
  if (std::getenv(mark_of_child)) return add_to_memory_of_parent();
  const AllCalls& cu = test::software_calls(1);
  Bench bench(cu, "no code");
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cu.cuMemCreate(&handle, chunk_bytes, &properties, 0), CUDA_SUCCESS);
  Mapped memory(bench, handle, chunk_bytes);
  ASSERT_EQ(cu.cuMemsetD32Async(memory.at, 5, chunk_bytes / 4, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  int descriptor = -1;
  ASSERT_EQ(cu.cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  char path[] = "/proc/self/exe", brief[] = "--gtest_brief=1";
  std::string filter = "--gtest_filter=SoftwareCard.SharesMemoryWithAnotherProcess",
              mark = std::string(mark_of_child) + "=1";
  char* const arguments[] = {path, filter.data(), brief, nullptr};
  // A shard of the tests would leave the other process without its test.
  std::vector<char*> environment;
  for (char** one = environ; *one; ++one)
    if (!std::string_view(*one).starts_with("GTEST_")) environment.push_back(*one);
  environment.push_back(mark.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, descriptor, descriptor_of_child);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, path, &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(descriptor);
  ASSERT_EQ(spawned, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.words(), std::vector<unsigned>(chunk_bytes / 4, 7));
}

// Random programs: buffers on two cards and streams; operations that conflict are ordered by events, all others by
// nothing. The value of each word is that of the operations one after the other.

class RandomProgram {
 public:
  RandomProgram(Bench& bench, std::uint64_t seed, bool orders)
      : bench_(bench), cu_(bench.cu), random_(seed), orders_(orders) {
    for (int i = 0; i < buffers_count; ++i) {
      Buffer buffer;
      if (i % 3 == 2) {
        void* memory = nullptr;
        cu_.cuMemHostAlloc(&memory, bytes, 0);
        buffer.at = reinterpret_cast<CUdeviceptr>(memory);
      } else
        cu_.cuMemAlloc(&buffer.at, bytes);
      buffer.value = unsigned(i) * 100;
      cu_.cuMemsetD32Async(buffer.at, buffer.value, words, nullptr);
      buffers_.push_back(buffer);
    }
    cu_.cuCtxSynchronize();
    for (int i = 0; i < streams_count; ++i) {
      CUstream stream = nullptr;
      cu_.cuStreamCreate(&stream, i == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
      streams_.push_back(stream);
    }
  }
  ~RandomProgram() {
    cu_.cuCtxSynchronize();
    for (const CUstream stream : streams_) cu_.cuStreamDestroy(stream);
    for (const CUevent event : events_) cu_.cuEventDestroy(event);
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      i % 3 == 2 ? cu_.cuMemFreeHost(reinterpret_cast<void*>(buffers_[i].at)) : cu_.cuMemFree(buffers_[i].at);
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const CUstream stream = streams_[random_.below(streams_.size())];
      Buffer& target = buffers_[random_.below(buffers_.size())];
      Buffer& source = buffers_[random_.below(buffers_.size())];
      switch (random_.below(3)) {
        case 0:
          writes(stream, target);
          EXPECT_EQ(
              bench_.launch("add", 1 + int(random_.below(3)), 64,
                            contract::AddArgs{reinterpret_cast<unsigned*>(target.at), words, unsigned(i)}, stream),
              CUDA_SUCCESS);
          target.value += unsigned(i);
          written(stream, target);
          break;
        case 1:
          writes(stream, target);
          EXPECT_EQ(cu_.cuMemsetD32Async(target.at, unsigned(i), words, stream), CUDA_SUCCESS);
          target.value = unsigned(i);
          written(stream, target);
          break;
        default:
          if (&source == &target) break;
          writes(stream, target);
          reads(stream, source);
          EXPECT_EQ(cu_.cuMemcpyAsync(target.at, source.at, bytes, stream), CUDA_SUCCESS);
          target.value = source.value;
          read(stream, source);
          written(stream, target);
      }
    }
  }
  /// How many buffers have another value than operations one after the other give.
  int wrong() {
    EXPECT_EQ(cu_.cuCtxSynchronize(), CUDA_SUCCESS);
    int count = 0;
    for (const Buffer& buffer : buffers_) {
      std::vector<unsigned> got(words);
      EXPECT_EQ(cu_.cuMemcpy(reinterpret_cast<CUdeviceptr>(got.data()), buffer.at, bytes), CUDA_SUCCESS);
      count += got != std::vector<unsigned>(words, buffer.value);
    }
    return count;
  }

 private:
  static constexpr int words = 700, bytes = words * 4, buffers_count = 6, streams_count = 4;
  struct Buffer {
    CUdeviceptr at = 0;
    unsigned value = 0;
    std::vector<CUevent> writers, readers;
  };

  CUevent record(CUstream stream) {
    CUevent event = nullptr;
    EXPECT_EQ(cu_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    EXPECT_EQ(cu_.cuEventRecord(event, stream), CUDA_SUCCESS);
    events_.push_back(event);
    return event;
  }
  void wait(CUstream stream, const std::vector<CUevent>& events) {
    if (orders_)
      for (const CUevent event : events) EXPECT_EQ(cu_.cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  }
  void reads(CUstream stream, const Buffer& buffer) { wait(stream, buffer.writers); }
  void writes(CUstream stream, const Buffer& buffer) {
    wait(stream, buffer.writers);
    wait(stream, buffer.readers);
  }
  void read(CUstream stream, Buffer& buffer) { buffer.readers.push_back(record(stream)); }
  void written(CUstream stream, Buffer& buffer) {
    buffer.writers = {record(stream)};
    buffer.readers.clear();
  }

  Bench& bench_;
  const AllCalls& cu_;
  SplitMix64 random_;
  bool orders_;
  std::vector<Buffer> buffers_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
};

TEST(SoftwareCard, RunsOrderedProgramsRight) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Bench bench(test::software_calls(seed), "no code");
    RandomProgram program(bench, seed, true);
    program.run(30);
    ASSERT_EQ(program.wrong(), 0) << "seed " << seed;
  }
}

TEST(SoftwareCard, ShowsThatProgramsAreNotOrdered) {
  int shown = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(test::software_calls(seed), "no code");
    RandomProgram program(bench, seed, false);
    program.run(30);
    shown += program.wrong() > 0;
  }
  EXPECT_GE(shown, 10) << "of 20 programs without waits";
}

}  // namespace
}  // namespace tranship
