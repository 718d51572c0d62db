// Private: ExchangeLog, when the exchanges of this process ran, and when each of their messages was done.
//
// While one exists, every run of every exchange of this process becomes a record; without one, a run pays for one load.
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

/// Ranks are those that were launched, also in exchanges of a sub-world.
struct LoggedMessage {
  Rank source = -1;
  Rank target = -1;
  Index bytes = 0;
  const char* way = "";      ///< direct, staged or posted
  std::int64_t done_ns = 0;  ///< as this rank has seen it; 0: not before the run failed
};

/// One run of an exchange, as one rank has seen it.
struct LoggedExchange {
  Rank rank = -1;
  PlanKind kind = PlanKind::redistribution;
  std::string arrays;  ///< their names
  std::uint64_t epoch = 0;
  CallSite made{"", 0};
  CallSite finished{"", 0};       ///< by which finish() or test()
  std::int64_t begin_ns = 0;      ///< when start() was called
  std::int64_t started_ns = 0;    ///< when it returned
  std::int64_t finishing_ns = 0;  ///< when finish() was called; 0 where a test() found all done
  std::int64_t end_ns = 0;        ///< when all was done, or the run failed
  std::string failure;            ///< empty where it did not
  Index own_bytes = 0;            ///< from this rank to itself
  std::vector<LoggedMessage> messages;
};

/// How traces show a run: its calls, the time that it was in flight, and each message from its start until it was done.
void append_slices(const LoggedExchange& run, std::vector<TraceSlice>& out);

/// Thread-safe. Keeps the first runs, of so many slices together, and counts those that come after them.
class ExchangeLog {
 public:
  static constexpr std::size_t slices_max = std::size_t(1) << 18;

  /// Throws `invalid_use` while another one exists in this process.
  ExchangeLog();
  ~ExchangeLog();
  ExchangeLog(const ExchangeLog&) = delete;
  ExchangeLog& operator=(const ExchangeLog&) = delete;

  std::vector<LoggedExchange> records() const;
  Index left_out() const;
  void clear();

  /// Whether there is one.
  static bool is_open() noexcept;
  /// To the one that there is, if any.
  static void add(LoggedExchange record);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
