#include "tranship/fabric/atomic.hpp"

#include <cstdint>
#include <cstring>

namespace tranship {
namespace {

template <AtomicOp op, class Word>
void apply(void* at, const void* operand, const void* expected, void* before) {
  Word by, wanted;
  std::memcpy(&by, operand, sizeof by);
  std::memcpy(&wanted, expected, sizeof wanted);
  const Word was = detail::update_word<op>(static_cast<Word*>(at), by, wanted);
  if (before) std::memcpy(before, &was, sizeof was);
}

// One function for each operation: g++ 12 at -O1 loses the operand of an or, and or xor in a switch that also has a
// compare_swap.
using Apply = void (*)(void*, const void*, const void*, void*);
template <class Word>
constexpr Apply functions[] = {
#define TRANSHIP_ATOMIC_OP(op, fetching) apply<AtomicOp::op, Word>,
#include <tranship/kernels/atomics.def>
};

}  // namespace

void apply_atomic(void* at, int width, AtomicOp op, const void* operand, const void* expected, void* before) {
  const auto index = static_cast<int>(op);
  (width == 4 ? functions<std::uint32_t>[index] : functions<std::uint64_t>[index])(at, operand, expected, before);
}

}  // namespace tranship
