// Private: the words of plan files and explanations, in both directions (with `named` of layout/enum_names.hpp).
#pragma once

#include <tranship/layout/enum_names.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

inline constexpr PlanKind plan_kinds[] = {PlanKind::redistribution, PlanKind::halo, PlanKind::redistribution_adjoint,
                                          PlanKind::halo_adjoint};
inline constexpr ElementMap element_maps[] = {
    ElementMap::copy,     ElementMap::negate,  ElementMap::accumulate, ElementMap::accumulate_negated,
    ElementMap::multiply, ElementMap::minimum, ElementMap::maximum};
inline constexpr Combine combine_kinds[] = {Combine::sum, Combine::product, Combine::minimum, Combine::maximum};
inline constexpr LocalFillKind local_fill_kinds[] = {LocalFillKind::zero, LocalFillKind::replicate,
                                                     LocalFillKind::accumulate};

constexpr const char* name_of(PlanKind kind) noexcept {
  switch (kind) {
    case PlanKind::redistribution:
      return "redistribution";
    case PlanKind::halo:
      return "halo";
    case PlanKind::redistribution_adjoint:
      return "redistribution_adjoint";
    case PlanKind::halo_adjoint:
      return "halo_adjoint";
  }
  return "?";
}

constexpr const char* name_of(ElementMap map) noexcept {
  switch (map) {
    case ElementMap::copy:
      return "copy";
    case ElementMap::negate:
      return "negate";
    case ElementMap::accumulate:
      return "accumulate";
    case ElementMap::accumulate_negated:
      return "accumulate_negated";
    case ElementMap::multiply:
      return "multiply";
    case ElementMap::minimum:
      return "minimum";
    case ElementMap::maximum:
      return "maximum";
  }
  return "?";
}

constexpr const char* name_of(LocalFillKind kind) noexcept {
  switch (kind) {
    case LocalFillKind::zero:
      return "zero";
    case LocalFillKind::replicate:
      return "replicate";
    case LocalFillKind::accumulate:
      return "accumulate";
  }
  return "?";
}

}  // namespace tranship
