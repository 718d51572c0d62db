// Private: LibraryCalls, a scope in which an operation of this library makes transfers for itself by a context that the
// program uses, too. Its fences and quiets promise the program nothing about the program's own transfers.
#pragma once

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship::detail {

class LibraryCalls {
 public:
  explicit LibraryCalls(Context& context) noexcept : transport_(context.transport_.get()) {
    if (transport_) transport_->enter_library();
  }
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;
  ~LibraryCalls() {
    if (transport_) transport_->leave_library();
  }

 private:
  Transport* transport_;
};

}  // namespace tranship::detail
