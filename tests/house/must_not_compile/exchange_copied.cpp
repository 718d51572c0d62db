// expect: use of deleted function|call to (implicitly-)?deleted
#include <tranship/run/exchange.hpp>

tranship::Exchange copy(const tranship::Exchange& exchange) {
  return exchange;
}
