#include <cstdint>
#include <cstring>
#include <string_view>

#include <tranship/kernels/host/element_moves.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/host/reduce.hpp>

namespace tranship::detail {
namespace {

/// `to` op= `from`, bit by bit.
template <class Op>
void combine_bits(std::byte* to, const std::byte* from, std::size_t bytes, Op op) {
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t a, b;
    std::memcpy(&a, to + i, sizeof a);
    std::memcpy(&b, from + i, sizeof b);
    a = op(a, b);
    std::memcpy(to + i, &a, sizeof a);
  }
  for (; i < bytes; ++i) to[i] = std::byte(op(std::uint64_t(to[i]), std::uint64_t(from[i])));
}

}  // namespace

static_assert(int(Reduction::sum) == int(Combine::sum) && int(Reduction::product) == int(Combine::product) &&
              int(Reduction::minimum) == int(Combine::minimum) && int(Reduction::maximum) == int(Combine::maximum));

bool can_reduce(Reduction reduction, ElementType type) noexcept {
  if (is_complex(type)) return reduction == Reduction::sum;
  if (reduction <= Reduction::maximum) return can_combine(static_cast<Combine>(reduction), type);
  const std::string_view kind = numpy_kind(type);
  return kind[0] == 'i' || kind[0] == 'u' || kind[0] == 'b';
}

void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, Reduction reduction, ElementType type) {
  switch (reduction) {
    case Reduction::bit_and:
      return combine_bits(to, from, bytes, [](std::uint64_t a, std::uint64_t b) { return a & b; });
    case Reduction::bit_or:
      return combine_bits(to, from, bytes, [](std::uint64_t a, std::uint64_t b) { return a | b; });
    case Reduction::bit_xor:
      return combine_bits(to, from, bytes, [](std::uint64_t a, std::uint64_t b) { return a ^ b; });
    case Reduction::sum:
    case Reduction::product:
    case Reduction::minimum:
    case Reduction::maximum:
      break;
  }
  const Arithmetic arithmetic = arithmetic_of(type);
  const int width = width_of(arithmetic);  // of complex numbers that of their parts
  const CopyBlock block{.dims = 1,
                        .extents = {static_cast<long long>(bytes) / width},
                        .source_strides = {width},
                        .target_strides = {width}};
  move_on_host(block, move_of(static_cast<Combine>(reduction)), arithmetic, width, copy_method(0), from, to);
}

}  // namespace tranship::detail
