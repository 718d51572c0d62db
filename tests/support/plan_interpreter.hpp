// Runs the plans of all ranks on plain vectors, one cell at a time, straight from what transfer_plan.hpp says a plan
// means. Knows nothing of how plans are made or of how run/ executes them.
//
// Both ends of every transfer are read: what each sender lists must be what the receiver lists, cell by cell and in the
// same order. Local arrays are numbered row-major.
#pragma once

#include <string>
#include <vector>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship::test {

/// The plans of ranks 0, 1, ... for one operation.
using Plans = std::vector<TransferPlan>;
using Cells = std::vector<Index>;
/// The local arrays of all ranks: [rank][slot][cell].
using Memory = std::vector<std::vector<Cells>>;

Memory memory_for(const Plans& plans, Index value);

/// Two values combined; numbers wrap.
Index combined(Combine combine, Index a, Index b);

/// The operand that leaves the other one unchanged.
Index identity(Combine combine);

/// One cell on its way from one rank to another.
struct Move {
  int source_slot = 0;
  Index source = 0;
  int target_slot = 0;
  Index target = 0;
  ElementMap map = ElementMap::copy;
  friend bool operator==(const Move&, const Move&) = default;
};

class PlanInterpreter {
 public:
  explicit PlanInterpreter(const Plans& plans);

  /// The fault of the plans; empty when there is none.
  const std::string& fault() const { return fault_; }
  /// The cells that the receiver lists, in its order.
  const std::vector<Move>& moves(Rank source, Rank target) const { return received_[source * ranks_ + target]; }
  /// How often the exchange and the fills after it overwrite a cell.
  const std::vector<int>& writes(Rank rank, int slot) const { return writes_[rank][slot]; }

  void apply(Memory& memory) const;

 private:
  struct Fill {
    LocalFillKind kind;
    Combine combine;
    int slot;
    Index source;
    Index target;
  };
  struct Pair {
    Index source;
    Index target;
  };

  static void apply(const Fill& fill, std::vector<Cells>& slots);
  static std::vector<Pair> cells_of(const AxisEntry& entry);
  static std::vector<Pair> cells_of(const std::vector<Run>& runs);
  bool fail(std::string fault);
  const Indices* extents_of(Rank rank, int slot);

  /// The products of `tables` as row-major cells of both sides. `dims` says which dimension each table runs along.
  template <class F>
  bool for_each_cell(const std::vector<std::vector<Pair>>& tables, const Indices& source,
                     const std::vector<int>& source_dims, const Indices& target, const std::vector<int>& target_dims,
                     const std::string& where, F&& f);

  void read(Rank rank);
  void read(const IndexedTransfer& list, Rank source_rank, Rank target_rank, std::vector<std::vector<Move>>& all);
  void read(const LocalFill& fill, Rank rank, std::vector<Fill>& out);
  void compare_ends();

  /// A plan may move cells in any order: no cell that a rank reads may be overwritten meanwhile.
  void count_writes();

  const Plans& plans_;
  Index ranks_;
  std::vector<std::vector<Move>> received_, sent_;
  std::vector<std::vector<Fill>> before_, after_;
  std::vector<std::vector<std::vector<int>>> writes_;
  std::string fault_;
};

}  // namespace tranship::test
