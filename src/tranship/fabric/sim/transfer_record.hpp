// Private: TransferRecord: transfers of simulated ranks, and which ranks know that they are over.
//
// The clock of a rank counts its actions and discoveries, and a rank that knows a time of another one knows everything
// that that one knew then. So the end of a transfer is recorded once, with the rank that has discovered it and its time
// then. The knowledge of a rank remains a clock, whatever the number of transfers.
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

/// The order that fences give: transfers of one context to one target are ordered by the number of fences before them.
struct FencedWay {
  int context = 0;
  Rank target = 0;
  std::uint64_t fences = 0;
};

class TransferRecord {
 public:
  using Ref = std::shared_ptr<TransferRecord>;

  /// `size_bytes` is the number of bytes it writes that can be seen in parts: 0 for anything but a put.
  TransferRecord(Rank rank, const FencedWay& way, std::size_t size_bytes)
      : rank_(rank), way_(way), size_bytes_(size_bytes) {}
  TransferRecord(const TransferRecord&) = delete;
  TransferRecord& operator=(const TransferRecord&) = delete;
  ~TransferRecord();

  Rank rank() const noexcept { return rank_; }
  /// A fence orders it after the transfers of its way that have fewer fences before them; `last` is the last one sent.
  void order_after(Ref last);
  /// The last of the transfers after which a fence orders it, or nullptr.
  const Ref& fenced() const noexcept { return fenced_; }
  /// Returns this for a transfer that is sent after `last` with `fences` fences before it.
  static Ref fenced_before(const Ref& last, std::uint64_t fences) {
    return last && last->way_.fences == fences ? last->fenced_ : last;
  }
  bool is_ordered_before(Rank rank, const FencedWay& way) const noexcept {
    return is_ordered_ && rank_ == rank && way_.context == way.context && way_.target == way.target &&
           way_.fences < way.fences;
  }

  bool is_over_for(const Times& who) const;
  /// Returns true if `who` knows that all its bytes in [first, end) of the target's heap have been written.
  bool is_written_for(const Times& who, std::size_t first, std::size_t end) const;
  void note_over(const Moment& found) { over_.push_back({found, false}); }
  /// Some of its bytes have been seen.
  void note_written(const Moment& found, std::size_t first, std::size_t end);
  /// It is over, and so are the transfers ordered before it. `who` has discovered this, and knows the records made
  /// here.
  static void note_over_up_to(const Ref& last, const Times& who, const Moment& found);

 private:
  struct End {
    Moment found;
    bool with_those_before;  ///< also those ordered before it on its way
  };

  Rank rank_;
  FencedWay way_;
  std::size_t size_bytes_;
  bool is_ordered_ = false;
  Ref before_, fenced_;
  std::vector<End> over_;
  ByteMap<std::vector<Moment>> written_;
  std::size_t written_bytes_ = 0;  ///< bytes that some rank has seen
};

/// The knowledge that ranks gain when they see written bytes.
struct Told {
  Times known;                            ///< what the writer knew
  TransferRecord::Ref fenced;             ///< over, with the transfers ordered before it
  std::vector<TransferRecord::Ref> over;  ///< further transfers that are over
  TransferRecord::Ref put;                ///< the put whose bytes they see, or nullptr
  struct Part {
    TransferRecord::Ref put;
    std::size_t first = 0, end = 0;
  };
  Part updated;                        ///< the put whose bytes an update has changed
  std::shared_ptr<Told> updated_told;  ///< the knowledge that these bytes carried
  std::vector<Moment> learnt;          ///< by which ranks it has been learnt, except parts of `put`

  Told() = default;
  Told(const Told&) = default;
  Told(Told&&) = default;
  Told& operator=(const Told&) = default;
  Told& operator=(Told&&) = default;
  ~Told();
  bool is_learnt_by(const Times& who) const;
};

}  // namespace tranship
