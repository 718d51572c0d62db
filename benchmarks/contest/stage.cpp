#include <cerrno>
#include <climits>
#include <new>
#include <system_error>
#include <utility>

#include <contest/stage.hpp>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace contest {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "the stage is shared between processes");
static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "a futex is a word");

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, timeout, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// The cores that the process was started with: a pinned thread sees only its own.
const cpu_set_t& usable_cores() {
  static const cpu_set_t cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0) CPU_SET(0, &set);
    return set;
  }();
  return cores;
}

}  // namespace

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void pass(Barrier& barrier, int ranks) {
  const std::uint32_t epoch = barrier.epoch.load(std::memory_order_acquire);
  // acq_rel: the last one to arrive has seen what all others wrote, and the epoch hands it on to them.
  if (barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == std::uint32_t(ranks)) {
    barrier.arrived.store(0, std::memory_order_relaxed);
    barrier.epoch.store(epoch + 1, std::memory_order_release);
    return;
  }
  constexpr int spins_max = 20'000;  // some 0.5 ms; longer only where a peer was driven off its core
  const int spins = ranks <= core_count() ? spins_max : 0;
  for (int spin = 0; barrier.epoch.load(std::memory_order_acquire) == epoch; ++spin) {
    if (spin < spins)
      __builtin_ia32_pause();
    else
      sched_yield();
  }
}

std::uint32_t await_turn(Stage& stage, std::uint32_t seen) {
  for (;;) {
    const std::uint32_t turn = stage.turn.load(std::memory_order_acquire);
    if (turn != seen) return turn;
    sleep_while(stage.turn, seen, nullptr);
  }
}

void answer(Stage& stage) {
  if (stage.answers.fetch_add(1, std::memory_order_acq_rel) + 1 != std::uint32_t(stage.ranks)) return;
  stage.answers.store(0, std::memory_order_relaxed);
  stage.answered_turn.store(stage.turn.load(std::memory_order_relaxed), std::memory_order_release);
  wake_all(stage.answered_turn);
}

void publish(Stage& stage) {
  stage.turn.fetch_add(1, std::memory_order_release);
  wake_all(stage.turn);
}

bool await_answer(Stage& stage, std::int64_t timeout_ns) {
  const std::int64_t until_ns = now_ns() + timeout_ns;
  for (;;) {
    const std::uint32_t answered = stage.answered_turn.load(std::memory_order_acquire);
    if (answered == stage.turn.load(std::memory_order_relaxed)) return true;
    const std::int64_t left_ns = until_ns - now_ns();
    if (left_ns <= 0) return false;
    const timespec left = {.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
    sleep_while(stage.answered_turn, answered, &left);
  }
}

std::int64_t elapsed_ns(const Stage& stage, int op) {
  std::int64_t begin_ns = stage.spans[0][op].begin_ns, end_ns = stage.spans[0][op].end_ns;
  for (int rank = 1; rank < stage.ranks; ++rank) {
    begin_ns = std::min(begin_ns, stage.spans[rank][op].begin_ns);
    end_ns = std::max(end_ns, stage.spans[rank][op].end_ns);
  }
  return end_ns - begin_ns;
}

StageMemory StageMemory::make(int ranks) {
  const int file = memfd_create("stage", MFD_CLOEXEC);
  if (file < 0) throw_errno("memfd_create");
  if (ftruncate(file, sizeof(Stage)) != 0) throw_errno("ftruncate");
  void* at = mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) throw_errno("mmap");
  Stage* stage = new (at) Stage;
  stage->ranks = ranks;
  return {file, stage};
}

StageMemory StageMemory::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw_errno(path);
  void* at = mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) throw_errno(path);
  return {file, static_cast<Stage*>(at)};
}

StageMemory::StageMemory(StageMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)), stage_(std::exchange(other.stage_, nullptr)) {}

StageMemory::~StageMemory() {
  if (stage_) munmap(stage_, sizeof(Stage));
  if (file_ >= 0) close(file_);
}

std::string StageMemory::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
}

int core_count() {
  static const int count = CPU_COUNT(&usable_cores());
  return count;
}

void pin(int rank, int ranks) {
  const int cores = core_count();
  int wanted = ranks <= cores ? rank : rank * cores / ranks;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable_cores()) || wanted-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

}  // namespace contest
