// The kernels of the contract of drivers, for lanes of a card (kernels.cu) and of a software card (kernels.cpp).
#pragma once

#include <tranship/kernels/shared.hpp>
#include <tranship/lanes/lane.hpp>

namespace tranship::contract {

using Word = unsigned long long;

struct alignas(16) Wide {
  Word low, high;
};

/// Says that it runs, and runs until `word` is not 0.
struct HoldArgs {
  const Word* word;
  Word* runs;
};
template <class Lane>
TRANSHIP_SHARED void hold(const Lane& lane, const HoldArgs& args) {
  if (lane.index() != 0) return;
  lane.store_word(args.runs, Word(1));
  while (lane.load_word(args.word) == 0) lane.pause();
}

/// Adds to all words.
struct AddArgs {
  unsigned* words;
  int count;
  unsigned value;
};
template <class Lane>
TRANSHIP_SHARED void add(const Lane& lane, const AddArgs& args) {
  for (int i = lane.block_index() * lane.lanes() + lane.index(); i < args.count; i += lane.blocks() * lane.lanes())
    lane.store(args.words + i, lane.template load<unsigned>(args.words + i) + args.value);
}

/// Copies vectors of 16 bytes, of which each lane has the one after its neighbour's.
struct CopyArgs {
  const Wide* from;
  Wide* to;
  int count;
  int stride;  ///< vectors from one to the next
};
template <class Lane>
TRANSHIP_SHARED void copy(const Lane& lane, const CopyArgs& args) {
  for (int i = lane.block_index() * lane.lanes() + lane.index(); i < args.count; i += lane.blocks() * lane.lanes())
    lane.store(args.to + i, lane.template load<Wide>(args.from + 1ll * i * args.stride));
}

/// Sums the words of each block by shared memory, of whose lanes there are 256 at most, and adds them to `sum`.
struct SumArgs {
  const unsigned* words;
  int count;
  unsigned* sum;
};
struct SumRoom {
  unsigned words[256];
};
template <class Lane>
TRANSHIP_SHARED void sum(const Lane& lane, const SumArgs& args) {
  SumRoom& room = lane.template shared<SumRoom>();
  unsigned mine = 0;
  for (int i = lane.block_index() * lane.lanes() + lane.index(); i < args.count; i += lane.blocks() * lane.lanes())
    mine += lane.template load<unsigned>(args.words + i);
  lane.store(&room.words[lane.index()], mine);
  for (int half = lane.lanes() / 2; half > 0; half /= 2) {
    lane.block().sync();
    if (lane.index() < half)
      lane.store(&room.words[lane.index()], lane.template load<unsigned>(&room.words[lane.index()]) +
                                                lane.template load<unsigned>(&room.words[lane.index() + half]));
  }
  if (lane.index() == 0) lane.atomic_add(args.sum, lane.template load<unsigned>(&room.words[0]));
}

/// The same words in reverse order of each block, by shared memory whose size the launch gives.
struct ReverseArgs {
  unsigned* words;
};
template <class Lane>
TRANSHIP_SHARED void reverse(const Lane& lane, const ReverseArgs& args) {
  auto* const room = static_cast<unsigned*>(lane.dynamic_shared());
  unsigned* const mine = args.words + lane.block_index() * lane.lanes();
  lane.store(room + lane.index(), lane.template load<unsigned>(mine + lane.index()));
  lane.block().sync();
  lane.store(mine + lane.index(), lane.template load<unsigned>(room + lane.lanes() - 1 - lane.index()));
}

/// words[i] is the value of the next lane of the warp; ballots[warp] has a bit for each lane with an odd word.
struct WarpArgs {
  unsigned* words;
  unsigned* ballots;
};
template <class Lane>
TRANSHIP_SHARED void warp(const Lane& lane, const WarpArgs& args) {
  const unsigned mine = lane.template load<unsigned>(args.words + lane.index());
  const unsigned odd = lane.ballot(mine % 2 == 1);
  const int count = lane.warp().lanes();
  const unsigned next = lane.shuffle(mine, (lane.warp().lane() + 1) % count);
  lane.store(args.words + lane.index(), next);
  if (lane.warp().lane() == 0) lane.store(args.ballots + lane.index() / 32, odd);
}

/// Each block waits until as many as `blocks`, of any launches, have come.
struct MeetArgs {
  unsigned* arrived;
  unsigned blocks;
};
template <class Lane>
TRANSHIP_SHARED void meet(const Lane& lane, const MeetArgs& args) {
  if (lane.index() != 0) return;
  lane.atomic_add(args.arrived, 1u);
  while (lane.load_word(args.arrived) < args.blocks) lane.pause();
}

/// Stores a word of 4 or 8 bytes at any address.
struct PokeArgs {
  unsigned char* at;
  int bytes;
};
template <class Lane>
TRANSHIP_SHARED void poke(const Lane& lane, const PokeArgs& args) {
  if (lane.index() != 0) return;
  if (args.bytes == 4)
    lane.store(args.at, 7u);
  else
    lane.store(args.at, Word(7));
}

struct NoArgs {
  int unused;
};
template <class Lane>
TRANSHIP_SHARED void trap(const Lane& lane, const NoArgs&) {
  if (lane.index() == 0) detail::trap();
}

}  // namespace tranship::contract

/// X(name, Args, shared bytes)
#define TRANSHIP_CONTRACT_KERNELS(X) \
  X(hold, HoldArgs, 0)               \
  X(add, AddArgs, 0)                 \
  X(copy, CopyArgs, 0)               \
  X(sum, SumArgs, sizeof(SumRoom))   \
  X(reverse, ReverseArgs, 0)         \
  X(warp, WarpArgs, 0)               \
  X(meet, MeetArgs, 0)               \
  X(poke, PokeArgs, 0)               \
  X(trap, NoArgs, 0)
