// Private: InFlight, the interface through which an array knows an exchange that is in flight. If the array gets its
// buffer meanwhile, with its first lease, the exchange opens the leases that it would have opened at its start.
#pragma once

#include <vector>

#include <tranship/array/ghosts/touched_cells.hpp>
#include <tranship/memory/buffer.hpp>

namespace tranship {

class InFlight {
 public:
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// The local cells that the exchange reads, combines or writes.
  virtual const TouchedCells& cells() = 0;
  /// Opens leases on these cells in the host's memory of a buffer in which they are valid. Throws `invalid_use` when
  /// exchanges conflict with each other.
  virtual std::vector<Lease> leases_in(Buffer& buffer) = 0;
  /// Keeps these leases and closes them with the others of the exchange.
  virtual void keep(std::vector<Lease> leases) noexcept = 0;

 protected:
  InFlight() = default;
  ~InFlight() = default;
};

}  // namespace tranship
