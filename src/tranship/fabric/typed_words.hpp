// Private: operations on words whose type, and the operation itself, are known at run time: atomics by their place in
// the table (kernels/atomics.def), and waits and tests of several variables by kind. Other languages call these.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/context.hpp>

namespace tranship {

/// The element types that an operation takes.
enum class WordTypes : std::uint8_t {
  numbers,   ///< i4, u4, i8, u8, f4 and f8
  integers,  ///< i4, u4, i8 and u8
};

[[noreturn]] void refuse_word(const char* what, ElementType type, WordTypes types);

/// Returns `f(T{})` for the type of a word. Throws `invalid_use` for a type that `what` does not take; with `integers`,
/// `f` is not instantiated for floating-point types.
template <WordTypes types, class F>
decltype(auto) with_word(ElementType type, const char* what, F&& f) {
  switch (type) {
    case ElementType::i32:
      return f(std::int32_t{});
    case ElementType::u32:
      return f(std::uint32_t{});
    case ElementType::i64:
      return f(std::int64_t{});
    case ElementType::u64:
      return f(std::uint64_t{});
    case ElementType::f32:
      if constexpr (types == WordTypes::numbers) return f(float{});
      break;
    case ElementType::f64:
      if constexpr (types == WordTypes::numbers) return f(double{});
      break;
    default:
      break;
  }
  refuse_word(what, type, types);
}

/// The calls of the table, in its order.
enum class AtomicCall : std::int32_t {
#define TRANSHIP_ATOMIC(name, op, elements, takes, returns, word) name,
#include <tranship/kernels/atomics.def>
};
struct AtomicForm {
  enum class Takes : std::uint8_t { nothing, one, value, exchange };

  const char* word = nullptr;  ///< the name in OpenSHMEM: fetch_and
  WordTypes types = WordTypes::integers;
  Takes takes = Takes::nothing;
  bool fetches = false;
};
/// Indexed by AtomicCall.
inline constexpr AtomicForm atomic_forms[] = {
#define TRANSHIP_FORM_Element WordTypes::numbers
#define TRANSHIP_FORM_Integer WordTypes::integers
#define TRANSHIP_FORM_fetched true
#define TRANSHIP_FORM_nothing false
#define TRANSHIP_ATOMIC(name, op, elements, takes, returns, word) \
  {word, TRANSHIP_FORM_##elements, AtomicForm::Takes::takes, TRANSHIP_FORM_##returns},
#include <tranship/kernels/atomics.def>
#undef TRANSHIP_FORM_Element
#undef TRANSHIP_FORM_Integer
#undef TRANSHIP_FORM_fetched
#undef TRANSHIP_FORM_nothing
};
constexpr const AtomicForm& form_of(AtomicCall call) noexcept {
  return atomic_forms[std::size_t(call)];
}
/// Returns the call that has this name in OpenSHMEM. Throws `invalid_use` for other names.
AtomicCall atomic_call_named(std::string_view word);

namespace detail {

/// Indexed by AtomicCall. Calls for integers do nothing for other types.
template <class T>
inline constexpr T (*atomic_functions[])(Context& rma, Symmetric<T> at, T value, T expected, Rank peer,
                                         CallSite where) = {
#define TRANSHIP_GIVES_nothing
#define TRANSHIP_GIVES_one
#define TRANSHIP_GIVES_value value,
#define TRANSHIP_GIVES_exchange expected, value,
#define TRANSHIP_ATOMIC(name, op, elements, takes, returns, word)                                     \
  [](Context& rma, Symmetric<T> at, [[maybe_unused]] T value, [[maybe_unused]] T expected, Rank peer, \
     CallSite where) -> T {                                                                           \
    if constexpr (Atomic##elements<T>) {                                                              \
      if constexpr (std::is_void_v<decltype(rma.name(at, TRANSHIP_GIVES_##takes peer, where))>)       \
        rma.name(at, TRANSHIP_GIVES_##takes peer, where);                                             \
      else                                                                                            \
        return rma.name(at, TRANSHIP_GIVES_##takes peer, where);                                      \
    }                                                                                                 \
    return T{};                                                                                       \
  },
#include <tranship/kernels/atomics.def>
#undef TRANSHIP_GIVES_nothing
#undef TRANSHIP_GIVES_one
#undef TRANSHIP_GIVES_value
#undef TRANSHIP_GIVES_exchange
};

}  // namespace detail

/// Returns the value before the update, or 0 if the call does not fetch. Uses `value` and `expected` if the call takes
/// them. The call must take elements of this type.
template <class T>
T run_atomic(Context& rma, AtomicCall call, Symmetric<T> at, T value, T expected, Rank peer, CallSite where) {
  return detail::atomic_functions<T>[std::size_t(call)](rma, at, value, expected, peer, where);
}
/// Calls `f(T{})` for a type that the call takes. Throws `invalid_use` for other types.
template <class F>
decltype(auto) with_word_of(AtomicCall call, ElementType type, F&& f) {
  const AtomicForm& form = form_of(call);
  if (form.types == WordTypes::integers && (type == ElementType::f32 || type == ElementType::f64))
    refuse_word(form.word, type, form.types);
  return with_word<WordTypes::numbers>(type, form.word, f);
}

/// Converts between a word and the low bits of a 64-bit number, by which code without templates holds it.
template <class T>
T word_of_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
std::uint64_t bits_of_word(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
/// Calls run_atomic() for the element at `at`.
inline std::uint64_t run_atomic_on_bits(Context& rma, AtomicCall call, ElementType type, void* at, std::uint64_t value,
                                        std::uint64_t expected, Rank peer, CallSite where) {
  return with_word_of(call, type, [&]<class T>(T) {
    const auto word = Symmetric<T>::at(static_cast<T*>(at), 1);
    return bits_of_word(run_atomic(rma, call, word, word_of_bits<T>(value), word_of_bits<T>(expected), peer, where));
  });
}

/// The waits for several variables, and the tests of them.
enum class Several : std::int32_t { wait_until_all, wait_until_any, wait_until_some, test_all, test_any, test_some };
inline constexpr const char* several_names[] = {"wait_until_all", "wait_until_any", "wait_until_some",
                                                "test_all",       "test_any",       "test_some"};
constexpr bool waits(Several what) noexcept {
  return what <= Several::wait_until_some;
}
/// Throws `invalid_use` for a number of values or of entries of `skip` that does not fit.
void check_several(Several what, std::size_t variables, std::size_t wanted, std::size_t skip);

/// Writes the indices of the variables that satisfy the comparison to `places`, which has room for all, and returns
/// their number: 0 if a test has found none, and all of them for the `all` kinds. `wanted` has one value, or one for
/// each variable; `skip` is empty or has one number for each, where a nonzero number excludes the variable. Throws
/// `invalid_use` for other lengths.
template <class T>
Index look_at_several(Context& rma, Several what, Symmetric<T> words, std::span<Index> places, Comparison comparison,
                      std::span<const T> wanted, std::span<const int> skip, CallSite where) {
  const auto count = std::size_t(words.size());
  check_several(what, count, wanted.size(), skip.size());
  std::vector<T> each;
  if (wanted.size() != count) {
    each.assign(count, wanted[0]);
    wanted = each;
  }
  const auto first = [&](Index found) { return found < 0 ? 0 : (places[0] = found, 1); };
  switch (what) {
    case Several::wait_until_some:
      return rma.wait_until_some(words, places, comparison, wanted, skip, where);
    case Several::wait_until_any:
      return first(rma.wait_until_any(words, comparison, wanted, skip, where));
    case Several::test_some:
      return rma.test_some(words, places, comparison, wanted, skip, where);
    case Several::test_any:
      return first(rma.test_any(words, comparison, wanted, skip, where));
    case Several::test_all:
      if (!rma.test_all(words, comparison, wanted, skip, where)) return 0;
      break;
    case Several::wait_until_all:
      rma.wait_until_all(words, comparison, wanted, skip, where);
      break;
  }
  std::iota(places.begin(), places.end(), Index(0));
  return words.size();
}

}  // namespace tranship
