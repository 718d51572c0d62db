#include "tranship/fabric/sim/transfer_record.hpp"

#include <algorithm>
#include <utility>

namespace tranship {

// Chains of transfers without a quiet can be long: they are taken apart by a loop, not by recursion.
TransferRecord::~TransferRecord() {
  fenced_.reset();  // it points further down the same chain
  for (Ref next = std::move(before_); next && next.use_count() == 1;) next = std::exchange(next->before_, nullptr);
}

void TransferRecord::order_after(Ref last) {
  is_ordered_ = true;
  fenced_ = fenced_before(last, way_.fences);
  before_ = std::move(last);
}

bool TransferRecord::is_over_for(const Times& who) const {
  if (std::any_of(over_.begin(), over_.end(), [&](const End& end) { return end.found.is_known_to(who); })) return true;
  if (size_bytes_ == 0 || written_bytes_ < size_bytes_) return false;
  bool all = true;
  written_.for_each([&](std::size_t, std::size_t, const std::vector<Moment>& seen) {
    all = all && std::any_of(seen.begin(), seen.end(), [&](const Moment& one) { return one.is_known_to(who); });
  });
  return all;
}

bool TransferRecord::is_written_for(const Times& who, std::size_t first, std::size_t end) const {
  if (is_over_for(who)) return true;
  std::size_t bytes = 0;
  written_.look(first, end, [&](std::size_t from, std::size_t to, const std::vector<Moment>& seen) {
    if (std::any_of(seen.begin(), seen.end(), [&](const Moment& one) { return one.is_known_to(who); }))
      bytes += to - from;
  });
  return bytes == end - first;
}

void TransferRecord::note_written(const Moment& found, std::size_t first, std::size_t end) {
  written_.visit(first, end, [&](std::size_t from, std::size_t to, std::vector<Moment>& seen) {
    if (seen.empty()) written_bytes_ += to - from;
    seen.push_back(found);
  });
}

void TransferRecord::note_over_up_to(const Ref& last, const Times& who, const Moment& found) {
  for (TransferRecord* one = last.get(); one; one = one->before_.get()) {
    const bool is_known = std::any_of(one->over_.begin(), one->over_.end(), [&](const End& end) {
      return end.with_those_before && end.found.is_known_to(who);
    });
    if (is_known) return;
    one->over_.push_back({found, true});
  }
}

Told::~Told() {
  for (auto next = std::move(updated_told); next && next.use_count() == 1;)
    next = std::exchange(next->updated_told, nullptr);
}

bool Told::is_learnt_by(const Times& who) const {
  return std::any_of(learnt.begin(), learnt.end(), [&](const Moment& one) { return one.is_known_to(who); });
}

}  // namespace tranship
