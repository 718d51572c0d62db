// MpiWire over a model of MPI, with an oracle that knows no more than what wire.hpp promises; and protocols that are
// wrong in one way each, which must be noticed.
#include "tranship/fabric/mpi/mpi_wire.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "support/error_of.hpp"
#include "support/mpi_model.hpp"
#include "support/thinned.hpp"

namespace tranship::test::mpi_wire_test {
namespace {

/// What stands before the head and the body of a message that goes in one piece.
constexpr std::size_t frame_bytes = MpiWire::Sizes::short_bytes_min - Wire::head_bytes_max;
constexpr std::byte poison{0xa5}, scribble{0xee};

enum class Where : std::uint8_t { kept_by_the_wire, anywhere, in_order };

/// What every head begins with.
struct Stamp {
  std::int32_t from = 0, to = 0;
  std::uint32_t number = 0;  ///< of those of one rank to another, from 0
  std::uint32_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
  Where where = Where::kept_by_the_wire;
  bool is_lent = false;
  bool wants_answer = false;
  bool is_last_of_plan = false;
  std::uint32_t unused = 0;  ///< no byte without a value
};
static_assert(std::has_unique_object_representations_v<Stamp>);

std::vector<std::byte> pattern(std::size_t size_bytes, std::uint32_t key) {
  std::vector<std::byte> out(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) out[i] = std::byte((std::uint32_t(i + 1) * 2654435761u + key) >> 24);
  return out;
}
std::uint32_t key_of(const Stamp& stamp) {
  return std::uint32_t(stamp.from * 59 + stamp.to * 7 + 1) * 2246822519u + stamp.number * 3266489917u;
}
std::vector<std::byte> head_of(const Stamp& stamp) {
  std::vector<std::byte> out = pattern(stamp.head_bytes, ~key_of(stamp));
  std::memcpy(out.data(), &stamp, sizeof stamp);
  return out;
}
std::vector<std::byte> body_of(const Stamp& stamp) {
  return pattern(stamp.body_bytes, key_of(stamp));
}

struct JobOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  int highest_tag = 32767;
  MpiWire::Sizes sizes = {};
  MpiModel::Mistake mistake = MpiModel::Mistake::none;
  int rounds = 1;               ///< worlds, one after the other
  bool parts_when_idle = true;  ///< else while messages wait to leave
  // What a rank does wrong.
  bool leaves_without_parting = false;
  bool places_all_anywhere = false;
  int window_factor_of_rank_0 = 1;
};

/// What of a message goes in short ones: a whole one; several, where half of a window holds them; else its head alone.
std::size_t short_bytes_of(const MpiWire::Sizes& sizes, std::size_t head_bytes, std::size_t body_bytes) {
  const std::size_t room = sizes.short_bytes - frame_bytes;
  const std::size_t all = head_bytes + body_bytes, messages = std::max<std::size_t>(1, (all + room - 1) / room);
  const std::size_t total = messages * frame_bytes + all;
  return messages == 1 || total <= sizes.window_bytes / 2 ? total : frame_bytes + head_bytes;
}

class Job {
 public:
  explicit Job(const JobOptions& options)
      : options_(options),
        random_(options.seed),
        model_({.ranks = options.ranks,
                .seed = options.seed * 7919 + 1,
                .highest_tag = options.highest_tag,
                .mistake = options.mistake}) {
    model_.on_send = [this](const MpiModel::Sent& sent) { check_window(sent); };
    plans_.resize(std::size_t(options.ranks));
  }
  ~Job() { lose_all(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  MpiModel& model() { return model_; }
  Random& random() { return random_; }
  /// `from`, `to` and the number are set when it is sent.
  void plan(Rank from, Rank to, Stamp stamp) {
    stamp.to = to;
    plans_[std::size_t(from)].push_back(stamp);
  }
  void plan_at_random();

  /// The first fault; stops after so many steps, which is a fault only where the job is to end.
  std::string run(int steps_max = -1);
  /// Takes the ranks away that there still are, while the others go on.
  std::string lose_one_by_one();
  void lose_all();

 private:
  struct Place {
    std::vector<std::byte> bytes;
    std::uint32_t number = 0;
    bool is_pending = true;
    Where where = Where::anywhere;
  };
  struct Source {
    std::vector<std::byte> bytes;
    std::shared_ptr<Wire::Lent> lent;
    bool is_scribbled = false;
  };
  /// What a rank has sent another one.
  struct Line {
    std::vector<Stamp> sent;
    std::size_t received = 0;
    bool has_ended = false;  ///< the last of the plan has been received
    std::deque<Place> places;
    std::size_t short_bytes_sent = 0, short_bytes_received = 0;
  };

  struct Node final : Wire::Receiver {
    Node(Job& of, Rank at, MpiHandle comm_here, const MpiWire::Sizes& sizes)
        : job(of), rank(at), comm(comm_here), wire(of.model_.table(), comm_here, sizes) {}

    Place place(Rank from, std::span<const std::byte> head, std::size_t body_bytes) override;
    void received(Rank from, std::span<const std::byte> head, std::span<const std::byte> body) override;
    void lost(Rank peer) override { job.model_.add_fault(fmt::format("rank {} is told that {} is lost", rank, peer)); }

    void send(Stamp stamp);
    void progress();
    void check_places(const Line& line, std::size_t next);
    /// False when it has gone.
    bool step();

    Job& job;
    Rank rank;
    MpiHandle comm;
    MpiWire wire;
    std::size_t planned = 0;  // that have been sent
    bool has_said_last = false, has_parted = false, has_received = false;
  };

  Line& line(Rank from, Rank to) { return lines_[std::size_t(from * options_.ranks + to)]; }
  bool has_parted(Rank rank) const {
    const auto& node = nodes_[std::size_t(rank)];
    return !node || node->has_parted;
  }
  template <class... Args>
  void fault(fmt::format_string<Args...> text, Args&&... args) {
    model_.add_fault(fmt::format(text, std::forward<Args>(args)...));
  }
  void check_window(const MpiModel::Sent& sent);
  std::size_t short_bytes(const Stamp& stamp) const {
    return short_bytes_of(options_.sizes, stamp.head_bytes, stamp.body_bytes);
  }
  void begin_round();

  JobOptions options_;
  Random random_;
  std::vector<std::vector<Stamp>> plans_;
  // The memory that messages leave and come to stays until MPI is over.
  std::deque<Source> sources_;
  std::deque<std::vector<Line>> old_lines_;
  std::vector<Line> lines_;
  MpiModel model_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

void Job::check_window(const MpiModel::Sent& sent) {
  // Only what says how the wire itself does is as short as a frame: heads of messages are not empty here.
  if (sent.tag != 1 || sent.size_bytes <= frame_bytes) return;
  Line& of = line(sent.from, sent.to);
  of.short_bytes_sent += sent.size_bytes;
  const std::size_t away = of.short_bytes_sent - of.short_bytes_received;
  if (away > options_.sizes.window_bytes && !has_parted(sent.to))
    fault("{} bytes are on their way from rank {} to {}: the window has {}", away, sent.from, sent.to,
          options_.sizes.window_bytes);
}

Wire::Receiver::Place Job::Node::place(Rank from, std::span<const std::byte> head, std::size_t body_bytes) {
  Line& of = job.line(from, rank);
  Stamp stamp;
  if (head.size() < sizeof stamp) return job.fault("rank {} is shown a head of {} bytes", rank, head.size()), Place{};
  std::memcpy(&stamp, head.data(), sizeof stamp);
  const bool was_asked =
      std::any_of(of.places.begin(), of.places.end(), [&](const auto& place) { return place.number == stamp.number; });
  if (stamp.number >= of.sent.size() || stamp.number < of.received || was_asked || stamp.body_bytes != body_bytes)
    return job.fault("rank {} is asked where {} bytes of message {} of rank {} go, after {} of {} have come", rank,
                     body_bytes, stamp.number, from, of.received, of.sent.size()),
           Place{};
  Job::Place& made = of.places.emplace_back(
      Job::Place{.bytes = std::vector<std::byte>(stamp.where == Where::kept_by_the_wire ? 0 : body_bytes, poison),
                 .number = stamp.number,
                 .where = stamp.where});
  if (stamp.where == Where::kept_by_the_wire) return {};
  return {.at = made.bytes.data(), .in_order = stamp.where == Where::in_order && !job.options_.places_all_anywhere};
}

void Job::Node::check_places(const Line& of, std::size_t next) {
  for (const Job::Place& place : of.places)
    if (place.is_pending && place.where == Where::in_order && place.number > next &&
        std::any_of(place.bytes.begin(), place.bytes.end(), [](std::byte b) { return b != poison; }))
      job.fault("the place of message {} at rank {} is written before message {} has been received", place.number, rank,
                next);
}

void Job::Node::received(Rank from, std::span<const std::byte> head, std::span<const std::byte> body) {
  has_received = true;
  if (from < 0 || from >= job.options_.ranks) return job.fault("rank {} receives from {}", rank, from);
  Line& of = job.line(from, rank);
  if (of.received == of.sent.size())
    return job.fault("rank {} receives from {} more than the {} messages that were sent", rank, from, of.sent.size());
  check_places(of, of.received);
  const Stamp stamp = of.sent[of.received++];
  const std::vector<std::byte> right_head = head_of(stamp), right_body = body_of(stamp);
  if (!std::equal(head.begin(), head.end(), right_head.begin(), right_head.end()))
    return job.fault("rank {} receives another head than that of message {} of rank {}", rank, stamp.number, from);
  if (!std::equal(body.begin(), body.end(), right_body.begin(), right_body.end()))
    return job.fault("rank {} receives {} bytes as message {} of rank {}: other ones than the {} that were sent", rank,
                     body.size(), stamp.number, from, stamp.body_bytes);
  for (Job::Place& place : of.places) {
    if (place.number != stamp.number) continue;
    if (!place.bytes.empty() && place.bytes.data() != body.data())
      return job.fault("message {} of rank {} is not where rank {} has placed it", stamp.number, from, rank);
    place.is_pending = false;
  }
  of.short_bytes_received += job.short_bytes(stamp);
  of.has_ended |= stamp.is_last_of_plan;
  if (stamp.wants_answer) send({.to = from, .head_bytes = stamp.head_bytes, .body_bytes = stamp.body_bytes / 2});
}

void Job::Node::send(Stamp stamp) {
  Line& of = job.line(rank, stamp.to);
  stamp.from = rank;
  stamp.number = std::uint32_t(of.sent.size());
  std::vector<std::byte> head = head_of(stamp);
  Source source{.bytes = body_of(stamp), .lent = stamp.is_lent ? std::make_shared<Wire::Lent>() : nullptr};
  const std::span<const std::byte> body = source.bytes;
  const auto lent = source.lent;
  if (lent) job.sources_.push_back(std::move(source));
  if (!has_parted) of.sent.push_back(stamp);
  wire.send(stamp.to, head, body, lent);
  std::fill(head.begin(), head.end(), scribble);
  std::fill(source.bytes.begin(), source.bytes.end(), scribble);
  if (lent && has_parted && !lent->has_left.load()) job.fault("what rank {} sends after it has parted stays", rank);
}

void Job::Node::progress() {
  has_received = false;
  const bool any = wire.progress(*this);
  if (has_received && !any) job.fault("rank {} has received, and progress says that nothing came", rank);
  for (Source& source : job.sources_)
    if (!source.is_scribbled && source.lent->has_left.load()) {
      std::fill(source.bytes.begin(), source.bytes.end(), scribble);
      source.is_scribbled = true;
    }
  for (Rank peer = 0; peer < job.options_.ranks; ++peer) {
    const Line& of = job.line(peer, rank);
    check_places(of, of.received);
    if (wire.is_idle() && wire.waiting_bytes(peer) != 0)
      job.fault("rank {} is idle, and {} bytes wait to leave for rank {}", rank, wire.waiting_bytes(peer), peer);
  }
}

bool Job::Node::step() {
  const std::vector<Stamp>& plan = job.plans_[std::size_t(rank)];
  if (planned < plan.size() && job.random_.one_in(2)) {
    send(plan[planned++]);
    return true;
  }
  progress();
  if (planned < plan.size()) return true;
  if (!has_said_last) {
    for (Rank peer = 0; peer < job.options_.ranks; ++peer)
      if (peer != rank) send({.to = peer, .head_bytes = sizeof(Stamp), .is_last_of_plan = true});
    has_said_last = true;
  }
  for (Rank peer = 0; peer < job.options_.ranks; ++peer)
    if (peer != rank && !job.line(peer, rank).has_ended) return true;
  if (!has_parted) {
    if (job.options_.parts_when_idle && !wire.is_idle()) return true;
    if (!job.options_.leaves_without_parting) wire.part();
    has_parted = true;
    return !job.options_.leaves_without_parting;
  }
  if (!wire.is_idle()) {
    if (job.random_.one_in(50)) send({.to = (rank + 1) % job.options_.ranks, .head_bytes = 40, .is_lent = true});
    return true;
  }
  for (Rank peer = 0; peer < job.options_.ranks; ++peer)
    if (const Line& of = job.line(peer, rank); of.received != of.sent.size())
      job.fault("rank {} is idle after it has parted, with {} of the {} messages that rank {} has sent", rank,
                of.received, of.sent.size(), peer);
  return false;
}

void Job::begin_round() {
  if (!lines_.empty()) old_lines_.push_back(std::move(lines_));
  lines_ = std::vector<Line>(std::size_t(options_.ranks * options_.ranks));
  nodes_.clear();
  nodes_.resize(std::size_t(options_.ranks));
  const MpiHandle comm = model_.open();
  if (comm != 1) fault("communicator 1 has not been freed");
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    MpiWire::Sizes sizes = options_.sizes;
    if (rank == 0) sizes.window_bytes *= std::size_t(options_.window_factor_of_rank_0);
    model_.be(rank);
    nodes_[std::size_t(rank)] = std::make_unique<Node>(*this, rank, comm, sizes);
  }
}

std::string Job::run(int steps_max) {
  int steps = 0;
  const int most = steps_max < 0 ? 150'000 : steps_max;
  for (int round = 0; round < options_.rounds; ++round) {
    begin_round();
    for (int here = options_.ranks; here > 0; ++steps) {
      if (!model_.fault().empty()) return model_.fault();
      if (steps == most) return steps_max < 0 ? fmt::format("{} ranks are not idle after {} steps", here, most) : "";
      const Rank rank = Rank(random_.below(options_.ranks));
      auto& node = nodes_[std::size_t(rank)];
      if (!node) continue;
      model_.be(rank);
      if (node->step()) continue;
      node.reset();
      model_.table().free(1);
      --here;
    }
  }
  for (const Source& source : sources_)
    if (!source.is_scribbled && !source.lent->has_left.load()) fault("all ranks are gone, and a source has not left");
  // A call that fails while a wire goes may leave something.
  if (!model_.has_failed() && model_.left_over() > 0) fault("{} operations of MPI are left over", model_.left_over());
  return model_.fault();
}

void Job::lose_all() {
  random_.shuffle(nodes_);
  for (auto& node : nodes_) {
    if (node) model_.be(node->rank);
    node.reset();
  }
}

std::string Job::lose_one_by_one() {
  std::vector<Rank> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  random_.shuffle(order);
  for (const Rank lost : order) {
    model_.be(lost);
    nodes_[std::size_t(lost)].reset();
    for (int steps = 0; steps < 60; ++steps) {
      const Rank rank = Rank(random_.below(options_.ranks));
      model_.be(rank);
      if (auto& node = nodes_[std::size_t(rank)]; node && !node->step()) node.reset();
    }
  }
  return model_.fault();
}

void Job::plan_at_random() {
  const MpiWire::Sizes& sizes = options_.sizes;
  const Index piece = Index(std::min(sizes.piece_bytes, sizes.short_bytes * 2)), body = Index(sizes.short_bytes);
  const Index all = random_.between(1, 60 * 1024 / body + 10);
  const std::vector<Index> limits{0,     1,         body - 1, body, body + 1, body - Index(frame_bytes),
                                  piece, 2 * piece, 3 * piece};
  // Some jobs mix, some send long bodies alone.
  const Index shorts_of = random_.between(1, 3);
  const bool all_lent = options_.mistake == MpiModel::Mistake::completes_sends_early;
  for (Rank from = 0; from < options_.ranks; ++from)
    for (Index i = 0; i < all; ++i) {
      const Rank to = Rank((from + random_.between(1, options_.ranks - 1)) % options_.ranks);
      const Index head =
          random_.one_in(2) ? Index(sizeof(Stamp)) : random_.between(sizeof(Stamp), Wire::head_bytes_max);
      Index bytes = random_.one_in(shorts_of) ? random_.below(4 * body) : random_.below(body / 2);
      if (random_.one_in(3)) bytes = std::max<Index>(0, random_.pick(limits) + random_.between(-1, 1));
      if (random_.one_in(6)) bytes = std::max<Index>(0, body - Index(frame_bytes) - head + random_.between(-1, 1));
      plan(from, to,
           {.head_bytes = std::uint32_t(head),
            .body_bytes = std::uint64_t(bytes),
            .where = Where(random_.below(3)),
            .is_lent = all_lent || random_.one_in(2),
            .wants_answer = random_.one_in(5)});
    }
}

JobOptions random_options(std::uint64_t seed) {
  Random random(seed ^ 0x5eed);
  JobOptions options{.ranks = int(random.between(2, 5)), .seed = seed, .rounds = int(random.between(1, 2))};
  options.highest_tag = random.pick(std::vector<int>{2, 3, 5, 32767});
  options.parts_when_idle = random.one_in(2);
  if (random.one_in(8)) return options;
  options.sizes.short_bytes = std::size_t(random.between(MpiWire::Sizes::short_bytes_min, 256));
  options.sizes.window_bytes =
      options.sizes.short_bytes * std::size_t(random.between(2, 12)) + std::size_t(random.below(200));
  options.sizes.piece_bytes = std::size_t(random.between(100, 1000));
  options.sizes.receives = int(random.between(1, 3));
  return options;
}

std::string fault_of(const JobOptions& options) {
  Job job(options);
  job.plan_at_random();
  return job.run();
}

TEST(MpiWire, carries_all_messages_right_whatever_mpi_does) {
  EXPECT_EQ(first_fault(0.75, [](std::uint64_t seed) { return fault_of(random_options(seed)); }), "");
}

TEST(MpiWire, carries_bodies_of_all_sizes_around_its_limits) {
  for (const std::size_t window : {400, 1000})
    for (const std::size_t head : {sizeof(Stamp), std::size_t(77), Wire::head_bytes_max})
      for (const bool is_lent : {false, true}) {
        const MpiWire::Sizes sizes{.short_bytes = 150, .window_bytes = window, .piece_bytes = 130, .receives = 2};
        Job job({.seed = head, .sizes = sizes});
        for (std::uint64_t bytes = 0; bytes <= window / 2 + 2 * sizes.piece_bytes + 1; ++bytes)
          job.plan(
              0, 1,
              {.head_bytes = std::uint32_t(head), .body_bytes = bytes, .where = Where(bytes % 3), .is_lent = is_lent});
        EXPECT_EQ(job.run(), "") << "heads of " << head;
      }
}

// Protocols and MPIs that are wrong.

/// Some seed shows a fault that says one of these.
void expect_finds(FunctionRef<void(JobOptions&)> spoil, std::initializer_list<const char*> any_of) {
  std::string fault;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    JobOptions options = random_options(seed);
    options.rounds = 2;
    spoil(options);
    // A wire may find out for itself, too.
    fault = error_of([&] { fault = fault_of(options); }) + fault;
    const auto is_said = [&](const char* part) { return fault.find(part) != std::string::npos; };
    if (std::any_of(any_of.begin(), any_of.end(), is_said)) return;
  }
  ADD_FAILURE() << "the last fault of many seeds: '" << fault << "'";
}
void expect_finds(MpiModel::Mistake mistake, std::initializer_list<const char*> any_of) {
  expect_finds([&](JobOptions& options) { options.mistake = mistake; }, any_of);
}

TEST(MpiWire, ranks_that_leave_without_parting_are_found) {
  const auto leave_of = [](int rounds) {
    return [rounds](JobOptions& options) {
      options.leaves_without_parting = true;
      options.parts_when_idle = true;
      options.rounds = rounds;
    };
  };
  expect_finds(leave_of(1), {"operations of MPI are left over"});
  // The next world has the number of the first, and what was left over.
  expect_finds(leave_of(2), {"receives", "is asked where"});
}

TEST(MpiWire, a_sender_that_ignores_credits_is_found) {
  expect_finds([](JobOptions& options) { options.window_factor_of_rank_0 = 4; }, {"the window has"});
}

TEST(MpiWire, a_receiver_whose_credits_come_too_late_is_found) {
  // The others wait for them for ever.
  Job job({.sizes = {.short_bytes = 150, .window_bytes = 300}, .window_factor_of_rank_0 = 4});
  for (int i = 0; i < 10; ++i) job.plan(1, 0, {.head_bytes = 100});
  EXPECT_NE(job.run().find("are not idle after"), std::string::npos);
}

TEST(MpiWire, a_body_that_is_placed_before_its_turn_is_found) {
  expect_finds([](JobOptions& options) { options.places_all_anywhere = true; }, {"is written before"});
}

TEST(MpiWire, what_no_mpi_does_is_found) {
  using Mistake = MpiModel::Mistake;
  // As if receives were taken in the order in which they are complete.
  expect_finds(Mistake::takes_any_receive, {"receives"});
  expect_finds(Mistake::overtakes, {"receives"});
  expect_finds(Mistake::completes_sends_early, {"other ones than"});
  expect_finds(Mistake::completes_receives_early, {"other ones than"});
  expect_finds(Mistake::loses_a_message, {"are not idle after", "receives"});
  expect_finds(Mistake::delivers_a_message_twice, {"receives", "left over", "is asked where"});
}

// Failures.

TEST(MpiWire, errors_of_mpi_are_thrown_and_leave_a_wire_that_can_go) {
  Thinned thinned(5);
  int errors = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    bool has_failed = true;
    for (int calls = 0; has_failed; calls += calls < 60 ? 1 : 37) {
      if (!thinned.takes_next()) continue;
      JobOptions options = random_options(seed);
      options.rounds = 1;
      options.ranks = 2 + int(seed % 2);
      Job job(options);
      job.plan_at_random();
      job.model().fail_after(calls);
      std::string fault;
      const std::string error = error_of([&] { fault = job.run(); });
      has_failed = job.model().has_failed();
      ASSERT_EQ(fault + job.model().fault(), "") << "seed " << seed << ", after " << calls << " calls";
      // A wire that goes says nothing.
      if (error.empty()) continue;
      errors += 1;
      EXPECT_NE(error.find("io: MPI cannot "), std::string::npos) << error;
      EXPECT_NE(error.find("no memory is left (code 13)"), std::string::npos) << error;
    }
  }
  EXPECT_GT(errors, is_thinned() ? 100 : 500);
}

TEST(MpiWire, that_cannot_be_made_leaves_no_receive) {
  const MpiWire::Sizes sizes{.receives = 5};
  for (int calls = 0; calls < sizes.receives; ++calls) {
    MpiModel model({});
    model.fail_after(calls);
    const MpiHandle comm = model.open();
    EXPECT_NE(error_of([&] { MpiWire(model.table(), comm, sizes); }).find("io: MPI cannot receive"), std::string::npos);
    EXPECT_EQ(model.left_over(), 0u) << "after " << calls << " receives";
    EXPECT_EQ(model.fault(), "");
  }
}

TEST(MpiWire, goes_with_messages_on_their_way) {
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) {
                          JobOptions options = random_options(seed);
                          Job job(options);
                          job.plan_at_random();
                          if (std::string fault = job.run(int(Random(seed).below(400))); !fault.empty()) return fault;
                          if (seed % 4 > 0) return job.lose_one_by_one();
                          // As at the end of a program that has failed.
                          job.model().finalise();
                          job.lose_all();
                          return job.model().fault();
                        }),
            "");
}

/// Takes messages whose heads are numbers.
struct Counting final : Wire::Receiver {
  std::uint32_t count = 0;
  bool is_right = true;

  Place place(Rank, std::span<const std::byte>, std::size_t) override { return {}; }
  void received(Rank, std::span<const std::byte> head, std::span<const std::byte>) override {
    std::uint32_t number = 0;
    std::memcpy(&number, head.data(), sizeof number);
    is_right &= number == count++;
  }
  void lost(Rank) override { is_right = false; }
};

TEST(MpiWire, a_rank_that_has_parted_meets_a_peer_and_parts_from_it) {
  MpiModel model({.seed = 3});
  const MpiHandle comm = model.open();
  std::vector<std::unique_ptr<MpiWire>> wires;
  for (Rank rank = 0; rank < 2; ++rank) {
    model.be(rank);
    wires.push_back(std::make_unique<MpiWire>(model.table(), comm, MpiWire::Sizes{}));
  }
  Counting counting[2];
  wires[1]->part();
  EXPECT_TRUE(wires[1]->is_idle()) << "it has no peer yet";
  const std::uint32_t number = 0;
  model.be(0);
  wires[0]->send(1, std::as_bytes(std::span(&number, 1)), {}, nullptr);
  wires[0]->part();
  const auto is_over = [&] { return counting[1].count == 1 && wires[0]->is_idle() && wires[1]->is_idle(); };
  for (int rounds = 0; rounds < 1000 && !is_over(); ++rounds)
    for (Rank rank = 0; rank < 2; ++rank) {
      model.be(rank);
      wires[std::size_t(rank)]->progress(counting[rank]);
    }
  EXPECT_TRUE(is_over() && counting[1].is_right);
  for (Rank rank = 0; rank < 2; ++rank) {
    model.be(rank);
    wires[std::size_t(rank)].reset();
  }
  EXPECT_EQ(model.left_over(), 0u);
  EXPECT_EQ(model.fault(), "");
}

TEST(MpiWire, memory_is_that_of_peers_that_were_met) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  constexpr Rank ranks = 10'000, met = 1000;
  const auto allocated_bytes = [] { return std::int64_t(mallinfo2().uordblks + mallinfo2().hblkhd); };
  MpiModel model({.ranks = ranks});
  const MpiHandle comm = model.open();
  const std::int64_t before = allocated_bytes();
  MpiWire wire(model.table(), comm, {});
  const std::int64_t alone_bytes = allocated_bytes() - before;
  // The model keeps both messages to a peer; the wire meets the peer with the first of them.
  const auto send_to_each = [&] {
    const std::uint32_t number = 0;
    const std::int64_t at_first = allocated_bytes();
    for (Rank peer = 1; peer <= met; ++peer) wire.send(peer, std::as_bytes(std::span(&number, 1)), {}, nullptr);
    return allocated_bytes() - at_first;
  };
  const std::int64_t with_state = send_to_each(), peer_bytes = (with_state - send_to_each()) / met;
  std::printf("a rank of %d: %lld bytes, and %lld for each peer that it has met\n", ranks, (long long)alone_bytes,
              (long long)peer_bytes);
  const MpiWire::Sizes sizes;
  EXPECT_LE(alone_bytes, std::int64_t(sizes.receives) * std::int64_t(sizes.short_bytes) + 16 * 1024);
  EXPECT_GT(peer_bytes, 0);
  EXPECT_LE(peer_bytes, 4 * 1024);
}

TEST(MpiWire, a_rank_that_makes_no_progress_is_sent_no_more_than_its_window) {
  constexpr std::uint32_t count = 10'000;
  const MpiWire::Sizes sizes{.short_bytes = 1024, .window_bytes = 8192};
  for (const std::size_t body_bytes : {std::size_t(0), std::size_t(100), std::size_t(2000), std::size_t(6000)}) {
    MpiModel model({.seed = 5});
    std::size_t away = 0, short_away = 0;
    model.on_send = [&](const MpiModel::Sent& sent) {
      if (sent.from != 0) return;
      away += sent.size_bytes;
      if (sent.tag == 1) short_away += sent.size_bytes;
    };
    const MpiHandle comm = model.open();
    model.be(0);
    MpiWire sender(model.table(), comm, sizes);
    model.be(1);
    MpiWire receiver(model.table(), comm, sizes);
    Counting at_sender, at_receiver;
    // They all have the same body.
    const auto lent = std::make_shared<Wire::Lent>();
    lent->own = pattern(body_bytes, 1);
    const std::size_t of_short = short_bytes_of(sizes, sizeof(std::uint32_t), body_bytes);
    const std::size_t each = std::max(of_short, frame_bytes + sizeof(std::uint32_t) + body_bytes);
    model.be(0);
    for (std::uint32_t i = 0; i < count; ++i) {
      sender.send(1, std::as_bytes(std::span(&i, 1)), lent->own, lent);
      ASSERT_EQ(sender.waiting_bytes(1) + away, std::size_t(i + 1) * each);
      if (i % 100 == 0) sender.progress(at_sender);
    }
    EXPECT_LE(short_away, sizes.window_bytes);
    EXPECT_EQ(sender.waiting_bytes(0), 0u);
    EXPECT_FALSE(sender.is_idle());
    for (int round = 0; at_receiver.count < count && round < 1'000'000; ++round) {
      model.be(1);
      receiver.progress(at_receiver);
      model.be(0);
      sender.progress(at_sender);
    }
    EXPECT_EQ(at_receiver.count, count);
    EXPECT_TRUE(at_receiver.is_right && at_sender.is_right);
    EXPECT_EQ(sender.waiting_bytes(1), 0u);
    EXPECT_EQ(model.fault(), "");
  }
}

}  // namespace
}  // namespace tranship::test::mpi_wire_test
