#include "tranship/fabric/lanes/cpu_lanes.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/lanes/fiber.hpp>
#include <tranship/fabric/polls.hpp>

namespace tranship {

HeapView heap_view(const World& world) noexcept {
  return {.heaps = world.heap().place().table(world.size()), .rank = world.rank(), .size = world.size()};
}

namespace detail {
namespace {

/// Thrown to unwind a lane whose grid has failed.
struct Cancelled {};

std::string name_of(const GroupCall& call) {
  return fmt::format("{} ({})", call.name, short_name({call.where.file, call.where.line}));
}
std::string to_string(const GroupCall::Argument& argument) {
  return argument.is_address ? fmt::format("{} {:#x}", argument.name, argument.value)
                             : fmt::format("{} {}", argument.name, static_cast<long long>(argument.value));
}
std::string to_string(const GroupCall& call) {
  std::string list;
  for (const GroupCall::Argument& argument : call.arguments)
    if (argument.name) list += (list.empty() ? "" : ", ") + to_string(argument);
  return fmt::format("{}({})", call.name, list);
}
bool is_same_place(const GroupCall& a, const GroupCall& b) {
  return std::strcmp(a.name, b.name) == 0 && a.where.line == b.where.line &&
         std::strcmp(a.where.file, b.where.file) == 0;
}
/// Returns the first argument that differs between two calls of one operation, or -1.
int argument_that_differs(const GroupCall& a, const GroupCall& b) {
  for (int i = 0; i < GroupCall::arguments_max; ++i)
    if (a.arguments[i].value != b.arguments[i].value) return i;
  return -1;
}

class Grid;
class Block;
struct Worker;

class Lane final : public LaneExecutor {
 public:
  enum class State {
    ready,    ///< it can run, or has not begun
    meeting,  ///< at an operation of its warp or block
    waiting,  ///< until a condition becomes true
    on_rank,  ///< until a call on the rank's stack has been made
    ended,
  };

  Lane(Block& block, int index) : block_(block), index_(index) {}

  int index() const noexcept { return index_; }
  std::string name() const;
  State state() const noexcept { return state_; }
  Scope scope() const noexcept { return scope_; }
  const GroupCall& call() const noexcept { return *call_; }
  const WaitNote& note() const noexcept { return *note_; }

  void run();
  /// Returns true if the lane can run now.
  bool look() {
    if (state_ == State::waiting && (*ready_)()) state_ = State::ready;
    return state_ == State::ready;
  }
  void go_on() noexcept { state_ = State::ready; }
  void serve(Context& context) {
    try {
      (*on_rank_)(context);
    } catch (...) {
      thrown_on_rank_ = std::current_exception();
    }
    state_ = State::ready;
  }

  void meet(Scope scope, const GroupCall& call) override;
  unsigned long long& slot(Scope scope) noexcept override;
  void wait(FunctionRef<bool()> ready, const WaitNote& note) override {
    ready_ = &ready;
    note_ = &note;
    suspend(State::waiting);
  }
  void on_rank(FunctionRef<void(Context&)> f) override {
    on_rank_ = &f;
    suspend(State::on_rank);
    if (thrown_on_rank_) std::rethrow_exception(std::exchange(thrown_on_rank_, nullptr));
  }
  void saw(const void* word, std::size_t bytes) const override;
  WaitNote note(const GroupCall& call, const void* word) const override;
  Error refusal(const GroupCall& call, const char* problem) const override;
  void check_block(FunctionRef<GroupCall()> call, std::size_t offset_bytes, std::size_t size_bytes) const override;
  void polled(int lanes, FunctionRef<WaitNote()> note) override;
  void got(int lanes, FunctionRef<WaitNote()> note, FunctionRef<LaneTarget()> target) override;
  void carried(int lanes) override;
  void stores(KernelSite where, const void* first, std::size_t size_bytes) const override;

  Worker* worker = nullptr;  ///< from its begin to its end

 private:
  /// Counts the polls since the lane has last let others run.
  static constexpr int polls_max = 64;
  bool lets_others_go_on();
  void polled_by(int lanes, FunctionRef<void(Grid&)> look);
  void suspend(State state);

  Block& block_;
  int index_;
  State state_ = State::ready;
  Scope scope_ = Scope::thread;
  const GroupCall* call_ = nullptr;
  FunctionRef<bool()>* ready_ = nullptr;
  const WaitNote* note_ = nullptr;
  FunctionRef<void(Context&)>* on_rank_ = nullptr;
  std::exception_ptr thrown_on_rank_;
  int polls_ = 0;
  int polls_of_lanes_ = 0;
  mutable int operations_ = 0;
};

class Block {
 public:
  Block(Grid& grid, int index, const LaneBlock& shape);

  Grid& grid() const noexcept { return grid_; }
  int index() const noexcept { return index_; }
  std::deque<Lane>& lanes() noexcept { return lanes_; }
  bool ended() const noexcept { return whole_.ended == int(lanes_.size()); }

  /// Returns true if the lane is the last one of its group, so that all continue. Throws if it has diverged from a lane
  /// that has arrived.
  bool arrive(const Lane& lane, Scope scope);
  void end(const Lane& lane);
  unsigned long long& slot(const Lane& lane, Scope scope) noexcept { return group(lane, scope).slot; }
  /// Returns the error for lanes that neither run nor wait.
  Error divergence();

 private:
  struct Group {
    int first = 0;
    int count = 0;
    int arrived = 0;
    const Lane* arrived_first = nullptr;
    int ended = 0;
    unsigned long long slot = 0;
  };
  Group& group(const Lane& lane, Scope scope) noexcept {
    return scope == Scope::block ? whole_ : warps_[std::size_t(lane.index() / warp_)];
  }
  bool stands_at(const Lane& lane, Scope scope) const noexcept {
    return lane.state() == Lane::State::meeting && lane.scope() == scope;
  }
  /// Returns the first lane of a group that satisfies `is_so`; nullptr if there is none.
  template <class F>
  const Lane* find(const Group& group, F&& is_so) const {
    for (int i = group.first; i < group.first + group.count; ++i)
      if (is_so(lanes_[std::size_t(i)])) return &lanes_[std::size_t(i)];
    return nullptr;
  }
  Error ended_before(const Lane& ended, Scope scope, const Group& group, const Lane& at) const;

  Grid& grid_;
  int index_;
  int warp_;
  std::deque<Lane> lanes_;
  Group whole_;
  std::vector<Group> warps_;
};

/// A fiber, kept for later lanes. It ends when it is resumed without a lane.
struct Worker {
  Lane* lane = nullptr;
  Fiber fiber{[this] {
    for (; lane; Fiber::suspend()) lane->run();
  }};

  Worker() = default;
  Worker(const Worker&) = delete;
  ~Worker() {
    lane = nullptr;
    fiber.resume();
  }
};

class Grid {
 public:
  Grid(World& world, const LaneGrid& shape, FunctionRef<void(const CpuLane&)> kernel)
      : world_(world), shape_(shape), kernel_(kernel), checks_blocks_(world.context().checks() == HeapChecks::blocks) {}

  World& world() const noexcept { return world_; }
  bool checks_blocks() const noexcept { return checks_blocks_; }
  const LaneGrid& shape() const noexcept { return shape_; }
  void call_kernel(const CpuLane& lane) const { kernel_(lane); }

  bool failed() const noexcept { return failure_ != nullptr; }
  void fail(std::exception_ptr failure) {
    if (!failure_) failure_ = std::move(failure);
  }
  template <class... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    Error error(ErrorCode::invalid_use,
                fmt::format("{} (rank {})", fmt::format(format, std::forward<Args>(args)...), world_.rank()));
    error.rank = world_.rank();
    return error;
  }

  void run();

  /// Counts polls of the grid's lanes. Returns true when the polls that World::look has allowed are used up.
  bool count_polls(int polls) noexcept { return (polls_left_ -= polls) <= 0; }
  void look(const WaitNote& note) {
    detail::Polls(world_).add(-polls_left_);
    polls_left_ = world_.look(note);
  }
  void look_at(const WaitNote& note, const LaneTarget& target) {
    detail::Polls(world_).add(-polls_left_);
    polls_left_ = detail::Polls(world_).look_at(note, target.block, target.width, target.data);
  }

 private:
  /// Result of one step of a block's lanes.
  enum class Went { nowhere, polling, on };

  void resume(Lane& lane);
  Went step(Block& block);
  void wait_for_any();
  void unwind();

  World& world_;
  const LaneGrid& shape_;
  FunctionRef<void(const CpuLane&)> kernel_;
  bool checks_blocks_;
  int begun_ = 0;
  std::list<Block> blocks_;  // blocks that have begun and not ended
  std::deque<Worker> workers_;
  std::vector<Worker*> idle_;
  std::exception_ptr failure_;
  int polls_left_ = 0;
};

// Lanes.

std::string Lane::name() const {
  return fmt::format("lane {} of block {}", index_, block_.index());
}

void Lane::run() {
  Grid& grid = block_.grid();
  try {
    grid.call_kernel(CpuLane(*this, grid.shape(), block_.index(), index_));
  } catch (const Cancelled&) {
  } catch (...) {
    grid.fail(std::current_exception());
  }
  state_ = State::ended;
  block_.end(*this);
}

void Lane::suspend(State state) {
  if (block_.grid().failed()) throw Cancelled{};
  state_ = state;
  Fiber::suspend();
  if (block_.grid().failed()) throw Cancelled{};
}

void Lane::meet(Scope scope, const GroupCall& call) {
  if (block_.grid().failed()) throw Cancelled{};
  scope_ = scope;
  call_ = &call;
  if (!block_.arrive(*this, scope)) suspend(State::meeting);
}

unsigned long long& Lane::slot(Scope scope) noexcept {
  return block_.slot(*this, scope);
}

void Lane::saw(const void* word, std::size_t bytes) const {
  block_.grid().world().context().acquires(
      Symmetric<const std::byte>::at(static_cast<const std::byte*>(word), Index(bytes)));
}

WaitNote Lane::note(const GroupCall& call, const void* word) const {
  const World& world = block_.grid().world();
  WaitNote note(call.name, WaitNote::anyone, {call.where.file, call.where.line});
  note.flag_rank = world.rank();
  note.flag_index = static_cast<const std::byte*>(word) - world.heap().place().own;
  return note;
}

Error Lane::refusal(const GroupCall& call, const char* problem) const {
  return block_.grid().error("{}: {} ({}, {})", to_string(call), problem,
                             short_name({call.where.file, call.where.line}), name());
}

void Lane::check_block(FunctionRef<GroupCall()> call, std::size_t offset_bytes, std::size_t size_bytes) const {
  ++operations_;
  const Grid& grid = block_.grid();
  if (!grid.checks_blocks() || size_bytes == 0 || grid.world().heap().is_allocated(offset_bytes, size_bytes)) return;
  const std::string problem =
      fmt::format("bytes [{}, {}) of the symmetric heap do not lie in one block that is allocated", offset_bytes,
                  offset_bytes + size_bytes);
  throw refusal(call(), problem.c_str());
}

bool Lane::lets_others_go_on() {
  if (++polls_ < polls_max) return false;
  if (operations_ > polls_) detail::Polls(block_.grid().world()).end_row();
  polls_ = operations_ = 0;
  return true;
}

void Lane::polled_by(int lanes, FunctionRef<void(Grid&)> look) {
  polls_of_lanes_ += lanes;
  if (!lets_others_go_on()) return;
  Grid& grid = block_.grid();
  // Runs on the rank's own stack, from which a simulated rank can switch to others.
  if (grid.count_polls(std::exchange(polls_of_lanes_, 0))) on_rank([&](Context&) { look(grid); });
  suspend(State::ready);
}

void Lane::polled(int lanes, FunctionRef<WaitNote()> note) {
  polled_by(lanes, [&](Grid& grid) { grid.look(note()); });
}

void Lane::got(int lanes, FunctionRef<WaitNote()> note, FunctionRef<LaneTarget()> target) {
  polled_by(lanes, [&](Grid& grid) { grid.look_at(note(), target()); });
}

void Lane::carried(int lanes) {
  detail::Polls(block_.grid().world()).add(lanes - 1);
  if (lets_others_go_on()) suspend(State::ready);
}

void Lane::stores(KernelSite where, const void* first, std::size_t size_bytes) const {
  block_.grid().world().context().writes(std::span(static_cast<const std::byte*>(first), size_bytes),
                                         {where.file, where.line});
}

// Blocks.

Block::Block(Grid& grid, int index, const LaneBlock& shape)
    : grid_(grid), index_(index), warp_(shape.warp), whole_{.first = 0, .count = shape.lanes} {
  for (int i = 0; i < shape.lanes; ++i) lanes_.emplace_back(*this, i);
  for (int first = 0; first < shape.lanes; first += warp_)
    warps_.push_back({.first = first, .count = std::min(warp_, shape.lanes - first)});
}

const char* name_of(Scope scope) {
  return scope == Scope::block ? "block" : "warp";
}

bool Block::arrive(const Lane& lane, Scope scope) {
  Group& group = this->group(lane, scope);
  if (group.ended > 0)
    throw ended_before(*find(group, [](const Lane& other) { return other.state() == Lane::State::ended; }), scope,
                       group, lane);
  if (group.arrived > 0) {
    const Lane& other = *group.arrived_first;
    if (!is_same_place(lane.call(), other.call()))
      throw grid_.error(
          "lanes {} and {} of block {} have diverged: at an operation of their {}, lane {} is at {} and "
          "lane {} at {}",
          other.index(), lane.index(), index_, name_of(scope), other.index(), name_of(other.call()), lane.index(),
          name_of(lane.call()));
    if (const int i = argument_that_differs(lane.call(), other.call()); i >= 0)
      throw grid_.error("lanes {} and {} of block {} call {} of their {} with different arguments: {} and {}",
                        other.index(), lane.index(), index_, name_of(lane.call()), name_of(scope),
                        to_string(other.call().arguments[i]), to_string(lane.call().arguments[i]));
  } else
    group.arrived_first = &lane;
  if (++group.arrived < group.count) return false;
  group.arrived = 0;
  for (int i = group.first; i < group.first + group.count; ++i) lanes_[std::size_t(i)].go_on();
  return true;
}

void Block::end(const Lane& lane) {
  for (const Scope scope : {Scope::warp, Scope::block}) {
    Group& group = this->group(lane, scope);
    ++group.ended;
    if (group.arrived > 0 && !grid_.failed())
      grid_.fail(std::make_exception_ptr(ended_before(lane, scope, group, *group.arrived_first)));
  }
}

Error Block::ended_before(const Lane& ended, Scope scope, const Group& group, const Lane& at) const {
  return grid_.error(
      "lanes {} and {} of block {} have diverged: lane {} has ended, but lane {} is at {} of its {}, "
      "which all {} must call",
      ended.index(), at.index(), index_, ended.index(), at.index(), name_of(at.call()), name_of(scope),
      amount(group.count, "lane"));
}

Error Block::divergence() {
  // If all were at operations of the block, they would continue. So one lane is at an operation of its warp, and a lane
  // that it waits for is at one of the block.
  for (const Lane& lane : lanes_)
    if (stands_at(lane, Scope::warp))
      if (const Lane* other = find(group(lane, Scope::warp), [&](const Lane& l) { return stands_at(l, Scope::block); }))
        return grid_.error(
            "lanes {} and {} of block {} have diverged: lane {} is at {} of its warp and lane {} at {} "
            "of its block",
            lane.index(), other->index(), index_, lane.index(), name_of(lane.call()), other->index(),
            name_of(other->call()));
  return grid_.error("no lane of block {} can go on", index_);
}

// The grid.

void Grid::resume(Lane& lane) {
  if (!lane.worker) {
    if (idle_.empty()) idle_.push_back(&workers_.emplace_back());
    lane.worker = idle_.back();
    lane.worker->lane = &lane;
    idle_.pop_back();
  }
  lane.worker->fiber.resume();
  while (lane.state() == Lane::State::on_rank) {
    lane.serve(world_.context());
    lane.worker->fiber.resume();
  }
  if (lane.state() == Lane::State::ended) idle_.push_back(std::exchange(lane.worker, nullptr));
}

/// Resumes each lane that can run.
Grid::Went Grid::step(Block& block) {
  Went went = Went::nowhere;
  bool waits = false;
  for (Lane& lane : block.lanes()) {
    if (failed()) return Went::on;
    if (lane.look()) {
      resume(lane);
      // A lane that is still ready has yielded because it polls.
      went = std::max(went, lane.state() == Lane::State::ready ? Went::polling : Went::on);
    }
    waits |= lane.state() == Lane::State::waiting;
  }
  if (went == Went::nowhere && !waits) fail(std::make_exception_ptr(block.divergence()));
  return went;
}

void Grid::wait_for_any() {
  std::vector<Lane*> waiting;
  for (Block& block : blocks_)
    for (Lane& lane : block.lanes())
      if (lane.state() == Lane::State::waiting) waiting.push_back(&lane);
  WaitNote note = waiting.front()->note();
  std::string label = fmt::format("{} of {}", note.label, waiting.front()->name());
  if (waiting.size() > 1) label += fmt::format(" and {} more", waiting.size() - 1);
  note.label = label.c_str();
  const auto any = [&] {
    bool found = false;
    for (Lane* lane : waiting) found |= lane->look();
    note.seen = waiting.front()->note().seen;
    return found;
  };
  try {
    world_.wait_until(any, note);
  } catch (...) {
    fail(std::current_exception());
  }
}

void Grid::unwind() {
  for (Block& block : blocks_)
    for (Lane& lane : block.lanes())
      while (lane.worker) resume(lane);
}

void Grid::run() {
  while (!failed()) {
    Went went = Went::nowhere;
    for (Block& block : blocks_) went = std::max(went, step(block));
    if (failed()) break;
    std::erase_if(blocks_, [](const Block& block) { return block.ended(); });
    if (went == Went::on) continue;
    if (begun_ < shape_.blocks)  // the new block may bring what lanes poll for
      blocks_.emplace_back(*this, begun_++, shape_.block);
    else if (blocks_.empty())
      return;
    else if (went == Went::nowhere)
      wait_for_any();
  }
  unwind();
  std::rethrow_exception(failure_);
}

}  // namespace

void run_lanes(World& world, const LaneGrid& shape, FunctionRef<void(const CpuLane&)> kernel) {
  world.check_process();
  if (shape.blocks < 1 || shape.block.lanes < 1 || shape.block.lanes > LaneBlock::lanes_max || shape.block.warp < 1)
    throw_error(ErrorCode::invalid_use,
                "{} of {} in warps of {}: needs at least one of each, and at most {} lanes (rank {})",
                amount(shape.blocks, "block"), amount(shape.block.lanes, "lane"), shape.block.warp,
                LaneBlock::lanes_max, world.rank());
  Grid(world, shape, kernel).run();
}

}  // namespace detail
}  // namespace tranship
