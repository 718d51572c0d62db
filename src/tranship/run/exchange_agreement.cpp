#include "tranship/run/exchange_agreement.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/run/exchange_schedule.hpp>

namespace tranship {
namespace {

constexpr std::string_view cannot = "cannot take part in the exchange";

/// Text of fixed size, for messages between ranks.
struct Remark {
  char text[480] = {};

  explicit Remark(const std::string& from = {}) { std::strncpy(text, from.c_str(), sizeof(text) - 1); }
};

/// Collective: returns the values of two ranks.
template <class T>
std::pair<T, T> values_of(World& world, const T& mine, Rank a, Rank b, CallSite where) {
  std::pair<T, T> out{mine, mine};
  world.broadcast(&out.first, sizeof(T), a, where);
  world.broadcast(&out.second, sizeof(T), b, where);
  return out;
}

std::uint64_t mixed(std::uint64_t so_far, std::uint64_t part) {
  return (so_far ^ part) * 0x9e3779b97f4a7c15 ^ so_far >> 29;
}

std::uint64_t fingerprint_of(const std::string& record) {
  if (record.empty()) return 0;
  std::uint64_t out = record.size();
  for (const char c : record) out = mixed(out, std::uint8_t(c));
  return out | 1;
}

/// Collective; ranks `a` and `b` describe the elements of an array differently.
[[noreturn]] void refuse_records(World& world, Rank a, Rank b, const ExchangeSlots& slots, CallSite where) {
  struct One {
    Remark name, record;
  };
  for (const auto& arrays : slots)
    for (const ExchangeArray& array : arrays) {
      const auto [one, other] = values_of(world, One{Remark(array.name), Remark(array.record)}, a, b, where);
      if (std::strcmp(one.record.text, other.record.text) != 0)
        throw_error(ErrorCode::mismatch, "{} has elements {} on rank {} and {} on rank {}", one.name.text,
                    one.record.text, a, other.record.text, b);
    }
  throw_error(ErrorCode::mismatch, "the arrays of rank {} and rank {} have different elements", a, b);
}

/// The layout as text; for an array without a spec, its element type and stored extents.
std::string layout_of(const ExchangeArray& array, const Slot& slot) {
  if (array.spec) return to_text(*array.spec);
  return fmt::format("{}[{}] stored", name_of(slot.type), to_string(slot.local_extents));
}

/// Collective; ranks `a` and `b` have different layouts.
[[noreturn]] void refuse_layouts(World& world, Rank a, Rank b, const TransferPlan& plan, const ExchangeSlots& slots,
                                 CallSite where) {
  // Finds the first array that differs, in an order that does not depend on which arrays share a slot.
  struct One {
    std::uint64_t fingerprint;
    Remark name, layout;
  };
  std::vector<One> mine;
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (const ExchangeArray& array : slots[i])
      mine.push_back({plan.slots[i].fingerprint, Remark(array.name), Remark(layout_of(array, plan.slots[i]))});
  std::sort(mine.begin(), mine.end(),
            [](const One& x, const One& y) { return std::strcmp(x.name.text, y.name.text) < 0; });
  for (const One& each : mine) {
    const auto [one, other] = values_of(world, each, a, b, where);
    if (one.fingerprint == other.fingerprint) continue;
    if (std::strcmp(one.layout.text, other.layout.text) == 0)
      throw_error(ErrorCode::mismatch, "{} has {} on rank {} and rank {}, but of different layouts", other.name.text,
                  one.layout.text, a, b);
    throw_error(ErrorCode::mismatch, "{} has layout {} on rank {} and {} on rank {}", other.name.text, one.layout.text,
                a, other.layout.text, b);
  }
  throw_error(ErrorCode::mismatch, "the arrays of rank {} and rank {} share slots differently", a, b);
}

void check_kinds(const Alike<ExchangeKind>& kinds) {
  if (!kinds.differ()) return;
  const ExchangeKind &a = kinds.first, &b = kinds.other;
  if (a.plan == b.plan && a.schedule == b.schedule && a.arrays == b.arrays)
    throw_error(ErrorCode::mismatch, "rank {} takes {}, and rank {} takes {}", kinds.first_member, name_of(a.sources),
                kinds.other_member, name_of(b.sources));
  throw_error(ErrorCode::mismatch,
              "rank {} runs a plan of kind {} with schedule {} and {}, rank {} one of kind {} with schedule {} and {}",
              kinds.first_member, name_of(a.plan), name_of(a.schedule), amount(a.arrays, "array"), kinds.other_member,
              name_of(b.plan), name_of(b.schedule), b.arrays);
}

/// The sum, or the largest Index when it does not fit.
Index sum(Index a, Index b) {
  Index out = 0;
  return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

ExchangeTotals together(const ExchangeTotals& a, const ExchangeTotals& b) {
  return {.kind = joined(a.kind, b.kind),
          .layouts = joined(a.layouts, b.layouts),
          .records = joined(a.records, b.records),
          .receives = a.receives + b.receives,
          .sends = a.sends + b.sends,
          .bytes = sum(a.bytes, b.bytes),
          .reached_receives_max = std::max(a.reached_receives_max, b.reached_receives_max),
          .entries_max = std::max(a.entries_max, b.entries_max),
          .notices_bytes_max = std::max(a.notices_bytes_max, b.notices_bytes_max)};
}

Call call_of(std::size_t size_bytes) {
  return {.kind = CallKind::agreement, .size_bytes = size_bytes};
}

}  // namespace

ExchangeTotals agree(World& world, const ExchangeTotals& mine, const TransferPlan& plan, const ExchangeSlots& slots,
                     const Result<void>& so_far, CallSite where) {
  const ExchangeTotals all = agree(world.team(), call_of(sizeof mine), so_far, mine, together, cannot, where);
  check_kinds(all.kind);
  if (all.layouts.differ())
    refuse_layouts(world, all.layouts.first_member, all.layouts.other_member, plan, slots, where);
  if (all.records.differ()) refuse_records(world, all.records.first_member, all.records.other_member, slots, where);
  return all;
}

bool agree_on_any(World& world, bool mine, const Result<void>& so_far, CallSite where) {
  const auto any = [](std::uint8_t a, std::uint8_t b) { return std::uint8_t(a | b); };
  return agree(world.team(), call_of(1), so_far, std::uint8_t(mine), any, cannot, where) != 0;
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

}  // namespace tranship
