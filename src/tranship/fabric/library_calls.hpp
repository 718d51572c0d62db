// Private: LibraryCalls, a scope in which an operation of this library makes transfers for itself by a context that the
// program uses, too. Its fences and quiets promise the program nothing about the program's own transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship::detail {

class LibraryCalls {
 public:
  explicit LibraryCalls(Context& context) noexcept : context_(context), transport_(context.transport_.get()) {
    if (transport_) transport_->enter_library();
  }
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;
  ~LibraryCalls() {
    if (transport_) transport_->leave_library();
  }

  /// As Context::put_signal() to a peer that is only messaged, with Transport::put_departing().
  template <class T>
  Transport::Departure put_signal(Symmetric<T> target, std::span<const T> source,
                                  const std::shared_ptr<const void>& owner, Symmetric<std::uint64_t> signal,
                                  std::uint64_t value, SignalOp op, Rank peer,
                                  CallSite where = CallSite::here()) const {
    return context_.put_departing(target.local(), std::as_bytes(source), owner, {signal.local(), value, op}, peer,
                                  where);
  }

 private:
  Context& context_;
  Transport* transport_;
};

}  // namespace tranship::detail
