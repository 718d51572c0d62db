// Arrays combined in one pass are, bit by bit, what they are one after the other; packets carry what was put in them,
// and are taken only with the right flag.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/kernels/host/packets.hpp>
#include <tranship/kernels/host/reduce.hpp>

namespace tranship::detail {
namespace {

using Bytes = std::vector<std::byte>;

struct alignas(64) Line {
  std::byte bytes[64];
};

constexpr ElementType types[] = {
#define TRANSHIP_ELEMENT(name, size, numpy, part) ElementType::name,
#include <tranship/base/elements.def>
#undef TRANSHIP_ELEMENT
};
constexpr Reduction reductions[] = {Reduction::sum,     Reduction::product, Reduction::minimum, Reduction::maximum,
                                    Reduction::bit_and, Reduction::bit_or,  Reduction::bit_xor};

Bytes random_bytes(SplitMix64& random, std::size_t count) {
  Bytes out(count);
  for (std::byte& byte : out) byte = std::byte(random.below(256));
  return out;
}

/// Some numbers that are none, and long doubles that are numbers.
Bytes random_elements(SplitMix64& random, ElementType type, std::size_t bytes) {
  Bytes out = random_bytes(random, bytes);
  const int width = size_bytes(type);
  if (type == ElementType::f128 || type == ElementType::c256)
    for (std::size_t at = 0; at < bytes; at += 16) {
      const long double value = static_cast<long double>(random.below(1000)) / 8;
      std::memset(&out[at], 0, 16);
      std::memcpy(&out[at], &value, 10);
    }
  else if (width >= 4 && random.below(2) == 0)
    std::memset(&out[random.below(bytes / std::size_t(width)) * std::size_t(width)], 0xff, std::size_t(width));
  return out;
}

TEST(Combiner, GivesWhatOneAfterTheOtherGives) {
  SplitMix64 random{1};
  int cases = 0;
  for (const ElementType type : types)
    for (const Reduction reduction : reductions) {
      if (!can_reduce(reduction, type)) continue;
      const Combiner combine(reduction, type);
      for (const std::size_t units : {1, 3, 9, 70, 600}) {
        // Whole elements, also where they end within a vector.
        const std::size_t width(size_bytes(type)), bytes = units * 32 + (width < 16 ? width * random.below(3) : 0);
        const std::size_t whole = bytes / width * width;
        const std::size_t sources = 2 + random.below(7), targets = 1 + random.below(3);
        std::vector<Bytes> from;
        std::vector<const std::byte*> from_at;
        for (std::size_t i = 0; i < sources; ++i) from.push_back(random_elements(random, type, whole));
        for (const Bytes& one : from) from_at.push_back(one.data());
        Bytes expected = from[0];
        for (std::size_t i = 1; i < sources; ++i) reduce_into(expected.data(), from[i].data(), whole, reduction, type);

        std::vector<Bytes> to(targets, Bytes(whole + 2, std::byte(0x5a)));
        std::vector<std::byte*> to_at;
        for (Bytes& one : to) to_at.push_back(one.data() + 1);
        const std::size_t same = random.below(2) == 0 ? random.below(sources) : sources;  // a source as a target
        if (same < sources) to_at.push_back(from[same].data());
        combine({.sources = from_at.data(),
                 .source_count = sources,
                 .targets = to_at.data(),
                 .target_count = to_at.size(),
                 .bytes = whole});
        for (const Bytes& one : to) {
          EXPECT_EQ(std::memcmp(one.data() + 1, expected.data(), whole), 0)
              << name_of(type) << " " << name_of(reduction) << " of " << sources << ", " << whole << " bytes";
          EXPECT_TRUE(one.front() == std::byte(0x5a) && one.back() == std::byte(0x5a));
        }
        if (same < sources) EXPECT_EQ(from[same], expected);
        ++cases;
      }
    }
  EXPECT_GT(cases, 200);
}

TEST(Combiner, TakesPacketsAsItTakesWhatIsInThem) {
  SplitMix64 random{3};
  int cases = 0;
  for (const ElementType type : types)
    for (const Reduction reduction : reductions) {
      const Combiner combine = can_reduce(reduction, type) ? Combiner(reduction, type) : Combiner();
      if (!combine.takes_packets()) continue;
      for (const std::size_t units : {1, 2, 7, 64}) {
        const std::size_t bytes = units * packet_unit_bytes;
        const Bytes plain = random_elements(random, type, bytes), sent = random_elements(random, type, bytes);
        std::vector<Line> memory(units);
        auto* const packets = reinterpret_cast<std::byte*>(memory.data());
        pack(packets, sent.data(), bytes, 7);
        for (const bool packets_come_first : {false, true}) {
          Bytes expected(bytes);
          const std::byte* const sources[] = {packets_come_first ? sent.data() : plain.data(),
                                              packets_come_first ? plain.data() : sent.data()};
          std::byte* const targets[] = {expected.data()};
          combine({.sources = sources, .source_count = 2, .targets = targets, .target_count = 1, .bytes = bytes});
          Bytes out = plain;  // in place
          const CombinedPackets pair{.plain = out.data(),
                                     .packets = packets,
                                     .target = out.data(),
                                     .bytes = bytes,
                                     .flag = 7,
                                     .packets_come_first = packets_come_first};
          EXPECT_EQ(combine.with_packets(pair), bytes);
          EXPECT_EQ(out, expected) << name_of(type) << " " << name_of(reduction);
        }
        // A packet that has not come holds its unit back, and what lies behind it.
        const std::size_t late = random.below(units);
        pack(packets + 2 * late * packet_unit_bytes, sent.data(), packet_unit_bytes, 6);
        Bytes out(bytes, std::byte(0x5a));
        EXPECT_EQ(combine.with_packets(
                      {.plain = plain.data(), .packets = packets, .target = out.data(), .bytes = bytes, .flag = 7}),
                  late * packet_unit_bytes);
        for (std::size_t i = late * packet_unit_bytes; i < bytes; ++i) EXPECT_EQ(out[i], std::byte(0x5a));
        ++cases;
      }
    }
  EXPECT_GT(cases, 150);
}

TEST(Combiner, WaitsForPacketsAsLongAsItIsTold) {
  constexpr std::size_t bytes = 200 * packet_unit_bytes;
  SplitMix64 random{3};
  const Bytes plain = random_elements(random, ElementType::u64, bytes),
              sent = random_elements(random, ElementType::u64, bytes);
  std::vector<Line> memory(2 * bytes / sizeof(Line));
  auto* const packets = reinterpret_cast<std::byte*>(memory.data());
  const Combiner combine(Reduction::sum, ElementType::u64);
  Bytes out(bytes);
  const auto combine_from = [&](std::size_t done, int looks) {
    return combine.with_packets({.plain = plain.data() + done,
                                 .packets = packets + 2 * done,
                                 .target = out.data() + done,
                                 .bytes = bytes - done,
                                 .flag = 7,
                                 .looks = looks});
  };
  EXPECT_EQ(combine_from(0, 1000), 0u);
  std::thread sender([&] {
    for (std::size_t at = 0; at < bytes; at += packet_unit_bytes)
      pack(packets + 2 * at, sent.data() + at, packet_unit_bytes, 7);
  });
  for (std::size_t done = 0; done < bytes;) done += combine_from(done, 1'000'000);
  sender.join();
  Bytes expected = plain;
  reduce_into(expected.data(), sent.data(), bytes, Reduction::sum, ElementType::u64);
  EXPECT_EQ(out, expected);
}

TEST(Packets, AreTakenUpToTheFirstOfAnotherFlag) {
  SplitMix64 random{2};
  for (const std::size_t units : {1, 2, 5, 64}) {
    const std::size_t bytes = units * packet_unit_bytes;
    const Bytes data = random_bytes(random, bytes);
    std::vector<Line> memory(units);
    auto* const packets = reinterpret_cast<std::byte*>(memory.data());
    pack(packets, data.data(), bytes, 7);
    std::uint32_t words[2];
    std::memcpy(words, packets, sizeof words);
    EXPECT_EQ(words[1], 7u);
    EXPECT_EQ(std::memcmp(words, data.data(), 4), 0);

    Bytes out(bytes, std::byte(0));
    EXPECT_EQ(unpack(packets, out.data(), bytes, 7), bytes);
    EXPECT_EQ(out, data);
    EXPECT_EQ(unpack(packets, out.data(), bytes, 8), 0u);
    // One packet of any unit that has not come holds the unit back, and what lies behind it.
    const std::size_t late = random.below(bytes / 4);
    const std::uint32_t old = 6;
    std::memcpy(packets + 8 * late + 4, &old, sizeof old);
    out.assign(bytes, std::byte(0));
    const std::size_t taken = late * 4 / packet_unit_bytes * packet_unit_bytes;
    EXPECT_EQ(unpack(packets, out.data(), bytes, 7), taken);
    EXPECT_EQ(std::memcmp(out.data(), data.data(), taken), 0);
    EXPECT_TRUE(taken == bytes || out[taken] == std::byte(0));
    unpack_any(packets, out.data(), bytes);
    EXPECT_EQ(out, data);
  }
}

}  // namespace
}  // namespace tranship::detail
