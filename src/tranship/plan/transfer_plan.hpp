// Detail: TransferPlan: what one rank must receive, send and fill in. It says what moves, never how: run/ decides that.
//
// A plan is a list of groups. A group is a product: per dimension a table of (peer coordinate, runs); every combination
// of entries is one transfer, whose cells are the product of the runs. Only the tables (a sum) are stored, never the
// product. Both ends of a transfer list the same runs in the same order, so that a packed message needs no header.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tranship/base/combine.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/plan/runs.hpp>

namespace tranship {

/// Whether elements of a type can be mapped so. Bools have no negation. Complex numbers travel as two parts, which can
/// be added one by one, but neither multiplied nor ordered.
bool can_map(ElementMap map, ElementType type) noexcept;

/// One local array that a plan reads or writes on this rank. Slots are numbered the same on all ranks.
struct Slot {
  ElementType type = ElementType::u8;
  Indices local_extents;          ///< of this rank; all zero when it holds no part
  std::uint64_t fingerprint = 0;  ///< of the array's whole layout, see fingerprint_of
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// A product of transfers between this rank and many peers.
struct TransferGroup {
  int source_slot = 0;
  int target_slot = 0;
  ElementMap map = ElementMap::copy;
  /// Table k runs along dimension source_dims[k] of the source and dimension target_dims[k] of the target.
  std::vector<int> source_dims;
  std::vector<int> target_dims;
  /// The tables.
  std::vector<std::vector<AxisEntry>> axes;
  /// Rank of each combination of entries, row-major, -1 where another replica serves it; or empty: then the grid below.
  std::vector<Rank> peers;
  int peer_grid = -1;
  Index peer_replica = 0;

  Index combinations() const noexcept;
  friend bool operator==(const TransferGroup&, const TransferGroup&) = default;
};

/// Cells named one by one. The leading dimensions of both local arrays are counted through, row-major: cell
/// source_cells[i] becomes cell target_cells[i]; each takes `inner` elements, the trailing dimensions, with it.
struct IndexedTransfer {
  int source_slot = 0;
  int target_slot = 0;
  ElementMap map = ElementMap::copy;
  Rank peer = -1;
  std::vector<Index> source_cells;
  std::vector<Index> target_cells;
  Index inner = 1;
  friend bool operator==(const IndexedTransfer&, const IndexedTransfer&) = default;
};

/// Brings a list into the order of its target cells, in which both ends list them.
void sort_by_target(IndexedTransfer& list);

enum class LocalFillKind : std::uint8_t {
  zero,        ///< target cells become what `combine` is not changed by: of sums, zero
  replicate,   ///< target cells become copies of cells of the same local array
  accumulate,  ///< cells of the same local array are combined into target cells (the adjoint of replicate)
};

/// A product of cells of one local array to be filled by the rank itself.
struct LocalFill {
  LocalFillKind kind = LocalFillKind::zero;
  Combine combine = Combine::sum;  ///< of zero and accumulate
  int slot = 0;
  std::vector<std::vector<Run>> axes;
  friend bool operator==(const LocalFill&, const LocalFill&) = default;
};

/// One transfer of a group: a peer, and for each table the index of the entry.
struct Transfer {
  const TransferGroup* group = nullptr;
  Rank peer = -1;
  Indices entries;

  const AxisEntry& entry(int k) const { return group->axes[k][entries[k]]; }
  Index cells() const;
};

enum class PlanKind : std::uint8_t { redistribution, halo, redistribution_adjoint, halo_adjoint };

/// The plan of one rank, a plain value: copying copies its tables, whose size is stored_runs(). Plans of all ranks that
/// belong together come from the same call with the same arguments, apart from the rank.
struct TransferPlan {
  PlanKind kind = PlanKind::redistribution;
  Rank rank = -1;
  std::vector<Slot> slots;
  /// Local work before any peer reads, and after everything has arrived and been read by the peers.
  std::vector<LocalFill> fills_before;
  std::vector<LocalFill> fills_after;
  /// What this rank receives and what it sends. What it gives to itself stands in both.
  std::vector<TransferGroup> receives;
  std::vector<TransferGroup> sends;
  std::vector<IndexedTransfer> indexed_receives;
  std::vector<IndexedTransfer> indexed_sends;
  std::vector<Grid> peer_grids;

  /// Goes through all transfers, group by group, in the order that both ends share.
  void for_each_receive(FunctionRef<void(const Transfer&)> f) const;
  void for_each_send(FunctionRef<void(const Transfer&)> f) const;

  /// Number of runs, lattices and index entries stored: the size of the plan.
  Index stored_runs() const noexcept;

  friend bool operator==(const TransferPlan&, const TransferPlan&) = default;
};

/// The plan run backward: what was written is read, and is combined into what was read, in the order of the ranks. For
/// sums it is the adjoint; other combinations are the same plan with another operation. After that of a halo, the
/// ghosts hold afterwards what changes nothing: of sums zero. (They were overwritten by the forward plan, so nothing
/// depends on what they held before it, and running the reverse again adds nothing.) Throws `unsupported` for a plan
/// that combines already; for a combination that the elements do not have (can_map); and for other combinations than
/// sums of what changes its sign on the way, for these depend on whose sign is taken.
TransferPlan adjoint(const TransferPlan& plan, Combine combine = Combine::sum);

/// A number that two array layouts share exactly when they are (but for collisions) equal by content.
std::uint64_t fingerprint_of(const ArraySpec& spec);

/// How far a reader is from an owner; smaller is nearer. Made of any function of two ranks, of which it keeps a copy;
/// copies of a Distance share it.
class Distance {
 public:
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, Distance> &&
           std::is_invocable_r_v<double, const std::decay_t<F>&, Rank, Rank>) Distance(F&& f)
      : kept_(std::make_shared<const Kept<std::decay_t<F>>>(std::forward<F>(f))) {}

  double operator()(Rank reader, Rank owner) const { return kept_->distance(reader, owner); }

 private:
  struct Any {
    virtual ~Any() = default;
    virtual double distance(Rank reader, Rank owner) const = 0;
  };
  template <class F>
  struct Kept final : Any {
    explicit Kept(F function) : f(std::move(function)) {}
    double distance(Rank reader, Rank owner) const override { return f(reader, owner); }
    F f;
  };

  std::shared_ptr<const Any> kept_;
};

}  // namespace tranship
