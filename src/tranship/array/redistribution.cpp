#include <tranship/array/redistribution.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

TransferPlan plan_of(const ArrayRef& source, const ArrayRef& target, const RedistributionOptions& options) {
  const Rank rank = common_world({source, target}).rank();
  return plan_redistribution(*source.spec, *target.spec, rank, options);
}

/// A plan that was not made of these arrays just now may be one of other arrays whose local extents are the same.
TransferPlan checked(TransferPlan plan, const std::vector<ArrayRef>& arrays) {
  const Rank rank = common_world(arrays).rank();
  if (plan.kind != PlanKind::redistribution)
    throw_error(ErrorCode::mismatch, "a plan of kind {}, not {}, a redistribution (rank {})", int(plan.kind),
                int(PlanKind::redistribution), rank);
  for (std::size_t i = 0; i < arrays.size() && i < plan.slots.size(); ++i)
    if (const std::uint64_t mine = fingerprint_of(*arrays[i].spec); plan.slots[i].fingerprint != mine)
      throw_error(ErrorCode::mismatch, "the plan is one of a {} with layout {:016x}, the array has {:016x} (rank {})",
                  i == 0 ? "source" : "target", plan.slots[i].fingerprint, mine, rank);
  return plan;
}

}  // namespace

Redistribution::Redistribution(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options,
                               const RedistributionOptions& plan)
    : Redistribution(source, target, plan_of(source, target, plan), options) {}

Redistribution::Redistribution(const ArrayRef& source, const ArrayRef& target, TransferPlan plan,
                               ExchangeOptions options)
    : ArrayExchange({source, target}, checked(std::move(plan), {source, target}), options) {}

RedistributionAdjoint::RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options,
                                             const RedistributionOptions& plan)
    : ArrayExchange({source, target}, adjoint(plan_of(source, target, plan)), options) {}

}  // namespace tranship
