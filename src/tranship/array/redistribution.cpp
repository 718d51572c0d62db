#include "tranship/array/redistribution.hpp"

#include <algorithm>

#include <tranship/array/adjoint.hpp>
#include <tranship/array/array_plan.hpp>
#include <tranship/array/planned_slots.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/plan/joined.hpp>
#include <tranship/run/located.hpp>

namespace tranship {
namespace {

void check_elements(const ArrayPair& pair) {
  if (pair.source.inner_dims != pair.target.inner_dims)
    throw_error(ErrorCode::mismatch, "the source is {}, the target {}: one has elements that are moved as bytes",
                describe(pair.source), describe(pair.target));
}

/// Extends the options by the inner dimensions of the elements, which are always taken whole.
RedistributionOptions options_of(const RedistributionOptions& options, const ArrayPair& pair) {
  RedistributionOptions out = options;
  const Indices& extents = pair.source.spec->distribution.extents();
  if (out.part)
    for (int d = extents.size() - pair.source.inner_dims; d < extents.size(); ++d) {
      out.part->source.push_back(0);
      out.part->target.push_back(0);
      out.part->extents.push_back(extents[d]);
    }
  return out;
}

/// Returns the cells of the target that are written; empty if that is all of them.
std::optional<Box> target_box(const RedistributionOptions& options) {
  if (!options.part) return std::nullopt;
  return shifted(Box::of_extents(options.part->extents), options.part->target);
}

/// Returns true when the parts of two dimensions of one extent own the same points.
bool same_cut(const AxisParts& a, const AxisParts& b) {
  if (a.parts() != b.parts() || a.partition().points != b.partition().points) return false;
  const auto owned_alike = [](const SliceFamily& x, const SliceFamily& y) {
    return x.start == y.start && x.length == y.length && x.period == y.period && x.count == y.count;
  };
  for (Index part = 0; part < a.parts(); ++part) {
    const std::vector<SliceFamily> mine = a.slices(part), other = b.slices(part);
    if (!std::equal(mine.begin(), mine.end(), other.begin(), other.end(), owned_alike)) return false;
  }
  return true;
}

/// Returns true when all copies of a cell in the target get the same value. Parts of the source may differ in an
/// interface that they share; a ghost may then get another value than its owner, unless both arrays are cut alike. With
/// a part of an array, zeros and copies beyond an edge are not written.
bool fills_alike(const Distribution& source, const Distribution& target, const RedistributionOptions& options) {
  if (source.is_indexed() || target.is_indexed()) return true;
  for (int d = 0; d < source.dims(); ++d) {
    const bool may_differ = source.axis(d).partition().points == Points::interfaces && source.axis(d).parts() > 1;
    if (may_differ && (options.part || !same_cut(source.axis(d), target.axis(d)))) return false;
    const Overlap& overlap = target.axis(d).partition().overlap;
    for (const OverlapSide& side : {overlap.left, overlap.right}) {
      const bool is_made = side.edge == EdgePolicy::zero || side.edge == EdgePolicy::replicate ||
                           side.edge == EdgePolicy::replicate_local;
      if (options.part && is_made && side.width > 0) return false;
    }
  }
  return true;
}

ArrayChange change_of(const ArrayPair& pair, const RedistributionOptions& options) {
  const bool is_alike = fills_alike(pair.source.spec->distribution, pair.target.spec->distribution, options);
  return {is_alike ? ChangeKind::filled : ChangeKind::overwritten, target_box(options)};
}

/// Makes one plan for all pairs of the same two layouts.
ArrayPlan plan_of(const std::vector<ArrayPair>& pairs, const RedistributionOptions& options) {
  std::vector<ArrayRef> arrays;
  for (const ArrayPair& pair : pairs) arrays.insert(arrays.end(), {pair.source, pair.target});
  const Rank rank = common_world(arrays).rank();
  ArrayPlan out;
  std::vector<TransferPlan> plans;
  std::vector<const ArrayPair*> kinds;
  const auto same = [](const ArrayRef& a, const ArrayRef& b) { return a.spec == b.spec || *a.spec == *b.spec; };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const ArrayPair& pair = pairs[i];
    check_elements(pair);
    const RedistributionOptions here = options_of(options, pair);
    const std::string number = pairs.size() == 1 ? "" : fmt::format(" {}", i);
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const ArrayPair* kind) {
      return same(kind->source, pair.source) && same(kind->target, pair.target);
    });
    const auto slot = 2 * std::size_t(known - kinds.begin());
    if (known == kinds.end()) {
      plans.push_back(plan_redistribution(*pair.source.spec, *pair.target.spec, rank, here));
      kinds.push_back(&pair);
      out.slots.push_back({{ChangeKind::read}, {}});
      out.slots.push_back({change_of(pair, here), {}});
    }
    out.slots[slot].arrays.push_back({pair.source, "source" + number});
    out.slots[slot + 1].arrays.push_back({pair.target, "target" + number});
  }
  out.plan = joined(std::move(plans));
  return out;
}

/// Matches a plan that was made before to the arrays of its slots.
ArrayPlan planned(TransferPlan plan, const std::vector<ArrayPair>& pairs, PlanKind kind) {
  std::vector<ArrayRef> arrays;
  for (const ArrayPair& pair : pairs) arrays.insert(arrays.end(), {pair.source, pair.target});
  const Rank rank = common_world(arrays).rank();
  if (plan.kind != kind)
    throw_error(ErrorCode::mismatch, "the plan is of kind {}, expected {} (rank {})", name_of(plan.kind), name_of(kind),
                rank);
  const std::vector<std::size_t> slots = slots_of(plan, arrays, 2);
  ArrayPlan out{std::move(plan), {}};
  out.slots.resize(out.plan.slots.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    check_elements(pairs[i]);
    const std::string number = pairs.size() == 1 ? "" : fmt::format(" {}", i);
    // The plan may move a part of the array only; the other ghosts then keep their values.
    const Box all = Box::of_extents(pairs[i].target.spec->distribution.extents());
    ArraySlot &source = out.slots[slots[2 * i]], &target = out.slots[slots[2 * i + 1]];
    source.change = {ChangeKind::read};
    target.change = {ChangeKind::overwritten, all};
    source.arrays.push_back({pairs[i].source, "source" + number});
    target.arrays.push_back({pairs[i].target, "target" + number});
  }
  return out;
}

/// Turns the plan's arrays into those of an adjoint, which adds to its first slot.
ArrayPlan as_adjoint(ArrayPlan plan) {
  for (const ArraySlot& slot : plan.slots)
    for (const NamedArray& array : slot.arrays) check_can_combine(array, Combine::sum);
  plan.slots[0].change = {ChangeKind::changed};
  plan.slots[1].change = {ChangeKind::read};
  return plan;
}

ArrayPlan adjoint_of(const ArrayPair& pair, const RedistributionOptions& options) {
  ArrayPlan out = as_adjoint(plan_of({pair}, options));
  out.plan = adjoint(out.plan);
  return out;
}

}  // namespace

Redistribution::Redistribution(const ArrayRef& source, const ArrayRef& target, const RedistributionOptions& plan,
                               ExchangeOptions options, CallSite where)
    : Redistribution(std::vector<ArrayPair>{{source, target}}, plan, options, where) {}

Redistribution::Redistribution(const std::vector<ArrayPair>& pairs, const RedistributionOptions& plan,
                               ExchangeOptions options, CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(pairs, plan); }), options, where) {}

Redistribution::Redistribution(const ArrayRef& source, const ArrayRef& target, TransferPlan plan,
                               ExchangeOptions options, CallSite where)
    : Redistribution(Planned{std::move(plan)}, {{source, target}}, options, where) {}

Redistribution::Redistribution(Planned given, const std::vector<ArrayPair>& pairs, ExchangeOptions options,
                               CallSite where)
    : ArrayExchange(located(where, [&] { return planned(std::move(given.plan), pairs, PlanKind::redistribution); }),
                    options, where) {}

RedistributionAdjoint::RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target,
                                             const RedistributionOptions& plan, ExchangeOptions options, CallSite where)
    : ArrayExchange(located(where,
                            [&] {
                              return adjoint_of({source, target}, plan);
                            }),
                    options, where) {}

RedistributionAdjoint::RedistributionAdjoint(Planned given, const ArrayPair& pair, ExchangeOptions options,
                                             CallSite where)
    : ArrayExchange(
          located(where,
                  [&] { return as_adjoint(planned(std::move(given.plan), {pair}, PlanKind::redistribution_adjoint)); }),
          options, where) {}

}  // namespace tranship
