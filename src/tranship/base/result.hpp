// Detail: Result<T>, a value or the Error that prevented it. Only value() converts a Result into an exception.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include <tranship/base/error.hpp>

namespace tranship {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  const Error& error() const { return std::get<1>(state_); }

  /// Returns the value, or throws the Error if there is none.
  T& value() & {
    raise();
    return std::get<0>(state_);
  }
  const T& value() const& {
    raise();
    return std::get<0>(state_);
  }
  T value() && {
    raise();
    return std::get<0>(std::move(state_));
  }

 private:
  void raise() const {
    if (!ok()) throw error();
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const { return *error_; }
  void value() const {
    if (error_) throw *error_;
  }

 private:
  std::optional<Error> error_;
};

/// Runs `f` and returns its value, or the Error that it throws, as a Result. The `try_` twins are made with it.
template <class F>
auto attempt(F&& f) -> Result<decltype(f())> {
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return {};
    } else {
      return f();
    }
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace tranship
