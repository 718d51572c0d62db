// expect: nodiscard
#include <tranship/base/result.hpp>

tranship::Result<int> answer();
void ignore() {
  answer();
}
