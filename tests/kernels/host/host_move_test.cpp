#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/kernels/host/host_move.hpp>

#include "kernels/reference.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using reference::Arena;
using reference::Bytes;
using reference::Random;
using reference::Targets;

/// All that this CPU can do.
std::vector<CopyMethod> ways() {
  std::vector<CopyMethod> out;
  for (const Simd simd : {Simd::bytes16, Simd::bytes32})
    for (const Stores stores : {Stores::plain, Stores::prefetched, Stores::streaming})
      for (const LongRows long_rows : {LongRows::vectors, LongRows::string})
        if (simd <= copy_method(0).simd) out.push_back({simd, stores, long_rows});
  return out;
}

void expect_like_reference(Random& random, const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width) {
  const Arena source = reference::arena_for(random, block, block.source_strides, width, arithmetic);
  const Arena before = reference::arena_for(random, block, block.target_strides, width, arithmetic);
  const unsigned char* from = source.bytes.data() + source.base;
  Arena expected = before;
  reference::apply(block, move, arithmetic, width, from, expected.at_base());
  CopyBlock canonical = block;
  canonicalise(canonical, width);
  for (const CopyMethod way : ways())
    for (const CopyBlock* b : {&block, static_cast<const CopyBlock*>(&canonical)}) {
      Arena target = before;
      move_on_host(*b, move, arithmetic, width, way, from, target.at_base());
      ASSERT_TRUE(target.bytes == expected.bytes)
          << "move " << int(move) << " arithmetic " << int(arithmetic) << " width " << width << ", "
          << name_of(way.simd) << ", " << name_of(way.stores) << ", " << name_of(way.long_rows) << ", "
          << name_of(shape_of(*b, width)) << ", " << reference::describe(*b);
    }
}

/// Two or three dimensions, long enough for whole tiles and lines, in any order on either side, some of them mirrored;
/// half of the time in whole cache lines.
CopyBlock large_block(Random& random, int width) {
  CopyBlock block;
  block.dims = 2 + reference::below(random, 2);
  for (int d = 0; d < block.dims; ++d)
    block.extents[d] = 1 + reference::below(random, block.dims == 2 || d == 0 ? 200 : 40);
  std::shuffle(block.extents, block.extents + block.dims, random);
  for (long long* strides : {block.source_strides, block.target_strides}) {
    std::vector<int> order(block.dims);
    for (int d = 0; d < block.dims; ++d) order[d] = block.dims - 1 - d;
    if (reference::below(random, 3)) std::shuffle(order.begin(), order.end(), random);
    const bool whole_lines = reference::below(random, 2) == 0;
    long long stride = width;
    for (const int d : order) {
      strides[d] = reference::below(random, 5) ? stride : -stride;
      stride *= block.extents[d];
      if (whole_lines) stride = (stride + 63) / 64 * 64;
      if (reference::below(random, 4) == 0) stride += whole_lines ? 64 : reference::below(random, 3) * width;
    }
  }
  return block;
}

TEST(HostMove, random_blocks_copy_at_every_width) {
  Random random(11);
  for (int i = 0; i < 4'000; ++i) {
    const int width = reference::widths[i % 5];
    expect_like_reference(random, reference::random_block(random, width, Targets::any), ElementMap::copy,
                          Arithmetic::none, width);
    if (HasFatalFailure()) return;
  }
}

TEST(HostMove, random_blocks_do_every_move_in_every_arithmetic) {
  Random random(12);
  for (int i = 0; i < 4'000; ++i) {
    const Arithmetic arithmetic = reference::numbers[i % reference::number_count];
    const int width = width_of(arithmetic);
    expect_like_reference(random, reference::random_block(random, width, Targets::any),
                          reference::random_move(random, arithmetic), arithmetic, width);
    if (HasFatalFailure()) return;
  }
}

TEST(HostMove, large_blocks_copy_at_every_width) {
  Random random(13);
  for (int i = 0; i < (test::is_sanitized ? 60 : 300); ++i) {
    const int width = reference::widths[i % 5];
    expect_like_reference(random, large_block(random, width), ElementMap::copy, Arithmetic::none, width);
    if (HasFatalFailure()) return;
  }
}

TEST(HostMove, transposes_of_several_patches_copy) {
  Random random(16);
  for (const int width : reference::widths) {
    // Of elements in a line: patches are 4 by 4 and 4 by 16 lines large, and lie in strips of 64 lines.
    const long long n = 64 / width, count_a = 8 * n + 3, count_b = 97 * n + 5;
    CopyBlock block;
    block.dims = 2;
    block.extents[0] = count_b;
    block.source_strides[0] = width;
    block.target_strides[0] = (count_a * width + 63) / 64 * 64;
    block.extents[1] = count_a;
    block.source_strides[1] = count_b * width;
    block.target_strides[1] = width;
    expect_like_reference(random, block, ElementMap::copy, Arithmetic::none, width);
    if (HasFatalFailure()) return;
  }
}

TEST(HostMove, planes_that_are_short_in_one_dimension_copy) {
  // Transposed: the rows of one side lie among those that the other side has together, and planes lie around them.
  Random random(17);
  for (int i = 0; i < (test::is_sanitized ? 10 : 60); ++i)
    for (const int width : {4, 8, 16}) {
      const long long rows = 5 + reference::below(random, 80), between = 1 + reference::below(random, 3);
      const long long line = 40 + reference::below(random, 60), planes = 1 + reference::below(random, 3);
      const long long gap = reference::below(random, 2);
      CopyBlock block;
      block.dims = 4;
      long long* const sides[] = {block.source_strides, block.target_strides};
      // planes, line, between, rows: as they lie in the target, and `line` is contiguous in the source.
      const bool unpacks = reference::below(random, 2) != 0;
      const long long extents[] = {planes, line, between, rows};
      long long* const message = sides[unpacks ? 0 : 1];
      long long* const field = sides[unpacks ? 1 : 0];
      message[3] = width;
      message[2] = (rows + gap) * width;
      message[1] = between * message[2];
      message[0] = line * message[1];
      field[1] = width;
      field[2] = (line + gap) * width;
      field[3] = between * field[2];
      field[0] = rows * field[3];
      std::copy(extents, extents + 4, block.extents);
      if (unpacks) {
        for (auto* values : {block.extents, block.source_strides, block.target_strides})
          std::swap(values[1], values[3]);
        ASSERT_EQ(shape_of(block, width), BlockShape::tiles);
      }
      expect_like_reference(random, block, ElementMap::copy, Arithmetic::none, width);
      if (HasFatalFailure()) return;
    }
}

TEST(HostMove, large_blocks_do_every_move_in_every_arithmetic) {
  Random random(14);
  for (int times = 0; times < (test::is_sanitized ? 1 : 4); ++times)
    for (const Arithmetic arithmetic : reference::numbers)
      for (const ElementMap move : reference::moves_of(arithmetic)) {
        const int width = width_of(arithmetic);
        expect_like_reference(random, large_block(random, width), move, arithmetic, width);
        if (HasFatalFailure()) return;
      }
}

TEST(HostMove, rows_of_every_length_do_every_move_in_every_arithmetic) {
  Random random(16);
  for (const Arithmetic arithmetic : reference::numbers)
    for (const ElementMap move : reference::moves_of(arithmetic))
      for (const long long count : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257}) {
        const int width = width_of(arithmetic);
        CopyBlock block;
        block.dims = 2;
        block.extents[0] = 3;
        block.extents[1] = count;
        block.source_strides[0] = (count + reference::below(random, 3)) * width;
        block.target_strides[0] = (count + reference::below(random, 3)) * width;
        block.source_strides[1] = block.target_strides[1] = width;
        expect_like_reference(random, block, move, arithmetic, width);
        if (HasFatalFailure()) return;
      }
}

TEST(HostMove, rows_of_every_length_copy) {
  Random random(15);
  const auto expect_rows = [&](long long count, long long row_bytes) {
    CopyBlock block;
    block.dims = 2;
    block.extents[0] = count;
    block.extents[1] = row_bytes;
    block.source_strides[0] = row_bytes + reference::below(random, 70);
    block.target_strides[0] = row_bytes + reference::below(random, 70);
    block.source_strides[1] = block.target_strides[1] = 1;
    expect_like_reference(random, block, ElementMap::copy, Arithmetic::none, 1);
  };
  for (long long bytes = 1; bytes <= 300 && !HasFatalFailure(); ++bytes) expect_rows(5, bytes);
  for (const long long near : {512, 1024, 4096, 8192, 20'000})
    for (long long bytes = near - 3; bytes <= near + 3 && !HasFatalFailure(); ++bytes) expect_rows(2, bytes);
}

/// Copies `bytes` from every place of a line (and one more) to every place of another that lies alike in its page, and
/// looks at the bytes around.
template <class Copy>
void expect_all_alignments(long long bytes, int step, Copy copy) {
  constexpr std::size_t guard = 64, places = 65, page = 4096;
  const std::size_t room = std::size_t(bytes) + places + 2 * guard;
  Bytes source(room + page), target(room + page);
  const Bytes poison(room, 0xa5);
  Random random{std::uint64_t(bytes)};
  for (unsigned char& byte : source) byte = static_cast<unsigned char>(random());
  const auto page_in = [](Bytes& all) { return all.data() + (-reinterpret_cast<std::uintptr_t>(all.data()) % page); };
  const unsigned char* const from = page_in(source);
  unsigned char* const first = page_in(target);
  for (std::size_t s = 0; s < places; s += std::size_t(step))
    for (std::size_t t = 0; t < places; t += std::size_t(step)) {
      std::memcpy(first, poison.data(), room);
      unsigned char* const to = first + guard + t;
      copy(to, from + s, bytes);
      unsigned char* const end = to + bytes;
      const auto before = std::size_t(to - first), after = room - before - std::size_t(bytes);
      ASSERT_EQ(std::memcmp(to, from + s, std::size_t(bytes)), 0) << bytes << " bytes, " << s << " to " << t;
      ASSERT_EQ(std::memcmp(first, poison.data(), before), 0) << bytes << " bytes, " << s << " to " << t;
      ASSERT_EQ(std::memcmp(end, poison.data(), after), 0) << bytes << " bytes, " << s << " to " << t;
    }
}

TEST(HostMove, long_rows_of_every_alignment_copy_and_leave_the_bytes_around) {
  // Where the methods change, and the margins of lines and vectors.
  for (const long long near : {512, 1024, 8192}) {
    for (const long long bytes : {near - 1, near, near + 1, near + 37})
      for (const CopyMethod way : ways())
        expect_all_alignments(bytes, bytes == near ? 1 : 7,
                              [&](void* to, const void* from, long long n) { copy_row(to, from, n, way); });
  }
  for (const long long bytes : {1, 63, 64, 65, 1023, 1024, 1025, 2047, 2048, 8191, 8192, 8193, 70'000})
    for (const PieceOf whose : {PieceOf::own_memory, PieceOf::source_of_peer, PieceOf::target_of_peer})
      expect_all_alignments(bytes, 5, [&](void* to, const void* from, long long n) { copy_piece(to, from, n, whose); });
  for (const CopyMethod way : ways())
    expect_all_alignments(1'000'003, 31, [&](void* to, const void* from, long long n) { copy_row(to, from, n, way); });
  expect_all_alignments(large_traffic_min(), 64,
                        [](void* to, const void* from, long long n) { copy_piece(to, from, n); });
}

/// Dimensions as (extent, source stride, target stride), in elements of 8 bytes.
BlockShape shape_of_dims(const std::vector<std::array<long long, 3>>& dims) {
  CopyBlock block;
  for (const auto& [extent, source, target] : dims) {
    block.extents[block.dims] = extent;
    block.source_strides[block.dims] = 8 * source;
    block.target_strides[block.dims++] = 8 * target;
  }
  canonicalise(block, 8);
  return shape_of(block, 8);
}

TEST(HostMove, shapes_are_told_apart) {
  EXPECT_EQ(shape_of_dims({}), BlockShape::rows);
  EXPECT_EQ(shape_of_dims({{0, 1, 1}}), BlockShape::empty);
  EXPECT_EQ(shape_of_dims({{9, 1, 1}}), BlockShape::rows);
  EXPECT_EQ(shape_of_dims({{9, -1, -1}}), BlockShape::rows);
  EXPECT_EQ(shape_of_dims({{9, -1, 1}}), BlockShape::elements);
  EXPECT_EQ(shape_of_dims({{5, 20, 30}, {9, 1, 1}}), BlockShape::rows);
  EXPECT_EQ(shape_of_dims({{5, 20, 1}, {9, 1, 30}}), BlockShape::tiles);
  EXPECT_EQ(shape_of_dims({{5, 20, -1}, {9, -1, 30}}), BlockShape::tiles);
  EXPECT_EQ(shape_of_dims({{5, 20, 1}, {9, 2, 3}}), BlockShape::elements);
  EXPECT_EQ(shape_of_dims({{5, 20, 1}, {9, 2, 30}}), BlockShape::rows) << "elements that lie lines apart";
  EXPECT_EQ(shape_of_dims({{5, 1, 0}}), BlockShape::elements) << "a sum has an order";
}

TEST(HostMove, small_traffic_is_left_to_the_caches) {
  EXPECT_EQ(copy_method(large_traffic_min() - 1).stores, Stores::plain);
}

/// A core that reads what was put makes the next put try another way, in the middle of a row too: what arrives is what
/// was sent, and is there when it is said to be.
TEST(HostMove, long_pieces_to_a_peer_that_reads_them_arrive_whole) {
  static constexpr long long bytes_max = 3 << 20;
  std::vector<unsigned char> target(bytes_max + 64), source(bytes_max + 64);
  std::atomic<int> sent{0}, seen{0};
  std::atomic<long long> wrong{0};
  constexpr int rounds = 60;
  // Sizes about where samples begin and stretches end; shifts let the two sides lie differently in their lines.
  const auto bytes_of = [](int round) {
    constexpr long long sizes[] = {64 << 10, 128 << 10, 256 << 10, 384 << 10, 1 << 20, 2 << 20, 3 << 20};
    return std::min(bytes_max, sizes[round % 7] + round % 3 - 1);
  };
  std::thread reader([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (sent.load(std::memory_order_acquire) < round) std::this_thread::yield();
      const long long bytes = bytes_of(round), shift = round % 5 * 13;
      for (long long i = 0; i < bytes; ++i)
        if (target[shift + i] != static_cast<unsigned char>(i * 7 + round + i / 251)) ++wrong;
      seen.store(round, std::memory_order_release);
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    const long long bytes = bytes_of(round);
    unsigned char* const from = source.data() + round % 4 * 16;
    for (long long i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 7 + round + i / 251);
    copy_piece(target.data() + round % 5 * 13, from, bytes, PieceOf::target_of_peer);
    sent.store(round, std::memory_order_release);
    while (seen.load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(HostMove, pieces_as_large_as_the_caches_are_copied_whole_and_nothing_else) {
  // So large that both ways are tried, however large the caches are; the ends lie within lines.
  constexpr std::size_t guard = 64;
  for (const long long bytes : {(17LL << 20) + 11, (20LL << 20) - 3}) {
    Bytes source(std::size_t(bytes) + 2 * guard), target(source.size(), 0xa5);
    Random random{std::uint64_t(bytes)};
    for (std::size_t i = 0; i + 8 <= source.size(); i += 8) {
      const std::uint64_t value = random();
      std::memcpy(&source[i], &value, 8);
    }
    for (const std::size_t shift : {std::size_t(0), std::size_t(13)}) {
      std::fill(target.begin(), target.end(), 0xa5);
      unsigned char* const to = target.data() + guard - shift;
      copy_piece(to, source.data() + guard, bytes, PieceOf::own_memory, 1LL << 40);
      EXPECT_EQ(std::memcmp(to, source.data() + guard, std::size_t(bytes)), 0) << bytes;
      EXPECT_TRUE(std::all_of(target.data(), to, [](unsigned char byte) { return byte == 0xa5; }));
      EXPECT_TRUE(
          std::all_of(to + bytes, target.data() + target.size(), [](unsigned char byte) { return byte == 0xa5; }));
    }
  }
}

}  // namespace
}  // namespace tranship
