// Code that waits lets other threads run Python meanwhile, and reports its call site. The functions here do both, and
// convert exceptions between Python and C++.
//
// Every rank is a thread to Python, also a simulated one. To C++, simulated ranks are fibers of one thread: the Python
// of each runs in a thread of its own, and calls that may wait go back to the fiber (FiberThread), so that only one of
// all simulated ranks runs at a time.
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

/// Returns the place from which a program called the package. The file name lives as long as the process.
CallSite python_call_site();

/// Runs the Python of a simulated rank in a thread, and the functions that it passes to call() on the rank's fiber.
class FiberThread {
 public:
  /// Runs `body` in a new thread, and serves it until it returns; `look` is called now and then while it computes.
  /// Called on the fiber, without the interpreter's lock.
  static void run(FunctionRef<void()> body, FunctionRef<void()> look);
  /// The FiberThread that serves the calling thread, or null.
  static FiberThread* current() noexcept { return current_; }
  /// From now on, current() is null in the child of a fork, which has no other threads.
  static void end_in_children();
  /// Runs `f` on the fiber, and throws what `f` throws.
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

/// Runs `f` while other threads, and other simulated ranks, may run Python. Code that may wait for a rank must run so.
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

/// Runs `f` as without_gil does, or with the interpreter's lock when `is_brief`: `f` then takes less time than getting
/// the lock back, and must not wait for a rank.
template <class F>
auto without_gil_unless(bool is_brief, F&& f) -> std::invoke_result_t<F> {
  if (is_brief && FiberThread::current() == nullptr) return f();
  return without_gil(f);
}
/// The most bytes whose copy is brief enough.
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

  /// The id of this thread for SetAsyncExc.
  unsigned long thread_id() const noexcept { return thread_id_; }

 private:
  PyThreadState* state_;
  unsigned long thread_id_;
};

/// Returns the error that C++ and the other ranks see for a Python exception that is being handled. The exception
/// itself stays with the rank.
Error error_of(const nb::python_error& exception);
/// Returns that error for an exception object.
Error error_of(nb::handle exception);

/// Makes the calling thread a rank while this lives; errors of the thread that name no rank get this one.
class RankOfThread {
 public:
  explicit RankOfThread(int rank) noexcept : before_(set(rank)) {}
  ~RankOfThread() { set(before_); }
  RankOfThread(const RankOfThread&) = delete;
  RankOfThread& operator=(const RankOfThread&) = delete;

  static int current() noexcept { return current_; }  ///< -1 for none
  /// Returns the rank before.
  static int set(int rank) noexcept { return std::exchange(current_, rank); }

 private:
  static thread_local int current_;
  int before_;
};

/// Sets Python's error for a C++ exception of this library; rethrows any other exception.
void raise_for(const std::exception_ptr& thrown);

/// Sets the folder of the package; its frames are no call sites, nor are those of `blocks`, the file of contextlib.
/// Sets the classes for C++ errors: `classes` maps names of codes to classes, and "base" to the base class of all.
void set_package(std::string folder, std::string blocks, nb::dict classes);

}  // namespace tranship::python
