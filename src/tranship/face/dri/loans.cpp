// Loans: views and blocks of VSIPL that the program is lent with a buffer, and may destroy before the buffer is put.
#include <tranship/face/dri/state.hpp>

namespace tranship::dri {

Loans& Loans::all() {
  static Loans* const loans = new Loans;  // never destroyed: static destructors may end loans
  return *loans;
}

void Loans::lend(BufferObject& buffer, DRI_Loan kind, Loan loan) {
  const std::lock_guard lock(mutex_);
  remove(loan.object);  // an old loan at this address is of an object that was destroyed without asking
  std::vector<Loan>& list = kind == DRI_LOAN_TO_HOLDER ? buffer.lent_to_holder : buffer.lent_by_channel;
  list.push_back(loan);
  try {
    places_.emplace(loan.object, At{&list, list.size() - 1, kind});
  } catch (...) {
    list.pop_back();
    throw;
  }
}

bool Loans::keeps(const void* object) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = places_.find(object);
  if (at == places_.end()) return false;
  if (at->second.kind == DRI_LOAN_OF_CHANNEL) return true;
  remove(object);
  return false;
}

void Loans::remove(const void* object) noexcept {
  const auto at = places_.find(object);
  if (at == places_.end()) return;
  const auto [list, index, kind] = at->second;
  places_.erase(at);
  if (index + 1 < list->size()) {
    (*list)[index] = list->back();
    places_.find((*list)[index].object)->second.index = index;
  }
  list->pop_back();
}

/// Calls the loans' end functions outside of the lock, because they ask keeps().
void Loans::end(std::vector<Loan>& list) noexcept {
  std::vector<Loan> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const Loan& loan : list) places_.erase(loan.object);
    ended.swap(list);
  }
  for (const Loan& loan : ended)
    if (loan.end) loan.end(loan.object);
  ended.clear();
  const std::lock_guard lock(mutex_);
  if (list.empty()) list.swap(ended);  // keeps the capacity for the next frame
}

void Loans::end_of_holder(BufferObject& buffer) noexcept {
  end(buffer.lent_to_holder);
}
void Loans::end_of_channel(BufferObject& buffer) noexcept {
  end(buffer.lent_by_channel);
}

}  // namespace tranship::dri

using namespace tranship;
using namespace tranship::dri;

extern "C" {

int DRI_Buffer_lend(dri_buffer* buffer, DRI_Loan loan, void* object, void (*end)(void*)) {
  return guarded([&] {
    check_range("the kind of a loan", int(loan), DRI_LOAN_TO_HOLDER, DRI_LOAN_OF_CHANNEL);
    if (!object) refuse(DRI_ERR_ARGUMENT, "the object that is lent is NULL");
    const auto holder = object_of<BufferObject>(buffer);
    if (loan == DRI_LOAN_TO_HOLDER && !holder->is_held)
      refuse(DRI_ERR_ORDER, "the buffer of {} is not held: get it first", holder->channel->label);
    Loans::all().lend(*holder, loan, {object, end});
  });
}
int DRI_Loan_stays(const void* object) {
  return object && Loans::all().keeps(object) ? 1 : 0;
}

}  // extern "C"
