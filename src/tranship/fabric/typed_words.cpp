#include "tranship/fabric/typed_words.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

void refuse_word(const char* what, ElementType type, WordTypes types) {
  const bool is_number = type == ElementType::f32 || type == ElementType::f64;
  throw_error(ErrorCode::invalid_use, "{} takes {}, not {}", what,
              types == WordTypes::numbers ? "i4, u4, i8, u8, f4 or f8"
              : is_number                 ? "integers"
                                          : "i4, u4, i8 or u8",
              name_of(type));
}

std::span<const AtomicForm> atomic_forms() noexcept {
  using Takes = AtomicForm::Takes;
  constexpr WordTypes Element = WordTypes::numbers, Integer = WordTypes::integers;
  constexpr bool fetched = true, nothing = false;
  static constexpr AtomicForm forms[] = {
#define TRANSHIP_ATOMIC(name, op, elements, takes, returns, word) {word, elements, Takes::takes, returns},
#include <tranship/kernels/atomics.def>
  };
  return forms;
}

AtomicCall atomic_call_named(std::string_view word) {
  const auto forms = atomic_forms();
  const auto found =
      std::find_if(forms.begin(), forms.end(), [&](const AtomicForm& form) { return form.word == word; });
  if (found == forms.end()) throw_error(ErrorCode::invalid_use, "no atomic operation '{}'", word);
  return static_cast<AtomicCall>(found - forms.begin());
}

std::uint64_t run_atomic_on_bits(Context& rma, AtomicCall call, ElementType type, void* at, std::uint64_t value,
                                 std::uint64_t expected, Rank peer, CallSite where) {
  return with_word_of(call, type, [&]<class T>(T) {
    const auto word = Symmetric<T>::at(static_cast<T*>(at), 1);
    return bits_of_word(run_atomic(rma, call, word, word_of_bits<T>(value), word_of_bits<T>(expected), peer, where));
  });
}

void check_several(Several what, std::size_t variables, std::size_t wanted, std::size_t skip) {
  const char* const name = several_names[int(what)];
  if (wanted != 1 && wanted != variables)
    throw_error(ErrorCode::invalid_use, "{} takes one value or one for each variable: {} for {}", name, wanted,
                variables);
  if (skip != 0 && skip != variables)
    throw_error(ErrorCode::invalid_use, "{} takes a status for each variable: {} for {}", name, skip, variables);
}

}  // namespace tranship
