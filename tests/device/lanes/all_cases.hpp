// Lists all cases, and builds one entry for each case in their order.
#pragma once

#include "lanes/array_cases.hpp"
#include "lanes/collective_cases.hpp"
#include "lanes/transfer_cases.hpp"
#include "lanes/wait_cases.hpp"

namespace tranship::device {

template <class List>
struct CasesOf;
template <class Case, Scope... scopes>
struct CasesOf<Of<Case, scopes...>> {
  template <class F>
  static void each(const F& f) {
    (f.template operator()<Case, scopes>(), ...);
  }
};
template <class... Ofs>
struct CasesOf<CaseList<Ofs...>> {
  template <class F>
  static void each(const F& f) {
    (CasesOf<Ofs>::each(f), ...);
  }
};

/// Calls `f` for each case and scope.
template <class F>
void for_each_case(const F& f) {
  CasesOf<TransferCases>::each(f);
  CasesOf<SignalCases>::each(f);
  CasesOf<WaitCases>::each(f);
  CasesOf<AtomicCases>::each(f);
  CasesOf<ArrayCases>::each(f);
  CasesOf<MemoryCases>::each(f);
  CasesOf<MoveCases>::each(f);
  CasesOf<ReductionCases>::each(f);
  CasesOf<WideReductionCases>::each(f);
}

}  // namespace tranship::device
