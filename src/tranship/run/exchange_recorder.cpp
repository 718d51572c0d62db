#include "tranship/run/exchange_recorder.hpp"

#include <utility>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// The names of the first few arrays: "u, v, t".
std::string array_names(const ExchangeSlots& slots) {
  constexpr int names_max = 4;
  std::string out;
  int count = 0;
  for (const auto& arrays : slots)
    for (const ExchangeArray& array : arrays) {
      if (count < names_max) out += (count > 0 ? ", " : "") + (array.label.empty() ? array.name : array.label);
      ++count;
    }
  return count > names_max ? fmt::format("{}, and {} more", out, count - names_max) : out;
}

}  // namespace

ExchangeRecorder::ExchangeRecorder(const ExchangeTerms& terms, const ExchangeMessages& messages, std::uint64_t epoch)
    : terms_(terms),
      messages_(messages),
      record_{.rank = terms.world.launched_rank(terms.rank()),
              .kind = terms.plan.kind,
              .arrays = array_names(terms.slots),
              .epoch = epoch,
              .made = terms.where,
              .begin_ns = now_ns()} {
  for (const auto* list : {&messages.receives, &messages.sends})
    for (const Message& m : *list)
      record_.messages.push_back({.source = terms.world.launched_rank(m.source),
                                  .target = terms.world.launched_rank(m.target),
                                  .bytes = m.bytes,
                                  .way = way_of(m)});
}

void ExchangeRecorder::started(CallSite) {
  record_.started_ns = now_ns();
}
void ExchangeRecorder::finishing() {
  record_.finishing_ns = now_ns();
}
void ExchangeRecorder::message_complete(const Message& message) {
  const bool is_received = message.target == terms_.rank();
  const auto& list = is_received ? messages_.receives : messages_.sends;
  const auto number = static_cast<std::size_t>(&message - list.data());
  record_.messages[is_received ? number : messages_.receives.size() + number].done_ns = now_ns();
}
void ExchangeRecorder::completed(CallSite where) {
  end(where, {});
}
void ExchangeRecorder::failed(CallSite where, const std::string& why) {
  end(where, why);
}
void ExchangeRecorder::withdrawn() noexcept {
  try {
    end({"", 0}, "ended in flight");
  } catch (...) {  // without memory for it, the record is lost
  }
}

void ExchangeRecorder::end(CallSite where, std::string failure) {
  record_.finished = where;
  record_.end_ns = now_ns();
  record_.failure = std::move(failure);
  record_.own_bytes = messages_.own.bytes;
  ExchangeLog::add(std::move(record_));
}

}  // namespace tranship
