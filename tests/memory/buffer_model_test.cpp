// Sequences of accesses against an oracle that knows, cell by cell, which value it has and which memories hold it: all
// short sequences, then random long ones, with devices that work at once and as late as they may.
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <tranship/memory/buffer.hpp>

namespace tranship {
namespace {

using Random = std::mt19937_64;
using Value = std::int64_t;

constexpr int cell_count = 4;
constexpr int memory_count = 3;  // the host and two fake devices

Device device_of(int memory) {
  return memory == 0 ? Device::host() : Device::fake(memory - 1);
}

struct Cell {
  Value value = 0;
  bool written = false;
  std::set<int> valid;
  std::set<int> partial;
};

enum class Act { read, write, read_write, add, prefetch, evict, drop, duplicate, freeze, enter, leave, handle_dies };

struct Op {
  Act act;
  int memory = 0;
  int lower = 0;
  int upper = cell_count;
};

std::string text_of(const Op& op) {
  static const char* const names[] = {"read", "write",     "read_write", "add",   "prefetch", "evict",
                                      "drop", "duplicate", "freeze",     "enter", "leave",    "handle_dies"};
  std::ostringstream out;
  out << names[int(op.act)] << " " << to_string(device_of(op.memory)) << " [" << op.lower << "," << op.upper << ")";
  return out.str();
}

/// One buffer and what is known of it.
struct Tracked {
  Buffer buffer;
  std::vector<Cell> cells = std::vector<Cell>(cell_count);
  bool frozen = false;
};

class Model {
 public:
  Model(FakeTiming timing, std::uint64_t seed, Checks checks)
      : devices_({.fake = {.count = memory_count - 1, .timing = timing, .seed = seed}}), random_(seed) {
    all_.push_back({Buffer(ElementType::i64, {cell_count}, {.checks = checks, .devices = &devices_})});
  }

  void run(const Op& op) {
    Tracked& t = all_.back();
    switch (op.act) {
      case Act::read:
        return read(t, op);
      case Act::write:
      case Act::read_write:
      case Act::add:
        return change(t, op);
      case Act::prefetch: {
        const std::int64_t expected = copies_of_read(t, op);
        const Index before = bytes();
        t.buffer.prefetch({.device = device_of(op.memory), .region = region_of(op)});
        if (!unknown_) {
          EXPECT_EQ(bytes() - before, expected);
        }
        return after_read(t, op);
      }
      case Act::evict:
      case Act::drop:
        return give_back(t, op);
      case Act::duplicate: {
        // The buffer lives on beside its duplicate, and is looked at when all is done. From now on the oracle knows the
        // values only: what a shared copy still holds depends on who has written first.
        Tracked copy{t.buffer.duplicate(), t.cells};
        all_.push_back(std::move(copy));
        unknown_ = true;
        return;
      }
      case Act::freeze:
        t.buffer.freeze();
        t.frozen = true;
        return;
      case Act::enter:
        scopes_.push_back(std::make_unique<Offload>(device_of(op.memory)));
        return;
      case Act::leave:
        if (!scopes_.empty()) scopes_.pop_back();
        return;
      case Act::handle_dies: {
        // A lease outlives every handle.
        std::optional<Buffer> doomed = t.buffer.duplicate();
        Lease lease = doomed->read({.device = Device::host()});
        doomed.reset();
        EXPECT_EQ(lease.data<const Value>()[0], t.cells[0].value);
        unknown_ = true;
        return;
      }
    }
  }

  /// Every buffer has the values that it should have, in every memory.
  void check_all() {
    while (!scopes_.empty()) scopes_.pop_back();
    for (Tracked& t : all_) {
      for (int memory = 0; memory < memory_count; ++memory) {
        std::vector<Value> seen(cell_count);
        {
          const Lease lease = t.buffer.read({.device = device_of(memory)});
          const Value* data = lease.data<const Value>();
          run_on(lease.stream(), [data, &seen] { std::copy_n(data, cell_count, seen.begin()); });
          finish(lease.stream().event(), Deadline::after_seconds(10));
        }
        for (int i = 0; i < cell_count; ++i)
          ASSERT_EQ(seen[i], t.cells[i].value) << "cell " << i << " on " << to_string(device_of(memory));
      }
    }
    for (const auto& check : checks_) ASSERT_EQ(check->seen, check->expected) << check->what;
  }

 private:
  struct Check {
    std::vector<Value> seen, expected;
    std::string what;
  };

  static Region region_of(const Op& op) { return Region::interval(op.lower, op.upper); }
  Index bytes() const { return devices_.ledger().sums().bytes - within(); }
  /// What duplicates copy within a memory depends on who still holds it.
  Index within() const { return devices_.ledger().sums(Cause::duplicate).bytes; }

  std::int64_t copies_of_read(const Tracked& t, const Op& op) const {
    std::int64_t copies = 0;
    for (int i = op.lower; i < op.upper; ++i) {
      const Cell& cell = t.cells[i];
      if (!cell.written && cell.valid.empty()) continue;  // zeros are made where they are wanted
      copies += cell.valid.count(op.memory) == 0;
      for (const int memory : cell.partial) copies += memory != op.memory;
    }
    return copies * Index(sizeof(Value));
  }
  static void after_read(Tracked& t, const Op& op) {
    for (int i = op.lower; i < op.upper; ++i) {
      Cell& cell = t.cells[i];
      if (!cell.partial.empty()) cell.valid.clear();
      cell.partial.clear();
      cell.valid.insert(op.memory);
    }
  }

  void read(Tracked& t, const Op& op) {
    const std::int64_t expected = copies_of_read(t, op);
    std::int64_t predicted = 0;
    const Access access{.device = device_of(op.memory), .region = region_of(op)};
    for (const CopyRecord& copy : t.buffer.predict(Intent::read, access)) predicted += copy.bytes;
    const Index before = bytes();
    auto check = std::make_shared<Check>();
    check->what = text_of(op);
    for (int i = op.lower; i < op.upper; ++i) check->expected.push_back(t.cells[i].value);
    const Lease lease = t.buffer.read(access);
    if (!unknown_) {
      EXPECT_EQ(bytes() - before, expected);
      EXPECT_EQ(predicted, expected);
      EXPECT_EQ(t.buffer.state(device_of(op.memory), region_of(op)), CopyState::valid);
    }
    const Value* data = lease.data<const Value>();
    run_on(lease.stream(), [data, check, op] { check->seen.assign(data + op.lower, data + op.upper); });
    checks_.push_back(check);
    after_read(t, op);
    steps();
  }

  void change(Tracked& t, const Op& op) {
    const Access access{.device = device_of(op.memory), .region = region_of(op)};
    const auto open = [&] {
      return op.act == Act::write        ? t.buffer.write(access)
             : op.act == Act::read_write ? t.buffer.read_write(access)
                                         : t.buffer.accumulate(Combine::sum, access);
    };
    if (t.frozen) {
      EXPECT_THROW(open(), Error);
      return;
    }
    const std::int64_t expected = op.act == Act::read_write ? copies_of_read(t, op) : 0;
    const Index before = bytes();
    Lease lease = open();
    if (!unknown_) {
      EXPECT_EQ(bytes() - before, expected) << text_of(op);
    }
    auto* data = lease.data<Value>();
    const Value by = ++last_value_ * 100;
    for (int i = op.lower; i < op.upper; ++i) {
      Cell& cell = t.cells[i];
      const bool is_first = !cell.written && cell.valid.empty();
      if (op.act == Act::write)
        cell.value = by + i;
      else
        cell.value += by + i;
      if (op.act == Act::add && !is_first && cell.valid.count(op.memory) == 0) {
        cell.partial.insert(op.memory);
      } else {
        if (op.act != Act::add) cell.partial.clear();
        cell.valid = {op.memory};
      }
      cell.written = true;
    }
    run_on(lease.stream(), [data, op, by] {
      for (int i = op.lower; i < op.upper; ++i) data[i] = (op.act == Act::write ? 0 : data[i]) + by + i;
    });
    lease.close();
    steps();
  }

  void give_back(Tracked& t, const Op& op) {
    bool is_needed = false;
    for (const Cell& cell : t.cells)
      is_needed |= cell.partial.count(op.memory) > 0 ||
                   (cell.written && cell.valid.size() == 1 && cell.valid.count(op.memory) > 0);
    const auto act = [&] {
      if (op.act == Act::drop)
        t.buffer.drop(device_of(op.memory));
      else
        t.buffer.evict(device_of(op.memory));
    };
    if (unknown_) return;
    if (is_needed && (op.act == Act::drop || op.memory == 0)) {
      EXPECT_THROW(act(), Error) << text_of(op);
      return;
    }
    act();
    EXPECT_EQ(t.buffer.state(device_of(op.memory)), CopyState::unallocated);
    for (Cell& cell : t.cells) {
      const bool moves = cell.partial.count(op.memory) > 0 ||
                         (cell.written && cell.valid.size() == 1 && cell.valid.count(op.memory) > 0);
      if (moves && op.act == Act::evict) {
        if (!cell.partial.empty()) cell.valid.clear();
        cell.partial.clear();
        cell.valid.insert(0);
      }
      cell.valid.erase(op.memory);
      cell.partial.erase(op.memory);
    }
  }

  void steps() { devices_.steps(int(random_() % 4)); }

  Devices devices_;
  Random random_;
  std::vector<Tracked> all_;
  std::vector<std::unique_ptr<Offload>> scopes_;
  std::vector<std::shared_ptr<Check>> checks_;
  Value last_value_ = 0;
  bool unknown_ = false;
};

void expect_right(const std::vector<Op>& ops, FakeTiming timing, std::uint64_t seed, Checks checks = Checks::none) {
  std::string text;
  for (const Op& op : ops) text += text_of(op) + "; ";
  SCOPED_TRACE(text + "timing " + std::to_string(int(timing)) + ", seed " + std::to_string(seed) + ", checks " +
               std::to_string(int(checks)));
  Model model(timing, seed, checks);
  for (const Op& op : ops) model.run(op);
  model.check_all();
}

std::vector<Op> alphabet() {
  std::vector<Op> ops;
  for (int memory = 0; memory < memory_count; ++memory) {
    ops.push_back({Act::read, memory});
    ops.push_back({Act::write, memory});
    ops.push_back({Act::write, memory, 0, cell_count / 2});
    ops.push_back({Act::add, memory});
    if (memory > 0) ops.push_back({Act::evict, memory});
  }
  ops.push_back({Act::read_write, 1, 1, cell_count});
  ops.push_back({Act::read, 2, 1, 3});
  ops.push_back({Act::drop, 0});
  ops.push_back({Act::duplicate});
  ops.push_back({Act::freeze});
  ops.push_back({Act::handle_dies});
  return ops;
}

bool is_long() {
  return std::getenv("TRANSHIP_TEST_LONG") != nullptr;
}

TEST(BufferModel, all_short_sequences_are_right) {
  const std::vector<Op> ops = alphabet();
  const int length_max = is_long() ? 4 : 3;
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred})
    for (int length = 1; length <= length_max; ++length) {
      std::vector<std::size_t> at(std::size_t(length), 0);
      for (;;) {
        std::vector<Op> sequence;
        for (const std::size_t i : at) sequence.push_back(ops[i]);
        expect_right(sequence, timing, 1);
        if (HasFailure()) return;
        int d = length - 1;
        for (; d >= 0 && ++at[std::size_t(d)] == ops.size(); --d) at[std::size_t(d)] = 0;
        if (d < 0) break;
      }
    }
}

TEST(BufferModel, random_long_sequences_are_right) {
  const char* cases = std::getenv("TRANSHIP_TEST_CASES");
  const char* seed_given = std::getenv("TRANSHIP_TEST_SEED");
  const int count = cases ? std::atoi(cases) : 2000;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = seed_given ? std::strtoull(seed_given, nullptr, 10) : std::uint64_t(i);
    Random random(seed);
    std::vector<Op> ops;
    for (int k = 0; k < 20; ++k) {
      Op op{Act(random() % 12), int(random() % memory_count)};
      // What ends most of the fun is rare.
      if ((op.act == Act::freeze || op.act == Act::handle_dies) && random() % 8 != 0) op.act = Act::add;
      op.lower = int(random() % cell_count);
      op.upper = op.lower + 1 + int(random() % std::uint64_t(cell_count - op.lower));
      ops.push_back(op);
    }
    const Checks checks[] = {Checks::none, Checks::none, Checks::poison, Checks::checksums, Checks::guard};
    expect_right(ops, random() % 2 ? FakeTiming::deferred : FakeTiming::eager, seed, checks[random() % 5]);
    if (HasFailure() || seed_given) return;
  }
}

}  // namespace
}  // namespace tranship
