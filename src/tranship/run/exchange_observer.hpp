// Private: ExchangeObserver, told of the runs of an exchange. Leases of devices and logs observe; the runner knows
// neither.
#pragma once

#include <string>

#include <tranship/base/call_site.hpp>

namespace tranship {

struct Message;

/// Called by the thread of the rank, in the order: starting, started, completed or failed.
class ExchangeObserver {
 public:
  virtual ~ExchangeObserver() = default;
  /// start() waits for nothing but what starting() waits for.
  virtual bool start_may_wait() const noexcept { return false; }
  /// Before the rank publishes anything. An exception ends the start, and the exchange has not been started.
  virtual void starting(CallSite /*where*/) {}
  /// The start has failed after starting().
  virtual void not_started() noexcept {}
  virtual void started(CallSite /*where*/) {}
  /// finish() is called.
  virtual void finishing() {}
  virtual void message_complete(const Message& /*message*/) {}
  /// All is complete, as seen by a test() or a finish().
  virtual void completed(CallSite /*where*/) {}
  /// A test() or a finish() throws.
  virtual void failed(CallSite /*where*/, const std::string& /*why*/) {}
  /// The exchange ends for good; if a run was in flight, no peer touches its memory from now on.
  virtual void withdrawn() noexcept {}
};

}  // namespace tranship
