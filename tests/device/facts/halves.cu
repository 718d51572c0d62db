// Checks the sums and products of all pairs of 16-bit floats, 2^32 for each type. The tree's own arithmetic on the card
// is compared with the card's correctly rounded instructions. The sums are also compared with the tree's arithmetic on
// the CPU: the results of each first operand give a weighted sum, which any single wrong result changes.
#include <atomic>
#include <thread>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/half.hpp>

#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

constexpr unsigned values = 1 << 16;

/// Each of the two types has the tree's number, and the card's own sum and product.
struct F16 {
  using Number = detail::Half<float_of_f16, f16_of_float>;
  static constexpr const char* name = "f16";
  static constexpr unsigned short nan = 0x7e00;
  __device__ static unsigned short sum(unsigned short a, unsigned short b) {
    return __half_as_ushort(__hadd_rn(__ushort_as_half(a), __ushort_as_half(b)));
  }
  __device__ static unsigned short product(unsigned short a, unsigned short b) {
    return __half_as_ushort(__hmul_rn(__ushort_as_half(a), __ushort_as_half(b)));
  }
  __device__ static bool is_nan(unsigned short a) { return (a & 0x7fffu) > 0x7c00u; }
};
struct Bf16 {
  using Number = detail::Half<float_of_bf16, bf16_of_float>;
  static constexpr const char* name = "bf16";
  static constexpr unsigned short nan = 0x7fc0;
  __device__ static unsigned short sum(unsigned short a, unsigned short b) {
    return __bfloat16_as_ushort(__hadd_rn(__ushort_as_bfloat16(a), __ushort_as_bfloat16(b)));
  }
  __device__ static unsigned short product(unsigned short a, unsigned short b) {
    return __bfloat16_as_ushort(__hmul_rn(__ushort_as_bfloat16(a), __ushort_as_bfloat16(b)));
  }
  __device__ static bool is_nan(unsigned short a) { return (a & 0x7fffu) > 0x7f80u; }
};

/// Gives each second operand an odd weight: a wrong result moves the weighted sum by less than 2^48 and not by 0.
__host__ __device__ inline unsigned weight(unsigned b) {
  return unsigned(scrambled(b + 0x1234567ull)) | 1u;
}
/// The order of the first operands mixes all kinds of numbers, so that any part of them is a fair sample.
__host__ __device__ inline unsigned short operand(unsigned i) {
  return static_cast<unsigned short>(i * 40503u);
}

/// Combines two elements as the tree's kernels do when they accumulate or multiply.
template <class Number, ElementMap move>
__host__ __device__ inline unsigned short combined(unsigned short target, unsigned short source) {
  unsigned char to[2], from[2];
  detail::store(target, to);
  detail::store(source, from);
  detail::CombineElement<Number, move>::apply(from, to);
  return detail::load<unsigned short>(to);
}

struct Found {
  Word wrong_sums, wrong_products;
  unsigned first_sum, first_product;  ///< the least wrong pair, as a << 16 | b
};

/// Each block takes one first operand.
template <class Type>
__global__ void all_pairs(Word* weighted, Found* found) {
  const unsigned short a = operand(blockIdx.x);
  __shared__ Word sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  Word mine = 0, wrong_sums = 0, wrong_products = 0;
  for (unsigned b = threadIdx.x; b < values; b += blockDim.x) {
    const unsigned short other = static_cast<unsigned short>(b);
    const unsigned pair = unsigned(a) << 16 | b;
    const unsigned short result = combined<typename Type::Number, ElementMap::accumulate>(a, other);
    mine += Word(result) * weight(b);
    unsigned short right = Type::sum(a, other);
    if (Type::is_nan(right)) right = Type::nan;
    if (result != right) {
      ++wrong_sums;
      atomicMin(&found->first_sum, pair);
    }
    right = Type::product(a, other);
    if (Type::is_nan(right)) right = Type::nan;
    if (combined<typename Type::Number, ElementMap::multiply>(a, other) != right) {
      ++wrong_products;
      atomicMin(&found->first_product, pair);
    }
  }
  atomicAdd(&sum, mine);
  if (wrong_sums != 0) atomicAdd(&found->wrong_sums, wrong_sums);
  if (wrong_products != 0) atomicAdd(&found->wrong_products, wrong_products);
  __syncthreads();
  if (threadIdx.x == 0) weighted[blockIdx.x] = sum;
}

template <class Type>
std::vector<Word> on_the_host(unsigned operands, unsigned cores) {
  std::vector<unsigned> weights(values);
  for (unsigned b = 0; b < values; ++b) weights[b] = weight(b);
  std::vector<Word> out(operands);
  std::atomic<unsigned> next{0};
  const auto work = [&] {
    for (unsigned i; (i = next.fetch_add(1)) < operands;) {
      const unsigned short a = operand(i);
      Word sum = 0;
      for (unsigned b = 0; b < values; ++b)
        sum += Word(combined<typename Type::Number, ElementMap::accumulate>(a, static_cast<unsigned short>(b))) *
               weights[b];
      out[i] = sum;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned core = 1; core < cores; ++core) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return out;
}

std::string pair_text(unsigned pair) {
  char text[64];
  std::snprintf(text, sizeof text, "first wrong pair: 0x%04x, 0x%04x", pair >> 16, pair & 0xffffu);
  return text;
}

template <class Type>
void pairs(const Options& options) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned on_card = options.quick() ? 64 : values;
  const unsigned on_host = std::min(
      on_card, unsigned(options.number("--operands", cores >= 8 ? (long long)values : (long long)(cores * 4096))));
  const std::string name = Type::name;
  CardArray<Word> weighted(on_card);
  CardArray<Found> found(1);
  found.write(std::vector<Found>{Found{0, 0, ~0u, ~0u}});
  weighted.fill(0xa5);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const double begin = now_us();
  all_pairs<Type><<<on_card, 256>>>(weighted.data(), found.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const double card_us = now_us() - begin;
  const Found seen = found.read()[0];
  const std::vector<Word> from_card = weighted.read();
  const long long cases = (long long)on_card * values;
  check("sums of pairs of " + name + " on the card are correctly rounded, NaN canonical", cases,
        (long long)seen.wrong_sums,
        seen.wrong_sums != 0 ? pair_text(seen.first_sum) : std::to_string(card_us * 1e-3) + " ms on the card");
  check("products of pairs of " + name + " on the card, by way of f32, are correctly rounded, NaN canonical", cases,
        (long long)seen.wrong_products, seen.wrong_products != 0 ? pair_text(seen.first_product) : "");
  const double host_begin = now_us();
  const std::vector<Word> from_host = on_the_host<Type>(on_host, cores);
  long long wrong = 0;
  unsigned first = 0;
  for (unsigned i = on_host; i-- > 0;)
    if (from_host[i] != from_card[i]) {
      ++wrong;
      first = operand(i);
    }
  char note[128];
  std::snprintf(note, sizeof note, "%u first operands with all %u others each, %.1f s on %u cores", on_host, values,
                (now_us() - host_begin) * 1e-6, cores);
  check("sums of pairs of " + name + ": the card gives the bits of the CPU", (long long)on_host * values, wrong,
        wrong != 0 ? std::to_string(wrong) + " first operands differ, one is " + std::to_string(first) : note);
}

void run(const Options& options) {
  pairs<F16>(options);
  pairs<Bf16>(options);
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
