// Private: LibraryCalls: a scope in which an operation of this library makes its own transfers on a context that the
// program also uses. Its fences and quiets promise nothing about the program's own transfers.
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

  /// Makes a put_signal() to a messaged peer by Transport::put_departing().
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
