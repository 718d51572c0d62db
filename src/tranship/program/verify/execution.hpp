// Private: Execution runs a program once on symbols, for several launches and one size of chunks. Steps run in one
// order that their waits allow; the findings hold for every order (see verify.hpp).
//
// execution.cpp has the launches, steps.cpp the steps, accesses.cpp the reads and writes, and reports.cpp the texts.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tranship/program/collective.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/program/verify/counter.hpp>
#include <tranship/program/verify/cuts.hpp>
#include <tranship/program/verify/wiring.hpp>

namespace tranship::verification {

/// A rank launches again at once, after a meeting of all ranks, or as LaunchedBy::mscclpp says.
enum class Relaunch : std::uint8_t { at_once, together, as_mscclpp };

class Execution {
 public:
  Execution(const Program& program, const VerifyOptions& options, const CollectiveMeaning& meaning, Cut cut,
            Relaunch relaunch, Verification& out);

  void run();

 private:
  struct Barrier {
    std::vector<int> arrived;
  };

  struct Block {
    Rank rank = 0;
    int index = 0;
    Timeline timeline = 0;
    const std::vector<Step>* steps = nullptr;
    std::size_t at = 0, inner = 0;
    Index iteration = 0;
    int launch = 0;
    bool is_done = false, is_queued = false, has_arrived = false;
    Time time = 0;        ///< number of actions so far
    Time met = 0;         ///< number of actions before its threads last met
    Index units_max = 0;  ///< largest step since then, in units
    Knowledge knowledge;
    std::size_t waited = 0;  ///< ids, or sources of packets, of its step that it has waited for
  };

  struct Proxy {
    Timeline timeline = 0;
    Time time = 0;
    Knowledge knowledge;
  };

  struct Host {
    Time time = 0;
    VectorClock clock;  ///< what all blocks knew at the beginning of the launch
  };

  struct Actor {
    Stamp stamp;
    const Knowledge* knowledge;
    Time met;  ///< the actor's own actions before this time are complete
  };

  struct Range {
    Rank rank;
    int memory;
    Index begin, end;
    OperandFormat format;
  };
  /// Units of the data being moved.
  struct Piece {
    Index begin, end;
    Value value;  ///< as if the first unit of the operand were at place 0
    Links links;
  };
  using Pieces = std::vector<Piece>;

  /// A block that waits until a range holds packets.
  struct PacketWait {
    int block;
    Range range;
  };

  /// The wait of a block that never ends, and the blocks that could end the wait.
  struct Stuck {
    std::string text;
    std::vector<int> producers;
    bool are_lost = false;  ///< packets of a later launch have overwritten the awaited ones
  };
  /// Packets that a block would write in a step that it has not executed.
  struct Promise {
    int block, launch;
    int memory;
    Index begin, end;
  };

  Rank size() const { return static_cast<Rank>(program_.ranks.size()); }
  const RankProgram& of(Rank rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }
  Block& block_of(int id) { return blocks_[static_cast<std::size_t>(id)]; }
  const Block& block_of(int id) const { return blocks_[static_cast<std::size_t>(id)]; }
  Host& host_of(Rank rank) { return hosts_[static_cast<std::size_t>(rank)]; }
  const Host& host_of(Rank rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  int first_block(Rank rank) const { return first_block_[static_cast<std::size_t>(rank)]; }
  Proxy& proxy_of(Rank rank, std::int32_t channel) {
    return proxies_[static_cast<std::size_t>(first_proxy_[static_cast<std::size_t>(rank)]) +
                    static_cast<std::size_t>(channel)];
  }
  Counter& counter(int id) { return counters_[static_cast<std::size_t>(id)]; }
  Memory& memory_of(Rank rank, int memory) {
    return memories_[static_cast<std::size_t>(rank) * buffer_kinds + static_cast<std::size_t>(memory)];
  }

  // execution.cpp: set-up, launches, results
  void set_up();
  void count_signals(int block, const Step& step, Index times);
  void check_barriers();
  void check_loops();
  void check_reductions();
  void spend(Index work);
  void meet(Block& block);
  void queue(int block);
  void act_between_launches(Rank rank, int launch);
  void begin_launch(Rank rank, int launch);
  void end_launch(Rank rank, int launch);
  void share_all();
  void write_inputs(Rank rank, int launch, const Actor& actor);
  void read_outputs(Rank rank, int launch, const Actor& actor);
  Rank source_of(Rank rank, int launch, int memory, Index begin);
  void check_result(Rank rank, int launch, int memory, Index begin, Index promised);

  // steps.cpp
  void advance(int id);
  void step_over(Block& block);
  bool execute(int id, const Step& step, const Pipeline* loop);
  void issue(int block, int id, Snapshot snapshot);
  template <class CounterOf>
  bool wait_for(int id, const Step& step, CounterOf&& counter_of);
  bool come_to_barrier(int id, const Step& step);
  Proxy& ask(const Block& block, std::int32_t channel);
  Snapshot published_by(const Block& block) const;
  Snapshot executed_by(const Block& block) const;
  Snapshot known_by(const Proxy& proxy) const;
  Actor actor_of(int id, const Block& block) const;
  Actor actor_of_proxy(int id, const Block& block, std::int32_t channel);
  bool move(int id, const Step& step, const Pipeline* loop);
  bool have_packets_come(int id, const Step& step, const StepShape& shape, Part part);
  std::int32_t channel_of_target(Rank rank, const Step& step, std::size_t target);
  void check_targets(const Step& step, const StepShape& shape, Part part, const Block& block);
  Part part_of(const Block& block, const Step& step, const Pipeline* loop);

  // accesses.cpp
  Range range_of(Rank own, const Operand& operand, OperandShape shape, Rank rank, Part part, int launch) const;
  template <class F>
  void for_each_range(Rank own, const Operand& operand, OperandShape shape, Part part, int launch, F&& f) const;
  bool have_come(const Range& range, int launch) const;
  bool follows(const Actor& actor, const Stamp& before, bool strongly, const Links& links = nullptr);
  void read(const Step& step, const StepShape& shape, std::size_t source, Part part, Block& block, const Actor& actor,
            Pieces& sum);
  void combine(Pieces& sum, Pieces more, const Step& step);
  void write(const Step& step, const StepShape& shape, std::size_t target, Part part, Block& block, const Actor& actor,
             const Pieces& pieces);
  void write_packets(const Range& range, Block& block, const Actor& actor, const Pieces& pieces);
  void write_plain(const Range& range, const Actor& actor, Value value, const Links& links);
  void check_read(Rank rank, int memory, Index from, Cell& cell, const Actor& actor);
  void check_write(Rank rank, int memory, Index from, const Cell& cell, const Actor& actor, bool strongly,
                   const Links& links);
  void use_scratch(const Range& range, const Block& block);
  void note_read(Cell& cell, const Actor& actor);
  void forget(Cell& cell);

  // reports.cpp
  void found(Finding::Kind kind, Rank rank, int block, Index step, std::string text,
             Finding::Missing missing = Finding::Missing::none);
  bool is_said(Finding::Kind kind, Rank rank, int block, Index step,
               Finding::Missing missing = Finding::Missing::none) const {
    return said_.contains({kind, rank, block, step, missing});
  }
  std::string name(const Block& block, Index step) const;
  std::string name(const Stamp& stamp) const;
  std::string place_text(Rank rank, int memory, Index begin, Index end) const;
  Finding::Missing missing_for(const Actor& actor, bool writes, const Stamp& before, bool wrote) const;
  void report_race(const Actor& actor, bool writes, const Stamp& before, bool wrote, Rank rank, int memory, Index begin,
                   Index end);
  const Step& step_of(const Block& block) const;
  Stuck stuck(int id);
  void note_promises();
  void report_deadlock();
  void report_unpaired();
  /// The last block and step that issue what the counter counts.
  std::optional<std::pair<int, Index>> last_issuer(int counter) const;
  void report_left(int counter, Rank rank, const std::string& what, const char* of_what, Index initial);

  const Program& program_;
  const VerifyOptions& options_;
  const CollectiveMeaning& meaning_;
  Cut cut_;
  Relaunch relaunch_;
  Verification& out_;

  Wiring wiring_;
  std::vector<Block> blocks_;
  std::vector<Proxy> proxies_;
  std::vector<Host> hosts_;
  std::vector<int> first_block_, first_proxy_;
  Timeline first_host_ = 0;
  std::vector<Memory> memories_;
  std::vector<BufferPlace> places_;  ///< places of each buffer of each rank
  std::vector<int> uses_of_scratch_;
  std::vector<Counter> counters_;
  std::vector<std::map<int, Barrier>> barriers_;
  std::vector<std::vector<PacketWait>> waiting_for_packets_;
  std::vector<int> running_;
  Rank ended_ = 0;
  std::deque<int> queue_;
  Index stamps_ = 0;  ///< stamps held by all cells

  ValueTable values_;
  Reduction reduction_ = Reduction::sum;  ///< the reduction of all steps that combine
  std::map<int, Rank> sources_;           ///< by launch, for broadcasts: the rank whose input was sent
  std::set<std::tuple<Finding::Kind, Rank, int, Index, Finding::Missing>> said_;
  std::map<int, Rank> wrong_;     ///< by launch: ranks with a wrong output
  std::set<Rank> wrong_outputs_;  ///< ranks already reported
  std::vector<std::vector<Promise>> promises_;
};

inline constexpr int scratch_memory = 2;

template <class F>
void Execution::for_each_range(Rank own, const Operand& operand, OperandShape shape, Part part, int launch,
                               F&& f) const {
  switch (shape.where) {
    case Where::here:
      return f(range_of(own, operand, shape, own, part, launch));
    case Where::peer:
      return f(range_of(own, operand, shape, of(own).remote_buffers[static_cast<std::size_t>(operand.via)].rank, part,
                        launch));
    case Where::group:
      for (const Rank rank : of(own).switches[static_cast<std::size_t>(operand.via)].ranks)
        f(range_of(own, operand, shape, rank, part, launch));
  }
}

}  // namespace tranship::verification
