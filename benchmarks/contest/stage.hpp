// Stage: memory that the driver shares with the ranks of one contestant program. Commands go in, times come out.
//
// All contestants are treated alike: idle ranks sleep on a futex (never in their library, which would spin), every
// timed operation lies between two passes of one and the same barrier, and each rank writes its own times. One word,
// `turn`, publishes a command; another, `answered_turn`, its answer. Next: act.hpp, the loop that obeys commands.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <contest/work.hpp>

namespace contest {

constexpr int ranks_max = 8;
constexpr int methods_max = 16;
constexpr int ops_max = 512;
constexpr std::size_t text_bytes = 64;

/// The state of the data before an operation is timed.
enum class Freshness : std::int32_t {
  fresh,  ///< sources rewritten before and targets read after every operation, by the ranks that own them
  warm,   ///< repeated without touching anything
  cold,   ///< as fresh, with all caches filled with other data before
};

enum class Verb : std::int32_t { open, run, close, quit };

struct Command {
  Verb verb = Verb::quit;
  Work work = {};                         ///< open
  std::int32_t method = 0;                ///< run
  std::int32_t ops = 0;                   ///< run: how many operations, each timed; at most ops_max
  Freshness freshness = Freshness::warm;  ///< run
};

struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Passed by `ranks` threads or processes, any number of times. Writes before it are visible after it.
struct Barrier {
  std::atomic<std::uint32_t> arrived = 0;
  std::atomic<std::uint32_t> epoch = 0;
};

struct Stage {
  std::int32_t ranks = 0;
  std::atomic<std::uint32_t> turn = 0;
  std::atomic<std::uint32_t> answers = 0;
  std::atomic<std::uint32_t> answered_turn = 0;
  alignas(64) Barrier barrier;
  /// For contestants that need a barrier between the halves of an operation.
  alignas(64) Barrier inner_barrier;
  alignas(64) Command command;

  // The answer to `open`: methods by name, the bytes that one run of each copies, and wrong cells by rank and method.
  std::int32_t methods = 0;
  char method_names[methods_max][text_bytes] = {};
  std::int64_t moved_bytes[methods_max] = {};
  std::int64_t wrong_cells[ranks_max][methods_max] = {};
  // The answer to `run`.
  Span spans[ranks_max][ops_max] = {};
};

std::int64_t now_ns();

/// Waits without a deadline; spins when every rank has a core of its own, and yields otherwise.
void pass(Barrier& barrier, int ranks);

/// Sleeps until the driver has published another turn than `seen`, and returns it.
std::uint32_t await_turn(Stage& stage, std::uint32_t seen);
/// The last of all ranks to call it wakes the driver.
void answer(Stage& stage);

/// The driver's side. Publishes stage.command.
void publish(Stage& stage);
/// Returns false when the answer has not come after `timeout_ns`.
bool await_answer(Stage& stage, std::int64_t timeout_ns);

/// The time of operation `op`: from the first rank's begin to the last one's end.
std::int64_t elapsed_ns(const Stage& stage, int op);

/// Shared memory for a stage, without a name that a crash would leave behind; other processes open `path()`.
class StageMemory {
 public:
  /// Throws std::system_error.
  static StageMemory make(int ranks);
  static StageMemory open(const std::string& path);
  ~StageMemory();
  StageMemory(StageMemory&& other) noexcept;
  StageMemory& operator=(StageMemory&&) = delete;

  Stage& operator*() const noexcept { return *stage_; }
  Stage* operator->() const noexcept { return stage_; }
  /// A path that is valid while this process lives.
  std::string path() const;

 private:
  StageMemory(int file, Stage* stage) : file_(file), stage_(stage) {}

  int file_;
  Stage* stage_;
};

/// Pins the calling thread. Ranks are dealt out to the cores that this process may use, neighbours to the same core.
void pin(int rank, int ranks);
int core_count();

}  // namespace contest
