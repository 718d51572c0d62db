// Private: ProgramMachine executes the placed steps of one rank (program_steps.hpp). Thread blocks are state machines;
// the thread of the rank steps them in turn, each as far as it can go.
//
// No step blocks. A step whose input is missing, or that waits for transfers to peers that are not reached, is retried
// later. When no other block can go on, one quiet completes the transfers of all blocks that wait for theirs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include <tranship/base/byte_map.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/kernels/host/peer_writes.hpp>
#include <tranship/run/program_steps.hpp>

namespace tranship {

class ProgramMachine {
 public:
  /// One end of a channel: the word that this rank waits for, and the peer's word that it raises. Both count signals.
  struct Wire {
    Rank peer = 0;
    Symmetric<std::uint64_t> in, out;
    std::uint64_t* out_at = nullptr;  ///< for a peer that is reached
    std::uint64_t seen = 0, sent = 0;
  };
  struct Setup {
    PlacedProgram program;
    Symmetric<std::byte> memories[memory_count];
    /// Launches alternate between the beginning of the scratch memory and this offset; 0: always the beginning.
    Index second_scratch_bytes = 0;
    std::vector<Wire> wires;
    std::vector<Index> semaphores;
  };

  ProgramMachine(World& world, Setup setup, CallSite where);

  /// Makes this rank's steps use memory at `at` instead of a memory in the symmetric heap that no peer touches.
  void use(int memory, std::byte* at) noexcept {
    if (bases_[0][own_base(memory)] == at) return;
    for (std::vector<std::byte*>& bases : bases_) bases[own_base(memory)] = at;
    place_units();
  }

  void launch(CallSite where);

  Index steps() const noexcept { return steps_; }
  Index polls() const noexcept { return polls_; }

 private:
  struct Block {
    const PlacedStep* first = nullptr;
    const PlacedStep* at = nullptr;
    int index = 0;
    bool is_completing = false;  ///< it waits for a quiet
    bool has_arrived = false;    ///< it has arrived at a barrier
    bool has_fetched = false;    ///< its gets complete with the quiet
    Index completing_since = 0;  ///< value of quiets_ when it began to wait for one
    Index iteration = 0;
    Index loop_unit_bytes = 0;
    Index done = 0;                       ///< progress of the step: ids, or bytes of data
    Index looked = 0;                     ///< packets of the step that have come, where each is looked at separately
    Index completed = 0;                  ///< pairs of the step whose gets have completed
    Index round = 0;                      ///< round of the barrier at which it has arrived
    const std::uint64_t* word = nullptr;  ///< word that will change before its step can go on, if it looks at one
    std::uint64_t word_seen = 0;
    std::vector<std::byte> fetched = {};
  };
  /// A move of one unit into one target, with all addresses for launches on one half of the scratch.
  struct UnitMove {
    enum How : std::uint8_t { pack, copy, take, combine };
    How how = pack;
    const PlacedStep* step = nullptr;
    std::uint32_t from = 0, to = 0;     ///< operands; those that are combined are neighbours
    detail::CombinedPackets pair = {};  ///< moves that do not combine use one source
  };
  struct Barrier {
    int arrived = 0;
    Index round = 0;
  };
  /// Bytes of data of each operand of a step.
  struct Part {
    Index begin = 0, bytes = 0;
  };

  std::size_t own_base(int memory) const { return std::size_t(world_.rank()) * memory_count + std::size_t(memory); }
  void find_units();
  void place_units();
  bool move_units();
  void go_on(CallSite where);

  /// Steps every block as far as it can go. Returns true when a block made progress, or none is left.
  bool pass();
  bool advance(Block& block);
  bool may_go_on() const;
  void wait(CallSite where);
  void describe(const Block& block);
  Rank maker_of_missing(const Block& block, const PlacedStep& step) const;

  bool come_to_barrier(Block& block, const PlacedStep& step);
  bool signal(Block& block, const PlacedStep& step);
  bool take_signals(Block& block, const PlacedStep& step);
  bool has_come_soon(const Block& block) const;
  bool acquire(Block& block, const PlacedStep& step);
  bool flush(Block& block);
  bool complete(Block& block);
  void quiet();
  bool must_complete_before(Rank peer) const;

  static Part part_of(const Block& block, const PlacedStep& step);
  std::byte* address(const PlacedOperand& operand, Index begin) const {
    return base_[operand.base] + operand.offset + (operand.format == OperandFormat::plain ? begin : 2 * begin);
  }
  Symmetric<std::byte> at_peer(const PlacedOperand& operand, Index begin, Index bytes) const {
    return Symmetric<std::byte>::at(address(operand, begin), bytes);
  }
  void copy(const PlacedStep& step, Part part);
  void combine(const PlacedStep& step, Part part);
  void pack(const PlacedStep& step, Part part);
  bool unpack(Block& block, const PlacedStep& step, Part part);
  void watch_missing(Block& block, const PlacedStep& step, Index begin);
  bool transfer(Block& block, const PlacedStep& step, Part part);
  bool transfer_pairs(Block& block, const PlacedStep& step, Part part);
  bool combine_fetched(Block& block, const PlacedStep& step, Part part);
  bool have_packets_come(Block& block, const PlacedStep& step, Part part);
  const std::byte* combined(const PlacedStep& step, Part part, std::byte* buffer);
  void store(const PlacedStep& step, const PlacedOperand& target, Part part, const std::byte* data);
  void store_packets(const PlacedOperand& target, Part part, const std::byte* data);
  /// Returns true when memory of a peer without an address here has been put to since the last quiet.
  bool is_put(const PlacedOperand& remote, Part part) const;
  void note_put(const PlacedOperand& remote, Part part);
  bool is_fetched(const Block& block, const PlacedStep& step, Part part, Index pair) const;
  void note_reads(const PlacedOperand& operand, Part part) const;
  void note_writes(const PlacedOperand& operand, Part part) const;

  /// Returns true when transfers to and from this peer must be driven, or are simulated.
  bool is_watched(Rank peer) const { return is_watched_ && !context_.completes_at_once(peer); }
  bool is_watched(const PlacedStep& step) const;
  std::uint64_t look_at(Symmetric<std::uint64_t> word, Rank maker) const {
    return is_watched(maker) ? context_.signal_fetch(word, where_) : detail::load_word(word.local());
  }
  std::uint32_t flag() const { return static_cast<std::uint32_t>(launch_); }
  std::byte* strip(std::size_t i) { return strips_.data() + i * std::size_t(strip_bytes); }

  static constexpr Index strip_bytes = 8192;   ///< bytes combined in buffers at a time; they stay in the nearest cache
  static constexpr Index fetch_bytes = 65536;  ///< bytes that are fetched from each peer at a time

  World& world_;
  Context& context_;
  Setup setup_;
  bool is_watched_;        ///< true: some peer is_watched()
  int spins_;              ///< looks at a word before a wait begins
  int passes_;             ///< then passes over all blocks; 0 where ranks share cores and others need the time more
  bool is_alone_ = false;  ///< true: the rank has one block, which spins on words itself
  /// Bases of all memories for launches of even and of odd numbers, which use different halves of the scratch.
  std::vector<std::byte*> bases_[2];
  std::byte* const* base_ = nullptr;  ///< bases_ of this launch
  std::vector<Block> blocks_;
  std::vector<UnitMove> units_[2];  ///< all moves of the only block, for each half; empty where it does anything else
  Index unit_steps_ = 0;
  std::vector<Block*> running_;
  std::vector<Barrier> barriers_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<WriteChoice> choices_;  ///< by step: how it writes to peers
  Index output_traffic_bytes_;        ///< of all ranks; this launch does not read the output again
  std::vector<std::byte> strips_;
  std::vector<Rank> stored_to_;  ///< peers with transfers that a signal to another rank would overtake
  bool has_transfers_ = false;   ///< transfers that no quiet has completed
  struct IsPut {};
  /// Targets of puts that no quiet has completed: by rank, the addresses of memory that has none here.
  std::map<Rank, ByteMap<IsPut>> puts_;
  int completing_ = 0;  ///< number of blocks that wait for a quiet
  Index quiets_ = 0;
  std::uint64_t launch_ = 0;
  CallSite where_;
  Index steps_ = 0, polls_ = 0;
  Index progress_ = 0;  ///< counts progress inside steps
  std::string label_;
  Rank awaited_ = WaitNote::anyone;
};

}  // namespace tranship
