// Private: PassedSignal: a signal that ends the processes that a launcher has started.
#pragma once

namespace tranship {

/// A signal that this process has received and passes on to the processes that it has started.
struct PassedSignal {
  int number = 0;              ///< 0 if there is none
  bool has_been_sent = false;  ///< they have received it already, as from a terminal
};

}  // namespace tranship
