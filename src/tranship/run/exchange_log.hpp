// Private: ExchangeLog records when the exchanges of this process ran, and when each of their messages was done.
//
// While a log exists, every run of every exchange in the process adds a record; without one, a run costs one load.
// Times are now_ns(), which all processes of a machine share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/trace_events.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Ranks are numbered as launched, also in exchanges of a sub-world.
struct LoggedMessage {
  Rank source = -1;
  Rank target = -1;
  Index bytes = 0;
  const char* way = "";      ///< direct, staged or posted
  std::int64_t done_ns = 0;  ///< as seen by this rank; 0: not done before the run failed
};

/// One run of an exchange, as seen by one rank.
struct LoggedExchange {
  Rank rank = -1;
  PlanKind kind = PlanKind::redistribution;
  std::string arrays;  ///< their names
  std::uint64_t epoch = 0;
  CallSite made{"", 0};
  CallSite finished{"", 0};       ///< call site of the finish() or test() that ended it
  std::int64_t begin_ns = 0;      ///< when start() was called
  std::int64_t started_ns = 0;    ///< when start() returned
  std::int64_t finishing_ns = 0;  ///< when finish() was called; 0 when a test() found everything done
  std::int64_t end_ns = 0;        ///< when everything was done, or the run failed
  std::string failure;            ///< empty when it succeeded
  Index own_bytes = 0;            ///< from this rank to itself
  std::vector<LoggedMessage> messages;
};

/// Adds the slices of a run to a trace: its calls, its time in flight, and each message from its start until it was
/// done.
void append_slices(const LoggedExchange& run, std::vector<TraceSlice>& out);

/// Thread-safe. Keeps the first runs, up to slices_max slices in total, and counts the later ones.
class ExchangeLog {
 public:
  static constexpr std::size_t slices_max = std::size_t(1) << 18;

  /// Throws `invalid_use` while another log exists in this process.
  ExchangeLog();
  ~ExchangeLog();
  ExchangeLog(const ExchangeLog&) = delete;
  ExchangeLog& operator=(const ExchangeLog&) = delete;

  std::vector<LoggedExchange> records() const;
  Index left_out() const;
  void clear();

  /// Returns true while a log exists.
  static bool is_open() noexcept;
  /// Adds a record to the log, if one exists.
  static void add(LoggedExchange record);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
