#include "tranship/fabric/world.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/seam/global_exit.hpp>
#include <tranship/fabric/seam/polling.hpp>
#include <tranship/fabric/settings.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/fabric/under_way.hpp>

namespace tranship {
namespace {

/// Posts a wait while it lasts, even if the predicate throws.
class Posted {
 public:
  Posted(Board& board, Rank rank, const WaitNote& note) : board_(board), rank_(rank), since_ns_(now_ns()) {
    update(note);
  }
  ~Posted() { board_.post_running(rank_); }
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;

  void update(const WaitNote& note) noexcept { board_.post_wait(rank_, note, since_ns_); }
  double waited_seconds() const noexcept { return static_cast<double>(now_ns() - since_ns_) * 1e-9; }

 private:
  Board& board_;
  Rank rank_;
  std::int64_t since_ns_;
};

[[noreturn]] void raise(ErrorCode code, Rank rank, Rank peer, std::string message) {
  Error error(code, std::move(message));
  error.rank = rank;
  error.peer = peer;
  throw error;
}

}  // namespace

/// Carries flags by the transport of the default context. Earlier puts of this rank are visible before a flag changes.
class World::CarriedFlags final : public FlagCarrier {
 public:
  explicit CarriedFlags(Context& context) : context_(context) {}

  std::uint64_t load(Rank rank, const void* own) override { return fetching(AtomicOp::fetch, rank, own, 0, 0); }
  void store(Rank rank, const void* own, std::uint64_t value) override {
    context_.quiet();
    apply(AtomicOp::set, rank, own, value, 0, nullptr);
  }
  bool compare_exchange(Rank rank, const void* own, std::uint64_t expected, std::uint64_t desired) override {
    context_.quiet();
    return fetching(AtomicOp::compare_swap, rank, own, desired, expected) == expected;
  }
  std::uint64_t fetch_add(Rank rank, const void* own, std::uint64_t by) override {
    context_.quiet();
    return fetching(AtomicOp::add, rank, own, by, 0);
  }

 private:
  std::uint64_t fetching(AtomicOp op, Rank rank, const void* own, std::uint64_t operand, std::uint64_t compare) {
    std::uint64_t before = 0;
    apply(op, rank, own, operand, compare, &before);
    return before;
  }
  void apply(AtomicOp op, Rank rank, const void* own, std::uint64_t operand, std::uint64_t compare, void* before) {
    const CallSite where = CallSite::here();
    const std::size_t offset = context_.checked_offset("a flag", own, 0, sizeof(std::uint64_t), where);
    context_.transport_->atomic({rank, offset}, sizeof(std::uint64_t), WordKind::integer, op, operand, compare, before,
                                Completion::blocking, where);
  }

  Context& context_;
};

std::int64_t default_timeout_ns() {
  const char* text = std::getenv("TRANSHIP_TIMEOUT");
  if (text == nullptr || *text == '\0') return 60'000'000'000;
  return timeout_ns_of("TRANSHIP_TIMEOUT", text);
}

World::World(Fabric& fabric, std::int64_t timeout_ns)
    : fabric_(&fabric),
      rank_(fabric.rank()),
      size_(fabric.size()),
      timeout_ns_(timeout_ns),
      polling_(std::make_unique<Polling>()),
      own_under_way_(std::make_unique<UnderWay>()),
      under_way_(own_under_way_.get()),
      team_(*this, fabric, {.first = 0, .stride = 1, .count = fabric.size()}, fabric.world_slot()),
      heap_(std::make_unique<SymmetricHeap>(*this, fabric)),
      context_(std::make_unique<Context>(*this)) {}
World::~World() = default;

Team World::predefined_team(const Members& members, int slot) {
  if (fabric_->world_slot() == 0) return Team(*this, *fabric_, members, slot);
  return *team_.split(members, {.kind = CallKind::split, .detail = std::uint64_t(3 + slot) << 60}, CallSite::here());
}

Team& World::shared_team() {
  check_process();
  if (!shared_team_) shared_team_.emplace(predefined_team(fabric_->sharing(), 1));
  return *shared_team_;
}
Team& World::node_team() {
  check_process();
  if (!node_team_) node_team_.emplace(predefined_team(fabric_->on_this_machine(), 2));
  return *node_team_;
}

void World::check_peer(Rank peer) const {
  check_process();
  if (peer < 0 || peer >= size())
    throw_error(ErrorCode::invalid_use, "no rank {} in a world of {} (rank {})", peer, size(), rank());
}

PeerKind World::peer_kind(Rank peer) const {
  check_peer(peer);
  return fabric_->peer_kind(peer);
}

bool World::is_exposed(const void* address) const noexcept {
  return fabric_->is_exposed(address);
}

Rank World::launched_rank(Rank rank) const noexcept {
  return fabric_->launched_rank(rank);
}

void* World::reach(Rank peer, const void* address) const {
  check_peer(peer);
  return fabric_->reach(peer, address);
}

bool World::has_ended(Rank peer) const {
  check_peer(peer);
  return fabric_->board().ended(peer);
}

std::string World::activity_of(Rank peer) const {
  check_peer(peer);
  return fabric_->board().line(peer);
}

SharedFlags World::shared_flags(int count, const char* label, CallSite where) {
  if (count < 1)
    throw_error(ErrorCode::invalid_use, "shared_flags '{}': needs at least 1 flag per rank, got {} (rank {}, {})",
                label, count, rank(), short_name(where));
  const std::size_t bytes = std::size_t(count) * sizeof(RealSync::Word);
  std::shared_ptr<void> memory = heap_->allocate(team_, {.size_bytes = bytes, .kind = CallKind::shared_flags}, where);
  const HeapPlace& place = heap_->place();
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(memory.get()) - place.own);
  SharedFlags flags(std::move(memory), place.mapped, offset, count, label, fabric_->flag_watch());
  if (const Members sharing = fabric_->sharing(); sharing.count < size())
    flags.carry_others(rank(), sharing, std::make_shared<CarriedFlags>(*context_));
  return flags;
}

std::shared_ptr<void> World::allocate_bytes(Index count, std::size_t element_bytes, std::size_t alignment,
                                            std::uint8_t type, CallSite where) {
  Index bytes = 0;
  if (count < 0)
    throw_error(ErrorCode::invalid_use, "cannot allocate {} of {}: a count is at least 0 (rank {}, {})",
                amount(count, "symmetric element"), amount(element_bytes, "byte"), rank(), short_name(where));
  if (__builtin_mul_overflow(count, Index(element_bytes), &bytes))
    throw_error(ErrorCode::invalid_use, "{} of {} are more than the {} bytes that can be counted (rank {}, {})",
                amount(count, "symmetric element"), amount(element_bytes, "byte"), INT64_MAX, rank(),
                short_name(where));
  return heap_->allocate(team_, {.size_bytes = std::size_t(bytes), .alignment = alignment, .type = type}, where);
}

SymmetricArray<std::byte> World::allocate_uneven(std::size_t bytes_max, std::size_t own_bytes, CallSite where) {
  std::shared_ptr<void> memory = heap_->allocate(
      team_, {.size_bytes = bytes_max, .own_bytes = own_bytes, .type = std::uint8_t(ElementType::u8)}, where);
  auto* const local = static_cast<std::byte*>(memory.get());
  return {Symmetric<std::byte>::at(local, local ? Index(bytes_max) : 0), std::move(memory)};
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): it goes with the call.
void World::free_bytes(std::shared_ptr<void> memory, CallSite where) {
  heap_->free(team_, memory, where);
}

RegisteredMemory World::register_bytes(void* memory, std::size_t size_bytes, CallSite where) {
  return heap_->join(team_, memory, size_bytes, where);
}

HeapUsage World::heap_usage() const noexcept {
  return heap_->usage();
}

std::shared_ptr<void> World::local_memory(std::size_t size_bytes, MemoryContent content) {
  check_process();
  return fabric_->domain().local_memory(size_bytes, content);
}

RegisteredMemory World::register_statics(CallSite where) {
  if (!fabric_->has_own_statics())
    throw_error(ErrorCode::unsupported,
                "cannot register static variables: the ranks of one process share them (rank {}, {})", rank(),
                short_name(where));
  return register_memory(statics_of_executable(), where);
}

void World::set_failing() noexcept {
  under_way_->set_failing();
}

bool World::is_failing_since(int exceptions_before) const noexcept {
  return under_way_->is_failing() || std::uncaught_exceptions() > exceptions_before;
}

void World::check_failed() const {
  check_process();
  const Board& board = fabric_->board();
  if (!board.has_failed()) return;
  end_with_all(board);
  raise(ErrorCode::peer_lost, rank(), board.first_failed(), board.first_failure());
}

void World::global_exit(int status) {
  check_process();
  Board& board = fabric_->board();
  board.post_exit(rank(), status);
  end_process(board);
}

bool World::has_passed(Deadline deadline) {
  return fabric_->clock().passed(deadline);
}

void World::idle(int round) {
  fabric_->clock().idle(round);
}

std::string_view World::progress() const noexcept {
  return context_->transport_ ? context_->transport_->progress() : std::string_view();
}

int World::spin_rounds() const noexcept {
  return fabric_->clock().patience().spin_rounds;
}

void World::check_interrupt() {
  constexpr std::int64_t interval_ns = 10'000'000;
  if (interrupt_check_ == nullptr) return;
  const std::int64_t now = now_ns();
  if (now - interrupt_checked_ns_ < interval_ns) return;
  interrupt_checked_ns_ = now;
  interrupt_check_();
}

int World::look(const WaitNote& note) {
  check_process();
  check_interrupt();
  under_way_->move_all(Meanwhile::polls);
  bool acted = false;
  for (Context* context : contexts_) acted |= std::exchange(context->direct_.acted, false);
  if (acted || waits_ > 0) polling_->end_row();
  const std::int64_t passed = polling_->passed();
  const int polls = polling_->look(*fabric_, note, timeout_ns_);
  // A transport that serves only some peers learns here of polls of the others.
  if (context_->transport_ && !heap_->place().direct.is_empty()) context_->transport_->poll(passed);
  return polls;
}

void World::wait(const SharedFlags& words, Rank rank, int index, std::uint64_t at_least, WaitNote note) {
  wait(words, rank, index, at_least, note, deadline());
}
void World::wait(const SharedFlags& words, Rank rank, int index, std::uint64_t at_least, WaitNote note,
                 Deadline deadline) {
  check_process();
  if (words.load(rank, index) < at_least) wait_for_word(words, rank, index, at_least, note, deadline);
}

void World::wait_for_word(const SharedFlags& words, Rank rank, int index, std::uint64_t at_least, WaitNote& note,
                          Deadline deadline) {
  if (note.raised_by == WaitNote::anyone) note.raised_by = rank;
  note.flag_rank = rank;
  note.flag_index = index;
  note.wanted = at_least;
  wait_longer([&] { return (note.seen = words.load(rank, index)) >= at_least; }, note, deadline);
}

void World::wait_longer(FunctionRef<bool()> ready, const WaitNote& note, Deadline deadline) {
  struct Waiting {
    World& world;
    explicit Waiting(World& of) : world(of) {
      ++world.waits_;
      world.polling_->end_row();
    }
    ~Waiting() {
      --world.waits_;
      world.polling_->end_row();
    }
  };
  const Waiting waiting(*this);
  wait_within_poll(ready, note, deadline);
}

void World::wait_within_poll(FunctionRef<bool()> ready, const WaitNote& note, Deadline deadline) {
  Clock& clock = fabric_->clock();
  const Patience& patience = clock.patience();
  if (patience.spin_ns > 0) {
    const Deadline spun = Deadline::after_ns(std::min(patience.spin_ns, deadline.remaining_ns()));
    for (;;) {
      for (int round = 0; round < patience.pauses; ++round) {
        if (ready()) return;
        under_way_->move_all(Meanwhile::waits);
        RealSync::pause();
      }
      if (spun.passed()) break;
      // The awaited rank may have to run on this core if other programs have taken the others.
      clock.idle(0);
    }
  }
  int round = 0;
  for (; round < patience.unseen_rounds && !clock.passed(deadline); ++round) {
    if (ready()) return;
    under_way_->move_all(Meanwhile::waits);
    clock.idle(round);
  }
  Board& board = fabric_->board();
  Posted posted(board, rank(), note);
  for (;; ++round) {
    // The reasons to give up are read before `ready`. A rank that has failed or finished has published everything
    // before (acquire), so if `ready` is still false then, it stays false.
    const bool failed = board.has_failed();
    const Rank raiser = note.raised_by;
    const bool left = raiser >= 0 && raiser != rank() && board.finished(raiser);
    const bool late = clock.passed(deadline);
    if (ready()) return;

    if (failed) check_failed();
    if (left && note.raised_by == raiser)
      raise(ErrorCode::peer_lost, rank(), raiser,
            fmt::format("rank {} has finished, but rank {} waits for {} (from {})", raiser, rank(), to_string(note),
                        short_name(note.where)));
    if (late) {
      posted.update(note);
      std::string message = fmt::format("rank {} waited {:.3g} s for {} (from {})", rank(), posted.waited_seconds(),
                                        to_string(note), short_name(note.where));
      if (const std::string circle = board.circle_from(rank()); !circle.empty()) message += "; in a circle: " + circle;
      message += board.lines_of_others(rank(), note.raised_by);
      raise(ErrorCode::timeout, rank(), note.raised_by, std::move(message));
    }
    check_interrupt();
    posted.update(note);
    under_way_->move_all(Meanwhile::waits);
    clock.idle(round);
  }
}

}  // namespace tranship
