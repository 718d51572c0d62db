#include "tranship/cuda/software/grid.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <list>
#include <mutex>
#include <utility>

#include <ucontext.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/fabric/lanes/fiber.hpp>

namespace tranship::cuda::software {
namespace {

struct Block;
class Lane;
class Worker;

/// Unwinds a lane whose kernel has failed.
struct Stopped {};

/// Who has accessed a byte of shared memory last, and when: by the barriers that its block and its warp had passed.
struct Stamp {
  static constexpr unsigned none = 0xfff;
  static constexpr unsigned many_of_warp = 0xffe;  ///< several lanes of one warp
  static constexpr unsigned many = 0xffd;          ///< lanes of several warps
  unsigned lane : 12 = none;
  unsigned warp : 6 = 0;
  unsigned block_epoch : 23 = 0;
  unsigned warp_epoch : 23 = 0;
};
struct Shadow {
  Stamp written, read;
};

/// An access of a warp: one of each lane that has made it, at one place of the source.
struct WarpAccess {
  unsigned lanes = 0;  ///< bit i is that of lane i of the warp
  Address addresses[32];
  unsigned char widths[32];
};

/// The accesses of a warp between two meetings of its lanes. The n-th access of each lane at one place of the source is
/// one of the warp, and counts as soon as no lane is left that may still make it. A lane is ahead of the others of its
/// warp by as many accesses as are kept here at most, so that the memory of a launch has a bound.
class WarpLog {
 public:
  static constexpr unsigned kept_max = 256;

  explicit WarpLog(int lanes) : all_(lanes == 32 ? ~0u : (1u << lanes) - 1), coming_(all_) {
    places_.reserve(8);
    accesses_.reserve(16);
  }

  /// Returns false where there is no room for the next access of a lane.
  bool add(int lane, unsigned site, bool is_store, bool is_shared, Address address, unsigned width,
           KernelCounts& counts);
  /// The lane makes no access before the next meeting.
  void leave(int lane) { coming_ &= ~(1u << lane); }
  /// Counts what no lane may still make.
  void count_complete(KernelCounts& counts);
  /// Counts all that is kept: the lanes have met, or have ended.
  void count_all(KernelCounts& counts);

 private:
  struct Place {
    unsigned site;
    bool is_store, is_shared;
    unsigned made[32] = {};  ///< accesses of each lane
    unsigned counted = 0;
    std::vector<unsigned short> kept = {};  ///< accesses from number `counted` on, behind the first `gone`
    std::size_t gone = 0;
  };

  Place& place_of(unsigned site, bool is_store, bool is_shared);
  void count_first(Place& place, KernelCounts& counts);

  unsigned all_, coming_;
  std::vector<Place> places_;
  std::size_t last_place_ = 0;
  std::vector<WarpAccess> accesses_;
  std::vector<unsigned short> unused_;  ///< of accesses_
};

#if defined(TRANSHIP_SANITIZED)
constexpr std::size_t lane_stack_bytes = std::size_t(256) << 10;
#else
constexpr std::size_t lane_stack_bytes = std::size_t(64) << 10;
#endif

class Lane final : public LaneRun {
 public:
  enum class Now { ready, meeting, ended };

  Lane(Block& block, int number);

  void touch(const void* address, unsigned bytes, Access access, KernelSite where) override;
  void meet(Scope scope, const char* name, KernelSite where) override;
  unsigned long long* words(Scope scope) noexcept override;
  void pause() override;
  void* shared(const void* tag, std::size_t bytes, std::size_t alignment) override;
  void* dynamic_shared() noexcept override;
  [[noreturn]] void refuse(const char* problem, KernelSite where) override;

  void run();
  int warp() const noexcept { return index / 32; }
  std::string name() const;
  [[noreturn]] void fail(FaultKind kind, const std::string& text);

  Block* block;
  Worker* worker = nullptr;  ///< while it has begun and not ended
  Now now = Now::ready;
  bool has_paused = false;
  Scope scope = Scope::thread;
  const char* call = nullptr;
  KernelSite where{};

 private:
  void suspend();
  void log(Address address, unsigned bytes, bool is_store, bool is_shared, KernelSite where);
  void touch_shared(std::size_t offset, unsigned bytes, Access access, KernelSite where);
  void look_up(const void* address, unsigned bytes, bool is_store, KernelSite where);

  // The allocation that was accessed last.
  Address allowed_first_ = 1;
  std::size_t allowed_bytes_ = 0;
  bool may_store_ = false;
  std::uint64_t version_ = 0;
  unsigned touches_left_ = 0;
};

/// A fiber that is kept for the next lane. Workers live as long as the process.
class Worker {
 public:
  Worker() = default;
  Lane* lane = nullptr;
  Fiber fiber{[this] {
                for (;; Fiber::suspend()) lane->run();
              },
              lane_stack_bytes};
};

std::vector<Worker*>& idle_workers() {
  static auto* const idle = new std::vector<Worker*>;
  return *idle;
}

struct Group {
  int first = 0, count = 0;
  int arrived = 0, ended = 0;
  const Lane* arrived_first = nullptr;
  unsigned epoch = 0;
  unsigned long long words[32] = {};
};

struct Block {
  Block(GridRun::State& of_grid, int number);

  bool is_over() const noexcept { return whole.ended == int(lanes.size()); }
  Group& group(const Lane& lane, Scope scope) noexcept {
    return scope == Scope::block ? whole : warps[std::size_t(lane.warp())];
  }
  void arrive(Lane& lane, Scope scope);
  void end(Lane& lane);
  std::size_t shared_offset(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const unsigned char*>(address) - shared.get());
  }

  GridRun::State* grid;
  int index;
  std::vector<Lane> lanes;
  Group whole;
  std::vector<Group> warps;
  std::vector<WarpLog> logs;  ///< of warps
  std::size_t shared_bytes = 0;
  std::unique_ptr<unsigned char[], void (*)(void*)> shared{nullptr, std::free};
  std::vector<Shadow> shadows;
  struct Object {
    const void* tag;
    std::size_t offset;
  };
  std::vector<Object> objects;
  std::size_t objects_end = 0;
};

unsigned site_of(KernelSite where) noexcept {
  return unsigned(reinterpret_cast<std::uintptr_t>(where.file)) * 31 + unsigned(where.line);
}
bool is_same(KernelSite a, KernelSite b) noexcept {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}
std::string text_of(KernelSite where) {
  const char* const slash = std::strrchr(where.file, '/');
  return fmt::format("{}:{}", slash ? slash + 1 : where.file, where.line);
}

}  // namespace

struct GridRun::State {
  Memory& memory;
  int card;
  const KernelTwin& twin;
  GridShape shape;
  std::uint64_t seed;
  std::vector<unsigned char> args = {};
  SplitMix64 random{seed};
  std::list<Block> blocks = {};  ///< that have begun and not ended
  int begun = 0;
  Fault fault = {};
  KernelCounts counts = {};

  void fail(FaultKind kind, std::string text) {
    if (!fault) fault = {kind, std::move(text)};
  }
  void resume(Lane& lane);
  void unwind();
};

namespace {

// Faults of plain accesses.

thread_local Lane* running = nullptr;
thread_local const void* faulting_address = nullptr;
thread_local int faulting_signal = 0;
struct sigaction before_segv, before_bus, before_ill;
constexpr std::size_t rescue_bytes = std::size_t(128) << 10;
alignas(64) unsigned char rescue_stack[rescue_bytes];  // one thread runs all kernels
thread_local unsigned char* signal_stack = nullptr;

/// Runs in place of the lane that has faulted, on a stack of its own. The lane never goes on.
[[noreturn]] void abandon_lane() {
  Lane& lane = *running;
  GridRun::State& grid = *lane.block->grid;
  if (faulting_signal == SIGILL)
    grid.fail(FaultKind::launch_failure, fmt::format("kernel '{}': a trap ({})", grid.twin.name, lane.name()));
  else
    grid.fail(FaultKind::illegal_address,
              fmt::format("kernel '{}': an access by a plain pointer to {}, which is no memory that it may use ({})",
                          grid.twin.name, faulting_address, lane.name()));
  lane.now = Lane::Now::ended;
  // Its stack is lost: what stands on it cannot be unwound.
  static auto* const lost = new std::vector<Worker*>;
  lost->push_back(std::exchange(lane.worker, nullptr));
  for (;;) Fiber::suspend();
}

void on_fault(int signal, siginfo_t* info, void* context) {
#if defined(__x86_64__) || defined(__aarch64__)
  if (running && Fiber::current()) {
    faulting_address = info->si_addr;
    faulting_signal = signal;
    auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
    const auto top = (reinterpret_cast<std::uintptr_t>(rescue_stack) + rescue_bytes) & ~std::uintptr_t(63);
#if defined(__x86_64__)
    machine.gregs[REG_RSP] = static_cast<greg_t>(top - 8);
    machine.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(&abandon_lane));
#else
    machine.sp = top;
    machine.pc = reinterpret_cast<std::uintptr_t>(&abandon_lane);
#endif
    return;
  }
#endif
  const struct sigaction& before = signal == SIGSEGV ? before_segv : signal == SIGBUS ? before_bus : before_ill;
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    std::signal(signal, SIG_DFL);  // the access is made again
}

// Lanes.

Lane::Lane(Block& of_block, int number) : block(&of_block) {
  const GridRun::State& grid = *of_block.grid;
  index = number;
  lanes = grid.shape.lanes();
  block_index = of_block.index;
  blocks = grid.shape.blocks();
  warp_lanes = std::min(32, lanes - number / 32 * 32);
  touches_left_ =
      1 + unsigned(splitmix64(grid.seed ^ (std::uint64_t(unsigned(of_block.index)) << 32) ^ unsigned(number)) % 200);
}

std::string Lane::name() const {
  return fmt::format("lane {} of block {}", index, block->index);
}

void Lane::run() {
  GridRun::State& grid = *block->grid;
  try {
    grid.twin.run(SoftwareLane(*this), grid.args.data());
  } catch (const Stopped&) {
  } catch (const std::exception& error) {
    grid.fail(FaultKind::launch_failure, fmt::format("kernel '{}': {} ({})", grid.twin.name, error.what(), name()));
  }
  now = Now::ended;
  block->end(*this);
}

void Lane::fail(FaultKind kind, const std::string& text) {
  block->grid->fail(kind, fmt::format("kernel '{}': {}", block->grid->twin.name, text));
  throw Stopped{};
}

void Lane::suspend() {
  if (block->grid->fault) throw Stopped{};
  Fiber::suspend();
  if (block->grid->fault) throw Stopped{};
}

void Lane::pause() {
  has_paused = true;
  suspend();
}

void Lane::meet(Scope of, const char* name, KernelSite at) {
  if (block->grid->fault) throw Stopped{};
  scope = of;
  call = name;
  where = at;
  block->arrive(*this, of);
  if (now == Now::meeting) suspend();
}

unsigned long long* Lane::words(Scope of) noexcept {
  return block->group(*this, of).words;
}

void Lane::refuse(const char* problem, KernelSite at) {
  fail(FaultKind::launch_failure, fmt::format("{} ({}, {})", problem, text_of(at), name()));
}

void* Lane::dynamic_shared() noexcept {
  return block->shared.get();
}

void* Lane::shared(const void* tag, std::size_t bytes, std::size_t alignment) {
  for (const Block::Object& object : block->objects)
    if (object.tag == tag) return block->shared.get() + object.offset;
  const std::size_t offset = (block->objects_end + alignment - 1) / alignment * alignment;
  if (offset + bytes > block->shared_bytes)
    fail(FaultKind::launch_failure,
         fmt::format("asks for {} of shared memory; its twin is registered with {}",
                     amount(offset + bytes - block->grid->shape.dynamic_shared_bytes, "byte"),
                     block->grid->twin.shared_bytes));
  block->objects.push_back({tag, offset});
  block->objects_end = offset + bytes;
  return block->shared.get() + offset;
}

void Lane::touch(const void* address, unsigned bytes, Access access, KernelSite at) {
  if (block->grid->fault) throw Stopped{};
  const auto place = reinterpret_cast<Address>(address);
  const bool is_store = access != Access::load;
  if (place % bytes != 0)
    fail(FaultKind::misaligned,
         fmt::format("{} of {} at {:#x}, which is not aligned ({}, {})", is_store ? "a store" : "a load",
                     amount(bytes, "byte"), place, text_of(at), name()));
  const std::size_t offset = block->shared_offset(address);
  const bool is_shared = offset < block->shared_bytes;
  if (is_shared)
    touch_shared(offset, bytes, access, at);
  else if (place - allowed_first_ >= allowed_bytes_ || place + bytes > allowed_first_ + allowed_bytes_ ||
           (is_store && !may_store_) || version_ != block->grid->memory.version())
    look_up(address, bytes, is_store, at);
  // Words that others write meanwhile are looked at as often as it takes.
  if (access != Access::atomic) log(place, bytes, is_store, is_shared, at);
  if (--touches_left_ == 0) {
    touches_left_ = 1 + unsigned(block->grid->random.below(200));
    suspend();
  }
}

void Lane::log(Address address, unsigned bytes, bool is_store, bool is_shared, KernelSite at) {
  // The others of the warp may wait for what this lane does next, so it goes on after some time.
  constexpr int rounds_max = 64;
  WarpLog& log = block->logs[std::size_t(warp())];
  KernelCounts& counts = block->grid->counts;
  for (int round = 0; !log.add(index % 32, site_of(at), is_store, is_shared, address, bytes, counts); ++round) {
    if (round < rounds_max)
      suspend();
    else
      log.count_all(counts);
  }
}

void Lane::look_up(const void* address, unsigned bytes, bool is_store, KernelSite at) {
  Memory& memory = block->grid->memory;
  const std::uint64_t version = memory.version();
  const auto place = reinterpret_cast<Address>(address);
  const std::optional<Range> range = memory.find(place);
  const char* problem = nullptr;
  const CardSet me = only(block->grid->card);
  if (!range)
    problem = memory.is_of_cards(place) ? "lies in no allocation" : "is memory of the host that the card cannot reach";
  else if (place + bytes > range->end())
    problem = "ends behind its allocation";
  else if (((is_store ? range->stores : range->loads) & me) == 0)
    problem = "lies in memory that the card may not access so";
  if (problem)
    fail(FaultKind::illegal_address,
         fmt::format("{} of {} at {:#x}, which {} ({}, {})", is_store ? "a store" : "a load", amount(bytes, "byte"),
                     place, problem, text_of(at), name()));
  allowed_first_ = range->first;
  allowed_bytes_ = range->bytes;
  may_store_ = (range->stores & me) != 0;
  version_ = version;
}

void Lane::touch_shared(std::size_t offset, unsigned bytes, Access access, KernelSite at) {
  Block& b = *block;
  if (offset + bytes > b.shared_bytes)
    fail(FaultKind::illegal_address,
         fmt::format("an access of {} behind its shared memory ({}, {})", amount(bytes, "byte"), text_of(at), name()));
  if (access == Access::atomic) return;
  const bool is_store = access == Access::store;
  const unsigned block_epoch = b.whole.epoch & 0x7fffff, warp_epoch = b.warps[std::size_t(warp())].epoch & 0x7fffff;
  const auto is_ordered = [&](const Stamp& stamp) {
    if (stamp.lane == Stamp::none || stamp.lane == unsigned(index) || stamp.block_epoch != block_epoch) return true;
    return stamp.lane != Stamp::many && stamp.warp == unsigned(warp()) && stamp.warp_epoch != warp_epoch;
  };
  const auto race = [&](const Stamp& stamp, const char* what) {
    const std::string other = stamp.lane < Stamp::many ? fmt::format("lane {}", stamp.lane) : "several lanes";
    fail(FaultKind::launch_failure,
         fmt::format("a race: {} of shared memory at byte {} that {} {} with no barrier between ({}, {})",
                     is_store ? "a store" : "a load", offset, other, what, text_of(at), name()));
  };
  bool is_written = is_store;
  for (std::size_t i = offset; i < offset + bytes; ++i) {
    Shadow& shadow = b.shadows[i];
    if (!is_ordered(shadow.written)) race(shadow.written, "has written");
    if (is_store && !is_ordered(shadow.read)) race(shadow.read, "has read");
    const Stamp mine{
        .lane = unsigned(index), .warp = unsigned(warp()) & 63, .block_epoch = block_epoch, .warp_epoch = warp_epoch};
    if (is_store) {
      shadow.written = mine;
      shadow.read = {};
      continue;
    }
    is_written |= shadow.written.lane != Stamp::none;
    Stamp& read = shadow.read;
    if (read.lane == Stamp::none || read.block_epoch != block_epoch || read.lane == unsigned(index))
      read = mine;
    else if (read.lane != Stamp::many && read.warp == mine.warp)
      read = {.lane = Stamp::many_of_warp, .warp = mine.warp, .block_epoch = block_epoch, .warp_epoch = warp_epoch};
    else
      read = {.lane = Stamp::many, .warp = mine.warp, .block_epoch = block_epoch, .warp_epoch = warp_epoch};
  }
  if (is_written) return;
  // Plain stores leave no mark; they leave other bytes than the block began with.
  for (std::size_t word = offset / 4 * 4; word < offset + bytes; word += 4) {
    const std::uint64_t pattern = splitmix64(b.grid->seed ^ (word / 8));
    const auto was = static_cast<std::uint32_t>(word % 8 ? pattern >> 32 : pattern);
    std::uint32_t is;
    std::memcpy(&is, b.shared.get() + word, 4);
    if (is == was)
      fail(FaultKind::launch_failure,
           fmt::format("a load of shared memory at byte {}, which no lane has written ({}, {})", word, text_of(at),
                       name()));
  }
}

// Blocks.

Block::Block(GridRun::State& of_grid, int number) : grid(&of_grid), index(number) {
  const int count = of_grid.shape.lanes();
  lanes.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) lanes.emplace_back(*this, i);
  whole.count = count;
  for (int first = 0; first < count; first += 32) {
    warps.push_back({.first = first, .count = std::min(32, count - first)});
    logs.emplace_back(warps.back().count);
  }
  objects_end = of_grid.shape.dynamic_shared_bytes;
  shared_bytes = of_grid.shape.dynamic_shared_bytes + of_grid.twin.shared_bytes;
  if (shared_bytes == 0) return;
  const std::size_t room = (shared_bytes + 127) / 128 * 128;
  shared.reset(static_cast<unsigned char*>(std::aligned_alloc(128, room)));
  for (std::size_t at = 0; at < room; at += 8) {
    const std::uint64_t pattern = splitmix64(of_grid.seed ^ (at / 8));
    std::memcpy(shared.get() + at, &pattern, 8);
  }
  shadows.resize(shared_bytes);
}

void Block::arrive(Lane& lane, Scope scope) {
  Group& group = this->group(lane, scope);
  const char* const of = scope == Scope::block ? "block" : "warp";
  if (group.ended > 0)
    lane.fail(FaultKind::launch_failure,
              fmt::format("{} is at {} ({}) of its {}, of which {} {} ended", lane.name(), lane.call,
                          text_of(lane.where), of, amount(group.ended, "lane"), group.ended == 1 ? "has" : "have"));
  if (group.arrived > 0) {
    const Lane& other = *group.arrived_first;
    if (std::strcmp(other.call, lane.call) != 0 || !is_same(other.where, lane.where))
      lane.fail(FaultKind::launch_failure,
                fmt::format("lanes {} and {} of block {} have diverged: at an operation of their {}, lane {} is at {} "
                            "({}) and lane {} at {} ({})",
                            other.index, lane.index, index, of, other.index, other.call, text_of(other.where),
                            lane.index, lane.call, text_of(lane.where)));
  } else
    group.arrived_first = &lane;
  lane.now = Lane::Now::meeting;
  logs[std::size_t(lane.warp())].leave(lane.index % 32);
  if (++group.arrived < group.count) return;
  group.arrived = 0;
  const int first_warp = group.first / 32, last_warp = (group.first + group.count - 1) / 32;
  for (int warp = first_warp; warp <= last_warp; ++warp) {
    logs[std::size_t(warp)].count_all(grid->counts);
    ++warps[std::size_t(warp)].epoch;
  }
  if (scope == Scope::block) ++whole.epoch;
  for (int i = group.first; i < group.first + group.count; ++i) lanes[std::size_t(i)].now = Lane::Now::ready;
}

void Block::end(Lane& lane) {
  for (const Scope scope : {Scope::warp, Scope::block}) {
    Group& group = this->group(lane, scope);
    if (group.arrived > 0 && !grid->fault) {
      const Lane& other = *group.arrived_first;
      grid->fail(
          FaultKind::launch_failure,
          fmt::format("kernel '{}': {} has ended, and {} is at {} ({}) of their {}", grid->twin.name, lane.name(),
                      other.name(), other.call, text_of(other.where), scope == Scope::block ? "block" : "warp"));
    }
    ++group.ended;
  }
  WarpLog& log = logs[std::size_t(lane.warp())];
  log.leave(lane.index % 32);
  if (group(lane, Scope::warp).ended == group(lane, Scope::warp).count) log.count_all(grid->counts);
}

int words_of(unsigned width) {
  return width <= 4 ? 1 : int(width / 4);
}

}  // namespace

// Counting.

namespace {

/// Counts the accesses of some lanes, in their order, which have one width.
void count_lanes(KernelCounts& counts, const Address* addresses, int lanes, unsigned width, bool is_store,
                 bool is_shared) {
  if (is_shared) {
    // Off the stack of the lane, which would touch a page more.
    static thread_local std::uint32_t words[32][32];
    // Lanes of 8 and 16 bytes go in two and four parts.
    const int part_lanes = width <= 4 ? 32 : 128 / int(width);
    ++counts.shared_accesses;
    for (int first = 0; first < lanes; first += part_lanes) {
      int in_bank[32] = {};
      int passes = 1;
      for (int i = first; i < std::min(lanes, first + part_lanes); ++i)
        for (int w = 0; w < words_of(width); ++w) {
          const auto word = static_cast<std::uint32_t>(addresses[i] / 4) + unsigned(w);
          const unsigned bank = word % 32;
          int& count = in_bank[bank];
          if (std::find(words[bank], words[bank] + count, word) == words[bank] + count) words[bank][count++] = word;
          passes = std::max(passes, count);
        }
      counts.shared_passes += passes;
      ++counts.shared_passes_fewest;
    }
    return;
  }
  Traffic& traffic = is_store ? counts.stores : counts.loads;
  Address sectors[32];
  int count = 0;
  for (int i = 0; i < lanes; ++i) {
    const Address sector = addresses[i] / 32;  // an aligned access lies in one
    if (count > 0 && sectors[count - 1] == sector) continue;
    sectors[count++] = sector;
  }
  std::sort(sectors, sectors + count);
  count = int(std::unique(sectors, sectors + count) - sectors);
  int units = count > 0 ? 1 : 0;
  for (int i = 1; i < count; ++i) units += sectors[i] / 2 != sectors[i - 1] / 2;
  const std::int64_t bytes = std::int64_t(lanes) * width;
  traffic.bytes += bytes;
  traffic.sectors += count;
  traffic.sectors_fewest += std::min<std::int64_t>(count, (bytes + 31) / 32);
  traffic.units += units;
  traffic.units_fewest += std::min<std::int64_t>(units, (bytes + 63) / 64);
}

WarpLog::Place& WarpLog::place_of(unsigned site, bool is_store, bool is_shared) {
  // Most accesses follow the one that they followed before.
  std::size_t i = last_place_;
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (++i >= places_.size()) i = 0;
    Place& place = places_[i];
    if (place.site != site || place.is_store != is_store || place.is_shared != is_shared) continue;
    last_place_ = i;
    return place;
  }
  last_place_ = places_.size();
  return places_.emplace_back(Place{.site = site, .is_store = is_store, .is_shared = is_shared});
}

bool WarpLog::add(int lane, unsigned site, bool is_store, bool is_shared, Address address, unsigned width,
                  KernelCounts& counts) {
  Place& place = place_of(site, is_store, is_shared);
  const auto number = [&] { return place.gone + (place.made[lane] - place.counted); };
  if (number() == place.kept.size()) {
    if (unused_.empty() && accesses_.size() == kept_max) count_complete(counts);
    if (unused_.empty() && accesses_.size() == kept_max) return false;
    if (unused_.empty()) {
      unused_.push_back(static_cast<unsigned short>(accesses_.size()));
      accesses_.emplace_back();
    }
    place.kept.push_back(unused_.back());
    unused_.pop_back();
    accesses_[place.kept.back()].lanes = 0;
  }
  WarpAccess& access = accesses_[place.kept[number()]];
  ++place.made[lane];
  access.lanes |= 1u << lane;
  access.addresses[lane] = address;
  access.widths[lane] = static_cast<unsigned char>(width);
  if (&access == &accesses_[place.kept[place.gone]] && (coming_ & ~access.lanes) == 0) count_first(place, counts);
  return true;
}

void WarpLog::count_first(Place& place, KernelCounts& counts) {
  const unsigned short which = place.kept[place.gone];
  const WarpAccess& access = accesses_[which];
  Address addresses[32];
  for (unsigned left = access.lanes; left != 0;) {
    const unsigned width = access.widths[std::countr_zero(left)];
    int lanes = 0;
    for (unsigned mask = left; mask != 0; mask &= mask - 1) {
      const int lane = std::countr_zero(mask);
      if (access.widths[lane] != width) continue;
      addresses[lanes++] = access.addresses[lane];
      left &= ~(1u << lane);
    }
    count_lanes(counts, addresses, lanes, width, place.is_store, place.is_shared);
  }
  unused_.push_back(which);
  ++place.counted;
  if (++place.gone == place.kept.size()) {
    place.kept.clear();
    place.gone = 0;
  } else if (place.gone == kept_max) {
    place.kept.erase(place.kept.begin(), place.kept.begin() + std::ptrdiff_t(place.gone));
    place.gone = 0;
  }
}

void WarpLog::count_complete(KernelCounts& counts) {
  for (Place& place : places_)
    while (place.gone < place.kept.size() && (coming_ & ~accesses_[place.kept[place.gone]].lanes) == 0)
      count_first(place, counts);
}

void WarpLog::count_all(KernelCounts& counts) {
  for (Place& place : places_) {
    while (place.gone < place.kept.size()) count_first(place, counts);
    std::fill(std::begin(place.made), std::end(place.made), 0u);
    place.counted = 0;
  }
  coming_ = all_;
}

}  // namespace

void KernelCounts::add(const KernelCounts& other) noexcept {
  const auto add_traffic = [](Traffic& to, const Traffic& from) {
    to.bytes += from.bytes;
    to.sectors += from.sectors;
    to.sectors_fewest += from.sectors_fewest;
    to.units += from.units;
    to.units_fewest += from.units_fewest;
  };
  launches += other.launches;
  lanes += other.lanes;
  add_traffic(loads, other.loads);
  add_traffic(stores, other.stores);
  shared_accesses += other.shared_accesses;
  shared_passes += other.shared_passes;
  shared_passes_fewest += other.shared_passes_fewest;
}

// Grids.

GridRun::GridRun(Memory& memory, int card, const KernelTwin& twin, const void* args, const GridShape& shape,
                 std::uint64_t seed)
    : state_(new State{memory, card, twin, shape, seed}) {
  const auto* const bytes = static_cast<const unsigned char*>(args);
  state_->args.assign(bytes, bytes + twin.args_bytes);
  state_->counts.launches = 1;
  state_->counts.lanes = std::int64_t(shape.blocks()) * shape.lanes();
}
GridRun::~GridRun() {
  if (state_->blocks.empty()) return;
  state_->fail(FaultKind::launch_failure, "the kernel was ended");
  state_->unwind();
}

int GridRun::begun() const noexcept {
  return state_->begun;
}
int GridRun::resident() const noexcept {
  return int(state_->blocks.size());
}
bool GridRun::has_more() const noexcept {
  return !state_->fault && state_->begun < state_->shape.blocks();
}
const Fault& GridRun::fault() const noexcept {
  return state_->fault;
}
const KernelCounts& GridRun::counts() const noexcept {
  return state_->counts;
}
void GridRun::begin_block() {
  state_->blocks.emplace_back(*state_, state_->begun++);
}

void GridRun::State::resume(Lane& lane) {
  std::vector<Worker*>& idle = idle_workers();
  if (!lane.worker) {
    if (idle.empty()) idle.push_back(new Worker);
    lane.worker = idle.back();
    idle.pop_back();
    lane.worker->lane = &lane;
  }
  Worker* const worker = lane.worker;
  running = &lane;
  worker->fiber.resume();
  running = nullptr;
  if (lane.now == Lane::Now::ended && lane.worker) {
    idle.push_back(worker);
    lane.worker = nullptr;
  }
}

void GridRun::State::unwind() {
  for (Block& block : blocks)
    for (Lane& lane : block.lanes)
      if (lane.now != Lane::Now::ended && lane.worker) resume(lane);
  blocks.clear();
}

GridRun::Went GridRun::step() {
  State& grid = *state_;
  if (!signal_stack) {
    // Freed with the thread's other memory: never, for the thread of a card lives as long as the process.
    constexpr std::size_t bytes = std::size_t(64) << 10;
    signal_stack = static_cast<unsigned char*>(std::malloc(bytes));
    const stack_t stack{.ss_sp = signal_stack, .ss_flags = 0, .ss_size = bytes};
    sigaltstack(&stack, nullptr);
  }
  if (grid.fault) return Went::over;
  if (grid.blocks.empty()) return has_more() ? Went::nowhere : Went::over;
  auto block = std::next(grid.blocks.begin(), std::ptrdiff_t(grid.random.below(grid.blocks.size())));
  const std::size_t count = block->lanes.size();
  const std::uint64_t order = grid.random.next();
  const std::size_t rotation = order / 4 % count;
  bool has_run = false, goes_on = false;
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t i = k;
    if (order % 4 == 1)
      i = count - 1 - k;
    else if (order % 4 == 2)
      i = (k + rotation) % count;
    else if (order % 4 == 3)
      i = (2 * count - 1 - k - rotation) % count;
    Lane& lane = block->lanes[i];
    if (lane.now != Lane::Now::ready) continue;
    lane.has_paused = false;
    grid.resume(lane);
    has_run = true;
    goes_on |= !lane.has_paused;
    if (grid.fault) break;
  }
  if (!grid.fault && !has_run && !block->is_over()) {
    const auto waiting = std::find_if(block->lanes.begin(), block->lanes.end(),
                                      [](const Lane& lane) { return lane.now == Lane::Now::meeting; });
    grid.fail(FaultKind::launch_failure,
              fmt::format("kernel '{}': no lane of block {} can go on; {} is at {} ({})", grid.twin.name, block->index,
                          waiting->name(), waiting->call, text_of(waiting->where)));
  }
  if (grid.fault) {
    grid.unwind();
    return Went::over;
  }
  if (block->is_over()) grid.blocks.erase(block);
  if (grid.blocks.empty() && !has_more()) return Went::over;
  return goes_on ? Went::on : Went::nowhere;
}

void catch_faults_of_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
    sigaction(SIGILL, &action, &before_ill);
  });
}

}  // namespace tranship::cuda::software
