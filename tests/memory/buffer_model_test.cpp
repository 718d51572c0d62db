// Sequences of operations on buffers against an oracle of cells (buffer_oracle.hpp): all short ones, then random long
// ones, with devices that work at once and as late as they may.
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <unordered_set>
#include <utility>

#include <gtest/gtest.h>

#include "memory/buffer_oracle.hpp"
#include "memory/device_kinds.hpp"
#include "support/random_layouts.hpp"

namespace tranship::test {
namespace {

using Random = std::mt19937_64;

struct Setting {
  FakeTiming timing = FakeTiming::eager;
  std::uint64_t seed = 0;  ///< of the order in which devices work
  Checks checks = Checks::none;
  Residency residency = Residency::release;
  std::int64_t delay_ns = 0;
};
DevicesOptions devices_of(const Setting& setting) {
  if (model_kind == DeviceKind::cuda) return options_of(DeviceCase::card);
  return {
      .kinds = {FakeDevices{
          .count = memory_count - 1, .timing = setting.timing, .seed = setting.seed, .delay_ns = setting.delay_ns}}};
}
/// While it lives, the devices of trials are on a card.
struct OnCard {
  OnCard() { model_kind = DeviceKind::cuda; }
  ~OnCard() { model_kind = DeviceKind::fake; }
};

std::string text_of(const Setting& setting) {
  return "timing " + std::to_string(int(setting.timing)) + ", seed " + std::to_string(setting.seed) + ", checks " +
         std::to_string(int(setting.checks)) + ", residency " + std::to_string(int(setting.residency));
}

/// The buffers themselves, beside the oracle. Every operation is compared with what the oracle says of it: whether it
/// is refused, what it copies, what was predicted, and what the memories hold then.
class Trial {
 public:
  explicit Trial(const Setting& setting)
      : random_(unsigned(setting.seed)), devices_(devices_of(setting)), oracle_(setting.residency) {
    for (int memory = 0; memory < memory_count; ++memory) streams_.push_back(devices_.make_stream(device_of(memory)));
    buffers_[0].emplace(ElementType::u64, Indices{cell_count},
                        BufferOptions{.residency = setting.residency, .checks = setting.checks, .devices = &devices_});
  }
  ~Trial() {
    while (!scopes_.empty()) scopes_.pop_back();
  }

  /// Does it, and compares all that there is to compare.
  void step(const Op& op) {
    const Index between = between_bytes(), within = within_bytes();
    const std::array versions = {version_of(0), version_of(1)};
    const std::optional<Index> predicted = predicted_bytes(op);
    const std::optional<BufferOracle::Outcome> outcome = replay(op);
    if (is_predictable(op)) {
      EXPECT_EQ(predicted, outcome ? std::optional(outcome->between_bytes + outcome->within_bytes) : std::nullopt)
          << "predicted";
    }
    EXPECT_EQ(between_bytes() - between, outcome ? outcome->between_bytes : 0) << "between memories";
    EXPECT_EQ(within_bytes() - within, outcome ? outcome->within_bytes : 0) << "within a memory";
    for (int number = 0; number < buffer_count; ++number) {
      const std::optional<Buffer>& buffer = buffers_[std::size_t(number)];
      ASSERT_EQ(buffer.has_value(), oracle_.state(number).has_handle);
      if (!buffer) continue;
      expect_state(*buffer, oracle_.state(number));
      const bool has_changed = outcome && outcome->has_changed[std::size_t(number)];
      if (op.act != Act::duplicate) {
        EXPECT_EQ(version_of(number) != versions[std::size_t(number)], has_changed) << "version";
      }
    }
  }

  /// Does it, and compares only whether it is refused. Returns what the oracle says.
  std::optional<BufferOracle::Outcome> replay(const Op& op) {
    const Value operand = oracle_.operand();
    const Values expected = expected_of(op);
    const std::optional<BufferOracle::Outcome> outcome = oracle_.step(op);
    try {
      act(op, operand, expected);
      EXPECT_TRUE(outcome) << text_of(op) << " must be refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      EXPECT_FALSE(outcome) << error.message();
    }
    devices_.steps(int(random_() % 4));
    return outcome;
  }

  /// Ends all that is open, then looks at every buffer in every memory, and at what leases have read.
  void end() {
    for (int slot = 0; slot < lease_count; ++slot)
      if (oracle_.lease(slot)) replay({.act = Act::close, .slot = slot});
    while (!oracle_.scopes().empty()) replay({.act = Act::leave});
    const int first = int(random_() % memory_count);
    for (int buffer = 0; buffer < buffer_count; ++buffer)
      for (int i = 0; i < memory_count; ++i) {
        const Op read{.act = Act::use, .buffer = buffer, .memory = (first + i) % memory_count};
        if (oracle_.is_possible(read)) replay(read);
      }
    for (int memory = 0; memory < memory_count; ++memory)
      for (Stream* stream : {&devices_.stream(device_of(memory)), streams_[std::size_t(memory)].get()})
        finish(stream->event(), Deadline::after_seconds(10));
    for (const Reading& reading : readings_) EXPECT_EQ(reading.seen, reading.expected) << text_of(reading.op);
  }

 private:
  using Values = std::array<Value, cell_count>;
  struct Reading {
    Op op;
    Values expected{}, seen{};
  };
  struct Held {
    Lease lease;
    Op op;
  };

  Buffer& buffer(const Op& op) { return *buffers_[std::size_t(op.buffer)]; }
  Index within_bytes() const { return devices_.ledger().sums(Cause::duplicate).bytes; }
  Index between_bytes() const { return devices_.ledger().sums().bytes - within_bytes(); }

  /// The values that a reader sees now.
  Values expected_of(const Op& op) const {
    const Op& access = op.act == Act::close || op.act == Act::abandon ? oracle_.lease(op.slot)->op : op;
    Values out{};
    for (int i = access.lower; i < access.upper; ++i)
      out[std::size_t(i)] = oracle_.state(access.buffer).cells[std::size_t(i)].value;
    return out;
  }

  Access access_of(const Op& op) const {
    Access access;
    // What the scope says need not be named.
    if (scopes_.empty() || current_device() != device_of(op.memory)) access.device = device_of(op.memory);
    if (op.lower > 0 || op.upper < cell_count) access.region = Region::interval(op.lower, op.upper);
    // Leases that are kept work on a stream of their own.
    if (op.act == Act::open) access.stream = streams_[std::size_t(op.memory)].get();
    return access;
  }

  Lease open(const Op& op) {
    const Access access = access_of(op);
    switch (op.intent) {
      case Intent::read:
        return buffer(op).read(access);
      case Intent::write:
        return buffer(op).write(access);
      case Intent::read_write:
        return buffer(op).read_write(access);
      case Intent::accumulate:
        break;
    }
    return buffer(op).accumulate(op.combine, access);
  }

  void use(const Lease& lease, const Op& op, Value operand, const Values& expected) {
    if (op.intent == Intent::read) {
      Reading& reading = readings_.emplace_back(Reading{op, expected});
      run_kernel<const Value>(lease, op.lower, op.upper, [op, &seen = reading.seen](const Value* data) {
        std::copy(data + op.lower, data + op.upper, seen.begin() + op.lower);
      });
    } else {
      run_kernel<Value>(lease, op.lower, op.upper, [op, operand](Value* data) {
        for (int i = op.lower; i < op.upper; ++i) data[i] = changed(op.intent, op.combine, data[i], operand + Value(i));
      });
    }
  }

  void act(const Op& op, Value operand, const Values& expected) {
    switch (op.act) {
      case Act::use:
        return use(open(op), op, operand, expected);
      case Act::open: {
        Lease lease = open(op);
        use(lease, op, operand, expected);
        auto free = std::find_if(held_.begin(), held_.end(), [](const auto& held) { return !held; });
        free->emplace(Held{std::move(lease), op});
        return;
      }
      case Act::close:
      case Act::abandon: {
        std::optional<Held>& held = held_[std::size_t(op.slot)];
        use(held->lease, held->op, operand, expected);
        if (op.act == Act::abandon) held->lease.abandon();
        held.reset();
        return;
      }
      case Act::prefetch:
        return buffer(op).prefetch(access_of(op));
      case Act::evict:
        return buffer(op).evict(device_of(op.memory));
      case Act::drop:
        return buffer(op).drop(device_of(op.memory));
      case Act::invalidate:
        return buffer(op).invalidate(Region::interval(op.lower, op.upper));
      case Act::duplicate:
        buffers_[std::size_t(1 - op.buffer)] = buffer(op).duplicate();
        return;
      case Act::freeze:
        return buffer(op).freeze();
      case Act::forget:
        return buffers_[std::size_t(op.buffer)].reset();
      case Act::enter:
        scopes_.push_back(std::make_unique<Offload>(device_of(op.memory)));
        return;
      case Act::leave:
        return scopes_.pop_back();
    }
  }

  /// predict() cannot be told how to combine.
  static bool is_predictable(const Op& op) {
    return (op.act == Act::use || op.act == Act::open || op.act == Act::prefetch) && op.intent != Intent::accumulate;
  }
  /// Empty for what is refused.
  std::optional<Index> predicted_bytes(const Op& op) {
    if (!is_predictable(op)) return std::nullopt;
    try {
      Index bytes = 0;
      for (const CopyRecord& copy : buffer(op).predict(op.intent, access_of(op))) bytes += copy.bytes;
      return bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      return std::nullopt;
    }
  }

  std::uint64_t version_of(int number) const {
    const std::optional<Buffer>& buffer = buffers_[std::size_t(number)];
    return buffer ? buffer->version() : 0;
  }

  void expect_state(const Buffer& buffer, const BufferOracle::State& state) {
    EXPECT_EQ(buffer.is_frozen(), state.is_frozen);
    for (int memory = 0; memory < memory_count; ++memory) {
      const Device device = device_of(memory);
      std::vector<Box> valid;
      for (int i = 0; i < cell_count; ++i)
        if (state.cells[std::size_t(i)].is_valid(memory) && state.cells[std::size_t(i)].partial == 0)
          valid.push_back({{i}, {i + 1}});
      const Region real = buffer.valid(device);
      EXPECT_TRUE(real == Region::boxes(valid)) << to_string(device) << " is valid in " << to_string(real);
      EXPECT_EQ(buffer.state(device) == CopyState::unallocated, state.copies[std::size_t(memory)] < 0)
          << to_string(device);
    }
  }

  std::minstd_rand random_;
  Devices devices_;
  BufferOracle oracle_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::deque<Reading> readings_;  // kernels write into them
  std::array<std::optional<Buffer>, buffer_count> buffers_;
  std::array<std::optional<Held>, lease_count> held_;
  std::vector<std::unique_ptr<Offload>> scopes_;
};

/// Returns whether all was right; what comes before operation number `first` has been compared before.
bool try_out(const std::vector<Op>& ops, const Setting& setting, std::size_t first = 0) {
  {
    Trial trial(setting);
    for (std::size_t i = 0; i < ops.size(); ++i) i < first ? void(trial.replay(ops[i])) : trial.step(ops[i]);
    trial.end();
  }
  if (!::testing::Test::HasFailure()) return true;
  std::string text;
  for (const Op& op : ops) text += text_of(op) + "; ";
  ADD_FAILURE() << text << text_of(setting);
  return false;
}

enum class Breadth : std::uint8_t {
  core,
  wide,  ///< also another combination, writes that are kept open, prefetches, and values that are elsewhere
};

std::vector<Op> alphabet(Breadth breadth) {
  std::vector<Op> ops;
  for (int buffer = 0; buffer < buffer_count; ++buffer) {
    for (int memory = 0; memory < memory_count; ++memory) {
      const auto add = [&](Act act, Intent intent = Intent::read, int upper = cell_count,
                           Combine combine = Combine::sum) {
        ops.push_back({act, buffer, memory, intent, combine, 0, upper});
      };
      add(Act::use, Intent::read);
      add(Act::use, Intent::write);
      add(Act::use, Intent::write, 2);
      add(Act::use, Intent::accumulate);
      add(Act::open, Intent::read);
      add(Act::open, Intent::accumulate);
      add(Act::evict);
      add(Act::drop);
      if (breadth == Breadth::core) continue;
      add(Act::use, Intent::accumulate, 2, Combine::product);
      add(Act::open, Intent::write, 2);
      add(Act::prefetch, Intent::read, 2);
    }
    if (breadth == Breadth::wide) ops.push_back({.act = Act::invalidate, .buffer = buffer, .upper = 2});
    for (const Act act : {Act::duplicate, Act::freeze, Act::forget}) ops.push_back({.act = act, .buffer = buffer});
  }
  for (int slot = 0; slot < lease_count; ++slot) ops.push_back({.act = Act::close, .slot = slot});
  for (int memory = 0; memory < memory_count; ++memory) ops.push_back({.act = Act::enter, .memory = memory});
  ops.push_back({.act = Act::leave});
  return ops;
}

bool is_long() {
  return std::getenv("TRANSHIP_TEST_LONG") != nullptr;
}

/// A state of the oracle and a shortest way to it.
struct Node {
  BufferOracle oracle;
  std::vector<Op> way;
  Node then(const Op& op) const {
    Node next = *this;
    next.way.push_back(op);
    return next;
  }
};

using Keys = std::unordered_set<std::string>;

/// Tries all sequences up to a length, of which those stand for others that end in the same state of the oracle: each
/// state is left by every operation once, after a shortest way to it. What is refused must change nothing, so all that
/// is refused in a state is tried there one after the other. While both fake devices are in the same state, what is
/// done on the first stands for the same on the second. Returns the states.
///
/// This takes for granted that nothing else matters: neither how a state was reached nor which device, buffer or slot
/// is which. every_sequence() takes nothing for granted.
Keys explore(const std::vector<Op>& ops, int length_max, Setting setting) {
  std::vector<Node> level{{BufferOracle(setting.residency), {}}};
  Keys keys{level[0].oracle.key()};
  std::uint64_t tried = 0, refused_count = 0;
  for (int length = 1; length <= length_max; ++length) {
    std::vector<Node> next_level;
    for (const Node& node : level) {
      const bool is_symmetric = node.oracle.is_symmetric();
      Node refused = node;
      for (const Op& op : ops) {
        if (!node.oracle.is_possible(op) || (is_symmetric && op.memory == memory_count - 1)) continue;
        Node next = node.then(op);
        if (!next.oracle.step(op)) {
          refused.way.push_back(op);
          ++refused_count;
          continue;
        }
        setting.seed = ++tried;
        if (!try_out(next.way, setting, node.way.size())) return keys;
        if (keys.insert(next.oracle.key()).second) next_level.push_back(std::move(next));
      }
      if (refused.way.size() > node.way.size() && !try_out(refused.way, setting, node.way.size())) return keys;
    }
    level = std::move(next_level);
  }
  std::cout << tried << " sequences up to length " << length_max << " of " << ops.size() << " operations, "
            << refused_count << " refusals, " << keys.size() << " states\n";
  return keys;
}

/// Tries all sequences of a length, without exception; adds the states that they pass.
void every_sequence(const std::vector<Op>& ops, const Node& node, int length, Setting& setting, Keys& keys) {
  keys.insert(node.oracle.key());
  if (length == 0) {
    ++setting.seed;
    try_out(node.way, setting);
    return;
  }
  for (const Op& op : ops) {
    if (!node.oracle.is_possible(op)) continue;
    Node next = node.then(op);
    next.oracle.step(op);
    every_sequence(ops, next, length - 1, setting, keys);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(BufferModel, all_short_sequences_are_right) {
  const std::vector<Op> wide = alphabet(Breadth::wide);
  explore(wide, is_long() ? 5 : 3, {.timing = FakeTiming::deferred});
  explore(wide, is_long() ? 4 : 3, {.timing = FakeTiming::eager});
}

TEST(BufferModel, all_short_sequences_are_right_on_threads) {
  explore(alphabet(Breadth::wide), is_long() ? 3 : 2, {.timing = FakeTiming::threaded});
}

TEST(BufferModel, all_short_sequences_are_right_on_a_card) {
  if (const std::string why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
  const OnCard on;
  explore(alphabet(Breadth::wide), 2, {});
}

TEST(BufferModel, all_sequences_of_six_operations_are_right) {
  if (!is_long()) GTEST_SKIP() << "takes minutes: TRANSHIP_TEST_LONG=1";
  explore(alphabet(Breadth::core), 6, {.timing = FakeTiming::deferred});
}

/// Any operation, but those that end a buffer's life or its changes are rare.
Op random_op(Random& random) {
  const auto below = [&](int bound) { return int(random() % std::uint64_t(bound)); };
  Op op{.act = Act(below(int(Act::leave) + 1)),
        .buffer = below(buffer_count),
        .memory = below(memory_count),
        .intent = Intent(below(4)),
        .combine = Combine(below(8) == 0 ? below(4) : 0),
        .slot = below(lease_count)};
  const bool is_rare =
      op.act == Act::freeze || op.act == Act::forget || op.act == Act::invalidate || op.act == Act::abandon;
  if (is_rare && below(6) != 0) op.act = Act::use;
  if (op.act == Act::prefetch) op.intent = Intent::read;
  if (below(2) != 0) {
    op.lower = below(cell_count);
    op.upper = op.lower + 1 + below(cell_count - op.lower);
  }
  return op;
}

void random_long_sequences(Index count) {
  const char* seed_given = std::getenv("TRANSHIP_TEST_SEED");
  for (Index i = 0; i < count; ++i) {
    Setting setting{.seed = seed_given ? std::strtoull(seed_given, nullptr, 10) : std::uint64_t(i)};
    Random random(setting.seed);
    const Checks checks[] = {Checks::none, Checks::none, Checks::poison, Checks::checksums, Checks::guard};
    setting.checks = checks[random() % 5];
    setting.residency = random() % 2 ? Residency::keep : Residency::release;
    setting.timing = random() % 4 == 0 ? FakeTiming::eager : FakeTiming::deferred;
    if (random() % 20 == 0) {
      setting.timing = FakeTiming::threaded;
      setting.delay_ns = std::int64_t(random() % 2) * 20'000;
    }
    std::vector<Op> ops;
    BufferOracle oracle(setting.residency);
    while (ops.size() < 40) {
      const Op op = random_op(random);
      if (!oracle.is_possible(op)) continue;
      oracle.step(op);
      ops.push_back(op);
      if (!oracle.is_alive(0) && !oracle.is_alive(1)) break;
    }
    if (!try_out(ops, setting) || seed_given) return;
  }
}

TEST(BufferModel, random_long_sequences_are_right) {
  random_long_sequences(test::test_cases() * 2 / 3);
}

TEST(BufferModel, random_long_sequences_are_right_on_a_card) {
  if (const std::string why = why_no_card(); !why.empty()) GTEST_SKIP() << why;
  const OnCard on;
  random_long_sequences(test::test_cases());
}

TEST(BufferModel, sequences_that_stand_for_others_reach_the_same_states) {
  const std::vector<Op> ops = alphabet(Breadth::wide);
  const int length = is_long() ? 3 : 2;
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred}) {
    Setting setting{.timing = timing};
    Keys keys;
    every_sequence(ops, {BufferOracle(setting.residency), {}}, length, setting, keys);
    std::cout << setting.seed << " sequences of length " << length << ", " << keys.size() << " states\n";
    EXPECT_EQ(keys, explore(ops, length, setting));
  }
}

}  // namespace
}  // namespace tranship::test
