// What the back-end for cards promises beyond the contracts of streams and buffers: every shape, type and kind of
// memory against the host's loops, order, and named errors. Without a card the tests are skipped.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <support/random_layouts.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/kernels/copy_block.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/host_device.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "cuda/contract/calls.hpp"
#include "memory/device_kinds.hpp"

namespace tranship {
namespace {

using test::Random;

constexpr Device card = Device::cuda(0);

Deadline soon() {
  return Deadline::after_seconds(30);
}

class Cards : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_card(); !why.empty()) GTEST_SKIP() << why;
    devices.emplace(DevicesOptions{.kinds = {CudaDevices{.cards = {0}}}});
    stream = devices->make_stream(card);
  }
  Driver& driver() { return devices->driver(devices->memory_of(card)); }
  std::optional<Devices> devices;
  std::unique_ptr<Stream> stream;
};

enum class Where { card, pinned, pageable };

/// Bytes in one of the kinds of memory.
class Bytes {
 public:
  Bytes(Driver& driver, Where where, std::size_t size) : driver_(driver), where_(where), size_(size) {
    data_ = static_cast<std::byte*>(where == Where::card     ? driver.allocate(size)
                                    : where == Where::pinned ? driver.allocate_pinned(size)
                                                             : allocate_on_host(size));
  }
  ~Bytes() {
    if (where_ == Where::card) driver_.deallocate(data_, size_);
    if (where_ == Where::pinned) driver_.deallocate_pinned(data_, size_);
    if (where_ == Where::pageable) free_on_host(data_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::byte* data() const { return data_; }

 private:
  Driver& driver_;
  Where where_;
  std::size_t size_;
  std::byte* data_;
};

std::vector<std::byte> random_bytes(Random& random, std::size_t size) {
  std::vector<std::byte> out(size);
  for (auto& byte : out) byte = std::byte(random.bits());
  return out;
}

struct RandomBlock {
  CopyBlock block;
  long long source_offset = 0, target_offset = 0;  // of the first elements
  long long source_bytes = 0, target_bytes = 0;    // that it reaches over
};

/// Strides are whole elements, or any number of bytes. The dimensions come in different orders on both sides.
RandomBlock random_block(Random& random, int width, bool is_aligned, long long elements_max) {
  RandomBlock made;
  CopyBlock& block = made.block;
  block.dims = int(random.below(4));
  long long left = elements_max;
  for (int d = 0; d < block.dims; ++d) {
    block.extents[d] = 1 + (long long)(random.below(std::uint64_t(std::min(left, 1LL + (long long)random.below(90)))));
    left = std::max(1LL, left / block.extents[d]);
  }
  const auto place = [&](long long* strides, long long& offset, long long& bytes) {
    std::vector<int> order;
    for (int d = 0; d < block.dims; ++d) order.insert(order.begin() + (long long)random.below(order.size() + 1), d);
    long long reach = width;
    offset = 0;
    for (const int d : order) {
      long long gap = random.one_in(2) ? 0 : (long long)random.below(3) * width;
      if (!is_aligned && random.one_in(3)) gap += (long long)random.below(7);
      strides[d] = reach + gap;
      reach += (block.extents[d] - 1) * strides[d];
      if (random.one_in(4)) {
        offset += (block.extents[d] - 1) * strides[d];
        strides[d] = -strides[d];
      }
    }
    bytes = reach;
    if (!is_aligned) offset += (long long)random.below(16), bytes += 16;
  };
  place(block.source_strides, made.source_offset, made.source_bytes);
  place(block.target_strides, made.target_offset, made.target_bytes);
  return made;
}

TEST_F(Cards, copies_of_every_shape_between_all_kinds_of_memory_are_those_of_the_host) {
  const std::string fault = test::first_fault(0.15, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    const int count = random.one_in(4) ? 40 : 1 + int(random.below(6));
    const Where from = Where(random.below(3)), to = Where(random.below(3));
    std::vector<StreamCopy> copies, expected_copies;
    std::vector<RandomBlock> blocks;
    std::vector<int> widths;
    long long source_bytes = 0, target_bytes = 0;
    for (int i = 0; i < count; ++i) {
      widths.push_back(1 << random.below(5));
      blocks.push_back(random_block(random, widths.back(), random.one_in(2), random.one_in(5) ? 20'000 : 500));
      source_bytes += blocks.back().source_bytes + 15;
      target_bytes += blocks.back().target_bytes + 15;
    }
    const Bytes source(driver(), from, std::size_t(source_bytes)), target(driver(), to, std::size_t(target_bytes));
    const std::vector<std::byte> given = random_bytes(random, std::size_t(source_bytes));
    std::vector<std::byte> wanted = random_bytes(random, std::size_t(target_bytes));
    stream->copy(row_of(source_bytes, 1), 1, given.data(), source.data());
    stream->copy(row_of(target_bytes, 1), 1, wanted.data(), target.data());
    long long source_at = 0, target_at = 0;
    for (int i = 0; i < count; ++i) {
      const RandomBlock& one = blocks[std::size_t(i)];
      copies.push_back({one.block, widths[std::size_t(i)], source.data() + source_at + one.source_offset,
                        target.data() + target_at + one.target_offset});
      finish(stream->event(), soon());  // the host's copy is taken
      copy_on_host(one.block, widths[std::size_t(i)], given.data() + source_at + one.source_offset,
                   wanted.data() + target_at + one.target_offset);
      source_at += (one.source_bytes + 15) / 16 * 16;
      target_at += (one.target_bytes + 15) / 16 * 16;
      source_at = std::min(source_at, source_bytes);
      target_at = std::min(target_at, target_bytes);
    }
    stream->copy_list(copies);
    std::vector<std::byte> got(std::size_t(target_bytes), std::byte(0xee));
    stream->copy(row_of(target_bytes, 1), 1, target.data(), got.data());
    finish(stream->event(), soon());
    const auto wrong = std::mismatch(got.begin(), got.end(), wanted.begin()).first;
    return wrong == got.end()
               ? std::string()
               : "byte " + std::to_string(wrong - got.begin()) + " of a list of " + std::to_string(count) +
                     " from kind " + std::to_string(int(from)) + " to kind " + std::to_string(int(to));
  });
  EXPECT_EQ(fault, "");
}

TEST_F(Cards, fills_of_every_width_are_those_of_the_host) {
  const std::string fault = test::first_fault(0.1, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    const int width = 1 << random.below(5);
    const RandomBlock made = random_block(random, width, random.one_in(2), random.one_in(5) ? 20'000 : 500);
    const auto bytes = std::size_t(made.target_bytes);
    const Bytes target(driver(), Where(random.below(3)), bytes);
    std::vector<std::byte> wanted = random_bytes(random, bytes), element = random_bytes(random, 16);
    stream->copy(row_of(made.target_bytes, 1), 1, wanted.data(), target.data());
    finish(stream->event(), soon());
    const void* const value = random.one_in(4) ? nullptr : element.data();
    stream->fill(made.block, width, value, target.data() + made.target_offset);
    fill_on_host(made.block, width, value, wanted.data() + made.target_offset);
    std::vector<std::byte> got(bytes);
    stream->copy(row_of(made.target_bytes, 1), 1, target.data(), got.data());
    finish(stream->event(), soon());
    return got == wanted ? "" : "other bytes than the host's, width " + std::to_string(width);
  });
  EXPECT_EQ(fault, "");
}

TEST_F(Cards, combinations_of_every_type_are_those_of_the_host_to_the_bit) {
  constexpr ElementType types[] = {
      ElementType::bool8, ElementType::i8,   ElementType::u8,  ElementType::i16,  ElementType::u16, ElementType::f16,
      ElementType::bf16,  ElementType::i32,  ElementType::u32, ElementType::f32,  ElementType::i64, ElementType::u64,
      ElementType::f64,   ElementType::f128, ElementType::c64, ElementType::c128, ElementType::c256};
  for (const ElementType type : types)
    for (const Combine how : {Combine::sum, Combine::product, Combine::minimum, Combine::maximum}) {
      if (!detail::can_combine(how, type)) continue;
      const std::string fault = test::first_fault(0.02, [&](std::uint64_t seed) -> std::string {
        Random random(seed);
        const int size = size_bytes(type);
        const RandomBlock made = random_block(random, size, random.below(4) != 0, random.one_in(4) ? 20'000 : 300);
        const Where from = random.one_in(4) ? Where::pageable : Where::card;
        const Bytes source(driver(), from, std::size_t(made.source_bytes)),
            target(driver(), random.one_in(8) ? Where::pinned : Where::card, std::size_t(made.target_bytes));
        std::vector<std::byte> given = random_bytes(random, std::size_t(made.source_bytes)),
                               wanted = random_bytes(random, std::size_t(made.target_bytes));
        // The x87 format has bits that are no number.
        if (part_of(type) == ElementType::f128)
          for (std::vector<std::byte>* bytes : {&given, &wanted}) std::fill(bytes->begin(), bytes->end(), std::byte(0));
        stream->copy(row_of(made.source_bytes, 1), 1, given.data(), source.data());
        stream->copy(row_of(made.target_bytes, 1), 1, wanted.data(), target.data());
        finish(stream->event(), soon());
        stream->combine(made.block, how, type, source.data() + made.source_offset, target.data() + made.target_offset);
        detail::combine_block(how, type, made.block, given.data() + made.source_offset,
                              wanted.data() + made.target_offset);
        std::vector<std::byte> got(std::size_t(made.target_bytes));
        stream->copy(row_of(made.target_bytes, 1), 1, target.data(), got.data());
        finish(stream->event(), soon());
        return got == wanted ? "" : "other bytes than the host's";
      });
      EXPECT_EQ(fault, "") << name_of(type) << " " << name_of(how);
    }
}

TEST_F(Cards, large_transposes_and_long_lists_are_right) {
  for (const int width : {1, 2, 4, 8, 16}) {
    const long long rows = 517, columns = 389, bytes = rows * columns * width;
    const Bytes source(driver(), Where::card, std::size_t(bytes)), target(driver(), Where::card, std::size_t(bytes));
    Random random{std::uint64_t(width)};
    const std::vector<std::byte> given = random_bytes(random, std::size_t(bytes));
    const CopyBlock block{.dims = 2,
                          .extents = {rows, columns},
                          .source_strides = {columns * width, width},
                          .target_strides = {width, rows * width}};
    std::vector<std::byte> wanted(given.size()), got(given.size());
    copy_on_host(block, width, given.data(), wanted.data());
    stream->copy(row_of(bytes, 1), 1, given.data(), source.data());
    stream->copy(block, width, source.data(), target.data());
    stream->copy(row_of(bytes, 1), 1, target.data(), got.data());
    finish(stream->event(), soon());
    EXPECT_TRUE(got == wanted) << width;
  }
}

TEST_F(Cards, pageable_memory_is_read_and_written_when_its_turn_comes_and_nobody_waits) {
  const long long bytes = 40ll << 20;  // more than is staged at a time
  std::vector<std::byte> mine(std::size_t(bytes), std::byte(1)), back(std::size_t(bytes), std::byte(2));
  const Bytes there(driver(), Where::card, std::size_t(bytes));
  std::latch gate(1);
  auto other = devices->make_stream(card);
  // Another stream's host function holds none of these up.
  run_on(*stream, [&] { gate.wait(); });
  stream->copy(row_of(bytes, 1), 1, mine.data(), there.data());
  stream->copy(row_of(bytes, 1), 1, there.data(), back.data());
  const Event over = stream->event();
  EXPECT_FALSE(is_over(over));
  std::fill(mine.begin(), mine.end(), std::byte(3));
  EXPECT_EQ(back[7], std::byte(2));
  gate.count_down();
  finish(over, soon());
  EXPECT_TRUE(back == mine);
}

TEST_F(Cards, what_the_native_handle_was_given_counts_from_the_next_point_on) {
  const Event before = stream->event();
  EXPECT_TRUE(is_over(before));
  ASSERT_NE(stream->native_handle(), nullptr);
  const Event after = stream->event();
  EXPECT_GT(after.number, before.number);
  finish(after, soon());
}

TEST_F(Cards, streams_of_one_card_wait_for_each_other_without_the_host) {
  auto other = devices->make_stream(card);
  std::latch gate(1);
  int value = 0;
  run_on(*stream, [&] { gate.wait(), value = 1; });
  other->wait(stream->event());
  run_on(*other, [&] { value += 10; });
  EXPECT_FALSE(is_over(other->event()));
  gate.count_down();
  finish(other->event(), soon());
  EXPECT_EQ(value, 11);
}

TEST_F(Cards, threads_that_share_a_stream_take_turns) {
  constexpr int threads = 4, rounds = 200;
  constexpr std::size_t size = 4096;
  std::latch all_are_here(threads);
  std::array<int, threads> wrong{};
  const auto work = [&](int self) {
    Bytes on_card(driver(), Where::card, size), from(driver(), Where::pageable, size),
        to(driver(), Where::pageable, size);
    all_are_here.arrive_and_wait();
    for (int round = 0; round < rounds; ++round) {
      const auto value = std::byte(round * threads + self);
      std::fill_n(from.data(), size, value);
      stream->copy(row_of(size / 16, 16), 16, from.data(), on_card.data());
      stream->copy(row_of(size / 16, 16), 16, on_card.data(), to.data());
      finish(stream->event(), soon());
      wrong[std::size_t(self)] += int(std::count(to.data(), to.data() + size, value) != std::ptrdiff_t(size));
    }
  };
  std::vector<std::thread> all;
  for (int self = 0; self < threads; ++self) all.emplace_back(work, self);
  for (std::thread& one : all) one.join();
  EXPECT_EQ(wrong, (std::array<int, threads>{}));
}

TEST_F(Cards, registered_memory_is_counted_and_given_back) {
  std::vector<std::byte> mine(1 << 20);
  {
    const auto registration = driver().register_foreign(mine.data(), mine.size());
    ASSERT_NE(registration, nullptr);
    EXPECT_EQ(driver().counts().registered_bytes, 1 << 20);
    EXPECT_EQ(driver().register_foreign(mine.data(), mine.size()), nullptr) << "it is registered already";
  }
  EXPECT_EQ(driver().counts().registered_bytes, 0);
}

TEST_F(Cards, a_full_card_loses_clean_copies_first_and_then_says_so) {
  const std::int64_t whole = 1 << 20;
  Devices small({.kinds = {CudaDevices{.cards = {0}, .capacity_bytes = 5 * whole / 2}}});
  const auto make = [&](const char* name) {
    return Buffer(ElementType::u8, {whole}, {.name = name, .checks = Checks::none, .devices = &small});
  };
  Buffer a = make("a"), b = make("b"), c = make("c");
  for (Buffer* one : {&a, &b, &c}) {
    { const Lease lease = one->write(); }
    const Lease lease = one->read({.device = card});
  }
  EXPECT_EQ(a.state(card), CopyState::unallocated) << "the one that was used longest ago";
  const Lease lease_b = b.read({.device = card}), lease_c = c.read({.device = card});
  const auto refused = attempt([&] { const Lease lease = a.read({.device = card}); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::no_memory);
  for (const char* const part : {"buffer 'a': no room on cuda:0", "the card has ", " free of ", "evict()"})
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
}

TEST_F(Cards, memory_that_was_freed_can_be_had_at_once_by_all_devices_of_the_card) {
  const auto use = [](Devices& of, Index size_mib) {
    Buffer b(ElementType::u8, {size_mib << 20}, {.checks = Checks::none, .devices = &of});
    const Lease lease = b.write({.device = card});
    lease.stream().fill(row_of(64, 1), 1, nullptr, lease.data<std::uint8_t>());
    finish(lease.stream().event(), soon());
  };
  // Software cards have 256 MiB.
  Devices others({.kinds = {CudaDevices{.cards = {0, 0}}}});
  for (const Index size_mib : {120, 150, 200, 130, 250, 140}) {
    use(*devices, size_mib);
    EXPECT_TRUE(attempt([&] { use(others, size_mib + 1); }).ok()) << size_mib;
  }
}

TEST_F(Cards, long_lists_take_no_memory_of_a_full_card) {
  if (driver().capacity_bytes() > std::int64_t(1) << 30) GTEST_SKIP() << "it takes too long to fill this card";
  constexpr int count = 64;
  constexpr long long step = 48, bytes = 24;
  const Bytes source(driver(), Where::card, count * step), target(driver(), Where::card, count * step);
  Random random{7};
  const std::vector<std::byte> given = random_bytes(random, count * step);
  std::vector<std::byte> wanted(given.size(), std::byte(0)), got(given.size());
  std::vector<StreamCopy> copies;
  for (int i = 0; i < count; ++i) {
    copies.push_back({row_of(bytes, 1), 1, source.data() + i * step, target.data() + i * step});
    std::memcpy(wanted.data() + i * step, given.data() + i * step, bytes);
  }
  stream->copy(row_of(count * step, 1), 1, given.data(), source.data());
  stream->fill(row_of(count * step, 1), 1, nullptr, target.data());
  finish(stream->event(), soon());
  std::vector<std::pair<void*, std::size_t>> rest;
  for (std::size_t size = std::size_t(64) << 20; size >= 64; size /= 2)
    while (void* const memory = driver().allocate(size)) rest.emplace_back(memory, size);
  const auto copied = attempt([&] { stream->copy_list(copies); });
  EXPECT_TRUE(copied.ok()) << copied.error().message();
  stream->copy(row_of(count * step, 1), 1, target.data(), got.data());
  finish(stream->event(), soon());
  EXPECT_TRUE(got == wanted);
  for (const auto& [memory, size] : rest) driver().deallocate(memory, size);
}

TEST_F(Cards, a_forked_child_is_told_at_once_that_they_are_not_its_own) {
  Buffer both(ElementType::f64, {100}, {.checks = Checks::none, .devices = &*devices}),
      there(ElementType::f64, {100}, {.name = "there", .checks = Checks::none, .devices = &*devices});
  { const Lease lease = both.write(); }
  { const Lease lease = both.read({.device = card}); }
  { const Lease lease = there.write({.device = card}); }
  std::latch gate(1);
  auto busy = devices->make_stream(card);
  run_on(*busy, [&] { gate.wait(); });
  const Event not_over = busy->event();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int wrong = 0;
    const auto expect = [&](ErrorCode code, auto&& f) {
      const auto done = attempt(f);
      const bool is_told =
          !done.ok() && done.error().code() == code &&
          done.error().message().find("forked process " + std::to_string(getpid())) != std::string::npos;
      if (!is_told) ++wrong, std::fprintf(stderr, "%s\n", done.ok() ? "nothing" : done.error().message().c_str());
    };
    const ErrorCode lost = ErrorCode::device_lost;
    std::vector<std::byte> mine(64);
    expect(lost, [&] { stream->copy(row_of(16, 1), 1, mine.data(), mine.data() + 16); });
    expect(lost, [&] { run_on(*stream, [] {}); });
    expect(lost, [&] { finish(not_over, soon()); });
    expect(lost, [&] { devices->make_stream(card)->fill(row_of(16, 1), 1, nullptr, mine.data()); });
    expect(lost, [&] { (void)both.read({.device = card}); });
    expect(ErrorCode::unsupported, [&] { const Devices more({.kinds = {CudaDevices{.cards = {0}}}}); });
    if (busy->native_handle() || test::why_no_card().empty()) ++wrong;
    // The host's values stay, and what the card alone had is said to be lost.
    if (!attempt([&] { (void)both.read(); }).ok()) ++wrong;
    const auto gone = attempt([&] { (void)there.read(); });
    if (gone.ok() || gone.error().code() != lost) ++wrong;
    stream.reset();
    busy.reset();
    std::_Exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  gate.count_down();
  finish(not_over, soon());
  EXPECT_TRUE(attempt([&] { (void)there.read(); }).ok()) << "the parent goes on";
}

TEST_F(Cards, cards_that_are_not_there_are_refused) {
  for (const int number : {-1, 999}) {
    const auto refused = attempt([&] { const Devices none({.kinds = {CudaDevices{.cards = {number}}}}); });
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid_use);
    EXPECT_NE(refused.error().message().find(std::to_string(number)), std::string::npos);
  }
}

TEST(CardLoss, an_error_that_stays_is_a_lost_device_and_ends_all_waits) {
  if (const std::string why = test::why_no_card(); !why.empty()) GTEST_SKIP() << why;
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto lose = [] {
    Devices devices({.kinds = {CudaDevices{.cards = {0}}}});
    Driver& driver = devices.driver(devices.memory_of(card));
    auto stream = devices.make_stream(card), other = devices.make_stream(card);
    auto* const memory = static_cast<std::byte*>(driver.allocate(4096));
    bool is_given = false;
    const auto failed = attempt([&] {
      test::give_stray_kernel(*stream, driver);
      is_given = true;
      finish(stream->event(), soon());
    });
    if (failed.ok() || failed.error().code() != ErrorCode::device_lost) return 1;
    if (driver.loss().empty() || devices.losses() != 1) return 2;
    if (is_given && !lost_with(stream->event())) return 3;
    const auto next = attempt([&] { other->copy(row_of(16, 1), 1, memory, memory + 64); });
    if (next.ok() || next.error().code() != ErrorCode::device_lost) return 4;
    const auto full = attempt([&] { devices.pool(devices.memory_of(card)).allocate(1 << 20); });
    if (full.ok() || full.error().code() != ErrorCode::device_lost) return 5;
    std::fprintf(stderr, "%s\n", driver.loss().c_str());
    return 0;
  };
  EXPECT_EXIT(std::_Exit(lose()), testing::ExitedWithCode(0), "cuda:0 was lost");
}

/// Is made before the driver starts, so that it is destroyed after the driver has ended.
struct OlderThanTheDriver {
  std::unique_ptr<Devices> devices;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> both, there;
  std::shared_ptr<const PreparedMoves> list;
  std::shared_ptr<void> registration;
  std::vector<std::byte> mine = std::vector<std::byte>(1 << 16);

  void use() {
    devices = std::make_unique<Devices>(DevicesOptions{.kinds = {CudaDevices{.cards = {0}}}});
    stream = devices->make_stream(card);
    both = std::make_unique<Buffer>(ElementType::f64, Indices{100}, BufferOptions{.devices = devices.get()});
    there = std::make_unique<Buffer>(ElementType::f64, Indices{100}, BufferOptions{.devices = devices.get()});
    { const Lease lease = both->write(); }
    { const Lease lease = both->read({.device = card}); }
    { const Lease lease = there->write({.device = card}); }
    std::vector<BlockMove> moves;
    for (int i = 0; i < 100; ++i)
      moves.push_back({.source_offset = 64 * i, .target_base = 1, .target_offset = 64 * i, .block = row_of(5, 1)});
    list = stream->prepare(moves, std::vector{16, 16});
    registration = devices->driver(devices->memory_of(card)).register_foreign(mine.data(), mine.size());
  }
} older_than_the_driver;

TEST(CardLoss, the_end_of_the_process_is_none) {
  if (const std::string why = test::why_no_card(); !why.empty()) GTEST_SKIP() << why;
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT((older_than_the_driver.use(), std::exit(0)), testing::ExitedWithCode(0), "");
}

/// Returns when the loss has been noticed.
void lose_card(Stream& stream, Driver& driver) {
  (void)attempt([&] {
    test::give_stray_kernel(stream, driver);
    finish(stream.event(), soon());
  });
}

/// Two threads, each with a stream that waits for the other one.
void wait_crosswise(Stream& a, Stream& b, int turns) {
  const auto work = [turns](Stream& mine, Stream& other) {
    for (int turn = 0; turn < turns; ++turn) {
      run_on(mine, [] {});
      mine.wait(other.event());
      if (turn % 50 == 0) finish(mine.event(), soon());
    }
  };
  std::thread one(work, std::ref(a), std::ref(b)), two(work, std::ref(b), std::ref(a));
  one.join();
  two.join();
}

TEST(CardLoss, streams_that_wait_for_each_other_go_on_when_another_card_is_lost) {
  if (test::cards_here().count < 2) GTEST_SKIP() << "it needs two cards";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto go_on = [] {
    alarm(60);
    Devices devices({.kinds = {CudaDevices{.cards = {0, 0, 1}}}});
    auto a = devices.make_stream(Device::cuda(0)), b = devices.make_stream(Device::cuda(1)),
         lost = devices.make_stream(Device::cuda(2));
    lose_card(*lost, devices.driver(devices.memory_of(Device::cuda(2))));
    if (devices.losses() != 1) return 1;
    // Each waits for all that the other one waits for.
    std::latch gate(1);
    run_on(*a, [&] { gate.wait(); });
    for (int turn = 0; turn < 40; ++turn) {
      b->wait(a->event());
      run_on(*b, [] {});
      a->wait(b->event());
      run_on(*a, [] {});
    }
    gate.count_down();
    finish(a->event(), soon());
    wait_crosswise(*a, *b, 3000);
    return 0;
  };
  EXPECT_EXIT(std::_Exit(go_on()), testing::ExitedWithCode(0), "");
}

TEST(CardLoss, a_stream_is_lost_with_what_streams_of_its_own_card_wait_for) {
  if (test::cards_here().count < 2) GTEST_SKIP() << "it needs two cards";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end = [] {
    alarm(60);
    Devices devices({.kinds = {CudaDevices{.cards = {0, 1}}}});
    auto last = devices.make_stream(Device::cuda(0)), between = devices.make_stream(Device::cuda(0)),
         held = devices.make_stream(Device::cuda(1)), lost = devices.make_stream(Device::cuda(1));
    void* const memory = devices.driver(devices.memory_of(Device::cuda(0))).allocate(64);
    static std::latch gate(1);  // it outlives what waits for it
    run_on(*held, [] { gate.wait(); });
    // No other function of the host may run while the gate is closed.
    between->wait(held->event());
    between->fill(row_of(64, 1), 1, nullptr, memory);
    last->wait(between->event());
    last->fill(row_of(64, 1), 1, nullptr, memory);
    const Event over = last->event();
    lose_card(*lost, devices.driver(devices.memory_of(Device::cuda(1))));
    const auto waits = attempt([&] { finish(over, soon()); });
    gate.count_down();
    return waits.ok() || waits.error().code() != ErrorCode::device_lost ? 1 : 0;
  };
  EXPECT_EXIT(std::_Exit(end()), testing::ExitedWithCode(0), "");
}

TEST(CardLoss, work_that_goes_on_past_its_wait_for_a_lost_card_is_lost) {
  if (test::cards_here().count < 2) GTEST_SKIP() << "it needs two cards";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end = [](bool by_way_of_another) {
    alarm(60);
    Devices devices({.kinds = {CudaDevices{.cards = {0, 1, 1}}}});
    auto held = devices.make_stream(Device::cuda(0)), lost = devices.make_stream(Device::cuda(0)),
         between = devices.make_stream(Device::cuda(2)), last = devices.make_stream(Device::cuda(1));
    auto* const written =
        static_cast<std::atomic<int>*>(devices.driver(devices.memory_of(Device::cuda(1))).allocate_pinned(4));
    *written = 0;
    static std::latch gate(1);  // it outlives what waits for it
    run_on(*held, [] { gate.wait(); });
    // What comes before the wait is not lost. No function of the host runs while the gate is closed.
    const int one = 1, two = 2;
    last->fill(row_of(1, 4), 4, &one, written);
    const Event before = last->event();
    if (by_way_of_another) {
      between->wait(held->event());
      between->fill(row_of(1, 4), 4, &one, written);
    }
    last->wait((by_way_of_another ? between : held)->event());
    last->fill(row_of(1, 4), 4, &two, written);
    const Event over = last->event();
    // Nobody notices the loss before the other card has gone on.
    (void)attempt([&] { test::give_stray_kernel(*lost, devices.driver(devices.memory_of(Device::cuda(0)))); });
    const auto waits = attempt([&] { finish(over, soon()); });
    if (waits.ok() || waits.error().code() != ErrorCode::device_lost || is_over(over)) return 1;
    if (test::are_software_cards() && *written != 2) return 2;  // later, others may have the memory
    if (!attempt([&] { finish(before, soon()); }).ok()) return 3;
    if (attempt([&] { last->fill(row_of(1, 4), 4, &one, written); }).ok()) return 4;
    auto fresh = devices.make_stream(Device::cuda(1));
    fresh->fill(row_of(1, 4), 4, &one, written);
    if (!attempt([&] { finish(fresh->event(), soon()); }).ok()) return 5;
    gate.count_down();
    return 0;
  };
  for (const bool by_way_of_another : {false, true})
    EXPECT_EXIT(std::_Exit(end(by_way_of_another)), testing::ExitedWithCode(0), "") << by_way_of_another;
}

/// Lets a stream of card 1 wait for card 0, which is then lost, and asks what becomes of memory that the stream uses.
int use_memory_of_lost_work(bool never_runs) {
  alarm(60);
  Devices devices({.kinds = {CudaDevices{.cards = {0, 1}}}, .wait_timeout_ns = 3'000'000'000});
  auto held = devices.make_stream(Device::cuda(0)), lost = devices.make_stream(Device::cuda(0)),
       late = devices.make_stream(Device::cuda(1)), fresh = devices.make_stream(Device::cuda(1));
  Pool& pool = devices.pool(devices.memory_of(Device::cuda(1)));
  auto* const seen = static_cast<int*>(devices.driver(devices.memory_of(Device::cuda(1))).allocate_pinned(4));
  static std::latch gate(1), late_gate(1);  // they outlive what waits for them
  static Event over;
  static std::atomic<bool> was_at_rest = false;
  const PoolBlock block = pool.allocate(4096);
  run_on(*held, [] { gate.wait(); });
  late->wait(held->event());
  run_on(*late, [] {
    late_gate.wait();
    was_at_rest = is_at_rest(over);
  });
  const int seven = 7, nine = 9;
  late->fill(row_of(1, 4), 4, &seven, block.memory);
  over = late->event();
  pool.free(block, {&over, 1});
  lose_card(*lost, devices.driver(devices.memory_of(Device::cuda(0))));
  gate.count_down();
  if (!lost_with(over) || is_at_rest(over)) return 1;
  const auto waits = attempt([&] { finish(over, Deadline::after_ns(100'000'000)); });
  if (waits.ok() || waits.error().code() != ErrorCode::device_lost) return 2;
  const PoolBlock other = pool.allocate(4096);
  if (other.memory == block.memory) return 3;
  late_gate.count_down();
  const auto stops = attempt([&] { settle(over, Deadline::after_seconds(never_runs ? 1 : 20)); });
  if (never_runs) return !stops.ok() && stops.error().code() == ErrorCode::timeout ? 0 : 4;
  if (!stops.ok() || !is_at_rest(over) || was_at_rest) return 5;
  const PoolBlock again = pool.allocate(4096);
  fresh->fill(row_of(1, 4), 4, &nine, again.memory);
  fresh->copy(row_of(1, 4), 4, again.memory, seen);
  finish(fresh->event(), soon());
  return again.memory == block.memory && *seen == 9 ? 0 : 6;
}

bool are_stuck_cards() {
  const char* const setting = std::getenv("TRANSHIP_CUDA");
  return setting && std::string_view(setting).find(":stuck") != std::string_view::npos;
}

TEST(CardLoss, memory_of_lost_work_is_used_again_when_that_work_has_stopped) {
  if (test::cards_here().count < 2 || !test::are_software_cards()) GTEST_SKIP() << "it needs two software cards";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::_Exit(use_memory_of_lost_work(are_stuck_cards())), testing::ExitedWithCode(0), "");
}

TEST(CardLoss, what_was_over_before_a_loss_stays_over_however_long_the_chain_of_waits) {
  if (test::cards_here().count < 2) GTEST_SKIP() << "it needs two cards";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end = [] {
    alarm(60);
    Devices devices({.kinds = {CudaDevices{.cards = {0, 1}}}});
    auto a = devices.make_stream(Device::cuda(0)), b = devices.make_stream(Device::cuda(1)),
         lost = devices.make_stream(Device::cuda(0));
    for (int turn = 0; turn < 3000; ++turn) {
      run_on(*a, [] {});
      b->wait(a->event());
      run_on(*b, [] {});
      a->wait(b->event());
    }
    const Event over = b->event();
    if (!attempt([&] { finish(over, soon()); }).ok()) return 1;
    wait_crosswise(*a, *b, 1000);
    const Event last = b->event();
    if (!attempt([&] { finish(last, soon()); }).ok()) return 2;
    lose_card(*lost, devices.driver(devices.memory_of(Device::cuda(0))));
    if (devices.losses() != 1) return 3;
    if (!is_over(over) || !is_over(last)) return 4;
    if (!attempt([&] {
           run_on(*b, [] {});
           finish(b->event(), soon());
         }).ok())
      return 5;
    return 0;
  };
  EXPECT_EXIT(std::_Exit(end()), testing::ExitedWithCode(0), "");
}

TEST_F(Cards, a_list_of_moves_wants_memory_that_the_card_reaches) {
  const BlockMove move{.source_base = 0, .target_base = 1, .block = row_of(64, 4), .width = 4};
  const auto list = stream->prepare({&move, 1}, std::vector{4, 4});
  const Bytes on_card(driver(), Where::card, 256), pageable(driver(), Where::pageable, 256);
  std::byte* const bases[] = {pageable.data(), on_card.data()};
  try {
    stream->move_list(list, bases);
    FAIL() << "a card reads pageable memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(std::string_view(error.message()).find("base 0"), std::string_view::npos) << error.message();
  }
}

TEST_F(Cards, memory_that_is_imported_is_the_cards) {
  constexpr Index n = 100;
  const Bytes on_card(driver(), Where::card, n * 8), pinned(driver(), Where::pinned, n * 8);
  std::vector<double> mine(n);
  void* const freed = driver().allocate(n * 8);
  driver().deallocate(freed, n * 8);
  const auto import = [&](Devices& of, void* data, Index stride = 1) {
    return Buffer::import({.data = data, .type = ElementType::f64, .extents = {n}, .strides = {stride}, .device = card},
                          {.name = "x", .devices = &of});
  };
  Buffer good = import(*devices, on_card.data());
  { const Lease lease = good.read_write({.device = card}); }
  { const Lease lease = good.read(); }
  EXPECT_TRUE(attempt([&] { import(*devices, on_card.data() + 8 * (n - 1), -1); }).ok());
  EXPECT_TRUE(attempt([&] { import(*devices, pinned.data()); }).ok()) << "a card reaches it";
  const auto refused = [&](void* data, Index stride, const std::string& says, Devices& of) {
    const auto made = attempt([&] { import(of, data, stride); });
    ASSERT_FALSE(made.ok()) << says;
    EXPECT_EQ(made.error().code(), ErrorCode::invalid_use);
    EXPECT_NE(made.error().message().find("buffer 'x': byte "), std::string::npos) << made.error().message();
    EXPECT_NE(made.error().message().find(says), std::string::npos) << made.error().message();
  };
  refused(mine.data(), 1, "byte 0 of the 800 bytes", *devices);
  refused(mine.data(), 1, "the driver of card 0 does not know", *devices);
  // The driver frees in the order of a stream, which it comes to when it likes.
  const Deadline freed_by = soon();
  while (attempt([&] { import(*devices, freed); }).ok() && !freed_by.passed()) {
  }
  refused(freed, 1, "the driver of card 0 does not know", *devices);
  refused(on_card.data(), 100'000'000, "byte 79200000007 of the", *devices);
  const auto as_the_hosts = [&](void* data) {
    Buffer::import({.data = data, .type = ElementType::f64, .extents = {n}, .strides = {1}},
                   {.name = "x", .devices = &*devices});
  };
  const auto without_device = attempt([&] { as_the_hosts(on_card.data()); });
  ASSERT_FALSE(without_device.ok());
  EXPECT_EQ(without_device.error().message(),
            "buffer 'x': the memory is of cuda:0, but the device of the view is host");
  EXPECT_TRUE(attempt([&] { as_the_hosts(pinned.data()), as_the_hosts(mine.data()); }).ok());
  const auto overlapping = attempt([&] {
    Buffer::import({.data = mine.data(), .type = ElementType::f64, .extents = {3, 3}, .strides = {1, 1}},
                   {.name = "x", .devices = &*devices})
        .prefetch({.device = card});
  });
  ASSERT_FALSE(overlapping.ok());
  EXPECT_NE(overlapping.error().message().find("buffer 'x': a copy on cuda:0"), std::string::npos)
      << overlapping.error().message();
  if (test::cards_here().count > 1) {
    Devices others({.kinds = {CudaDevices{.cards = {1}}}});
    refused(on_card.data(), 1, "is memory of card 0, not of card 1", others);
  }
}

TEST_F(Cards, memory_that_others_have_allocated_on_another_card_is_reached) {
  if (test::cards_here().count < 2) GTEST_SKIP() << "it needs two cards";
  constexpr Index n = 300;
  const auto& cu = contract::calls_of_this_process();
  Devices both({.kinds = {CudaDevices{.cards = {0, 1}}}});
  CUcontext context = nullptr;
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
  for (const bool is_of_pool : {false, true}) {
    CUdeviceptr theirs = 0;
    ASSERT_EQ(is_of_pool ? cu.cuMemAllocAsync(&theirs, 2 * n * 8, nullptr) : cu.cuMemAlloc(&theirs, 2 * n * 8),
              CUDA_SUCCESS);
    ASSERT_EQ(cu.cuMemsetD32Async(theirs, 7, 4 * n, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    Buffer x = Buffer::import({.data = reinterpret_cast<void*>(theirs),
                               .type = ElementType::u64,
                               .extents = {n},
                               .strides = {2},
                               .device = Device::cuda(1)},
                              {.devices = &both});
    {
      const Lease lease = x.read_write({.device = Device::cuda(0)});
      finish(lease.stream().event(), soon());
    }
    const Lease lease = x.read();
    for (Index i = 0; i < n; ++i)
      ASSERT_EQ(lease.data<const std::uint64_t>()[2 * i], 0x700000007u) << i << (is_of_pool ? ", of a pool" : "");
  }
}

TEST_F(Cards, a_stream_reaches_another_cards_memory_or_says_that_it_does_not) {
  if (test::cards_here().count < 2) GTEST_SKIP() << "it needs two cards";
  Devices both({.kinds = {CudaDevices{.cards = {0, 1}}}});
  Driver& others = both.driver(both.memory_of(Device::cuda(1)));
  const Bytes here(both.driver(both.memory_of(card)), Where::card, 4096), there(others, Where::card, 4096);
  auto mine = both.make_stream(card);
  const auto copied = attempt([&] {
    mine->copy(row_of(100, 8), 8, there.data(), here.data());
    finish(mine->event(), soon());
  });
  EXPECT_EQ(copied.ok(), both.driver(both.memory_of(card)).reaches(Device::cuda(1)));
  if (copied.ok()) return;
  EXPECT_EQ(copied.error().code(), ErrorCode::invalid_use);
  EXPECT_NE(copied.error().message().find("a stream of cuda:0 does not reach the memory of card 1"), std::string::npos)
      << copied.error().message();
}

TEST_F(Cards, a_list_of_moves_names_bases_that_it_cannot_use) {
  const BlockMove move{.source_base = 0, .source_offset = 64, .target_base = 1, .block = row_of(8000, 1)};
  const auto list = stream->prepare({&move, 1}, std::vector{1, 1, 1});
  const Bytes on_card(driver(), Where::card, 8192);
  std::vector<std::byte> mine(1 << 20);
  const auto registration = driver().register_foreign(mine.data(), 4096);
  ASSERT_NE(registration, nullptr);
  struct Case {
    std::byte* source;
    const char* says;
  };
  for (const Case& one : {Case{nullptr, "base 0 of a list of moves is null, and moves use 8000 bytes"},
                          Case{mine.data(), "base 0 of a list of moves is memory of the host"}}) {
    std::byte* const bases[] = {one.source, on_card.data(), nullptr};
    const auto refused = attempt([&] { stream->move_list(list, bases); });
    ASSERT_FALSE(refused.ok()) << one.says;
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid_use);
    EXPECT_NE(refused.error().message().find(one.says), std::string::npos) << refused.error().message();
  }
  // A base that no move uses need not be there.
  std::byte* const bases[] = {on_card.data(), on_card.data(), nullptr};
  const BlockMove apart{.source_base = 0, .target_base = 1, .target_offset = 4096, .block = row_of(100, 1)};
  stream->move_list(stream->prepare({&apart, 1}, std::vector{1, 1, 1}), bases);
  finish(stream->event(), soon());
}

TEST_F(Cards, lists_compute_with_numbers_that_are_not_aligned_and_with_those_that_no_kernel_has) {
  const std::string fault = test::first_fault(0.2, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    std::vector<BlockMove> moves;
    std::vector<std::byte> source, target;
    for (int i = 1 + int(random.below(5)); i > 0; --i) {
      const auto arithmetic = static_cast<Arithmetic>(random.below(int(Arithmetic::f128) + 1));
      const auto map = static_cast<ElementMap>(random.below(int(ElementMap::maximum) + 1));
      const int width = arithmetic == Arithmetic::none ? 8 : width_of(arithmetic);
      if (!can_move(map, arithmetic, width)) continue;
      const RandomBlock made = random_block(random, width, random.one_in(2), 2000);
      moves.push_back({.source_offset = (long long)source.size() + made.source_offset,
                       .target_base = 1,
                       .target_offset = (long long)target.size() + made.target_offset,
                       .block = made.block,
                       .width = width,
                       .map = map,
                       .arithmetic = arithmetic});
      source.resize(source.size() + std::size_t(made.source_bytes) + random.below(16));
      target.resize(target.size() + std::size_t(made.target_bytes) + random.below(16));
    }
    for (auto* side : {&source, &target})
      for (std::byte& byte : *side) byte = std::byte(random.bits());
    const std::size_t shift = random.one_in(2) ? 0 : random.below(16);
    const Bytes from(driver(), Where::card, source.size() + 32), to(driver(), Where::card, target.size() + 32);
    std::byte* const bases[] = {from.data() + shift, to.data() + shift};
    stream->copy(row_of((long long)source.size(), 1), 1, source.data(), bases[0]);
    stream->copy(row_of((long long)target.size(), 1), 1, target.data(), bases[1]);
    finish(stream->event(), soon());
    const int prepared_for = random.one_in(2) ? 16 : 1;
    stream->move_list(stream->prepare(moves, std::vector{prepared_for, prepared_for}), bases);
    for (const BlockMove& one : moves)
      move_on_host(one.block, one.map, one.arithmetic, one.width, CopyMethod(), source.data() + one.source_offset,
                   target.data() + one.target_offset);
    std::vector<std::byte> got(target.size());
    stream->copy(row_of((long long)got.size(), 1), 1, bases[1], got.data());
    finish(stream->event(), soon());
    return got == target ? "" : "other bytes than the host's";
  });
  EXPECT_EQ(fault, "");
}

TEST_F(Cards, a_list_of_moves_stays_with_the_devices_that_prepared_it) {
  const BlockMove move{.source_base = 0, .target_base = 1, .block = row_of(64, 4), .width = 4};
  Devices others(DevicesOptions{.kinds = {CudaDevices{.cards = {0}}}});
  const auto list = others.make_stream(card)->prepare({&move, 1}, std::vector{4, 4});
  const Bytes on_card(driver(), Where::card, 512);
  std::byte* const bases[] = {on_card.data(), on_card.data() + 256};
  try {
    stream->move_list(list, bases);
    FAIL() << "a list runs on a card that may be another one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(std::string_view(error.message()).find("of other Devices"), std::string_view::npos) << error.message();
  }
}

TEST_F(Cards, a_list_of_moves_has_as_many_bases_and_pieces_as_it_likes) {
  constexpr int count = 100;
  Random random(1);
  std::vector<BlockMove> moves;
  for (unsigned i = 0; i < count; ++i)
    moves.push_back({.source_base = i, .target_base = 2 * count - 1 - i, .block = row_of(40, 1)});
  const auto list = stream->prepare(moves, std::vector<int>(2 * count, 16));
  const Bytes sources(driver(), Where::card, 64 * count), targets(driver(), Where::card, 64 * count);
  const Bytes sent(driver(), Where::pinned, 64 * count), back(driver(), Where::pinned, 64 * count);
  for (int i = 0; i < 64 * count; ++i) sent.data()[i] = std::byte(random.bits());
  std::memset(back.data(), 0, 64 * count);
  stream->copy(row_of(64 * count, 1), 1, sent.data(), sources.data());
  stream->copy(row_of(64 * count, 1), 1, back.data(), targets.data());
  std::vector<std::byte*> bases;
  for (int i = 0; i < count; ++i) bases.push_back(sources.data() + 64 * i);
  for (int i = 0; i < count; ++i) bases.push_back(targets.data() + 64 * i);
  const std::int64_t before = driver().counts().launches;
  stream->move_list(list, bases);
  EXPECT_EQ(driver().counts().launches - before, 1);
  stream->copy(row_of(64 * count, 1), 1, targets.data(), back.data());
  finish(stream->event(), soon());
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(std::memcmp(back.data() + 64 * (count - 1 - i), sent.data() + 64 * i, 40), 0) << i;
    EXPECT_EQ(back.data()[64 * i + 40], std::byte(0)) << "beyond row " << i;
  }
}

TEST_F(Cards, a_full_card_runs_a_list_of_moves_from_pinned_memory) {
  constexpr int count = 64;
  std::vector<BlockMove> moves;
  for (int i = 0; i < count; ++i)
    moves.push_back({.source_base = 0,
                     .source_offset = 16 * i,
                     .target_base = 1,
                     .target_offset = 16 * (count - 1 - i),
                     .block = row_of(3, 1)});
  const Bytes source(driver(), Where::card, 16 * count), target(driver(), Where::card, 16 * count);
  std::vector<std::pair<void*, std::size_t>> all;
  for (std::size_t bytes = std::size_t(1) << 30; bytes >= 256; bytes /= 2)
    while (void* const memory = driver().allocate(bytes)) all.emplace_back(memory, bytes);
  const auto list = stream->prepare(moves, std::vector{16, 16});
  std::byte* const bases[] = {source.data(), target.data()};
  stream->fill(row_of(16 * count, 1), 1, nullptr, target.data());
  const unsigned char seven = 7;
  stream->fill(row_of(16 * count, 1), 1, &seven, source.data());
  stream->move_list(list, bases);
  const Bytes back(driver(), Where::pinned, 16 * count);
  stream->copy(row_of(16 * count, 1), 1, target.data(), back.data());
  finish(stream->event(), soon());
  for (int i = 0; i < 16 * count; ++i) EXPECT_EQ(int(back.data()[i]), i % 16 < 3 ? 7 : 0) << i;
  for (const auto& [memory, bytes] : all) driver().deallocate(memory, bytes);
}

// CardGraphs, which programs make by the native handle.

class CardGraphs : public Cards {
 protected:
  void SetUp() override {
    Cards::SetUp();
    if (IsSkipped()) return;
    CUcontext context = nullptr;
    ASSERT_EQ(cu().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (own) EXPECT_EQ(cu().cuStreamDestroy(own), CUDA_SUCCESS);
  }
  static const cuda::software::AllCalls& cu() { return contract::calls_of_this_process(); }
  CUstream native() { return static_cast<CUstream>(stream->native_handle()); }

  static void begin(CUstream of, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(cu().cuStreamBeginCapture(of, mode), CUDA_SUCCESS);
  }
  /// Ends a capture. Returns its number of nodes, or the negative of an error.
  int end(CUstream of) {
    CUgraph graph = nullptr;
    if (const CUresult ended = cu().cuStreamEndCapture(of, &graph); ended != CUDA_SUCCESS) return -int(ended);
    std::size_t nodes = 0;
    EXPECT_EQ(cu().cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuGraphDestroy(graph), CUDA_SUCCESS);
    return int(nodes);
  }
  void destroy() { EXPECT_EQ(cu().cuGraphExecDestroy(std::exchange(exec, nullptr)), CUDA_SUCCESS); }

  CUstream own = nullptr;
  CUgraphExec exec = nullptr;
};

TEST_F(CardGraphs, buffers_do_not_end_captures_of_other_streams) {
  const auto use = [&] {
    Devices more({.kinds = {CudaDevices{.cards = {0}}}});
    Buffer x(ElementType::f64, {5000}, {.checks = Checks::none, .devices = &more});
    { const Lease lease = x.write(); }
    { const Lease lease = x.read_write({.device = card}); }
    { const Lease lease = x.read(); }
    std::vector<std::byte> mine(1 << 16);
    const Bytes there(driver(), Where::card, mine.size()), pinned(driver(), Where::pinned, mine.size());
    const auto registration = driver().register_foreign(mine.data(), mine.size());
    const BlockMove move{.source_base = 0, .target_base = 1, .block = row_of(64, 4), .width = 4};
    const auto list = stream->prepare({&move, 1}, std::vector{4, 4});
    std::byte* const bases[] = {there.data(), there.data() + 1024};
    stream->move_list(list, bases);
    stream->copy(row_of(1000, 1), 1, mine.data(), there.data());
    const Event over = stream->event();
    (void)is_over(over);
    finish(over, soon());
    auto third = devices->make_stream(card);
    third->wait(stream->event());
    run_on(*third, [] {});
    finish(third->event(), soon());
  };
  for (const auto mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED})
    for (const bool is_own_thread : {true, false}) {
      begin(own, mode);
      if (is_own_thread)
        use();
      else
        std::thread(use).join();
      EXPECT_EQ(end(own), 0) << "mode " << int(mode) << (is_own_thread ? ", this thread" : ", another thread");
      destroy();
    }
}

TEST_F(CardGraphs, a_captured_stream_takes_no_work_that_cannot_be_a_node) {
  const Bytes on_card(driver(), Where::card, 4096);
  std::byte* const at = on_card.data();
  const float one = 1;
  auto other = devices->make_stream(card);
  begin(native());
  const auto refuses = [&](const char* what, auto&& f) {
    const auto done = attempt(f);
    ASSERT_FALSE(done.ok()) << what;
    EXPECT_EQ(done.error().code(), ErrorCode::invalid_use) << what;
    EXPECT_NE(done.error().message().find("captured"), std::string::npos) << done.error().message();
  };
  refuses("copy", [&] { stream->copy(row_of(16, 4), 4, at, at + 1024); });
  refuses("fill", [&] { stream->fill(row_of(16, 4), 4, &one, at); });
  refuses("combine", [&] { stream->combine(row_of(16, 4), Combine::sum, ElementType::f32, at, at + 1024); });
  refuses("run", [&] { run_on(*stream, [] {}); });
  refuses("wait", [&] { stream->wait(other->event()); });
  const Event inside = stream->event();
  EXPECT_FALSE(is_over(inside)) << "no point of a captured stream is over before the capture has ended";
  refuses("wait of another", [&] { other->wait(inside); });
  EXPECT_EQ(end(native()), 0) << "what is refused does not end the capture";
  destroy();
  stream->fill(row_of(16, 4), 4, &one, at);
  finish(stream->event(), soon());
  EXPECT_TRUE(is_over(inside));
}

TEST_F(CardGraphs, a_list_of_moves_is_one_node) {
  constexpr int count = 100, row = 40, room = 64;
  Random random(3);
  const Bytes sources(driver(), Where::card, room * count + 8), targets(driver(), Where::card, room * count + 8);
  const Bytes sent(driver(), Where::pinned, room * count), back(driver(), Where::pinned, room * count);
  // A few bases or many, few pieces or many, and addresses that the list was not prepared for.
  for (const int bases_count : {1, count})
    for (const int pieces : {1, count})
      for (const int shift : {0, 8}) {
        SCOPED_TRACE(testing::Message() << bases_count << " bases, " << pieces << " pieces, shifted by " << shift);
        const std::int64_t pinned_before = driver().counts().pinned_bytes;
        std::vector<BlockMove> moves;
        for (int i = 0; i < pieces; ++i) {
          const bool is_base = bases_count > 1;
          moves.push_back({.source_base = is_base ? unsigned(i) : 0,
                           .source_offset = is_base ? 0 : room * i,
                           .target_base = unsigned(is_base ? count + i : 1),
                           .target_offset = is_base ? 0 : room * i,
                           .block = row_of(row, 1)});
        }
        std::vector<std::byte*> bases;
        for (const Bytes* of : {&sources, &targets})
          for (int i = 0; i < bases_count; ++i) bases.push_back(of->data() + room * i + shift);
        auto list = stream->prepare(moves, std::vector<int>(bases.size(), 16));
        begin(native());
        stream->move_list(list, bases);
        const std::int64_t launches = driver().counts().launches;
        ASSERT_EQ(end(native()), 1);
        const std::weak_ptr<const PreparedMoves> seen = list;
        list.reset();
        for (int turn = 0; turn < 3; ++turn) {
          for (int i = 0; i < room * count; ++i) sent.data()[i] = std::byte(random.bits());
          std::memset(back.data(), 0, room * count);
          stream->copy(row_of(room * count, 1), 1, sent.data(), sources.data() + shift);
          stream->copy(row_of(room * count, 1), 1, back.data(), targets.data() + shift);
          ASSERT_EQ(cu().cuGraphLaunch(exec, native()), CUDA_SUCCESS);
          stream->copy(row_of(room * count, 1), 1, targets.data() + shift, back.data());
          finish(stream->event(), soon());
          for (int i = 0; i < count; ++i)
            ASSERT_EQ(std::memcmp(back.data() + room * i, sent.data() + room * i, row) == 0, i < pieces)
                << "row " << i << " in turn " << turn;
        }
        EXPECT_EQ(driver().counts().launches - launches, 3 * 3) << "copies; those of graphs are the program's";
        destroy();
        // The driver says on a thread of its own that the graph needs the list no longer; the next list looks.
        const Deadline deadline = soon();
        while (driver().counts().pinned_bytes > pinned_before || (shift == 0 && !seen.expired())) {
          ASSERT_FALSE(deadline.passed()) << driver().counts().pinned_bytes << " pinned bytes, not " << pinned_before;
          stream->prepare(moves, std::vector<int>(bases.size(), 16));
        }
      }
}

TEST_F(CardGraphs, a_capture_that_has_failed_is_named) {
  const Bytes on_card(driver(), Where::card, 4096);
  const BlockMove move{.source_base = 0, .target_base = 1, .block = row_of(64, 4), .width = 4};
  const auto list = stream->prepare({&move, 1}, std::vector{4, 4});
  begin(native());
  EXPECT_NE(cu().cuStreamQuery(native()), CUDA_SUCCESS);
  std::byte* const bases[] = {on_card.data(), on_card.data() + 1024};
  const auto refused = attempt([&] { stream->move_list(list, bases); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::invalid_use);
  EXPECT_NE(refused.error().message().find("has failed"), std::string::npos) << refused.error().message();
  EXPECT_LT(end(native()), 0);
  stream->move_list(list, bases);
  finish(stream->event(), soon());
}

}  // namespace
}  // namespace tranship
