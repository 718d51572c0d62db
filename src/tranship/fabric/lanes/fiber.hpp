// Private: a function with a stack of its own, that runs on the caller's thread when it is resumed and may stop in the
// middle. Simulated ranks and the lanes of a block are fibers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tranship {

class Fiber {
 public:
  static constexpr std::size_t default_stack_bytes = std::size_t(256) << 10;

  /// `body` must not throw. Nothing runs before resume().
  explicit Fiber(std::function<void()> body, std::size_t stack_bytes = default_stack_bytes);
  /// It has ended, or never begun: what stands on a stack is not unwound.
  ~Fiber();
  Fiber(Fiber&&) noexcept;
  Fiber& operator=(Fiber&&) = delete;

  /// Runs it, on this thread, until it suspends or ends.
  void resume();
  bool ended() const noexcept;

  /// The fiber that runs on this thread, or nullptr.
  static Fiber* current() noexcept;
  /// Returns to the caller of resume(); goes on when it is resumed again.
  static void suspend();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
