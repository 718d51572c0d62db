#include <atomic>
#include <cstring>
#include <latch>
#include <ostream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <support/random_layouts.hpp>

#include <tranship/kernels/strided_copy.hpp>
#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/fake_devices.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "memory/device_kinds.hpp"

namespace tranship {
namespace {

using test::Random;

Deadline soon() {
  return Deadline::after_seconds(30);
}

std::string timing_name(FakeTiming timing) {
  return timing == FakeTiming::eager ? "eager" : timing == FakeTiming::deferred ? "deferred" : "threaded";
}

/// What is promised of every stream.
struct Case {
  const char* name;
  Device device;
  FakeDevices fake;
  bool is_card() const { return device.kind() == DeviceKind::cuda; }
  DevicesOptions options() const {
    return is_card() ? test::options_of(test::DeviceCase::card) : DevicesOptions{.kinds = {fake}};
  }
};
void PrintTo(const Case& made, std::ostream* out) {
  *out << made.name;
}

class StreamContract : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!GetParam().is_card()) return;
    if (const std::string why = test::why_no_card(); !why.empty()) GTEST_SKIP() << why;
  }
  std::unique_ptr<Stream> make() { return devices.make_stream(GetParam().device); }
  bool is_eager() const {
    return !GetParam().is_card() && (GetParam().device.is_host() || GetParam().fake.timing == FakeTiming::eager);
  }
  Devices devices{GetParam().options()};
};

const Case cases[] = {
    {"host", Device::host(), {}},
    {"eager", Device::fake(0), {.count = 2, .timing = FakeTiming::eager}},
    {"deferred", Device::fake(0), {.count = 2, .timing = FakeTiming::deferred}},
    {"threaded", Device::fake(0), {.count = 2, .timing = FakeTiming::threaded}},
    {"slow", Device::fake(0), {.count = 2, .timing = FakeTiming::threaded, .delay_ns = 20'000}},
    {"card", Device::cuda(0), {}},
};
INSTANTIATE_TEST_SUITE_P(, StreamContract, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(StreamContract, work_happens_in_the_order_in_which_it_was_given) {
  auto stream = make();
  std::vector<int> log;
  for (int i = 0; i < 100; ++i) run_on(*stream, [&log, i] { log.push_back(i); });
  finish(stream->event(), soon());
  ASSERT_EQ(log.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(log[std::size_t(i)], i);
}

TEST_P(StreamContract, what_follows_a_wait_sees_what_came_before_the_event) {
  auto a = make(), b = make(), c = make();
  std::uint64_t value = 0;  // nothing but the waits keeps the streams from writing at once
  for (int turn = 0; turn < 50; ++turn) {
    run_on(*a, [&] { value = value * 3 + 1; });
    b->wait(a->event());
    run_on(*b, [&] { value = value * 5 + 2; });
    c->wait(b->event());
    run_on(*c, [&] { value = value * 7 + 3; });
    a->wait(c->event());
  }
  finish(a->event(), soon());
  std::uint64_t expected = 0;
  for (int turn = 0; turn < 50; ++turn) expected = ((expected * 3 + 1) * 5 + 2) * 7 + 3;
  EXPECT_EQ(value, expected);
}

TEST_P(StreamContract, waiting_for_what_is_over_for_itself_or_for_nothing_changes_nothing) {
  auto a = make(), b = make();
  int value = 0;
  run_on(*a, [&] { value = 1; });
  const Event first = a->event();
  finish(first, soon());
  b->wait(first);
  b->wait({});
  b->wait(b->event());
  run_on(*b, [&] { value += 1; });
  b->wait(b->event());
  finish(b->event(), soon());
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(is_over(first));
  EXPECT_TRUE(is_over(Event{}));
}

TEST_P(StreamContract, work_that_is_not_over_is_told_from_work_that_is) {
  auto stream = make();
  std::latch gate(1);
  std::atomic<int> runs = 0;
  if (is_eager()) gate.count_down();  // or the next line would never return
  run_on(*stream, [&] { ++runs; });
  const Event before = stream->event();
  run_on(*stream, [&] {
    gate.wait();
    ++runs;
  });
  const Event after = stream->event();
  finish(before, soon());
  EXPECT_TRUE(is_over(before));
  EXPECT_GE(runs, 1);
  if (!is_eager()) {
    EXPECT_FALSE(is_over(after));
    EXPECT_EQ(runs, 1);
    gate.count_down();
  }
  finish(after, soon());
  EXPECT_TRUE(is_over(after));
  EXPECT_EQ(runs, 2);
}

TEST_P(StreamContract, a_list_of_copies_is_one_piece_of_work_where_the_device_can_do_that) {
  auto stream = make();
  Driver& driver = devices.driver(devices.memory_of(GetParam().device));
  int from[6] = {1, 2, 3, 4, 5, 6}, to[6] = {};
  std::vector<StreamCopy> copies;
  for (int i = 0; i < 3; ++i)
    copies.push_back({.block = row_of(2, 4), .width = 4, .source = from + 2 * i, .target = to + 2 * (2 - i)});
  const std::int64_t before = driver.counts().launches;
  stream->copy_list(copies);
  copies.clear();
  stream->copy_list(copies);
  finish(stream->event(), soon());
  EXPECT_EQ(std::vector(to, to + 6), (std::vector{5, 6, 3, 4, 1, 2}));
  EXPECT_EQ(driver.counts().launches - before, GetParam().device.is_host() ? 0 : 1);
  const StreamCopy wrong{.block = row_of(1, 3), .width = 3, .source = from, .target = to};
  EXPECT_THROW(stream->copy_list({&wrong, 1}), Error);
}

/// Memory that streams of the device and host code reach.
class Pinned {
 public:
  Pinned(Driver& driver, std::size_t bytes)
      : driver_(driver), bytes_(bytes), data_(static_cast<std::byte*>(driver.allocate_pinned(bytes))) {
    std::memset(data_, 0, bytes);
  }
  ~Pinned() { driver_.deallocate_pinned(data_, bytes_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Driver& driver_;
  std::size_t bytes_;
  std::byte* data_;
};

TEST_P(StreamContract, a_list_of_moves_runs_again_and_again_with_other_addresses) {
  auto stream = make(), other = make();
  Driver& driver = devices.driver(devices.memory_of(GetParam().device));
  CopyBlock backwards = row_of(4, 4);
  backwards.target_strides[0] = -4;
  const BlockMove moves[] = {{.source_base = 0, .target_base = 1, .target_offset = 12, .block = backwards, .width = 4},
                             {.source_base = 0,
                              .target_base = 2,
                              .block = row_of(4, 4),
                              .width = 4,
                              .map = ElementMap::accumulate,
                              .arithmetic = Arithmetic::i32},
                             {.source_base = 3,
                              .source_offset = 8,
                              .target_base = 3,
                              .target_offset = 32,
                              .block = row_of(2, 8),
                              .width = 8,
                              .map = ElementMap::negate,
                              .arithmetic = Arithmetic::f64}};
  const int alignments[] = {16, 4, 4, 16};
  std::shared_ptr<const PreparedMoves> list = stream->prepare(moves, alignments);
  std::vector<std::unique_ptr<Pinned>> memories;
  for (int turn = 0; turn < 3; ++turn) {
    std::byte* bases[4];
    for (std::byte*& base : bases) base = memories.emplace_back(std::make_unique<Pinned>(driver, 64))->data();
    bases[1] += 4;                  // as it was said
    bases[0] += turn == 2 ? 4 : 0;  // at a smaller multiple than it was said
    for (int i = 0; i < 4; ++i) reinterpret_cast<int*>(bases[0])[i] = 10 * turn + i + 1;
    for (int i = 0; i < 4; ++i) reinterpret_cast<int*>(bases[2])[i] = 1000;
    for (int i = 0; i < 2; ++i) reinterpret_cast<double*>(bases[3])[1 + i] = turn + 0.5 * i;
    (turn == 1 ? other : stream)->move_list(list, bases);
    if (turn == 2) list.reset();  // while it may be under way
    finish(stream->event(), soon());
    finish(other->event(), soon());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(reinterpret_cast<int*>(bases[1])[3 - i], 10 * turn + i + 1) << turn;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(reinterpret_cast<int*>(bases[2])[i], 1000 + 10 * turn + i + 1) << turn;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(reinterpret_cast<double*>(bases[3])[4 + i], -(turn + 0.5 * i)) << turn;
  }
}

TEST_P(StreamContract, lists_of_moves_that_cannot_be_are_refused_by_name) {
  auto stream = make();
  const auto what = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      return error.message();
    }
    return "nothing";
  };
  const auto prepare = [&](BlockMove move, std::vector<int> alignments) {
    return stream->prepare({&move, 1}, alignments);
  };
  const BlockMove plain{.source_base = 0, .target_base = 1, .block = row_of(2, 4), .width = 4};
  BlockMove beyond = plain, wide = plain, negated = plain;
  beyond.target_base = 2;
  wide.width = 3;
  negated.map = ElementMap::negate;
  negated.arithmetic = Arithmetic::f64;
  EXPECT_EQ(what([&] { prepare(beyond, {4, 4}); }), "a move names base 2, but there are 2 bases");
  EXPECT_NE(what([&] { prepare(wide, {4, 4}); }).find("3 bytes"), std::string::npos);
  for (const int wrong : {0, -8, 3, 32})
    EXPECT_EQ(what([&] {
                prepare(beyond, {4, wrong});
              }),
              fmt::format("the alignment of base 1 is {}; it must be 1, 2, 4, 8 or 16", wrong));
  EXPECT_NE(what([&] { prepare(negated, {4, 4}); }).find("4 bytes"), std::string::npos);
  const auto list = prepare(plain, {4, 4});
  std::byte memory[16];
  std::byte* const one[] = {memory};
  EXPECT_EQ(what([&] { stream->move_list(list, one); }), "a list of moves has 2 bases, but 1 address is given");
  std::byte* const two[] = {memory, memory + 8};
  EXPECT_NE(what([&] { stream->move_list(nullptr, two); }).find("was not prepared"), std::string::npos);
  Devices others({.kinds = {FakeDevices{.count = 2}}});
  const auto foreign = others.make_stream(Device::fake(1));
  EXPECT_NE(what([&] {
              stream->move_list(foreign->prepare({&plain, 1}, std::vector{4, 4}), two);
            }).find("prepared"),
            std::string::npos);
}

TEST_P(StreamContract, a_stream_hands_out_the_name_that_its_device_has_for_it) {
  auto one = make(), other = make();
  if (GetParam().device.is_host()) {
    EXPECT_EQ(one->native_handle(), nullptr);
    return;
  }
  EXPECT_NE(one->native_handle(), nullptr);
  EXPECT_NE(one->native_handle(), other->native_handle());
}

TEST_P(StreamContract, a_deadline_that_passes_first_throws_both_numbers) {
  auto stream = make();
  std::latch gate(1);
  if (is_eager()) gate.count_down();
  run_on(*stream, [] {});
  finish(stream->event(), soon());
  run_on(*stream, [&] { gate.wait(); });
  run_on(*stream, [] {});
  const Event event = stream->event();
  if (is_eager()) {
    EXPECT_NO_THROW(finish(event, Deadline::after_ns(0)));
    return;
  }
  try {
    finish(event, Deadline::after_ns(0));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_NE(error.message().find("1 of 3 pieces"), std::string::npos) << error.what();
    EXPECT_NE(error.message().find(to_string(GetParam().device)), std::string::npos) << error.what();
  }
  gate.count_down();
  finish(event, soon());
  EXPECT_TRUE(is_over(event));
}

TEST_P(StreamContract, a_point_that_was_never_given_is_refused) {
  auto stream = make();
  run_on(*stream, [] {});
  Event event = stream->event();
  if (!event.stream) return finish(event, soon());
  event.number += 6;
  EXPECT_FALSE(is_over(event));
  try {
    finish(event, soon());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(error.message().find("point 7"), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("given 1 "), std::string::npos) << error.what();
  }
}

TEST_P(StreamContract, a_kernel_is_freed_before_it_counts_as_over) {
  auto stream = make();
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = captured;
  run_on(*stream, [captured = std::move(captured)] { ++*captured; });
  finish(stream->event(), soon());
  EXPECT_TRUE(seen.expired());
}

/// A block of random strides whose elements do not meet in the target; offsets are those of the first elements.
struct RandomBlock {
  CopyBlock block;
  int width;
  long long source_offset, target_offset;
};
/// The blocks below reach over 4 * (4608 + 384 + 32) + 16 bytes at most.
constexpr int arena_bytes = 1 << 15;

RandomBlock random_block(Random& random) {
  RandomBlock made{.width = 1 << random.below(5)};
  made.block.dims = int(random.below(4));
  long long source_stride = made.width, target_stride = made.width;
  made.source_offset = made.target_offset = 0;
  for (int d = made.block.dims - 1; d >= 0; --d) {
    made.block.extents[d] = random.between(0, 5);
    source_stride *= random.between(1, 2);
    target_stride *= random.between(1, 2);
    made.block.source_strides[d] = random.one_in(3) ? -source_stride : source_stride;
    made.block.target_strides[d] = random.one_in(3) ? -target_stride : target_stride;
    const long long reach = std::max(0LL, made.block.extents[d] - 1);
    if (made.block.source_strides[d] < 0) made.source_offset += reach * source_stride;
    if (made.block.target_strides[d] < 0) made.target_offset += reach * target_stride;
    source_stride *= made.block.extents[d] + 1;
    target_stride *= made.block.extents[d] + 1;
  }
  return made;
}

TEST_P(StreamContract, copies_and_fills_move_what_the_plain_loop_moves) {
  const std::string fault = test::first_fault(0.05, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    Driver& driver = devices.driver(devices.memory_of(GetParam().device));
    auto* device = static_cast<unsigned char*>(driver.allocate(arena_bytes));
    std::vector<unsigned char> host(arena_bytes), back(arena_bytes, 0xee), expected(arena_bytes);
    for (auto& byte : host) byte = static_cast<unsigned char>(random.bits());

    auto stream = make();
    CopyBlock whole{.dims = 1, .extents = {arena_bytes}, .source_strides = {1}, .target_strides = {1}};
    stream->fill(whole, 1, nullptr, device);
    for (int i = 0; i < 20; ++i) {
      RandomBlock made = random_block(random);
      unsigned char element[16];
      for (auto& byte : element) byte = static_cast<unsigned char>(random.bits());
      if (random.one_in(4)) std::memset(element, 0x5a, sizeof element);
      unsigned char* const target = device + made.target_offset;
      unsigned char* const wanted = expected.data() + made.target_offset;
      const unsigned char* const source = host.data() + made.source_offset;
      switch (random.below(3)) {
        case 0:
          stream->copy(made.block, made.width, source, target);
          copy(made.block, made.width, source, wanted);
          break;
        case 1:
          stream->fill(made.block, made.width, element, target);
          fill(made.block, made.width, element, wanted);
          break;
        default:
          stream->fill(made.block, made.width, nullptr, target);
          fill(made.block, made.width, nullptr, wanted);
      }
      // The stream has its own copies of these.
      std::memset(element, 0, sizeof element);
      made.block = {};
    }
    stream->copy(whole, 1, device, back.data());
    whole = {};
    finish(stream->event(), soon());
    driver.deallocate(device, arena_bytes);
    return back == expected ? "" : "other bytes than the plain loop's";
  });
  EXPECT_EQ(fault, "");
}

TEST_P(StreamContract, combinations_make_what_the_plain_loop_makes) {
  const std::string fault = test::first_fault(0.05, [&](std::uint64_t seed) -> std::string {
    Random random(seed);
    constexpr ElementType types[] = {ElementType::i32, ElementType::f64, ElementType::c64, ElementType::u8};
    constexpr Combine combines[] = {Combine::sum, Combine::product, Combine::minimum, Combine::maximum};
    const ElementType type = types[random.below(std::size(types))];
    const Combine how = combines[random.below(std::size(combines))];
    if (!detail::can_combine(how, type)) return "";
    // Rows of a matrix into those of another, contiguous or not.
    const Index rows = 1 + Index(random.below(5)), columns = 1 + Index(random.below(40)),
                step = 1 + Index(random.below(3));
    const Index pitch = columns * step + Index(random.below(4)), size = size_bytes(type), bytes = rows * pitch * size;
    const auto room = static_cast<std::size_t>(bytes);
    std::vector<std::byte> source(room), start(room);
    for (std::vector<std::byte>* made : {&source, &start})
      for (Index i = 0; i < bytes; i += 4) {
        // Small whole numbers: every type is exact on them.
        const auto small = std::uint32_t(random.below(4));
        const float real = float(small);
        const double wide = double(small);
        if (type == ElementType::f64) {
          if (i % 8 == 0) std::memcpy(made->data() + i, &wide, 8);
        } else if (type == ElementType::c64)
          std::memcpy(made->data() + i, &real, 4);
        else
          std::memcpy(made->data() + i, &small, std::size_t(std::min<Index>(4, bytes - i)));
      }
    const CopyBlock block{.dims = 2,
                          .extents = {rows, columns},
                          .source_strides = {pitch * size, step * size},
                          .target_strides = {pitch * size, step * size}};
    std::vector<std::byte> expected = start;
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c)
        detail::combine_row(how, type, 1, source.data() + (r * pitch + c * step) * size,
                            expected.data() + (r * pitch + c * step) * size);

    Driver& driver = devices.driver(devices.memory_of(GetParam().device));
    void* const target = driver.allocate(room);
    auto stream = make();
    CopyBlock whole{.dims = 1, .extents = {bytes}, .source_strides = {1}, .target_strides = {1}};
    stream->copy(whole, 1, start.data(), target);
    stream->combine(block, how, type, source.data(), target);
    std::vector<std::byte> back(room, std::byte(0xee));
    stream->copy(whole, 1, target, back.data());
    finish(stream->event(), soon());
    driver.deallocate(target, room);
    return back == expected ? "" : "other bytes than the plain loop's";
  });
  EXPECT_EQ(fault, "");
  std::byte element[16] = {};
  const auto refused = attempt([&] { make()->combine({}, Combine::minimum, ElementType::c64, element, element); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::invalid_use);
  EXPECT_EQ(refused.error().message(), "elements c64 have no minimum");
}

TEST_P(StreamContract, null_memory_and_negative_extents_are_refused_at_once) {
  auto stream = make();
  unsigned char bytes[64] = {};
  const auto refused = [&](auto&& call, const char* why) {
    try {
      call();
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_use);
      EXPECT_NE(error.message().find(why), std::string::npos) << error.message();
    }
  };
  const CopyBlock row = row_of(3, 4);
  refused([&] { stream->copy(row, 4, nullptr, bytes); }, "the source of a stream's work on 3 elements is null");
  refused([&] { stream->copy(row, 4, bytes, nullptr); }, "the target of a stream's work on 3 elements is null");
  refused([&] { stream->fill(row, 4, nullptr, nullptr); }, "the target of a stream's work on 3 elements is null");
  refused([&] { stream->combine(row, Combine::sum, ElementType::i32, bytes, nullptr); }, "the target");
  const StreamCopy list[] = {{row, 4, bytes, bytes + 32}, {row, 4, nullptr, bytes + 48}};
  refused([&] { stream->copy_list(list); }, "the source");
  CopyBlock negative{.dims = 2, .extents = {2, -3}, .source_strides = {4, 8}, .target_strides = {4, 8}};
  refused([&] { stream->copy(negative, 4, bytes, bytes + 32); }, "has extent -3 in dimension 1");
  refused([&] { stream->fill(negative, 4, nullptr, bytes); }, "extent -3");
  refused([&] { stream->combine(negative, Combine::sum, ElementType::i32, bytes, bytes + 32); }, "extent -3");
  const BlockMove move{.source_base = 0, .target_base = 1, .block = negative, .width = 4};
  const int alignments[] = {4, 4};
  refused([&] { stream->prepare({&move, 1}, alignments); }, "extent -3");
  CopyBlock none = row_of(0, 4);
  for (const int dims : {-1, 19}) {
    CopyBlock wrong = row;
    wrong.dims = dims;
    refused([&] { stream->copy(wrong, 4, bytes, bytes + 32); }, "it has 0 to 18");
  }
  refused([&] { stream->run(nullptr); }, "a kernel that is null");
  refused([&] { stream->combine(row, Combine(99), ElementType::i32, bytes, bytes + 32); }, "no combination 99");
  BlockMove unknown = move;
  unknown.block = row;
  unknown.map = ElementMap(77);
  unknown.arithmetic = Arithmetic::i32;
  refused([&] { stream->prepare({&unknown, 1}, alignments); }, "map 77");
  EXPECT_NO_THROW(stream->copy(none, 4, nullptr, nullptr));
  EXPECT_NO_THROW(stream->fill(none, 4, nullptr, nullptr));
  EXPECT_NO_THROW(stream->combine(none, Combine::sum, ElementType::i32, nullptr, nullptr));
}

TEST_P(StreamContract, elements_of_other_widths_are_refused_at_once) {
  auto stream = make();
  unsigned char bytes[64] = {};
  const CopyBlock block{.dims = 0};
  for (const int width : {0, 3, 32, -1}) {
    EXPECT_THROW(stream->copy(block, width, bytes, bytes + 32), Error);
    EXPECT_THROW(stream->fill(block, width, nullptr, bytes), Error);
  }
}

TEST_P(StreamContract, events_outlive_their_stream) {
  auto stream = make(), other = make();
  int value = 0;
  run_on(*stream, [&] { value = 1; });
  const Event event = stream->event();
  stream.reset();
  EXPECT_EQ(value, 1) << "destroying a stream finishes its work";
  EXPECT_TRUE(is_over(event));
  finish(event, Deadline::after_ns(0));
  other->wait(event);
  // A new stream is the old one in new hands.
  auto next = make();
  EXPECT_EQ(next->event(), event);
  std::latch gate(1);
  if (is_eager()) gate.count_down();
  run_on(*next, [&] { gate.wait(); });
  EXPECT_TRUE(is_over(event));
  if (!is_eager()) {
    EXPECT_FALSE(is_over(next->event()));
    gate.count_down();
  }
  next.reset();
  run_on(*other, [&] { value = 2; });
  other.reset();
  EXPECT_EQ(value, 2);
}

/// Random work on random streams. Each piece knows which pieces must have run before it.
std::string fault_of_random_work(const Case& made, std::uint64_t seed) {
  Random random(seed);
  Case seeded = made;
  seeded.fake.seed = seed;
  seeded.fake.delay_ns = random.one_in(8) ? made.fake.delay_ns : 0;
  constexpr int stream_count = 4, piece_count = 60;
  std::atomic<bool> has_run[piece_count] = {};
  std::atomic<int> early = -1;
  Devices devices(seeded.options());
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::vector<int>> before(stream_count);  // pieces that the next one of each stream comes after
  struct Point {
    Event event;
    std::vector<int> pieces;
  };
  std::vector<Point> points;
  std::string fault;
  const auto check = [&](const Point& point) {
    for (const int piece : point.pieces)
      if (!has_run[piece]) fault = fmt::format("piece {} has not run at a point after it", piece);
  };
  for (int s = 0; s < stream_count; ++s)
    streams.push_back(
        devices.make_stream(made.device.is_host() || s % 2 ? made.device : Device::of(made.device.kind(), 1)));
  for (int piece = 0; piece < piece_count; ++piece) {
    const std::size_t s = std::size_t(random.below(stream_count));
    run_on(*streams[s], [&, piece, needs = before[s]] {
      for (const int need : needs)
        if (!has_run[need]) early = piece;
      has_run[piece] = true;
    });
    before[s].push_back(piece);
    if (random.one_in(2)) points.push_back({streams[s]->event(), before[s]});
    if (!points.empty() && random.one_in(2)) {
      const Point& point = random.pick(points);
      const std::size_t waiting = std::size_t(random.below(stream_count));
      streams[waiting]->wait(point.event);
      before[waiting].insert(before[waiting].end(), point.pieces.begin(), point.pieces.end());
    }
    if (!points.empty() && random.one_in(10)) {
      const Point& point = random.pick(points);
      finish(point.event, soon());
      if (!is_over(point.event)) fault = "a point is not over after it was finished";
    }
    if (random.one_in(5)) devices.steps(int(random.below(4)));
    if (random.one_in(12)) streams[s] = devices.make_stream(streams[s]->device());
    for (const Point& point : points)
      if (is_over(point.event)) check(point);
  }
  streams.clear();
  for (const Point& point : points) {
    if (!is_over(point.event)) fault = "a point of a destroyed stream is not over";
    check(point);
  }
  if (early >= 0) fault = fmt::format("piece {} ran before one that it comes after", early.load());
  return fault;
}

TEST_P(StreamContract, random_work_keeps_its_order) {
  EXPECT_EQ(test::first_fault(0.05, [&](std::uint64_t seed) { return fault_of_random_work(GetParam(), seed); }), "");
}

TEST(EagerStream, a_wait_for_what_is_not_over_finishes_it_or_times_out) {
  Devices late({.kinds = {FakeDevices{.count = 1, .timing = FakeTiming::deferred}}});
  Devices eager({.kinds = {FakeDevices{.count = 1}}, .wait_timeout_ns = 0});
  Devices patient;
  Stream& source = late.stream(Device::fake(0));
  int runs = 0;
  run_on(source, [&] { ++runs; });
  EXPECT_THROW(eager.stream(Device::fake(0)).wait(source.event()), Error);
  EXPECT_THROW(eager.stream(Device::host()).wait(source.event()), Error);
  EXPECT_EQ(runs, 0);
  patient.stream(Device::host()).wait(source.event());
  EXPECT_EQ(runs, 1);
  EXPECT_NO_THROW(eager.stream(Device::host()).wait(source.event()));
}

TEST(DeferredStream, nothing_runs_before_somebody_waits) {
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = FakeTiming::deferred}}});
  Stream& stream = devices.stream(Device::fake(0));
  auto other = devices.make_stream(Device::fake(0));
  int runs = 0;
  unsigned char from = 7, to = 0;
  run_on(stream, [&] { ++runs; });
  stream.copy(CopyBlock{}, 1, &from, &to);
  run_on(stream, [&] { ++runs; });
  other->wait(stream.event());
  EXPECT_FALSE(is_over(stream.event()));
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(to, 0);
  finish(stream.event(), soon());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(to, 7);
}

TEST(DeferredStream, a_finish_runs_what_the_point_needs_and_nothing_else) {
  std::string log;  // until the devices have ended, which run what is left
  Devices devices({.kinds = {FakeDevices{.count = 2, .timing = FakeTiming::deferred}}});
  Stream& a = devices.stream(Device::fake(0));
  Stream& b = devices.stream(Device::fake(1));
  Stream& c = devices.copy_stream(devices.memory_of(Device::fake(0)));
  const auto give = [&](Stream& stream, char name) { run_on(stream, [&log, name] { log += name; }); };
  give(a, '1');
  give(a, '2');
  const Event early = a.event();
  give(a, '3');
  give(c, 'x');
  b.wait(early);
  give(b, '4');
  const Event wanted = b.event();
  give(b, '5');
  finish(wanted, soon());
  EXPECT_EQ(log, "124");
  finish(b.event(), soon());
  EXPECT_EQ(log, "1245");
  EXPECT_TRUE(is_over(early));
  EXPECT_FALSE(is_over(a.event()));
  EXPECT_FALSE(is_over(c.event()));
}

TEST(DeferredStream, long_chains_of_waits_are_followed) {
  Devices devices({.kinds = {FakeDevices{.count = 2, .timing = FakeTiming::deferred}}});
  Stream& a = devices.stream(Device::fake(0));
  Stream& b = devices.stream(Device::fake(1));
  int runs = 0;
  for (int turn = 0; turn < 50'000; ++turn) {
    run_on(a, [&] { ++runs; });
    b.wait(a.event());
    run_on(b, [&] { ++runs; });
    a.wait(b.event());
  }
  finish(a.event(), soon());
  EXPECT_EQ(runs, 100'000);
}

/// The order in which steps() runs 10 pieces of each of 3 streams, of which the last begins after 5 of the first.
std::string order_of(std::uint64_t seed) {
  std::string log;
  Devices devices({.kinds = {FakeDevices{.count = 1, .timing = FakeTiming::deferred, .seed = seed}}});
  std::vector<std::unique_ptr<Stream>> streams;
  for (int s = 0; s < 3; ++s) streams.push_back(devices.make_stream(Device::fake(0)));
  for (int i = 0; i < 10; ++i) {
    if (i == 5) streams[2]->wait(streams[0]->event());
    if (i == 0) continue;
    for (int s = 0; s < 2; ++s) run_on(*streams[std::size_t(s)], [&log, s] { log += char('a' + s); });
  }
  for (int i = 0; i < 9; ++i) run_on(*streams[2], [&log] { log += 'c'; });
  EXPECT_EQ(devices.steps(7), 7);
  EXPECT_EQ(devices.steps(1000), 9 * 3 + 1 - 7);  // and the wait
  EXPECT_EQ(devices.steps(1), 0);
  return log;
}

TEST(DeferredStream, steps_are_drawn_from_the_seed_among_what_may_run) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::string order = order_of(seed);
    EXPECT_EQ(order, order_of(seed));
    for (const char name : {'a', 'b', 'c'}) EXPECT_EQ(std::count(order.begin(), order.end(), name), 9) << order;
    const std::size_t first = order.find('c');
    EXPECT_GE(std::count(order.begin(), order.begin() + std::ptrdiff_t(first), 'a'), 4) << order;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 40U);
}

TEST(FakeStream, memory_that_a_device_does_not_reach_is_refused_with_both_names) {
  for (const FakeTiming timing : {FakeTiming::eager, FakeTiming::deferred, FakeTiming::threaded}) {
    Devices devices(
        {.kinds = {FakeDevices{.count = 3, .timing = timing, .reach_each_other = false, .memory_of = {-1, -1, 0}}}});
    Driver& mine = devices.driver(devices.memory_of(Device::fake(0)));
    Driver& other = devices.driver(devices.memory_of(Device::fake(1)));
    auto* near = static_cast<unsigned char*>(mine.allocate(256));
    auto* far = static_cast<unsigned char*>(other.allocate(256));
    unsigned char host[16] = {};
    const CopyBlock block{.dims = 1, .extents = {16}, .source_strides = {1}, .target_strides = {1}};
    for (const int ordinal : {0, 2}) {
      Stream& stream = devices.stream(Device::fake(ordinal));
      stream.copy(block, 1, host, near);
      stream.copy(block, 1, near, host);
      for (const auto& [source, target] : {std::pair{far + 240, near}, std::pair{near, far}}) try {
          stream.copy(block, 1, source, target);
          ADD_FAILURE() << timing_name(timing);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::invalid_use);
          EXPECT_NE(error.message().find("fake:1"), std::string::npos) << error.what();
          EXPECT_NE(error.message().find("fake:" + std::to_string(ordinal)), std::string::npos) << error.what();
        }
      EXPECT_THROW(stream.fill(block, 1, nullptr, far), Error);
      finish(stream.event(), soon());
    }
    mine.deallocate(near, 256);
    other.deallocate(far, 256);
  }
}

TEST(ThreadedStream, several_threads_may_give_work_and_wait_for_each_others) {
  for (const FakeTiming timing : {FakeTiming::deferred, FakeTiming::threaded}) {
    Devices devices({.kinds = {FakeDevices{.count = 1, .timing = timing}}});
    constexpr int thread_count = 3, turns = 100;
    std::latch all_given(thread_count);
    Event events[thread_count];
    int counts[thread_count] = {};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
      threads.emplace_back([&, t] {
        auto stream = devices.make_stream(Device::fake(0));
        for (int turn = 0; turn < turns; ++turn) run_on(*stream, [&, t] { ++counts[t]; });
        events[t] = stream->event();
        all_given.arrive_and_wait();
        for (int other = 0; other < thread_count; ++other) stream->wait(events[other]);
        run_on(*stream, [&] {
          for (const int count : counts) EXPECT_EQ(count, turns);
        });
        finish(stream->event(), soon());
        for (const int count : counts) EXPECT_EQ(count, turns);
      });
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace tranship
