// Private: the state of all software cards of a process: streams, events, the work that was given to them, and the
// thread that does it. One mutex guards all of it. Work is done in any order that streams, events and hardware queues
// permit; a seed chooses, and also what is done late. A kernel runs in steps, so that kernels that wait for each other,
// for copies or for the host get on beside each other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cuda.h>

#include <tranship/base/random.hpp>
#include <tranship/cuda/software/grid.hpp>
#include <tranship/cuda/software/memory.hpp>
#include <tranship/cuda/software/software_card.hpp>

namespace tranship::cuda::software {

struct Card;
struct Stream;
struct Op;
using OpRef = std::shared_ptr<Op>;
using Lock = std::unique_lock<std::mutex>;

constexpr int multiprocessors = 4;
constexpr int lanes_of_multiprocessor = 1024;
constexpr int blocks_of_multiprocessor = 16;
constexpr int registers_of_multiprocessor = 65536;
constexpr std::size_t shared_of_multiprocessor = std::size_t(100) << 10;
constexpr std::size_t shared_of_block = std::size_t(48) << 10;
constexpr std::size_t shared_of_block_on_request = std::size_t(99) << 10;

/// One piece of work.
struct Op {
  enum class Now { queued, under_way, over };
  enum class Went { on, nowhere, over };

  explicit Op(Card& of_card) : card(&of_card) {}
  virtual ~Op() = default;
  Op(const Op&) = delete;

  /// Returns true when it may begin, once its predecessors are over. Called with the mutex.
  virtual bool can_begin() { return true; }
  virtual void begin() {}
  /// Does a part of it. Without the mutex.
  virtual Went step() { return Went::over; }
  /// When it is over. With the mutex.
  virtual void end() {}
  /// Where the card has failed before it was over. With the mutex.
  virtual void give_up() {}

  Card* card;
  Now now = Now::queued;
  bool is_given_up = false;
  std::vector<OpRef> after;
  int queue = -1;  ///< of the card, or none
  std::uint64_t not_before_ns = 0;
  std::int64_t over_ns = 0;
};

/// The parts of a graph.
struct Node {
  /// Makes the work of one launch.
  std::function<OpRef(Card&)> make;
  std::vector<int> after;
  bool is_waited_for = false;  ///< a launch returns when it is over
};
/// An object that a graph keeps for the program. With the last reference, its destructor is given to the thread of host
/// functions. Destroyed with the mutex.
struct UserObject {
  ~UserObject();
  CUhostFn destroy;
  void* argument;
};
using UserObjects = std::vector<std::shared_ptr<UserObject>>;
struct Graph {
  std::vector<Node> nodes;
  UserObjects kept;
};
struct GraphExec {
  std::shared_ptr<const Graph> graph;
  UserObjects kept;
  OpRef last_launch;
};

struct Capture {
  CUstreamCaptureMode mode;
  std::thread::id thread;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  bool is_invalid = false;
};

struct Stream {
  Card* card;
  unsigned flags = 0;
  int priority = 0;
  int queue = 0;
  OpRef last;
  std::shared_ptr<Capture> capture;
  std::vector<int> tails;  ///< nodes of the capture that the next one comes after
  bool is_blocking() const noexcept { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event {
  Card* card;
  unsigned flags = 0;
  OpRef op;  ///< the last record; null before the first
  std::shared_ptr<Capture> capture;
  std::vector<int> nodes;
};

struct Kernel {
  const KernelTwin* twin;
  void* library;
  std::set<int> loaded;  ///< cards where a launch waits for nothing
  std::size_t dynamic_shared_max = shared_of_block;
};
struct Library {
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

struct Pool {
  int card;
  std::uint64_t number;         ///< of Memory
  bool is_unreachable = false;  ///< access was given to a card that cannot have it
};

/// A free of a pool's memory that is not over yet, and may be taken back by an allocation after it.
struct PendingFree {
  Address first;
  Stream* stream;
  OpRef op;
};

struct Card {
  int number = 0;
  int retained = 0;
  CUresult failure = CUDA_SUCCESS;
  std::string failure_text;
  Stream legacy;
  std::map<std::thread::id, std::unique_ptr<Stream>> of_threads;
  std::vector<std::deque<OpRef>> queues;
  std::vector<OpRef> unqueued;
  std::vector<OpRef> under_way;
  std::set<Stream*> streams;
  std::vector<PendingFree> pending_frees;
  int next_queue = 0;
  double held = 0;  ///< the share of the card that blocks of kernels hold; of the thread that does the work
  Pool default_pool;
  std::map<std::string, KernelCounts> counts;
  std::set<int> peers;  ///< cards whose memory its kernels may use
};

struct State {
  State(const SoftwareCards& chosen, int queues);

  SoftwareCards options;
  std::mutex mutex;
  std::condition_variable work, done;
  SplitMix64 random;
  Memory memory;
  std::vector<std::unique_ptr<Card>> cards;
  std::set<Event*> events;
  std::set<Library*> libraries;
  std::set<Kernel*> kernels;
  std::set<Graph*> graphs;
  std::map<Graph*, std::shared_ptr<Graph>> graph_owners;
  std::set<GraphExec*> execs;
  std::map<UserObject*, std::vector<std::shared_ptr<UserObject>>> user_objects;  ///< references of the program
  std::set<Pool*> pools;
  std::map<CUmemGenericAllocationHandle, std::pair<std::shared_ptr<Physical>, bool>> handles;
  CUmemGenericAllocationHandle next_handle = 1;
  std::vector<std::shared_ptr<Capture>> captures;
  bool is_eager = false;
  int hosts_waiting = 0;
  std::int64_t ops_done = 0;

  // Host functions of all streams run on one thread.
  std::condition_variable host_work;
  std::deque<std::function<void()>> host_functions;

  bool begin_one(Lock& lock);
  void run();
  void run_host_functions();
  void finish(const OpRef& op);
  void fail(Card& card, CUresult error, std::string text);
  void wake() { work.notify_one(); }

  /// Gives work to a stream, or a node to its capture, which makes the work at each launch. Returns the work.
  OpRef submit(Stream& stream, Node node);
  OpRef submit(Stream& stream, std::function<OpRef(Card&)> make) {
    return submit(stream, Node{std::move(make), {}, false});
  }
  void submit_op(Stream& stream, const OpRef& op);
  /// Waits until `is_so()`, or the card has failed.
  template <class F>
  CUresult wait(Lock& lock, Card& card, F is_so) {
    ++hosts_waiting;
    wake();
    done.wait(lock, [&] { return card.failure != CUDA_SUCCESS || is_so(); });
    --hosts_waiting;
    return card.failure;
  }
  /// All that was given to the card.
  std::vector<OpRef> all_work(Card& card) const;
  CUresult wait_for_all(Lock& lock, Card& card);
};

/// The state of the process; null before a table was filled.
State* state() noexcept;
std::int64_t now_ns() noexcept;

inline bool is_over(const OpRef& op) {
  return !op || op->now == Op::Now::over;
}

/// How many blocks of a kernel fit on one multiprocessor.
int resident_blocks_max(const KernelTwin& twin, int lanes, std::size_t dynamic_shared_bytes);

/// The kinds of work.
struct CopyPart {
  unsigned char* target;
  const unsigned char* source;
  std::size_t bytes;
};
struct CopyOp final : Op {
  using Op::Op;
  std::deque<CopyPart> parts;
  std::vector<unsigned char> staged;  ///< the source, where it was taken at the call
  std::vector<std::shared_ptr<Physical>> owners;
  bool from_behind = false;
  Went step() override;
};
struct FillOp final : Op {
  using Op::Op;
  std::vector<Stretch> target;
  unsigned value = 0;
  unsigned width = 1;
  Went step() override;
};
struct MarkOp final : Op {
  using Op::Op;
  void end() override { kept.clear(); }
  void give_up() override { kept.clear(); }
  UserObjects kept;  ///< by a graph that is launched, until it is over
};
struct FreeOp final : Op {
  using Op::Op;
  Address first = 0;  ///< 0: it was taken back
  void end() override;
};
struct WriteValueOp final : Op {
  using Op::Op;
  unsigned char* target = nullptr;
  std::shared_ptr<Physical> owner;
  std::uint64_t value = 0;
  unsigned bytes = 8;
  Went step() override;
};
struct WaitValueOp final : Op {
  using Op::Op;
  const unsigned char* source = nullptr;
  std::shared_ptr<Physical> owner;
  std::uint64_t value = 0;
  unsigned bytes = 8, flags = 0;
  Went step() override;
};
struct HostOp final : Op {
  using Op::Op;
  CUhostFn function = nullptr;
  void* argument = nullptr;
  bool has_begun = false;
  std::atomic<bool> has_ended = false;
  Went step() override;
};
struct KernelOp final : Op {
  KernelOp(Card& card, const KernelTwin& twin_of, const void* args_of, const GridShape& shape_of,
           bool is_cooperative_of);
  bool can_begin() override;
  void begin() override;
  Went step() override;
  void end() override;
  void give_up() override;

  const KernelTwin& twin;
  std::vector<unsigned char> args;
  GridShape shape;
  bool is_cooperative;
  std::unique_ptr<GridRun> run;
  double share = 1;  ///< of the card, that a block needs
  double held = 0;
  void hold_blocks();
};

/// True while this thread runs a host function.
extern thread_local bool in_host_function;

}  // namespace tranship::cuda::software
