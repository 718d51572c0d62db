#include "tranship/run/exchange_log.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/enum_names.hpp>

namespace tranship {

struct ExchangeLog::State {
  std::vector<LoggedExchange> records;
  std::size_t slices = 0;
  Index left_out = 0;
};

namespace {

/// slices of a run beside its messages
constexpr std::size_t calls_max = 3;

/// Shared by all threads of the process.
struct Open {
  std::mutex mutex;
  std::atomic<ExchangeLog*> log = nullptr;
};
Open& open_log() {
  static Open open;
  return open;
}

}  // namespace

ExchangeLog::ExchangeLog() : state_(std::make_unique<State>()) {
  Open& open = open_log();
  const std::lock_guard lock(open.mutex);
  if (open.log.load(std::memory_order_relaxed) != nullptr)
    throw_error(ErrorCode::invalid_use, "exchanges are being recorded already: end that trace before another begins");
  open.log.store(this, std::memory_order_relaxed);
}

ExchangeLog::~ExchangeLog() {
  const std::lock_guard lock(open_log().mutex);
  open_log().log.store(nullptr, std::memory_order_relaxed);
}

bool ExchangeLog::is_open() noexcept {
  // Relaxed: an exchange that starts at this moment may see either value, and add() checks again under the lock.
  return open_log().log.load(std::memory_order_relaxed) != nullptr;
}

void ExchangeLog::add(LoggedExchange record) {
  Open& open = open_log();
  const std::lock_guard lock(open.mutex);
  ExchangeLog* const log = open.log.load(std::memory_order_relaxed);
  if (log == nullptr) return;
  State& state = *log->state_;
  const std::size_t slices = calls_max + record.messages.size();
  // Nothing is kept after the first run that was left out: a trace with holes would show peers that wait for no reason.
  if (state.left_out > 0 || slices > slices_max - state.slices) {
    ++state.left_out;
    return;
  }
  state.slices += slices;
  state.records.push_back(std::move(record));
}

std::vector<LoggedExchange> ExchangeLog::records() const {
  const std::lock_guard lock(open_log().mutex);
  return state_->records;
}

Index ExchangeLog::left_out() const {
  const std::lock_guard lock(open_log().mutex);
  return state_->left_out;
}

void ExchangeLog::clear() {
  const std::lock_guard lock(open_log().mutex);
  *state_ = {};
}

void append_slices(const LoggedExchange& run, std::vector<TraceSlice>& out) {
  std::string kind = name_of(run.kind);
  std::replace(kind.begin(), kind.end(), '_', ' ');
  const std::string name = run.arrays.empty() ? kind : fmt::format("{} of {}", kind, run.arrays);
  Index received = 0, sent = 0;
  for (const LoggedMessage& m : run.messages) (m.target == run.rank ? received : sent) += m.bytes;
  const auto slice = [&](std::string track, std::string what, std::int64_t begin_ns, std::int64_t end_ns) {
    TraceSlice& added = out.emplace_back(TraceSlice{.track = std::move(track),
                                                    .name = std::move(what),
                                                    .category = "exchange",
                                                    .begin_ns = begin_ns,
                                                    .end_ns = end_ns,
                                                    .args = {{"exchange", name}, {"epoch", run.epoch}}});
    return &added.args;
  };

  Json& whole = *slice("in flight", name, run.begin_ns, run.end_ns);
  whole["received_bytes"] = received;
  whole["sent_bytes"] = sent;
  whole["kept_bytes"] = run.own_bytes;
  whole["made_at"] = to_string(run.made);
  if (run.finished.line > 0) whole["finished_at"] = to_string(run.finished);
  if (!run.failure.empty()) whole["failure"] = run.failure;

  slice("calls", "start", run.begin_ns, run.started_ns);
  if (run.finishing_ns > 0) slice("calls", "finish", run.finishing_ns, run.end_ns);

  for (const LoggedMessage& m : run.messages) {
    const bool arrives = m.target == run.rank;
    const Rank peer = arrives ? m.source : m.target;
    Json& args = *slice(fmt::format("{} rank {}", arrives ? "from" : "to", peer), human_bytes(m.bytes), run.begin_ns,
                        m.done_ns > 0 ? m.done_ns : run.end_ns);
    args["source"] = m.source;
    args["target"] = m.target;
    args["bytes"] = m.bytes;
    args["way"] = m.way;
    if (m.done_ns == 0) args["missing"] = true;
  }
}

}  // namespace tranship
