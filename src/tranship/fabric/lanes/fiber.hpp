// Private: Fiber: a function with a stack of its own. It runs on the caller's thread when it is resumed and may suspend
// itself at any point. Simulated ranks and the lanes of a block are fibers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tranship {

class Fiber {
 public:
  static constexpr std::size_t default_stack_bytes = std::size_t(256) << 10;

  /// `body` must not throw. It does not run before resume().
  explicit Fiber(std::function<void()> body, std::size_t stack_bytes = default_stack_bytes);
  /// The fiber must have ended, or never have begun: its stack is not unwound.
  ~Fiber();
  Fiber(Fiber&&) noexcept;
  Fiber& operator=(Fiber&&) = delete;

  /// Runs the fiber on this thread until it suspends itself or ends.
  void resume();
  bool ended() const noexcept;

  /// Returns the fiber that runs on this thread, or nullptr.
  static Fiber* current() noexcept;
  /// Returns to the caller of resume(); continues here when the fiber is resumed again.
  static void suspend();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
