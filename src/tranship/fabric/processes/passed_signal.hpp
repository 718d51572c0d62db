// Private: a signal that ends what a launcher has started.
#pragma once

namespace tranship {

/// A signal that this process has got, for those that it has started.
struct PassedSignal {
  int number = 0;              ///< 0: there is none
  bool has_been_sent = false;  ///< to them, too, as a terminal does
};

}  // namespace tranship
