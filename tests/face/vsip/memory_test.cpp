// Calls where memory is short: each allocation of a call is refused in turn. A program in C knows no exceptions, so
// what creates an object returns NULL, keeps nothing, and succeeds once there is memory.
#include <cstdlib>
#include <cstring>
#include <new>

#include <gtest/gtest.h>
#include <vsip.h>

namespace {

thread_local long refused_from = -1;  ///< so many allocations succeed before all others fail; -1: none fails
thread_local long held = 0;           ///< how many allocations have not been freed

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (refused_from == 0) return nullptr;
  if (refused_from > 0) --refused_from;
  ++held;
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}
void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* const memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}
void give_back(void* memory) {
  if (memory) --held;
  std::free(memory);
}
constexpr std::size_t usual = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, usual);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, usual);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, std::size_t(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, std::size_t(alignment));
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, usual);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, usual);
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  give_back(memory);
}

namespace {

/// Calls f where only so many allocations succeed.
template <class F>
auto with_allocations(long count, F f) {
  refused_from = count;
  const auto result = f();
  refused_from = -1;
  return result;
}

/// How many allocations `create` needs: with fewer it returns NULL and keeps none.
template <class F, class D>
long allocations_of(F create, D destroy) {
  for (long count = 0; count < 100; ++count) {
    const long before = held;
    auto* const object = with_allocations(count, create);
    if (object) {
      destroy(object);
      return count;
    }
    EXPECT_EQ(held, before) << "with " << count << " allocations";
  }
  ADD_FAILURE() << "never succeeds";
  return -1;
}

#define SHORT_OF_MEMORY(T)                                                                                           \
  TEST(VsipMemory, that_is_short_makes_no_objects_##T) {                                                             \
    auto* kept = vsip_cvcreate_##T(8, VSIP_MEM_NONE);                                                                \
    EXPECT_GE(allocations_of([] { return vsip_vcreate_##T(8, VSIP_MEM_NONE); }, vsip_valldestroy_##T), 3);           \
    EXPECT_GE(allocations_of([] { return vsip_cvcreate_##T(8, VSIP_MEM_NONE); }, vsip_cvalldestroy_##T), 3);         \
    EXPECT_GE(allocations_of([] { return vsip_mcreate_##T(2, 3, VSIP_ROW, VSIP_MEM_NONE); }, vsip_malldestroy_##T),  \
              3);                                                                                                    \
    EXPECT_GE(allocations_of([kept] { return vsip_cvsubview_##T(kept, 1, 3); }, vsip_cvdestroy_##T), 1);             \
    EXPECT_GE(allocations_of([kept] { return vsip_vimagview_##T(kept); }, vsip_vdestroy_##T), 1);                    \
    EXPECT_GE(allocations_of([] { return vsip_ccfftip_create_##T(8, 1, VSIP_FFT_FWD, 0, VSIP_ALG_TIME); },           \
                             vsip_fft_destroy_##T),                                                                  \
              1);                                                                                                    \
    EXPECT_GE(allocations_of([] { return vsip_vcreate_kaiser_##T(8, 2, VSIP_MEM_NONE); }, vsip_valldestroy_##T), 3); \
    EXPECT_GE(allocations_of([] { return vsip_vcreate_cheby_##T(8, 50, VSIP_MEM_NONE); }, vsip_valldestroy_##T), 6); \
    vsip_cvalldestroy_##T(kept);                                                                                     \
  }
TRANSHIP_VSIP_FLOATS(SHORT_OF_MEMORY)

char said[256];
void keep_message(const char* call, const char* message) {
  std::strcat(std::strcat(std::strcpy(said, call), ": "), message);
}

TEST(VsipMemory, that_is_short_leaves_the_input_of_an_fft_alone) {
  const auto before = tranship_vsip_set_handler(keep_message);
  auto* v = vsip_cvcreate_f(8, VSIP_MEM_NONE);
  vsip_cvfill_f(vsip_cmplx_f(1, 2), v);
  long count = 0;
  for (bool done = false; !done && count < 100; ++count) {
    auto* fft = vsip_ccfftip_create_f(8, 1, VSIP_FFT_FWD, 0, VSIP_ALG_TIME);
    said[0] = 0;
    done = with_allocations(count, [&] {
      vsip_ccfftip_f(fft, v);
      return said[0] == 0;
    });
    if (!done) {
      EXPECT_STREQ(said, "vsip_ccfftip_f: no memory, or FFTW has no plan, for 1 transforms of length 8");
    }
    for (vsip_index i = 0; i < 8; ++i) EXPECT_EQ(vsip_cvget_f(v, i).r, !done ? 1 : i == 0 ? 8 : 0) << i;
    vsip_fft_destroy_f(fft);
  }
  EXPECT_GE(count, 4);
  vsip_cvalldestroy_f(v);
  tranship_vsip_set_handler(before);
}

}  // namespace
