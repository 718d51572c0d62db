// Detail: Callback, a callable that is kept, for example in a struct of options. A callable that is only passed down a
// call is a FunctionRef. A Callback allocates once, when it is made; copies and calls do not allocate. It needs no
// <functional>.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace tranship {

template <class Signature>
class Callback;

/// Owns a copy of the callable that it was made from; all copies of the Callback share it. Empty by default; an empty
/// Callback must not be called.
template <class R, class... Args>
class Callback<R(Args...)> {
 public:
  Callback() noexcept = default;
  Callback(std::nullptr_t) noexcept {}
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Callback> && std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      Callback(F&& f)
      : target_(std::make_shared<std::decay_t<F>>(std::forward<F>(f))), call_([](void* target, Args... args) -> R {
          auto& callable = *static_cast<std::decay_t<F>*>(target);
          if constexpr (std::is_void_v<R>)
            callable(std::forward<Args>(args)...);
          else
            return callable(std::forward<Args>(args)...);
        }) {}

  explicit operator bool() const noexcept { return target_ != nullptr; }
  R operator()(Args... args) const { return call_(target_.get(), std::forward<Args>(args)...); }

 private:
  std::shared_ptr<void> target_;
  R (*call_)(void*, Args...) = nullptr;
};

}  // namespace tranship
