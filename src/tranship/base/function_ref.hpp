// Detail: FunctionRef, a reference to a callable that is passed down a call and never kept. It is two pointers, does
// not allocate, and needs no <functional>.
#pragma once

#include <type_traits>
#include <utility>

namespace tranship {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& f)
  noexcept
      : target_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* target, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(target))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  void* target_;
  R (*call_)(void*, Args...);
};

}  // namespace tranship
