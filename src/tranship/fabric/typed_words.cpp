#include "tranship/fabric/typed_words.hpp"

#include <algorithm>
#include <iterator>

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

AtomicCall atomic_call_named(std::string_view word) {
  const auto* const found = std::find_if(std::begin(atomic_forms), std::end(atomic_forms),
                                         [&](const AtomicForm& form) { return form.word == word; });
  if (found == std::end(atomic_forms)) throw_error(ErrorCode::invalid_use, "no atomic operation '{}'", word);
  return static_cast<AtomicCall>(found - std::begin(atomic_forms));
}

void check_several(Several what, std::size_t variables, std::size_t wanted, std::size_t skip) {
  const char* const name = several_names[int(what)];
  if (wanted != 1 && wanted != variables)
    throw_error(ErrorCode::invalid_use, "{}: {} for {}: give one value, or one for each variable", name,
                amount(wanted, "value"), amount(variables, "variable"));
  if (skip != 0 && skip != variables)
    throw_error(ErrorCode::invalid_use, "{}: skip has {} for {}: give one for each variable", name,
                amount(skip, "entry", "entries"), amount(variables, "variable"));
}

}  // namespace tranship
