// Writes to what a peer may have read: nothing is left out, samples decide, and what is combined there is right by
// either kind of stores.
#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/kernels/host/peer_writes.hpp>
#include <tranship/kernels/host/reduce.hpp>

namespace tranship::test {
namespace {

/// Every byte once, in order, whatever is believed at the beginning; nothing is sampled before that is used up.
TEST(PeerWrites, are_cut_into_parts_without_holes) {
  if (long_put_bytes_min() == 0) GTEST_SKIP() << "one kind of stores";
  for (const Stores believed : {Stores::plain, Stores::streaming})
    for (const long long believed_bytes : {0LL, 1LL, 50'000LL, 1LL << 30})
      for (const long long bytes : {1LL, 16'384LL, 16'385LL, 65'536LL, 300'001LL, 5'000'000LL}) {
        WriteChoice choice{.stores = believed, .believed_bytes = believed_bytes};
        long long end = 0;
        bool has_sampled = false, ends_in_lines = true;
        write_to_peer({.bytes = bytes}, choice, [&](const WrittenPart& part) {
          EXPECT_EQ(part.begin, end);
          EXPECT_GT(part.bytes, 0);
          end += part.bytes;
          if (end % 64 != 0) ends_in_lines = false;
          if (!part.clock) return;
          has_sampled = true;
          EXPECT_GT(end, believed_bytes - 64) << "sampled before so many were written";
          part.clock->restart();
        });
        EXPECT_EQ(end, bytes);
        EXPECT_EQ(has_sampled, bytes > 16'384 && bytes >= 2 * believed_bytes) << bytes << " of " << believed_bytes;
        if (bytes % 64 == 0) EXPECT_EQ(ends_in_lines, true);
        if (!has_sampled) EXPECT_EQ(choice.stores, believed);
      }
}

/// Samples say what is slower: a callback that takes its time over plain stores is answered by streaming, and back.
TEST(PeerWrites, follow_their_samples) {
  if (long_put_bytes_min() == 0) GTEST_SKIP() << "one kind of stores";
  WriteChoice choice;
  const auto stores_of_most = [&](Stores slow) {
    long long streamed = 0;
    constexpr long long bytes = 4 << 20;
    write_to_peer({.bytes = bytes}, choice, [&](const WrittenPart& part) {
      if (part.stores == Stores::streaming) streamed += part.bytes;
      if (!part.clock) return;
      const auto begin = std::chrono::steady_clock::now();
      const auto slowness = std::chrono::microseconds(part.stores == slow ? 2000 : 50);
      while (std::chrono::steady_clock::now() - begin < slowness) {
      }
    });
    return 2 * streamed > bytes ? Stores::streaming : Stores::plain;
  };
  // Of several tries, since a sample that another process interrupts says something else.
  const auto follows = [&](Stores slow, Stores fast) {
    for (int i = 0; i < 10; ++i)
      if (stores_of_most(slow) == fast) return true;
    return false;
  };
  EXPECT_TRUE(follows(Stores::plain, Stores::streaming));
  EXPECT_TRUE(follows(Stores::streaming, Stores::plain));
}

/// As the combiner alone, whatever is chosen: with a source that is a target, with targets that begin anywhere in their
/// lines, and with nothing written beside them.
TEST(PeerWrites, of_what_is_combined_give_the_same) {
  constexpr std::size_t guard = 64;
  std::mt19937_64 random{7};
  for (const ElementType type : {ElementType::f32, ElementType::i8, ElementType::f16, ElementType::c64})
    for (const Stores stores : {Stores::plain, Stores::streaming})
      for (const long long believed_bytes : {0LL, 1LL << 30})
        for (const std::size_t bytes :
             {std::size_t(16), std::size_t(65'536), std::size_t(65'536 + 208), std::size_t(300'000)})
          for (const bool is_in_place : {false, true}) {
            const std::size_t size = bytes + 3 * guard, shift = 16 * (random() % 4);
            std::vector<std::byte> arrays[4];  // two sources, a target of this rank, one of a peer
            for (std::vector<std::byte>& one : arrays) {
              one.resize(size);
              for (std::byte& value : one) value = static_cast<std::byte>(random() % 60);
            }
            std::vector<std::byte> wanted[4];
            std::copy(std::begin(arrays), std::end(arrays), std::begin(wanted));
            const std::size_t peer = is_in_place ? 1 : 3;
            const detail::Combiner combine(Reduction::sum, type);
            const auto at = [&](std::vector<std::byte>& one) { return one.data() + guard + shift; };
            const std::byte* sources[] = {at(wanted[0]), at(wanted[1])};
            std::byte* targets[] = {at(wanted[2]), at(wanted[peer])};
            combine({.sources = sources, .source_count = 2, .targets = targets, .target_count = 2, .bytes = bytes});

            const std::byte* own_sources[] = {at(arrays[0]), at(arrays[1])};
            std::byte* own_targets[] = {at(arrays[2]), at(arrays[peer])};
            WriteChoice choice{.stores = stores, .believed_bytes = believed_bytes};
            detail::combine_for_peers(combine,
                                      {.sources = own_sources,
                                       .targets = own_targets,
                                       .is_of_peer = [](std::size_t i) { return i == 1; },
                                       .bytes = bytes},
                                      choice);
            for (int i = 0; i < 4; ++i)
              EXPECT_TRUE(arrays[i] == wanted[i]) << "array " << i << ", " << bytes << " bytes, " << name_of(stores);
          }
}

}  // namespace
}  // namespace tranship::test
