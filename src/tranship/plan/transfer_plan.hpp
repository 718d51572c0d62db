// Detail: TransferPlan, which says what one rank receives, sends and fills. It does not say how; run/ decides that.
//
// A plan is a list of groups. A group is a product: per dimension it has a table of (peer coordinate, runs), and each
// combination of entries is one transfer, whose cells are the product of the runs. A plan stores the tables, whose
// sizes add up, and never the product. Both ends of a transfer list the same runs in the same order, so a packed
// message needs no header.
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

/// Returns true if elements of a type can be mapped this way. Bools cannot be negated. Complex numbers travel as two
/// parts, which can be added one by one, but neither multiplied nor ordered.
bool can_map(ElementMap map, ElementType type) noexcept;

/// One local array that a plan reads or writes on this rank. Slots have the same numbers on all ranks.
struct Slot {
  ElementType type = ElementType::u8;
  Indices local_extents;          ///< on this rank; all zero when it holds no part
  std::uint64_t fingerprint = 0;  ///< of the array's whole layout, from fingerprint_of
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
  /// One table of entries per dimension.
  std::vector<std::vector<AxisEntry>> axes;
  /// The rank of each combination of entries, row-major; -1 where another replica serves it. If empty, `peer_grid`
  /// gives the ranks.
  std::vector<Rank> peers;
  int peer_grid = -1;
  Index peer_replica = 0;

  Index combinations() const noexcept;
  friend bool operator==(const TransferGroup&, const TransferGroup&) = default;
};

/// Cells listed one by one. Cell numbers count the leading dimensions of both local arrays, row-major: cell
/// source_cells[i] becomes cell target_cells[i]. Each cell has `inner` elements, those of the trailing dimensions.
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

/// Sorts a list by its target cells. Both ends use this order.
void sort_by_target(IndexedTransfer& list);

enum class LocalFillKind : std::uint8_t {
  zero,        ///< target cells become the identity of `combine`: zero for sums
  replicate,   ///< target cells become copies of cells of the same local array
  accumulate,  ///< cells of the same local array are combined into target cells (the adjoint of replicate)
};

/// A product of cells of one local array that the rank itself fills.
struct LocalFill {
  LocalFillKind kind = LocalFillKind::zero;
  Combine combine = Combine::sum;  ///< for zero and accumulate
  int slot = 0;
  std::vector<std::vector<Run>> axes;
  friend bool operator==(const LocalFill&, const LocalFill&) = default;
};

/// One transfer of a group: a peer, and the index of an entry for each table.
struct Transfer {
  const TransferGroup* group = nullptr;
  Rank peer = -1;
  Indices entries;

  const AxisEntry& entry(int k) const { return group->axes[k][entries[k]]; }
  Index cells() const;
};

enum class PlanKind : std::uint8_t { redistribution, halo, redistribution_adjoint, halo_adjoint };

/// The plan of one rank. It is a plain value; a copy copies its tables, whose size is stored_runs(). The plans of the
/// ranks fit each other if they come from the same call with the same arguments except the rank.
struct TransferPlan {
  PlanKind kind = PlanKind::redistribution;
  Rank rank = -1;
  std::vector<Slot> slots;
  /// Local work: before any peer reads, and after all data has arrived and the peers have read theirs.
  std::vector<LocalFill> fills_before;
  std::vector<LocalFill> fills_after;
  /// All that this rank receives and sends. Transfers to itself appear in both.
  std::vector<TransferGroup> receives;
  std::vector<TransferGroup> sends;
  std::vector<IndexedTransfer> indexed_receives;
  std::vector<IndexedTransfer> indexed_sends;
  std::vector<Grid> peer_grids;

  /// Call `f` for all transfers, group by group, in an order that both ends share.
  void for_each_receive(FunctionRef<void(const Transfer&)> f) const;
  void for_each_send(FunctionRef<void(const Transfer&)> f) const;

  /// Returns the number of stored runs, lattices and index entries: the size of the plan.
  Index stored_runs() const noexcept;

  friend bool operator==(const TransferPlan&, const TransferPlan&) = default;
};

/// Returns the reverse plan: it reads what the plan wrote and combines it into what the plan read, in the order of the
/// ranks. For sums this is the adjoint; other combinations are the same plan with another operation. The reverse of a
/// halo leaves the identity of the combination in the ghosts (zero for sums). The forward plan overwrites the ghosts,
/// so nothing depends on their earlier values, and a second reverse adds nothing. Throws `unsupported` for a plan that
/// already combines, for a combination that the elements do not have (can_map), and for other combinations than sums
/// where values change their sign on the way, because the result would depend on whose sign is used.
TransferPlan adjoint(const TransferPlan& plan, Combine combine = Combine::sum);

/// Returns a hash of an array's layout; layouts that are equal by content have equal hashes, others differ except for
/// collisions.
std::uint64_t fingerprint_of(const ArraySpec& spec);

/// The distance from a reader to an owner; smaller is nearer. It keeps a copy of any function of two ranks; copies of a
/// Distance share that copy.
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
