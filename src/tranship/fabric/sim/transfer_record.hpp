// Private: transfers of simulated ranks, and who knows that they are over.
//
// The clock of a rank counts what the rank has done and found out, and who knows its time knows all that it knew then.
// So an end is recorded once, with the rank that has found it out and its time then. What a rank knows remains a clock,
// whatever the number of transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tranship/base/byte_map.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/times.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship {

/// A time of a rank.
struct Moment {
  Rank rank = 0;
  Time time = 0;
  bool is_known_to(const Times& who) const noexcept { return who.of(rank) >= time; }
};

/// What a fence orders: transfers of one context to one target that have more fences before them than others.
struct FencedWay {
  int context = 0;
  Rank target = 0;
  std::uint64_t fences = 0;
};

class TransferRecord {
 public:
  using Ref = std::shared_ptr<TransferRecord>;

  /// `size_bytes` is what it writes that can be seen in parts: 0 of anything but a put.
  TransferRecord(Rank rank, const FencedWay& way, std::size_t size_bytes)
      : rank_(rank), way_(way), size_bytes_(size_bytes) {}
  TransferRecord(const TransferRecord&) = delete;
  TransferRecord& operator=(const TransferRecord&) = delete;
  ~TransferRecord();

  Rank rank() const noexcept { return rank_; }
  /// A fence holds it behind those of its way that have fewer fences before them; `last` is the one that was sent last.
  void order_after(Ref last);
  /// The last of those behind which a fence holds it, or nullptr.
  const Ref& fenced() const noexcept { return fenced_; }
  /// The same for what is sent after `last` with so many fences before it.
  static Ref fenced_before(const Ref& last, std::uint64_t fences) {
    return last && last->way_.fences == fences ? last->fenced_ : last;
  }
  bool is_ordered_before(Rank rank, const FencedWay& way) const noexcept {
    return is_ordered_ && rank_ == rank && way_.context == way.context && way_.target == way.target &&
           way_.fences < way.fences;
  }

  bool is_over_for(const Times& who) const;
  /// All that it writes in [first, end) of its target's heap has been written.
  bool is_written_for(const Times& who, std::size_t first, std::size_t end) const;
  void note_over(const Moment& found) { over_.push_back({found, false}); }
  /// Some of what it has written was seen.
  void note_written(const Moment& found, std::size_t first, std::size_t end);
  /// It is over, and so are those that were ordered before it. `who` found it out and knows what it notes here.
  static void note_over_up_to(const Ref& last, const Times& who, const Moment& found);

 private:
  struct End {
    Moment found;
    bool with_those_before;  ///< all that were ordered before it on its way
  };

  Rank rank_;
  FencedWay way_;
  std::size_t size_bytes_;
  bool is_ordered_ = false;
  Ref before_, fenced_;
  std::vector<End> over_;
  ByteMap<std::vector<Moment>> written_;
  std::size_t written_bytes_ = 0;  ///< that some rank has seen
};

/// What those learn who see what has been written.
struct Told {
  Times known;                            ///< what the writer knew
  TransferRecord::Ref fenced;             ///< over, with those that were ordered before it
  std::vector<TransferRecord::Ref> over;  ///< transfers that are over
  TransferRecord::Ref put;                ///< the put whose bytes they see, or nullptr
  struct Part {
    TransferRecord::Ref put;
    std::size_t first = 0, end = 0;
  };
  Part updated;                        ///< that had written what an update has changed
  std::shared_ptr<Told> updated_told;  ///< what was told by it
  std::vector<Moment> learnt;          ///< by whom all but the parts of `put` has been learnt

  Told() = default;
  Told(const Told&) = default;
  Told(Told&&) = default;
  Told& operator=(const Told&) = default;
  Told& operator=(Told&&) = default;
  ~Told();
  bool is_learnt_by(const Times& who) const;
};

}  // namespace tranship
