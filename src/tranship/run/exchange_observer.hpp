// Private: ExchangeObserver is told of the runs of an exchange. Leases of devices and logs observe; the runner knows
// neither.
#pragma once

#include <string>

#include <tranship/base/call_site.hpp>

namespace tranship {

struct Message;

/// Called by the thread of the rank, in the order starting, started, completed or failed.
class ExchangeObserver {
 public:
  virtual ~ExchangeObserver() = default;
  /// Returns true when starting() may wait, and with it start().
  virtual bool start_may_wait() const noexcept { return false; }
  /// Before the rank announces anything. When it throws, start() fails and the exchange is not started.
  virtual void starting(CallSite /*where*/) {}
  /// start() has failed after starting().
  virtual void not_started() noexcept {}
  virtual void started(CallSite /*where*/) {}
  /// finish() was called.
  virtual void finishing() {}
  virtual void message_complete(const Message& /*message*/) {}
  /// A test() or a finish() has seen that everything is complete.
  virtual void completed(CallSite /*where*/) {}
  /// A test() or a finish() throws.
  virtual void failed(CallSite /*where*/, const std::string& /*why*/) {}
  /// The exchange ends for good. If a run was in flight, no peer touches its memory from now on.
  virtual void withdrawn() noexcept {}
};

}  // namespace tranship
