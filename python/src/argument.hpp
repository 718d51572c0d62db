// Argument: a parameter whose value may be of the wrong kind or out of range. The library throws its own error with the
// value and the expectation; nanobind would list the signatures of a function that users do not know.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>

namespace tranship::python {

namespace nb = nanobind;

/// "from -2147483648 to 2147483647"
template <class T>
std::string limits_text() {
  return fmt::format("from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

template <class T>
struct Expected {
  static std::string text() {
    if constexpr (std::is_same_v<T, bool>)
      return "True or False";
    else if constexpr (std::is_integral_v<T>)
      return "a whole number " + limits_text<T>();
    else
      return "a text";
  }
};
template <class T>
struct Expected<std::vector<T>> {
  static std::string text() { return "whole numbers " + limits_text<T>(); }
};

/// A parameter of a bound function. It takes any object, and throws Error(invalid_use) when the function needs a T and
/// the object is not one.
template <class T>
class Argument {
 public:
  Argument() = default;
  explicit Argument(nb::handle source) {
    if (T given; nb::try_cast(source, given))
      value_ = std::move(given);
    else
      refused_ = text_of(source);
  }

  const T& value() const {
    if (!value_) throw_error(ErrorCode::invalid_use, "expected {}, not {}", Expected<T>::text(), refused_);
    return *value_;
  }
  operator const T&() const { return value(); }  // NOLINT(google-explicit-constructor): stands for a T

 private:
  static std::string text_of(nb::handle source) {
    const nb::object text = nb::steal(PyObject_Repr(source.ptr()));
    const char* const chars = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
    if (chars == nullptr) PyErr_Clear();
    return printable(chars == nullptr ? "what has no text" : chars);
  }

  std::optional<T> value_;
  std::string refused_;
};

using Int = Argument<int>;
using Whole = Argument<Index>;
using Ints = Argument<std::vector<int>>;
using Wholes = Argument<std::vector<Index>>;
using Text = Argument<std::string>;
using Flag = Argument<bool>;

}  // namespace tranship::python

namespace nanobind::detail {

/// None is an object, too.
template <class T>
struct has_arg_defaults<tranship::python::Argument<T>> : std::true_type {};

template <class T>
struct type_caster<tranship::python::Argument<T>> {
  NB_TYPE_CASTER(tranship::python::Argument<T>, make_caster<T>::Name)

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value = tranship::python::Argument<T>(source);
    return true;
  }
};

}  // namespace nanobind::detail
