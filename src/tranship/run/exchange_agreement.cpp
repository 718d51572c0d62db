#include "tranship/run/exchange_agreement.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/run/exchange_schedule.hpp>

namespace tranship {
namespace {

/// What a rank tells all others when they cannot go on.
struct Remark {
  char text[480] = {};

  explicit Remark(const std::string& from = {}) { std::strncpy(text, from.c_str(), sizeof(text) - 1); }
};

std::uint64_t mixed(std::uint64_t so_far, std::uint64_t part) {
  return (so_far ^ part) * 0x9e3779b97f4a7c15 ^ so_far >> 29;
}

std::uint64_t fingerprint_of(const std::string& record) {
  if (record.empty()) return 0;
  std::uint64_t out = record.size();
  for (const char c : record) out = mixed(out, std::uint8_t(c));
  return out | 1;
}

/// Throws `mismatch` where ranks that say how the elements of an array are made up say different things. Collective
/// where it throws.
void check_records(World& world, const std::vector<Vote>& votes, const ExchangeSlots& slots, CallSite where) {
  const auto says = [](const Vote& vote) { return vote.records != 0; };
  const auto first = std::find_if(votes.begin(), votes.end(), says);
  const auto differs = [&](const Vote& vote) { return says(vote) && vote.records != first->records; };
  const auto other = std::find_if(first, votes.end(), differs);
  if (other == votes.end()) return;
  struct One {
    Remark name, record;
  };
  const auto a = std::size_t(first - votes.begin()), b = std::size_t(other - votes.begin());
  for (const auto& arrays : slots)
    for (const ExchangeArray& array : arrays) {
      const std::vector<One> all = world.all_gather(One{Remark(array.name), Remark(array.record)}, where);
      if (std::strcmp(all[a].record.text, all[b].record.text) != 0)
        throw_error(ErrorCode::mismatch, "{} has elements {} on rank {} and {} on rank {}", all[a].name.text,
                    all[a].record.text, a, all[b].record.text, b);
    }
  throw_error(ErrorCode::mismatch, "the arrays of rank {} and rank {} have different elements", a, b);
}

}  // namespace

std::vector<Vote> agree(World& world, const Vote& mine, const Result<void>& so_far, CallSite where) {
  std::vector<Vote> votes = world.all_gather(mine, where);
  const auto failed = std::find_if(votes.begin(), votes.end(), [](const Vote& vote) { return vote.code != 0; });
  if (failed != votes.end()) {
    const std::vector<Remark> why = world.all_gather(Remark(so_far.ok() ? "" : so_far.error().message()), where);
    so_far.value();
    const auto r = std::size_t(failed - votes.begin());
    throw_error(static_cast<ErrorCode>(failed->code), "rank {} cannot take part in the exchange: {}", r, why[r].text);
  }
  for (Rank r = 0; r < world.size(); ++r) {
    const Vote& vote = votes[std::size_t(r)];
    if (vote.kind != mine.kind || vote.schedule != mine.schedule || vote.arrays != mine.arrays)
      throw_error(
          ErrorCode::mismatch,
          "rank {} runs a plan of kind {} with schedule {} and {}, rank {} one of kind {} with schedule {} and {}",
          world.rank(), name_of(mine.kind), name_of(mine.schedule), amount(mine.arrays, "array"), r, name_of(vote.kind),
          name_of(vote.schedule), vote.arrays);
    if (vote.sources != mine.sources)
      throw_error(ErrorCode::mismatch, "rank {} takes {}, and rank {} takes {}", world.rank(), name_of(mine.sources), r,
                  name_of(vote.sources));
  }
  return votes;
}

std::uint64_t fingerprint_of(const TransferPlan& plan, const ExchangeSlots& slots) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < plan.slots.size() && i < slots.size(); ++i)
    out = mixed(mixed(out, plan.slots[i].fingerprint), slots[i].size());
  return out;
}

std::uint64_t fingerprint_of_records(const ExchangeSlots& slots) {
  std::uint64_t out = 0;
  bool any = false;
  for (const auto& arrays : slots)
    for (const ExchangeArray& array : arrays) {
      const std::uint64_t one = fingerprint_of(array.record);
      any |= one != 0;
      out = mixed(out, one);
    }
  return any ? out | 1 : 0;
}

void check_layouts(World& world, const std::vector<Vote>& votes, const TransferPlan& plan, const ExchangeSlots& slots,
                   CallSite where) {
  const auto differs = [&](const Vote& vote) { return vote.layouts != votes[0].layouts; };
  const auto other = std::find_if(votes.begin(), votes.end(), differs);
  if (other == votes.end()) return check_records(world, votes, slots, where);
  // The first array that differs, in an order that does not depend on which arrays share a slot.
  struct One {
    std::uint64_t fingerprint;
    Remark name, layout;
  };
  std::vector<One> mine;
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (const ExchangeArray& array : slots[i])
      mine.push_back({plan.slots[i].fingerprint, Remark(array.name),
                      Remark(array.spec ? to_text(*array.spec) : fmt::format("{:016x}", plan.slots[i].fingerprint))});
  std::sort(mine.begin(), mine.end(),
            [](const One& a, const One& b) { return std::strcmp(a.name.text, b.name.text) < 0; });
  const auto r = std::size_t(other - votes.begin());
  for (const One& one : mine) {
    const std::vector<One> all = world.all_gather(one, where);
    if (all[r].fingerprint != all[0].fingerprint)
      throw_error(ErrorCode::mismatch, "{} has layout {} on rank 0 and {} on rank {}", all[r].name.text,
                  all[0].layout.text, all[r].layout.text, r);
  }
  throw_error(ErrorCode::mismatch, "the arrays of rank 0 and rank {} share slots differently", r);
}

}  // namespace tranship
