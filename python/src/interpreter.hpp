// What the interpreter asks of code that waits: to let others run meanwhile, and to say from where it was called.
//
// Every rank is a thread to Python, simulated ones, too. Those are fibers of one thread to C++: their Python runs in a
// thread of its own, and what may wait goes back to the fiber (FiberThread), so that one of all of them runs at a time.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

#include <tranship/base/call_site.hpp>
#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>

namespace tranship::python {

namespace nb = nanobind;

/// The caller of the package. The name lives as long as the process.
CallSite python_call_site();

/// Runs the Python of a simulated rank in a thread, and what it hands back on the rank's fiber.
class FiberThread {
 public:
  /// Runs `body` in a new thread, and serves it until it returns; `look` is called now and then while it computes.
  /// Called on the fiber, without the interpreter's lock.
  static void run(FunctionRef<void()> body, FunctionRef<void()> look);
  /// The one that serves the calling thread, or null.
  static FiberThread* current() noexcept { return current_; }
  /// From now on the child of a fork, which has no other threads, is not served by any.
  static void end_in_children();
  /// Runs `f` on the fiber; what it throws comes back.
  void call(FunctionRef<void()> f);

 private:
  void serve(FunctionRef<void()> look);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<FunctionRef<void()>> request_;
  std::exception_ptr thrown_;
  bool is_served_ = false;
  bool is_over_ = false;
  static thread_local FiberThread* current_;
};

/// Runs `f` while other threads, and other simulated ranks, may run Python. Whatever may wait for a rank runs in it.
template <class F>
auto without_gil(F&& f) -> std::invoke_result_t<F> {
  using Result = std::invoke_result_t<F>;
  const nb::gil_scoped_release release;
  FiberThread* const fiber = FiberThread::current();
  if (fiber == nullptr) return f();
  if constexpr (std::is_void_v<Result>)
    fiber->call(f);
  else {
    std::optional<Result> result;
    fiber->call([&] { result.emplace(f()); });
    return *std::move(result);
  }
}

/// The same for what takes less time than the lock does to come back, when it `is_brief`: it must not wait for a rank.
template <class F>
auto without_gil_unless(bool is_brief, F&& f) -> std::invoke_result_t<F> {
  if (is_brief && FiberThread::current() == nullptr) return f();
  return without_gil(f);
}
/// Bytes whose copy is that brief.
inline constexpr Index brief_bytes = 16384;

/// Ctrl-C, in a rank that does not see signals itself; KeyboardInterrupt to Python.
class Interrupt : public std::exception {
 public:
  const char* what() const noexcept override { return "KeyboardInterrupt"; }
};

/// A thread state for a rank that C++ has started, with the lock of the interpreter, while it lives.
class RankState {
 public:
  explicit RankState(PyInterpreterState* interpreter);
  ~RankState();
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  /// What SetAsyncExc calls this thread.
  unsigned long thread_id() const noexcept { return thread_id_; }

 private:
  PyThreadState* state_;
  unsigned long thread_id_;
};

/// Of the exception that is being handled, which is one of Python's: what C++ and the other ranks see of it. The
/// exception itself stays with the rank.
Error error_of(const nb::python_error& exception);
/// The same of an exception object.
Error error_of(nb::handle exception);

/// The rank that the calling thread is, for as long as this lives; its errors have it where they name no other.
class RankOfThread {
 public:
  explicit RankOfThread(int rank) noexcept : before_(set(rank)) {}
  ~RankOfThread() { set(before_); }
  RankOfThread(const RankOfThread&) = delete;
  RankOfThread& operator=(const RankOfThread&) = delete;

  static int current() noexcept { return current_; }  ///< -1 for none
  /// Returns the one before.
  static int set(int rank) noexcept { return std::exchange(current_, rank); }

 private:
  static thread_local int current_;
  int before_;
};

/// Sets Python's error to what a C++ exception of this library becomes; throws on what is no such exception.
void raise_for(const std::exception_ptr& thrown);

/// Says where the package lies, whose frames are no call sites, nor are those of `blocks`, the file of contextlib; and
/// what C++ errors become: `classes` maps names of codes to classes, and "base" to the one that all derive from.
void set_package(std::string folder, std::string blocks, nb::dict classes);

}  // namespace tranship::python
